"""Growing: invariances, sums and orders that hold of any forest, and what rules forbid."""

import numpy as np
import pytest
from engine import DeepFrom, Task, same_forest
from hypothesis import given
from hypothesis import strategies as st
from laws import GROWERS, column, seeds, some_task, split_of

from gpuforest.backends import base, numba, numpy, slots
from gpuforest.backends.slots import distinct_rows
from gpuforest.core import nodes
from gpuforest.core.forest import Forest
from gpuforest.growing import assemble, predict
from gpuforest.growing.assemble import merged
from gpuforest.growing.bags import draw_bags


@given(seeds)
def test_the_order_of_the_rows_does_not_matter(seed):
    task = some_task(seed)
    order = np.random.default_rng(seed).permutation(len(task.X))
    for engine in GROWERS.values():
        forest = task.grow(engine)
        assert same_forest(forest, task.but(X=task.X[order], y=task.y[order]).grow(engine))


@given(seeds)
def test_a_weight_of_two_is_a_row_twice(seed):
    # moments of the same fixed point: the total weight is the same
    task = some_task(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(task.X)).astype(np.int32)
    # rows without weight are not there; the classes and the fixed point's range stay
    weights[[np.argmax(task.y), np.argmin(task.y)]] = 2
    for engine in GROWERS.values():
        weighted = task.but(weights=weights).grow(engine)
        repeated = task.but(X=np.repeat(task.X, weights, 0), y=np.repeat(task.y, weights, 0))
        assert same_forest(weighted, repeated.grow(engine))


@given(seeds)
def test_constant_columns_change_no_split(seed):
    task = some_task(seed)
    n_rows, n_features = task.X.shape
    task = task.but(n_tried=None)
    constants = np.full((n_rows, 3), [0.0, -1.0, np.nan])
    wider = task.but(X=np.hstack([task.X, constants]))
    for engine in GROWERS.values():
        assert np.array_equal(task.grow(engine).nodes, wider.grow(engine).nodes)
        # before the others they move their numbers, and nothing else
        before = task.but(X=np.hstack([constants, task.X])).grow(engine)
        forest = task.grow(engine)
        assert np.array_equal(forest.leaf_sums, before.leaf_sums)
        parts = [nodes.unpack(np, f.nodes) for f in (forest, before)]
        assert np.array_equal(np.where(parts[0][0] < 0, -1, parts[0][0] + 3), parts[1][0])
        for own, other in zip(parts[0][1:], parts[1][1:], strict=True):
            assert np.array_equal(own, other)
    assert n_features == forest.edges.n_features


def test_constant_features_do_not_count_as_tried(grower):
    # 1 of 30 columns varies: whatever the order, each node finds it
    X = np.zeros((64, 30))
    X[:, 17] = np.arange(64)
    forest = Task(X, np.arange(64) % 2, n_tried=1, n_trees=5).grow(grower)
    assert np.all(np.diff(forest.tree_offsets) == 127)
    feature = nodes.unpack(np, forest.nodes)[0]
    assert set(feature.tolist()) == {-1, 17}


def assert_whole(task: Task, engine: base.Backend) -> Forest:
    """Sums add up, children follow their parents, subtrees are contiguous."""
    forest = task.grow(engine)
    coding, y = task.coded()
    bags = engine.asnumpy(draw_bags(task.sampling, task.seed, 0, task.n_trees, engine))
    _, _, _, child = nodes.unpack(np, forest.nodes)
    leaf = nodes.is_leaf(forest.nodes)
    leaves = predict.apply(forest, task.X, engine)
    for t in range(task.n_trees):
        begin, end = forest.tree_offsets[t : t + 2]
        sums, n = forest.node_sums(t, t + 1), end - begin
        # 1. the bag's sums, and those of the rows that prediction takes to each leaf
        channels = np.zeros((len(task.X), coding.n_channels), np.int64)
        if coding.is_classes:
            channels[np.arange(len(y)), y[:, 0]] = bags[t]
        else:
            channels[:, 0], channels[:, 1:] = bags[t], bags[t][:, None] * y
        assert np.array_equal(sums[0], channels.sum(axis=0))
        arrived = np.zeros_like(sums)
        np.add.at(arrived, leaves[:, t], channels)
        at_leaf = leaf[begin:end]
        assert np.array_equal(arrived[at_leaf], sums[at_leaf])
        # 2. sizes of subtrees, from the last node to the root
        size = np.ones(n, np.int64)
        for node in range(n - 1, -1, -1):
            if not at_leaf[node]:
                first = child[begin + node]
                assert node < first < n - 1
                assert np.array_equal(sums[node], sums[first] + sums[first + 1])
                size[node] += size[first] + size[first + 1]
        assert size[0] == n
        # 3. a pair of children, all below the left one, all below the right one
        below = np.zeros(n, np.int64)
        below[0] = 1
        for node in range(n):
            if not at_leaf[node]:
                first = child[begin + node]
                assert first == below[node]
                below[first] = first + 2
                below[first + 1] = first + 1 + size[first]
    return forest


