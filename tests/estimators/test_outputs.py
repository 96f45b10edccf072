"""Several outputs: what their trees equal, and the shapes and labels of what they answer."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from outputs import DIABETES, NAMES, PAIR, SEVERAL, SUGAR, TWO, WINE, X, grown, same_splits
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn.tree import DecisionTreeRegressor as SklearnRegressor
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

import gpuforest
from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.backends import registry

# what the trees equal


@pytest.mark.parametrize("Model", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_output_twice_is_the_output(backend, Model, sign):
    # every score doubles; the mirrored output has the same squares
    single = grown(Model, backend, SUGAR)
    double = grown(Model, backend, np.stack([SUGAR, sign * SUGAR], axis=1))
    assert same_splits(single.forest_, double.forest_)
    once, twice = single.predict(DIABETES), double.predict(DIABETES)
    assert np.array_equal(twice, np.stack([once, sign * once], axis=1))
    assert single.score(DIABETES, SUGAR) == double.score(
        DIABETES, np.stack([SUGAR, sign * SUGAR], axis=1)
    )


def test_counts_twice_are_the_counts(backend):
    counts = np.random.default_rng(0).poisson(SUGAR / 50).astype(float)
    params = {"criterion": "poisson", "max_depth": 5}
    single = grown(RandomForestRegressor, backend, counts, **params)
    double = grown(RandomForestRegressor, backend, np.stack([counts, counts], axis=1), **params)
    assert same_splits(single.forest_, double.forest_)
    assert np.array_equal(double.predict(DIABETES), single.predict(DIABETES)[:, None] * [1, 1])


@pytest.mark.parametrize("Model", SEVERAL)
@pytest.mark.parametrize("times", [2, 4])
def test_classes_twice_are_the_classes(backend, Model, times):
    # Gini impurities are sums of squares of whole numbers: every score is doubled exactly
    single = grown(Model, backend, WINE)
    double = grown(Model, backend, np.stack([WINE] * times, axis=1))
    assert same_splits(single.forest_, double.forest_)
    assert all(np.array_equal(p, single.predict_proba(X)) for p in double.predict_proba(X))
    assert np.array_equal(double.predict(X), single.predict(X)[:, None].repeat(times, axis=1))
    # a decrease is the mean over the outputs
    assert np.allclose(double.feature_importances_, single.feature_importances_, rtol=1e-12)
    limit = {"min_impurity_decrease": 0.02}
    single = grown(Model, backend, WINE, **limit)
    double = grown(Model, backend, np.stack([WINE] * times, axis=1), **limit)
    assert same_splits(single.forest_, double.forest_)


def test_entropies_twice_are_the_entropies(backend):
    # of one output entropies are in fixed point, of several they are not: large nodes, no ties
    params = {"criterion": "entropy", "min_samples_leaf": 8}
    single = grown(RandomForestClassifier, backend, WINE, **params)
    double = grown(RandomForestClassifier, backend, np.stack([WINE, WINE], axis=1), **params)
    assert same_splits(single.forest_, double.forest_)
    assert all(np.array_equal(p, single.predict_proba(X)) for p in double.predict_proba(X))
    # one sums logarithms, the other a fixed-point table of 26 bits
    assert np.allclose(double.feature_importances_, single.feature_importances_, rtol=1e-6)


def test_the_order_of_two_outputs_does_not_matter(backend):
    a, b = (grown(RandomForestRegressor, backend, PAIR[:, order]) for order in ([0, 1], [1, 0]))
    assert same_splits(a.forest_, b.forest_)
    assert np.array_equal(a.predict(DIABETES), b.predict(DIABETES)[:, ::-1])
    a, b = (grown(RandomForestClassifier, backend, TWO[:, order]) for order in ([0, 1], [1, 0]))
    assert same_splits(a.forest_, b.forest_)
    assert np.array_equal(a.predict(X), b.predict(X)[:, ::-1])


def test_an_output_that_is_constant_adds_nothing(backend):
    # squared errors and impurities of it are the same on both sides of every cut: but their
    # sum is rounded, so that only large nodes without ties are sure to be cut alike
    params = {"min_samples_leaf": 20}
    single = grown(RandomForestRegressor, backend, SUGAR, **params)
    double = grown(
        RandomForestRegressor, backend, np.stack([SUGAR, np.full(442, 7)], axis=1), **params
    )
    assert same_splits(single.forest_, double.forest_)
    assert (double.predict(DIABETES)[:, 1] == 7).all()


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
    ours = DecisionTreeClassifier(**params, backend=backend).fit(table, target, weights)
    theirs = SklearnClassifier(**params, random_state=0).fit(table, target, sample_weight=weights)
    assert ours.forest_.n_nodes == theirs.tree_.node_count > 8
    pairs = zip(ours.predict_proba(table), theirs.predict_proba(table), strict=True)
    # scikit-learn divides sums of floats
    assert all(np.allclose(*pair, rtol=1e-12) for pair in pairs)
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, rtol=1e-6)


@pytest.mark.parametrize(
    "params", [{"max_depth": 5}, {"min_impurity_decrease": 30.0}, {"ccp_alpha": 30.0}]
)
def test_regression_trees_are_scikit_learns(backend, params):
    table = DIABETES.astype(np.float32)
    ours = DecisionTreeRegressor(max_bins=1000, **params, backend=backend).fit(table, PAIR)
    theirs = SklearnRegressor(**params, random_state=0).fit(table, PAIR)
    assert ours.forest_.n_nodes == theirs.tree_.node_count > 20
    # our means lie on the grid of the fixed point
    assert np.allclose(ours.predict(table), theirs.predict(table), rtol=1e-9)


# weights


@pytest.mark.parametrize(
    "class_weight",
    ["balanced", [{0: 1, 1: 3, 2: 2}, {0: 0.5, 1: 1.5}], ["balanced", None], [None, {0: 2, 1: 1}]],
)
def test_class_weights_are_sample_weights(backend, class_weight):
    own = np.linspace(0.5, 2, len(X))

    def balanced(sample_weight):
        each = [
            compute_class_weight(
                "balanced", classes=np.unique(c), y=c, sample_weight=sample_weight
            )[c]
            for c in TWO.T
        ]
        return each[0] * each[1]

    weights = compute_sample_weight(
        [w or dict.fromkeys(range(3), 1) for w in class_weight]
        if isinstance(class_weight, list)
        else class_weight,
        TWO,
    )
    for Model in (DecisionTreeClassifier, ExtraTreesClassifier):
        for sample_weight, product in ((None, weights), (own, weights * own)):
            params = {"random_state": 0, "backend": backend}
            if Model is ExtraTreesClassifier:
                params["n_estimators"] = 10
            if (
                sample_weight is not None
                and class_weight == "balanced"
                and Model is ExtraTreesClassifier
            ):
                product = own * balanced(own)  # forests add up weights
            plain = Model(**params).fit(X, TWO, product).forest_
            weighted = Model(**params, class_weight=class_weight).fit(X, TWO, sample_weight)
            assert same_forest(weighted.forest_, plain)


def test_class_weights_with_bags(backend):
    weights = [{0: 1, 1: 3, 2: 2}, {0: 2, 1: 1}]
    model = grown(RandomForestClassifier, backend, TWO, class_weight=weights)
    each = np.array([1, 3, 2])[TWO[:, 0]] * np.array([2, 1])[TWO[:, 1]]
    for t, rows in enumerate(model.estimators_samples_):
        assert model.forest_.node_sums(t, t + 1)[0, 0] == each[rows].sum()


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 1, 1: 2, 2: 1}, "should be a list of dicts, or the string 'balanced'"),
        ([{0: 1, 1: 2, 2: 1}], r"Got 1 element\(s\) while having 2 outputs"),
    ],
)
def test_class_weights_of_one_output_are_refused(class_weight, message):
    with pytest.raises(ValueError, match=message):
        grown(RandomForestClassifier, "numpy", TWO, class_weight=class_weight)


def test_sample_weights_without_bags_are_repeated_rows(backend):
    weights = np.random.default_rng(0).integers(0, 3, 442)
    rows = np.repeat(np.arange(442), weights)
    model = DecisionTreeRegressor(max_bins=1000, backend=backend)
    weighted = model.fit(DIABETES, PAIR, weights).predict(DIABETES)
    assert np.array_equal(weighted, model.fit(DIABETES[rows], PAIR[rows]).predict(DIABETES))


# shapes and labels


# out of bag, files, backends, errors


@pytest.mark.parametrize(
    ("Model", "target"),
    [
        (ExtraTreesRegressor, PAIR),
        (RandomForestClassifier, TWO),
        (ExtraTreesClassifier, NAMES[TWO, 0]),
    ],
)
def test_files_and_pickles(tmp_path, Model, target):
    model = grown(Model, "numba", target)
    model.save(tmp_path / "model")
    table = X if len(target) == len(X) else DIABETES
    for again in (gpuforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert same_forest(again.forest_, model.forest_)
        assert again.n_outputs_ == 2
        assert np.array_equal(again.predict(table), model.predict(table))
        if target is not PAIR:
            assert all(np.array_equal(*c) for c in zip(again.classes_, model.classes_, strict=True))
            assert again.n_classes_ == model.n_classes_
            assert len(again.predict_proba(table)) == 2


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_backends_agree(criterion):
    is_classes = criterion in ("gini", "entropy")
    Model = RandomForestClassifier if is_classes else RandomForestRegressor
    target = TWO if is_classes else np.abs(PAIR)
    weights = np.random.default_rng(0).random(len(target))
    params = {"criterion": criterion, "n_jobs": 2, "max_features": 3, "max_leaf_nodes": 20}
    a, b = (grown(Model, name, target, weights, **params) for name in ("numpy", "numba"))
    assert same_forest(a.forest_, b.forest_)
    assert np.array_equal(a.feature_importances_, b.feature_importances_)


def test_a_far_smaller_output_is_warned_of():
    far = np.stack([SUGAR, SUGAR * 1e-12], axis=1)
    with pytest.warns(UserWarning, match="output 1 of y has a range so small"):
        grown(RandomForestRegressor, "numpy", far)
    grown(RandomForestRegressor, "numpy", np.stack([SUGAR, SUGAR * 1e-3], axis=1))


@pytest.mark.parametrize("ratio", [1e-18, 1e-14])
def test_an_output_that_would_be_lost_is_refused(backend, ratio):
    far = np.stack([SUGAR * 1e6, SUGAR * 1e6 * ratio], axis=1)
    with pytest.raises(ValueError, match="output 1 of y has a range so small"):
        grown(RandomForestRegressor, backend, far)
    # one that is constant loses nothing
    far[:, 1] = 7e-9
    assert (grown(RandomForestRegressor, backend, far).predict(DIABETES)[:, 1] == 7e-9).all()


def test_misclassification_is_for_one_output():
    for Model in (DecisionTreeClassifier, RandomForestClassifier, ExtraTreesClassifier):
        with pytest.raises(ValueError, match="'misclassification' is for one output"):
            Model(criterion="misclassification").fit(X, TWO)
    with pytest.raises(ValueError, match="not strictly positive"):
        grown(RandomForestRegressor, "numpy", np.stack([SUGAR, 0 * SUGAR], 1), criterion="poisson")


@pytest.mark.parametrize("layout", ["column-major", "every other column"])
def test_outputs_of_any_layout_grow_one_forest_on_a_device(cuda, monkeypatch, layout):
    monkeypatch.setitem(registry._factories, "device", lambda *limits: cuda.backend())
    for Model, target in ((RandomForestRegressor, PAIR), (RandomForestClassifier, TWO)):
        other = np.asfortranarray(target)
        if layout == "every other column":
            other = np.repeat(target, 2, axis=1)[:, ::2]
        plain = grown(Model, "numpy", target, max_depth=3)
        assert same_forest(grown(Model, "device", other, max_depth=3).forest_, plain.forest_)
