"""Reports: the page is whole and says what is known of each kind of model; scores are those of
scikit-learn; importances, drift, leaks; events, curves and Brier scores of survival."""

import re
from datetime import date
from warnings import catch_warnings

import numpy as np
import pandas as pd
import pytest
from hostile import SCRIPT, Page, hostile_report
from sklearn import metrics
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression
from sweeps import swept

import gpuforest as gf
from gpuforest.tools.report import page, pictures, results
from gpuforest.tools.report.html import figure, interval, scored, share
from gpuforest.tools.report.rows import Rows, aligned
from gpuforest.tools.report.scores import LESS, Score, brier_scores, class_scores, number_scores

# causal forests take a treatment, the second refuses reports, and rankers are fitted to queries
OTHERS = ("CausalForest", "HistGradientBoostingSurvival", "HistGradientBoostingRanker")
ESTIMATORS = [n for n in gf.__all__ if hasattr(getattr(gf, n), "report") and n not in OTHERS]
RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + RNG.normal(size=N) / 2, [-0.5, 0.8])]
NUMBERS = 3 * X[:, 0] - X[:, 1] + RNG.normal(size=N)
X3, YES = X[:, :3], np.where(X[:, 0] + RNG.normal(size=N) > 0, "yes", "no")
TIME, END = RNG.exponential(np.exp(-X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= END, np.round(np.minimum(TIME, END), 1)], names="event, time")


def made(name, **params):
    kind = getattr(gf, name)
    known = kind().get_params(deep=False)
    few = {"max_iter": 4} if "max_iter" in known else {"n_estimators": 4}
    few |= {"random_state": 0, "backend": "numpy"}
    return kind(**{k: v for k, v in few.items() if k in known} | params)


def target_of(name):
    if "Survival" in name:
        return Y
    return YES if name.endswith("Classifier") else NUMBERS


def fitted(name, **params):
    return made(name, **params).fit(X, target_of(name))


@pytest.mark.parametrize("name", swept(9, ESTIMATORS[::2] + ESTIMATORS[1::2]))
def test_every_estimator_has_a_report_of_itself_and_of_rows(name):
    model = fitted(name)
    alone = Page(model.report())
    assert ("h1", {}) in alone.elements
    assert f"Report: {name}" in alone.text
    assert "no rows were given" in alone.text
    y = target_of(name)
    if name in ("IsolationForest", "RandomTreesEmbedding"):
        with pytest.raises(ValueError, match=f"this {name} has no target .*: leave out y"):
            model.report(X, y)
        page = Page(model.report(X[:30]))
        assert "With the results of 30 rows" in page.text
        keys = [own["id"] for own in page.all("section")]
        own = ["anomalies"] if name == "IsolationForest" else ["importances"]
        assert keys == ["checks", "model", *own, "data", "trees"]
        return
    found = Page(model.report(X[:30], y[:30]))
    keys = [own["id"] for own in found.all("section")]
    assert keys[:3] == ["checks", "model", "scores"]
    assert keys[-4:] == ["importances", "dependence", "data", "trees"]
    assert ("confusions" in keys) == ("curves" in keys) == name.endswith("Classifier")
    assert ("residuals" in keys) == (not name.endswith("Classifier") and "Survival" not in name)
    assert [a["href"] for a in found.all("a")] == [f"#{key}" for key in keys]


def test_pictures_say_what_they_show():
    html = fitted("RandomForestClassifier", oob_score=True, n_estimators=30).report(X, YES)
    plots = re.findall(r"<svg[^>]*class=\"plot\".*?</svg>", html, re.S)
    assert len(plots) == 3 + 4 + 3  # curves, dependence, and trees
    for plot in plots:
        assert 'role="img"' in plot
        assert re.search(r"<title>[^<]+</title><desc>[^<]+</desc>", plot)
    bars = [a for a in Page(html).all("span") if a.get("class") == "cellbar"]
    assert bars
    assert all(a["aria-hidden"] == "true" for a in bars)  # beside the same in words


