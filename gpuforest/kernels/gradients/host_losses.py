"""Losses whose gradients and hessians Python computes on the host; trees grow from them as ever.

================  ===========  ==================================================================
loss              a row's y    loss of a row
================  ===========  ==================================================================
a function        as passed    what the function differentiates
several outputs   K numbers    the mean of the losses of all
several quantiles a number     the mean of the pinball losses
coxph             time, event  log of the hazard at risk at the time - raw, of events (Breslow)
aft_logistic      lower, upper -log P(lower <= T <= upper), ln T = raw + scale * logistic noise
aft_extreme       lower, upper the same, of noise with the Gumbel distribution of least values
================  ===========  ==================================================================

For accelerated failure times let z = (ln T - raw) / scale at both ends of the interval in which
the event came: upper is infinite for a censored row, and equal to lower where the time is known.
With F = expit(z) one pair of formulas serves all three cases of the logistic distribution, because
the difference of densities divided by that of probabilities is 1 - F(lower) - F(upper); with
w = exp(z), d = w(upper) - w(lower) and q = d / (exp(d) - 1) so does one pair for the other:

    logistic   g = (1 - F_l - F_u) / scale       h = (F_l (1 - F_l) + F_u (1 - F_u)) / scale^2
    extreme    g = (q - w_l) / scale             h = (w_l - d q') / scale^2

Sources: Breslow, discussion of Cox, "Regression models and life-tables", JRSS B 34, 1972; Barnwal,
Cho and Hocking, "Survival regression with accelerated failure time model in XGBoost", JCGS 31,
2022; Koenker and Bassett, "Regression quantiles", Econometrica 46, 1978.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, Self

import numpy as np

from gpuforest.common import elementary, sums
from gpuforest.kernels.boosted_tree.records import LossOf
from gpuforest.kernels.gradients import losses, numba, numpy
from gpuforest.kernels.gradients.losses import FACTS, Loss, exact_sum

Derivatives = tuple[np.ndarray, np.ndarray] | np.ndarray  # f64[2, K, N]
AFT = ("aft_logistic", "aft_extreme")
TINY, MOST = 2.0**-1022, 1.7e308  # the least and the greatest numbers that have logarithms
STEPS = 60  # of Newton's method, for the constant before the first round
FAR = 3.0  # that a step goes at most where the link is no identity
SERIES = 0.01  # below it q is a series: the first term left out is below 1 ulp


@dataclass(frozen=True, eq=False)
class HostRows:
    """As `LossOf` for a loss of this file: its derivatives are computed once."""

    loss: HostLoss
    y: np.ndarray
    weight: np.ndarray | None
    raw: np.ndarray
    delta: None = None
    is_compiled: bool = False

    @cached_property
    def derived(self) -> Derivatives:
        """Gradients and hessians f64[K, N], with the weights of the rows."""
        how = self.loss.compiled if self.is_compiled else self.loss.derivatives
        return how(self.y, self.raw, self.weight)

    @cached_property
    def for_kernels(self) -> LossOf:
        """What compiled kernels take: the gradients and the hessians in the place of `raw`."""
        (K, N), found = self.raw.shape, np.ascontiguousarray(self.derived)
        return LossOf(found[0, 0], None, found.reshape(-1, N), N, K, losses.ON_HOST, 0.0, None)

    @property
    def largest(self) -> tuple[float, float]:
        return self.loss.largest(self.derived, self.weight)


@dataclass(frozen=True)
class HostLoss(Loss):
    """A loss with derivatives of its own, f64[K, N] from y, raw f64[K, N] and the weights."""

    number: int = losses.ON_HOST

    def of_rows(self, y: Any, weight: Any, raw: Any, delta: Any) -> Any:
        return HostRows(self, y, weight, raw)

    def for_model(self) -> Self:
        names: dict[str, Any] = {"function": None, "known": []}
        return replace(self, **{n: v for n, v in names.items() if n in vars(self)})

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        raise NotImplementedError

    def compiled(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        """The same, by a compiled kernel if there is one."""
        return self.derivatives(y, raw, weight)

    def largest(self, found: Derivatives, weight: np.ndarray | None) -> tuple[float, float]:
        """The sizes that a round's scales are for."""
        return numpy.sizes(found)

    def check(self, y: np.ndarray) -> None:
        """Every finite y is allowed."""

    def baseline(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The constants f64[K] that Newton's method finds from 0."""
        constant = np.zeros(self.n_raw)
        for _ in range(STEPS):
            raw = np.repeat(constant[:, None], len(y), axis=1)
            g, h = self.of_rows(y, weight, raw, None).derived
            of_g, of_h = (np.array([*map(exact_sum, part)]) for part in (g, h))
            step = -of_g / np.maximum(of_h, TINY)
            if self.is_log or self.is_logit:
                step = np.clip(step, -FAR, FAR)
            if not np.isfinite(step).all():
                break
            constant = constant + step
            if (np.abs(step) <= 1e-9 * np.maximum(np.abs(constant), 1.0)).all():
                break
        return constant


@dataclass(frozen=True)
class GivenLoss(HostLoss):
    """A loss that a user differentiates.

    function : of y, raw predictions and weights f64[N] or None. Raw predictions are f64[N], or
        f64[N, K] of several classes; so are the gradient and the hessian that it returns, which
        hold the weights. None as hessian: it is the weight of each row. The function of a model
        from a file is None
    link : "identity", "log" or "logit", by which raw predictions become predictions
    n_classes : 0 of numbers
    is_constant : whether the function returns None as hessian
    """

    function: Callable[..., Any] | None = None
    link: str = "identity"
    n_classes: int = 0
    is_constant: bool = False

    has_value = False

    @classmethod
    def of_link(cls, function: Any, link: str, n_classes: int) -> Self:
        """The loss of a function; n_classes: 0 for regression."""
        K, link = (n_classes if n_classes > 2 else 1), "logit" if n_classes else link
        return cls("given", n_raw=K, function=function, link=link, n_classes=n_classes)

    def begun(self, y: np.ndarray, weight: np.ndarray | None) -> Self:
        raw = np.zeros((self.n_raw, len(y)))
        loss = replace(self, is_constant=self.returned(y, raw, weight)[1] is None)
        loss.derivatives(y, raw, weight)
        return loss

    @property
    def facts(self) -> str:
        words = {"logit": self.link == "logit", "log": self.link == "log"}
        words |= {"classes": self.n_classes > 0, "constant": self.is_constant}
        return " ".join(compress(words, words.values()))

    def returned(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> list[Any]:
        """The gradient and the hessian, or None, as the function returns them."""
        assert self.function is not None
        shown = np.ascontiguousarray(raw.T if self.n_raw > 1 else raw[0])
        found = self.function(
            np.array(y, np.float64), shown, None if weight is None else weight.copy()
        )
        if not isinstance(found, tuple | list) or len(found) != 2 or found[0] is None:
            raise ValueError(
                "loss must return a gradient and a hessian (or None: the weights), arrays of the "
                f"shape of raw: it returned {type(found).__name__}"
            )
        return [None if a is None else np.asarray(a, np.float64) for a in found]

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        g, h = self.returned(y, raw, weight)
        if (h is None) != self.is_constant:
            raise ValueError("loss must return None as hessian always, or never")
        shape = raw.T.shape if self.n_raw > 1 else raw[0].shape
        if h is None:
            own = np.ones(len(y)) if weight is None else weight
            h = np.broadcast_to(own, raw.shape).T.reshape(shape)
        for name, array in (("gradient", g), ("hessian", h)):
            if array.shape != shape:
                raise ValueError(f"the {name} of loss has shape {array.shape}, and raw {shape}")
            if not np.isfinite(array).all():
                raise ValueError(f"the {name} of loss has values that are NaN or infinite")
        if (h < 0).any():
            raise ValueError("the hessian of loss has negative values: clip them at 0")
        return g.reshape(len(y), -1).T, h.reshape(len(y), -1).T

    def largest(self, found: Derivatives, weight: np.ndarray | None) -> tuple[float, float]:
        g, h = super().largest(found, weight)
        if self.link != "logit":
            return g, h
        most = 1.0 if weight is None else float(weight.max())
        return max(g, most), max(h, most * self.most_hessian)  # as of log_loss, for equal bits

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        if self.n_raw > 1:
            return losses.softmax(raw)
        if self.link == "logit":
            second = elementary.expit(raw[:, 0])
            return np.stack([1.0 - second, second], axis=1) if self.is_classes else second
        return elementary.exp(raw[:, 0]) if self.is_log else raw[:, 0]


@dataclass(frozen=True)
class Several(HostLoss):
    """The losses of several outputs, or of several quantiles of one.

    parts : of each output, K
    """

    parts: tuple[Loss, ...] = ()

    @classmethod
    def of_quantiles(cls, quantiles: Sequence[float]) -> Self:
        """The losses of these quantiles; a ValueError unless they ascend between 0 and 1."""
        levels = [float(q) for q in quantiles]
        if not levels or levels != sorted(set(levels)) or not 0 <= levels[0] <= levels[-1] <= 1:
            raise ValueError(
                f"quantile={levels} must be a number between 0 and 1, or several that ascend"
            )
        parts = tuple(Loss("quantile", numpy.QUANTILE, quantile=q) for q in levels)
        return cls("quantiles", n_raw=len(parts), parts=parts)

    @classmethod
    def of_outputs(cls, loss: Loss, n_outputs: int) -> Self:
        """The same loss of each output; a ValueError if it is for one output."""
        if loss.has_delta or loss.on_host:
            raise ValueError(f"y should be a 1d array: loss={loss.name!r} is for one output")
        return cls(loss.name, n_raw=n_outputs, parts=(loss,) * n_outputs)

    @property
    def facts(self) -> str:
        return FACTS[self.parts[0].number]

    @property
    def n_outputs(self) -> int:  # type: ignore[override]  # of one class it is a constant
        return 1 if self.name == "quantiles" else self.n_raw

    def single(self, k: int) -> Loss:
        return self.parts[k]

    def of_each(self, y: np.ndarray) -> Iterator[tuple[Loss, np.ndarray, slice]]:
        """Of each output: its loss, its targets f64[N], where its raw predictions are."""
        for k, part in enumerate(self.parts):
            yield part, y if y.ndim == 1 else np.ascontiguousarray(y[:, k]), slice(k, k + 1)

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        each = [
            numpy.derivatives(part.of_rows(own, weight, raw[at], None))
            for part, own, at in self.of_each(y)
        ]
        g, h = (np.concatenate(parts) for parts in zip(*each, strict=True))
        return g, h

    def check(self, y: np.ndarray) -> None:
        for part, own, _ in self.of_each(y):
            part.check(own)

    def baseline(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.concatenate([part.baseline(own, weight) for part, own, _ in self.of_each(y)])

    def losses(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        each = [part.losses(own, raw[at]) for part, own, at in self.of_each(y)]
        return np.asarray(np.sum(each, axis=0) / self.n_raw)

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        if self.name == "quantiles":  # these do not cross
            return np.sort(raw, axis=1)
        each = (part.predictions(raw[:, k : k + 1]) for k, part in enumerate(self.parts))
        return np.stack([*each], axis=1)


@dataclass(frozen=True)
class AcceleratedFailure(HostLoss):
    """Times of events that lie in intervals; predictions are times.

    spread : the scale of ln T around raw"""

    spread: float = 1.0
    facts = "log"

    def intervals(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z f64[N] of both ends, infinite where there is none."""
        logs = elementary.log(np.clip(y.T, TINY, MOST))
        logs = np.where(y.T > 0, np.where(np.isinf(y.T), np.inf, logs), -np.inf)
        low, high = (logs - raw[0]) / self.spread
        return low, high

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        low, high = self.intervals(y, raw)
        if self.name == "aft_logistic":
            below, above = (elementary.expit(z) for z in (low, high))
            g, h = 1.0 - below - above, below * (1.0 - below) + above * (1.0 - above)
        else:
            w, d = hazards(low, high)
            q, slope = quotient(d)
            g, h = q - w, w - slope
        g, h = g / self.spread, np.maximum(h, 0.0) / self.spread**2
        both = (g, h) if weight is None else (g * weight, h * weight)
        return both[0][None], both[1][None]

    def losses(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        low, high = self.intervals(y, raw)
        known = y[:, 0] == y[:, 1]
        # the density of T at a known time is that of z divided by scale * T
        jacobian = elementary.log(np.where(known, np.maximum(y[:, 0], TINY) * self.spread, 1.0))
        if self.name == "aft_logistic":
            value = elementary.log1p_exp(-high) + elementary.log1p_exp(low)
            gap = np.where(known, np.inf, high - low)
        else:
            w, gap = hazards(low, high)
            value = w - np.where(known, low, 0.0)
            gap = np.where(known, np.inf, gap)
        share = 1.0 - elementary.exp(-np.minimum(gap, elementary.MOST))
        return np.asarray(value + jacobian - elementary.log(np.maximum(share, TINY)))

    def strata(self, y: np.ndarray) -> np.ndarray:
        """Whether the event came, bool[N]."""
        return np.asarray(np.isfinite(y[:, 1]))

    def check(self, y: np.ndarray) -> None:
        low, high = y.T
        if not self.strata(y).any():
            raise ValueError("all rows of y are censored: at least one must have had its event")
        if not (low > 0).any():
            raise ValueError("no row of y has a time above 0, or a lower end above 0")
        if (high == 0).any():
            row = int(np.argmax(high == 0))
            raise ValueError(f"loss={self.name!r} needs events later than time 0: row {row} is not")

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        return elementary.exp(raw[:, 0])

    def cumulative_hazard(self, raw: np.ndarray, times: np.ndarray) -> np.ndarray:
        """-ln P(T > time), f64[N, T], of raw predictions f64[N] at times > 0."""
        z = (elementary.log(times) - raw[:, None]) / self.spread
        return elementary.log1p_exp(z) if self.name == "aft_logistic" else elementary.exp(z)


def hazards(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """w = exp(z) of lower ends, and its rise to upper ends; infinite where they are."""
    w = np.where(np.isneginf(low), 0.0, elementary.exp(low))
    return w, np.where(np.isposinf(high), np.inf, elementary.exp(high) - w)


def quotient(d: np.ndarray) -> Derivatives:
    """q = d / (exp(d) - 1) of d >= 0, and d q'."""
    small, far = d < SERIES, d > 300.0
    near = np.where(small, d, 0.0)
    x = np.where(small | far, 1.0, d)
    e = elementary.exp(x)
    q = np.where(far, 0.0, x / (e - 1.0))
    slope = np.where(far, 0.0, x * (e - 1.0 - x * e) / (e - 1.0) ** 2)
    d2 = near * near
    q = np.where(small, 1.0 - near / 2 + d2 / 12 - d2 * d2 / 720, q)
    return q, np.where(small, -near / 2 + d2 / 6 - d2 * d2 / 180, slope)


class RiskSets:
    """Who is at risk when events come: rows in the order of their times, and sums over later rows.

    times : f64[T], the least of all, and those of events
    order, first : i64[N], rows by their times; i64[T + 1], where rows from each time on begin
    place : i64[N], the number of the last time that is not later than a row's
    own, event : f64[N], weights of rows in units, and of rows that had their event
    events : f64[T], the weight of the events at each time
    """

    def __init__(self, y: np.ndarray, weight: np.ndarray | None) -> None:
        """y : f64[N, 2], times and whether the event came"""
        self.y, self.weight, N = y, weight, len(y)
        self.order = np.argsort(y[:, 0])
        times, came = (np.take(column, self.order) for column in y.T)
        first = np.flatnonzero(np.append(True, times[1:] != times[:-1]))
        with_events = np.logical_or.reduceat(came > 0, first)
        with_events[0] = True
        first = first[with_events]
        self.times, self.first = times[first], np.append(first, N)
        self.place = np.empty(N, np.int64)
        self.place[self.order] = np.repeat(np.arange(len(first)), np.diff(self.first))
        own = np.ones(N) if weight is None else weight
        bits = 61 - N.bit_length() - int(np.frexp(own.max())[1])
        self.unit, scale = float(np.ldexp(1.0, -bits)), losses.unit_of(own)
        self.own, self.event = np.ldexp(own, bits), own * (y[:, 1] > 0)
        # sums of whole numbers, which are exact
        self.events = np.bincount(self.place, np.rint(self.event * scale)) / scale

    def at_risk(self, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """exp(raw - top) times weight of each row, f64[N] of whole numbers of units; and what is at
        risk at each time, f64[T]. All sums are of integers."""
        relative, top = np.empty(len(raw)), raw.max()
        for part in sums.blocks(len(raw)):
            found = elementary.exp(raw[part] - top) * self.own[part]
            relative[part] = np.maximum(np.rint(found), 1.0)
        upto = np.cumsum(np.append(0, relative[self.order].astype(np.int64)))
        return relative, (upto[-1] - upto[self.first[:-1]]).astype(np.float64)


@dataclass(frozen=True)
class ProportionalHazards(HostLoss):
    """Cox's partial likelihood, with Breslow's treatment of ties; raw is the log of the hazard.

    Hessians are the diagonal of the weighted likelihood's, where a row of weight 2 is not as two
    rows: it moves its risk sets twice as much as either of these."""

    known: list[RiskSets] = field(default_factory=list, compare=False)
    facts = "log"

    def sets_of(self, y: np.ndarray, weight: np.ndarray | None) -> RiskSets:
        """The risk sets of rows, which the loss keeps: rounds come back with the same ones."""
        for sets in self.known:
            if sets.y is y and sets.weight is weight:
                return sets
        self.known.append(RiskSets(y, weight))
        return self.known[-1]

    def derivatives(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        sets = self.sets_of(y, weight)
        relative, at_risk = sets.at_risk(raw[0])
        rate = sets.events / at_risk  # a hazard in units of whole numbers
        hazard, square = np.cumsum(rate)[sets.place], np.cumsum(rate / at_risk)[sets.place]
        g = relative * hazard
        h = np.maximum(g - relative * relative * square, 0.0)
        return (g - sets.event)[None], h[None]

    def compiled(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> Derivatives:
        s, found = self.sets_of(y, weight), np.empty((2, len(y)))
        hazards = np.empty((len(s.times), 2))
        rows = s.order, s.place, s.own, s.event, s.first, s.events
        numba.cox(raw[0], raw.max(), *rows, hazards, found)
        return found[:, None]

    def strata(self, y: np.ndarray) -> np.ndarray:
        """Whether the event came, bool[N]."""
        return np.asarray(y[:, 1] > 0)

    def check(self, y: np.ndarray) -> None:
        if not self.strata(y).any():
            raise ValueError("all rows of y are censored: at least one must have had its event")

    def baseline(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        return np.zeros(1)

    def mean(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> float:
        """The partial likelihood of all events, negated, over the weight of all rows. At risk are
        rows of weight one in the mean, so that weights are relative."""
        sets = self.sets_of(y, weight)
        unit = sets.unit if weight is None else sets.unit / losses.exact_mean(weight, None)
        log_risk = elementary.log(sets.at_risk(raw[0])[1] * unit) + raw[0].max()
        each = log_risk[sets.place] - raw[0]
        return losses.exact_mean(np.where(y[:, 1] > 0, each, 0.0), weight)

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        return raw[:, 0]

    def baseline_hazard(
        self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The times of events, f64[n], and Breslow's hazard at each, of a row whose raw prediction
        is 0."""
        sets = self.sets_of(y, weight)
        rises = sets.events / (sets.at_risk(raw[0])[1] * sets.unit)
        came = sets.events > 0
        return sets.times[came], rises[came] * elementary.exp(-raw[0].max())
