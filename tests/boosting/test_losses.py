"""Losses: gradients are derivatives, baselines the best constants, kernels equal NumPy; leaves of
losses with a log link have all digits of their values, and bounded steps."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from boosted import NUMBERS, Fit, in_array, made, rules_of

import gpuforest
from gpuforest import HistGradientBoostingRegressor
from gpuforest.backends import base, numba, numpy
from gpuforest.kernels.gradients import numba as compiled
from gpuforest.kernels.gradients import numpy as plain
from gpuforest.kernels.gradients.losses import (
    MOST_VALUE_OF_LOGS,
    Loss,
    exact_mean,
    exact_sum,
    weighted_quantile,
)

rng = np.random.default_rng(0)
N = 300
CASES = [
    *((name, 0, np.abs(rng.normal(2, 1, N)) + 0.1) for name in NUMBERS[:-1]),
    ("cross_entropy", 0, rng.random(N)),
    ("log_loss", 2, rng.integers(0, 2, N).astype(float)),
    ("log_loss", 5, rng.integers(0, 5, N).astype(float)),
]
IDS = [f"{name}{classes or ''}" for name, classes, _ in CASES]


def loss_of(name: str, classes: int) -> Loss:
    return Loss.of(name, 0.3 if name == "quantile" else None, classes)


@pytest.mark.parametrize(("name", "classes", "y"), CASES, ids=IDS)
def test_gradients_are_derivatives(name: str, classes: int, y: np.ndarray) -> None:
    loss = loss_of(name, classes)
    if name == "huber":
        pytest.skip("its delta is that of the rows, which a step would change")
    raw = rng.normal(size=(loss.n_raw, N))
    labels = y.astype(int) if loss.is_classes else y
    g, h = plain.derivatives(loss.of_rows(y, None, raw, None))
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
    loss = loss_of(name, classes)
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
    loss = loss_of(name, classes)
    far = 900.0 if loss.is_bounded else 5.0
    raw = rng.normal(size=(loss.n_raw, N))
    raw[:, :3] = 0.0, far, -far
    of_rows = loss.of_rows(y, rng.random(N) if weighted else None, raw, np.array([0.7]))
    rules, words = rules_of(1, N.bit_length(), g=2.0**30, h=2.0**20), 2 if weighted else 1
    found, wanted = np.empty((2, loss.n_raw, N, words), np.int64)
    plain.gradients(of_rows, rules, wanted)
    scratch = np.empty((3 + loss.n_raw, compiled.BLOCK))
    for first, last in ((0, 100), (100, N)):
        none = np.zeros(0)
        compiled.gradients(of_rows, in_array(rules), found, none, first, last, scratch)
    assert np.array_equal(found, wanted)
    out = np.zeros(2)
    compiled.gradients(of_rows, in_array(rules), found, out, 0, N, scratch)
    assert np.array_equal(found, wanted)
    assert out.tolist() == [*plain.largest(of_rows)]


def test_scales_by_hand() -> None:
    """Gradients up to 3 in 50 bits, hessians up to 0.75 in 30."""
    by_two = [2.0**48, 2.0**30, 2.0**-50, 2.0**-30, 0.0, 2.0**-48, 2.0**2]
    assert [*plain.scales(3.0, 0.75, 50, 30, one=False)] == by_two
    assert plain.scales(3.0, 0.75, 50, 30, one=True).sum_h == 1.0
    assert plain.scales(1e308, 1.0, 50, 30, one=False).overflows


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


def test_few_files_know_a_loss() -> None:
    """It is added to the table of losses, the three gradients, and the parameter's text."""
    package = Path(gpuforest.__file__).parent
    files = [path for path in package.rglob("*") if path.suffix in (".py", ".cu", ".cuh")]
    knowing = [path for path in files if "huber" in path.read_text().lower()]
    assert 4 <= len(knowing) <= 5, knowing


