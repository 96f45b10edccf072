"""SHAP values: swarms and bars of many rows, steps of one row, dependence on one feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import Bunch

from gpuforest.data.frames import listed
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.curves import plot_importances
from gpuforest.tools.plot.style import Axes
from gpuforest.tools.plot.surfaces import SHADES, Columns

MISSING, OTHERS, AUTO = "missing", "others", "auto"
HEIGHT, MARGINS, LEAST = 0.3, 1.2, 2.6  # inches of a feature, above and below all, of a picture
BINS, STEP, WIDEST = 120, 0.07, 0.84  # of a swarm: along it; across, in features
ROOM = 0.27  # next to the bars of a waterfall, for their numbers; a share of the bars' range
MOST = 10  # categories along an axis, or in a legend; the rest is one
INTERACTING = 64  # rows whose interactions choose the colour
DOTS: dict[str, Any] = {"linewidths": 0.3, "edgecolors": style.INK, "rasterized": True}


class Described(Columns):
    """Rows, whose values can be told in a picture."""

    def real(self, f: int) -> np.ndarray | None:
        """The values of a feature as f64[N], NaN where they are missing; None: categories."""
        return None if f in self.categories else self.values[:, f]

    def texts(self, f: int) -> list[str]:
        """The values of a feature as short texts."""
        values = self.values[:, f].tolist()
        if f not in self.categories:
            return [text_of(value) for value in values]
        names = [*map(text_of, self.categories[f]), OTHERS]
        return [MISSING if code != code else names[int(code)] for code in values]

    def kinds(self, f: int) -> tuple[np.ndarray, list[str]]:
        """The number i64[N] of each row's category, and their names; rare ones are joined."""
        texts = self.texts(f)
        counts, last = Counter(texts), (OTHERS, MISSING)
        if len(counts) > MOST:
            frequent = {text for text, _ in counts.most_common(MOST - 1)}
            texts = [text if text in frequent else OTHERS for text in texts]
        kinds = sorted(set(texts) - set(last)) + [text for text in last if text in texts]
        return np.array([kinds.index(text) for text in texts]), kinds


class Explained(Described):
    """Rows and their SHAP values f64[N, F], which are added to `what`, whose mean is `base`."""

    def __init__(
        self, estimator: Any, X: Any, output: Any, background: Any, values: Any,
        feature_names: Sequence[str] | None, row: int | None = None,
    ) -> None:  # fmt: skip
        """From what a public function takes; `row`: the number of the only row to explain."""
        super().__init__(estimator, X, feature_names)
        (N, F), K = self.values.shape, estimator.forest_.coding.n_values
        self.output = k = _number_of(estimator, output, K)
        if values is not None and np.shape(values) != ((N, F) if K == 1 else (N, F, K)):
            raise ValueError(
                f"values has the shape {np.shape(values)}: pass shap_values(X) of the same X"
            )
        if row is not None:
            if not 0 <= row < N:
                raise ValueError(f"row={row}: X has the rows 0 to {N - 1}")
            self.values = self.values[[row]]
            values = None if values is None else values[[row]]
        model = self.model
        if background is not None:
            background = Columns(estimator, background, self.names).values
        if values is None:
            values = model.shap_values(self.values, background=background)
        self.shap: np.ndarray = values if k is None else values[:, :, k]
        base = model.expected_value_ if background is None else model.expected_value(background)
        self.base = float(np.atleast_1d(base)[k or 0])
        self.what = _what(estimator, k)
        # on one line if it is short
        self.adds = f"what a feature adds to{chr(10) if len(self.what) > 16 else ' '}{self.what}"


def text_of(value: Any) -> str:
    """A feature's value as a short text."""
    if value != value:
        return MISSING
    if isinstance(value, float):
        is_whole = value.is_integer() and abs(value) < 1e9
        return f"{value:{'.0f' if is_whole else '.4g'}}".replace("-", "−")
    return style.plain(value, 24)


def labels_of(estimator: Any) -> list[Any]:
    """What the outputs are called: the classes, or numbers."""
    coding = estimator.forest_.coding
    return list(range(coding.n_values) if coding.classes is None else coding.classes.tolist())


