"""The page of a report: it is whole, and says what is known of each kind of model."""

import re
from datetime import date
from warnings import catch_warnings

import numpy as np
import pytest
from hostile import SCRIPT, Page, hostile_report
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, r2_score, recall_score
from sweeps import swept

import gpuforest as gf
from gpuforest.estimators import __all__ as ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
CLASSES = np.where(X[:, 0] + RNG.normal(size=120) / 2 > 0, "yes", "no")
NUMBERS = 2 * X[:, 0] + RNG.normal(size=120)
TIMES = np.rec.fromarrays([CLASSES == "yes", NUMBERS - NUMBERS.min() + 1], names="event, time")


def made(name, **params):
    kind = getattr(gf, name)
    known = kind().get_params(deep=False)
    few = {"max_iter": 4} if "max_iter" in known else {"n_estimators": 4}
    few |= {"random_state": 0, "backend": "numpy"}
    return kind(**{k: v for k, v in few.items() if k in known} | params)


def target_of(name):
    if "Survival" in name:
        return TIMES
    return CLASSES if name.endswith("Classifier") else NUMBERS


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
    html = fitted("RandomForestClassifier", oob_score=True, n_estimators=30).report(X, CLASSES)
    plots = re.findall(r"<svg[^>]*class=\"plot\".*?</svg>", html, re.S)
    assert len(plots) == 3 + 3 + 3  # curves, dependence, and trees
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
    scores = [score(y[60:], taken) for score in (recall_score, precision_score, f1_score)]
    expected = "\n".join([str(taken.sum()), *(f"{score:.4f}" for score in scores)])
    lines = page.text.split("Thresholds of the probability")[1]
    assert lines.split("0.3\n")[1].startswith(expected)
    scores = f1_score(y[60:], model.predict(X[60:]), average=None)
    of_classes = page.text.split("Each class")[1]
    assert all(f"\n{score:.4f}\n" in of_classes for score in scores)
    assert f"Made by gpuforest {gf.__version__} on {date.today()}." in page.text
    model = fitted("RandomForestRegressor")
    model.source_ = {"target": "price <b>"}
    page = Page(model.report(X, NUMBERS))
    assert "Report: RandomForestRegressor for price <b>" in page.text
    assert "mean prediction, in units of \nprice <b>" in page.text
    assert "mean prediction of price" in page.text
    page = Page(fitted("RandomSurvivalForest").report(X, TIMES))
    assert "the sum of the cumulative hazard" in page.text


def test_how_rows_out_of_bag_are_judged(tmp_path):
    names, months = "rows out of bag are judged", np.arange(120) // 10
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
    assert model.report(X, CLASSES, path=tmp_path / "a.html") is None
    assert (tmp_path / "a.html").read_text("utf-8") == model.report(X, CLASSES)
    with pytest.raises(OSError, match="nowhere"):
        model.report(path=tmp_path / "nowhere" / "a.html")
    model = fitted("RandomForestClassifier", oob_score=True, n_estimators=30, max_depth=3)
    here = Page(model.report())
    model.save(tmp_path / "model")
    there = Page(gf.load(tmp_path / "model").report())
    for page in (here, there):
        assert page.after("training rows").startswith("120")
        assert page.after("trained with gpuforest").startswith(gf.__version__)
        assert page.after("classes").startswith("2: \nno\n, \nyes")
        assert page.after("max_depth").startswith("3")
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
    (made("RandomForestClassifier"), np.full(120, "a"), ["One class."]),
    (made("RandomForestRegressor"), np.ones(120), ["R² is not defined."]),
    (made("DecisionTreeClassifier", max_depth=2), np.arange(120) % 40,
     ["40 classes are too many for a matrix", "The most frequent errors"]),
    (made("RandomForestClassifier"),
     np.stack([CLASSES, np.where(X[:, 1] > 0, "yes", "no")], axis=1),
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
    expected = r2_score(NUMBERS[:30], model.predict(X[:30], 0.5))
    assert page.after("R²").startswith(f"{expected:.4f}")


@pytest.mark.parametrize(("rows", "targets", "error", "message"), [
    (None, CLASSES, ValueError, "y without X: pass the rows that y belongs to, too"),
    (X[:, :2], CLASSES, ValueError, "X has 2 features, but .* is expecting 3 features"),
    (X, CLASSES[:5], ValueError, "X has 120 rows, y has 5"),
    (X, NUMBERS > 0, ValueError, "the target holds 'False', 'True', and .* 'no', 'yes'"),
    (X[:0], CLASSES[:0], ValueError, "0 sample"),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused(rows, targets, error, message):
    with pytest.raises(error, match=message):
        fitted("RandomForestClassifier").report(rows, targets)
    others = gf.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X, CLASSES)
    with pytest.raises(TypeError, match="holds other estimators than gpuforest's trees"):
        others.report(X, CLASSES)


def test_two_trees_unfold():
    model = fitted("RandomForestClassifier")
    html = model.report()
    shown = re.findall(r'<details class="whole">.*?<ul class="tree">', html, re.S)
    assert len(shown) == 2
    root = model.forest_.node_sums(0, 1)[0]
    best = max(zip(root, ("no", "yes"), strict=True))
    text = f"all rows<small> · {root.sum()} rows · <bdi>{best[1]}</bdi> "
    assert text + f"{100 * best[0] / root.sum():.1f}%" in html
