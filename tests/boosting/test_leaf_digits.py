"""Leaves of losses with a log link: all digits of their values, and bounded steps."""

import math
from dataclasses import replace

import numpy as np
import pytest
from boosted import Fit, made

from gpuforest import HistGradientBoostingRegressor
from gpuforest.backends.base import Backend
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.boosting.losses import MOST_VALUE_OF_LOGS
from gpuforest.kernels.gradients.numpy import LossNumbers, derivatives


def spread(name: str, seed: int) -> Fit:
    """A fit on targets of many orders of magnitude."""
    rng = np.random.default_rng(seed)
    n, weight = int(rng.choice([30, 300, 2500])), str(rng.choice(["none", "whole", "real"]))
    fit = made(
        seed, n, [0, 0], [60, 9], name, weight, 0.1, learning_rate=float(rng.choice([0.05, 1.0])),
        min_rows=int(rng.choice([1, 20])), l2=float(rng.choice([0.0, 0.5])),
    )  # fmt: skip
    mean = np.exp(rng.normal(size=n) + 3 * (fit.codes[:, 0] % 7) - 9)
    y = rng.poisson(mean) + (np.arange(n) == 0) if name == "poisson" else rng.gamma(0.7, mean)
    return replace(fit, y=np.maximum(y.astype(float), 0 if name == "poisson" else 1e-9))


def worst(fit: Fit, backend: Backend) -> float:
    """The largest relative difference between a leaf's value and that of exact sums."""
    b = fit.boosting(backend)
    raw = np.repeat(b.loss.baseline(b.y, b.weight)[:, None], b.n_rows, axis=1)
    booster, found = b.backend.booster(b), 0.0
    weight = np.zeros(0) if b.weight is None else b.weight
    for number in range(6):
        g, h = derivatives(LossNumbers(b.loss.number, 0.5, 0.0), b.y, raw, weight)
        tree = booster.round(raw, number).trees[0]
        for (begin, end, *_), value in zip(tree.ranges, tree.values, strict=True):
            rows = booster.rows[0][begin:end]
            exact = -math.fsum(g[0, rows]) / (math.fsum(h[0, rows]) + b.l2)
            exact = min(max(exact, -MOST_VALUE_OF_LOGS), MOST_VALUE_OF_LOGS)
            found = max(found, abs(value - exact) / max(abs(exact), 1e-300))
    booster.close()
    return found


@pytest.mark.parametrize("kind", [NumpyBackend, NumbaBackend])
@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_values_of_leaves_have_all_their_digits(name: str, kind: type[Backend]) -> None:
    for seed in range(3 if kind is NumpyBackend else 25):
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
