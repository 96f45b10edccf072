"""Kernels over rows: what they are by definition, and every backend alike."""

import numpy as np
import pytest
from chances import keys64, splitmix
from engine import Task
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel
from laws import column

from gpuforest.backends import base, numba
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.bins import BinEdges
from gpuforest.core.rules import Sampling
from gpuforest.growing.bags import draw_bags
from gpuforest.kernels.bag.numba import mulhi as compiled_mulhi
from gpuforest.kernels.bag.numpy import mulhi


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
    found = numba.NumbaBackend(2).encode(X, edges)
    expected = NumpyBackend().encode(X, edges)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(numba.NumbaBackend().encode(X[:1], edges), expected[:1])


@kernel
def products(a, b, out):
    for i in range(len(a)):
        out[i] = compiled_mulhi(a[i], b)


@given(st.lists(keys64, min_size=1, max_size=20), st.integers(1, 2**31) | st.integers(1, 2**63 - 1))
def test_upper_halves_of_products(a, b):
    expected = [x * b >> 64 for x in a]
    numbers = np.array(a, np.uint64)
    found, out = mulhi(numbers, b), np.zeros(len(a), np.int64)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    products(numbers, np.uint64(b), out)
    assert out.tolist() == expected


def test_bags_are_what_they_say(engine: base.Backend):
    weights = np.array([2, 0, 1, 5, 0], np.int32)
    owner = np.repeat(np.arange(5), weights)
    for shares, total in ((None, 5), (weights, 8)):
        bags = engine.asnumpy(draw_bags(Sampling(5, 300, shares), 42, 3, 6, engine))
        assert bags.dtype == np.int32
        for t in range(3):
            key = splitmix(splitmix(42, 3 + t), 0)
            points = [splitmix(key, j) * total >> 64 for j in range(300)]
            rows = points if shares is None else owner[points]
            assert np.array_equal(bags[t], np.bincount(rows, minlength=5))


def test_equal_moments_are_their_mean(engine):
    # 0 and 2 have the mean of 1 and 1, a whole number, and (0, 1) has none
    task = Task(column(*range(6)), np.array([1.0, 1, 0, 2, 0, 1]), "squared_error")
    training, begin = task.training(engine), np.array([0, 2, 4])
    rows, ones = np.arange(6, dtype=np.int32), np.ones(6, np.int32)
    sums, constant = engine.totals(training, rows, ones, begin, begin + 2)
    assert constant.tolist() == [True, False, False]
    again = engine.totals(training, rows, ones, begin, begin + 2, sums)
    assert again[0] is sums
    assert again[1].tolist() == [True, False, False]