def test_thresholds_f1_units_and_the_date():
    y = NUMBERS > 0
    model = made("RandomForestClassifier", n_estimators=30).fit(X[:60], y[:60])
    page, taken = Page(model.report(X[60:], y[60:])), model.predict_proba(X[60:])[:, 1] >= 0.3
    scores = [
        score(y[60:], taken)
        for score in (metrics.recall_score, metrics.precision_score, metrics.f1_score)
    ]
    expected = "\n".join([str(taken.sum()), *(f"{score:.4f}" for score in scores)])
    lines = page.text.split("Thresholds of the probability")[1]
    assert lines.split("0.3\n")[1].startswith(expected)
    scores = metrics.f1_score(y[60:], model.predict(X[60:]), average=None)
    of_classes = page.text.split("Each class")[1]
    assert all(f"\n{score:.4f}\n" in of_classes for score in scores)
    assert f"Made by gpuforest {gf.__version__} on {date.today()}." in page.text
    model = fitted("RandomForestRegressor")
    model.source_ = {"target": "price <b>"}
    page = Page(model.report(X, NUMBERS))
    assert "Report: RandomForestRegressor for price <b>" in page.text
    assert "mean prediction, in units of \nprice <b>" in page.text
    assert "mean prediction of price" in page.text
    page = Page(fitted("RandomSurvivalForest").report(X, Y))
    assert "the sum of the cumulative hazard" in page.text


def test_how_rows_out_of_bag_are_judged(tmp_path):
    names, months = "rows out of bag are judged", np.arange(N) // 10
    for word, text in (("blocks", "by trees of earlier blocks"), ("groups", "by trees that drew")):
        model = made("RandomForestRegressor", oob_score=True, n_estimators=40)
        with catch_warnings(action="ignore"):  # few trees
            model.fit(X, NUMBERS, **{word: months})
        assert Page(model.report()).after(names).startswith(text)
        model.save(tmp_path / word)
        assert Page(gf.load(tmp_path / word).report()).after(names).startswith(text)
    text = Page(fitted("RandomForestRegressor").report()).text
    assert names not in text
    assert "No problems found. Looked for: a feature" in text
    assert "cut where it leaves the column" in text


