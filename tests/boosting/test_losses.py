"""Losses: gradients are derivatives, baselines the best constants, kernels equal NumPy."""

import numpy as np
import pytest

from gpuforest.boosting.losses import Loss, exact_mean, exact_sum, weighted_quantile
from gpuforest.kernels.gradients import numba as compiled
from gpuforest.kernels.gradients import numpy as plain
from gpuforest.kernels.gradients.numpy import LossNumbers, Units

rng = np.random.default_rng(0)
N = 300
NUMBERS = ["squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma"]
CASES = [
    *((name, 0, np.abs(rng.normal(2, 1, N)) + 0.1) for name in NUMBERS),
    ("log_loss", 2, rng.integers(0, 2, N).astype(float)),
    ("log_loss", 5, rng.integers(0, 5, N).astype(float)),
]
IDS = [f"{name}{classes or ''}" for name, classes, _ in CASES]


def loss_of(name: str, classes: int) -> tuple[Loss, LossNumbers]:
    loss = Loss.of(name, 0.3 if name == "quantile" else None, classes)
    return loss, LossNumbers(loss.number, loss.quantile, 0.7)


@pytest.mark.parametrize(("name", "classes", "y"), CASES, ids=IDS)
def test_gradients_are_derivatives(name: str, classes: int, y: np.ndarray) -> None:
    loss, numbers = loss_of(name, classes)
    if name == "huber":
        pytest.skip("its delta is that of the rows, which a step would change")
    raw = rng.normal(size=(loss.n_raw, N))
    labels = y.astype(int) if loss.is_classes else y
    g, h = plain.derivatives(numbers, y, raw, np.zeros(0))
    step = 1e-4
    for k in range(loss.n_raw):
        up, down = raw.copy(), raw.copy()
        up[k] += step
        down[k] -= step
        above, here, below = (loss.losses(labels, r) for r in (up, raw, down))
        # differences of floats are that far from derivatives
        assert np.allclose((above - below) / (2 * step), g[k], atol=1e-6)
        if not loss.constant_hessian:
            second = (above - 2 * here + below) / step**2
            assert np.allclose(second, h[k], atol=1e-4)


@pytest.mark.parametrize(("name", "classes", "y"), CASES, ids=IDS)
def test_the_baseline_is_the_best_constant(name: str, classes: int, y: np.ndarray) -> None:
    loss, _ = loss_of(name, classes)
    labels = y.astype(int) if loss.is_classes else y
    for weight in (None, rng.integers(1, 4, N).astype(float)):
        best = loss.baseline(labels, weight)
        if name == "huber":  # the median, where it begins
            assert best == weighted_quantile(y, weight, 0.5)
            continue
        assert best.shape == (loss.n_raw,)
        least = loss.mean(labels, np.repeat(best[:, None], N, axis=1), weight)
        for k in range(loss.n_raw):
            for step in (-0.05, 0.05):
                other = best.copy()
                other[k] += step
                moved = loss.mean(labels, np.repeat(other[:, None], N, axis=1), weight)
                assert moved >= least - 1e-12  # of flat losses they are equal but for rounding


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "classes", "y"), CASES, ids=IDS)
def test_compiled_gradients_equal_the_reference(
    name: str, classes: int, y: np.ndarray, weighted: bool
) -> None:
    loss, numbers = loss_of(name, classes)
    far = 900.0 if loss.is_bounded else 5.0
    raw = rng.normal(size=(loss.n_raw, N))
    raw[:, :3] = 0.0, far, -far
    weight = rng.random(N) if weighted else np.zeros(0)
    units, words = Units(2.0**30, 2.0**20, N.bit_length()), 2 if weighted else 1
    found, wanted = np.empty((2, loss.n_raw, N, words), np.int64)
    plain.gradients(numbers, y, raw, weight, units, wanted)
    scratch = np.empty((3 + loss.n_raw, compiled.BLOCK))
    for first, last in ((0, 100), (100, N)):
        compiled.gradients(numbers, y, raw, weight, units, found, first, last, scratch)
    assert np.array_equal(found, wanted)
    out = np.empty(2)
    compiled.largest(numbers, y, raw, weight, out, 0, N, scratch)
    assert out.tolist() == [*plain.largest(numbers, y, raw, weight)]


def test_exact_sums_are_free_of_order() -> None:
    values = rng.normal(size=1000) * 10.0 ** rng.integers(-8, 8, 1000)
    assert exact_sum(values) == exact_sum(values[::-1]) == exact_sum(rng.permutation(values))
    assert abs(exact_sum(values) - values.sum()) <= 1e-6 * np.abs(values).max()
    assert exact_sum(np.zeros(3)) == 0.0
    assert exact_mean(np.array([1.0, 2.0]), np.array([3.0, 1.0])) == 1.25


def test_quantiles() -> None:
    values = rng.normal(size=101)
    for share in (0.0, 0.1, 0.5, 0.93, 1.0):
        # NumPy interpolates in another order
        assert np.isclose(weighted_quantile(values, None, share), np.quantile(values, share))
    # weights 1, 1, 2: the half of the weight ends between the second value and the third
    assert weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]), 0.5) == 2.5
    assert weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([9.0, 1.0, 1.0]), 0.5) == 3.0
