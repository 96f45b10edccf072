"""AdaBoost: rounds worked by hand, the same model everywhere, beside scikit-learn's."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
from engine import same_forest
from paths import has_numba
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import train_test_split

from benchmarks import adaboost
from gpuforest import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from gpuforest.engine.reweighting import samme, sum_of
from gpuforest.engine.target import integer_weights

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
CANCER, WINE = load_breast_cancer(return_X_y=True), load_wine(return_X_y=True)
LOSSES = ["linear", "square", "exponential"]


def classes(backend="numpy", **params):
    return AdaBoostClassifier(**{"n_estimators": 8, "random_state": 0, **params}, backend=backend)


def numbers(backend="numpy", **params):
    return AdaBoostRegressor(**{"n_estimators": 8, "random_state": 0, **params}, backend=backend)


# rounds


def test_three_rounds_by_hand(backend):
    """a b b a on a line. Each stump gets one end, or one b, wrong, whose weight then grows."""
    X, y = [[0.0], [1.0], [2.0], [3.0]], ["a", "b", "b", "a"]
    model = AdaBoostClassifier(n_estimators=3, backend=backend).fit(X, y)
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
    tree = DecisionTreeRegressor(max_depth=1)
    model = numbers(estimator=tree, n_estimators=1, random_state=3).fit(X, y)
    mean = model.predict([[0.0]])[0]
    lost = np.abs(np.array(y) - mean) / max(abs(4 - mean), mean)
    assert model.estimator_errors_[0] == pytest.approx(lost.mean(), rel=1e-12)
    beta = lost.mean() / (1 - lost.mean())
    assert model.estimator_weights_[0] == pytest.approx(math.log(1 / beta), rel=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_rounds_are_trees_of_integer_weights(backend, depth):
    X, y = WINE
    tree = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=10, backend=backend)
    model = classes(backend, estimator=tree).fit(X, y)
    weights = np.full(len(y), 1 / len(y))
    for own, weight in zip(model, model.estimator_weights_, strict=False):
        alone = clone(tree).fit(X, y, integer_weights(weights))
        assert np.array_equal(own.tree_.threshold, alone.tree_.threshold)
        assert np.array_equal(own.tree_.value, alone.tree_.value)
        found = samme(alone.predict(X) != y, weights, 3, 1.0)
        assert found.weight == pytest.approx(weight, rel=1e-12)
        weights = weights * found.factors
        weights /= sum_of(weights)


# the same everywhere


@pytest.mark.skipif(not has_numba, reason="no numba here")
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (classes(n_estimators=30), CANCER),
        (classes(estimator=DecisionTreeClassifier(max_depth=3, splitter="random")), WINE),
        (classes(estimator=DecisionTreeClassifier(max_depth=2, max_features=2)), IRIS),
        *[(numbers(n_estimators=20, loss=loss), DIABETES) for loss in LOSSES],
        (
            numbers(estimator=DecisionTreeRegressor(criterion="absolute_error", max_depth=2)),
            DIABETES,
        ),
    ],
)
def test_backends_and_threads_agree(model, data):
    X, y = data
    weights = np.random.default_rng(0).random(len(y))
    first = clone(model).set_params(backend="numpy").fit(X, y, weights)
    for n_jobs in (1, 2):
        other = clone(model).set_params(backend="numba", n_jobs=n_jobs).fit(X, y, weights)
        assert same_forest(first.forest_, other.forest_)
        assert np.array_equal(first.forest_.tree_weights, other.forest_.tree_weights)
        assert np.array_equal(first.estimator_errors_, other.estimator_errors_)
        assert np.array_equal(first.predict(X), other.predict(X))
        pairs = zip(first.staged_predict(X), other.staged_predict(X), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs)


def test_columns_of_any_kind(backend):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(300), "c": rng.choice(["u", "v", "w"], 300)})
    y = (frame["c"] == "v") | (frame["x"] > 0.8)
    frame.loc[::7, "x"] = np.nan
    model = classes(backend, n_estimators=20).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert model.is_categorical_.tolist() == [False, True]
    assert list(model.feature_names_in_) == ["x", "c"]


# beside scikit-learn


@pytest.mark.parametrize("data", [IRIS, CANCER, WINE])
def test_stumps_as_scikit_learn_grows_them(data):
    X, y = data
    ours = AdaBoostClassifier(n_estimators=12, random_state=0, backend="numpy").fit(X, y)
    theirs = sklearn.ensemble.AdaBoostClassifier(n_estimators=12, random_state=0).fit(X, y)
    assert np.allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-4)
    assert np.allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-4)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert np.allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_numbers_are_predicted_as_well_as_by_scikit_learn(loss):
    parts = train_test_split(*DIABETES, random_state=0)
    scores = {}
    for kind in (AdaBoostRegressor, sklearn.ensemble.AdaBoostRegressor):
        models = [kind(loss=loss, random_state=seed).fit(*parts[::2]) for seed in range(6)]
        scores[kind] = np.mean([model.score(*parts[1::2]) for model in models])
    ours, theirs = scores.values()
    assert abs(ours - theirs) < 0.04


def test_the_sphere_of_hastie_tibshirani_and_friedman():
    """Example 10.2: the book's figure has 12.2 % at the end, SAMME's stumps come to 11.1 %."""
    X, X_test, y, y_test = adaboost.sphere(0)
    model = AdaBoostClassifier(n_estimators=400, random_state=0).fit(X, y)
    stump = 1 - next(model.staged_score(X_test, y_test))
    assert stump > 0.4
    assert 1 - model.score(X_test, y_test) == pytest.approx(0.111, abs=0.012)


# stages and predictions


@pytest.mark.parametrize(
    ("model", "data", "methods"),
    [
        *((classes(), data, ("predict", "predict_proba", "decision_function"))
          for data in (IRIS, CANCER)),
        (numbers("numba", loss="square"), DIABETES, ("predict",)),
    ],
)  # fmt: skip
def test_stages(model, data, methods):
    X, y = data
    model.fit(X, y)
    stages = [getattr(model, f"staged_{method}")(X) for method in methods]
    together = zip(*stages, model.staged_score(X, y), strict=True)
    for t, (*staged, score) in enumerate(together, 1):
        fewer = clone(model).set_params(n_estimators=t).fit(X, y)
        for method, values in zip(methods, staged, strict=True):
            assert np.array_equal(values, getattr(fewer, method)(X)), (t, method)
        assert score == fewer.score(X, y)
    assert t == len(model) == 8
    if len(methods) > 1:
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
    monkeypatch.setattr("gpuforest.engine.predict.MEDIANS_AT_ONCE", 20)
    assert np.array_equal(whole, model.predict(X))


def test_one_class_and_one_row(backend):
    X = IRIS[0]
    model = classes(backend).fit(X, np.ones(len(X)))
    assert model.predict_proba(X).tolist() == [[1.0]] * len(X)
    assert model.decision_function(X).tolist() == [[0.0]] * len(X)
    assert model.predict(X).tolist() == [1.0] * len(X)
    assert numbers(backend).fit([[1.0]], [5.0]).predict([[7.0]]).tolist() == [5.0]


# rounds that do not happen


def test_a_tree_without_error_is_the_last(backend):
    model = classes(backend, estimator=DecisionTreeClassifier()).fit(*WINE)
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


def test_infinite_weights_end_the_rounds(backend):
    with pytest.warns(UserWarning, match="Sample weights have reached infinite values, at iter"):
        model = classes(backend, n_estimators=30, learning_rate=23.0).fit(*IRIS)
    assert 0 < len(model) < 30


# weights


def test_zero_weights_are_as_if_the_rows_were_not_there(backend):
    for model, (X, y) in ((classes(backend), WINE), (numbers(backend), DIABETES)):
        weights = np.ones(len(y))
        weights[::3] = 0
        some = weights > 0
        with_all, fewer = model.fit(X, y, weights), clone(model).fit(X[some], y[some])
        if isinstance(model, AdaBoostClassifier):  # the bags of regressors are of row numbers
            assert np.array_equal(with_all.forest_.leaf_sums, fewer.forest_.leaf_sums)
            assert np.array_equal(with_all.predict(X), fewer.predict(X))
        # what those rows hold changes nothing
        other = clone(model).fit(X, np.where(some, y, y[some][0]), weights)
        assert np.array_equal(with_all.predict(X), other.predict(X))


def test_a_row_of_weight_two_is_the_row_twice(backend):
    X, y = WINE
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = classes(backend).fit(X, y, weights)
    repeated = classes(backend).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert np.allclose(weighted.estimator_weights_, repeated.estimator_weights_, rtol=1e-6)
    assert np.array_equal(weighted.predict(X), repeated.predict(X))


def test_class_weights_of_the_tree_count_in_every_round(backend):
    X, y = CANCER
    plain, heavy = (
        classes(backend, estimator=DecisionTreeClassifier(max_depth=1, class_weight=w)).fit(X, y)
        for w in (None, {0: 9.0, 1: 1.0})
    )
    assert (heavy.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()
    none = DecisionTreeClassifier(class_weight={0: 0.0, 1: 1.0})
    with pytest.raises(ValueError, match="leave no row any weight"):
        classes(backend, estimator=none).fit(X, y, y == 0)