def test_hostile_names_are_text_and_the_page_loads_nothing():
    page = Page(hostile := hostile_report())
    kinds = {name for name, _ in page.elements}
    assert not kinds & {"script", "img", "iframe", "object", "link", "base", "form"}
    for _, attributes in page.elements:
        assert not [key for key in attributes if key.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert len(page.all("title")) == 1 + len(page.all("svg"))
    for shown in (SCRIPT, '" onmouseover="alert(1)', "שלום עולם", "👩 café", "'\"&amp;<>"):
        assert shown in page.text
    assert "(empty)" in page.text
    assert "(blank)" in page.text
    assert r"a\nb\x00\u202ec" in page.text
    assert "x" * 100 not in page.text
    assert page.after("target").startswith(SCRIPT)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", hostile)
    [policy] = [m for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy["content"]
    assert not re.search(r"https?:|//|url\(|@import", hostile)
    assert not any("src" in attributes for _, attributes in page.elements)


def test_a_file_is_the_same_text_and_a_fit_says_more_than_it(tmp_path):
    model = fitted("DecisionTreeClassifier")
    assert model.report(X, YES, path=tmp_path / "a.html") is None
    assert (tmp_path / "a.html").read_text("utf-8") == model.report(X, YES)
    with pytest.raises(OSError, match="nowhere"):
        model.report(path=tmp_path / "nowhere" / "a.html")
    model = fitted("RandomForestClassifier", oob_score=True, n_estimators=30, max_depth=3)
    here = Page(model.report())
    model.save(tmp_path / "model")
    there = Page(gf.load(tmp_path / "model").report())
    for of in (here, there):
        assert of.after("training rows").startswith("300")
        assert of.after("trained with gpuforest").startswith(gf.__version__)
        assert of.after("classes").startswith("2: \nno\n, \nyes")
        assert of.after("max_depth").startswith("3")
    digest = "SHA-256 of the forest"
    assert here.after(digest)[:64] == there.after(digest)[:64]
    assert re.match(r"\d+\.\d\d\n", here.after("seconds of training"))
    unknown = "seconds of training, memory of training, trained on the backend"
    assert there.after("not recorded").startswith(unknown)


@pytest.mark.parametrize(("name", "n"), [
    ("RandomForestClassifier", 1), ("HistGradientBoostingRegressor", 3),
    ("RandomSurvivalForest", 1), ("ExtraSurvivalTrees", 3),
])  # fmt: skip
def test_few_rows(name, n):
    page = Page(fitted(name).report(X[:n], target_of(name)[:n]))
    assert "Few rows." in page.text
    assert f"With the results of {n} rows" in page.text


@pytest.mark.parametrize(("model", "y", "texts"), [
    (made("RandomForestClassifier"), np.full(N, "a"), ["One class."]),
    (made("RandomForestRegressor"), np.ones(N), ["R² is not defined."]),
    (made("DecisionTreeClassifier", max_depth=2), np.arange(N) % 40,
     ["40 classes are too many for a matrix", "The most frequent errors"]),
    (made("RandomForestClassifier"),
     np.stack([YES, np.where(X[:, 1] > 0, "yes", "no")], axis=1),
     ["2 outputs, each a line here", "accuracy, all outputs right"]),
    (made("ExtraTreesRegressor"), np.stack([NUMBERS, -NUMBERS], axis=1),
     ["R², mean of the outputs"]),
])  # fmt: skip
def test_targets_of_all_kinds(model, y, texts):
    page = Page(model.fit(X, y).report(X, y))
    assert all(text in page.text for text in texts)
    assert ("curves" in [a["id"] for a in page.all("section")]) == (len(texts) == 2 and y.ndim == 1)
    if y.ndim > 1:
        with pytest.raises(ValueError, match="y has 1 outputs, and the model predicts 2"):
            model.report(X, y[:, 0])


@pytest.mark.parametrize("unit", [2.0**990, 2.0**-990])
def test_huge_and_tiny_numbers(unit):
    model = made("RandomForestRegressor").fit(X, NUMBERS * unit)
    page = Page(model.report(X, NUMBERS * unit))
    same = Page(made("RandomForestRegressor").fit(X, NUMBERS).report(X, NUMBERS))
    assert page.after("R²")[:6] == same.after("R²")[:6]
    assert "nan" not in page.text.replace("important", "")
    assert not any("nan" in (a.get("d") or "") for a in page.all("path"))


def test_quantiles_are_judged_by_their_median():
    model = made("RandomForestQuantileRegressor", default_quantiles=[0.1, 0.9]).fit(X, NUMBERS)
    page = Page(model.report(X[:30], NUMBERS[:30]))
    assert "these are results of its medians" in page.text
    expected = metrics.r2_score(NUMBERS[:30], model.predict(X[:30], 0.5))
    assert page.after("R²").startswith(f"{expected:.4f}")


@pytest.mark.parametrize(("rows", "targets", "error", "message"), [
    (None, YES, ValueError, "y without X: pass the rows that y belongs to, too"),
    (X[:, :2], YES, ValueError, "X has 2 features, but .* is expecting 4 features"),
    (X, YES[:5], ValueError, "X has 300 rows, y has 5"),
    (X, NUMBERS > 0, ValueError, "the target holds 'False', 'True', and .* 'no', 'yes'"),
    (X[:0], YES[:0], ValueError, "0 sample"),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused(rows, targets, error, message):
    with pytest.raises(error, match=message):
        fitted("RandomForestClassifier").report(rows, targets)
    others = gf.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X, YES)
    with pytest.raises(TypeError, match="holds other estimators than gpuforest's trees"):
        others.report(X, YES)


def test_two_trees_unfold():
    model = fitted("RandomForestClassifier")
    html = model.report()
    shown = re.findall(r'<details class="whole">.*?<ul class="tree">', html, re.S)
    assert len(shown) == 2
    root = model.forest_.node_sums(0, 1)[0]
    best = max(zip(root, ("no", "yes"), strict=True))
    text = f"all rows<small> · {root.sum()} rows · <bdi>{best[1]}</bdi> "
    assert text + f"{100 * best[0] / root.sum():.1f}%" in html


def forest(name="RandomForestClassifier", n=20, **params):
    return getattr(gf, name)(n, random_state=0, backend="numpy", **params)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    y = CLASSES if n_classes == 3 else np.where(CLASSES == "a", "a", "b")
    model = forest(max_depth=3).fit(X[::2], y[::2])
    proba, truth = model.predict_proba(X[1::2]), y[1::2]
    labels = aligned(model.classes_, truth)
    scores = {score.name: score for score in class_scores(labels, proba)}
    predicted, area = model.predict(X[1::2]), "ROC AUC"
    ranked = proba[:, 1] if n_classes == 2 else proba
    area += ", mean of one class against the others" * (n_classes > 2)
    expected = {
        "accuracy": metrics.accuracy_score(truth, predicted),
        "balanced accuracy": metrics.balanced_accuracy_score(truth, predicted),
        area: metrics.roc_auc_score(truth, ranked, multi_class="ovr"),
        "log loss": metrics.log_loss(truth, proba),
        "Brier score": metrics.brier_score_loss(truth, proba),
    }
    for name, value in expected.items():
        # sums in another order
        assert scores[name].value == pytest.approx(value, rel=1e-9), name
        assert scores[name].low < value < scores[name].high
    assert [s.name for s in scores.values() if s.name in LESS] == ["log loss", "Brier score"]
    assert np.array_equal(labels.confusion(proba), metrics.confusion_matrix(truth, predicted))
    (name, truth, probability), *others = pictures.class_curves(labels, proba)
    assert len(others) == (0 if n_classes == 2 else 2)
    assert np.array_equal(truth, y[1::2] == name)
    assert np.array_equal(probability, proba[:, model.classes_ == name][:, 0])
    mean, share, low, high, n = pictures.calibration(truth, probability)
    assert n.sum() == len(truth)
    assert (share * n).sum() == pytest.approx(truth.sum())  # products of quotients
    assert ((low <= share) & (share <= high)).all()
    assert (np.diff(mean) > 0).all()


def test_scores_of_numbers_are_those_of_scikit_learn():
    model = forest("RandomForestRegressor").fit(X[::2], NUMBERS[::2])
    y, predicted = NUMBERS[1::2], model.predict(X[1::2])
    expected = [
        metrics.r2_score(y, predicted),
        metrics.mean_absolute_error(y, predicted),
        metrics.root_mean_squared_error(y, predicted),
    ]
    for score, value in zip(number_scores(y, predicted), expected, strict=True):
        assert score.value == pytest.approx(value, rel=1e-9)  # sums in another order
        assert score.low < value < score.high
    assert pictures.bands(y, predicted).shape == (4, 10)
    assert (np.diff(pictures.bands(y, predicted)[0]) > 0).all()


@pytest.mark.parametrize(("known", "y", "names", "codes"), [
    ([0, 1], [1.0, 0.0, 1.5], [0, 1, 1.5], [1, 0, 2]),
    ([False, True], [0, 1, 2], [0, 1, 2], [0, 1, 2]),
    (["ab", "no"], ["ab", "abc", "no"], ["ab", "abc", "no"], [0, 1, 2]),  # compared whole
])  # fmt: skip
def test_labels_beside_other_types(known, y, names, codes):
    found = aligned(np.array(known), np.array(y))
    assert found.names.tolist() == names
    assert found.names[found.known].tolist() == known
    assert found.codes.tolist() == codes
    assert found.names[found.unknown].tolist() == [label for label in names if label not in known]


def test_dependence_is_that_of_scikit_learn():
    model = forest("RandomForestRegressor").fit(X[:200], NUMBERS[:200])
    values, means, _ = results.dependence(Rows.read(model, X[200:], NUMBERS[200:]), 0)
    expected = partial_dependence(model, X[200:], [0], custom_values={0: values}, method="brute")
    # means of the same predictions
    assert means[:, 0] == pytest.approx(expected["average"][0], rel=1e-12)


@pytest.mark.parametrize(("name", "classes"), [
    ("RandomForestClassifier", True),
    ("ExtraTreesRegressor", False),
    ("AdaBoostClassifier", True),
    ("AdaBoostRegressor", False),
    ("HistGradientBoostingClassifier", True),
])  # fmt: skip
def test_errors_by_trees_end_at_that_of_all(name, classes):
    params = {"max_iter" if "Hist" in name else "n_estimators": 9, "random_state": 0}
    y = CLASSES if classes else NUMBERS
    model = getattr(gf, name)(**params).fit(X[:200], y[:200])
    n, errors = results.staged_error(Rows.read(model, X[200:], y[200:]))
    assert n[0] == 1
    assert n[-1] == getattr(model, "n_iter_", 9)
    # R² is computed in another order
    assert errors[-1] == pytest.approx(1 - model.score(X[200:], y[200:]), abs=1e-12)
    if hasattr(model, "staged_score"):
        stages = list(model.staged_score(X[200:], y[200:]))
        assert errors.tolist() == pytest.approx([1 - stages[i - 1] for i in n])


def test_unknown_categories():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "p", "q"), "x": X[:, 1]})
    model = forest().fit(frame, CLASSES)
    frame.loc[:29, "kind"] = "new"
    beyond, unknown, _ = results.Results(model, frame).drift
    assert unknown[0] == 0.1
    assert np.isnan(unknown[1])
    assert np.isnan(beyond[0])


