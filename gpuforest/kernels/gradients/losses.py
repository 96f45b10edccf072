"""Losses: what a round's trees are to lower, as gradients and hessians by the raw predictions.

With raw predictions f64[N, K] and a link function, a prediction is inverse_link(raw).

================  ==========  =============================================  =====================
loss              link        loss of a row                                  gradient
================  ==========  =============================================  =====================
squared_error     identity    (y - raw)^2 / 2                                raw - y
absolute_error    identity    |y - raw|                                      -1 if y > raw else 1
quantile (q)      identity    (y - raw) (q - [y < raw])                      [y < raw] - q
huber             identity    squared up to delta, then linear               clipped raw - y
poisson           log         exp(raw) - y raw                               exp(raw) - y
gamma             log         raw + y exp(-raw)                              1 - y exp(-raw)
tweedie (p)       log         exp((2-p) raw)/(2-p) - y exp((1-p) raw)/(1-p)  exp((2-p) raw) - y
                                                                             exp((1-p) raw)
cross_entropy     logit       ln(1 + exp(raw)) - y raw, 0 <= y <= 1          expit(raw) - y
log_loss, K = 1   logit       ln(1 + exp(raw)) - y raw                       expit(raw) - y
log_loss, K > 2   softmax     ln(sum_k exp(raw_k)) - raw_y                   softmax_k - [y = k]
================  ==========  =============================================  =====================

Hessians are second derivatives; those of absolute_error, quantile and huber are one. Before the
learning rate, a leaf adds at most 30 of log_loss, and at most 3 where the link is log. Where rows
come as a surprise, hessians are so small that a Newton step is far too long: of "gamma" it is
1 - 1/r where targets are r times the predictions, and ln(r) would be the best. LogitBoost cuts off
the responses of single rows at 4 to 8 (Friedman, Hastie and Tibshirani, "Additive logistic
regression", 2000); LightGBM and XGBoost have max_delta_step.

Sources: Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
Statistics 29(5), 2001; Hastie, Tibshirani and Friedman, "The Elements of Statistical Learning",
2009, 10.6 and 10.10. Exponentials and logarithms are those of common/elementary.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gpuforest.common import elementary, sums
from gpuforest.common.dtypes import Array
from gpuforest.kernels.boosted_tree.records import LossOf
from gpuforest.kernels.gradients import numpy

NUMBERS = {
    "squared_error": numpy.SQUARED,
    "absolute_error": numpy.ABSOLUTE,
    "huber": numpy.HUBER,
    "gamma": numpy.GAMMA,
    "poisson": numpy.COUNTS,
    "tweedie": numpy.TWEEDIE,
    "cross_entropy": numpy.CROSS_ENTROPY,
    "quantile": numpy.QUANTILE,
}
ON_HOST = -1  # the number of losses whose derivatives Python computes, see host_losses.py
LINKS = ("identity", "log", "logit")  # by which raw predictions become predictions
# of each loss: its predictions are classes, or exponentials of raw ones, or probabilities; all
# hessians are one; gradients and hessians lie between -1 and 1; leaves' values follow from the
# sorted residuals of their rows; residuals beyond a `delta` count as outliers
FACTS = {
    numpy.SQUARED: "constant",
    numpy.ABSOLUTE: "constant bounded order",
    numpy.QUANTILE: "constant bounded order",
    numpy.HUBER: "constant order delta",
    numpy.COUNTS: "log",
    numpy.GAMMA: "log",
    numpy.TWEEDIE: "log",
    numpy.CROSS_ENTROPY: "logit bounded",
    numpy.BINARY: "classes logit bounded",
    numpy.MULTICLASS: "classes logit bounded",
}
OUTLIER_QUANTILE = 0.9  # of the absolute residuals: beyond it a row is an outlier
MOST_VALUE_OF_CLASSES = 30.0
MOST_VALUE_OF_LOGS = 3.0
LEAST_SHARE = 1e-15  # of a class: its logarithm is finite


def fact(word: str) -> Any:
    """A property that says whether a fact (see FACTS) holds for a loss."""
    return property(lambda loss: word in loss.facts.split())


@dataclass(frozen=True)
class Loss:
    """A loss, and all that depends on it.

    name : the name that users pass
    number : its number in compiled kernels
    n_raw : K, raw predictions of a row: one for each of several classes, else 1
    quantile : of the loss "quantile"; or of the absolute residuals for delta
    power : of the loss "tweedie": the variance of y is its mean to this power"""

    name: str
    number: int
    n_raw: int = 1
    quantile: float = 0.5
    power: float = 1.5
    n_outputs: ClassVar[int] = 1  # of a target
    is_classes: ClassVar[bool] = fact("classes")
    has_value: ClassVar[bool] = True  # whether a row's loss is known, not only its derivatives
    is_log: ClassVar[bool] = fact("log")
    is_logit: ClassVar[bool] = fact("logit")
    constant_hessian: ClassVar[bool] = fact("constant")
    is_bounded: ClassVar[bool] = fact("bounded")
    by_order: ClassVar[bool] = fact("order")
    has_delta: ClassVar[bool] = fact("delta")

    @classmethod
    def of(cls, name: str, quantile: float | None, n_classes: int, power: float = 1.5) -> Loss:
        """The loss of this name; n_classes : 0 for regression."""
        if name == "log_loss":
            several = n_classes > 2
            return cls(
                name, numpy.MULTICLASS if several else numpy.BINARY, n_classes if several else 1
            )
        loss = cls(name, NUMBERS[name], power=power)
        default = OUTLIER_QUANTILE if loss.has_delta else 0.5
        return replace(loss, quantile=default if quantile is None else float(quantile))

    @property
    def facts(self) -> str:
        return FACTS[self.number]

    @property
    def on_host(self) -> bool:
        """True if Python computes the derivatives, see host_losses.py."""
        return self.number == ON_HOST

    def single(self, k: int) -> Loss:
        """The loss of raw prediction k alone, where `by_order`."""
        return self

    def begun(self, y: np.ndarray, weight: np.ndarray | None) -> Loss:
        """The loss with what it learns of the training rows; a ValueError if it is not defined."""
        self.check(y)
        return self

    def for_model(self) -> Loss:
        """The loss as a model keeps it, without training rows or functions."""
        return self

    @property
    def most_hessian(self) -> float:
        """The largest hessian of a row of weight one, if the loss is bounded."""
        return 0.25 if self.is_logit else 1.0  # p (1 - p)

    @property
    def most_value(self) -> float:
        """The largest size of what a leaf adds, before the learning rate."""
        if self.is_log:
            return MOST_VALUE_OF_LOGS
        return MOST_VALUE_OF_CLASSES if self.is_logit else float("inf")

    @property
    def share(self) -> float:
        """The quantile of the residuals that is the best constant, where `by_order`."""
        return self.quantile if self.number == numpy.QUANTILE else 0.5

    def of_rows(self, y: Array, weight: Array, raw: Array, delta: Array) -> LossOf:
        """The loss as kernels take it, of rows with raw predictions f64[K, N]."""
        K, N = raw.shape
        parameter = self.power if self.number == numpy.TWEEDIE else self.quantile
        return LossOf(y, weight, raw, N, K, self.number, parameter, delta)

    def delta(self, rest: np.ndarray, weight: np.ndarray | None) -> float:
        """The size beyond which residuals f64[N] count as outliers, where `has_delta`."""
        return weighted_quantile(np.abs(rest), weight, self.quantile)

    def best_step(self, rest: np.ndarray, weight: np.ndarray | None, delta: float) -> float:
        """The leaf value of least loss for residuals f64[n > 0]: their quantile. With delta plus
        the mean of remaining residuals clipped to +-delta, by the steps of devices."""
        middle = weighted_quantile(rest, weight, self.share)
        if not self.has_delta:
            return middle
        cut = np.minimum(np.maximum(rest - middle, -delta), delta)
        if weight is None:
            return middle + exact_sum(cut) / len(cut)
        return middle + exact_sum(cut * weight) / exact_sum(weight)

    def check(self, y: np.ndarray) -> None:
        """Raise ValueError if the loss is not defined for y f64[N]."""
        if self.number == numpy.GAMMA and not (y > 0).all():
            raise ValueError("loss='gamma' requires strictly positive y.")
        if self.number in (numpy.COUNTS, numpy.TWEEDIE) and not ((y >= 0).all() and y.sum() > 0):
            raise ValueError(f"loss={self.name!r} requires non-negative y and sum(y) > 0.")
        if self.number == numpy.CROSS_ENTROPY and not ((y >= 0).all() and (y <= 1).all()):
            raise ValueError("loss='cross_entropy' requires 0 <= y <= 1: probabilities, or shares.")

    def strata(self, y: np.ndarray) -> np.ndarray | None:
        """The codes [N] whose shares rows that are set aside keep, or None: classes."""
        return y if self.is_classes else None

    def baseline(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The constant raw prediction f64[K] of least loss.

        y : f64[N], or class codes i32[N]
        """
        if self.by_order:
            return np.array([weighted_quantile(y, weight, self.share)])
        if self.is_classes:
            w = np.ones(len(y)) if weight is None else sums.near_one(weight)
            total = exact_sum(w)
            shares = np.array([exact_sum(w[y == k]) for k in range(max(2, self.n_raw))]) / total
            shares = np.minimum(np.maximum(shares, LEAST_SHARE), 1 - LEAST_SHARE)
            if self.number == numpy.BINARY:
                return np.asarray(elementary.log(shares[1:] / (1 - shares[1:])))
            logs = elementary.log(shares)
            return np.asarray(logs - exact_sum(logs) / len(logs))
        mean = np.array([exact_mean(y, weight)])
        if self.is_logit:
            share = np.minimum(np.maximum(mean, LEAST_SHARE), 1 - LEAST_SHARE)
            return np.asarray(elementary.log(share / (1 - share)))
        return elementary.log(mean) if self.is_log else mean

    @np.errstate(over="ignore")
    def losses(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """The loss f64[N] of each row, from raw predictions f64[K, N]; infinite beyond float64."""
        if self.number == numpy.MULTICLASS:
            top = raw.max(axis=0)
            total = np.zeros_like(top)
            for row in raw:  # one class after another: a fixed order
                total = total + elementary.exp(row - top)
            return np.asarray(elementary.log(total) + top - raw[y, np.arange(len(y))])
        first = raw[0]
        if self.is_logit:
            return np.asarray(elementary.log1p_exp(first) - y * first)
        if self.number == numpy.COUNTS:
            return np.asarray(elementary.exp(first) - y * first)
        if self.number == numpy.GAMMA:
            return np.asarray(first + y * elementary.exp(-first))
        if self.number == numpy.TWEEDIE:
            below, above = 1.0 - self.power, 2.0 - self.power
            high, low = elementary.exp(above * first), y * elementary.exp(below * first)
            return np.asarray(high / above - low / below)
        rest = y - first
        if self.number == numpy.ABSOLUTE:
            return np.asarray(np.abs(rest))
        if self.number == numpy.QUANTILE:
            return np.asarray(rest * (self.quantile - (rest < 0)))
        if self.number == numpy.HUBER:
            delta, size = self.delta(rest, None), np.abs(rest)
            far = delta * (size - 0.5 * delta)
            return np.asarray(np.where(size <= delta, 0.5 * rest * rest, far))
        return np.asarray(0.5 * rest * rest)

    def mean(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> float:
        """The mean loss, which does not depend on the order of the rows."""
        return exact_mean(self.losses(y, raw), weight)

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        """Predictions f64[N], or probabilities f64[N, n_classes], from raw f64[N, K]."""
        if self.number == numpy.BINARY:
            second = elementary.expit(raw[:, 0])
            return np.stack([1.0 - second, second], axis=1)
        if self.number == numpy.MULTICLASS:
            return softmax(raw)
        if self.is_logit:
            return elementary.expit(raw[:, 0])
        return elementary.exp(raw[:, 0]) if self.is_log else raw[:, 0]


def softmax(raw: np.ndarray) -> np.ndarray:
    """Probabilities f64[N, K] of raw predictions."""
    shares = elementary.exp(raw - raw.max(axis=1, keepdims=True))
    total = np.zeros(len(raw))
    for share in shares.T:  # one class after another: a fixed order
        total = total + share
    return np.asarray(shares / total[:, None])


def fixed_point(values: np.ndarray) -> tuple[float, int]:
    """The sum of finite f64[N] as m * 2**e, by integers: free of any order, never infinite."""
    most = float(np.abs(values).max(initial=0.0))
    if not most > 0:
        return 0.0, 0
    # sums stay below 2**62
    shift = 62 - len(values).bit_length() - int(np.frexp(most)[1])
    parts = np.rint(np.ldexp(values, shift)).astype(np.int64)
    return float(parts.sum()), -shift


def exact_sum(values: np.ndarray) -> float:
    """The sum of f64[N], free of any order; infinite where one is."""
    if not np.isfinite(values).all():
        return float(np.abs(values).max())
    m, e = fixed_point(values)
    return float(np.ldexp(m, e))


def exact_mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """The weighted mean of f64[N], free of any order; infinite where one is."""
    if not np.isfinite(values).all():
        return float(np.abs(values).max())
    if weight is None:
        m, e = fixed_point(values)
        return float(np.ldexp(m / len(values), e))
    weight = sums.near_one(weight)
    (m, e), (total, unit) = fixed_point(values * weight), fixed_point(weight)
    return float(np.ldexp(m / total, e - unit))


def weighted_quantile(values: np.ndarray, weight: np.ndarray | None, share: float) -> float:
    """`quantile_of` on the host."""
    unit = 1.0 if weight is None else unit_of(weight)
    return float(np.asarray(quantile_of(np, values, weight, unit, share)).item())


def quantile_of(xp: Any, values: Array, weight: Array | None, unit: float, share: float) -> Array:
    """The value of f64[n > 0] below which lies this share of the weight. Of equal weights NumPy's
    linear interpolation. Else, as in scikit-learn, the mean of the least values at which the
    cumulative weight reaches and exceeds the share.

    xp : the namespace of the arrays; a device is not waited for
    unit : `unit_of` the weights"""
    order, last = xp.argsort(values, stable=True), len(values) - 1
    values = xp.take(values, order)
    if weight is None:
        at = share * last
        low, high, part = values[int(at)], values[min(int(at) + 1, last)], at - int(at)
    else:
        whole = xp.astype(xp.round(xp.take(weight, order) * unit), xp.int64)
        upto = xp.astype(xp.cumulative_sum(whole), xp.float64)  # below 2**52
        wanted = share * upto[last:]
        first = xp.clip(xp.searchsorted(upto, wanted), max=last)
        reached = xp.take(upto, first)
        after = xp.clip(xp.searchsorted(upto, reached, side="right"), max=last)
        # the share may end between two values
        after = xp.where(reached == wanted, after, first)
        low, high, part = xp.take(values, first), xp.take(values, after), 0.5
    return low + (high - low) * part


def unit_of(weight: np.ndarray) -> float:
    """The power of two that makes integers of weights f64[N], whose sum stays below 2**52."""
    bits = 52 - len(weight).bit_length()
    return float(np.ldexp(1.0, bits - int(np.frexp(float(weight.max(initial=1.0)))[1])))
