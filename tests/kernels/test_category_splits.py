"""Splits by categories: the best set of them, chains of them, and where what is unknown goes."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from engine import DeepFrom, Task, later_rows, same_forest
from hypothesis import given
from hypothesis import strategies as st
from tasks import CLASSIFICATION, REGRESSION, category_tasks

import gpuforest
from gpuforest.backends import numba, numpy
from gpuforest.core import nodes
from gpuforest.growing import grow, predict
from gpuforest.kernels.sets.order import MOST_TRIED
from gpuforest.splits.kinds import kind_in

NUMPY = numpy.NumpyBackend()


@given(
    task=category_tasks(), rows=st.sampled_from([1, 4, 20, 60]), budget=st.sampled_from([1, 1000])
)
def test_forests_of_categories_are_the_reference(task, rows, budget):
    forest = task.grow(NUMPY)
    assert same_forest(forest, task.grow(numpy.NumpyBackend(1, budget)))
    X = later_rows(task)
    for backend in (DeepFrom(0), DeepFrom(rows, 2), numba.NumbaBackend(), numba.NumbaBackend(4)):
        assert same_forest(forest, task.grow(backend)), vars(backend)
        assert np.array_equal(predict.apply(forest, X, NUMPY), predict.apply(forest, X, backend))


def best_of_all_sets(task: Task, x: np.ndarray) -> float:
    """The highest score of all allowed ways to part the categories in two, each looked at."""
    coding, y = task.coded()
    sums = np.zeros((len(x), coding.n_channels), np.int64)
    if coding.is_classes:
        sums[np.arange(len(x)), y.reshape(-1)] = 1
    else:
        sums[:, 0], sums[:, 1:] = 1, y if y.ndim == 2 else y[:, None]
    names = np.where(np.isnan(x), -1, x)
    found = -math.inf
    groups = np.unique(names)
    least = max(task.min_rows_leaf, task.min_weight_leaf)
    for size in range(1, len(groups)):
        for chosen in combinations(groups, size):
            is_left = np.isin(names, chosen)
            if min(is_left.sum(), (~is_left).sum()) < least:
                continue
            left = sums[is_left].sum(axis=0)
            sides = (left, sums.sum(axis=0) - left)
            scores = [task.rules.criterion.side_score(np, s) for s in sides]
            found = max(found, float(scores[0] + scores[1]))
    return found


@given(
    seed=st.integers(0, 2**32),
    criterion=st.sampled_from(CLASSIFICATION + REGRESSION),
    n_classes=st.sampled_from([2, 2, 3, 5]),
    n_categories=st.integers(2, MOST_TRIED - 1),
    least=st.sampled_from([1, 1, 3, 8]),
    by_weight=st.booleans(),
)
def test_the_best_set_is_that_of_exhaustive_search(
    seed, criterion, n_classes, n_categories, least, by_weight
):
    rng = np.random.default_rng(seed)
    x = np.minimum(rng.integers(0, 2 * n_categories, 40), n_categories - 1).astype(float)
    x[rng.random(40) < 0.1] = np.nan
    y = rng.integers(0, n_classes, 40)
    y[:n_classes] = np.arange(n_classes)
    if criterion in REGRESSION:
        # for Poisson some categories have zeros alone, whose mean has no logarithm
        y = np.where(x < n_categories // 2, 0.0, y + rng.integers(0, 3, 40))
        y[0] = 1.0
    limits = {"min_weight_leaf" if by_weight else "min_rows_leaf": least}
    task = Task(x[:, None], y, criterion, categorical=(0,), max_depth=1).but(**limits)
    training = task.training(NUMPY)
    found = kind_in(training).search(NUMPY, training, grow.roots(training, NUMPY, 0, 1))
    assert found.score[0] == best_of_all_sets(task, x)
    assert same_forest(task.grow(NUMPY), task.grow(DeepFrom(0)))
    assert same_forest(task.grow(NUMPY), task.grow(DeepFrom(100)))


@pytest.mark.parametrize("n_categories", [64, 65, 255, 256, 5000])
def test_as_many_categories_as_codes_hold(n_categories):
    rng = np.random.default_rng(0)
    x = np.concatenate([np.arange(n_categories), rng.integers(0, n_categories, 500)])
    effect = rng.random(n_categories) < 0.5
    task = Task(x[:, None].astype(float), effect[x].astype(int), categorical=(0,))
    forest = task.grow(NUMPY)
    assert forest.n_nodes == 3  # one set parts the classes
    assert same_forest(forest, task.grow(numba.NumbaBackend()))
    leaf = predict.apply(forest, task.X, NUMPY)[:, 0]
    assert len(np.unique(leaf[task.y == 0])) == len(np.unique(leaf[task.y == 1])) == 1


def test_many_classes_are_ordered_along_their_first_direction():
    """Categories 0 .. 19 in two groups, far apart in their classes: the first set is a group."""
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(20), 50)
    group = rng.permutation(20) < 10
    y = np.where(group[x], rng.integers(0, 2, 1000), rng.integers(2, 4, 1000))
    for criterion in CLASSIFICATION:
        task = Task(x[:, None].astype(float), y, criterion, categorical=(0,), max_depth=1)
        forest = task.grow(NUMPY)
        leaf = predict.apply(forest, task.X, NUMPY)[:, 0]
        assert len({(bool(group[c]), int(at)) for c, at in zip(x, leaf, strict=True)}) == 2


def test_pruned_trees_keep_their_sets():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (300, 3)).astype(float)
    y = (X[:, 0] % 3 + rng.integers(0, 2, 300)).astype(int)

    def fitted(backend="numpy", **rest):
        return gpuforest.DecisionTreeClassifier(
            categorical_features=[0, 1, 2], backend=backend, **rest
        ).fit(X, y)

    whole = fitted()
    path = whole.cost_complexity_pruning_path(X, y)
    above_zero = np.flatnonzero(path.ccp_alphas > 0)  # at zero nothing is pruned
    for at in above_zero[[0, len(above_zero) // 2, -2]]:
        pruned, compiled = (fitted(b, ccp_alpha=path.ccp_alphas[at]) for b in ("numpy", "numba"))
        assert same_forest(pruned.forest_, compiled.forest_)
        assert 1 < pruned.get_n_leaves() <= path.n_leaves[at]
        assert len(pruned.forest_.sets) == nodes.has_set(pruned.forest_.nodes).sum()
        # what is left parts the rows as the whole tree does: leaves are unions of its leaves
        pairs = np.stack([whole.apply(X), pruned.apply(X)], axis=1)
        assert len(np.unique(pairs, axis=0)) == len(np.unique(pairs[:, 0]))
    # each tree of a forest has its own sets
    forest = gpuforest.RandomForestClassifier(
        5, categorical_features=[0, 1, 2], random_state=0, backend="numpy"
    ).fit(X, y)
    each = np.stack([tree.apply(X) for tree in forest.estimators_], axis=1)
    assert np.array_equal(each, forest.apply(X))


def test_unknown_categories_go_with_the_heavier_side_and_not_with_the_missing():
    x = ["a"] * 6 + ["b"] * 3 + [None] * 2
    y = [0] * 6 + [1] * 3 + [1] * 2
    X = pd.DataFrame({"x": x})
    for split in ("subset", "multiway"):
        tree = gpuforest.DecisionTreeClassifier(categorical_split=split, backend="numpy").fit(X, y)
        found = tree.predict(pd.DataFrame({"x": ["a", "b", "new", None]}, dtype=object))
        assert found.tolist() == [0, 1, 0, 1]
