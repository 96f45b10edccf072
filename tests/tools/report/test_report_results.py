"""What a report tells: scores as scikit-learn's, intervals, importances, drift, leaks; of survival
events, curves, rows at risk, calibration and Brier scores."""

import re

import numpy as np
import pytest
from hostile import Page
from sklearn import metrics
from sklearn.inspection import partial_dependence

import gpuforest as gf
from gpuforest.tools.report import page, pictures, results
from gpuforest.tools.report.html import figure, interval, scored, share
from gpuforest.tools.report.rows import Rows, aligned, drift
from gpuforest.tools.report.scores import LESS, Score, brier_scores, class_scores, number_scores

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
CLASSES = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + RNG.normal(size=N) / 2, [-0.5, 0.8])]
NUMBERS = 3 * X[:, 0] - X[:, 1] + RNG.normal(size=N)
X3, YES = X[:, :3], np.where(X[:, 0] + RNG.normal(size=N) > 0, "yes", "no")
TIME, END = RNG.exponential(np.exp(-X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= END, np.round(np.minimum(TIME, END), 1)], names="event, time")


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
    beyond, unknown, _ = drift(Rows.read(model, frame, None))
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
