"""Compiled scores and logarithms are those of gpuforest.engine.criteria: ==."""

import array_api_compat.numpy as xp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel

from gpuforest.engine.criteria import (
    ABSOLUTE_ERROR,
    CRITERIA,
    ENTROPY,
    GINI,
    MISCLASSIFICATION,
    SQUARED_ERROR,
)
from gpuforest.kernels.shared import numba as scoring

NUMBERS = {c.number: c for c in CRITERIA.values() if c.number != ABSOLUTE_ERROR}


CLASSES = (GINI, ENTROPY, MISCLASSIFICATION)


@kernel
def node_scores(sums, criterion, out):
    for i in range(len(sums)):
        n = sums[i, 0]
        if criterion < SQUARED_ERROR:
            n = sums[i].sum()
        out[i] = scoring.node_score(criterion, sums[i], n, sums.shape[1])


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
    return scoring.pair_side(criterion, n, a)
