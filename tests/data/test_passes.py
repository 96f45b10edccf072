"""Summaries of blocks add up to that of the table, in any order."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.backends.registry import get_backend
from gpuforest.backends.rows import row_hashes
from gpuforest.data import passes
from gpuforest.data.passes import Reader
from gpuforest.growing.edges import fit_edges

N, COUNT, SEED = 500, 40, 3
RNG = np.random.default_rng(0)
X = np.stack([np.arange(N), RNG.permutation(N), RNG.integers(0, 5, N)], axis=1).astype(float)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
NUMPY = get_backend("numpy")


@given(
    cuts=st.lists(st.integers(0, N), max_size=8),
    order=st.randoms(use_true_random=False),
    weighted=st.booleans(),
)
def test_the_order_of_blocks_does_not_matter(cuts, order, weighted):
    ends = sorted({0, *cuts, N})
    weight = WEIGHTS if weighted else None
    before, passes.SAMPLE_ROWS = passes.SAMPLE_ROWS, COUNT
    try:
        reader = Reader(100, [2], seed=SEED)
        parts = [
            reader.summary(X[a:b], None if weight is None else weight[a:b], a, NUMPY)
            for a, b in pairwise(ends)
        ]
        order.shuffle(parts)
        found = sum(parts[1:], parts[0])
        integers = None if weight is None else weight.astype(np.int32)
        edges, *_ = reader.edges(found, None, integers, None, NUMPY)
    finally:
        passes.SAMPLE_ROWS = before
    assert found.n_rows == N
    assert edges.categories == {2: (0.0, 1.0, 2.0, 3.0, 4.0)}
    more = {"weights": integers, "seed": SEED, "sample_rows": COUNT, "categories": edges.categories}
    whole = fit_edges(X, max_bins=100, **more)
    assert np.array_equal(edges.values, whole.values)
    # by hand: the rows of some weight that have the lowest hashes
    rows = np.arange(N) if weight is None else np.flatnonzero(weight)
    rows = np.sort(rows[np.argsort(row_hashes(SEED, rows))[:COUNT]])
    middles = (rows[1:] + rows[:-1]) / 2
    assert np.array_equal(edges.values[: len(rows) - 1], middles)
