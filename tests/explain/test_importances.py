"""Importances: impurity, out of bag and permutation beside slow implementations; Boruta's tests."""

import pickle

import numpy as np
import pandas as pd
import pytest
from saved import reloaded
from scipy.stats import binom
from sklearn.datasets import load_diabetes, load_iris

import gpuforest as gf
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.core.bins import BinEdges
from gpuforest.explain import importances


def test_trees_without_a_split_do_not_count_and_refit_forgets(backend):
    # one row of four is of the other class: some bags miss it
    X = np.array([[0.0, 5], [1, 5], [2, 5], [3, 5]])
    model = gf.RandomForestClassifier(20, random_state=0, backend=backend).fit(X, [0, 0, 0, 1])
    assert (np.diff(model.forest_.tree_offsets) == 1).any()
    assert model.feature_importances_.tolist() == [1, 0]
    X = np.random.default_rng(0).random((60, 2))
    model = gf.DecisionTreeClassifier(max_depth=1, backend=backend)
    assert model.fit(X, X[:, 0] > 0.5).feature_importances_.tolist() == [1, 0]
    assert model.fit(X, X[:, 1] > 0.5).feature_importances_.tolist() == [0, 1]


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
            permuted[:, f] = permuted[importances.random_order(forest.seed_, t, len(out)), f]
            found[f, t] = score(X[out]) - score(permuted)
    return found


@pytest.mark.parametrize(("forest", "X", "y"), [
    (gf.RandomForestClassifier(6), *IRIS),
    (gf.RandomForestClassifier(6, voting="hard"), IRIS[0], NAMES[IRIS[1]]),
    (gf.RandomForestClassifier(6), IRIS[0], two(IRIS[1])),
    (gf.ExtraTreesClassifier(6, bootstrap=True, max_samples=0.5), *IRIS),
    (gf.RandomForestRegressor(6), *DIABETES),
    (gf.RandomForestRegressor(6, max_samples=100), DIABETES[0], two(DIABETES[1])),
    (gf.BaggingRegressor(n_estimators=4, max_features=3), *DIABETES),
    (gf.BaggingRegressor(n_estimators=4, bootstrap=False, max_samples=0.7), *DIABETES),
], ids=range(8))  # fmt: skip
def test_as_the_slow_implementation(forest, X, y):
    found = gf.oob_permutation_importance(forest.set_params(random_state=3).fit(X, y), X, y)
    expected = slow(forest, X, y)
    assert np.array_equal(found.importances, expected)
    assert np.array_equal(found.importances_mean, expected.mean(axis=1))
    assert np.array_equal(found.importances_std, expected.std(axis=1))
    error = expected.std(axis=1) / np.sqrt(expected.shape[1])
    assert np.array_equal(found.importances_error, error)


def test_trees_without_rows_out_of_bag_are_left_out():
    X, y = IRIS[0][::10], IRIS[1][::10]
    forest = gf.RandomForestClassifier(30, max_samples=45, random_state=0).fit(X, y)
    found = gf.oob_permutation_importance(forest, X, y)
    known = ~np.isnan(found.importances).all(axis=0)
    everything = np.array([len(set(rows)) == len(X) for rows in forest.estimators_samples_])
    assert np.array_equal(known, ~everything)
    assert 0 < known.sum() < 30
    assert np.array_equal(found.importances_mean, found.importances[:, known].mean(axis=1))
    forest = gf.RandomForestClassifier(3, max_samples=5000, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="lower max_samples"):
        gf.oob_permutation_importance(forest, X, y)


@pytest.mark.parametrize("find", [gf.oob_impurity_importance, gf.oob_permutation_importance])
def test_what_cannot_be_is_refused(find, tmp_path):
    X, y = IRIS
    forest = gf.RandomForestClassifier(3, random_state=0).fit(X, y)
    plain = gf.RandomForestClassifier(3, bootstrap=False).fit(X, y)
    loaded = reloaded(gf.BaggingRegressor(n_estimators=3).fit(X, y), tmp_path)
    for model, rows, target, message in (
        (forest, X, NAMES[y], "other classes"),
        (forest, X, two(y), "other classes"),
        (forest, X[:, :2], y, "2 features"),
        (plain, X, y, "no row is out of bag without bags: fit with bootstrap=True"),
        (loaded, X, y, "the bags are not known to Bagging"),
        (gf.RandomForestClassifier(), X, y, "not fitted yet"),
    ):
        with pytest.raises(ValueError, match=message):
            find(model, rows, target)
    for other, name in ((gf.DecisionTreeClassifier().fit(X, y), "DecisionTreeC"), (None, "None")):
        with pytest.raises(TypeError, match=rf"{find.__name__} takes a fitted Random.* {name}"):
            find(other, X, y)


