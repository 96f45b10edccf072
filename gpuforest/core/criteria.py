"""Split criteria: the score of a set of rows, computed from its integer channel sums.

A split's score is the sum of the scores of its two sides; the highest score wins. A side's score
is its weighted impurity with a minus sign, up to a term that cancels in a difference, so that a
split's impurity decrease is

    score(left) + score(right) - score(node)        (times the criterion's unit)

=================  =====================================  ==========================
criterion          score of a side                        source
=================  =====================================  ==========================
gini               sum_c S_c^2 / n                        Breiman et al. 1984, 4.3
entropy, log_loss  sum_c S_c ln S_c - n ln n              Quinlan 1986
misclassification  max_c S_c                              Breiman et al. 1984, 4.2
squared_error      sum_k (sum w y_k)^2 / n                Breiman et al. 1984, 8.3
poisson            sum_k (sum w y_k) ln(mean y_k)         Therneau and Atkinson, rpart
information        the same, where a y_k may be zero      entropy of several outputs
exponential        D ln(D / T), D events in a time of T   LeBlanc and Crowley 1992
logrank            D^2 / E, of E events expected          Ciampi et al. 1986; Ishwaran et al. 2008
absolute_error     - sum_k sum w |y_k - median y_k|       Breiman et al. 1984, 8.11
effect             (sum of pseudo-outcomes)^2 / n         Athey, Tibshirani and Wager 2019
=================  =====================================  ==========================

Scores are float64 numbers that every backend computes from integers by the same operations in
the same order, so they are equal to the last bit. Gini adds up squares as integers, and entropy
fixed-point values of n ln n, so their sums do not depend on the order of the classes.

A row with a survival time has T, the hazard that it went through, as its weight, and its event over
T as its target; so its score is that of counts. Both sides of a split have an event. By "logrank" T
is the hazard among the rows of the node while its split is chosen, see splits/logrank, and else
that among all rows. Where events have several causes each is an output, and a side needs no event.

With several class outputs, each class has a moment, 1 where a row has the class: their squared
error is then the Gini impurity of all outputs together, and their information the entropy.

An absolute error cannot be computed from channel sums: its splits are found from the rows, see
splits/absolute, and their score is the whole gain. Pseudo-outcomes of effects of a treatment follow
from a node's sums, see splits/effects.

Everything else that depends on the criterion is a field of `Criterion`. A new criterion needs an
entry of `CRITERIA` here, and for compiled backends a number and a formula in
kernels/shared/numba.py and kernels/shared/scoring.cuh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from gpuforest.common.imports import deferred
from gpuforest.compiler.types import Bool
from gpuforest.impurity import entropy, gini, misclassification

Array = Any
xlogy = deferred("scipy.special", "xlogy")  # compiling kernels needs no SciPy
Pair = tuple[np.ndarray, np.ndarray]

# the numbers of the criteria in compiled kernels; criteria of class counts precede SQUARED_ERROR
GINI, ENTROPY, MISCLASSIFICATION, SQUARED_ERROR, POISSON, INFORMATION = range(6)
ABSOLUTE_ERROR, LOGRANK = 6, 7

LN2 = 0.6931471805599453
SQRT2 = 1.4142135623730951
# 2 / (2 i + 1), the series of 2 atanh(t): for |t| < 0.172 its last term is below 1 ulp
ATANH = tuple(2.0 / (2 * i + 1) for i in range(10))
# n ln n stays below 2**36 for n < 2**31, so 26 bits of fraction stay below 2**62
XLOGX_SCALE = 2.0**26


@dataclass(frozen=True)
class Criterion:
    """A split criterion, and all that depends on it."""

    name: str  # that users pass
    # its number in compiled kernels, see kernels/shared/numba.py, which also has the bound of its
    # scores, if one is known; None: only NumPy's kernels compute it
    number: Annotated[int | None, "i64"]
    task: str  # "classification" or "regression"
    # of (xp, sums i64[..., C], weight i64[...] > 0): the score f64[...] of sides
    score: Callable[[Any, Array, Array], Array]
    # of (true values [n, K], predictions [n, K]) of rows that the tree was not grown from: their
    # losses [n, K]; and what messages call the mean of these
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    loss_name: str
    unit: float = 1.0  # a score difference times this is an impurity difference of scikit-learn's
    of_classes: bool = False  # channel sums are class counts; else they are weight and moments
    # of (xp, sums): which sides with rows are allowed, bool[...]; None: all are
    allowed: Callable[[Any, Array], Array] | None = None
    impurity: Callable[[Any], Any] | None = None  # of classes' shares f64[..., C]
    # of numbers y and the node's mean, both f64[n, K]: each row's part of the node's impurity,
    # f64[n, K], without terms whose sum is zero
    spread: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None
    # of (weight f64[m], mean f64[m, K]) of the left side, the right side and the node: the
    # decrease of impurity times weight f64[m]
    drop: Callable[[Pair, Pair, Pair], np.ndarray] | None = None
    check: Callable[[Array], None] | None = None  # raises ValueError of a y that is not allowed
    centred: bool = True  # moments are measured from the middle of the targets; else from zero
    scale_power: int = 0  # score differences grow with this power of the scale of the moments
    medians: bool = False  # impurities are measured around medians, which need the rows
    at_risk: bool = False  # a row's weight is its hazard among the rows of the node
    of_effects: bool = False  # a node's rows have pseudo-outcomes, see splits/effects
    by_ratio: Bool = False  # features are chosen by gain over split information
    several: Criterion | None = None  # the criterion of several class outputs, if there is one
    label: str | None = None  # the name of its impurity, if different
    sklearn: str | None = None  # the nearest criterion of scikit-learn, if its name is different

    def side_weight(self, xp: Any, sums: Array) -> Array:
        """Total weight i64[...] of a set of rows from its channel sums i64[..., C]."""
        return xp.sum(sums, axis=-1) if self.of_classes else sums[..., 0]

    def side_value(self, xp: Any, sums: Array) -> Array:
        """Mean f64[...] of the second channel: share of the second of two classes, or
        mean of the first moment."""
        n = self.side_weight(xp, sums)
        n = xp.where(n > 0, n, 1)
        return xp.astype(sums[..., 1], xp.float64) / xp.astype(n, xp.float64)

    def side_score(self, xp: Any, sums: Array) -> Array:
        """Score f64[...] of channel sums i64[..., C]; -inf without weight or if forbidden."""
        n = self.side_weight(xp, sums)
        is_allowed = n > 0
        score = self.score(xp, sums, xp.where(is_allowed, n, 1))
        if self.allowed is not None:
            is_allowed = is_allowed & self.allowed(xp, sums)
        return xp.where(is_allowed, score, -xp.inf)

    def of_outputs(self, n: int) -> Criterion:
        """The criterion of n outputs: its gain is the mean of the gains of the outputs."""
        if n == 1:
            return self
        criterion = self if self.task == "regression" else self.several
        if criterion is None:
            raise ValueError(
                f"criterion={self.name!r} is for one output: choose 'gini' or 'entropy'"
            )
        return replace(criterion, name=self.name, unit=criterion.unit / n)


def log_int(xp: Any, n: Array) -> Array:
    """ln(n) f64[...] of integers n >= 1, i64[...], by IEEE operations and shifts: equal
    everywhere."""
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


def _class_squares(xp: Any, sums: Array, n: Array) -> Array:
    return xp.astype(xp.sum(sums * sums, axis=-1), xp.float64) / xp.astype(n, xp.float64)


def _class_logs(xp: Any, sums: Array, n: Array) -> Array:
    return xp.astype(xp.sum(xlogx(xp, sums), axis=-1) - xlogx(xp, n), xp.float64)


def _largest_class(xp: Any, sums: Array, n: Array) -> Array:
    return xp.astype(xp.max(sums, axis=-1), xp.float64)


def _no_score(xp: Any, sums: Array, n: Array) -> Array:
    return xp.zeros(n.shape, dtype=xp.float64, device=n.device)


def _moment_squares(xp: Any, sums: Array, n: Array) -> Array:
    score = _no_score(xp, sums, n)
    for k in range(1, sums.shape[-1]):  # one output after another: a fixed order
        s = xp.astype(sums[..., k], xp.float64)
        score = score + s * s
    return score / xp.astype(n, xp.float64)


def _moment_logs(xp: Any, sums: Array, n: Array) -> Array:
    score = _no_score(xp, sums, n)
    for k in range(1, sums.shape[-1]):  # one output after another: a fixed order
        s, positive = sums[..., k], xp.where(sums[..., k] > 0, sums[..., k], 1)
        gain = xp.astype(s, xp.float64) * (log_int(xp, positive) - log_int(xp, n))
        score = score + gain
    return score


def _some_of_each(xp: Any, sums: Array) -> Array:
    """Whether every output has a positive sum: a mean of zero has no logarithm."""
    return xp.all(sums[..., 1:] > 0, axis=-1)


def _is_wrong(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray(y != predicted, np.float64)


def _squared_error(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray((y - predicted) ** 2)


def _absolute_error(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(y - predicted))


def _deviance(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    deviance = 2 * (xlogy(y, y / predicted) - y + predicted)
    return np.asarray(np.maximum(deviance, 0.0))  # rounding can make it slightly negative


def _half_deviance(y: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return np.asarray(xlogy(y, y / mean))


def _squares_drop(left: Pair, right: Pair, node: Pair) -> np.ndarray:
    # a difference of squares would lose all digits in deep nodes
    share = left[0] * right[0] / node[0]
    with np.errstate(over="ignore"):
        return np.asarray(share * ((left[1] - right[1]) ** 2).mean(axis=1))


def _deviance_drop(left: Pair, right: Pair, node: Pair) -> np.ndarray:
    sides = [n * xlogy(mean, mean / node[1]).mean(axis=1) for n, mean in (left, right)]
    return np.asarray(sides[0] + sides[1])


def _check_counts(y: Array) -> None:
    if (y < 0).any():
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression."
        )
    if not (y > 0).any(axis=0).all():
        raise ValueError(
            "Sum of y is not strictly positive which is necessary for Poisson regression.\n"
            "An output of y is not positive in any row: choose another criterion than Poisson."
        )


WRONG = _is_wrong, "share of wrong rows"
SEVERAL_GINI = Criterion(
    "gini", SQUARED_ERROR, "classification", _moment_squares, *WRONG, impurity=gini
)
SEVERAL_ENTROPY = Criterion(
    "entropy", INFORMATION, "classification", _moment_logs, *WRONG, 1.0 / LN2, impurity=entropy
)
OF_COUNTS = Criterion(
    "gini", GINI, "classification", _class_squares, *WRONG,
    of_classes=True, impurity=gini, several=SEVERAL_GINI,
)  # fmt: skip
OF_LOGS = replace(
    OF_COUNTS,
    name="entropy",
    number=ENTROPY,
    score=_class_logs,
    unit=1.0 / (XLOGX_SCALE * LN2),
    impurity=entropy,
    several=SEVERAL_ENTROPY,
)
OF_NUMBERS = Criterion(
    "squared_error", SQUARED_ERROR, "regression", _moment_squares,
    _squared_error, "mean squared error",
    spread=_squared_error, drop=_squares_drop, scale_power=2,
)  # fmt: skip
ALL = [
    OF_COUNTS,
    OF_LOGS,
    replace(OF_LOGS, name="log_loss"),
    replace(
        OF_LOGS, name="gain_ratio", by_ratio=True, several=None, label="entropy", sklearn="entropy"
    ),
    replace(
        OF_COUNTS, name="misclassification", number=MISCLASSIFICATION, score=_largest_class,
        impurity=misclassification, several=None, sklearn="gini",
    ),
    OF_NUMBERS,
    Criterion(
        "absolute_error", ABSOLUTE_ERROR, "regression", _no_score,
        _absolute_error, "mean absolute error", scale_power=1, medians=True,
    ),
    Criterion(
        "poisson", POISSON, "regression", _moment_logs, _deviance, "mean Poisson deviance",
        allowed=_some_of_each, spread=_half_deviance, drop=_deviance_drop, check=_check_counts,
        centred=False, scale_power=1,
    ),
]  # fmt: skip
CRITERIA = {c.name: c for c in ALL}
OF_TIMES = replace(
    CRITERIA["poisson"], name="exponential", task="survival", check=None, loss_name="mean deviance"
)
OF_RANKS = replace(
    OF_TIMES, name="logrank", number=LOGRANK, score=_moment_squares, drop=_squares_drop,
    scale_power=2, at_risk=True,
)  # fmt: skip
CRITERIA["exponential"] = replace(
    OF_TIMES, several=replace(OF_TIMES, number=INFORMATION, allowed=None)
)
CRITERIA["logrank"] = replace(
    OF_RANKS, several=replace(OF_RANKS, number=SQUARED_ERROR, allowed=None)
)
CRITERIA["effect"] = replace(
    OF_NUMBERS, name="effect", task="effects", centred=False, of_effects=True
)


class CriterionNames(Set[str]):
    """The names of a task's criteria; names added to `CRITERIA` later appear here, too."""

    _from_iterable = set  # the type of unions and intersections

    def __init__(self, task: str) -> None:
        self.task = task

    def __iter__(self) -> Iterator[str]:
        return (name for name, c in CRITERIA.items() if c.task == self.task)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in CRITERIA and CRITERIA[name].task == self.task

    def __len__(self) -> int:
        return sum(1 for _ in self)
