"""Exports of models that have no such form, and unusual arguments: rows of docs/robustness.md."""

import re
import sys

import numpy as np
import pytest
from exported import ROWS, categorical, model
from robust import PAGE
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier as Theirs

import gpuforest as gf

FORMS = {
    "ONNX": lambda fitted: fitted.to_onnx(),
    "a treelite model": lambda fitted: fitted.to_treelite(),
    "C": gf.export_c,
}
each_form = pytest.mark.parametrize("form", FORMS)
NEEDS = "needs pip install 'gpuforest[checks]'"


def refused(words, error=ValueError, form="ONNX"):
    """An error of these words, which the page has of ONNX."""
    assert words.replace(f"as {form}", "as ONNX") in PAGE
    return pytest.raises(error, match=re.escape(words))


def ready(form):
    if form != "C":
        pytest.importorskip("onnx" if form == "ONNX" else "treelite", reason=NEEDS)
    return form


def test_infinities_go_the_way_of_the_largest_numbers():
    pytest.importorskip("onnx", reason=NEEDS)
    runtime = pytest.importorskip("onnxruntime", reason=NEEDS)
    fitted, most = model("numbers"), np.finfo(np.float32).max
    rows = ROWS[:20].astype(np.float32)
    rows[::2, 2], rows[1::2, 3] = np.inf, -np.inf
    graph = fitted.to_onnx().SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    found = session.run(None, {"X": rows})[0]
    assert np.array_equal(found, fitted.predict(np.clip(rows, -most, most)).astype(np.float32))
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict(rows)


NO_NAMES = [
    "int", "", "2nd", "a-b", "é", "a b", "walk", "main", "fmaf", "csqrtl", "printf", "NODES",
]  # fmt: skip
NO_NAMES += ["uint_fast16_t", "INT32_C", "M_PI", "_x", "_Bool"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_names_that_c_does_not_have(name):
    words = f"name={name!r} is no name of a function in C: pass another"
    with refused(words) if name == "int" else pytest.raises(ValueError, match=re.escape(words)):
        gf.export_c(model("tree"), name=name)


@each_form
def test_models_that_are_not_written(form):
    export = FORMS[ready(form)]
    if form != "C":
        with refused(
            f"splits by sums of features are not written as {form}: use export_c, train with "
            "feature_combinations=None, or use gpuforest.load where the model runs",
            form=form,
        ):
            export(model("sums"))
    with pytest.raises(ValueError, match=f"a weighted median of its trees, which {form} lacks"):
        export(gf.AdaBoostRegressor(n_estimators=3, random_state=0).fit(ROWS, ROWS[:, 0]))
    with refused(
        "an ensemble of DecisionTreeClassifier was fitted by scikit-learn: only trees of "
        f"gpuforest's are written as {form}",
        form=form,
    ):
        export(gf.BaggingClassifier(Theirs(), n_estimators=2).fit(ROWS, ROWS[:, 0] > 0))


@each_form
def test_estimators_of_other_kinds(form):
    export = FORMS[ready(form)]
    for other in (gf.RandomForestQuantileRegressor(2), gf.RandomTreesEmbedding(2)):
        name = type(other).__name__
        with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
            export(other)
        with pytest.raises(TypeError, match=f"a {name} is not written as {form}"):
            export(other.fit(ROWS, ROWS[:, 0]))
    with pytest.raises(TypeError, match="a dict is not written as C: pass a fitted classifier"):
        gf.export_c({})


@pytest.mark.parametrize("kind", ["RandomForest", "ExtraTrees"])
def test_means_of_quantile_forests(kind):
    """As the error says, a forest for means grows the same trees."""
    params = {"n_estimators": 5, "min_samples_leaf": 4, "random_state": 3, "backend": "numpy"}
    target = ROWS[:, 0] + ROWS[:, 2]
    quantiles = getattr(gf, f"{kind}QuantileRegressor")(**params).fit(ROWS, target)
    words = (
        f"a {kind}QuantileRegressor is not written as C: quantiles need the targets of all "
        f"training rows. For means write a {kind}Regressor, which grows the same trees from the "
        "same parameters and random_state; or use gpuforest.load where the model runs"
    )
    with pytest.raises(TypeError, match=re.escape(words)):
        gf.export_c(quantiles)
    assert words.replace("as C", "as ONNX").replace("ExtraTrees", "RandomForest") in PAGE
    means = getattr(gf, f"{kind}Regressor")(**params).fit(ROWS, target)
    assert np.array_equal(quantiles.forest_.nodes, means.forest_.nodes)
    # sums of targets in another order
    assert np.allclose(quantiles.predict(ROWS, "mean"), means.predict(ROWS), rtol=0, atol=1e-12)


def test_absent_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with refused("pip install 'gpuforest[onnx]'", ImportError):
        model("tree").to_onnx()
    monkeypatch.setitem(sys.modules, "treelite.model_builder", None)
    monkeypatch.setitem(sys.modules, "treelite", None)
    with pytest.raises(ImportError, match=r"pip install 'gpuforest\[treelite\]'"):
        model("tree").to_treelite()
    assert "predict" in gf.export_c(model("tree"))  # which needs neither


def of_days():
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    return gf.DecisionTreeClassifier().fit([[0.0], [1.0]], days)


FEW = "feature_names has 1 names, the model 4 features: pass a name for each"
DTYPE = 'dtype=\'float16\' is unknown: pass "float32" or "float64"'
TREELITE = "a IsolationForest is not written as a treelite model: use to_onnx, export_c or "
TREELITE += "to_sklearn, or gpuforest.load where the model runs"
REFUSED = [
    (DTYPE, lambda: model("tree").to_onnx(dtype="float16")),
    ("dtype='float16' is unknown", lambda: gf.export_c(model("tree"), dtype="float16")),
    ("ml_version=4 is unknown: pass 3, 5 or None", lambda: model("tree").to_onnx(ml_version=4)),
    ("categories need version 5 of ai.onnx.ml: pass ml_version=5, or train on numbers in their "
     "place (OneHotEncoder)", lambda: categorical("forest").to_onnx(ml_version=3)),
    (FEW, lambda: model("tree").to_onnx(feature_names=["a"])),
    (FEW, lambda: gf.export_c(model("tree"), feature_names=["a"])),
    ("two features are called 'a', and each is an input: pass feature_names that differ",
     lambda: categorical("forest").to_onnx(feature_names=[*"aabc"])),
    ("a feature has the name of the output 'label': pass other feature_names",
     lambda: categorical("forest").to_onnx(feature_names=["label", "a", "b", "c"])),
    ("classes of dtype datetime64[D] have no type in ONNX: train on strings, 64-bit integers or "
     "booleans", lambda: of_days().to_onnx()),
    ("the trees of AdaBoost do not count alike, and treelite's do: use to_onnx",
     lambda: model("adaboost").to_treelite()),
    (TREELITE, lambda: model("isolation").to_treelite()),
]  # fmt: skip


@pytest.mark.parametrize(("words", "export"), REFUSED, ids=range(len(REFUSED)))
def test_refused_exports(words, export):
    pytest.importorskip("treelite" if "treelite" in words else "onnx", reason=NEEDS)
    with refused(words, (ValueError, TypeError)):
        export()
    assert "int *label" in gf.export_c(of_days())  # which are numbers in C
