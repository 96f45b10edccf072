"""Impurity importances by the rows out of bag: the definition, and features that say nothing."""

import pickle

import numpy as np
import pytest

from gpuforest import (
    BaggingClassifier,
    BinnedData,
    ExtraTreesRegressor,
    ModelFormatError,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
    oob_impurity_importance,
    oob_permutation_importance,
)
from gpuforest.engine.nodes import is_leaf
from gpuforest.explain.unbiased import oob_gains

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


def test_the_definition_for_classes(backend):
    forest = RandomForestClassifier(2, random_state=1, backend=backend).fit(X, CLASSES)
    found = oob_impurity_importance(forest, X, CLASSES).importances
    one_hot = (CLASSES[:, None] == forest.classes_).astype(int)
    assert np.allclose(found, by_definition(forest, one_hot))  # sums in another order


def test_the_definition_for_numbers(backend):
    forest = RandomForestRegressor(2, random_state=1, max_features=1, backend=backend)
    forest.fit(X, NUMBERS)
    found = oob_impurity_importance(forest, X, NUMBERS).importances
    assert np.allclose(found, by_definition(forest, NUMBERS) / 2)  # means over two outputs


def test_backends_agree_to_the_last_bit():
    found = []
    for name in ("numpy", "numba"):
        forest = RandomForestClassifier(5, random_state=1, backend=name).fit(X, CLASSES)
        found.append(oob_impurity_importance(forest, X, CLASSES).importances)
    assert np.array_equal(*found)


def test_the_case_worked_by_hand():
    forest = RandomForestClassifier(1, bootstrap=False, max_depth=1, random_state=0)
    forest.fit([[0.0], [0], [1], [1]], [0, 0, 1, 1])
    leaves = np.array([[0, 0], [2, 0], [1, 0]])  # of three rows, all of class 0
    assert oob_gains(forest.forest_, 0, 1, leaves).tolist() == [0.5, 0, 0]


def test_with_the_rows_of_the_bag_it_is_the_usual_gain():
    forest = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(X, CLASSES).forest_
    sums = np.zeros((forest.n_nodes, 3), np.int64)
    leaf = is_leaf(forest.nodes)
    sums[leaf] = forest.node_sums(0, 1)[leaf]
    total = forest.node_sums(0, 1)[0]
    shares = total / total.sum()
    assert np.isclose(oob_gains(forest, 0, 1, sums).sum(), 80 * (1 - (shares**2).sum()))


