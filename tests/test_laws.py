"""What must hold of any forest: invariances, sums, orders, and the worked examples."""

import array_api_compat.numpy as xp
import numpy as np
import pytest
from engine import DeepFrom, Task, same_forest, table
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuforest import hashing
from gpuforest.backends.base import Backend
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import BinEdges
from gpuforest.forest import Forest
from gpuforest.frontier import Frontier, draw_features
from gpuforest.grow import roots
from gpuforest.nodes import LEAF_WORD, is_leaf, pack_splits, unpack
from gpuforest.predict import apply, predict
from gpuforest.sampling import draw_bags
from gpuforest.target import encode_classes

SETTINGS = settings(derandomize=True, deadline=None, max_examples=30)
# every telling of a node's split: reference, wide, and the deep phase's three ways
ENGINES = {
    "numpy": NumpyBackend(),
    "wide": DeepFrom(0),
    "wide, threads": DeepFrom(0, 2),
    "deep": NumbaBackend(),
}
seeds = st.integers(0, 2**32)


@pytest.fixture(params=list(ENGINES))
def telling(request: pytest.FixtureRequest) -> Backend:
    return ENGINES[request.param]


def some_task(seed: int, **changes: object) -> Task:
    """A small task of any kind, of all rows once."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(2, 120))
    X = table(rng, n_rows, list("cnfb") + list(rng.permutation(list("tm0Nd"))[:2]))
    criterion = ("gini", "entropy", "squared_error", "misclassification")[seed % 4]
    y = rng.integers(0, 2 + seed % 3, n_rows)
    return Task(X, y, criterion, n_trees=2, n_tried=2 + seed % 5, seed=seed % 7).but(**changes)


def split_of(forest: Forest, node: int = 0) -> tuple[int, int, bool]:
    feature, bin, missing_left, _ = unpack(np, forest.nodes)
    return int(feature[node]), int(bin[node]), bool(missing_left[node])


def frontier_of(begin, end, rows, weights, sums) -> Frontier:
    S = len(begin)
    return Frontier(
        tree=np.zeros(S, np.int32), key=np.zeros(S, np.uint64), begin=begin, end=end, sums=sums,
        constant=np.zeros(S, bool), depth=np.zeros(S, np.int32), rows=rows, weights=weights,
        n_held=int((end - begin).sum()),
    )  # fmt: skip


def column(*values: float) -> np.ndarray:
    return np.array(values, np.float64)[:, None]


# invariances


@SETTINGS
@given(seeds)
def test_the_order_of_the_rows_does_not_matter(seed):
    task = some_task(seed)
    order = np.random.default_rng(seed).permutation(len(task.X))
    for engine in ENGINES.values():
        forest = task.grow(engine)
        assert same_forest(forest, task.but(X=task.X[order], y=task.y[order]).grow(engine))


@SETTINGS
@given(seeds)
def test_a_weight_of_two_is_a_row_twice(seed):
    # moments of the same fixed point: the total weight is the same
    task = some_task(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(task.X)).astype(np.int32)
    weights[np.random.default_rng(seed).integers(len(weights))] = 2
    kept = weights > 0
    task = task.but(X=task.X[kept], y=task.y[kept])
    weights = weights[kept]
    for engine in ENGINES.values():
        weighted = task.but(weights=weights).grow(engine)
        repeated = task.but(X=np.repeat(task.X, weights, 0), y=np.repeat(task.y, weights, 0))
        assert same_forest(weighted, repeated.grow(engine))


@SETTINGS
@given(seeds)
def test_rows_without_weight_are_not_there(seed):
    task = some_task(seed)
    weights = (np.random.default_rng(seed).random(len(task.X)) < 0.5).astype(np.int32)
    weights[0] = 1
    weights[np.argmax(task.y)] = 1  # the classes and the fixed point's range stay
    weights[np.argmin(task.y)] = 1
    kept = weights > 0
    for engine in ENGINES.values():
        weighted = task.but(weights=weights).grow(engine)
        assert same_forest(weighted, task.but(X=task.X[kept], y=task.y[kept]).grow(engine))


@SETTINGS
@given(seeds, st.integers(1, 5))
def test_the_first_trees_do_not_depend_on_how_many_follow(seed, n_trees):
    task = some_task(seed)
    task = task.but(n_draws=len(task.X))
    for engine in (NumpyBackend(), DeepFrom(10, 2), NumbaBackend(1, 1)):
        few, many = (task.but(n_trees=n).grow(engine) for n in (n_trees, n_trees + 3))
        cut = few.n_nodes
        assert np.array_equal(few.tree_offsets, many.tree_offsets[: n_trees + 1])
        # leaves are numbered in the whole forest, so compare what they hold
        splits = ~is_leaf(few.nodes)
        assert np.array_equal(splits, ~is_leaf(many.nodes[:cut]))
        assert np.array_equal(few.nodes[splits], many.nodes[:cut][splits])
        assert np.array_equal(few.node_sums(0, n_trees), many.node_sums(0, n_trees))


def test_another_seed_is_another_forest(telling):
    task = some_task(8, n_draws=50)
    assert not np.array_equal(task.grow(telling).nodes, task.but(seed=99).grow(telling).nodes)


@SETTINGS
@given(seeds)
def test_constant_columns_change_no_split(seed):
    task = some_task(seed)
    n_rows, n_features = task.X.shape
    task = task.but(n_tried=None)
    constants = np.full((n_rows, 3), [0.0, -1.0, np.nan])
    wider = task.but(X=np.hstack([task.X, constants]))
    for engine in ENGINES.values():
        assert np.array_equal(task.grow(engine).nodes, wider.grow(engine).nodes)
        # before the others they move their numbers, and nothing else
        before = task.but(X=np.hstack([constants, task.X])).grow(engine)
        forest = task.grow(engine)
        assert np.array_equal(forest.leaf_sums, before.leaf_sums)
        parts = [unpack(np, f.nodes) for f in (forest, before)]
        assert np.array_equal(np.where(parts[0][0] < 0, -1, parts[0][0] + 3), parts[1][0])
        for own, other in zip(parts[0][1:], parts[1][1:], strict=True):
            assert np.array_equal(own, other)
    assert n_features == forest.edges.n_features


def test_constant_features_do_not_count_as_tried(telling):
    # 1 of 30 columns varies: whatever the order, each node finds it
    X = np.zeros((64, 30))
    X[:, 17] = np.arange(64)
    forest = Task(X, np.arange(64) % 2, n_tried=1, n_trees=5).grow(telling)
    assert np.all(np.diff(forest.tree_offsets) == 127)
    feature = unpack(np, forest.nodes)[0]
    assert set(feature.tolist()) == {-1, 17}


# sums and orders


def assert_whole(task: Task, engine: Backend) -> Forest:
    """Sums add up, children follow their parents, subtrees are contiguous."""
    forest = task.grow(engine)
    coding, y = task.coded()
    bags = engine.asnumpy(draw_bags(task.sampling, task.seed, 0, task.n_trees, engine))
    _, _, _, child = unpack(np, forest.nodes)
    leaf = is_leaf(forest.nodes)
    leaves = apply(forest, task.X, engine)
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


@SETTINGS
@given(seeds, st.booleans())
def test_trees_are_whole(seed, bootstrap):
    task = some_task(seed)
    task = task.but(n_draws=len(task.X) if bootstrap else 0)
    for engine in (NumpyBackend(), DeepFrom(0), DeepFrom(12), NumbaBackend()):
        assert_whole(task, engine)


def test_a_chain_of_nodes_is_whole():
    # each split parts one row from the rest: as deep as a tree can be
    n = 300
    X = np.arange(n, dtype=float)[:, None]
    task = Task(X, 2.0 ** np.arange(n), "squared_error", max_bins=1000)
    for engine in (NumpyBackend(), DeepFrom(5), NumbaBackend()):
        assert assert_whole(task, engine).depth > 40


@SETTINGS
@given(seeds)
def test_histograms_add_up_to_their_slots(seed):
    task = some_task(seed, min_rows_leaf=2, n_draws=40)
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        matrix, target = task.prepared(engine)
        frontier = roots(
            target,
            draw_bags(task.sampling, 0, 0, 3, engine),
            task.rules,
            matrix.n_features,
            0,
            0,
            engine,
        )
        F, C = matrix.n_features, target.coding.n_channels
        features = np.broadcast_to(np.arange(F, dtype=np.int32), (3, F)).copy()
        features[1, F // 2] = -1
        hist = engine.histogram(matrix, target, frontier, features, task.rules)
        assert hist.shape == (3, F, matrix.edges.n_codes, C + 1)
        sums = hist.sum(axis=2)
        assert not sums[1, F // 2].any()
        sums[1, F // 2] = sums[1, 0]
        assert np.array_equal(sums[..., :C], np.repeat(frontier.sums[:, None], F, axis=1))
        assert np.array_equal(sums[..., C], np.repeat(frontier.n_rows[:, None], F, axis=1))


@SETTINGS
@given(seeds, st.integers(1, 6))
def test_partitions_are_stable(seed, n_slots):
    rng = np.random.default_rng(seed)
    X = table(rng, 80, list("cfnNA"))
    found = []
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        rng = np.random.default_rng(seed)
        task = Task(X, rng.integers(0, 2, 80))
        matrix, _ = task.prepared(engine)
        end = np.sort(rng.integers(1, 60, n_slots))
        begin = np.concatenate([[0], end[:-1]])
        begin, end = begin[end > begin], end[end > begin]
        begin, end = begin + 60 * (seed % 2), end + 60 * (seed % 2)
        S = len(begin)
        rows = rng.integers(0, 80, 120).astype(np.int32)
        weights = rng.integers(1, 9, 120).astype(np.int32)
        frontier = frontier_of(begin, end, rows, weights, np.zeros((S, 2), np.int64))
        feature = rng.integers(-1, 5, S).astype(np.int32)
        bin = rng.integers(0, 40, S).astype(np.int32)
        side = rng.random(S) < 0.5
        old_rows, old_weights = rows.copy(), weights.copy()
        new_rows, new_weights, n_left = engine.partition(
            matrix, frontier, feature, bin, side, no_sets(S)
        )
        for s in range(S):
            own, weight = old_rows[begin[s] : end[s]], old_weights[begin[s] : end[s]]
            code = matrix.codes[own, feature[s]].astype(int)
            left = np.where(code == matrix.edges.missing_code, side[s], code <= bin[s])
            other = begin[s] + 60 if begin[s] < 60 else begin[s] - 60
            place = slice(other, other + len(own))
            if feature[s] < 0:
                assert n_left[s] == 0
                continue
            assert n_left[s] == left.sum()
            assert np.array_equal(new_rows[place], np.append(own[left], own[~left]))
            assert np.array_equal(new_weights[place], np.append(weight[left], weight[~left]))
            old_rows[place], old_weights[place] = new_rows[place], new_weights[place]
        # nothing else has moved
        assert np.array_equal(old_rows, new_rows)
        assert np.array_equal(old_weights, new_weights)
        found.append((new_rows, new_weights, n_left))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


# which split


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification", "squared_error"])
def test_xor_is_learned(telling, criterion):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, float)
    y = (X[:, 0] != X[:, 1]).astype(int)
    forest = Task(X, y, criterion).grow(telling)
    assert split_of(forest)[0] == 0  # no gain anywhere: the first feature
    assert forest.n_nodes == 7
    values = predict(forest, X, telling)[:, -1]
    assert np.array_equal(values, y)


def test_the_cut_lies_in_the_middle_of_the_nodes_own_gap(telling):
    # eleven values have bins; the right part of the tree holds but 4, 5, 8 and 10
    groups = [(0, v) for v in range(11)] + [(1, v) for v in (4, 5, 8, 10)]
    forest = Task(np.array(groups, float), np.array([0] * 11 + [1, 1, 2, 2])).grow(telling)
    assert split_of(forest) == (0, 0, True)  # eleven of fifteen lie left
    right = int(unpack(np, forest.nodes)[3][0]) + 1
    assert split_of(forest, right)[:2] == (1, 6)
    assert forest.edges.threshold(np.array([1]), np.array([6]))[0] == (5 + 8) / 2


def test_ties_go_to_the_first_feature_then_to_the_lowest_bin(telling):
    X = np.repeat([[3.0, 0.0, 0.0], [2.0, 1.0, 1.0], [1.0, 2.0, 2.0], [0.0, 3.0, 3.0]], 2, axis=0)
    # by symmetry the first and the last cut are worth the same, in all three columns
    y = np.repeat([0, 1, 1, 0], 2)
    assert split_of(Task(X, y).grow(telling))[:2] == (0, 0)
    assert split_of(Task(X[:, 1:], y).grow(telling))[:2] == (0, 0)


@pytest.mark.parametrize("criterion", ["gini", "misclassification", "squared_error"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ties_go_to_the_feature_drawn_first(telling, criterion, n_classes):
    # three equal columns, of which any round of two may hold none, one or two
    x = np.repeat([0.0, 1.0, 2.0, np.nan], 3)
    X = np.stack([x, np.zeros(12), x, np.full(12, np.nan), x], axis=1)
    y = np.arange(12) // 3 % n_classes
    task = Task(X, y, criterion, n_tried=2, max_depth=1, n_trees=200, seed=8)
    keys = hashing.hash_at(hashing.tree_keys(np, task.seed, 0, task.n_trees), hashing.ROOT)
    drawn = np.concatenate([draw_features(xp, keys, j, 1, 5) for j in range(5)], axis=1)
    first = drawn[np.arange(200), np.argmax(drawn % 2 == 0, axis=1)]
    forest = task.grow(telling)
    feature, bin, _, _ = unpack(np, forest.nodes[forest.tree_offsets[:-1]])
    assert np.array_equal(feature, first)
    assert len(set(bin.tolist())) == 1
    # each is the first in about a third of the trees
    assert all(45 < count < 90 for count in np.bincount(feature)[::2])
    # all tried: in the order of the columns
    every = task.but(n_tried=5).grow(telling)
    assert not unpack(np, every.nodes[every.tree_offsets[:-1]])[0].any()


def test_missing_values_go_where_they_are_worth_more(telling):
    nan = np.nan
    # with the large ones
    forest = Task(column(0, 0, 1, 1, nan, nan), np.array([0, 0, 1, 1, 1, 1])).grow(telling)
    assert split_of(forest) == (0, 0, False)
    assert forest.n_nodes == 3
    # with the small ones
    forest = Task(column(0, 0, 1, 1, nan, nan), np.array([0, 0, 1, 1, 0, 0])).grow(telling)
    assert split_of(forest) == (0, 0, True)
    assert forest.n_nodes == 3
    # worth the same on either side: to the right
    forest = Task(column(0, 1, nan), np.array([0, 1, 2])).grow(telling)
    assert split_of(forest) == (0, 0, False)


def test_missing_against_all_others(telling):
    X = column(0, 1, 2, np.nan, np.nan)
    forest = Task(X, np.array([0, 0, 0, 1, 1])).grow(telling)
    assert split_of(forest) == (0, 2, False)  # behind the last bin
    assert forest.n_nodes == 3
    assert forest.edges.threshold(np.array([0]), np.array([2]))[0] == np.inf
    values = predict(forest, np.append(X, [[1e300]], axis=0), telling)
    assert values[:, 1].tolist() == [0, 0, 0, 1, 1, 0]
    # a column of one value and missing ones varies
    forest = Task(column(7, 7, np.nan), np.array([0, 0, 1])).grow(telling)
    assert forest.n_nodes == 3
    # a column of missing ones alone does not
    assert Task(column(np.nan, np.nan), np.array([0, 1])).grow(telling).n_nodes == 1


def test_missing_values_never_seen_go_to_the_heavier_side(telling):
    for y, left in (([0, 0, 0, 1], True), ([0, 1, 1, 1], False), ([0, 0, 1, 1], False)):
        forest = Task(column(*y), np.array(y)).grow(telling)
        assert split_of(forest) == (0, 0, left)
        value = predict(forest, column(np.nan), telling)[0]
        assert value.tolist() == ([1, 0] if left else [0, 1])
    # heavier, not of more rows
    weights = np.array([5, 1, 1, 1], np.int32)
    forest = Task(column(0, 1, 1, 1), np.array([0, 1, 1, 1]), weights=weights).grow(telling)
    assert split_of(forest) == (0, 0, True)


# rules


def test_least_rows_count_rows_not_weights(telling):
    X, y = column(0, 1, 2, 3, 4, 5), np.array([0, 1, 1, 1, 1, 1])
    weights = np.array([9, 1, 1, 1, 1, 1], np.int32)
    task = Task(X, y, weights=weights, max_depth=1)
    assert split_of(task.grow(telling))[1] == 0
    assert split_of(task.but(min_rows_leaf=2).grow(telling))[1] == 1
    assert split_of(task.but(min_rows_leaf=3).grow(telling))[1] == 2
    assert task.but(min_rows_leaf=4).grow(telling).n_nodes == 1
    assert task.but(min_rows_split=6).grow(telling).n_nodes == 3
    assert task.but(min_rows_split=7).grow(telling).n_nodes == 1


def test_least_rows_count_missing_ones(telling):
    X, y = column(0, 0, 0, 1, np.nan, np.nan), np.array([0, 0, 0, 1, 1, 1])
    task = Task(X, y, max_depth=1)
    assert split_of(task.but(min_rows_leaf=3).grow(telling)) == (0, 0, False)
    assert task.but(min_rows_leaf=4).grow(telling).n_nodes == 1


def test_least_gain(telling):
    # (2, 2) -> (2, 0) and (0, 2): from 8 / 4 to 2 + 2, a gain of 2
    task = Task(column(0, 0, 1, 1), np.array([0, 0, 1, 1]))
    assert task.but(min_gain=2.0).grow(telling).n_nodes == 3
    assert task.but(min_gain=np.nextafter(2.0, 3.0)).grow(telling).n_nodes == 1
    # a split of no gain at all
    task = Task(column(0, 0, 1, 1), np.array([0, 1, 0, 1]))
    assert task.grow(telling).n_nodes == 3
    assert task.but(min_gain=0.0).grow(telling).n_nodes == 3
    assert task.but(min_gain=1e-9).grow(telling).n_nodes == 1


@SETTINGS
@given(seeds, st.integers(0, 4))
def test_depth(seed, depth):
    task = some_task(seed, max_depth=depth)
    for engine in ENGINES.values():
        forest = task.grow(engine)
        assert forest.depth <= depth
        if depth == 0:
            assert np.array_equal(forest.nodes >= LEAF_WORD, [True, True])
            assert forest.tree_offsets.tolist() == [0, 1, 2]


def test_one_row_and_one_class(telling):
    forest = Task(column(3), np.array([0]), n_trees=2).grow(telling)
    assert forest.n_nodes == 2
    assert predict(forest, column(3, np.nan), telling).tolist() == [[1], [1]]
    assert Task(column(3, 4), np.array([1, 1])).grow(telling).n_nodes == 1
    assert Task(column(3, 4), np.array([0.1, 0.1]), "squared_error").grow(telling).n_nodes == 1


# the worked examples of kernels/*/numpy.py


@pytest.fixture(params=["numpy", "numba"])
def plain(request: pytest.FixtureRequest) -> Backend:
    return {"numpy": NumpyBackend(), "numba": NumbaBackend()}[request.param]


def one_slot(rows: list[int], weights: list[int], sums: list[int]) -> Frontier:
    return frontier_of(
        np.array([0]), np.array([len(rows)]), np.array(rows, np.int32),
        np.array(weights, np.int32), np.array([sums]),
    )  # fmt: skip


def test_example_of_encode(plain):
    edges = BinEdges(np.array([1.5, 2.5]), np.array([0, 2]))
    codes = plain.encode(column(1.0, 1.5, 2.0, 9.0, np.nan), edges)
    assert codes[:, 0].tolist() == [0, 0, 1, 2, edges.missing_code]


def test_example_of_bag(plain):
    weights = np.array([2, 0, 1], np.int32)
    task = Task(column(0, 0, 0), np.zeros(3, int), weights=weights, n_draws=3000)
    bags = draw_bags(task.sampling, 0, 0, 1, plain)[0]
    assert bags[1] == 0
    assert abs(bags[0] - 2000) < 150


def test_example_of_totals(plain):
    coding, y = encode_classes(np.array([0, 1, 1]), np.arange(2))
    task = Task(column(0, 0, 0), np.array([0, 1, 1]))
    _, target = task.prepared(plain)
    assert target.coding.n_channels == coding.n_channels
    assert np.array_equal(target.y, y)
    rows, weights = np.arange(3, dtype=np.int32), np.array([1, 1, 2], np.int32)
    sums, constant = plain.totals(target, rows, weights, np.array([0]), np.array([3]))
    assert sums.tolist() == [[1, 3]]
    assert constant.tolist() == [False]
    sums, constant = plain.totals(target, rows, weights, np.array([1]), np.array([3]))
    assert sums.tolist() == [[0, 3]]
    assert constant.tolist() == [True]


def test_example_of_histogram(plain):
    task = Task(column(0, 2, 2, 1), np.array([0, 0, 1, 1]))
    matrix, target = task.prepared(plain)
    frontier = one_slot([0, 1, 2], [1, 1, 3], [2, 3])
    features = np.array([[0]], np.int32)
    hist = plain.histogram(matrix, target, frontier, features, task.rules)
    assert hist[0, 0, :3].tolist() == [[1, 0], [0, 0], [1, 3]]


@pytest.mark.parametrize(("second", "cut"), [([0, 2], 0), ([0, 0], 1)])
def test_example_of_best_split(plain, second, cut):
    task = Task(column(*range(7)), np.array([0, 1] * 3 + [0]))
    matrix, _ = task.prepared(plain)
    hist = np.zeros((1, 1, matrix.edges.n_codes, 2), np.int64)
    hist[0, 0, [0, 1, 4]] = [[3, 0], second, [0, 1]]
    sums = hist.sum(axis=(1, 2))[0].tolist()
    features, need = np.array([[0]], np.int32), np.array([1])
    slot = one_slot([0] * sum(sums), [1] * sum(sums), sums)
    found = plain.best_split(matrix, hist, features, need, slot, task.rules)
    assert found.score.tolist() == [3 + (3 if second[1] else 1)]
    assert found.feature.tolist() == [0]
    assert found.bin.tolist() == [cut]
    assert found.left.tolist() == [[3, 0]]
    assert found.tried.tolist() == [1]
    assert found.missing_left.tolist() == [second[1] == 0]


def no_sets(S):
    """What stands for sets where no feature is categorical."""
    return np.zeros((S, 0), np.uint64)


def test_example_of_partition(plain):
    # rows 5 and 9 go left in slot 0, row 1 in slot 1; row 0 belonged to a leaf
    goes_left = np.ones(10)
    goes_left[[5, 9, 1]] = 0
    task = Task(goes_left[:, None], np.arange(10) % 2)
    matrix, _ = task.prepared(plain)
    held = [3, 5, 8, 9, 0, 7, 1, 4]
    rows = np.array(held + [0] * 8, np.int32)
    frontier = frontier_of(
        np.array([0, 6]), np.array([4, 8]), rows, rows + 1, np.zeros((2, 2), np.int64)
    )
    zeros = np.zeros(2, np.int32)
    rows, weights, n_left = plain.partition(matrix, frontier, zeros, zeros, zeros > 0, no_sets(2))
    assert rows.tolist() == [*held, 5, 9, 3, 8, 0, 0, 1, 4]
    assert n_left.tolist() == [2, 1]
    assert weights[8:12].tolist() == [6, 10, 4, 9]


def test_packed_nodes_unpack():
    feature, bin = np.array([0, 5, 2**17 - 2]), np.array([0, 300, 65_535])
    side = np.array([True, False, True])
    word = pack_splits(xp, feature, bin, side) + (np.array([1, 2, 2**30 - 1], np.uint64) << 16)
    assert not is_leaf(word).any()
    assert [a.tolist() for a in unpack(xp, word)] == [
        feature.tolist(), bin.tolist(), side.tolist(), [1, 2, 2**30 - 1],
    ]  # fmt: skip
    leaf = np.array([0, 2**47 - 1], np.uint64) + np.uint64(LEAF_WORD)
    assert is_leaf(leaf).all()
    assert unpack(xp, leaf)[3].tolist() == [0, 2**47 - 1]
    assert unpack(xp, leaf)[0].tolist() == [-1, -1]
