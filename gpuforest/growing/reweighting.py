"""AdaBoost's arithmetic: how much trees count, and how much rows weigh in the next round.

It is NumPy on the host. Sums are rounded once and powers use IEEE operations, so all backends give
one model.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from gpuforest.common.sums import blocks, exact_sum, total_of

# A row's share of all weight, at least: rows of less would be lost to rounding, and come back
# as NaN (scikit-learn has the same bound)
LEAST_SHARE = float(np.finfo(np.float64).eps)
LN2 = math.log(2)
TERMS = 14  # of the series of 2**x: the remainder is below the last bit for |x| <= 1/2


# What follows from one tree: how much it counts in the ensemble; its weighted error, from 0 to 1;
# factors f64[N] that multiply the rows' weights for the next round, if there is an error
Round = tuple[float, float, np.ndarray]


def boost(
    weights: np.ndarray, n_rounds: int, grow_round: Callable[[int, np.ndarray], Round | None]
) -> list[tuple[float, float]]:
    """Grow trees in rounds from weights f64[N] that sum to one; returns (weight, error) of each
    tree. Rounds end with a tree without error, a tree no better than chance (no `Round`), or
    weights that are infinite or all zero."""
    rounds: list[tuple[float, float]] = []
    counted, total = weights > 0, total_of(weights)
    for t in range(n_rounds):
        # a row that counts has LEAST_SHARE at least
        weights /= total
        np.maximum(weights, LEAST_SHARE, out=weights, where=counted)
        grown = grow_round(t, weights)
        if grown is None:
            break
        tree_weight, error, factors = grown
        rounds.append((tree_weight, error))
        if error <= 0 or t == n_rounds - 1:
            break
        with np.errstate(over="ignore"):
            np.multiply(weights, factors, out=weights, where=counted)
        del grown, factors
        total = total_of(weights)
        if not math.isfinite(total):
            warnings.warn(
                f"Sample weights have reached infinite values, at iteration {t}, causing "
                "overflow. Iterations stopped. Try lowering the learning rate.",
                stacklevel=2,
            )
        if not 0 < total < math.inf:
            break
    return rounds


def samme(
    wrong: np.ndarray, weights: np.ndarray, n_classes: int, learning_rate: float
) -> Round | None:
    """A round of SAMME (Zhu et al. 2009; AdaBoost.M1 for two classes); None: no better than chance.

    wrong : bool[N], rows that the tree predicts wrongly"""
    error = total_of(weights[wrong])
    if error <= 0:
        return 1.0, 0.0, np.ones(0)
    odds = (1.0 - error) / error * (n_classes - 1.0)
    if odds <= 1.0:
        return None
    with np.errstate(over="ignore"):  # infinite weights end the boosting, with a warning
        factor = np.power(odds, learning_rate)
    return learning_rate * math.log(odds), error, np.where(wrong, factor, 1.0)


def r2(residuals: np.ndarray, weights: np.ndarray, loss: str, learning_rate: float) -> Round | None:
    """A round of AdaBoost.R2 (Drucker 1997) from residuals f64[N] >= 0; None: mean loss >= 1/2."""
    largest = float(residuals.max(where=weights > 0, initial=0.0))

    def lost_by(rows: slice) -> np.ndarray:
        # rows of no weight may be off by more than all others
        lost: np.ndarray = np.minimum(residuals[rows], largest) / (largest or 1.0)
        if loss == "square":
            lost = lost * lost
        elif loss == "exponential":
            lost = 1.0 - power_of_two(lost / -LN2)
        return lost

    N = len(weights)
    error = exact_sum(weights[rows] * lost_by(rows) for rows in blocks(N))
    if error <= 0:
        return 1.0, 0.0, np.ones(0)
    if error >= 0.5:
        return None
    beta = error / (1.0 - error)
    factors = np.empty(N)
    for rows in blocks(N):
        factors[rows] = power_of_two(math.log2(beta) * learning_rate * (1.0 - lost_by(rows)))
    return learning_rate * math.log(1.0 / beta), error, factors


def power_of_two(exponents: np.ndarray) -> np.ndarray:
    """2**x f64[N] of numbers x <= 0 within two units of the last bit, by IEEE operations."""
    whole = np.maximum(np.rint(exponents), -1100.0)  # from there on, the power is 0
    rest = np.maximum(exponents - whole, -0.5) * LN2
    series = np.ones(len(rest))
    for k in range(TERMS, 0, -1):
        series = series * rest / k + 1.0
    return np.asarray(np.ldexp(series, whole.astype(np.int32)))
