"""The rule by which rows go left, written out once more."""

import itertools

import numpy as np
import pytest
from in_numba import kernel

from gpuforest.core import nodes
from gpuforest.kernels.shared import numba as compiled
from gpuforest.kernels.shared import numpy as reference
from gpuforest.kernels.shared.records import NO_BIN, Split

MISSING = 130  # of three words of a set, the third begins with code 128
CODES = np.array([0, 1, 62, 63, 64, 65, 127, 128, 129, MISSING], np.int64)
BINS = [0, 1, 63, 64, 128, 129, nodes.SET_BIN]
SET = np.array([0, 1 << 63 | 2, 1, 2], np.uint64)  # from the second word: codes 1, 63, 64, 129
CASES = list(itertools.product(BINS, (False, True)))
DTYPES = (np.uint8, np.uint16)


def expected(bin: int, missing_left: bool) -> np.ndarray:
    """Written out once more."""
    left = np.isin(CODES, [1, 63, 64, 129]) if bin == nodes.SET_BIN else bin >= CODES
    return np.where(CODES == MISSING, missing_left, left)


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