def test_groups_of_features_are_permuted_together():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 300)
    X = pd.DataFrame(np.column_stack([level == 0, level == 1, level == 2, rng.random(300)]) * 1.0)
    X.columns = ["a", "b", "c", "noise"]
    forest = gf.RandomForestClassifier(20, random_state=0).fit(X, level)
    alone = gf.oob_permutation_importance(forest, X, level)
    found = gf.oob_permutation_importance(forest, X, level, groups=[["a", "b", 2], ["noise"]])
    assert found.importances.shape == (2, 20)
    assert np.array_equal(found.importances[1], alone.importances[3])
    assert found.importances_mean[0] > 1.5 * alone.importances_mean[:3].max()
    each = [[f] for f in range(4)]
    again = gf.oob_permutation_importance(forest, X, level, groups=each)
    assert np.array_equal(again.importances, alone.importances)
    with pytest.raises(ValueError, match="groups has 'd', which is no feature"):
        gf.oob_permutation_importance(forest, X, level, groups=[["d"]])


RNG = np.random.default_rng(0)
X = np.stack([RNG.normal(size=80), RNG.integers(0, 3, 80), RNG.integers(0, 20, 80)], axis=1)
CLASSES = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (RNG.random(80) < 0.3)]
NUMBERS = np.stack([X[:, 0] + RNG.normal(size=80), X[:, 1]], axis=1) + np.array([1000, 5])


def by_definition(forest, y):
    """The importances f64[F, T] from paths and bags, one split after another."""
    found = np.zeros((X.shape[1], len(forest)))
    for t, (tree, bag) in enumerate(
        zip(forest.estimators_, forest.estimators_samples_, strict=True)
    ):
        out = np.setdiff1d(np.arange(len(X)), bag)
        inside = y[bag] - y[bag].mean(axis=0) if y.dtype == float else y[bag]
        outside = y[out] - y[bag].mean(axis=0) if y.dtype == float else y[out]
        near, far = (tree.decision_path(X[rows]).toarray() > 0 for rows in (bag, out))
        shown = tree.tree_

        def part(node):
            n = far[:, node].sum()  # noqa: B023
            own, other = inside[near[:, node]], outside[far[:, node]]  # noqa: B023
            return n * (own.mean(axis=0) * other.mean(axis=0)).sum() if n else 0.0

        for node in np.flatnonzero(shown.feature >= 0):
            sides = part(shown.children_left[node]) + part(shown.children_right[node])
            found[shown.feature[node], t] += (sides - part(node)) / len(out)
    return found


def test_the_definition_also_by_hand():
    given = {"n_estimators": 2, "random_state": 1}
    forest = gf.RandomForestClassifier(**given).fit(X, CLASSES)
    found = gf.oob_impurity_importance(forest, X, CLASSES).importances
    one_hot = (CLASSES[:, None] == forest.classes_).astype(int)
    assert np.allclose(found, by_definition(forest, one_hot))  # sums in another order
    forest = gf.RandomForestRegressor(max_features=1, **given).fit(X, NUMBERS)
    found = gf.oob_impurity_importance(forest, X, NUMBERS).importances
    assert np.allclose(found, by_definition(forest, NUMBERS) / 2)  # means over two outputs
    forest = gf.RandomForestClassifier(1, bootstrap=False, max_depth=1, random_state=0)
    forest.fit([[0.0], [0], [1], [1]], [0, 0, 1, 1])
    leaves = np.array([[0, 0], [2, 0], [1, 0]])  # of three rows, all of class 0
    assert importances.oob_gains(forest.forest_, 0, 1, leaves).tolist() == [0.5, 0, 0]


