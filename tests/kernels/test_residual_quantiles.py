"""Quantiles of residuals on CUDA devices, beside NumPy's sorts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuforest.backends.cuda_boosters import DELTA_STEPS
from gpuforest.boosting.losses import weighted_quantile
from gpuforest.kernels.boosted_tree.structs import DeltaSteps, LossOf
from gpuforest.kernels.gradients.records import HUBER

MACROS = {"CODE": "u8", "WORDS": "1"}
SHARES = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0]


@st.composite
def weights(draw, n):
    """Weights of which some become zero, and some lie between two whole numbers."""
    rng, least = np.random.default_rng(draw(st.integers(0, 2**32))), 2.0 ** -(51 - n.bit_length())
    kinds = [[1.0, 2.0, 4.0], [1.0, 0.0], [1e-30, 1e-29], [0.5, 1.5, 2.5], [3.0, 1e-30]]
    factor = draw(st.sampled_from([1.0, least]))
    return rng.choice(draw(st.sampled_from(kinds)), n) * factor


@settings(derandomize=True, deadline=None, max_examples=300)
@given(
    data=st.data(),
    n=st.integers(1, 12) | st.integers(250, 520),
    order=st.integers(0, 99),
    blocks=st.sampled_from([1, 1, 2, 5]),
)
def test_quantiles_are_those_of_sorted_residuals(cuda, data, n, order, blocks):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    share, unit = data.draw(st.sampled_from(SHARES)), data.draw(st.sampled_from([1e-310, 1.0]))
    rest = rng.integers(0, data.draw(st.sampled_from([2, 5, 10**6])), n) * unit
    weight = data.draw(weights(n)) if data.draw(st.booleans()) else None
    backend, y = cuda.backend(), rest * rng.choice([-1.0, 1.0], n)
    weight_there = None if weight is None else backend.asarray(weight)
    raw, delta = backend.zeros(n, np.float64), backend.empty(1, np.float64)
    loss = LossOf(backend.asarray(y), weight_there, raw, n, 1, HUBER, share, delta)
    scratch = [backend.empty(n, np.float64) for _ in range(2)]
    counts = backend.zeros((8, 256), np.int64), backend.zeros(24, np.uint64)
    each = 1 if blocks > 1 else DELTA_STEPS
    with cuda.order(order):
        for step in range(0, DELTA_STEPS, each):
            steps = DeltaSteps(*scratch, *counts, n, step, step + each - 1)
            arguments = loss, steps, np.uint64(0), False, delta
            grid = (blocks if step < DELTA_STEPS - 1 else 1,)
            backend.launch("boosted_tree", "huber_delta", grid, arguments, macros=MACROS)
    assert backend.asnumpy(delta)[0] == weighted_quantile(rest, weight, share)
    assert not any(backend.asnumpy(a).any() for a in counts)  # for the next one
