"""Rows whose targets come as a surprise, of losses with a log link.  python -m benchmarks.log_links

In a fiftieth of 3,000 rows, which one feature tells apart, targets are smaller (gamma) or means
larger (poisson) by a ratio. "tiny rates": numbers of events in times of 0.01 to 1, of which there
are some 0.02 a unit; targets are events over time, weights times. Mean deviances of the other rows,
of two sets of random numbers, beside scikit-learn and LightGBM.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import lightgbm
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance

import gpuforest
from benchmarks.record import Log, table

LIBRARIES = ("gpuforest", "scikit-learn", "lightgbm")
DEVIANCES = {
    "gamma": mean_gamma_deviance,
    "poisson": mean_poisson_deviance,
    "tiny rates": mean_poisson_deviance,
}
RATE = 0.02 / np.e  # of "tiny rates", beside the means of the others


def data_of(work: str, ratio: float, seed: int, n: int) -> tuple[np.ndarray, ...]:
    """X, y, the weights of the rows, and which rows are the others."""
    rng = np.random.default_rng(seed)
    X, time = rng.normal(size=(n, 5)), np.ones(n)
    mean, far = np.exp(0.5 * X[:, 0] + 0.3 * np.sin(2 * X[:, 1]) + 1), X[:, 2] > 2.054
    if work == "gamma":
        y = mean * rng.gamma(4, 1 / 4, n)
        return X, np.where(far, y / ratio, y), time, ~far
    if work == "tiny rates":
        mean, time = mean * RATE, rng.uniform(0.01, 1, n)
    return X, rng.poisson(np.where(far, mean * ratio, mean) * time) / time, time, ~far


def model_of(library: str, loss: str, rate: float) -> Any:
    if library == "lightgbm":
        return lightgbm.LGBMRegressor(objective=loss, learning_rate=rate, n_jobs=1, verbose=-1)
    common = {"loss": loss, "learning_rate": rate, "early_stopping": False, "random_state": 0}
    if library == "gpuforest":
        return gpuforest.HistGradientBoostingRegressor(**common, n_jobs=1)
    return HistGradientBoostingRegressor(**common)


def deviance(library: str, work: str, rate: float, ratio: float, seed: int, n: int) -> float:
    """Of the other rows; infinite where predictions are."""
    X, y, weight, others = data_of(work, ratio, seed, n)
    loss = "gamma" if work == "gamma" else "poisson"
    try:
        found = model_of(library, loss, rate).fit(X, y, sample_weight=weight).predict(X[others])
    except Exception:  # LightGBM ends some fits with an error
        return float("inf")
    if not np.isfinite(found).all():
        return float("inf")
    found = np.maximum(found, 1e-300)
    return float(DEVIANCES[work](y[others], found, sample_weight=weight[others]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratios", nargs="+", type=float, default=[1, 100, 300, 1000, 1e6])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.05, 0.1, 1.0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    log, rows = Log("log_links"), []
    for work in DEVIANCES:
        for rate in options.rates:
            for ratio in options.ratios:
                means = {}
                for library in LIBRARIES:
                    seeds = range(options.seeds)
                    each = [deviance(library, work, rate, ratio, s, options.rows) for s in seeds]
                    means[library] = min(float(np.mean(each)), 1e300)
                log.add(loss=work, rate=rate, ratio=ratio, rows=options.rows, **means)
                cells = [f"{value:.3g}" for value in means.values()]
                rows.append([work, f"{rate:g}", f"{ratio:g}", *cells])
    print(table(["loss", "learning rate", "ratio", *LIBRARIES], rows))


if __name__ == "__main__":
    main()
