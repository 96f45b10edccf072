"""Bin edges and codes: exact where values are few, sharp where they spread, and the same whoever
chooses them; shares of edges: caps as they are defined."""

from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from devices import DEVICES
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpuforest.backends import numba, numpy
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.rows import row_hashes, rows_below
from gpuforest.core.bins import BinEdges
from gpuforest.growing.edges import bin_matrix, fit_edges
from gpuforest.kernels.edges.numpy import capped, edges
from gpuforest.kernels.shared.constants import SORT_BYTES, SORT_THREADS

any_float = st.floats(allow_infinity=False, allow_nan=True) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 1.0, 1.0 + 1e-12, 1.0 - 1e-16, np.nan]
)
any_float32 = st.floats(allow_infinity=False, allow_nan=True, width=32)


def shapes(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    return {
        "normal": rng.normal(size=n),
        "uniform": rng.random(n),
        "log-normal": rng.lognormal(sigma=2, size=n),
        "wilder": rng.lognormal(sigma=6, size=n),
        "cauchy": rng.standard_cauchy(n),
        "whole": rng.integers(0, 3000, n).astype(float),
        "mostly zero": np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
        "zipf": np.minimum(rng.zipf(1.3, n), 10**9).astype(float),
        "outlier": np.append(rng.normal(size=n - 1), 1e300),
    }


ENGINES = [numpy.NumpyBackend(), numba.NumbaBackend(2)]


def edges_of(values: object, max_bins: int = 255, dtype: type = np.float64, weights=None):
    column = np.asarray(values, dtype)
    if weights is not None:
        weights = np.asarray(weights, np.int32)
    return edges(column, weights, max_bins)


def codes_of(X: np.ndarray, edges: BinEdges) -> np.ndarray:
    codes = [bin_matrix(X, edges, engine).codes for engine in ENGINES]
    assert np.array_equal(*codes)
    assert codes[0].dtype == codes[1].dtype == edges.code_dtype
    return codes[0]


def assert_codes_follow_thresholds(X: np.ndarray, edges: BinEdges) -> None:
    """x <= threshold of bin b  <=>  code <= b, for every bin of every feature."""
    codes = codes_of(X, edges)
    for f in range(X.shape[1]):
        bins = np.arange(edges.n_bins[f])
        threshold = edges.threshold(np.full(len(bins), f), bins)
        assert threshold[-1] == np.inf
        missing = np.isnan(X[:, f])
        assert np.array_equal(codes[:, f] == edges.missing_code, missing)
        x, code = X[~missing, f].astype(np.float64), codes[~missing, f]
        assert np.array_equal(x[:, None] <= threshold, code[:, None] <= bins)


def test_edges_are_the_exact_middles():
    assert edges_of([3, 1, 2, 2, 7]).tolist() == [1.5, 2.5, 5.0]
    assert edges_of([5, 5, 5]).tolist() == []
    assert edges_of([]).tolist() == []
    assert edges_of([np.nan, np.nan]).tolist() == []
    assert edges_of([np.nan, 4, 2]).tolist() == [3.0]
    assert edges_of([-0.0, 0.0]).tolist() == []
    assert edges_of([0, 1, 2, 3, 19], 4, np.float32).tolist() == [0.5, 2.5, 11.0]
    assert edges_of([0.1, 0.2], dtype=np.float32).tolist() == [
        (float(np.float32(0.1)) + float(np.float32(0.2))) / 2
    ]


def test_neighbouring_numbers_are_told_apart():
    tiny = np.nextafter(0.0, 1.0)
    for low, high in (
        (1.0, 1.0 + 1e-12),
        (1.0, np.nextafter(1.0, 2.0)),
        (0.0, tiny),
        (-tiny, 0.0),
        (tiny, 2 * tiny),
        (1e300, 1.1e300),
        (-1.7e308, 1.7e308),
        (np.nextafter(np.inf, 0), -np.nextafter(np.inf, 0)),
    ):
        low, high = min(low, high), max(low, high)
        (edge,) = edges_of([low, high])
        assert low <= edge < high
        assert np.isfinite(edge)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=any_float)
    | arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 3)), elements=any_float32),
    st.sampled_from([2, 3, 10, 255, 300]),
)
def test_codes_follow_the_thresholds(X, max_bins):
    edges = fit_edges(X, max_bins=max_bins)
    assert_codes_follow_thresholds(X, edges)
    assert np.all(edges.n_bins <= max_bins)
    for f in range(X.shape[1]):
        own = edges.values[edges.offsets[f] : edges.offsets[f + 1]]
        assert np.all(np.diff(own) > 0)
        values = np.unique(X[~np.isnan(X[:, f]), f].astype(np.float64))
        if len(values) <= max_bins:
            assert len(own) == max(0, len(values) - 1)
        # every edge parts the values in its own way
        ranks = np.searchsorted(values, own, side="right")
        assert np.all(np.diff(ranks, prepend=0, append=len(values)) > 0) or len(values) == 0


@pytest.mark.parametrize("max_bins", [2, 3, 16, 64, 255, 1000])
@pytest.mark.parametrize("name", shapes(np.random.default_rng(0), 2))
def test_bins_are_used_up(name, max_bins):
    x = shapes(np.random.default_rng(1), 20_000)[name]
    edges = edges_of(x, max_bins)
    most = min(max_bins, len(np.unique(x))) - 1
    assert 0.9 * most <= len(edges) <= most
    assert np.all(np.diff(edges) > 0)
    used = np.unique(np.searchsorted(edges, x, side="left"))
    assert len(used) == len(edges) + 1  # no bin is empty