def spread(name: str, seed: int) -> Fit:
    rng = np.random.default_rng(seed)
    n, weight = int(rng.choice([30, 300, 2500])), str(rng.choice(["none", "whole", "real"]))
    fit = made(
        seed, n, [0, 0], [60, 9], name, weight, 0.1, learning_rate=float(rng.choice([0.05, 1.0])),
        min_rows=int(rng.choice([1, 20])), l2=float(rng.choice([0.0, 0.5])),
    )  # fmt: skip
    mean = np.exp(rng.normal(size=n) + 3 * (fit.codes[:, 0] % 7) - 9)
    y = rng.poisson(mean) + (np.arange(n) == 0) if name == "poisson" else rng.gamma(0.7, mean)
    return replace(fit, y=np.maximum(y.astype(float), 0 if name == "poisson" else 1e-9))


def worst(fit: Fit, backend: base.Backend) -> float:
    """The largest relative difference between a leaf's value and that of exact sums."""
    b = fit.boosting(backend)
    raw = np.repeat(b.loss.baseline(b.y, b.weight)[:, None], b.n_rows, axis=1)
    booster, found = backend.booster(b), 0.0
    for number in range(6):
        g, h = plain.derivatives(b.loss.of_rows(b.y, b.weight, raw, None))
        tree = booster.round(raw, number).trees[0]
        for begin, end, value in tree.leaves[["begin", "end", "value"]].tolist():
            rows = booster.rows[0][begin:end]
            exact = -math.fsum(g[0, rows]) / (math.fsum(h[0, rows]) + b.l2)
            exact = min(max(exact, -MOST_VALUE_OF_LOGS), MOST_VALUE_OF_LOGS)
            found = max(found, abs(value - exact) / max(abs(exact), 1e-300))
    booster.close()
    return found


@pytest.mark.parametrize("kind", [numpy.NumpyBackend, numba.NumbaBackend])
@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_values_of_leaves_have_all_their_digits(name: str, kind: type[base.Backend]) -> None:
    for seed in range(3 if kind is numpy.NumpyBackend else 25):
        assert worst(spread(name, seed), kind()) < 1e-9


@pytest.mark.parametrize(
    ("loss", "factor", "rate"),
    [("gamma", 1 / 300, 1.0), ("gamma", 1e-6, 1.0), ("poisson", 300, 1.0)],
)
def test_rows_that_come_as_a_surprise_leave_the_others_alone(
    loss: str, factor: float, rate: float
) -> None:
    rng, n = np.random.default_rng(0), 600
    X = rng.normal(size=(n, 3))
    mean, far = np.exp(0.5 * X[:, 0] + 1), X[:, 2] > 1.9
    y = mean * rng.gamma(4, 0.25, n) if loss == "gamma" else rng.poisson(mean).astype(float)

    def of_others(target: np.ndarray) -> float:
        """The mean deviance of the rows that are not far."""
        model = HistGradientBoostingRegressor(
            loss, learning_rate=rate, max_iter=20, min_samples_leaf=10, early_stopping=False,
            random_state=0, backend="numba", n_jobs=1,
        )  # fmt: skip
        p, own = model.fit(X, target).predict(X)[~far], y[~far]
        if loss == "gamma":
            return float(np.mean(np.log(p / own) + own / p - 1))
        return float(np.mean(p - own + own * np.log(np.maximum(own, 1e-9) / p)))

    assert of_others(np.where(far, y * factor, y)) < 1.5 * of_others(y) + 0.05


@pytest.mark.parametrize(("name", "classes", "y"), CASES, ids=IDS)
def test_backends_find_the_same_mean_loss(name: str, classes: int, y: np.ndarray) -> None:
    loss, target = loss_of(name, classes), y.astype(np.int64) if classes else y
    raw = np.random.default_rng(0).normal(0, [[2.0], [900.0]], (2, len(y)))
    weight = np.arange(len(y)) % 3 / 7
    for scaled in raw:  # exponentials are cut off far out
        scores = scaled[None] * np.linspace(1, 2, loss.n_raw)[:, None]
        for given in (None, weight):
            found = [
                kind().mean_loss(loss, target, scores, given)
                for kind in (numpy.NumpyBackend, numba.NumbaBackend)
            ]
            assert found[0] == found[1]
