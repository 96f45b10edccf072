"""Split criteria: what a set of rows is worth, from its integer channel sums.

A split's score is the sum of its two sides' scores; the largest wins. A side's score
is minus its weighted impurity, up to a term that is the same for both ways to see the
node, so that a node's impurity decrease is

    score(left) + score(right) - score(node)        (times the criterion's unit)

=================  =====================================  ==========================
criterion          score of a side                        source
=================  =====================================  ==========================
gini               sum_c S_c^2 / n                        Breiman et al. 1984, 4.3
entropy, log_loss  sum_c S_c ln S_c - n ln n              Quinlan 1986
misclassification  max_c S_c                              Breiman et al. 1984, 4.2
squared_error      sum_k (sum w y_k)^2 / n                Breiman et al. 1984, 8.3
poisson            sum_k (sum w y_k) ln(mean y_k)         Therneau and Atkinson, rpart
information        the same, where no y_k may be zero     entropy of several outputs
absolute_error     - sum_k sum w |y_k - median y_k|       Breiman et al. 1984, 8.11
=================  =====================================  ==========================

Scores are float64 from integers, in a fixed order of operations that every backend
repeats, so they are the same to the last bit. Gini sums its squares as integers;
entropy sums a fixed-point table of n ln n: both are free of any order.

The classes of several outputs are moments, 1 where a row has the class: their squared
error is then the Gini impurity, and their information the entropy, of all outputs together.

No channel sums give an absolute error: its splits are found from the rows themselves, see
kernels/absolute_split, and their score is the whole gain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Array = Any

GINI, ENTROPY, MISCLASSIFICATION, SQUARED_ERROR, POISSON, INFORMATION = range(6)
ABSOLUTE_ERROR = 6

LN2 = 0.6931471805599453
SQRT2 = 1.4142135623730951
# 2 / (2 i + 1): the series of 2 atanh(t), which for |t| < 0.172 ends below 1 ulp
ATANH = tuple(2.0 / (2 * i + 1) for i in range(10))
# n ln n stays below 2**36 for n < 2**31, so 26 bits of fraction stay below 2**62
XLOGX_SCALE = 2.0**26


@dataclass(frozen=True)
class Criterion:
    """A criterion's number in the kernels, its task, and the unit of its gain."""

    name: str
    id: int
    task: str  # "classification" or "regression"
    unit: float  # multiplies score differences to give scikit-learn's impurity unit
    medians: bool = False  # nodes are measured by medians, which rows give and no sums


CRITERIA = {
    c.name: c
    for c in (
        Criterion("gini", GINI, "classification", 1.0),
        Criterion("entropy", ENTROPY, "classification", 1.0 / (XLOGX_SCALE * LN2)),
        Criterion("log_loss", ENTROPY, "classification", 1.0 / (XLOGX_SCALE * LN2)),
        # entropy, but features are chosen by the gain over the split's information, see multiway.py
        Criterion("gain_ratio", ENTROPY, "classification", 1.0 / (XLOGX_SCALE * LN2)),
        Criterion("misclassification", MISCLASSIFICATION, "classification", 1.0),
        Criterion("squared_error", SQUARED_ERROR, "regression", 1.0),
        Criterion("absolute_error", ABSOLUTE_ERROR, "regression", 1.0, medians=True),
        Criterion("poisson", POISSON, "regression", 1.0),
    )
}


def criterion_of(name: str, n_outputs: int = 1) -> Criterion:
    """The criterion of a name; of several outputs their mean.

    Raises
    ------
    ValueError : there is none for several outputs
    """
    found = CRITERIA[name]
    if n_outputs == 1:
        return found
    if found.task == "regression":
        return replace(found, unit=found.unit / n_outputs)
    if name in ("misclassification", "gain_ratio"):
        raise ValueError(f"criterion={name!r} is for one output: choose 'gini' or 'entropy'")
    id, unit = (SQUARED_ERROR, 1.0) if name == "gini" else (INFORMATION, 1.0 / LN2)
    return Criterion(name, id, "classification", unit / n_outputs)


