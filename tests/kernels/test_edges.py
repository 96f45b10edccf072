"""Shares of edges: caps as they are defined, and the same edges whoever chooses them."""

from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from columns import any_float, any_float32, shapes
from devices import DEVICES
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.rows import row_hashes, rows_below
from gpuforest.growing.edges import fit_edges
from gpuforest.kernels.edges.numpy import capped, edges
from gpuforest.kernels.shared.constants import SORT_BYTES, SORT_THREADS

seeds = st.integers(0, 2**31)

# as far as measures reach: widths may differ by the range of float64, to the power of 3/4
measures = st.floats(1e-230, 1e6) | st.sampled_from([1e-230, 1e-100, 1.0, 2.0, 3.0, 1e6])


def by_definition(measure: np.ndarray, n: int) -> list[Fraction]:
    """min(measure, c) / c, the only c by which these add up to n."""
    exact = sorted(map(Fraction, measure), reverse=True)
    for j in range(n):
        cap = sum(exact[j:]) / (n - j)
        if exact[j] <= cap:
            return [min(Fraction(m), cap) / cap for m in measure]
    raise AssertionError


@given(st.lists(measures, min_size=2, max_size=80), st.integers(1, 79))
def test_capped_is_its_definition(measure, n):
    n = min(n, len(measure) - 1)
    found = capped(np.array(measure), n)
    assert np.array_equal(found, np.floor(found))
    assert found.sum() < 2**51
    assert np.all(found > 0)
    expected = by_definition(np.array(measure), n)
    units = Fraction(2 ** (50 - len(measure).bit_length()))
    # each is rounded up, and so is the cap
    error = 2 * len(measure) / units
    assert all(abs(Fraction(f) / units - e) <= error for f, e in zip(found, expected, strict=True))


def test_the_worked_example():
    assert edges(np.array([0, 1, 2, 3, 19], np.float32), None, 4).tolist() == [0.5, 2.5, 11.0]


# compiled, and on a device


class Host:
    """The compiled CPU backend, asked for as a device's is."""

    def order(self, seed: int) -> AbstractContextManager[None]:
        return nullcontext()

    def backend(self, budget: int = 2**26) -> NumbaBackend:
        return NumbaBackend(2, budget)


@pytest.fixture(scope="module", params=["host", "emulated", "GPU"])
def device(request: pytest.FixtureRequest) -> Any:
    if request.param == "host":
        return Host()
    device = DEVICES[request.param]
    if (reason := device.why_not()) is not None:
        pytest.skip(reason)
    return device


def assert_same_edges(
    device: Any, X: np.ndarray, max_bins: int, seed: int = 0, budget: int = 2**26
) -> None:
    expected = fit_edges(X, max_bins=max_bins)
    with device.order(seed):
        found = fit_edges(X, max_bins=max_bins, backend=device.backend(budget))
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.values, expected.values)


@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=any_float)
    | arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=any_float32),
    max_bins=st.sampled_from([2, 3, 10, 255, 65_535]),
    seed=seeds,
    budget=st.sampled_from([1, 2**26]),
)
def test_edges_are_those_of_the_reference(device, X, max_bins, seed, budget):
    assert_same_edges(device, X, max_bins, seed, budget)


@pytest.mark.emulated(every=7)
@pytest.mark.parametrize("max_bins", [2, 3, 16, 255, 1000, 65_535])
@pytest.mark.parametrize("n_rows", [1, 2, 33, 1025, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_many_shapes(device, n_rows, max_bins, dtype):
    rng = np.random.default_rng(n_rows)
    columns = [*shapes(rng, max(n_rows, 2)).values(), np.zeros(n_rows), np.full(n_rows, np.nan)]
    X = np.stack([c[:n_rows] for c in columns], axis=1)
    X = np.clip(X, np.finfo(dtype).min, np.finfo(dtype).max).astype(dtype)
    X = np.concatenate([X, np.where(rng.random(X.shape) < 0.3, np.nan, X)], axis=1)
    assert_same_edges(device, X, max_bins, seed=max_bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_several_tiles_of_a_sort(device, dtype):
    tile = SORT_THREADS * SORT_BYTES // np.dtype(dtype).itemsize
    for n in (tile - 1, tile, tile + 1, 3 * tile + 77):
        x = np.random.default_rng(n).normal(size=n)
        x[: n // 9] = np.nan
        X = np.stack([x, np.arange(n, 0, -1), np.round(x), -(x**3)], axis=1).astype(dtype)
        assert_same_edges(device, X, 1000, seed=n)


@pytest.mark.parametrize("dtype", ["b1", "i2", "i8", "u1", "f2", ">f4"])
def test_columns_of_any_dtype_and_layout(device, dtype):
    X = (np.random.default_rng(0).normal(size=(400, 6)) * 100).astype(dtype)
    assert_same_edges(device, X, 20)
    assert_same_edges(device, np.asfortranarray(X)[::2, ::-1], 20)


def test_neighbouring_subnormal_numbers(device):
    for dtype in (np.float32, np.float64):
        tiny = np.nextafter(dtype(0), dtype(1))
        X = (np.arange(-300, 300) * tiny).astype(dtype)[:, None]
        for max_bins in (7, 255, 1000):
            assert_same_edges(device, X, max_bins)


@given(seed=st.integers(0, 2**64 - 1), n_rows=st.integers(1, 3000), share=st.floats(0, 1))
def test_rows_of_low_hashes_are_the_hosts(cuda, seed, n_rows, share):
    limit = min(int(share * 2**64), 2**64 - 1)
    rows = rows_below(seed, n_rows, limit)
    hashes = row_hashes(seed, np.arange(n_rows))
    assert rows.tolist() == [i for i in range(n_rows) if int(hashes[i]) < limit]
    backend = cuda.backend()
    assert np.array_equal(backend.sampling.rows_below(backend, seed, n_rows, limit), rows)


def test_the_sample_is_the_rows_of_the_lowest_hashes():
    # a bin for each value, so the edges say which values are in the sample
    n, seed = 150_000, 11
    X, weights = np.arange(n, dtype=np.float64)[:, None], np.arange(n, dtype=np.int32) % 3
    for of_rows, rows in ((None, np.arange(n)), (weights, np.flatnonzero(weights))):
        order = np.argsort(row_hashes(seed, rows))
        wanted = np.sort(rows[order[:500]]).astype(float)
        edges = fit_edges(X, max_bins=1000, weights=of_rows, seed=seed, sample_rows=500)
        assert np.array_equal(edges.values, (wanted[1:] + wanted[:-1]) / 2)


def test_weights_and_samples(device):
    rng = np.random.default_rng(1)
    X = rng.lognormal(size=(900, 3)).astype(np.float32)
    for weights in (None, rng.integers(0, 3, 900).astype(np.int32)):
        given = {"max_bins": 30, "weights": weights, "seed": 5, "sample_rows": 200}
        expected = fit_edges(X, **given)
        found = fit_edges(X, **given, backend=device.backend())
        assert np.array_equal(found.values, expected.values)
        assert np.array_equal(found.offsets, expected.offsets)
