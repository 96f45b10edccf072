"""Out-of-bag permutation importances: against a slow implementation, and what they should show."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris

import gpuforest
from gpuforest import (
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    oob_permutation_importance,
)
from gpuforest.explain.importances import random_order

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
NAMES = np.array(["a", "b", "c"])


def two(y):
    return np.stack([y, np.roll(y, 1)], axis=1)


def slow(forest, X, y):
    """With the trees as estimators, the bags' rows, and permuted values."""
    is_numbers = y.dtype.kind == "f"
    y = y.reshape(len(y), -1)
    found = np.zeros((X.shape[1], len(forest.estimators_)))
    for t, (tree, drawn) in enumerate(
        zip(forest.estimators_, forest.estimators_samples_, strict=True)
    ):
        out = np.setdiff1d(np.arange(len(X)), drawn)

        def score(rows, tree=tree, true=y[out]):
            predicted = tree.predict(rows).reshape(true.shape)
            if is_numbers:
                return -np.mean((true - predicted) ** 2)
            return np.mean((true == predicted).all(axis=1))

        for f in range(X.shape[1]):
            permuted = X[out]
            permuted[:, f] = permuted[random_order(forest.seed_, t, len(out)), f]
            found[f, t] = score(X[out]) - score(permuted)
    return found


@pytest.mark.parametrize(
    ("forest", "X", "y"),
    [
        (RandomForestClassifier(6), *IRIS),
        (RandomForestClassifier(6, voting="hard"), IRIS[0], NAMES[IRIS[1]]),
        (RandomForestClassifier(6), IRIS[0], two(IRIS[1])),
        (ExtraTreesClassifier(6, bootstrap=True, max_samples=0.5), *IRIS),
        (RandomForestRegressor(6), *DIABETES),
        (RandomForestRegressor(6, max_samples=100), DIABETES[0], two(DIABETES[1])),
        (BaggingRegressor(n_estimators=4, max_features=3), *DIABETES),
        (BaggingRegressor(n_estimators=4, bootstrap=False, max_samples=0.7), *DIABETES),
    ],
    ids=range(8),
)
def test_as_the_slow_implementation(forest, X, y):
    found = oob_permutation_importance(forest.set_params(random_state=3).fit(X, y), X, y)
    expected = slow(forest, X, y)
    assert np.array_equal(found.importances, expected)
    assert np.array_equal(found.importances_mean, expected.mean(axis=1))
    assert np.array_equal(found.importances_std, expected.std(axis=1))
    error = expected.std(axis=1) / np.sqrt(expected.shape[1])
    assert np.array_equal(found.importances_error, error)


@pytest.mark.parametrize(
    ("kind", "data"), [(RandomForestClassifier, IRIS), (RandomForestRegressor, DIABETES)]
)
def test_backends_and_threads_agree(kind, data):
    found = []
    for backend, n_jobs in (("numpy", 1), ("numba", 1), ("numba", 3)):
        forest = kind(8, random_state=0, backend=backend, n_jobs=n_jobs).fit(*data)
        found.append(oob_permutation_importance(forest, *data).importances)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_noise_is_near_zero_and_what_is_not_used_is_zero(backend, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    X[:, 5] = 1.0  # never split on
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    forest = kind(60, random_state=0, backend=backend).fit(X, y)
    found = oob_permutation_importance(forest, X, y)
    mean, error = found.importances_mean, found.importances_error
    assert (mean[:2] > 20 * error[:2]).all()
    assert (np.abs(mean[2:5]) < mean[:2].min() / 10).all()
    assert (found.importances[5] == 0).all()


def test_missing_values_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = IRIS[0].copy(), IRIS[1]
    X[::7, 2] = np.nan
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    found = oob_permutation_importance(forest, X, y).importances
    frame = pd.DataFrame(X, columns=list("abcd"))
    other = RandomForestClassifier(5, random_state=0).fit(frame, y)
    assert np.array_equal(oob_permutation_importance(other, frame, y).importances, found)
    assert np.array_equal(found, slow(forest, X, y))


def test_trees_without_rows_out_of_bag_are_left_out():
    X, y = IRIS[0][::10], IRIS[1][::10]
    forest = RandomForestClassifier(30, max_samples=45, random_state=0).fit(X, y)
    found = oob_permutation_importance(forest, X, y)
    known = ~np.isnan(found.importances).all(axis=0)
    everything = np.array([len(set(rows)) == len(X) for rows in forest.estimators_samples_])
    assert np.array_equal(known, ~everything)
    assert 0 < known.sum() < 30
    assert np.array_equal(found.importances_mean, found.importances[:, known].mean(axis=1))
    forest = RandomForestClassifier(3, max_samples=5000, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="lower max_samples"):
        oob_permutation_importance(forest, X, y)


def test_what_cannot_be_is_refused(tmp_path):
    X, y = IRIS
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    for wrong, message in (
        ((X[:100], y[:100]), "100 rows, but the forest was fitted to 150"),
        ((X, NAMES[y]), "other classes"),
        ((X, two(y)), "other classes"),
        ((X[:, :2], y), "2 features"),
    ):
        with pytest.raises(ValueError, match=message):
            oob_permutation_importance(forest, *wrong)
    plain = RandomForestClassifier(3, bootstrap=False).fit(X, y)
    with pytest.raises(ValueError, match="fit with bootstrap=True"):
        oob_permutation_importance(plain, X, y)
    BaggingRegressor(n_estimators=3).fit(X, y).save(tmp_path / "model")
    with pytest.raises(ValueError, match="the bags are not known to Bagging"):
        oob_permutation_importance(gpuforest.load(tmp_path / "model"), X, y)
    with pytest.raises(ValueError, match="not fitted yet"):
        oob_permutation_importance(RandomForestClassifier(), X, y)
    with pytest.raises(TypeError, match="not a DecisionTreeClassifier"):
        oob_permutation_importance(DecisionTreeClassifier().fit(X, y), X, y)


def test_groups_of_features_are_permuted_together():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 300)
    X = pd.DataFrame(np.column_stack([level == 0, level == 1, level == 2, rng.random(300)]) * 1.0)
    X.columns = ["a", "b", "c", "noise"]
    forest = RandomForestClassifier(20, random_state=0).fit(X, level)
    alone = oob_permutation_importance(forest, X, level)
    found = oob_permutation_importance(forest, X, level, groups=[["a", "b", 2], ["noise"]])
    assert found.importances.shape == (2, 20)
    assert np.array_equal(found.importances[1], alone.importances[3])
    assert found.importances_mean[0] > 1.5 * alone.importances_mean[:3].max()
    each = [[f] for f in range(4)]
    again = oob_permutation_importance(forest, X, level, groups=each)
    assert np.array_equal(again.importances, alone.importances)
    with pytest.raises(ValueError, match="groups has 'd', which is no feature"):
        oob_permutation_importance(forest, X, level, groups=[["d"]])