def criterion_names(task: str) -> list[str]:
    """The criteria of a task, "classification" or "regression"."""
    return [name for name, c in CRITERIA.items() if c.task == task]


def log_int(xp: Any, n: Array) -> Array:
    """Natural logarithm f64[...] of integers n >= 1, i64[...], equal on every backend.

    Only shifts, comparisons and the four IEEE operations are used: a library's own
    logarithm differs in its last bit from one machine to the next.
    """
    e, rest = xp.zeros_like(n), n
    for step in (32, 16, 8, 4, 2, 1):
        big = rest >= 2**step
        e = e + xp.astype(big, xp.int64) * step
        rest = xp.where(big, rest >> step, rest)
    m = xp.astype(n, xp.float64) / xp.astype(xp.ones_like(n) << e, xp.float64)
    high = m > SQRT2
    m = xp.where(high, m * 0.5, m)
    e = e + xp.astype(high, xp.int64)
    t = (m - 1.0) / (m + 1.0)
    t2 = t * t
    series = xp.zeros_like(t) + ATANH[-1]
    for c in ATANH[-2::-1]:
        series = series * t2 + c
    return xp.astype(e, xp.float64) * LN2 + t * series


def xlogx(xp: Any, n: Array) -> Array:
    """Fixed-point n ln n, i64[...] in units of 2**-26, of integers 0 <= n < 2**31."""
    x = xp.astype(n, xp.float64) * log_int(xp, xp.where(n > 0, n, 1))
    return xp.astype(xp.floor(x * XLOGX_SCALE + 0.5), xp.int64)


def side_weight(xp: Any, sums: Array, criterion: int) -> Array:
    """Total weight i64[...] of a set of rows from its channel sums i64[..., C]."""
    return sums[..., 0] if criterion >= SQUARED_ERROR else xp.sum(sums, axis=-1)


def side_value(xp: Any, sums: Array, criterion: int) -> Array:
    """Mean f64[...] of the second channel: of two classes the share of the second, of a
    moment the mean."""
    n = side_weight(xp, sums, criterion)
    n = xp.where(n > 0, n, 1)
    return xp.astype(sums[..., 1], xp.float64) / xp.astype(n, xp.float64)


def side_score(xp: Any, sums: Array, criterion: int) -> Array:
    """Score f64[...] of a set of rows from its channel sums i64[..., C].

    Minus infinity marks a side that the criterion forbids (no weight; for poisson a
    mean of zero, whose logarithm does not exist). Of an absolute error it is zero: the score
    of a split is its whole gain.
    """
    n = side_weight(xp, sums, criterion)
    some = n > 0
    n = xp.where(some, n, 1)
    if criterion == GINI:
        score = xp.astype(xp.sum(sums * sums, axis=-1), xp.float64) / xp.astype(n, xp.float64)
    elif criterion == ENTROPY:
        score = xp.astype(xp.sum(xlogx(xp, sums), axis=-1) - xlogx(xp, n), xp.float64)
    elif criterion == MISCLASSIFICATION:
        score = xp.astype(xp.max(sums, axis=-1), xp.float64)
    else:
        score = xp.zeros(n.shape, dtype=xp.float64, device=n.device)
        if criterion == ABSOLUTE_ERROR:
            return score
        for k in range(1, sums.shape[-1]):  # one output after another: a fixed order
            s = xp.astype(sums[..., k], xp.float64)
            if criterion == SQUARED_ERROR:
                score = score + s * s
            else:
                if criterion == POISSON:
                    some = some & (sums[..., k] > 0)
                positive = xp.where(sums[..., k] > 0, sums[..., k], 1)
                score = score + s * (log_int(xp, positive) - log_int(xp, n))
        if criterion == SQUARED_ERROR:
            score = score / xp.astype(n, xp.float64)
    return xp.where(some, score, -xp.inf)