def test_numbers_shares_and_scores():
    numbers = [figure(v) for v in (0.0, 1234.5, 0.01234, -3.14159, 1e12, 1e-9, np.nan, np.inf)]
    assert numbers == ["0", "1,234", "0.01234", "-3.142", "1.000e+12", "1.000e-09", "–", "–"]
    assert [share(v) for v in (0.0, 0.0002, 0.5, 1.0)] == ["0%", "<0.1%", "50.0%", "100.0%"]
    assert [scored(v) for v in (0.5, 1234.5)] == ["0.5000", "1,234"]
    assert interval(Score("a", 0.5)) == ""
    assert interval(Score("a", 0.5, 0.25, 1.0, "Wilson")) == "0.2500 to 1.0000"


def check_told(texts, model, *rows):
    """All texts are among what the checks find; without texts they find nothing."""
    found = Page("".join(page.checks(results.Results(model, *rows)))).text
    assert all(text in found for text in texts), found
    assert bool(texts) == bool(found)


def test_checks_find_what_is_amiss():
    leaky = X3.copy()
    leaky[:, 2] = YES == "yes"
    texts = "Are these the training rows?", "A leak?", "feature_2"
    check_told(texts, forest().fit(leaky, YES), leaky, YES)
    model = forest(oob_score=True, n=30).fit(leaky[:200], YES[:200])
    moved = leaky[200:].copy()
    moved[:, 2] = 1 - moved[:, 2]
    texts = "Out-of-bag and test scores differ.", "far worse than"
    check_told(texts, model, moved, YES[200:])
    model = forest(oob_score=True).fit(X3[:200], YES[:200])
    check_told([], model, X3[200:], YES[200:])
    moved = X3[200:].copy()
    moved[:20, 0], moved[:60, 1] = 99.0, np.nan
    # 20 rows, and a few that lie beyond by themselves
    texts = "Other data than in training.", "feature_0\n (up to 2", "feature_1\n: missing"
    check_told((*texts, "Mostly missing."), model, moved, YES[200:])
    kinds, rest = np.where(np.arange(N) < 3, "rare", YES), np.where(YES[3:] == "yes", "yes", "new")
    model, text = forest().fit(X3, kinds), "Classes of few rows.\n \nrare\n: fewer than 10 rows"
    check_told([text], model, X3[1:], kinds[1:])
    check_told(["Unknown classes.", "Absent classes."], model, X3[3:], rest)
    stump = forest(max_depth=1, n=1).fit(X3[:2], ["a", "b"])
    check_told(["Few rows."], stump, X3[:2], ["a", "b"])
    y = np.array(["a", "b"])[(np.arange(N) % 20 == 0).astype(int)]
    check_told(["One answer."], forest(max_depth=1).fit(X3, y), X3[:200], y[:200])
    model = forest().fit(np.stack([X3[:, 0], np.zeros(N)], axis=1), YES)
    check_told(["One feature does nearly all."], model)
    with pytest.warns(UserWarning, match="OOB"):
        model = forest(n=1, oob_score=True).fit(X3[:1], YES[:1])
    check_told(["No out-of-bag score."], model)


