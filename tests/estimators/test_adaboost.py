"""AdaBoost: rounds worked by hand, the same model everywhere, beside scikit-learn's."""

import math
import pickle
import warnings

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression

import gpuforest as gf

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
CANCER, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
LOSSES = ["linear", "square", "exponential"]


def classes(backend="numpy", **params):
    return gf.AdaBoostClassifier(
        **{"n_estimators": 8, "random_state": 0, **params}, backend=backend
    )


def numbers(backend="numpy", **params):
    return gf.AdaBoostRegressor(**{"n_estimators": 8, "random_state": 0, **params}, backend=backend)


def test_three_rounds_by_hand(backend):
    """a b b a on a line. Each stump gets one end, or one b, wrong, whose weight then grows."""
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "a"]
    model = gf.AdaBoostClassifier(n_estimators=3, backend=backend).fit(X, y)
    # 1. of equal weights, the first cut of the two best is taken: the last a is wrong
    assert model[0].predict(X).tolist() == ["a", "b", "b", "b"]
    # 2. it weighs 1/2, the others 1/6: the best stump has the first a wrong
    assert model[1].predict(X).tolist() == ["b", "b", "b", "a"]
    # 3. the weights are 1/2 for the first a, 3/10 for the last, 1/10 for each b: all are an a
    assert model[2].predict(X).tolist() == ["a", "a", "a", "a"]
    assert np.allclose(model.estimator_errors_, [1 / 4, 1 / 6, 1 / 5], rtol=1e-15)
    weights = [math.log(3), math.log(5), math.log(4)]
    assert np.allclose(model.estimator_weights_, weights, rtol=1e-14)
    votes = np.array([[1, -1, 1], [-1, -1, 1], [-1, -1, 1], [-1, 1, 1]]) @ weights
    assert np.allclose(model.decision_function(X), -2 * votes / sum(weights))
    assert model.predict(X).tolist() == y


def test_one_round_of_numbers_by_hand():
    """A root alone predicts the mean of its bag; the row farthest off keeps most weight."""
    X, y = [[0.0]] * 8, [0.0] * 7 + [4.0]
    tree = gf.DecisionTreeRegressor(max_depth=1)
    model = numbers(estimator=tree, n_estimators=1, random_state=3).fit(X, y)
    mean = model.predict([[0.0]])[0]
    lost = np.abs(np.array(y) - mean) / max(abs(4 - mean), mean)
    assert model.estimator_errors_[0] == pytest.approx(lost.mean(), rel=1e-12)
    beta = lost.mean() / (1 - lost.mean())
    assert model.estimator_weights_[0] == pytest.approx(math.log(1 / beta), rel=1e-12)


@pytest.mark.parametrize("data", [IRIS, CANCER, WINE])
def test_stumps_as_scikit_learn_grows_them(data):
    X, y = data
    ours = gf.AdaBoostClassifier(n_estimators=12, random_state=0, backend="numpy").fit(X, y)
    theirs = sklearn.ensemble.AdaBoostClassifier(n_estimators=12, random_state=0).fit(X, y)
    assert np.allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-4)
    assert np.allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-4)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "data"), [(classes(), IRIS), (classes(), CANCER), (numbers("numba"), DIABETES)]
)
def test_stages_are_models_of_fewer_trees(model, data):
    X, y = data
    model.fit(X, y)
    methods = [m for m in ("predict", "predict_proba", "decision_function") if hasattr(model, m)]
    stages = [getattr(model, f"staged_{method}")(X) for method in methods]
    together = zip(*stages, model.staged_score(X, y), strict=True)
    for t, (*staged, score) in enumerate(together, 1):
        fewer = clone(model).set_params(n_estimators=t).fit(X, y)
        for method, found in zip(methods, staged, strict=True):
            assert np.array_equal(found, getattr(fewer, method)(X)), (t, method)
        assert score == fewer.score(X, y)
    assert t == len(model) == 8
    if "predict_proba" in methods:
        assert np.allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_a_weighted_median(backend, monkeypatch):
    X, y = DIABETES
    model = numbers(backend).fit(X, y)
    each = np.stack([tree.predict(X) for tree in model], axis=1)
    for found, row in zip(model.predict(X)[:50], each, strict=False):
        below = model.estimator_weights_[row <= found].sum()
        less = model.estimator_weights_[row < found].sum()
        assert less < model.estimator_weights_.sum() / 2 <= below + 1e-12
    whole = model.predict(X)
    monkeypatch.setattr("gpuforest.growing.predict.MEDIANS_AT_ONCE", 20)
    assert np.array_equal(whole, model.predict(X))


