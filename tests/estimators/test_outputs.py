"""Several outputs: what their trees equal, and the shapes and labels of what they answer."""

import numpy as np
import pytest
import sklearn.ensemble
from engine import same_forest
from outputs import DIABETES, NAMES, PAIR, SEVERAL, SUGAR, TWO, WINE, X, grown, same_splits
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.utils.class_weight import compute_sample_weight

import gpuforest as gf
from gpuforest.backends import registry


@pytest.mark.parametrize(
    ("Model", "target", "params"),
    [
        (gf.RandomForestRegressor, SUGAR, {}),
        (gf.ExtraTreesRegressor, SUGAR, {"min_impurity_decrease": 20.0}),
        (gf.RandomForestRegressor, SUGAR // 50, {"criterion": "poisson", "max_depth": 5}),
        (gf.RandomForestClassifier, WINE, {}),
        (gf.ExtraTreesClassifier, WINE, {"min_impurity_decrease": 0.02}),
        # entropies of one output are in fixed point, of several they are not: no ties
        (gf.RandomForestClassifier, WINE, {"criterion": "entropy", "min_samples_leaf": 8}),
    ],
)
def test_an_output_twice_is_the_output(backend, Model, target, params):
    """Every score doubles."""
    twice = np.stack([target, target], axis=1)
    single, double = (grown(Model, backend, y, **params) for y in (target, twice))
    assert same_splits(single.forest_, double.forest_)
    rows = X if len(target) == len(X) else DIABETES
    assert np.array_equal(double.predict(rows), single.predict(rows)[:, None].repeat(2, axis=1))
    # of entropies one sums logarithms, the other a fixed-point table of 26 bits
    assert np.allclose(double.feature_importances_, single.feature_importances_, rtol=1e-6)


@pytest.mark.parametrize(
    "params", [{"max_depth": 4}, {"min_impurity_decrease": 0.01}, {"ccp_alpha": 0.005}]
)
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_class_trees_are_scikit_learns(backend, criterion, params):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 40, (600, 4)).astype(np.float32)
    signal = table[:, :2] + rng.normal(size=(600, 2)) * 6
    target = np.stack([np.digitize(signal[:, 0], [12, 25]), signal[:, 1] > 20], axis=1).astype(int)
    params = {"criterion": criterion, "min_samples_leaf": 5, **params}
    weights = rng.integers(1, 5, 600)
    ours = gf.DecisionTreeClassifier(**params, backend=backend).fit(table, target, weights)
    theirs = SklearnClassifier(**params, random_state=0).fit(table, target, sample_weight=weights)
    assert ours.forest_.n_nodes == theirs.tree_.node_count > 8
    pairs = zip(ours.predict_proba(table), theirs.predict_proba(table), strict=True)
    # scikit-learn divides sums of floats
    assert all(np.allclose(*pair, rtol=1e-12) for pair in pairs)
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-6)


@pytest.mark.parametrize(
    "class_weight",
    ["balanced", [{0: 1, 1: 3, 2: 2}, {0: 0.5, 1: 1.5}], ["balanced", None], [None, {0: 2, 1: 1}]],
)
def test_class_weights_are_sample_weights(backend, class_weight):
    lists = class_weight != "balanced"
    each = [w or dict.fromkeys(range(3), 1) for w in class_weight] if lists else class_weight
    weights = compute_sample_weight(each, TWO)
    for Model in (gf.DecisionTreeClassifier, gf.ExtraTreesClassifier):
        model = Model(random_state=0, backend=backend)
        plain = model.fit(X, TWO, weights).forest_
        assert same_forest(model.set_params(class_weight=class_weight).fit(X, TWO).forest_, plain)


def test_a_far_smaller_output_is_warned_of_or_refused(backend):
    with pytest.warns(UserWarning, match="output 1 of y has a range so small .* are coarse"):
        grown(gf.RandomForestRegressor, backend, np.stack([SUGAR, SUGAR * 1e-12], axis=1))
    for ratio in (1e-18, 1e-14):
        far = np.stack([SUGAR * 1e6, SUGAR * 1e6 * ratio], axis=1)
        with pytest.raises(ValueError, match="so small beside another's that it would be lost"):
            grown(gf.RandomForestRegressor, backend, far)
    # one that is constant loses nothing
    far[:, 1] = 7e-9
    assert (grown(gf.RandomForestRegressor, backend, far).predict(DIABETES)[:, 1] == 7e-9).all()


def test_misclassification_is_for_one_output():
    for Model in (gf.DecisionTreeClassifier, gf.RandomForestClassifier, gf.ExtraTreesClassifier):
        with pytest.raises(ValueError, match="'misclassification' is for one output"):
            Model(criterion="misclassification").fit(X, TWO)
    numbers = gf.RandomForestRegressor(criterion="poisson", backend="numpy")
    with pytest.raises(ValueError, match="not strictly positive"):
        numbers.fit(DIABETES, np.stack([SUGAR, 0 * SUGAR], axis=1))


@pytest.mark.parametrize("layout", ["column-major", "every other column"])
def test_outputs_of_any_layout_grow_one_forest_on_a_device(cuda, monkeypatch, layout):
    monkeypatch.setitem(registry._factories, "device", lambda *limits: cuda.backend())
    for Model, target in ((gf.RandomForestRegressor, PAIR), (gf.RandomForestClassifier, TWO)):
        other = np.asfortranarray(target)
        if layout == "every other column":
            other = np.repeat(target, 2, axis=1)[:, ::2]
        plain = grown(Model, "numpy", target, max_depth=3)
        assert same_forest(grown(Model, "device", other, max_depth=3).forest_, plain.forest_)