@given(seeds, st.booleans())
def test_trees_are_whole(seed, bootstrap):
    task = some_task(seed)
    task = task.but(n_draws=len(task.X) if bootstrap else 0)
    for engine in (numpy.NumpyBackend(), DeepFrom(0), DeepFrom(12), numba.NumbaBackend()):
        assert_whole(task, engine)


def test_a_chain_of_nodes_is_whole():
    # each split parts one row from the rest: as deep as a tree can be
    n = 300
    X = np.arange(n, dtype=float)[:, None]
    task = Task(X, np.arange(n) % 2.0, "squared_error", max_bins=1000)
    for engine in (numpy.NumpyBackend(), DeepFrom(5), numba.NumbaBackend()):
        assert assert_whole(task, engine).depth == n - 1


def test_least_rows_count_rows_not_weights(grower):
    X, y = column(0, 1, 2, 3, 4, 5), np.array([0, 1, 1, 1, 1, 1])
    weights = np.array([9, 1, 1, 1, 1, 1], np.int32)
    task = Task(X, y, weights=weights, max_depth=1)
    assert split_of(task.grow(grower))[1] == 0
    assert split_of(task.but(min_rows_leaf=2).grow(grower))[1] == 1
    assert split_of(task.but(min_rows_leaf=3).grow(grower))[1] == 2
    assert task.but(min_rows_leaf=4).grow(grower).n_nodes == 1
    assert task.but(min_rows_split=6).grow(grower).n_nodes == 3
    assert task.but(min_rows_split=7).grow(grower).n_nodes == 1


def test_least_rows_count_missing_ones(grower):
    X, y = column(0, 0, 0, 1, np.nan, np.nan), np.array([0, 0, 0, 1, 1, 1])
    task = Task(X, y, max_depth=1)
    assert split_of(task.but(min_rows_leaf=3).grow(grower)) == (0, 0, False)
    assert task.but(min_rows_leaf=4).grow(grower).n_nodes == 1


def test_least_gain(grower):
    # (2, 2) -> (2, 0) and (0, 2): from 8 / 4 to 2 + 2, a gain of 2
    task = Task(column(0, 0, 1, 1), np.array([0, 0, 1, 1]))
    assert task.but(min_gain=2.0).grow(grower).n_nodes == 3
    assert task.but(min_gain=np.nextafter(2.0, 3.0)).grow(grower).n_nodes == 1
    # a split of no gain at all
    task = Task(column(0, 0, 1, 1), np.array([0, 1, 0, 1]))
    assert task.grow(grower).n_nodes == 3
    assert task.but(min_gain=0.0).grow(grower).n_nodes == 3
    assert task.but(min_gain=1e-9).grow(grower).n_nodes == 1


@pytest.mark.parametrize("seed", range(4))
def test_waves_join_to_the_forest_grown_at_once(seed, monkeypatch):
    task = some_task(seed, n_trees=5)
    whole = task.grow(numpy.NumpyBackend())
    assert same_forest(whole, task.grow(numpy.NumpyBackend(1, 1)))  # a tree a wave
    assert same_forest(whole, merged([whole], task.training(numpy.NumpyBackend()), 1))
    assert nodes.is_leaf(whole.nodes).any()
    monkeypatch.setattr(assemble, "NODES_AT_ONCE", 10)  # threads place parts of a wave
    assert same_forest(whole, task.grow(DeepFrom(0, 2, 1)))
    assert same_forest(whole, task.grow(DeepFrom(20, 3)))


def test_equal_moments_are_their_mean(engine):
    # 0 and 2 have the mean of 1 and 1, a whole number, and (0, 1) has none
    task = Task(column(*range(6)), np.array([1.0, 1, 0, 2, 0, 1]), "squared_error")
    training, begin = task.training(engine), np.array([0, 2, 4])
    rows, ones = np.arange(6, dtype=np.int32), np.ones(6, np.int32)
    sums, constant = engine.totals(training, rows, ones, begin, begin + 2)
    assert constant.tolist() == [True, False, False]
    again = engine.totals(training, rows, ones, begin, begin + 2, sums)
    assert again[0] is sums
    assert again[1].tolist() == [True, False, False]


@given(st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), min_size=1, max_size=30))
def test_distinct_rows_are_there_once_in_one_order(rows):
    sums = np.array(rows)
    table, number = distinct_rows([sums[:4], sums[4:]])
    assert np.array_equal(table[number], sums)
    assert len(np.unique(table, axis=0)) == len(table)
    again, _ = distinct_rows([sums[::-1]])
    assert np.array_equal(again, table)  # whatever the order of the rows


def test_rows_of_one_key_are_told_apart(monkeypatch):
    monkeypatch.setattr(slots, "row_keys", lambda sums: np.zeros(len(sums), np.uint64))
    table, number = distinct_rows([np.array([[2, 1], [0, 3], [2, 1], [2, 0]])])
    assert table.tolist() == [[0, 3], [2, 0], [2, 1]]
    assert number.tolist() == [2, 0, 2, 1]
