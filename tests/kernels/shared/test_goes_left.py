"""The rule by which rows go left: each loop that writes it out is held against the function."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from in_numba import kernel

from gpuforest.backends.numba import in_words
from gpuforest.engine.nodes import CHILD_SHIFT, LEAF_WORD, SET_BIN, pack_splits
from gpuforest.engine.records import Data, Frontier, Splits, Trees
from gpuforest.kernels.grow_subtrees.cuts import left_totals, sum_left
from gpuforest.kernels.grow_subtrees.rows import split_rows
from gpuforest.kernels.grow_subtrees.scratch import Order
from gpuforest.kernels.partition import numba as partition_numba
from gpuforest.kernels.partition import numpy as partition_numpy
from gpuforest.kernels.shared import numba as compiled
from gpuforest.kernels.shared import numpy as reference
from gpuforest.kernels.shared.records import NO_BIN, Slot, Split
from gpuforest.kernels.traverse import numba as traverse_numba
from gpuforest.kernels.traverse import numpy as traverse_numpy
from gpuforest.splits.oblique.walk import NO_SUMS

MISSING = 130  # of three words of a set, the third begins with code 128
CODES = np.array([0, 1, 62, 63, 64, 65, 127, 128, 129, MISSING], np.int64)
BINS = [0, 1, 63, 64, 128, 129, SET_BIN]
SET = np.array([0, 1 << 63 | 2, 1, 2], np.uint64)  # from the second word: codes 1, 63, 64, 129
CASES = list(itertools.product(BINS, (False, True)))
DTYPES = (np.uint8, np.uint16)


def expected(bin: int, missing_left: bool) -> np.ndarray:
    """Written out once more, code by code."""
    held = {1, 63, 64, 129}
    return np.array(
        [
            missing_left if c == MISSING else c in held if bin == SET_BIN else c <= bin
            for c in CODES.tolist()
        ]
    )


def split_of(bin, missing_left) -> Split:
    return Split(0.0, np.int64(0), np.int64(bin), bool(missing_left), NO_BIN)


@kernel
def one_by_one(codes, split, sets, first, out):
    for i in range(len(codes)):
        out[i] = compiled.goes_left(codes[i], split, MISSING, sets, first)


@kernel
def totals_and_rows(column, code, order, spare, slot, split, words, left, sums):
    left_totals(column, order, slot, split, MISSING, words, left)
    sum_left(code, order.own, slot, split, MISSING, False, sums)
    return split_rows(column, order, spare, slot, split, MISSING, words)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bin", "missing_left"), CASES)
def test_the_rule_itself(bin, missing_left, dtype):
    codes, out, split = CODES.astype(dtype), np.zeros(len(CODES), np.bool_), None
    one_by_one(CODES, split_of(bin, missing_left), SET, 1, out)
    assert np.array_equal(out, expected(bin, missing_left))
    each = np.full(len(codes), bin), np.full(len(codes), missing_left)
    split, first = Split(None, None, *each, None), np.ones(len(codes), np.int64)
    found = reference.goes_left(np, codes, split, MISSING, SET, first)
    assert np.array_equal(found, out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bin", "missing_left"), CASES)
def test_partition(bin, missing_left, dtype):
    n, i8, bins = len(CODES), np.int64, np.full(1, MISSING, np.int32)
    labels = np.zeros((n, 1), np.int32)
    data = Data(CODES.astype(dtype)[:, None], labels, bins, MISSING + 1, 2)
    splits = Splits(
        np.zeros(1), np.zeros(1, np.int32), np.full(1, bin, np.int32), np.full(1, missing_left),
        np.zeros((1, 2), i8), np.ones(1, i8), SET[None, 1:],
    )  # fmt: skip
    goes = expected(bin, missing_left)
    wanted = np.concatenate([np.flatnonzero(goes), np.flatnonzero(~goes)])
    for partition in (by_reference, by_loop):
        rows = np.concatenate([np.arange(n), np.full(n, -1)]).astype(np.int32)
        begin, end, flags = np.zeros(1, i8), np.full(1, n), np.zeros(1, np.bool_)
        sums, number, key = np.ones((1, 2), i8), np.zeros(1, np.int32), np.zeros(1, np.uint64)
        slots = Frontier(
            number, key, end, begin, end, sums, flags, number, rows, rows.copy(), n_held=n
        )
        moved, weights, n_left = partition(data, slots, splits)
        assert np.array_equal(moved[n:], wanted)
        assert np.array_equal(weights[n:], wanted)
        assert n_left[0] == goes.sum()


def by_reference(data, slots, splits):
    return partition_numpy.partition(data, slots, splits)


def by_loop(data, slots, splits):
    n_left = np.zeros(1, np.int64)
    columns = replace(data, codes=np.ascontiguousarray(data.codes.T))
    partition_numba.partition(columns, slots, splits, 0, 1, n_left)
    return slots.rows, slots.weights, n_left


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bin", "missing_left"), CASES)
@pytest.mark.parametrize("times", [1, 9], ids=["few", "many"])  # many: in the top levels' vectors
def test_walks(bin, missing_left, times, dtype):
    codes = np.tile(CODES, times).astype(dtype)[:, None]
    split = pack_splits(np, np.zeros(1, np.int64), np.array([bin]), np.array([missing_left]))
    nodes = np.array([split[0] + np.uint64(1 << CHILD_SHIFT), LEAF_WORD, LEAF_WORD], np.uint64)
    sets = SET if bin == SET_BIN else SET[:0]
    trees = Trees(nodes, np.array([0, 3]), MISSING, np.array([1, 0, 0]), sets)
    out = np.empty((len(codes), 1), np.int64)
    wanted = 2 - np.tile(expected(bin, missing_left), times)
    group, sums = traverse_numba.new_group(), NO_SUMS if len(sets) else None
    traverse_numba.apply(trees, *in_words(codes), out, group, sums)
    assert np.array_equal(out[:, 0], wanted)
    assert np.array_equal(traverse_numpy.apply(trees, codes), out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bin", "missing_left"), CASES)
@pytest.mark.parametrize("n_channels", [2, 3])
@pytest.mark.parametrize("labels", [False, True], ids=["moments", "classes"])
def test_subtrees(bin, missing_left, n_channels, labels, dtype):
    n, goes, rng = len(CODES), expected(bin, missing_left), np.random.default_rng(0)
    if labels:
        own = np.stack([rng.integers(0, n_channels, n), rng.integers(1, 9, n)], axis=1)
        each = np.eye(n_channels, dtype=np.int64)[own[:, 0]] * own[:, 1:]
        own = own.astype(np.int32)
    else:
        own = each = rng.integers(1, 99, (n, n_channels))
    order = Order(np.arange(n, dtype=np.uint32), own.copy())
    spare = Order(np.empty(n, np.uint32), np.empty_like(own))
    slot = Slot(0, 0, n, int(own[:, 0].sum()), np.uint64(0), each.sum(axis=0), -np.inf, np.inf)
    left, sums = np.empty(n_channels, np.int64), np.empty(n_channels, np.int64)
    split, column = split_of(bin, missing_left), CODES.astype(dtype)
    n_left = totals_and_rows(column, column, order, spare, slot, split, SET[1:], left, sums)
    assert n_left == goes.sum()
    assert np.array_equal(
        order.positions, np.concatenate([np.flatnonzero(goes), np.flatnonzero(~goes)])
    )
    assert np.array_equal(order.own, own[order.positions])
    assert np.array_equal(left, each[goes].sum(axis=0))
    if bin != SET_BIN:  # random cuts of numbers alone
        assert np.array_equal(sums, left)
