"""Quantiles: their definition, and several threads."""

import numpy as np
import pytest
from weighted_quantiles import quantile, weights_of

from gpuforest.explain.quantile_forest import leaf_quantiles, weights_below
from gpuforest.explain.quantile_kernels import HIGHER, INVERTED, LINEAR, LOWER, MEAN, new_members


@pytest.mark.parametrize("how", [LINEAR, LOWER, HIGHER, INVERTED, MEAN])
def test_quantiles_are_those_of_the_definition_on_any_threads(how):
    rng = np.random.default_rng(how)
    N, M, T, K = 300, 40, 9, 2
    sizes = np.where(np.arange(M) % 2, rng.integers(0, 30, M), 1)
    row = np.concatenate([np.sort(rng.choice(N, n, replace=False)) for n in sizes])
    row_count = np.stack([row, rng.integers(1, 4, len(row))], axis=1).astype(np.int32)
    rank = np.stack([np.arange(N), rng.permutation(N)]).astype(np.int32)
    members = new_members(sizes, row_count, rank, 2**45)
    leaves = np.where(rng.random((200, T)) < 0.3, -1, rng.choice(np.flatnonzero(sizes), (200, T)))
    y = np.sort(np.round(rng.normal(size=(K, N)), 1), axis=1)
    q = np.concatenate([[0.0, 0.5, 1.0], rng.random(5)])
    low = rng.integers(0, N, (200, K))
    high = low + rng.integers(0, 20, (200, K))
    found = leaf_quantiles(members, leaves, y, q, how, 1)
    assert found.shape == (200, K, 1 if how == MEAN else len(q))
    expected = [
        [[quantile(members, row, k, y[k], level, how) for level in q] for k in range(K)]
        for row in leaves
    ]
    # sums of the same numbers in other orders
    np.testing.assert_allclose(found, np.array(expected)[..., : found.shape[2]], rtol=0, atol=1e-11)
    weights = weights_below(members, leaves, low, high, 1)
    for i, row in enumerate(leaves):
        of_rows, draws = weights_of(members, row)
        for k in range(K):
            below = [of_rows[rank[k] < end].sum() for end in (low[i, k], high[i, k], N)]
            assert weights[i, k].tolist() == [*below, draws]
    assert np.array_equal(leaf_quantiles(members, leaves, y, q, how, 3), found, equal_nan=True)
    assert np.array_equal(weights_below(members, leaves, low, high, 3), weights)