def test_survival_is_judged_by_concordance():
    rng = np.random.default_rng(1)
    times = rng.exponential(np.exp(-2 * X[:, 1:3].T))
    end = rng.exponential(2.0, N)
    cause = np.where(times.min(axis=0) <= end, 1 + times.argmin(axis=0), 0)
    y = np.rec.fromarrays([cause, np.minimum(times.min(axis=0), end)], names="cause, time")
    model = forest("RandomSurvivalForest", 40, oob_score=True).fit(X[:150], y[:150])
    known = results.Results(model, X[150:], y[150:])
    assert known.oob.name == "out-of-bag concordance"
    for cause, score in enumerate(known.scores, 1):
        assert score.value == model.score(X[150:], y[150:], cause=cause)
        assert 0.6 < score.low < score.value < score.high < 1
    features, falls, before, n_rows = known.permuted
    assert (features[0], before, n_rows) == (1, known.scores[0].value, 150)
    assert falls[0].min() > 0.1
    assert [score.name for score in known.scores] == ["concordance", "concordance by cause 2"]


def brier_by_definition(known, rows, survival, t):
    """Graf's score as scikit-survival computes it: rows [time, event], in plain Python."""

    def free(until):
        """The Kaplan-Meier estimate of not being censored; of equal times, events come first."""
        value = 1.0
        for time in sorted({time for time, event in known if not event and time <= until}):
            at_risk = sum(other > time or (other == time and not e) for other, e in known)
            value *= 1 - sum(other == time and not e for other, e in known) / at_risk
        return value

    total = 0.0
    for (time, event), chance in zip(rows, survival, strict=True):
        if time > t:
            total += (1 - chance) ** 2 / free(t) if free(t) > 0 else 0.0
        elif event:
            total += chance**2 / free(time) if free(time) > 0 else 0.0
    return total / len(rows)