def _number_of(estimator: Any, output: Any, n_outputs: int) -> int | None:
    """The number of an output; None if the model has one output."""
    if n_outputs == 1:
        if output is not None:
            raise ValueError(f"output={output!r}: the prediction is one number, so leave it out")
        return None
    labels = labels_of(estimator)
    if output is None and len(labels) == 2 and is_classifier(estimator):
        return 1
    if output is None or output not in labels:
        raise ValueError(
            f"output={output!r} is none of the {n_outputs} outputs: choose one of {listed(labels)}"
        )
    return labels.index(output)


def _what(estimator: Any, k: int | None) -> str:
    """What the values are added to."""
    what = "prediction" if estimator.forest_.baseline is None else "raw prediction"
    if not is_classifier(estimator):
        return f"the {what}" if k is None else f"{what} {k}"
    if what == "prediction":
        what = "probability" if estimator.forest_.combine == "mean" else "share of the votes"
    label = labels_of(estimator)[-1 if k is None else k]  # of two classes with one number the last
    return f"the {what} of {style.plain(label, 24)}"


@documented
def plot_shap_summary(
    estimator: Any, X: Any, *, output: Any = None, background: Any = None, values: Any = None,
    top: int | None = 20, feature_names: Sequence[str] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw a point for each row's SHAP value of each feature: the lighter, the larger the feature.

    Missing values are crosses; features of categories are diamonds of one shade.

    Raises
    ------
    ValueError : no such output, or output=None where there are several; top below 1; wrong names
    TypeError : no estimator of gpuforest, or one without SHAP values

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor
    >>> from gpuforest.plot import plot_shap_summary
    >>> X, y = [[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], [0.0, 0.5, 2.0]
    >>> forest = RandomForestRegressor(10, random_state=0).fit(X, y)
    >>> ax = plot_shap_summary(forest, X)
    """
    explained = Explained(estimator, X, output, background, values, feature_names)
    style.check_top(top)
    order = np.argsort(-np.abs(explained.shap).mean(axis=0), kind="stable")[:top]
    width = np.ptp(explained.shap[:, order]) or 1.0
    with style.drawing(ax, (style.SIZE[0], max(LEAST, MARGINS + HEIGHT * len(order)))) as ax:
        ax.axvline(0.0, color=style.FAINT, lw=0.8, zorder=0)
        for row, f in enumerate(order):
            x, numbers = explained.shap[:, f], explained.real(f)
            y = row + swarm(x, width)
            if numbers is None:
                ax.scatter(x, y, marker="D", color=style.FAINT, label="a category", s=12, **DOTS)
            else:
                shade = np.where(np.isnan(numbers), np.nan, shades(numbers))
                _draw_shaded(ax, x, y, shade, MISSING, s=14, vmin=0.0, vmax=1.0)
        _add_scale(ax, not explained.categories.keys() >= {*order.tolist()})
        style.label_rows(ax, [explained.name(f) for f in order])
        ax.set_xlabel(f"SHAP value: {explained.adds}")
    return ax


@documented
def plot_shap_bar(
    estimator: Any, X: Any, *, output: Any = None, background: Any = None, values: Any = None,
    top: int | None = 20, feature_names: Sequence[str] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the mean size of each feature's SHAP values, largest first.

    Errors are those of `plot_shap_summary`.
    """
    explained = Explained(estimator, X, output, background, values, feature_names)
    measure = f"mean |SHAP value|: {explained.adds}"
    sizes = np.abs(explained.shap).mean(axis=0)
    bars = Bunch(importances_mean=sizes, importances_std=None, measure=measure)
    return plot_importances(bars, top=top, feature_names=explained.names, ax=ax)


def swarm(x: np.ndarray, width: float) -> np.ndarray:
    """Offset f64[N] of each point of a swarm; `width` of the picture in units of x."""
    bins = np.floor((x - x.min()) / width * BINS).astype(np.int64)
    order = np.argsort(bins, kind="stable")
    _, first, counts = np.unique(bins[order], return_index=True, return_counts=True)
    rank = np.empty(len(x))
    rank[order] = np.arange(len(x)) - np.repeat(first, counts) - np.repeat((counts - 1) / 2, counts)
    return np.asarray(rank * min(STEP, WIDEST / counts.max()))


def shades(numbers: np.ndarray) -> np.ndarray:
    """From 0, small, to 1, large: linear between the 5th and the 95th percentile."""
    present = numbers[np.isfinite(numbers)]
    if not len(present):
        return np.zeros(len(numbers))
    low, high = np.percentile(present, [5, 95])
    if low == high:
        low, high = present.min(), present.max()
    return np.asarray(np.clip((numbers - low) / ((high - low) or 1.0), 0.0, 1.0))


def _draw_shaded(
    ax: Axes, x: np.ndarray, y: np.ndarray, shade: np.ndarray, missing: str, **how: Any
) -> Any:
    """Draw points f64[N] in shades, and crosses with the label `missing` where the shade is NaN."""
    hole = np.isnan(shade)
    if hole.any():
        ax.plot(x[hole], y[hole], "x", color=style.INK, ms=4, mew=0.9, label=missing)
    return ax.scatter(x[~hole], y[~hole], c=shade[~hole], cmap=SHADES, **DOTS, **how)


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
        ax.legend(by_label.values(), by_label, ncols=2, **style.ABOVE)


@documented
def plot_shap_waterfall(
    estimator: Any, X: Any, row: int = 0, *, output: Any = None, background: Any = None,
    values: Any = None, top: int | None = 10, feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw how the SHAP values of one row lead from the expected value to its prediction.

    Bars that raise the prediction are plain, and bars that lower it hatched. Read from below: the
    largest steps come last.

    Errors are those of `plot_shap_summary`.
    """
    explained = Explained(estimator, X, output, background, values, feature_names, row)
    names, steps = steps_of(explained, top)
    ends = explained.base + np.cumsum(steps[::-1])[::-1]  # from below
    begins = np.append(ends[1:], explained.base)
    with style.drawing(ax, (style.SIZE[0], MARGINS + HEIGHT * len(steps))) as ax:
        rows = np.arange(len(steps))
        for up, look in (
            (steps >= 0, {"color": style.PALETTE[1], "label": "raises"}),
            (steps < 0, {"hatch": "///", "label": "lowers"}),
        ):
            look = style.BARS | {"height": 0.66} | look
            bars = ax.barh(rows[up], steps[up], left=begins[up], **look)
            added = [f"{step:+.3g}".replace("-", "−") for step in steps[up]]
            ax.bar_label(bars, added, padding=4, fontsize=style.SMALL)
        joints = begins[:-1], rows[:-1] - 0.33, rows[:-1] + 1.33  # from each bar to the one above
        ax.vlines(*joints, color=style.FAINT, lw=0.6, zorder=0)
        low, high = min(ends.min(), explained.base), max(ends.max(), explained.base)
        room = ROOM * ((high - low) or 1.0)
        ax.set_xlim(low - room, high + room)
        style.label_rows(ax, names)
        for x, line in ((explained.base, ":"), (ends[0], "--")):
            ax.axvline(x, color=style.INK, lw=0.9, ls=line, zorder=0)
        what, end = explained.what.removeprefix("the "), text_of(float(ends[0]))
        ax.set_xlabel(f"dashed: {what}, {end}\ndotted: expected, {text_of(explained.base)}")
    return ax


def steps_of(explained: Explained, top: int | None) -> tuple[list[str], np.ndarray]:
    """The bars from above: what they stand for, and their lengths; the last may be all others."""
    [values] = explained.shap
    style.check_top(top)
    order = np.argsort(-np.abs(values), kind="stable")
    n = len(order) if top is None or top + 1 >= len(order) else top  # never one feature as others
    shown, others = order[:n], order[n:]
    names = [f"{explained.name(f, 30)} = {explained.texts(f)[0]}" for f in shown]
    steps = values[shown]
    if len(others):
        names.append(f"{len(others)} other features")
        steps = np.append(steps, values[others].sum())
    return names, steps


@documented
def plot_shap_dependence(
    estimator: Any, X: Any, feature: int | str, *, color_by: int | str | None = AUTO,
    output: Any = None, background: Any = None, values: Any = None,
    feature_names: Sequence[str] | None = None, ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw each row's SHAP value of a feature against its value there.

    Points above one another are rows for which the same value means different things: the feature
    interacts with others. The colour is another feature. Missing values lie on the left, behind a
    dotted line.

    Errors are those of `plot_shap_summary`.
    """
    explained = Explained(estimator, X, output, background, values, feature_names)
    f, other = explained.index(feature), None
    if color_by == AUTO and AUTO not in explained.names:
        other = partner(explained.model, explained.values, f, explained.output)
    elif color_by is not None:
        other = explained.index(color_by)
    with style.drawing(ax) as ax:
        ax.axhline(0.0, color=style.FAINT, lw=0.8, zorder=0)
        x = places(ax, explained, f)
        _draw_points(ax, x, explained.shap[:, f], explained, other)
        what = f"SHAP value of {explained.name(f, 24)}\nfor {explained.what}"
        ax.set(xlabel=explained.name(f), ylabel=what)
    return ax


def partner(model: Any, X: np.ndarray, feature: int, output: int | None) -> int | None:
    """The feature of the largest mean interaction with another; None: no feature interacts."""
    pairs = model.shap_interaction_values(X[:INTERACTING])
    interactions = pairs[:, feature] if output is None else pairs[:, feature, :, output]
    size = np.abs(interactions).mean(axis=0)
    size[feature] = 0.0
    return int(size.argmax()) if size.any() else None


def places(ax: Axes, explained: Described, f: int) -> np.ndarray:
    """Where the rows lie along the axis of a feature, f64[N], and its ticks."""
    numbers = explained.real(f)
    if numbers is None:
        at, kinds = explained.kinds(f)
        slant: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(kinds)), kinds, **slant if sum(map(len, kinds)) > 50 else {})
        return at + 0.5 * _apart(len(at))
    holes = np.isnan(numbers)
    if holes.any():
        present = numbers[~holes]
        low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
        room = 0.08 * ((high - low) or 1.0)
        numbers = np.where(holes, low - room * (1.5 + 0.8 * _apart(len(holes))), numbers)
        if len(present):
            ax.axvline(low - 0.75 * room, color=style.FAINT, lw=0.8, ls=":")
        ax.annotate(
            MISSING, (low - 1.5 * room, 1.0), (0, 2), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", va="bottom", fontsize=9,
        )  # fmt: skip
    return numbers


def _apart(n: int) -> np.ndarray:
    """Numbers between -0.5 and 0.5 that lie far apart, the same in each picture."""
    return (np.arange(n) * 0.618034) % 1.0 - 0.5  # by the golden ratio


def _draw_points(
    ax: Axes, x: np.ndarray, y: np.ndarray, explained: Explained, other: int | None
) -> None:
    """The points, in the colours of another feature, if there is one."""
    dots = DOTS | {"s": 16}
    if other is None:
        ax.scatter(x, y, color=style.PALETTE[4], **dots)
        return
    name, numbers = explained.name(other, 30), explained.real(other)
    if numbers is None:
        codes, kinds = explained.kinds(other)
        for i, (kind, colour) in enumerate(zip(kinds, style.colours(len(kinds)), strict=True)):
            look = dots | {"color": colour, "marker": style.marker(i), "label": kind}
            ax.scatter(x[codes == i], y[codes == i], **look)
        ax.legend(title=name, **style.BESIDE)
        return
    hole = np.isnan(numbers)
    low, high = (0.0, 1.0) if hole.all() else np.percentile(numbers[~hole], [2, 98])
    shown = _draw_shaded(ax, x, y, numbers, f"{name} is missing", s=16, vmin=low, vmax=high)
    if not hole.all():
        ax.figure.colorbar(shown, ax=ax, label=name)
    if hole.any():
        ax.legend(**style.ABOVE)