def test_one_class_and_one_row(backend):
    X = IRIS[0]
    model = classes(backend).fit(X, np.ones(len(X)))
    assert model.predict_proba(X).tolist() == [[1.0]] * len(X)
    assert model.decision_function(X).tolist() == [[0.0]] * len(X)
    assert model.predict(X).tolist() == [1.0] * len(X)
    assert numbers(backend).fit([[1.0]], [5.0]).predict([[7.0]]).tolist() == [5.0]


def test_a_tree_without_error_is_the_last(backend):
    model = classes(backend, estimator=gf.DecisionTreeClassifier()).fit(*WINE)
    assert len(model) == 1
    assert model.estimator_weights_.tolist() == [1.0] + [0.0] * 7
    assert model.estimator_errors_.tolist() == [0.0] + [1.0] * 7
    X = np.arange(5.0)[:, None]
    steps = numbers(backend, n_estimators=50).fit(X, [1e9 + 0.1] * 5)
    assert len(steps) == 1
    assert steps.estimator_errors_[0] == 0


def test_trees_no_better_than_chance(backend):
    X, y = [[0.0]] * 4, [0, 1, 0, 1]
    with pytest.raises(ValueError, match="ensemble is worse than random, ensemble can not be fit"):
        classes(backend).fit(X, y)
    model = numbers(backend, n_estimators=9).fit(X, [0.0, 4.0, 0.0, 4.0])
    assert len(model) == 1
    assert not model.feature_importances_.any()
    assert len(set(model.predict(X))) == 1


def test_zero_weights_are_as_if_the_rows_were_not_there(backend):
    for model, (X, y) in ((classes(backend), WINE), (numbers(backend), DIABETES)):
        weights = np.ones(len(y))
        weights[::3] = 0
        some = weights > 0
        with_all, fewer = model.fit(X, y, weights), clone(model).fit(X[some], y[some])
        if isinstance(model, gf.AdaBoostClassifier):  # the bags of regressors are of row numbers
            assert np.array_equal(with_all.forest_.leaf_sums, fewer.forest_.leaf_sums)
            assert np.array_equal(with_all.predict(X), fewer.predict(X))
        # what those rows hold changes nothing
        other = clone(model).fit(X, np.where(some, y, y[some][0]), weights)
        assert np.array_equal(with_all.predict(X), other.predict(X))


