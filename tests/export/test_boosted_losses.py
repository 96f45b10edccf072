"""Models of boosting beyond one output and the usual losses: files hold them, and writers for other
libraries write them or say why not."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.inspection import partial_dependence

import gpuforest as gf
from gpuforest import HistGradientBoostingClassifier as Classifier
from gpuforest import HistGradientBoostingRegressor as Regressor

X, LABELS = (a[:400] for a in load_digits(return_X_y=True))
Y, ZEROS = X[:, 20] - X[:, 30], np.zeros(400)
BOTH = np.stack([Y, X[:, 10]], axis=1)
GIVEN = {"max_iter": 4, "early_stopping": False, "random_state": 0}
SHARED = GIVEN | {"multi_strategy": "multi_output_tree"}


def counts(y, raw, weight):
    return np.exp(raw) - y, np.exp(raw)


def softmax(y, raw, weight):
    p = np.exp(raw - raw.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return p - (y[:, None] == np.arange(raw.shape[1])), p * (1 - p)


NUMBERS, SHARES = "predicts several numbers", "predicts probabilities of numbers"
LACKING = "was fitted with init_score"
MODELS = {  # a model, why writers refuse it, why scikit-learn's classes do
    "classes together": (lambda: Classifier(**SHARED).fit(X, LABELS), None, None),
    "a function of classes": (lambda: Classifier(softmax, **GIVEN).fit(X, LABELS), None, "'given'"),
    "a function": (
        lambda: Regressor(counts, link="log", **GIVEN).fit(X, np.abs(Y)), None, "'given'"
    ),
    "tweedie": (lambda: Regressor("tweedie", power=1.2, **GIVEN).fit(X, np.abs(Y)), None, None),
    "cross entropy": (
        lambda: Regressor("cross_entropy", **GIVEN).fit(X, X[:, 20] / 16), SHARES, SHARES
    ),
    "quantiles": (
        lambda: Regressor("quantile", quantile=[0.1, 0.9], **GIVEN).fit(X, Y), NUMBERS, NUMBERS
    ),
    "quantiles together": (
        lambda: Regressor("quantile", quantile=[0.1, 0.9], **SHARED).fit(X, Y), NUMBERS, NUMBERS
    ),
    "outputs": (lambda: Regressor("poisson", **GIVEN).fit(X, BOTH + 16), NUMBERS, NUMBERS),
    "outputs together": (lambda: Regressor(**SHARED).fit(X, BOTH), NUMBERS, NUMBERS),
    "init_score": (lambda: Regressor(**GIVEN).fit(X, Y, init_score=ZEROS), LACKING, LACKING),
}  # fmt: skip
WRITERS = {
    "onnx": lambda model: model.to_onnx(),
    "treelite": lambda model: model.to_treelite(),
    "C": gf.export_c,
}


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    make, *why = MODELS[request.param]
    model = make()
    more = (ZEROS,) if request.param == "init_score" else ()
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    return model, predict, more, why


def test_files_hold_them(case, tmp_path):
    model, predict, more, _ = case
    model.save(tmp_path / "model")
    again = gf.load(tmp_path / "model")
    assert np.array_equal(getattr(again, predict)(X, *more), getattr(model, predict)(X, *more))
    assert again.forest_.coding.loss.facts == model.forest_.coding.loss.facts
    if callable(model.loss):  # no file holds a function
        return
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("form", WRITERS)
def test_writers_write_them_or_say_why_not(case, form):
    pytest.importorskip({"C": "numpy"}.get(form, form))
    model, _, _, (why, _) = case
    if why is None:
        assert WRITERS[form](model)
    else:
        with pytest.raises(ValueError, match=why):
            WRITERS[form](model)


def test_python_and_scikit_learn(case):
    model, predict, _, (_, why) = case
    if why is None:
        theirs = getattr(model.to_sklearn(), predict)(X)
        assert np.allclose(theirs, getattr(model, predict)(X), rtol=1e-12)
    else:
        with pytest.raises(ValueError, match=why):
            model.to_sklearn()
    coding = model.forest_.coding
    if coding.lacking or coding.is_vector:
        with pytest.raises(ValueError, match="is not written as Python"):
            gf.export_python(model, None)


def test_explanations_and_views(case):
    model, _, more, _ = case
    raw = model._raw_predict(X[:5], *(part[:5] for part in more))
    values = model.shap_values(X[:5])
    total = values.sum(axis=1).reshape(raw.shape) + model.expected_value_
    assert np.allclose(total, raw)
    grid = partial_dependence(model, X[:50], [20], method="recursion")
    assert len(grid["average"]) == raw.shape[1]
    root = gf.tree_nodes(model, 0)[0]
    assert (root.round, root.n_samples) == (1, 400)
    assert root.value.shape == (model.forest_.leaf_sums.shape[1] // 2, 1)
    assert "round 1 of 4" in gf.export_text(model, 0)
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_reports_compare_one_prediction_with_each_target():
    several = MODELS["outputs together"][0]()
    assert several.n_outputs_ == 2
    assert "of 2 outputs" in several.report(X, BOTH)
    quantiles = MODELS["quantiles"][0]()
    assert quantiles.n_outputs_ == 1
    assert "<html" in quantiles.report(X)
    with pytest.raises(ValueError, match="several quantiles: leave out y"):
        quantiles.report(X, Y)
