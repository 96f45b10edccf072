"""Quantiles: the worked example, and the compiled code beside the reference."""

import numpy as np
import pytest

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.kernels.quantiles.members import (
    HIGHER,
    INVERTED,
    LINEAR,
    LOWER,
    MEAN,
    Members,
    new_members,
)
from gpuforest.kernels.quantiles.numpy import members_of

UNIT = 2**40  # of the example's weights: beside few draws they are large
BACKENDS = [NumpyBackend(), NumbaBackend(1), NumbaBackend(2)]


def example() -> tuple[Members, np.ndarray, np.ndarray]:
    """The members, leaves and targets of the example in the docstrings; node 0 is a root."""
    row_count = np.array([[0, 1], [1, 1], [1, 1], [2, 2]], np.int32)
    rank = np.arange(3, dtype=np.int32)[None, :]
    members = new_members(np.array([0, 2, 2]), row_count, rank, 60 * UNIT)
    return members, np.array([[1, 2], [1, -1], [-1, -1]]), np.array([[10.0, 20.0, 30.0]])


@pytest.mark.parametrize("backend", BACKENDS)
def test_example_of_quantiles(backend):
    members, leaves, y = example()

    def found(q, how):
        return backend.quantiles(members, leaves, y, np.array([q]), how)[:, 0, 0].tolist()

    assert found(0.25, LINEAR)[:2] == [17.5, 12.5]
    assert np.isnan(found(0.25, LINEAR)[2])
    assert found(0.25, LOWER)[0] == 10
    assert found(0.25, HIGHER)[0] == 20
    assert found(0.25, INVERTED)[0] == 10
    assert found(0.2501, INVERTED)[0] == 20
    assert found(0.0, MEAN)[0] == pytest.approx((30 * 10 + 50 * 20 + 40 * 30) / 120)


@pytest.mark.parametrize("backend", BACKENDS)
def test_example_of_weights_below(backend):
    members, leaves, _ = example()
    low, high = np.ones((3, 1), np.int64), np.full((3, 1), 2)
    found = backend.weights_below(members, leaves, low, high)
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
def test_the_compiled_code_gives_what_the_reference_gives(how):
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
    reference, *others = BACKENDS
    expected = reference.quantiles(members, leaves, y, q, how)
    weights = reference.weights_below(members, leaves, low, high)
    assert expected.shape == (200, K, 1 if how == MEAN else len(q))
    for other in others:
        assert np.array_equal(other.quantiles(members, leaves, y, q, how), expected)
        assert np.array_equal(other.weights_below(members, leaves, low, high), weights)


def test_draws_of_one_weight_give_numpys_quantiles():
    rng = np.random.default_rng(0)
    count = rng.integers(1, 4, 50)
    row_count = np.stack([np.arange(50), count], axis=1).astype(np.int32)
    members = new_members(np.array([50]), row_count, np.arange(50, dtype=np.int32)[None, :], 2**50)
    y = np.sort(rng.normal(size=(1, 50)), axis=1)
    draws, q = np.repeat(y[0], count), np.array([0.0, 0.05, 0.31, 0.5, 0.95, 1.0])
    for how, method in ((LINEAR, "linear"), (LOWER, "lower"), (HIGHER, "higher")):
        found = BACKENDS[1].quantiles(members, np.zeros((1, 1), np.int64), y, q, how)[0, 0]
        expected = np.quantile(draws, q, method=method)
        # NumPy interpolates by another formula, and a draw weighs 1 / D to 2**-44
        assert np.allclose(found, expected, rtol=1e-11)