@pytest.mark.parametrize("event_rate", [0.3, 0.6, 1.0])
def test_brier_scores_by_their_definition(event_rate):
    rng = np.random.default_rng(1)
    known, y = (
        np.stack([rng.integers(1, 12, n) / 4, rng.random(n) < event_rate], axis=1).astype(float)
        for n in (80, 50)
    )
    times = np.array([0.1, 0.5, 1.0, 1.6, 2.5])
    survival = np.sort(rng.random((50, 5)), axis=1)[:, ::-1]
    expected = [brier_by_definition(known, y, s, t) for s, t in zip(survival.T, times, strict=True)]
    assert brier_scores(known, y, survival, times) == pytest.approx(expected, rel=1e-12)


def test_the_section_has_events_rows_at_risk_and_pictures():
    model = forest("RandomSurvivalForest", oob_score=True).fit(X[:150], Y[:150])
    html = model.report(X[150:], Y[150:])
    page, (known, given) = Page(html), (Y["event"][:150].sum(), Y["event"][150:].sum())
    assert page.after("events").startswith(f"{known} of 150\n{given} of 150")
    assert page.after("censored").startswith(f"{150 - known} of 150\n{150 - given} of 150")
    lines = page.text.split("rows at risk at the time\n")[1].split("\n")
    times = [float(t) for t in lines[:5]]
    risk = model.predict(X[150:])
    lowest = Y["time"][150:][np.argsort(risk, kind="stable")[:50]]
    at = page.text.split("lowest risk: 50 rows\n")[-1].split("\n")[:5]
    assert at == [str((lowest >= t).sum()) for t in np.linspace(0, Y["time"][150:].max(), 6)[:-1]]
    assert times[0] == 0
    section = html.split('id="survival"')[1].split("</section>")[0]
    titles = re.findall("<h3>(.*?)</h3>", section)
    wanted = ["Survival by groups of risk", "Calibration of survival", "Brier score over time"]
    assert titles == wanted
    by_forest, by_all = re.findall(r"mean (0\.\d{4})", section.split("<desc>")[-1])[:2]
    assert 0 < float(by_forest) < float(by_all) < 0.3
    quarters = np.quantile(Y["time"][150:][Y["event"][150:]], [0.25, 0.5, 0.75])
    assert [float(t) for t in re.findall(r"time (\d\.\d+)</text", section)] == pytest.approx(
        quarters
    )
    assert "#0072B2" not in section.upper()  # of a picture of its own: dark pages have others


