"""Targets as integers: class codes, or fixed-point numbers.

A class target adds a row's weight to the channel of its class: C = number of classes.
A regression target has C = 1 + K channels, the weight and w * q for each output, where

    q = round((y - centre) * scale)

and scale is a power of two chosen from the largest |y - centre| and the total weight,
both free of any order, so that no sum can reach 2**62. The centre is near the middle between the
least and the largest target; where a few targets lie far out, it is near all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from gpuforest.common.dtypes import Array
from gpuforest.core.criteria import Criterion

SUM_BITS = 62  # sums of moments stay below 2**62
MOMENT_BITS = 52  # a moment is exact as a float64


@dataclass(frozen=True, eq=False)
class TargetCoding:
    """How channel sums turn back into classes or numbers of the user: plain data on the host."""

    classes: np.ndarray | None  # the class labels [C], or None for regression
    centre: np.ndarray  # f64[K], of regression, as the scale
    scale: float
    # of several class outputs the labels of each; every class is a moment, 1 where a row has it
    several: tuple[np.ndarray, ...] = ()
    # f64[C], the factors of the classes' mean shares that bring predictions to other priors
    priors: np.ndarray | None = None

    @property
    def labels(self) -> tuple[np.ndarray, ...]:
        """The labels of each output; (): it predicts numbers."""
        return self.several if self.classes is None else (self.classes,)

    @property
    def is_classes(self) -> bool:
        return self.classes is not None

    @property
    def n_outputs(self) -> int:
        return len(self.several) or len(self.centre)

    @property
    def n_channels(self) -> int:
        return 1 + len(self.centre) if self.classes is None else len(self.classes)

    @property
    def n_values(self) -> int:
        """Numbers in a prediction: probabilities of the classes, or outputs."""
        return len(self.centre) if self.classes is None else len(self.classes)

    @property
    def error_factors(self) -> np.ndarray:
        """Factors f64[K] that bring absolute errors of the outputs' moments to one unit."""
        scale = np.broadcast_to(self.scale, self.centre.shape)
        return np.asarray(scale.min() / scale)

    def values(self, sums: np.ndarray) -> np.ndarray:
        """Class proportions or means f64[V, n_values] from channel sums i64[V, C]."""
        if self.classes is not None:
            return self.shares(sums)
        means = sums[:, 1:] / np.maximum(sums[:, :1], 1)
        return np.asarray(means / self.scale + self.centre)

    def shares(self, sums: np.ndarray) -> np.ndarray:
        """The classes' shares f64[V, C] of channel sums i64[V, C]."""
        return np.asarray(sums / np.maximum(sums.sum(axis=1, keepdims=True), 1))

    def at_priors(self, means: Array) -> Array:
        """Predictions f64[N, n_values], of classes where these are as frequent as wanted, from
        means over the trees: Bayes' rule (Saerens, Latinne and Decaestecker 2002; Elkan 2001)."""
        if self.priors is None:
            return means
        weighed = means * array_namespace(means).asarray(self.priors)
        total = sum(weighed[:, c] for c in range(self.n_values))  # in one order on all devices
        return weighed / total[:, None]

    def refuse_priors(self, what: str) -> None:
        """Raise ValueError if there are priors: `what` is made of means over the trees."""
        if self.classes is not None and self.priors is not None:
            factors = dict(zip(self.classes.tolist(), self.priors.tolist(), strict=True))
            raise ValueError(
                f"{what} end with the mean over the trees, before priors: fit with priors=None; "
                f"probabilities at priors are those times {factors}, divided by the sum of a row"
            )

    def of_means(self, means: np.ndarray) -> np.ndarray:
        """Values f64[V, n_values] of two classes or one output from second channels' means
        f64[V]."""
        if not self.is_classes:
            return np.asarray(means[:, None] / self.scale + self.centre)
        return np.stack([1.0 - means, means], axis=1)

    def with_means(self, sums: np.ndarray, means: np.ndarray) -> np.ndarray:
        """`values` of channel sums, but `of_means` where the second channel's mean is another."""
        weight = sums.sum(axis=1) if self.is_classes else sums[:, 0]
        moved = means != sums[:, 1] / np.maximum(weight, 1)
        return np.where(moved[:, None], self.of_means(means), self.values(sums))

    def votes(self, values: np.ndarray) -> np.ndarray:
        """Votes f64[V, n_values]: one for each output's likeliest class, the first of equals."""
        parts = self.split(values)
        return np.hstack([p.argmax(axis=1)[:, None] == np.arange(p.shape[1]) for p in parts]) * 1.0

    def split(self, values: Array) -> list[Array]:
        """Values [N, n_values], or channel sums, split by class output: [N, C] each. They stay
        whole where there are not several."""
        if not self.several:
            return [values]
        ends = np.cumsum([len(c) for c in self.several])
        first = values.shape[1] - int(ends[-1])
        return [
            values[:, first + e - len(c) : first + e]
            for e, c in zip(ends.tolist(), self.several, strict=True)
        ]

    def stacked(self, values: np.ndarray) -> np.ndarray:
        """Values f64[N, n_values] as f64[N, n_outputs, most classes]: zeros where an output has
        fewer classes."""
        if not self.several:
            return values.reshape(len(values), self.n_outputs, -1)
        widest = max(map(len, self.several))
        parts = [np.pad(p, [(0, 0), (0, widest - p.shape[1])]) for p in self.split(values)]
        return np.stack(parts, axis=1)

    def score_gain(self, decrease: float, criterion: Criterion) -> float:
        """Score difference of an impurity decrease in the target's unit; inf beyond float64."""
        gain = decrease / criterion.unit
        for _ in range(criterion.scale_power):
            gain *= self.scale
        return gain

    def decrease(self, gain: float, criterion: Criterion) -> float:
        """The total impurity decrease, in the target's unit, of a score difference."""
        decrease = gain * criterion.unit
        for _ in range(criterion.scale_power):
            decrease /= self.scale
        return decrease


@dataclass(frozen=True, eq=False)
class EffectCoding(TargetCoding):
    """Of effects: a leaf's values are 1, or 0 if no row fills it, and the means of its moments."""

    @property
    def n_outputs(self) -> int:
        return 1

    @property
    def n_values(self) -> int:
        return 1 + len(self.centre)

    def values(self, sums: np.ndarray) -> np.ndarray:
        return np.column_stack([sums[:, 0] > 0, super().values(sums)])


@dataclass(frozen=True, eq=False)
class Target:
    """The target of every row on the backend's device."""

    coding: TargetCoding
    y: Array  # i32[N, 1] class codes, or i64[N, K] moments; row-major, see `placed`
    # of survival, where splits need it: i64[N, 3], the rank of each row's time, the number of its
    # event or 0, and the factor of its weight that is its exposure
    times: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class CheckedTarget:
    """A target as it was passed and checked, before it is encoded."""

    values: Any  # class codes [N] of each output; or numbers f64[N] or f64[N, K], where y was
    classes: list[np.ndarray] | None = None  # the sorted labels of each output, on the host


def moment_bits(total_weight: int) -> int:
    """The most bits of a moment of rows whose weights sum to `total_weight` at most."""
    return min(MOMENT_BITS, SUM_BITS - int(total_weight).bit_length())