@pytest.mark.parametrize("name", ["normal", "uniform", "log-normal", "cauchy", "outlier"])
def test_half_of_the_bins_are_quantiles(name):
    # so that no bin holds more than two of the half's shares
    x = shapes(np.random.default_rng(2), 20_000)[name]
    count = np.bincount(np.searchsorted(edges_of(x, 255), x, side="left"))
    assert count.max() <= 2 * len(x) / 254 * 1.05 + 2


def test_an_outlier_leaves_the_rest_its_resolution():
    x = np.random.default_rng(3).normal(size=20_000)
    plain = edges_of(x)
    for outlier in (1e9, 1e100, 1e300, -1e300, 1.7e308):
        edges = edges_of(np.append(x, outlier))
        inside = edges[(edges > x.min()) & (edges < x.max())]
        assert len(inside) >= 0.45 * len(plain)
        # it stands alone
        assert np.sum(edges > x.max()) + np.sum(edges < x.min()) == 1
        count = np.bincount(np.searchsorted(inside, x, side="left"))
        assert count.max() <= 2 * len(x) / 254 * 1.05 + 2


@given(st.integers(0, 2**32), st.integers(2, 400), st.sampled_from([2, 5, 30, 100]), st.booleans())
def test_a_weight_is_as_many_rows(seed, n, max_bins, few):
    rng = np.random.default_rng(seed)
    x = np.round(rng.lognormal(size=n), 1) if few else rng.lognormal(size=n)
    weights = rng.integers(0, 4, n)
    weights[0] = 1
    weighted = fit_edges(x[:, None], max_bins=max_bins, weights=weights.astype(np.int32))
    repeated = fit_edges(np.repeat(x, weights)[:, None], max_bins=max_bins)
    assert np.array_equal(weighted.values, repeated.values)
    order = rng.permutation(n)
    again = fit_edges(x[order, None], max_bins=max_bins, weights=weights[order].astype(np.int32))
    assert np.array_equal(again.values, weighted.values)


@pytest.mark.parametrize("max_bins", [10, 255])
def test_edges_follow_units(max_bins):
    # a power of two changes no rounding; so neither does it change which gaps are cut
    x = np.random.default_rng(5).lognormal(size=5000)
    assert np.array_equal(edges_of(x * 2.0**40, max_bins), edges_of(x, max_bins) * 2.0**40)


def test_codes_of_two_bytes():
    x = np.arange(70_000, dtype=np.float64)[:, None]
    x[-1] = np.nan
    edges = fit_edges(x, max_bins=65_535)
    assert 0.99 * 65_535 < edges.n_bins[0] <= 65_535
    codes = codes_of(x, edges)
    assert codes.dtype == np.uint16
    assert codes[-1, 0] == edges.missing_code
    for n, dtype in ((255, np.uint8), (256, np.uint16)):
        codes = codes_of(x[:n], fit_edges(x[:n], max_bins=1000))
        assert codes.dtype == dtype
        assert np.array_equal(codes[:, 0], np.arange(n))


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
    device: Any, X: np.ndarray, max_bins: int, order: int = 0, budget: int = 2**26, **more: Any
) -> None:
    expected = fit_edges(X, max_bins=max_bins, **more)
    with device.order(order):
        found = fit_edges(X, max_bins=max_bins, backend=device.backend(budget), **more)
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
    assert_same_edges(device, X, max_bins, order=max_bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_several_tiles_of_a_sort(device, dtype):
    tile = SORT_THREADS * SORT_BYTES // np.dtype(dtype).itemsize
    for n in (tile - 1, tile, tile + 1, 3 * tile + 77):
        x = np.random.default_rng(n).normal(size=n)
        x[: n // 9] = np.nan
        X = np.stack([x, np.arange(n, 0, -1), np.round(x), -(x**3)], axis=1).astype(dtype)
        assert_same_edges(device, X, 1000, order=n)


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
        assert_same_edges(device, X, 30, weights=weights, seed=5, sample_rows=200)


@pytest.mark.parametrize("n_edges", [0, 1, 2, 14, 15, 16, 17, 30, 31, 32, 254, 255, 1000, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_codes_are_the_reference_at_every_edge(n_edges, dtype):
    rng = np.random.default_rng(n_edges)
    limits = [-1e300, -1e-50, 0.0, 1e-50, 1e-44, 3.4028235677973366e38, 1e300]
    columns = [
        np.unique(rng.normal(size=n_edges) * 10.0 ** rng.integers(-48, 45, n_edges)),
        np.unique(np.concatenate([limits, rng.normal(size=n_edges)])[:n_edges]),
        np.unique(rng.normal(size=n_edges).astype(np.float32).astype(np.float64)),
        np.zeros(0),
    ]
    edges = BinEdges.of(columns)
    with np.errstate(over="ignore"):
        near = edges.values.astype(dtype)
    extremes = np.array([0, -0.0, np.nan, np.inf, -np.inf], dtype)
    x = np.concatenate(
        [extremes, near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, -near)]
    )
    x = np.concatenate([x, rng.normal(size=200).astype(dtype)])
    X = np.stack([rng.permutation(x) for _ in columns], axis=1)
    found = ENGINES[1].encode(X, edges)
    expected = ENGINES[0].encode(X, edges)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(numba.NumbaBackend().encode(X[:1], edges), expected[:1])
