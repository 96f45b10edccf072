"""Predictions along one feature, or over two: step functions and decision boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor

from gpuforest.common.text import did_you_mean
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import unpack
from gpuforest.data.arrays import is_frame, open_frame, to_host
from gpuforest.explain.model_facts import feature_names as known_names
from gpuforest.export import model_tables, views, walker
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import Axes

MOST_CELLS = 300  # along an axis
MARGIN = 0.05  # of the data's range, on both sides of it
SHADES = "cividis"  # of numbers: grows lighter, so that it is read in black and white too
LEGEND_ROWS = 14
Pair = tuple[np.ndarray, np.ndarray]  # along the two axes


class Columns:
    """Rows as an estimator reads them f64[N, F], names of features, the model of these rows."""

    def __init__(self, estimator: Any, X: Any, names: Sequence[str] | None) -> None:
        forest = walker.known(estimator).forest
        if names is None:
            names = open_frame(X).columns if is_frame(X) else known_names(estimator)
        self.names = views.names_of(forest, names, "model")
        self.categories = forest.edges.categories
        codes = model_tables.category_codes(estimator, X.toarray() if issparse(X) else X)
        self.values, self.model = codes.astype(np.float64), model_tables.reader_of_codes(estimator)

    def name(self, feature: int, most: int = 40) -> str:
        """The name of a feature in a picture."""
        return style.plain(self.names[feature], most)

    def index(self, feature: int | str) -> int:
        """The number of a feature that is given by number or by name."""
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        if isinstance(feature, str) or not 0 <= feature < len(self.names):
            names = ", ".join(self.names[:10]) + ", ..." * (len(self.names) > 10)
            hint = did_you_mean(str(feature), self.names)
            hint = hint or f": choose one of {names}, or its number"
            raise ValueError(f"no feature {feature!r}{hint}")
        return int(feature)

    def numbers(self, feature: int | str) -> tuple[int, np.ndarray]:
        """The number of a feature to draw over, and its values f64[N]."""
        index = self.index(feature)
        name, values = self.names[index], self.values[:, index]
        if index in self.categories:
            raise ValueError(
                f"feature {name!r} holds categories: choose one of numbers to draw over"
            )
        if np.isnan(values).all():
            raise ValueError(f"feature {name!r} holds no finite number to draw over")
        return index, values

    def table(self, varied: dict[int, np.ndarray]) -> np.ndarray:
        """Rows to predict: `varied` columns, and others at the median or most frequent category."""
        table = np.full((len(next(iter(varied.values()))), len(self.names)), np.nan)
        for f, values in enumerate(self.values.T):
            known = values[~np.isnan(values)]
            if f in varied:
                table[:, f] = varied[f]
            elif len(known):
                codes = known.astype(np.int64) if f in self.categories else None
                table[:, f] = np.median(known) if codes is None else np.bincount(codes).argmax()
        return table


def edges(forest: Forest, feature: int, values: np.ndarray) -> np.ndarray:
    """Ascending ends of the cells along a numeric feature over its values f64[N]. They are
    thresholds, so pictures are exact; even steps if there are too many, or combinations."""
    finite = values[np.isfinite(values)]
    low, high = finite.min(), finite.max()
    margin = MARGIN * (high - low) or 1.0
    low, high = low - margin, high + margin
    split, bin, _, _ = unpack(np, forest.nodes)
    at = split == feature
    cuts = np.unique(forest.edges.threshold(split[at], bin[at]))
    cuts = cuts[(cuts > low) & (cuts < high)]
    if len(cuts) >= MOST_CELLS or forest.coordinates is not None:
        return np.linspace(low, high, MOST_CELLS + 1)
    return np.concatenate([[low], cuts, [high]])


def middles(ends: np.ndarray) -> np.ndarray:
    """A value within each cell."""
    return np.asarray(ends[:-1] + (ends[1:] - ends[:-1]) / 2)


@documented
def plot_boundaries(
    estimator: Any, X: Any, y: Any = None, features: Sequence[int | str] = (0, 1), *,
    feature_names: Sequence[str] | None = None, class_names: Sequence[Any] | None = None,
    legend: bool = True, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw what an estimator predicts over two features, in the range of X: the deeper a colour,
    the larger the lead of its class.

    The boundaries are exact where a feature has less than 300 thresholds, as by default. All
    other features are held at the median of X, or at the most frequent category: fit to two
    features to see all of a model.

    Raises
    ------
    ValueError : no such feature, or one that holds categories; several outputs; a class that the
        estimator does not know
    TypeError : no estimator of gpuforest, or one that predicts nothing
    """
    columns = _read(estimator, X, feature_names)
    if len(features) != 2:
        raise ValueError(f"boundaries are drawn over two features, but {len(features)} are given")
    (a, b), values = zip(*map(columns.numbers, features), strict=True)
    ends = edges(estimator.forest_, a, values[0]), edges(estimator.forest_, b, values[1])
    grid = np.meshgrid(middles(ends[0]), middles(ends[1]))
    table = columns.table({a: grid[0].ravel(), b: grid[1].ravel()})
    y = None if y is None else np.asarray(to_host(y)).ravel()
    if class_names is not None and not is_classifier(estimator):
        raise ValueError("class_names are for classes, and this estimator predicts numbers")
    with style.drawing(ax) as ax:
        if is_classifier(estimator):
            [labels] = walker.class_labels(estimator.forest_, class_names)
            names = [style.plain(label, 24) for label in labels]
            _shade_classes(ax, ends, columns.model.predict_proba(table))
            _add_classes(ax, estimator, values, y, names, legend)
        else:
            _draw_numbers(ax, ends, columns.model.predict(table), values, y, legend)
        ax.set(xlabel=_label(columns, a, 2), ylabel=columns.name(b))
        ax.set(xlim=ends[0][[0, -1]], ylim=ends[1][[0, -1]])
    return ax


