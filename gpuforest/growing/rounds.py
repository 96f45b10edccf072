"""The rounds of boosting, one after another, and warnings of what rounding takes from a fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.booster import Boosting, Round
from gpuforest.kernels.boosted_tree.records import MOST_STEP
from gpuforest.kernels.gradients.numpy import derivatives, power_of_two

LOOK_ROWS = 10_000  # rows whose derivatives show what is typical
# Of targets 10**14 and 3 * 10**14 + numbers of size one, float64 keeps steps of 1/64 and 1/16. With
# learning_rate=0.1 the first fit was as good as one without the offset (R2 0.93), the second not
# (0.91); of 10**15, with steps of 1/8, R2 was 0.82, and of 3 * 10**15 it was 0.07
COARSE_STEP = 0.2


def rounds(
    boosting: Boosting, backend: Backend, raw: np.ndarray, first: int = 0
) -> Iterator[Round]:
    """Grow rounds from number `first` on until they diverge; watched fits update raw f64[K, N]."""
    booster = backend.booster(boosting)
    try:
        while (done := booster.round(raw, first)) is not None:
            yield done
            first += 1
            if done.diverges:
                break
        warnings.warn(
            f"boosting ended after {first} rounds: predictions grow beyond what float64 "
            "holds: lower learning_rate",
            stacklevel=2,
        )
    finally:
        booster.close()


def refuse_overflow(y: np.ndarray, weight: np.ndarray | None) -> None:
    """Raise ValueError if weighted gradients would lie beyond float64."""
    far = float(np.abs(y, where=np.isfinite(y), out=np.zeros(y.shape)).max())  # ends may be inf
    if weight is not None and far > 1 and float(weight.max()) > MOST_STEP / far:
        raise ValueError(
            "weights times targets lie beyond 1e304, whose sums overflow: divide the weights or y "
            "by a constant"
        )


def warn_of_lost_precision(b: Boosting, baseline: np.ndarray) -> None:
    """Warn if rounding gradients will make a fit worse; baseline : f64[K]. Outliers need no
    warning: with the squared error they decide the splits long before gradients are rounded. Units
    a thousand times coarser gave fits as good as exact gradients."""
    if b.loss.on_host or (b.y == b.y[0]).all():
        return  # functions of users may need all rows; or nothing to learn
    sample = slice(None, None, -(-b.n_rows // LOOK_ROWS))
    y, weight = b.y[sample], None if b.weight is None else b.weight[sample]
    raw = np.repeat(baseline[:, None], len(y), axis=1)
    _, h = derivatives(b.loss.of_rows(y, weight, raw, np.zeros(1)))
    if not (b.loss.is_log or b.loss.is_classes):  # a prediction is the raw one
        _warn_of_far_targets(b, np.abs(y - raw[0]), float(np.abs(baseline[0])))
    if b.n_rows < 2 * b.min_rows:
        return  # no split anyway
    # what hessians are divided by in the first round
    _, most = b.bounds or (0.0, float(h.max()))
    if (h.mean(axis=1) * b.n_rows).max() < b.min_hessian:
        warnings.warn(
            "the hessians of all rows add up to less than min_hessian="
            f"{b.min_hessian:g}, so no node is split: the weights, or the means of the target, are "
            "too small; lower it, or multiply them by a constant",
            stacklevel=2,
        )
    elif b.n_words == 2 and (np.median(h, axis=1) < 1 / power_of_two(b.bits[1], most)).any():
        why = "the targets differ so much" if not b.loss.is_classes else "a class is so rare"
        why = why if b.weight is None else "the weights differ so much"
        warnings.warn(
            f"{why} among {b.n_rows} rows that the hessians of most rows are rounded to zero, and "
            "trees learn little from these: change the weights, or train on fewer rows",
            stacklevel=2,
        )


def _warn_of_far_targets(b: Boosting, rest: np.ndarray, far: float) -> None:
    """Warn of targets that float64 hardly tells apart; rest : f64[n] >= 0, from the baseline."""
    typical = float(np.median(rest[rest > 0])) if rest.any() else 0.0
    step = float(np.spacing(far))
    if far > typical and step > COARSE_STEP * b.learning_rate * typical:
        warnings.warn(
            f"y varies by about {typical:.2g} around {far:.2g}, where float64 has steps of "
            f"{step:.2g}: subtract a constant from y",
            stacklevel=2,
        )