def strobl(relevance, seed):
    """The design of Strobl et al. 2007: a normal column, and columns of 2, 4, 10 and 20 levels, of
    which the one of two levels may say something."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=120), *(rng.integers(0, n, 120) for n in (2, 4, 10, 20))]
    y = rng.random(120) < 0.5 + relevance * (2 * columns[1] - 1)
    forest = gf.RandomForestClassifier(20, max_features=2, random_state=seed)
    forest.fit(np.stack(columns, axis=1), y)
    unbiased = gf.oob_impurity_importance(forest, np.stack(columns, axis=1), y)
    return unbiased.importances_mean, forest.feature_importances_


def test_columns_that_say_nothing_have_no_importance():
    unbiased, usual = map(np.array, zip(*(strobl(0.0, seed) for seed in range(25)), strict=True))
    means, errors = unbiased.mean(axis=0), unbiased.std(axis=0, ddof=1) / 5
    assert (np.abs(means) < 2 * errors).all()
    levels = usual.mean(axis=0)[1:]
    assert (np.diff(levels) > 0.03).all()  # the more levels, the larger


def test_rows_of_weight_zero_do_not_count_and_combinations_share_gains():
    weight = np.arange(80) < 60
    forest = gf.RandomForestClassifier(5, random_state=0).fit(X, CLASSES, sample_weight=weight)
    other = np.where(weight, CLASSES, "a")
    found = gf.oob_impurity_importance(forest, X, CLASSES).importances
    assert np.array_equal(found, gf.oob_impurity_importance(forest, X, other).importances)
    forest = gf.RandomForestClassifier(5, feature_combinations=2, random_state=0).fit(X, CLASSES)
    plain = gf.oob_impurity_importance(forest, X, CLASSES)
    assert np.isfinite(plain.importances_mean).all()
    assert plain.importances_mean.argmax() == 0


def asking(kind=gf.RandomForestClassifier, **given):
    return kind(8, unbiased_importances=True, random_state=1, **given)


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.ExtraTreesRegressor])
def test_the_attribute_is_what_the_function_finds(kind, backend, tmp_path):
    y = CLASSES if kind is gf.RandomForestClassifier else NUMBERS
    weight = RNG.integers(0, 3, 80)
    forest = asking(kind, bootstrap=True, backend=backend).fit(X, y, weight)
    found = forest.unbiased_feature_importances_
    permuted = gf.oob_permutation_importance(forest, X, y).importances
    for same in (forest, reloaded(forest, tmp_path), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(same.unbiased_feature_importances_, found)
        assert np.array_equal(gf.oob_impurity_importance(same, X, y).importances_mean, found)
        assert np.array_equal(gf.oob_permutation_importance(same, X, y).importances, permuted)


def test_it_is_there_only_if_it_was_asked_for(monkeypatch):
    def not_called(*arguments):
        raise AssertionError

    monkeypatch.setattr("gpuforest.estimators.out_of_bag.unbiased_importances", not_called)
    words = "a fit with unbiased_importances=True; gpuforest"
    for forest, message in (
        (gf.RandomForestClassifier(2).fit(X, CLASSES), words),
        (gf.BaggingClassifier().fit(X, CLASSES), words),
        (asking(), "not fitted yet"),
    ):
        with pytest.raises(AttributeError, match=message):
            _ = forest.unbiased_feature_importances_
    with pytest.raises(ValueError, match="bootstrap=True; set that, or unbiased_importances=False"):
        asking(bootstrap=False).fit(X, CLASSES)


def test_trees_that_are_added_count_also_where_bags_have_all_rows():
    whole = asking().fit(X, CLASSES).unbiased_feature_importances_
    forest = gf.RandomForestClassifier(3, warm_start=True, random_state=1).fit(X, CLASSES)
    forest.set_params(n_estimators=8, unbiased_importances=True).fit(X, CLASSES)
    assert np.array_equal(forest.unbiased_feature_importances_, whole)
    later = gf.RandomForestClassifier(8, warm_start=True, random_state=1).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        later.set_params(unbiased_importances=True).fit(X, CLASSES)
    assert np.array_equal(later.unbiased_feature_importances_, whole)
    with pytest.warns(UserWarning, match="No row is out of any bag"):
        forest = asking().fit(X[:1], CLASSES[:1])
    assert np.isnan(forest.unbiased_feature_importances_).all()


def test_a_file_whose_importances_do_not_fit(tmp_path):
    forest = asking().fit(X, CLASSES)
    for found in ([1.0], [0.0, np.inf, 0.0]):
        forest._unbiased_importances_ = np.array(found)
        words = r"importances (that does not fit|out of range)"
        with pytest.raises(gf.ModelFormatError, match=words):
            reloaded(forest, tmp_path)


def test_binned_data_and_other_targets():
    data = gf.BinnedData.from_blocks([(X, CLASSES)], random_state=1)
    forest = gf.RandomForestClassifier(4, random_state=1).fit(data)
    found = gf.oob_impurity_importance(forest, data, None).importances
    assert np.array_equal(found, gf.oob_impurity_importance(forest, X, CLASSES).importances)
    other = gf.BinnedData.from_blocks([(X + 1, CLASSES)], random_state=1)
    with pytest.raises(ValueError, match="X has other bins than the data"):
        gf.oob_impurity_importance(forest, other, None)
    numbers = gf.RandomForestRegressor(4, random_state=1).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="y has other values than in training"):
        gf.oob_impurity_importance(numbers, X, NUMBERS + 100)


CODES = np.random.default_rng(0).integers(0, 9, (6, 50)).astype(np.uint8)
KEY = importances.round_key(1, 0)
EDGES = BinEdges.of([np.arange(8.0)] * 6)


def test_orders_of_shadows_differ_and_blocks_change_nothing(monkeypatch):
    rows = np.tile(np.arange(50, dtype=np.uint8), (3, 1))
    keys = KEY, importances.round_key(1, 1), importances.round_key(2, 0)
    orders = np.concatenate([importances.shadows_of(rows, key) for key in keys])
    assert len(np.unique(orders, axis=0)) == 9
    assert np.array_equal(orders[:3], importances.shadows_of(rows, KEY))
    whole = importances.shadows_of(CODES, KEY)
    monkeypatch.setattr("gpuforest.explain.importances.HASHES_AT_ONCE", 60)
    assert np.array_equal(importances.shadows_of(CODES, KEY), whole)


def test_some_features_and_their_shadows_keep_their_meaning():
    features = np.array([1, 4])
    codes, edges, sources = importances.with_shadows(CODES, EDGES, features, KEY)
    assert sources.tolist() == [1, 4, 1, 4, 1, 4, 1]  # five shadows at the least
    assert np.array_equal(codes[:2], CODES[features])
    assert np.array_equal(np.sort(codes), np.sort(CODES[sources]))
    assert edges.n_features == 7
    assert np.array_equal(edges.values, np.tile(np.arange(8.0), 7))
    values = np.concatenate([np.arange(300.0), np.arange(2.0)])
    kinds = np.array([0, CATEGORICAL], np.uint8)
    edges = BinEdges(values, np.array([0, 300, 302]), kinds, {1: ("a", "b")})
    assert edges.missing_code == 301
    codes = np.array([[0, 300, 301, 7], [0, 1, 301, 2]], np.uint16)
    found, taken, _ = importances.with_shadows(codes, edges, np.array([1]), KEY)
    assert taken.categories == dict.fromkeys(range(6), ("a", "b"))
    assert taken.missing_code == 4  # three bins and a spare one
    assert found.dtype == np.uint8  # as few bins need
    assert found[0].tolist() == [0, 1, 4, 2]
    assert np.array_equal(np.sort(found[1]), [0, 1, 2, 4])


@pytest.mark.parametrize("n_rounds", [1, 6, 40])
def test_decisions_by_their_definition(n_rounds):
    """Benjamini and Hochberg: the largest k such that the k-th chance is at most k / F alpha."""
    hits, alpha = np.random.default_rng(n_rounds).integers(0, n_rounds + 1, 30), 0.05
    hits[:6] = n_rounds
    for found, chances in zip(
        importances.decided(hits, n_rounds, alpha),
        (binom.sf(hits - 1, n_rounds, 0.5), binom.cdf(hits, n_rounds, 0.5)),
        strict=True,
    ):
        passes = np.sort(chances) <= np.arange(1, 31) / 30 * alpha
        limit = np.sort(chances)[passes].max(initial=0.0)
        assert np.array_equal(found, (chances <= limit) & (chances <= alpha / n_rounds))