@pytest.mark.filterwarnings("ignore:divide by zero")  # scikit-learn's logarithms
@pytest.mark.parametrize("target", [WINE, TWO, np.stack([WINE, WINE, WINE], axis=1)])
@pytest.mark.parametrize("Model", SEVERAL)
def test_class_answers_have_scikit_learns_shapes(backend, Model, target):
    ours = grown(Model, backend, target)
    theirs = getattr(sklearn.ensemble, Model.__name__)(4, random_state=0).fit(X, target)
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        found, expected = (getattr(model, method)(X) for model in (ours, theirs))
        assert type(found) is type(expected)
        if isinstance(found, list):
            assert [(f.shape, f.dtype) for f in found] == [(e.shape, e.dtype) for e in expected]
        else:
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert type(ours.classes_) is type(theirs.classes_)
    assert np.concatenate(ours.classes_, axis=None).tolist() == (
        np.concatenate(theirs.classes_, axis=None).tolist()
    )
    assert np.array_equal(ours.n_classes_, theirs.n_classes_)
    assert ours.n_outputs_ == theirs.n_outputs_


def test_scores_are_scikit_learns(backend):
    binary = (TWO > 0).astype(int)
    model = grown(gf.RandomForestClassifier, backend, binary, max_depth=2)
    right = (model.predict(X) == binary).all(axis=1)
    assert model.score(X, binary) == right.mean() < 1
    three = grown(gf.RandomForestClassifier, backend, TWO)
    theirs = sklearn.ensemble.RandomForestClassifier(4).fit(X, TWO)
    for other in (three, theirs):
        with pytest.raises(ValueError, match="multiclass-multioutput is not supported"):
            other.score(X, TWO)


def test_probabilities_lead_to_labels(backend):
    model = grown(gf.RandomForestClassifier, backend, TWO, max_depth=3)
    parts = model.predict_proba(X)
    # a mean of shares rounds
    assert all(np.allclose(part.sum(axis=1), 1) for part in parts)
    best = [c[p.argmax(axis=1)] for c, p in zip(model.classes_, parts, strict=True)]
    assert np.array_equal(model.predict(X), np.stack(best, axis=1))
    with np.errstate(divide="ignore"):
        logs = [np.log(part) for part in parts]
    assert all(np.array_equal(*p) for p in zip(model.predict_log_proba(X), logs, strict=True))


def test_votes_are_of_each_output(backend):
    tree = gf.DecisionTreeClassifier(max_depth=2, backend=backend)
    model = gf.BaggingClassifier(tree, 5, voting="hard", random_state=0).fit(X, TWO)
    for part, each in zip(model.predict_proba(X), model.classes_, strict=True):
        assert part.shape == (len(X), len(each))
        assert set(np.unique(part * 5)) <= {0, 1, 2, 3, 4, 5}
        # a mean of shares rounds
        assert np.allclose(part.sum(axis=1), 1)


def test_labels_of_several_kinds(backend, tmp_path):
    target = np.stack([NAMES[TWO[:, 0], 0].astype(object), TWO[:, 1].astype(object)], axis=1)
    model = grown(gf.RandomForestClassifier, backend, target)
    assert [c.dtype.kind for c in model.classes_] in (["O", "i"], ["U", "i"])
    found = model.predict(X)
    assert found.dtype == object
    assert {type(label) for label in found[:, 1]} <= {int, np.int64}
    assert np.mean(found == target) > 0.9
    model.save(tmp_path / "model")
    assert np.array_equal(gf.load(tmp_path / "model").predict(X), found)


def test_a_column_is_one_output(backend):
    for Model, target in ((gf.RandomForestClassifier, WINE), (gf.RandomForestRegressor, SUGAR)):
        with pytest.warns(DataConversionWarning):
            model = grown(Model, backend, target[:, None])
        assert model.n_outputs_ == 1
        assert same_forest(model.forest_, grown(Model, backend, target).forest_)
        assert model.predict(X if Model is gf.RandomForestClassifier else DIABETES).ndim == 1


def test_out_of_bag_answers_have_scikit_learns_shapes(backend):
    params = {"n_estimators": 60, "oob_score": True, "random_state": 0}
    target = np.stack([WINE > 0, X[:, 1] > 2], axis=1)
    ours = gf.RandomForestClassifier(**params, backend=backend).fit(X, target)
    theirs = sklearn.ensemble.RandomForestClassifier(**params).fit(X, target)
    decision = ours.oob_decision_function_
    assert decision.shape == theirs.oob_decision_function_.shape == (178, 2, 2)
    assert ours.oob_score_ == np.mean((decision.argmax(axis=1) == target).all(axis=1))
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.05
    ours = gf.RandomForestRegressor(**params, backend=backend).fit(DIABETES, PAIR)
    theirs = sklearn.ensemble.RandomForestRegressor(**params).fit(DIABETES, PAIR)
    assert ours.oob_prediction_.shape == theirs.oob_prediction_.shape == (442, 2)
    assert ours.oob_score_ == r2_score(PAIR, ours.oob_prediction_)
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.05
    # outputs of unlike numbers of classes stand side by side, with room for the most
    ours = gf.RandomForestClassifier(**params, backend=backend).fit(X, TWO)
    assert ours.oob_decision_function_.shape == (178, 3, 2)
    assert not ours.oob_decision_function_[:, 2, 1].any()
    right = ours.oob_decision_function_.argmax(axis=1) == TWO
    assert ours.oob_score_ == np.mean(right.all(axis=1)) > 0.8
