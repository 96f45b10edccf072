"""The rule by which rows go left, written out once more; and scores, compiled and not: ==."""

import itertools

import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel

from gpuforest.core import criteria, nodes
from gpuforest.kernels.shared import numba as compiled
from gpuforest.kernels.shared import numpy as reference
from gpuforest.kernels.shared.records import NO_BIN, Split

NUMBERS = {c.number: c for c in criteria.CRITERIA.values() if c.number != criteria.ABSOLUTE_ERROR}


CLASSES = (criteria.GINI, criteria.ENTROPY, criteria.MISCLASSIFICATION)


@kernel
def node_scores(sums, criterion, out):
    for i in range(len(sums)):
        n = sums[i, 0]
        if criterion < criteria.SQUARED_ERROR:
            n = sums[i].sum()
        out[i] = compiled.node_score(criterion, sums[i], n, sums.shape[1])


channel_sums = st.lists(
    st.lists(st.integers(0, 2**29) | st.integers(0, 20), min_size=3, max_size=3), min_size=1
)


@given(channel_sums, st.sampled_from(range(5)))
def test_compiled_scores_are_equal(rows, criterion):
    sums, known = np.array(rows, np.int64), NUMBERS[criterion]
    weight = known.side_weight(xp, sums)
    sums = sums[weight > 0]  # a node holds rows
    out = np.zeros(len(sums))
    node_scores(sums, criterion, out)
    assert np.array_equal(out, known.side_score(xp, sums))
    if criterion in CLASSES:  # two classes have a short way
        pairs, out = np.ascontiguousarray(sums[:, :2]), np.zeros(len(sums))
        pairs = pairs[pairs.sum(axis=1) > 0]
        for i, (a, b) in enumerate(pairs):
            out[i] = pair_scores(criterion, a + b, b)
        assert np.array_equal(out[: len(pairs)], known.side_score(xp, pairs))


@kernel
def pair_scores(criterion, n, a):
    return compiled.pair_side(criterion, n, a)


MISSING = 130  # of three words of a set, the third begins with code 128
CODES = np.array([0, 1, 62, 63, 64, 65, 127, 128, 129, MISSING], np.int64)
BINS = [0, 1, 63, 64, 128, 129, nodes.SET_BIN]
SET = np.array([0, 1 << 63 | 2, 1, 2], np.uint64)  # from the second word: codes 1, 63, 64, 129
CASES = list(itertools.product(BINS, (False, True)))
DTYPES = (np.uint8, np.uint16)


def expected(bin: int, missing_left: bool) -> np.ndarray:
    """Written out once more, code by code."""
    held = {1, 63, 64, 129}
    return np.array(
        [
            missing_left if c == MISSING else c in held if bin == nodes.SET_BIN else c <= bin
            for c in CODES.tolist()
        ]
    )


def split_of(bin, missing_left) -> Split:
    return Split(0.0, np.int64(0), np.int64(bin), bool(missing_left), NO_BIN)


@kernel
def one_by_one(codes, split, sets, first, out):
    for i in range(len(codes)):
        out[i] = compiled.goes_left(codes[i], split, MISSING, sets, first)


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