def test_several_causes_low_memory_and_nothing_but_censored_rows():
    cause = np.where(Y["event"], 1 + (X[:, 1] > 0), 0)
    y = np.rec.fromarrays([cause, Y["time"]], names="cause, time")
    page = Page(forest("RandomSurvivalForest").fit(X[:150], y[:150]).report(X[150:], y[150:]))
    assert page.after("events by cause 2").startswith(f"{(cause[:150] == 2).sum()} of 150")
    page = Page(
        forest("RandomSurvivalForest", low_memory=True)
        .fit(X[:150], Y[:150])
        .report(X[150:], Y[150:])
    )
    assert "A forest with low_memory=True has no curves." in page.text
    rest = np.flatnonzero(~Y["event"])[:30]
    page = Page(forest("RandomSurvivalForest").fit(X, Y).report(X[rest], Y[rest]))
    assert page.after("events").startswith(f"{Y['event'].sum()} of 300\n0 of 30")


ARM = RNG.integers(0, 2, N) * 1.0
DOSE, SHARES = X[:, 1] + RNG.normal(size=N), np.where(np.arange(N) < 7, 0.001, 0.5)
ROWS = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "town": np.where(X[:, 2] > 0, "east", "west")})
ROWS["town"] = ROWS["town"].astype("category")
OF_ROWS = ["Effects out of bag", "Calibration of effects"]


@pytest.mark.filterwarnings("ignore:.*probability of treatment")
@pytest.mark.parametrize(("treatment", "more", "targets", "said", "titles"), [
    (ARM, {"model_t": SHARES}, ["all", "overlap", "treated", "control"],
     ["hardly varies\n4", "is below 0.01\n4", "is above 0.99\n0", "% of the rows have 1"],
     ["Effects out of bag", "Probability of treatment", "Calibration of effects"]),
    (DOSE, {"model_t": 0.0, "honest": False}, ["all", "overlap"],
     [f"from {figure(DOSE.min())} to", "honest trees\nno"], OF_ROWS),
    (np.where(SHARES < 0.4, ARM, ARM * (X[:, 2] > 0)), {"model_t": 0.2, "model_z": 0.5},
     ["all", "overlap"], ["a unit moves the treatment by 0."], OF_ROWS),
])  # fmt: skip
def test_effects(tmp_path, treatment, more, targets, said, titles):
    model = gf.CausalForest(24, random_state=0, backend="numpy", model_y=0.0, **more)
    y, weight = NUMBERS + treatment * X[:, 0], np.where(np.arange(N) < 3, 0.0, 1.0)
    instrument = ARM if "model_z" in more else None
    model.fit(ROWS, y, treatment, instrument=instrument, sample_weight=weight)
    html, tested = model.report(), model.calibration_test()
    page = Page(html)
    keys = ["checks", "model", "effects", "importances", "trees"]
    assert [own["id"] for own in page.all("section")] == keys
    with catch_warnings(action="ignore"):  # rows whose treatment hardly varies
        lines = [[target, *map(figure, model.ate(target).values())] for target in targets]
    for key, *of in zip(tested.names, tested.coef, tested.std_error, tested.p_value, strict=True):
        lines.append([key.replace("_", " "), *map(figure, of)])
    section = page.text.split("Average effects")[1]
    assert all("\n".join(line) in section for line in lines)
    assert ("control" in section) == ("Probability of treatment" in titles) == (len(targets) == 4)
    assert ("a unit moves" in page.text) == (instrument is not None)
    assert all(text in page.text for text in said)
    assert ("Little overlap." in page.text) == ("model_z" not in more and len(targets) == 4)
    pictures = html.split('id="effects"')[1].split("</section>")[0].split("<figure>")
    assert [re.match("<h3>(.*?)</h3>", part)[1] for part in pictures[1:]] == titles
    model.save(tmp_path / "model")
    other = gf.load(tmp_path / "model").report(ROWS[:50])
    assert pictures[:-1] == other.split('id="effects"')[1].split("<figure>")[: len(titles)]
    assert ">west</text>" in other.split("By <bdi>town</bdi>")[1].split("</figure>")[0]
    with pytest.raises(ValueError, match=r"this CausalForest has no target .*: leave out y"):
        model.report(ROWS, y)
