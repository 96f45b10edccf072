"""SHAP values of a feature against its values, with another feature as colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.tools.plot.explained import MISSING, Explained, some_rows
from gpuforest.tools.plot.style import FAINT, INK, PALETTE, colours, drawing, marker, plain
from gpuforest.tools.plot.surfaces import SHADES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 10  # categories along an axis, or in a legend; the others are one
OTHERS = "others"
INTERACTING = 64  # rows whose interactions choose the colour
AUTO = "auto"


def plot_shap_dependence(
    estimator: Any,
    X: Any,
    feature: int | str,
    *,
    color_by: int | str | None = AUTO,
    output: Any = None,
    background: Any = None,
    values: Any = None,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each row's SHAP value of a feature against its value there.

    Points above one another are rows for which the same value means different things: the feature
    interacts with others. The colour is another feature. Missing values lie on the left, behind a
    dotted line.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest that has SHAP values
    X : array-like or frame of shape (n_samples, n_features)
    feature : its number or name
    color_by : number or name of the feature that gives the colour; "auto": the one of the largest
        mean SHAP interaction with `feature`, in the first 64 rows; None: there is no colour
    output, background, values, feature_names, ax
        As of `plot_shap_summary`.

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : no such feature or output; a wrong number of names
    TypeError : no estimator of gpuforest, or one without SHAP values
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor
    >>> from gpuforest.plot import plot_shap_dependence
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 0.5, 2.0]
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> ax = plot_shap_dependence(forest, X, 0)  # doctest: +SKIP
    """
    explained = Explained.of(estimator, X, output, background, values, feature_names)
    f, other = explained.columns.index(feature), None
    if color_by == AUTO and AUTO not in explained.columns.names:
        other = partner(estimator, X, f, explained.output)
    elif color_by is not None:
        other = explained.columns.index(color_by)
    name = explained.columns.names[f]
    with drawing(ax) as ax:
        ax.axhline(0.0, color=FAINT, lw=0.8, zorder=0)
        x = _places(ax, explained, f)
        _draw_points(ax, x, explained.values[:, f], explained, other)
        ax.set(xlabel=plain(name), ylabel=f"SHAP value of {plain(name, 24)}\nfor {explained.what}")
    return ax


def partner(estimator: Any, X: Any, feature: int, output: int | None) -> int | None:
    """The feature of the largest mean interaction with another; None: none interacts."""
    pairs = estimator.shap_interaction_values(some_rows(X, slice(INTERACTING)))
    own = pairs[:, feature] if output is None else pairs[:, feature, :, output]
    size = np.abs(own).mean(axis=0)
    size[feature] = 0.0
    return int(size.argmax()) if size.any() else None


def _places(ax: Axes, explained: Explained, f: int) -> np.ndarray:
    """Where the rows lie along the axis of a feature, f64[N], and its ticks."""
    numbers = explained.numbers(f)
    if numbers is None:
        texts = _few(explained.categories(f))
        kinds = _in_order(texts)
        ax.set_xticks(range(len(kinds)), kinds)
        if sum(map(len, kinds)) > 50:
            ax.tick_params(axis="x", rotation=30)
            for label in ax.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
        at = np.array([kinds.index(text) for text in texts], np.float64)
        return at + 0.5 * _spread(len(at))
    holes = np.isnan(numbers)
    if holes.any():
        known = numbers[~holes]
        low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
        room = 0.08 * ((high - low) or 1.0)
        numbers = np.where(holes, low - room * (1.5 + 0.8 * _spread(len(holes))), numbers)
        if len(known):
            ax.axvline(low - 0.75 * room, color=FAINT, lw=0.8, ls=":")
        ax.annotate(
            MISSING, (low - 1.5 * room, 1.0), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom", fontsize=9,
        )  # fmt: skip
    return numbers


def _spread(n: int) -> np.ndarray:
    """Numbers between -0.5 and 0.5 that lie far apart, the same in each picture."""
    return (np.arange(n) * 0.618034) % 1.0 - 0.5  # by the golden ratio


def _draw_points(
    ax: Axes, x: np.ndarray, y: np.ndarray, explained: Explained, other: int | None
) -> None:
    """The points, in the colours of another feature, if there is one."""
    dots: dict[str, Any] = {"s": 16, "linewidths": 0.3, "edgecolors": INK, "rasterized": True}
    if other is None:
        ax.scatter(x, y, color=PALETTE[4], **dots)
        return
    name, numbers = plain(explained.columns.names[other], 30), explained.numbers(other)
    if numbers is None:
        texts = _few(explained.categories(other))
        kinds = _in_order(texts)
        for i, (kind, colour) in enumerate(zip(kinds, colours(len(kinds)), strict=True)):
            own = texts == kind
            ax.scatter(x[own], y[own], color=colour, marker=marker(i), label=kind, **dots)
        ax.legend(title=name, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return
    known = ~np.isnan(numbers)
    if known.any():
        low, high = np.percentile(numbers[known], [2, 98])
        shown = ax.scatter(
            x[known], y[known], c=numbers[known], cmap=SHADES, vmin=low, vmax=high, **dots
        )
        ax.figure.colorbar(shown, ax=ax, label=name)
    if not known.all():
        label = f"{name} is missing"
        ax.plot(x[~known], y[~known], "x", color=INK, ms=4, mew=0.9, label=label)
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0))


def _few(texts: np.ndarray) -> np.ndarray:
    """Categories of which the rarest of many are one."""
    counts = Counter(texts.tolist())
    if len(counts) <= MOST:
        return texts
    kept = {text for text, _ in counts.most_common(MOST - 1)}
    return np.array([text if text in kept else OTHERS for text in texts], object)


def _in_order(texts: np.ndarray) -> list[str]:
    """The different categories in alphabetical order, then the others and missing values."""
    last = (OTHERS, MISSING)
    found = sorted(set(texts.tolist()) - set(last))
    return found + [text for text in last if text in texts]
