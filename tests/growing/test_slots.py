"""Slots: what becomes of them, those below; equal rows of leaf tables are kept once; and the CUDA
kernels beside the array-API code."""

from dataclasses import fields, replace

import numpy as np
import pytest
from cuda_on_cpu.module import available, thread_order
from emulated import EmulatedBackend
from engine import Task
from hypothesis import given
from hypothesis import strategies as st
from laws import column, seeds

from gpuforest.backends import base
from gpuforest.backends.cuda.nodes import CudaNodes
from gpuforest.backends.slots import distinct_rows, row_keys
from gpuforest.core import criteria
from gpuforest.core.frontier import Frontier, Splits
from gpuforest.core.rules import Rules

MANY = st.sampled_from([1, 2, 7, 256, 257, 2048, 2049, 9000])

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


def some_slots(rng: np.random.Generator, S: int, C: int) -> Frontier:
    """Slots of 0 to 9 rows of weight one, one after another, in either half of the rows."""
    n = rng.integers(0, 10, S)
    end = np.cumsum(n)
    R = max(1, int(n.sum()))
    begin = end - n + R * int(rng.integers(0, 2))
    share = rng.random((S, C))
    sums = np.floor(share / share.sum(axis=1, keepdims=True) * n[:, None]).astype(np.int64)
    sums[:, 0] = n - sums[:, 1:].sum(axis=1)
    return Frontier(
        tree=rng.integers(0, 5, S).astype(np.int32), key=rng.integers(0, 2**64, S, dtype=np.uint64),
        n_rows=n, begin=begin, end=begin + n, sums=sums, constant=rng.random(S) < 0.3,
        depth=rng.integers(0, 9, S).astype(np.int32), max_rows=R,
        rows=rng.integers(0, 50, 2 * R).astype(np.int32), weights=np.ones(2 * R, np.int32),
    )  # fmt: skip


def some_splits(rng: np.random.Generator, wide: Frontier) -> tuple[Splits, np.ndarray]:
    """Splits with some refused, and the number of rows that go left."""
    S = wide.n_slots
    feature = rng.integers(-1, 3, S).astype(np.int32)
    left = np.where(feature[:, None] >= 0, rng.integers(0, 1 + wide.sums), 0)
    n_left = np.where(feature >= 0, rng.integers(0, 1 + wide.n_rows), 0)
    zero = np.zeros(S, np.int32)
    tried, sets = np.ones(S, np.int64), np.zeros((S, 0), np.uint64)
    return Splits(np.zeros(S), feature, zero, zero > 0, left, tried, sets), n_left


def assert_same(a: Frontier, b: Frontier) -> None:
    for field in fields(Frontier):
        x, y = getattr(a, field.name), getattr(b, field.name)
        assert np.array_equal(x, y), field.name
        assert x is None or isinstance(x, int) or x.dtype == y.dtype, field.name


@given(seeds, MANY, st.integers(1, 9), st.integers(0, 9), st.booleans(), st.booleans())
def test_kernels_sort_slots_alike(seed, S, C, deep_rows, deep_trees, large_tiles):
    rng = np.random.default_rng(seed)
    own, max_depth = some_slots(rng, S, C), 2**40 if deep_trees else 5
    if large_tiles:  # as if each row were stored so many times: 9,000 slots have the largest tiles
        own = replace(own, begin=5000 * own.begin, end=5000 * own.end)
    rules = Rules(criteria.CRITERIA["gini"], 1, max_depth, int(rng.integers(2, 6)), 1, -np.inf)
    backend = EmulatedBackend()
    training = replace(Task(column(0, 1), np.arange(2)).training(backend), rules=rules)
    expected = base.Nodes().sort_out(backend, training, own, deep_rows)
    kind, wide, deep = backend.nodes.sort_out(backend, training, own, deep_rows)
    assert np.array_equal(expected[0], kind)
    assert kind.dtype == np.int8
    assert_same(expected[1], wide)
    assert_same(expected[2], deep)
    # what it says of tiles is what they are found to be without it
    (tiles, most), wide = backend.slot_tiles(wide), expected[1]
    other, other_most = backend.tiles_of(wide.begin, wide.end, wide.max_rows)
    assert (tiles.size, tiles.S, most) == (other.size, other.S, other_most)
    assert np.array_equal(tiles.first, other.first)


