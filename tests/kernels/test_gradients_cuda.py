"""Gradients on CUDA devices, beyond what fits show."""

import numpy as np
import pytest
from boosted import LOSSES, rules_of, target_of
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.compiler.types import dtype_of
from gpuforest.kernels.boosted_tree.records import Leaf, Scales, TreesOut
from gpuforest.kernels.gradients.numpy import gradients, largest, scales

SIZES = [0.0, 5e-324, 1e-310, 2.2250738585072014e-308, 1e-300, 0.75, 1.0, 2.0, 3.0, 1e308, np.inf]


@pytest.mark.parametrize("g", SIZES)
@pytest.mark.parametrize("h", [0.25, 5e-324, np.inf])
@pytest.mark.parametrize("one", [False, True])
def test_scales_are_those_of_the_host(cuda, g, h, one):
    backend = cuda.backend()
    most = backend.asarray(np.array([g, h]).view(np.uint64))
    scale = backend.empty(len(Scales._fields), np.int64)
    backend.launch("gradients", "scales", 1, most, scale, 50, 30, one, not one, threads=32)
    assert backend.asnumpy(scale).view(np.float64).tolist() == [*scales(g, h, 50, 30, one)]
    assert (backend.asnumpy(most) == 0).all() == (one or (g, h) == (0, 0))


ARRAYS = "kinds", "signs", "groups"  # of the rules


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
    weight, bits = rng.random(n) if weighted else None, n.bit_length()
    arrays = y, weight, raw, np.array([0.7])
    on_host = loss.of_rows(*arrays)
    there = loss.of_rows(*(None if a is None else backend.asarray(a) for a in arrays))
    most = largest(on_host)
    rules = rules_of(1, bits, scale=scales(*most, 40, 40 - bits, one=False))
    scale = backend.asarray(np.array(rules.scale).view(np.int64))
    with cuda.order(order):
        if K == 1:
            found = backend.zeros(2, np.uint64)
            backend.launch("gradients", "largest", 3, there, found)
            assert backend.asnumpy(found).view(np.float64).tolist() == [*most]
        for words in (1, 2):
            expected = np.zeros((K, n, words), np.int64)
            gradients(on_host, rules, expected)
            stats = backend.empty((K, n, words), np.int64)
            moved = {name: backend.asarray(getattr(rules, name)) for name in ARRAYS}
            arguments = there, rules._replace(scale=scale, **moved), words, stats
            backend.launch("gradients", "gradients", 3, *arguments)
            assert np.array_equal(expected, backend.asnumpy(stats))


def test_sums_of_weights_of_many_leaves_may_wrap_around(cuda):
    # leaves [1, 2, 3] and [5, 6, 8] with weights 2, 2, 1 and 2, 1, 1, of which eight are 2**63
    leaves = np.zeros(2, dtype_of(Leaf))
    leaves["begin"], leaves["end"] = (0, 3), (3, 6)
    out = np.zeros((1, 4 + 4 + leaves.size * leaves.itemsize // 8), np.uint64)
    out[0, 0] = 3
    out[0, 8:] = leaves.view(np.uint64)
    unit = 2**60
    upto = np.cumsum(np.array([2, 2, 1, 2, 1, 1], np.uint64) * np.uint64(unit)).view(np.int64)
    assert upto[-1] < upto[0]
    rest = np.array([1.0, 2.0, 3.0, 5.0, 6.0, 8.0])
    backend = cuda.backend()
    out, rest, upto = (backend.asarray(a) for a in (out, rest, upto))
    found = backend.zeros(2, np.float64)
    trees = TreesOut(out, out.shape[1], 4)
    backend.launch_each("gradients", "quantiles", 2, trees, rest, upto, 0.5, found)
    assert backend.asnumpy(found).tolist() == [2.0, 5.5]
