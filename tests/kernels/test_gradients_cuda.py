"""Gradients on CUDA devices, beyond what fits show."""

import numpy as np
import pytest
from boosted import LOSSES, target_of
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.boosting.rounds import power_of_two
from gpuforest.kernels.boosted_tree.structs import LossOf, Scales
from gpuforest.kernels.gradients.numpy import (
    MOST_GRADIENT,
    LossNumbers,
    Units,
    gradients,
    largest,
)

SIZES = [0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 0.75, 1.0, 2.0, 3.0, 1e308, np.inf]


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize("h", [0.25, 5e-324, np.inf])
@pytest.mark.parametrize("one", [False, True])
def test_scales_are_those_of_the_host(cuda, g, h, one):
    backend = cuda.backend()
    most = backend.asarray(np.array([g, h]).view(np.uint64))
    scale = backend.empty(len(Scales._fields), np.int64)
    backend.launch("gradients", "scales", (1,), (most, scale, 50, 30, one, not one), threads=32)
    expected = [power_of_two(50, g), power_of_two(30, h)]
    expected += [2.0**-50, 1.0 if one else 1.0 / expected[1]]
    expected.append(0.0 if max(g, h) <= MOST_GRADIENT else 1.0)
    expected += [1.0 / expected[0], 1.0 / (expected[0] * expected[2])]
    assert backend.asnumpy(scale).view(np.float64).tolist() == expected
    assert (backend.asnumpy(most) == 0).all() == (one or (g, h) == (0, 0))


@given(
    name=st.sampled_from(LOSSES), rows_seed=st.integers(0, 2**32), n=st.integers(1, 700),
    spread=st.sampled_from([1e-200, 0.1, 3.0, 300.0, 1e5]), weighted=st.booleans(),
    order=st.integers(0, 99),
)  # fmt: skip
def test_stats_are_the_reference(cuda, name, rows_seed, n, spread, weighted, order):
    rng, backend = np.random.default_rng(rows_seed), cuda.backend()
    y, loss = target_of(rng, name, rng.random(n))
    K = loss.n_raw
    raw = rng.normal(size=(K, n)) * spread
    raw[rng.random((K, n)) < 0.1] = rng.choice([0.0, -0.0, 708.0, -709.0])
    raw[0, rng.random(n) < 0.1] = y[0]
    weight = rng.random(n) if weighted else np.zeros(0)
    numbers, bits = LossNumbers(loss.number, loss.quantile, 0.7), n.bit_length()
    y_there, raw_there = backend.asarray(y), backend.asarray(raw)
    weight_there = backend.asarray(weight) if weighted else None
    delta = backend.asarray(np.array([numbers.delta]))
    loss_there = LossOf(y_there, weight_there, raw_there, n, K, *numbers[:2], delta)
    most = largest(numbers, y, raw, weight)
    with cuda.order(order):
        if K == 1:
            found = backend.zeros(2, np.uint64)
            backend.launch("gradients", "largest", (3,), (loss_there, found))
            assert backend.asnumpy(found).view(np.float64).tolist() == [*most]
        units = Units(power_of_two(40, most[0]), power_of_two(40 - bits, most[1]), bits)
        scale = backend.asarray(np.array([units.g, units.h, *[0.0] * 5]).view(np.int64))
        for words in (1, 2):
            expected = np.zeros((K, n, words), np.int64)
            gradients(numbers, y, raw, weight, units, expected)
            stats = backend.empty((K, n, words), np.int64)
            arguments = loss_there, scale, bits, words, stats
            backend.launch("gradients", "gradients", (3,), arguments)
            assert np.array_equal(expected, backend.asnumpy(stats))