@given(seeds, MANY, st.sampled_from(["gini", "squared_error"]))
def test_kernels_make_children_alike(seed, S, criterion):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    y = rng.integers(0, 3, 50) if criterion == "gini" else rng.integers(-2, 3, (50, 2)) * 1.0
    training = Task(column(*range(50)), y, criterion).training(backend)
    wide = some_slots(rng, S, training.n_channels)
    splits, n_left = some_splits(rng, wide)
    moved = wide.rows, wide.weights, n_left
    expected = base.Nodes().children(backend, training, wide, splits, moved)
    with thread_order(seed):
        assert_same(expected, backend.nodes.children(backend, training, wide, splits, moved))


@given(seeds)
def test_rows_of_several_tiles_are_compared_with_the_mean_below(seed):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    # slots of rows of 0 and of 4, so that most slots below are constant, but for a few rows
    n = rng.integers(1, 5000, 5)
    y = np.repeat(rng.integers(0, 2, 10), 5000) * 4.0
    training = Task(column(*range(len(y))), y, "squared_error").training(backend)
    moments, R = training.target.y[:, 0], int(n.sum())
    n_left = rng.integers(0, n + 1)
    sides = np.stack([n_left, n - n_left], axis=1).reshape(-1)
    rows = np.concatenate([5000 * i + rng.integers(0, 5000, k) for i, k in enumerate(sides)])
    if seed % 2:
        rows[rng.integers(R)] = rng.integers(len(y))
    rows = rows.astype(np.int32)
    end = np.cumsum(n)
    wide = replace(some_slots(rng, 5, 2), begin=end - n, end=end, n_rows=n, max_rows=R)
    moved, ones = np.concatenate([np.zeros_like(rows), rows]), np.ones(2 * R, np.int32)
    ends = np.cumsum(sides)
    sums = [[k, moments[rows[last - k : last]].sum()] for k, last in zip(sides, ends, strict=True)]
    sums = np.array(sums).reshape(5, 2, 2)
    feature, left = np.zeros(5, np.int32), sums[:, 0].copy()
    splits = replace(some_splits(rng, wide)[0], feature=feature, left=left)
    wide = replace(wide, sums=sums.sum(axis=1))
    expected = base.Nodes().children(backend, training, wide, splits, (moved, ones, n_left))
    with thread_order(seed):
        found = backend.nodes.children(backend, training, wide, splits, (moved, ones, n_left))
    assert_same(expected, found)
    assert found.constant.any()


@given(seeds, st.integers(1, 300), st.sampled_from(["gini", "squared_error"]))
def test_kernels_make_roots_alike(seed, T, criterion):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    y = rng.integers(0, 2, 40) if criterion == "gini" else rng.integers(0, 2, (40, 2)) * 1.0
    training = Task(column(*range(40)), y, criterion).training(backend)
    bags = rng.integers(0, 3, (T, 40)).astype(np.int32)
    bags[rng.random(T) < 0.5, :38] = 0  # few rows may have one target
    bags[:, rng.integers(38, 40)] = 1
    expected = base.Nodes().in_bag(backend, bags)
    found = backend.nodes.in_bag(backend, bags)
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    keys = rng.integers(0, 2**64, T, dtype=np.uint64)
    with thread_order(seed):
        same = (n.roots(backend, training, found, keys) for n in (base.Nodes(), backend.nodes))
        assert_same(*same)


@given(seeds, st.lists(st.sampled_from([0, 1, 5, 700]), min_size=1, max_size=12))
def test_kernels_join_slots_alike(seed, sizes):
    rng, backend = np.random.default_rng(seed), EmulatedBackend()
    parts = [some_slots(rng, S, 3) for S in sizes]
    arguments = backend, parts, parts[-1].rows, parts[-1].weights
    assert_same(base.Nodes().join(*arguments), backend.nodes.join(*arguments))


@given(seeds, st.sampled_from([1, 2, 257, 2048, 2049, 7000]), st.integers(1, 9))
def test_kernels_find_the_same_rows(seed, V, C):
    rng = np.random.default_rng(seed)
    sums = rng.integers(0, 1 + int(rng.integers(0, 3)), (V, C))
    sums[rng.random((V, C)) < 0.1] = rng.integers(-(2**62), 2**62)
    assert np.array_equal(row_keys(sums), CudaNodes().row_keys(EmulatedBackend(), sums))
    with thread_order(seed):
        found = CudaNodes().distinct_rows(EmulatedBackend(), sums)
    for a, b in zip(distinct_rows([sums]), found, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)


def test_kernels_tell_rows_of_one_key_apart():
    class OneKey(CudaNodes):
        def row_keys(self, backend, sums):
            return np.zeros(len(sums), np.uint64)

    sums = np.random.default_rng(0).integers(0, 3, (500, 2))
    table, number = OneKey().distinct_rows(EmulatedBackend(), sums)
    assert np.array_equal(table, np.unique(sums, axis=0))
    assert np.array_equal(table[number], sums)