@documented
def plot_steps(
    estimator: Any, X: Any, y: Any = None, feature: int | str = 0, *, n_trees: int = 1,
    feature_names: Sequence[str] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw what an estimator of numbers predicts along one feature, in the range of X: steps.

    The steps are exact where the feature has less than 300 thresholds, as by default. All other
    features are held at the median of X, or at the most frequent category.

    Raises
    ------
    ValueError : no such feature, or one that holds categories; an estimator of classes, or of
        several outputs
    TypeError : no estimator of gpuforest, or one that predicts nothing
    """
    columns = _read(estimator, X, feature_names)
    if not is_regressor(estimator):
        raise ValueError("steps are of predicted numbers: for classes draw boundaries")
    index, values = columns.numbers(feature)
    ends = edges(estimator.forest_, index, values)
    table = columns.table({index: middles(ends)})
    lines, first, whole = _first(columns.model, table, n_trees)
    with style.drawing(ax) as ax:
        if y is not None:
            y = np.asarray(to_host(y)).ravel()
            ax.plot(values, y, "o", ms=4, mfc="none", mec=style.FAINT, label="data")
        steps: Any = {"drawstyle": "steps-post", "ls": "--", "lw": 0.9, "color": style.PALETTE[1]}
        for i, stage in enumerate(lines):  # stage[i] between ends[i] and ends[i + 1]
            ax.plot(ends, np.append(stage, stage[-1]), label=None if i else first, **steps)
        predicted = columns.model.predict(table)
        steps |= {"ls": "-", "lw": 1.8, "color": style.PALETTE[0], "label": whole}
        ax.plot(ends, np.append(predicted, predicted[-1]), **steps)
        ax.set(xlabel=_label(columns, index, 1), ylabel="prediction", xlim=ends[[0, -1]])
        ax.legend()
    return ax


def _first(model: Any, table: Any, n: int) -> tuple[list[np.ndarray], str, str]:
    """Predictions of the first trees or rounds, and names of these and of all together."""
    if (forest := model.forest_).baseline is not None:
        lines, what = [*islice(model.staged_predict(table), n)], "round"
        begin, whole = "after its first", f"{model.n_iter_} rounds"
    else:
        trees, what, begin = list(getattr(model, "estimators_", [])), "tree", "its first"
        lines = [tree.predict(table) for tree in trees[:n]]
        whole = f"{forest.combine} of {forest.n_trees} trees" if trees else "tree"
    return lines, f"{begin} {what if len(lines) == 1 else f'{len(lines)} {what}s'}", whole


def _read(estimator: Any, X: Any, feature_names: Sequence[str] | None) -> Columns:
    """The rows, for an estimator whose predictions can be drawn."""
    walker.opened(estimator)
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise TypeError(
            f"a {type(estimator).__name__} predicts neither classes nor numbers to draw"
        )
    if estimator.n_outputs_ != 1:
        raise ValueError(
            f"one output can be drawn, the estimator has {estimator.n_outputs_}: fit to one of them"
        )
    return Columns(estimator, X, feature_names)


def _label(columns: Columns, feature: int, n_drawn: int) -> str:
    """The label of the horizontal axis, which mentions other features if there are some."""
    return columns.name(feature) + "\n(other features held)" * (len(columns.names) != n_drawn)


def _shade_classes(ax: Axes, ends: Pair, shares: np.ndarray) -> None:
    """Cells in the colours of their classes, the deeper the larger the lead, and borders."""
    full, shape = np.array(style.colours(shares.shape[1])), (len(ends[1]) - 1, len(ends[0]) - 1)
    best = shares.argmax(axis=1)
    second, first = np.sort(np.pad(shares, [(0, 0), (1, 0)]), axis=1)[:, -2:].T
    depth = style.PALE * (0.35 + 0.65 * (first - second))  # never quite white
    shades = 1 - depth[:, None] * (1 - full[best])
    ax.pcolormesh(*ends, shades.reshape(*shape, 3), rasterized=True)
    _add_borders(ax, ends, best.reshape(shape))


def _add_classes(
    ax: Axes, estimator: Any, values: Pair, y: np.ndarray | None, names: list[str], legend: bool
) -> None:
    if y is not None:
        style.check_known(y, estimator.classes_)
    marks = []
    for i, (name, colour) in enumerate(zip(names, style.colours(len(names)), strict=True)):
        rows = slice(0) if y is None else y == estimator.classes_[i]
        look: Any = {"marker": style.marker(i), "color": colour, "mec": style.INK, "mew": 0.5}
        marks += ax.plot(values[0][rows], values[1][rows], ls="none", label=name, **look)
    if legend:
        ax.legend(handles=marks, ncols=-(-len(marks) // LEGEND_ROWS), **style.BESIDE)


def _add_borders(ax: Axes, ends: Pair, best: np.ndarray) -> None:
    """Lines between cells of different classes, i64[rows, columns]."""
    from matplotlib.collections import LineCollection

    x, y = ends
    row, column = np.nonzero(best[:, 1:] != best[:, :-1])
    upright = x[column + 1], y[row], x[column + 1], y[row + 1]
    row, column = np.nonzero(best[1:] != best[:-1])
    level = x[column], y[row + 1], x[column + 1], y[row + 1]
    lines = np.hstack([upright, level]).T.reshape(-1, 2, 2)
    ax.add_collection(LineCollection(list(lines), colors=style.INK, linewidths=0.9), autolim=False)


def _draw_numbers(
    ax: Axes, ends: Pair, predicted: np.ndarray, values: Pair, y: np.ndarray | None, legend: bool
) -> None:
    shown = predicted if y is None else np.append(predicted, y)
    limits = {"cmap": SHADES, "vmin": shown.min(), "vmax": shown.max()}
    cells = predicted.reshape(len(ends[1]) - 1, len(ends[0]) - 1)
    mesh = ax.pcolormesh(*ends, cells, rasterized=True, **limits)
    if y is not None:
        ax.scatter(*values, 20, c=y, edgecolors=style.INK, linewidths=0.5, **limits)
    if legend:
        ax.figure.colorbar(mesh, ax=ax, label="prediction")
