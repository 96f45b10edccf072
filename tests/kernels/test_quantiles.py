"""Quantiles: the worked example, their definition, and several threads."""

import numpy as np
import pytest
from weighted_quantiles import members_of, quantile, weights_of

from gpuforest.explain.quantile_forest import leaf_quantiles, weights_below
from gpuforest.explain.quantile_kernels import (
    HIGHER,
    INVERTED,
    LINEAR,
    LOWER,
    MEAN,
    Members,
    new_members,
)

UNIT = 2**40  # of the example's weights: beside few draws they are large


def example() -> tuple[Members, np.ndarray, np.ndarray]:
    """The members, leaves and targets of the example in the docstrings; node 0 is a root."""
    row_count = np.array([[0, 1], [1, 1], [1, 1], [2, 2]], np.int32)
    rank = np.arange(3, dtype=np.int32)[None, :]
    members = new_members(np.array([0, 2, 2]), row_count, rank, 60 * UNIT)
    return members, np.array([[1, 2], [1, -1], [-1, -1]]), np.array([[10.0, 20.0, 30.0]])


def test_example_of_quantiles():
    members, leaves, y = example()

    def found(q, how):
        return leaf_quantiles(members, leaves, y, np.array([q]), how, 1)[:, 0, 0].tolist()

    assert found(0.25, LINEAR)[:2] == [17.5, 12.5]
    assert np.isnan(found(0.25, LINEAR)[2])
    assert found(0.25, LOWER)[0] == 10
    assert found(0.25, HIGHER)[0] == 20
    assert found(0.25, INVERTED)[0] == 10
    assert found(0.2501, INVERTED)[0] == 20
    assert found(0.0, MEAN)[0] == pytest.approx((30 * 10 + 50 * 20 + 40 * 30) / 120)


def test_example_of_weights_below():
    members, leaves, _ = example()
    low, high = np.ones((3, 1), np.int64), np.full((3, 1), 2)
    found = weights_below(members, leaves, low, high, 1)
    found[..., :3] //= UNIT
    assert found[:, 0].tolist() == [[30, 80, 120, 5], [30, 60, 60, 2], [0, 0, 0, 0]]


def test_members_of_leaves():
    sizes = np.array([0, 3, 1, 0, 1, 2])
    row_count = np.array([[4, 1], [5, 2], [9, 1], [7, 3], [2**31 - 1, 1], [0, 1], [1, 1]], np.int32)
    members = new_members(sizes, row_count, np.zeros((1, 1), np.int32), 1)
    assert members.lists.tolist() == [[3, 4], *row_count[:3].tolist(), [2, 2], [0, 1], [1, 1]]
    found = [members_of(members, node) for node in np.flatnonzero(sizes)]
    assert np.concatenate(found).tolist() == row_count.tolist()


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
