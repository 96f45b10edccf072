"""SHAP values of many rows: of each feature a swarm of points, or a bar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.tools.plot.explained import MISSING, Explained
from gpuforest.tools.plot.style import FAINT, INK, PALETTE, SIZE, drawing, plain
from gpuforest.tools.plot.surfaces import SHADES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, MARGINS, LEAST = 0.3, 1.2, 2.6  # inches of a feature, above and below all, of a picture
BINS, STEP, WIDEST = 120, 0.07, 0.84  # of a swarm: along it; across, in features


def plot_shap_summary(
    estimator: Any,
    X: Any,
    *,
    output: Any = None,
    background: Any = None,
    values: Any = None,
    top: int | None = 20,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a point for each row's SHAP value of each feature: the lighter, the larger the feature.

    Missing values are crosses; features of categories are diamonds of one shade.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest that has SHAP values
    X : array-like or frame of shape (n_samples, n_features)
    output : a class, or the number of an output; None: the only one, or the second of two classes
    background : array-like or frame; as of `shap_values`
    values : what `shap_values(X)` gave, for all outputs; None: it is called
    top : int >= 1, how many features, those of the largest mean size first; None: all
    feature_names : names of all features; None: those of X or of the fit
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : no such output, or none is given of several; top below 1; a wrong number of names
    TypeError : no estimator of gpuforest, or one without SHAP values
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor
    >>> from gpuforest.plot import plot_shap_summary
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 0.5, 2.0]
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> ax = plot_shap_summary(forest, X)  # doctest: +SKIP
    """
    explained = Explained.of(estimator, X, output, background, values, feature_names)
    order, _ = explained.strongest(top)
    width = np.ptp(explained.values[:, order]) or 1.0
    with drawing(ax, (SIZE[0], max(LEAST, MARGINS + HEIGHT * len(order)))) as ax:
        ax.axvline(0.0, color=FAINT, lw=0.8, zorder=0)
        for row, f in enumerate(order):
            x = explained.values[:, f]
            _draw_feature(ax, x, row + swarm(x, width), explained.numbers(f))
        _add_scale(ax, bool((~explained.is_category[order]).any()))
        _add_rows(ax, [explained.columns.names[f] for f in order])
        ax.set_xlabel(f"SHAP value: {explained.adds}")
    return ax


def plot_shap_bar(
    estimator: Any,
    X: Any,
    *,
    output: Any = None,
    background: Any = None,
    values: Any = None,
    top: int | None = 20,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean size of each feature's SHAP values, largest first.

    Parameters, results and errors are those of `plot_shap_summary`.

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor
    >>> from gpuforest.plot import plot_shap_bar
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 0.5, 2.0]
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> ax = plot_shap_bar(forest, X)  # doctest: +SKIP
    """
    explained = Explained.of(estimator, X, output, background, values, feature_names)
    order, size = explained.strongest(top)
    with drawing(ax, (SIZE[0], MARGINS + HEIGHT * len(order))) as ax:
        rows = np.arange(len(order))
        ax.barh(rows, size, height=0.7, color=PALETTE[4], edgecolor=INK, linewidth=0.5)
        _add_rows(ax, [explained.columns.names[f] for f in order])
        ax.set_xlim(left=0.0)
        ax.set_xlabel(f"mean |SHAP value|: {explained.adds}")
    return ax


def swarm(x: np.ndarray, width: float) -> np.ndarray:
    """How far each point of a swarm lies from its line, f64[N]: points beside one another are
    spread evenly on both sides.

    width : of the picture, in units of x
    """
    bins = np.floor((x - x.min()) / width * BINS).astype(np.int64)
    order = np.argsort(bins, kind="stable")
    _, first, counts = np.unique(bins[order], return_index=True, return_counts=True)
    rank = np.empty(len(x))
    rank[order] = np.arange(len(x)) - np.repeat(first, counts) - np.repeat((counts - 1) / 2, counts)
    return np.asarray(rank * min(STEP, WIDEST / counts.max()))


def shades(numbers: np.ndarray) -> np.ndarray:
    """From 0, small, to 1, large: linear between the 5th and the 95th percentile."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return np.zeros(len(numbers))
    low, high = np.percentile(known, [5, 95])
    if low == high:
        low, high = known.min(), known.max()
    return np.asarray(np.clip((numbers - low) / ((high - low) or 1.0), 0.0, 1.0))


def _draw_feature(ax: Axes, x: np.ndarray, y: np.ndarray, numbers: np.ndarray | None) -> None:
    """The swarm of one feature."""
    dots: dict[str, Any] = {"s": 14, "linewidths": 0.3, "edgecolors": INK, "rasterized": True}
    if numbers is None:
        ax.scatter(x, y, marker="D", color=FAINT, label="a category", **dots | {"s": 12})
        return
    known = ~np.isnan(numbers)
    if known.any():
        shade = shades(numbers)[known]
        ax.scatter(x[known], y[known], c=shade, cmap=SHADES, vmin=0.0, vmax=1.0, **dots)
    if not known.all():
        ax.plot(x[~known], y[~known], "x", color=INK, ms=4, mew=0.9, label=MISSING)


def _add_scale(ax: Axes, has_numbers: bool) -> None:
    """What shades and marks mean, above and beside the swarms."""
    from matplotlib.cm import ScalarMappable

    if has_numbers:
        bar = ax.figure.colorbar(ScalarMappable(cmap=SHADES), ax=ax, aspect=30, pad=0.02)
        bar.set_ticks([0.0, 1.0], labels=["small", "large"])
        bar.set_label("feature value", labelpad=-20)
        bar.outline.set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    by_label = dict(zip(labels, handles, strict=True))
    if by_label:
        ax.legend(
            by_label.values(), by_label, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2
        )


def _add_rows(ax: Axes, names: list[str]) -> None:
    ax.set_yticks(np.arange(len(names)), [plain(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)
