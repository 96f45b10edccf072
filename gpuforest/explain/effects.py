"""Effects of a treatment from the forest's means: effects, their variances, averages and tests.

The means of a row are those of the residuals (actual less expected) of the outcome y, the treatment
w and the instrument z, and of z y and z w, over the trees whose leaf some row fills:

    effect = (mean zy - mean z * mean y) / (mean zw - mean z * mean w)

References
----------
S. Athey, J. Tibshirani and S. Wager, "Generalized random forests", Annals of Statistics 47, 2019.
S. Athey and S. Wager, "Estimating treatment effects with causal forests: an application",
Observational Studies 5, 2019.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.utils import Bunch

from gpuforest.backends.base import Backend
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import leaf_rows, unpack
from gpuforest.growing.edges import encode_blocks

LEAVES_AT_ONCE = 2**19  # leaves of rows whose values are in memory at once: some 25 MB
DEPTHS, DECAY = 4, 2  # of importances: levels from the root, and the power of a level's weight
RARE = 0.01  # a treatment of a lower probability is hardly ever given
LEAST = 0.05  # of the mean variance of the treatment, below which a row's counts as that


@dataclass(frozen=True, eq=False)
class EffectRows:
    """What a causal forest knows of its training rows: columns f64[N] of `values`.

    y, w, z : outcome, treatment and instrument (the treatment itself, if there is no instrument)
    y_hat, w_hat, z_hat : what X lets expect, by rows out of bag
    spread : the expected product of the residuals of w and z; the variance of w without instrument
    effect : by the trees that did not draw the row
    """

    values: np.ndarray

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in COLUMNS:
            raise AttributeError(name)
        return np.asarray(self.values[:, COLUMNS.index(name)])

    def __getstate__(self) -> dict[str, np.ndarray]:
        """The field alone: what is derived from it is not pickled."""
        return {"values": self.values}

    def with_effects(self, effects: np.ndarray) -> EffectRows:
        """The rows, with effects f64[N] as their last column; NaN becomes the mean."""
        seen = ~np.isnan(effects)
        mean = effects[seen].mean() if seen.any() else 0.0
        columns = self.values[:, : len(COLUMNS) - 1], np.where(seen, effects, mean)
        return EffectRows(np.column_stack(columns))

    @property
    def has_instrument(self) -> bool:
        return not np.array_equal(self.z, self.w)

    @property
    def is_binary(self) -> bool:
        """Whether the treatment is 0 or 1, and is its own instrument."""
        return bool(np.isin(self.w, (0.0, 1.0)).all()) and not self.has_instrument

    @property
    def residuals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.y - self.y_hat, self.w - self.w_hat, self.z - self.z_hat

    @cached_property
    def units(self) -> np.ndarray:
        """Powers of two f64[3] above the sizes of the residuals."""
        return np.array([math.ldexp(1.0, math.frexp(np.abs(r).max())[1]) for r in self.residuals])

    @property
    def unit(self) -> float:
        """The unit of effects: that of y over that of w."""
        return float(self.units[0] / self.units[1])

    @property
    def moments(self) -> np.ndarray:
        """What splits take: y, w, z y, z w and, of an instrument, z; f64[N, K] within -1 .. 1."""
        y, w, z = (r / unit for r, unit in zip(self.residuals, self.units, strict=True))
        columns = [y, w, z * y, z * w] + [z] * self.has_instrument
        return np.column_stack(columns)


COLUMNS = ("y", "w", "z", "y_hat", "w_hat", "z_hat", "spread", "effect")


def effects_of(means: Any) -> Any:
    """Effects f64[N] of forests' values [N, 1 + K], see `EffectCoding`, in the unit of moments."""
    filled, y, w, zy, zw, z = parts(means)
    filled = filled + (filled == 0)
    slope = zw / filled - z * w / filled**2
    return (zy / filled - z * y / filled**2) / (slope + (slope == 0))


def parts(means: Any) -> tuple[Any, ...]:
    """filled, y, w, zy, zw and z of values [..., 1 + K]; z is w unless it has a column."""
    columns = [means[..., i] for i in range(means.shape[-1])]
    return (*columns[:5], columns[5] if len(columns) == 6 else columns[2])


