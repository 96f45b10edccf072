"""Effects of a treatment by a feature, and whether effects are as large as they are predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest.explain import effects
from gpuforest.explain.model_facts import is_effects
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.shap import Described, places
from gpuforest.tools.plot.style import Axes


@documented
def plot_effects(
    estimator: Any, X: Any, feature: int | str | None = None, *,
    feature_names: Sequence[str] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the effects that a causal forest predicts for rows against a feature.

    Lines through the points are intervals that hold the effect of such a row in 95 of 100 cases.
    The dashed line is the average effect on the training rows.

    Raises
    ------
    ValueError : no such feature; rows that `effect` refuses
    TypeError : another kind of estimator
    """
    need_effects(estimator)
    rows = Described(estimator, X, feature_names)
    f = int(estimator.feature_importances_.argmax()) if feature is None else rows.index(feature)
    return draw_effects(rows, f, effects.interval_of(*rows.model.effect_and_std(rows.values)), ax)


def draw_effects(rows: Described, f: int, found: Bunch, ax: Axes | None) -> Axes:
    """Draw effects with intervals, as of `effects.interval_of`, against a feature of the rows."""
    known = effects.average(rows.model._known_rows(), "all", *rows.model._weighed())
    with style.drawing(ax) as ax:
        x = places(ax, rows, f)
        ax.axhline(0.0, color=style.FAINT, lw=0.8, zorder=0)
        ax.vlines(x, found.low, found.high, color=style.PALE_INK, lw=0.8, label="95% interval")
        ax.plot(x, found.estimate, "o", color=style.PALETTE[0], ms=3.5, label="effect on a row")
        ax.axhline(known.estimate, color=style.PALETTE[5], ls="--", label="average effect")
        ax.set(xlabel=rows.name(f), ylabel="effect of the treatment")
        ax.legend(**style.BESIDE)
    return ax


@documented
def plot_effect_calibration(estimator: Any, n_groups: int = 5, *, ax: Axes | None = None) -> Axes:
    """Draw the average effects on groups of training rows against their mean predicted effects.

    Average effects are doubly robust, with their intervals of 95 %. Where these cross the dotted
    diagonal, effects are as large as they are predicted. Where all lie at one height, the forest
    does not tell rows of a large effect from others.

    Raises
    ------
    ValueError : no groups, or more than half of the rows
    TypeError : another kind of estimator
    """
    need_effects(estimator)
    rows, (weights, groups) = estimator._known_rows(), estimator._weighed()
    counts = weights > 0
    most = int(counts.sum()) // 2
    if not isinstance(n_groups, int | np.integer) or not 1 <= n_groups <= most:
        raise ValueError(f"n_groups={n_groups!r}: pass a number from 1 to {most}")
    groups = None if groups is None else groups[counts]
    some = effects.EffectRows(rows.values[counts])
    parts = [*effects.by_parts(some, n_groups, weights[counts], groups)]
    x, y = np.array([[predicted, found.estimate] for predicted, found in parts]).T
    half = np.array([found.high - found.estimate for _, found in parts])
    ends = min(x.min(), (y - half).min()), max(x.max(), (y + half).max())
    with style.drawing(ax) as ax:
        ax.plot(ends, ends, ":", color=style.INK, lw=1, label="as predicted", zorder=0)
        look: Any = {"color": style.PALETTE[0], "ecolor": style.INK, "elinewidth": 0.8}
        ax.errorbar(x, y, half, fmt="o", capsize=2, label="group, 95% interval", **look)
        ax.set(xlabel="mean predicted effect", ylabel="average effect")
        ax.legend(**style.BESIDE)
    return ax


def need_effects(estimator: Any) -> None:
    """Raise a TypeError for what predicts no effects."""
    if not is_effects(estimator):
        raise TypeError(f"a {type(estimator).__name__} has no effects: pass a CausalForest")
    check_is_fitted(estimator)
