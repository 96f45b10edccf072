"""The SHAP values of one row, as steps from the expected value to its prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.tools.plot.explained import Explained, text_of
from gpuforest.tools.plot.style import FAINT, INK, PALETTE, SIZE, SMALL, drawing, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, MARGINS = 0.32, 1.3  # inches of a feature, and above and below all
ROOM = 0.27  # beside the bars for their numbers, as a share of their range


def plot_shap_waterfall(
    estimator: Any,
    X: Any,
    row: int = 0,
    *,
    output: Any = None,
    background: Any = None,
    values: Any = None,
    top: int | None = 10,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the SHAP values of one row lead from the expected value to its prediction.

    Bars that raise the prediction are plain, those that lower it are hatched. Read from below: the
    largest steps come last.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest that has SHAP values
    X : array-like or frame of shape (n_samples, n_features)
    row : the number of the row of X, from 0
    top : int >= 1, how many features have a bar of their own, the largest; None: all
    output, background, values, feature_names, ax
        As of `plot_shap_summary`.

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : no such row or output; top below 1; a wrong number of names
    TypeError : no estimator of gpuforest, or one without SHAP values
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor
    >>> from gpuforest.plot import plot_shap_waterfall
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 0.5, 2.0]
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> ax = plot_shap_waterfall(forest, X, 2)  # doctest: +SKIP
    """
    explained = Explained.of(estimator, X, output, background, values, feature_names, row)
    names, steps = steps_of(explained, top)
    ends = explained.base + np.cumsum(steps[::-1])[::-1]  # from below
    begins = np.append(ends[1:], explained.base)
    with drawing(ax, (SIZE[0], MARGINS + HEIGHT * len(steps))) as ax:
        rows = np.arange(len(steps))
        up = steps >= 0
        look: dict[str, Any] = {"height": 0.66, "edgecolor": INK, "linewidth": 0.5}
        ax.barh(rows[up], steps[up], left=begins[up], color=PALETTE[1], label="raises", **look)
        ax.barh(
            rows[~up], steps[~up], left=begins[~up], color=PALETTE[4], hatch="///", label="lowers",
            **look,
        )  # fmt: skip
        for i in range(len(steps) - 1):  # from each bar to the one above
            ax.plot([begins[i]] * 2, [i - 0.33, i + 1.33], color=FAINT, lw=0.6, zorder=0)
        _add_numbers(ax, steps, ends)
        low, high = min(ends.min(), explained.base), max(ends.max(), explained.base)
        room = ROOM * ((high - low) or 1.0)
        ax.set_xlim(low - room, high + room)
        ax.set_ylim(len(steps) - 0.4, -0.6)
        ax.set_yticks(rows, names)
        ax.tick_params(axis="y", length=0)
        _add_ends(ax, explained, float(ends[0]))
    return ax


def steps_of(explained: Explained, top: int | None) -> tuple[list[str], np.ndarray]:
    """The bars from above: what they stand for, and their lengths; the last may be all others."""
    [values] = explained.values
    if top is not None and top < 1:
        raise ValueError(f"top={top} features are none: pass 1 or more")
    order = np.argsort(-np.abs(values), kind="stable")
    n = len(order) if top is None or top + 1 >= len(order) else top  # never one feature as others
    own, others = order[:n], order[n:]
    columns = explained.columns
    names = [
        f"{plain(columns.names[f], 30)} = {text_of(columns.values[f].tolist()[0])}" for f in own
    ]
    steps = values[own]
    if len(others):
        names.append(f"{len(others)} other features")
        steps = np.append(steps, values[others].sum())
    return names, steps


def _add_numbers(ax: Axes, steps: np.ndarray, ends: np.ndarray) -> None:
    """What each bar adds, beyond its end."""
    for i, (step, end) in enumerate(zip(steps, ends, strict=True)):
        side = 1 if step >= 0 else -1
        ax.annotate(
            f"{step:+.3g}".replace("-", "−"), (end, i), (4 * side, 0), fontsize=SMALL,
            textcoords="offset points", ha="left" if step >= 0 else "right", va="center",
        )  # fmt: skip


def _add_ends(ax: Axes, explained: Explained, end: float) -> None:
    """Where the steps begin and end, and what that is."""
    for x, style in ((explained.base, ":"), (end, "--")):
        ax.axvline(x, color=INK, lw=0.9, ls=style, zorder=0)
    what = explained.what.removeprefix("the ")
    ax.set_xlabel(f"dashed: {what}, {text_of(end)}\ndotted: expected, {text_of(explained.base)}")