def strobl(relevance, seed):
    """The design of Strobl et al. 2007: a normal column, and columns of 2, 4, 10 and 20 levels, of
    which the one of two levels may say something."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=120), *(rng.integers(0, n, 120) for n in (2, 4, 10, 20))]
    y = rng.random(120) < 0.5 + relevance * (2 * columns[1] - 1)
    forest = RandomForestClassifier(20, max_features=2, random_state=seed)
    forest.fit(np.stack(columns, axis=1), y)
    unbiased = oob_impurity_importance(forest, np.stack(columns, axis=1), y)
    return unbiased.importances_mean, forest.feature_importances_


def test_columns_that_say_nothing_have_no_importance():
    unbiased, usual = map(np.array, zip(*(strobl(0.0, seed) for seed in range(25)), strict=True))
    means, errors = unbiased.mean(axis=0), unbiased.std(axis=0, ddof=1) / 5
    assert (np.abs(means) < 2 * errors).all()
    levels = usual.mean(axis=0)[1:]
    assert (np.diff(levels) > 0.03).all()  # the more levels, the larger


def test_the_order_of_strobls_simulation():
    unbiased, usual = map(np.array, zip(*(strobl(0.2, seed) for seed in range(10)), strict=True))
    unbiased, usual = unbiased.mean(axis=0), usual.mean(axis=0)
    assert unbiased.argmax() == 1
    assert np.delete(unbiased, 1).max() < unbiased[1] / 4  # no other column comes near
    assert usual[[0, 3, 4]].min() > usual[1]  # numbers, 10 and 20 levels before the one that counts


def test_rows_of_weight_zero_do_not_count():
    weight = np.arange(80) < 60
    forest = RandomForestClassifier(5, random_state=0).fit(X, CLASSES, sample_weight=weight)
    other = np.where(weight, CLASSES, "a")
    found = oob_impurity_importance(forest, X, CLASSES).importances
    assert np.array_equal(found, oob_impurity_importance(forest, X, other).importances)


def test_combinations_share_their_gains():
    forest = RandomForestClassifier(5, feature_combinations=2, random_state=0).fit(X, CLASSES)
    plain = oob_impurity_importance(forest, X, CLASSES)
    assert np.isfinite(plain.importances_mean).all()
    assert plain.importances_mean.argmax() == 0


def test_without_rows_out_of_bag():
    forest = RandomForestClassifier(2, bootstrap=False).fit(X, CLASSES)
    with pytest.raises(ValueError, match="no row is out of bag without bags"):
        oob_impurity_importance(forest, X, CLASSES)
    with pytest.raises(TypeError, match="oob_impurity_importance takes a fitted RandomForest"):
        oob_impurity_importance(None, X, CLASSES)


def asking(kind=RandomForestClassifier, **given):
    return kind(8, unbiased_importances=True, random_state=1, **given)


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesRegressor])
def test_the_attribute_is_what_the_function_finds(kind, backend, tmp_path):
    y = CLASSES if kind is RandomForestClassifier else NUMBERS
    forest = asking(kind, bootstrap=True, backend=backend).fit(X, y)
    found = forest.unbiased_feature_importances_
    assert np.array_equal(found, oob_impurity_importance(forest, X, y).importances_mean)
    forest.save(tmp_path / "forest")
    for same in (load(tmp_path / "forest"), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(same.unbiased_feature_importances_, found)


def test_it_is_there_only_if_it_was_asked_for(monkeypatch):
    def not_called(*arguments):
        raise AssertionError

    monkeypatch.setattr("gpuforest.estimators.bagged.unbiased_importances", not_called)
    for forest in (RandomForestClassifier(2).fit(X, CLASSES), BaggingClassifier().fit(X, CLASSES)):
        with pytest.raises(AttributeError, match="a fit with unbiased_importances=True; gpuforest"):
            _ = forest.unbiased_feature_importances_
    with pytest.raises(ValueError, match="bootstrap=True; set that, or unbiased_importances=False"):
        asking(bootstrap=False).fit(X, CLASSES)
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = asking().unbiased_feature_importances_


def test_trees_that_are_added_count():
    whole = asking().fit(X, CLASSES).unbiased_feature_importances_
    forest = RandomForestClassifier(3, warm_start=True, random_state=1).fit(X, CLASSES)
    forest.set_params(n_estimators=8, unbiased_importances=True).fit(X, CLASSES)
    assert np.array_equal(forest.unbiased_feature_importances_, whole)
    later = RandomForestClassifier(8, warm_start=True, random_state=1).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        later.set_params(unbiased_importances=True).fit(X, CLASSES)
    assert np.array_equal(later.unbiased_feature_importances_, whole)


def test_bags_of_all_rows():
    with pytest.warns(UserWarning, match="No row is out of any bag"):
        forest = asking().fit(X[:1], CLASSES[:1])
    assert np.isnan(forest.unbiased_feature_importances_).all()


def test_a_file_whose_importances_do_not_fit(tmp_path):
    forest = asking().fit(X, CLASSES)
    for found, wrong in (([1.0], "do not fit"), ([0.0, np.inf, 0.0], "is no number")):
        forest._unbiased_importances_ = np.array(found)
        forest.save(tmp_path / "forest")
        with pytest.raises(ModelFormatError, match=wrong):
            load(tmp_path / "forest")


@pytest.mark.parametrize("find", [oob_impurity_importance, oob_permutation_importance])
def test_loaded_forests_know_their_bags(find, tmp_path):
    weight = RNG.integers(0, 3, 80)
    for kind, y in ((RandomForestClassifier, CLASSES), (RandomForestRegressor, NUMBERS)):
        forest = kind(4, random_state=1).fit(X, y, sample_weight=weight)
        forest.save(tmp_path / "forest")
        loaded = load(tmp_path / "forest")
        assert np.array_equal(find(loaded, X, y).importances, find(forest, X, y).importances)


def test_binned_data_and_other_targets():
    data = BinnedData.from_blocks([(X, CLASSES)], random_state=1)
    forest = RandomForestClassifier(4, random_state=1).fit(data)
    found = oob_impurity_importance(forest, data, None).importances
    assert np.array_equal(found, oob_impurity_importance(forest, X, CLASSES).importances)
    other = BinnedData.from_blocks([(X + 1, CLASSES)], random_state=1)
    with pytest.raises(ValueError, match="X has other bins than the data"):
        oob_impurity_importance(forest, other, None)
    numbers = RandomForestRegressor(4, random_state=1).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="y has other values than in training"):
        oob_impurity_importance(numbers, X, NUMBERS + 100)
