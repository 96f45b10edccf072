"""Bin edges and codes: exact where values are few, and sharp where they spread."""

import numpy as np
import pytest
from columns import any_float, any_float32, shapes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gpuforest.backends import numba, numpy
from gpuforest.core.bins import BinEdges
from gpuforest.growing.edges import bin_matrix, fit_edges
from gpuforest.kernels.edges.numpy import edges as edges_by_reference

ENGINES = [numpy.NumpyBackend(), numba.NumbaBackend(2)]


def edges_of(values: object, max_bins: int = 255, dtype: type = np.float64, weights=None):
    column = np.asarray(values, dtype)
    if weights is not None:
        weights = np.asarray(weights, np.int32)
    return edges_by_reference(column, weights, max_bins)


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