def test_class_weights_of_the_tree_count_in_every_round(backend):
    X, y = CANCER
    plain, heavy = (
        classes(backend, estimator=gf.DecisionTreeClassifier(max_depth=1, class_weight=w)).fit(X, y)
        for w in (None, {0: 9.0, 1: 1.0})
    )
    assert (heavy.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()
    none = gf.DecisionTreeClassifier(class_weight={0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="leave no row any weight"):
        classes(backend, estimator=none).fit(X, y, y == 0)


def test_each_tree_by_itself():
    X, y = IRIS
    model = classes(estimator=gf.DecisionTreeClassifier(max_depth=2)).fit(X, y)
    assert len({tree.random_state for tree in model}) == 8
    for tree in model:
        assert tree.max_depth == 2
        assert np.allclose(tree.predict_proba(X).sum(axis=1), 1)
        assert tree.forest_.tree_weights is None
    assert "class: 0" in gf.export_text(model, 1)
    assert model.apply(X).shape == (150, 8)
    weighted = np.average([t.feature_importances_ for t in model], 0, model.estimator_weights_)
    assert np.allclose(model.feature_importances_, weighted)
    assert permutation_importance(model, X, y, n_repeats=2).importances.shape == (4, 2)


@pytest.mark.parametrize("kind", [gf.AdaBoostClassifier, gf.AdaBoostRegressor])
def test_parameters_of_the_tree_and_of_the_ensemble(kind):
    X, y = IRIS
    tree = kind().estimator_.set_params(max_bins=7, backend="numpy")
    model = kind(tree, n_estimators=2).fit(X, y)
    assert model.backend_ == "numpy"
    assert model.forest_.edges.n_bins.max() <= 7
    model = kind(tree, n_estimators=2, max_bins=5).fit(X, y)
    assert model.forest_.edges.n_bins.max() <= 5
    assert kind().estimator_.max_depth == (1 if kind is gf.AdaBoostClassifier else 3)


def test_bad_input():
    X, y = IRIS
    many = np.stack([y, y], axis=1)
    for model in (classes(), numbers()):
        with pytest.raises(ValueError, match=r"y should be a 1d array, got .* \(150, 2\) instead"):
            model.fit(X, many)
        for rate in (0, -1.0, np.inf, "fast"):
            with pytest.raises(ValueError, match="The 'learning_rate' parameter of AdaBoost"):
                clone(model).set_params(learning_rate=rate).fit(X, y)
        for rate in (1e-9, 1e9):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                extreme = clone(model).set_params(learning_rate=rate).fit(X, y)
            assert np.isfinite(extreme.predict(X)).all()
        with pytest.raises(NotFittedError):
            next(clone(model).staged_predict(X))
    with pytest.raises(ValueError, match=r"estimator must be a gpuforest\.DecisionTreeClassifier"):
        classes(estimator=gf.DecisionTreeRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="for a tree fitted by itself: give the trees of an ens"):
        classes(estimator=gf.DecisionTreeClassifier(ccp_alpha="cv")).fit(X, y)
    with pytest.raises(ValueError, match="'loss' parameter of AdaBoostRegressor must be"):
        numbers(loss="absolute").fit(X, y)


def test_other_estimators_are_boosted_by_scikit_learn():
    for kind, estimator, (X, y), methods in (
        ("AdaBoostClassifier", LogisticRegression(), CANCER, ("decision_function",)),
        ("AdaBoostRegressor", LinearRegression(), DIABETES, ("predict",)),
    ):
        X = X / np.abs(X).max(axis=0)
        ours, theirs = (
            getattr(package, kind)(estimator, n_estimators=3, random_state=0).fit(X, y)
            for package in (gf, sklearn.ensemble)
        )
        for method in (*methods, "predict"):
            assert np.array_equal(getattr(ours, method)(X), getattr(theirs, method)(X))
            stages = (getattr(each, f"staged_{method}")(X) for each in (ours, theirs))
            assert all(np.array_equal(*pair) for pair in zip(*stages, strict=True))
        assert np.array_equal(ours.estimator_errors_, theirs.estimator_errors_)
        assert len(ours) == len(theirs) > 1
        assert len(pickle.loads(pickle.dumps(ours)).estimators_) == len(ours)
        assert not hasattr(ours, "feature_importances_")
        with pytest.raises(ValueError, match="is no forest, and not saved"):
            ours.save("never")
        ours.set_params(estimator=None, backend="numpy").fit(X, y)
        assert ours.forest_.n_trees == len(ours)
    tree = sklearn.tree.DecisionTreeClassifier(max_depth=1)
    assert gf.AdaBoostClassifier(tree, n_estimators=4).fit(*IRIS).feature_importances_.sum() > 0.99