def variances(forest: Forest, X: Any, backend: Backend) -> np.ndarray:
    """Effects and their variances f64[N, 2] of rows X, by pairs of trees that share a bag ("little
    bags", Athey et al. 2019, section 4.1), in the unit of moments."""
    table, found = forest.values, []
    for _, _, codes in encode_blocks(X, forest.edges, backend):
        step = max(1, LEAVES_AT_ONCE // forest.n_trees)
        for i in range(0, codes.shape[0], step):
            leaf = backend.asnumpy(backend.apply(forest, codes[i : i + step, ...]))
            of_trees = table[leaf_rows(forest.nodes[leaf + forest.tree_offsets[:-1]])]
            found.append(_with_variances(of_trees[:, : forest.n_trees // 2 * 2]))
    return np.concatenate(found)


def _with_variances(of_trees: np.ndarray) -> np.ndarray:
    """As `variances`, of the values f64[n, T, 1 + K] of an even number of trees."""
    means = of_trees.mean(axis=1)
    effect = effects_of(means)
    known = parts(means / np.maximum(means[:, :1], 1e-300))
    y, w, zw, z = (known[i][:, None] for i in (1, 2, 4, 5))
    slope = zw - z * w
    base = y - effect[:, None] * w
    has, y_t, w_t, zy_t, zw_t, z_t = parts(of_trees)
    off = (zy_t - effect[:, None] * zw_t - base * z_t) - z * (y_t - effect[:, None] * w_t - base)
    off = off / np.where(slope != 0, slope, 1.0)
    pairs = off.reshape(len(off), -1, 2)
    both = (has > 0).reshape(pairs.shape).all(axis=2)
    n = np.maximum(both.sum(axis=1), 1)
    between = (pairs.mean(axis=2) ** 2 * both).sum(axis=1) / n
    noise = ((pairs[:, :, 0] - pairs[:, :, 1]) ** 2 / 4 * both).sum(axis=1) / n
    return np.column_stack([effect, at_least_zero(between, noise, n)])


def at_least_zero(between: np.ndarray, noise: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The variance between n pairs less that of their noise. Where chance could make it negative it
    is the mean of a normal distribution around it (its error that of n squares) above zero."""
    found = between - noise
    error = np.maximum(between, noise) * np.sqrt(2.0 / n)
    ratio = found / np.where(error > 0, error, 1.0)
    with np.errstate(divide="ignore"):
        density = np.exp(-(ratio**2) / 2 - special.log_ndtr(ratio)) / math.sqrt(2 * math.pi)
    return np.asarray(found + error * density)


def importances(forest: Forest) -> np.ndarray:
    """Shares of the features in the splits of the first levels, level d counting d**-2, f64[F], as
    R's grf computes them."""
    counts = np.zeros(forest.edges.n_features)
    for d, level in zip(range(DEPTHS), forest.levels(), strict=False):
        feature = unpack(np, forest.nodes[level])[0]
        of_level = np.bincount(feature[feature >= 0], minlength=len(counts))
        if of_level.any():
            counts += of_level / of_level.sum() / (d + 1) ** DECAY
    return counts / counts.sum() if counts.any() else counts


def scores(rows: EffectRows) -> np.ndarray:
    """Doubly robust scores of the effects f64[N]: their means estimate average effects even where
    either the effects or the expectations of w are wrong (Robins, Rotnitzky and Zhao 1994)."""
    y, w, z = rows.residuals
    return np.asarray(rows.effect + z / steady(rows.spread) * (y - w * rows.effect))


def steady(spread: np.ndarray) -> np.ndarray:
    """Expected products of residuals f64[N], at least LEAST of their mean's size."""
    least = LEAST * abs(float(spread.mean()))
    sign = 1.0 if spread.mean() >= 0 else -1.0
    return np.asarray(sign * np.maximum(sign * spread, least))


def average(rows: EffectRows, target: str, weights: np.ndarray, groups: np.ndarray | None) -> Bunch:
    """The average effect, see `CausalForest.ate`."""
    y, w, z = rows.residuals
    if target == "overlap":
        found = regression(z[:, None], y, weights, groups, treatment=w[:, None])
        return interval_of(float(found.coef[0]), float(found.std_error[0]))
    if target == "all":
        score, counts = scores(rows), np.ones(len(y))
    else:
        score, counts = scores_of_arm(rows, target == "treated")
    total = (weights * counts).sum()
    estimate = float((weights * score).sum() / total)
    off = clustered((weights * (score - estimate * counts))[:, None], groups)[:, 0]
    n = len(off)
    return interval_of(estimate, float(math.sqrt((off**2).sum() * n / max(n - 1, 1)) / total))


def scores_of_arm(rows: EffectRows, treated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores f64[N] whose sum over that of the rows of an arm, the second array, is the average
    effect of a binary treatment on that arm."""
    share = np.clip(rows.w_hat, LEAST / 10, 1 - LEAST / 10)
    if treated:
        off = rows.y - (rows.y_hat - rows.w_hat * rows.effect)
        return rows.w * off - (1 - rows.w) * share / (1 - share) * off, rows.w
    off = rows.y - (rows.y_hat + (1 - rows.w_hat) * rows.effect)
    return rows.w * (1 - share) / share * off - (1 - rows.w) * off, 1 - rows.w


def interval_of(estimate: Any, std_error: Any, alpha: float = 0.05) -> Bunch:
    """Estimates, their standard errors, and the ends of intervals of the level 1 - alpha."""
    half = float(stats.norm.isf(alpha / 2)) * std_error
    return Bunch(estimate=estimate, std_error=std_error, low=estimate - half, high=estimate + half)


def clustered(rows: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Sums of rows f64[N, K] by group; the rows themselves without groups."""
    if groups is None:
        return rows
    return np.column_stack([np.bincount(groups, column) for column in rows.T])


def regression(
    A: np.ndarray, y: np.ndarray, weights: np.ndarray, groups: np.ndarray | None,
    treatment: np.ndarray | None = None,
) -> Bunch:  # fmt: skip
    """Least squares of y on A f64[N, K], with errors that hold under unequal variances (HC3; with
    groups summed by group). With a treatment f64[N, K], A are its instruments."""
    X = A if treatment is None else treatment
    bread = np.linalg.pinv(A.T @ (weights[:, None] * X))
    coef = bread @ (A.T @ (weights * y))
    lever = np.einsum("nk,kj,nj->n", X, bread, weights[:, None] * A)
    off = (y - X @ coef) / np.clip(1 - lever, 1e-6, None)
    meat = clustered((weights * off)[:, None] * A, groups)
    covariance = bread @ (meat.T @ meat) @ bread.T
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = coef / std
    degrees = max(len(meat) - A.shape[1], 1)
    return Bunch(coef=coef, std_error=std, t=t, p_value=2 * stats.t.sf(np.abs(t), degrees))


def calibration(rows: EffectRows, weights: np.ndarray, groups: np.ndarray | None) -> Bunch:
    """See `CausalForest.calibration_test`."""
    y, w, z = rows.residuals
    mean = np.average(rows.effect, weights=weights)
    both = np.column_stack([np.full(len(y), mean), rows.effect - mean])
    found = regression(both * z[:, None], y, weights, groups, treatment=both * w[:, None])
    n = len(y) if groups is None else len(np.unique(groups))
    found.p_value = stats.t.sf(found.t, max(n - 2, 1))  # of one side: a coefficient above zero
    return Bunch(names=["mean_prediction", "differential_prediction"], **found)


def by_parts(
    rows: EffectRows, n: int, weights: np.ndarray, groups: np.ndarray | None
) -> Iterator[tuple[float, Bunch]]:
    """The mean predicted effect of each of n parts of the rows by their predicted effects, and the
    average effect that the scores of the part give; groups : i32[N], rows that belong together"""
    order = np.argsort(rows.effect, kind="stable")
    for part in np.array_split(order, n):
        some = EffectRows(rows.values[part])
        predicted = float(np.average(some.effect, weights=weights[part]))
        known = None if groups is None else np.unique(groups[part], return_inverse=True)[1]
        yield predicted, average(some, "all", weights[part], known)
