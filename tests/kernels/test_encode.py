"""Codes: the worked example, and the reference's at and beside every edge."""

import numpy as np
import pytest
from laws import column

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.binning import BinEdges


def test_example_of_encode(engine):
    edges = BinEdges(np.array([1.5, 2.5]), np.array([0, 2]))
    codes = engine.encode(column(1.0, 1.5, 2.0, 9.0, np.nan), edges)
    assert codes[:, 0].tolist() == [0, 0, 1, 2, edges.missing_code]


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
    values = np.concatenate(columns)
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    edges = BinEdges(values, offsets)
    with np.errstate(over="ignore"):
        near = values.astype(dtype)
    extremes = np.array([0, -0.0, np.nan, np.inf, -np.inf], dtype)
    x = np.concatenate(
        [extremes, near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, -near)]
    )
    x = np.concatenate([x, rng.normal(size=200).astype(dtype)])
    X = np.stack([rng.permutation(x) for _ in columns], axis=1)
    found = NumbaBackend(2).encode(X, edges)
    expected = NumpyBackend().encode(X, edges)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(NumbaBackend().encode(X[:1], edges), expected[:1])
