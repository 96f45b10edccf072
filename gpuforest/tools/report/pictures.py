"""The pictures of a report, drawn by matplotlib as SVG in the page's own colours, each with a
caption that says what to see in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from io import StringIO
from typing import Any

import numpy as np
from sklearn import metrics

from gpuforest.backends.rows import draw_rows
from gpuforest.common.text import one_line, shortened
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import Axes, plain
from gpuforest.tools.plot.survival import at_times, kaplan_meier, plot_survival
from gpuforest.tools.report.html import Html, figure, h, name, scored, share
from gpuforest.tools.report.rows import SEED, Labels
from gpuforest.tools.report.scores import brier_scores, wilson

SIZE = (3.8, 2.8)  # inches of a picture without its legend; its text is as large as the page's
ROW = 0.22  # inches of a line of the legend
BINS = 24  # of a histogram
MOST_CURVES = 4  # classes whose curves are drawn
MOST_RESIDUALS = 400  # rows that a picture can show
PROBABILITIES = 10  # bins of a calibration curve
BANDS = 10  # of predictions, each of as many rows
BRIER_TIMES = 50
SIZES, KAPLAN_MEIER = "target - prediction", "survival (Kaplan-Meier)"
Curve = tuple[Any, np.ndarray, np.ndarray]  # a class, whether rows are of it, its probabilities
UNIT = (0.0, 1.0)
DIAGONAL = UNIT, UNIT
RULE = "#d5dbe1"
# colours that the page's style sheet replaces, in dark mode too
VARIABLES = {style.INK: "var(--ink)", style.FAINT: "var(--soft)", RULE: "var(--rule)"}
VARIABLES[style.PALE_INK.lower()] = "color-mix(in srgb, var(--soft) 45%, var(--paper))"
VARIABLES[style.PALETTE[5].lower()] = "var(--c1)"
VARIABLES |= {colour.lower(): f"var(--c{i})" for i, colour in enumerate(style.PALETTE[:4])}
DASHED: dict[str, Any] = {"color": style.FAINT, "lw": 1, "ls": (0, (2, 4)), "zorder": 0}
PAGE_STYLE: Any = style.STYLE | {
    "svg.fonttype": "none",
    "path.simplify_threshold": 1.0,  # points that a curve needs, of all that it has
    "text.color": style.INK,
    "axes.labelcolor": style.INK,
    "axes.edgecolor": style.FAINT,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 6),
    "xtick.color": style.FAINT,
    "ytick.color": style.FAINT,
    "grid.color": RULE,
    "lines.markersize": 4,
    "lines.linewidth": 1.8,
}

# by the title of a picture, what to see in it
CAPTIONS = {
    "ROC curve": "The share of the class that is found (up) against the share of the others that "
    "is taken for it (right), at each threshold of the probability. A curve near the upper left "
    "corner is good; the dotted line is chance.",
    "Precision and recall": "How many of the rows that are taken for the class are of it (up), "
    "against the share of the class that is found (right). Chance would be a level line at ",
    "Calibration": "Points on the dotted diagonal mean that predicted probabilities are right: of "
    "rows with a probability near 0.8, 80% are of the class. Bars are Wilson's 95% intervals; "
    "below the diagonal, probabilities are too high.",
    "Survival by groups of risk": "Rows in groups by their predicted risk. Where the dashed line "
    "of a group follows its solid line, the forest's probabilities can be believed. Marks are "
    "censored rows.",
    "Calibration of survival": "At the quartiles of the times of events, rows in groups by their "
    "predicted survival. Points on the dotted diagonal mean that predictions are right.",
    "Brier score over time": "Less is better. The forest should lie below the Kaplan-Meier "
    "estimate of all training rows. Rows weigh more where others were censored.",
    "Residuals against predictions": "Each point is a row. Points should lie around the dotted "
    "line at any prediction; a bow or a funnel means that the model errs in some range more than "
    "elsewhere. Rows shown: ",
    "Sizes of residuals": "Nine of ten residuals lie between ",
    "Means of predictions and targets": "Rows in groups by their prediction. Points on the dotted "
    "diagonal mean that predictions are right on average; bars are 95% intervals of the mean "
    "target.",
}


def picture(
    title: str, text: str, draw: Callable[..., Any], end: str = "", heading: Any = None
) -> Html:
    """A figure of the page below its heading (default: the title), with a text for blind readers;
    below stands the title's caption with an end of its own."""
    style.require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    buffer = StringIO()
    # letters that matplotlib's own font lacks are drawn by the browser's
    with rc_context(PAGE_STYLE | {"svg.hashsalt": title}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        drawing = Figure(SIZE, layout="constrained")
        ax = drawing.subplots()
        draw(ax=ax)
        if legend := ax.get_legend():  # which would hide a part of so small a picture
            legend.remove()
        if n := len(ax.get_legend_handles_labels()[1]):
            drawing.set_size_inches(SIZE[0], SIZE[1] + n * ROW)
            drawing.legend(loc="outside lower left")
        drawing.savefig(buffer, format="svg", transparent=True)
    svg, caption = Html(_of_page(buffer.getvalue(), title, text)), CAPTIONS.get(title, "") + end
    return h("figure", h("h3", heading or title), svg, caption and h("figcaption", caption))


def _of_page(svg: str, title: str, text: str) -> str:
    """The picture as an element of the page, in the page's colours."""
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    files_own = r"<defs>\s*<style.*?</defs>|<clipPath.*?</clipPath>|<!--.*?-->"
    body = re.sub(files_own, "", svg[svg.index("<defs>") :], flags=re.S)
    body = re.sub(r' clip-path="[^"]*"|(?<=<g) id="[^"]*"|\n\s*', "", body)
    body = re.sub("|".join(VARIABLES), lambda colour: VARIABLES[colour[0]], body)
    words = f"<title>{escape(one_line(title))}</title><desc>{escape(one_line(text))}</desc>"
    return f'<svg viewBox="{box[1]}" role="img" class="plot">{words}{body}'


def compared(
    title: str, curves: list[Any], labels: tuple[str, str], looks: Sequence[str] = style.LINES,
    dashed: tuple[Any, Any] | None = None, end: str = "", **limits: Any,
) -> Html:  # fmt: skip
    """A picture of curves (name, x, y) or, where both ends of an interval of y are known, (name, x,
    y, low, high); and of a dashed line, x and y."""

    def draw(ax: Axes) -> None:
        if dashed is not None:
            ax.plot(*dashed, **DASHED)
        for _, x, _, *ends in curves:
            if ends:
                ax.vlines(x, *ends, color=style.INK, lw=1)
        style.add_lines(ax, [curve[:3] for curve in curves], looks)
        ax.set(xlabel=labels[0], ylabel=labels[1], **limits)

    names = "; ".join(key for key, *_ in curves).replace(r"\$", "$")
    return picture(title, names or "no curves", draw, end)


def class_curves(labels: Labels, proba: np.ndarray) -> list[Curve]:
    """Curves of the classes of most rows (of two: the second), each against all other classes.
    Classes with all rows or without rows have no curve."""
    counts = labels.counts[labels.known]
    order = np.argsort(-counts, kind="stable")[:MOST_CURVES]
    shown = [1] if len(labels.known) == 2 else np.sort(order)
    return [
        (labels.names[labels.known[k]], labels.codes == labels.known[k], proba[:, k])
        for k in shown
        if 0 < counts[k] < len(labels.codes)
    ]


def calibration(truth: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Of bins of probabilities of equal width those with rows, f64[5, b]: the mean probability,
    the share of rows of the class and its interval, and the number of rows."""
    bin = np.minimum((probability * PROBABILITIES).astype(np.int64), PROBABILITIES - 1)
    filled = np.unique(bin)
    columns = (None, probability, truth)
    n, sums, good = (np.bincount(bin, column, PROBABILITIES)[filled] for column in columns)
    ends = np.array([wilson(*pair) for pair in zip(good, n, strict=True)]).T
    return np.stack([sums / n, good / n, *ends, n])


def curve_pictures(curves: list[Curve]) -> list[Html]:
    """ROC, precision and recall, and calibration."""
    roc, precisions, calibrations = list[Any](), list[Any](), list[Any]()
    for label, *pair in curves:
        label, area = plain(label), metrics.roc_auc_score(*pair)
        roc.append((f"{label}: area {area:.3f}", *metrics.roc_curve(*pair)[:2]))
        precision, recall, _ = metrics.precision_recall_curve(*pair)
        mean = metrics.average_precision_score(*pair)
        precisions.append((f"{label}: average precision {mean:.3f}", recall, precision))
        *points, n = calibration(*pair)
        error = np.average(np.abs(points[0] - points[1]), weights=n)
        calibrations.append((f"{label}: {error:.3f} off on average", *points))
    base, wide = ", ".join(share(truth.mean()) for _, truth, _ in curves), (-0.02, 1.02)
    rates, said = ("false positive rate", "true positive rate"), ("recall", "precision")
    means, title = ("predicted probability", "share of the class"), "Precision and recall"
    return [
        compared("ROC curve", roc, rates, dashed=DIAGONAL, xlim=UNIT),
        compared(title, precisions, said, end=f"{base}.", xlim=UNIT, ylim=wide),
        compared("Calibration", calibrations, means, style.JOINED, DIAGONAL, xlim=wide),
    ]


def error_picture(curves: list[Any], x: str, y: str) -> Html | None:
    """Errors, or other measures, against the number of trees or rounds."""
    shown = []
    for key, n, errors in curves:
        finite = np.isfinite(errors)
        if finite.sum() > 1:
            said = f"{key}: {errors[finite][-1]:.4g} at the end"
            shown.append((said, n[finite], errors[finite]))
    if not shown:
        return None
    caption = (
        f"Where a line is level, more {x.removeprefix('number of ')} would change little. Errors "
        "are those of samples of the rows where there are more than 10,000 of them, so that they "
        "differ a little from the scores above."
    )
    return compared(f"{y[:1].upper()}{y[1:]} against {x}", shown, (x, y), end=caption)


def histogram_picture(
    title: str, values: np.ndarray, axes: tuple[str, str], end: str, threshold: float | None = None
) -> Html:
    """How often values occur; of few whole numbers, each by itself."""
    low, high = float(values.min()), float(values.max())
    if values.dtype.kind in "iu" and high - low <= BINS:
        edges = np.arange(low, high + 2) - 0.5
    else:
        pad = 0.0 if high > low else abs(low) / 2 or 0.5
        edges = np.linspace(low - pad, high + pad, BINS + 1)

    def draw(ax: Axes) -> None:
        ax.hist(values, edges.tolist(), color=style.PALETTE[0], histtype="stepfilled")
        ax.set(xlabel=axes[0], ylabel=axes[1], xlim=edges[[0, -1]])
        ax.locator_params(axis="y", integer=True)
        if threshold is not None and edges[0] <= threshold <= edges[-1]:
            ax.axvline(threshold, color=style.INK, lw=1, ls=":", label="threshold")

    said = f"from {figure(low)} to {figure(high)}, median {figure(float(np.median(values)))}"
    return picture(title, said, draw, end)


def dependence_picture(
    feature: Any, categories: tuple[Any, ...] | None,
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray], outputs: list[Any],
    scale: tuple[str, float, float],
) -> Html:  # fmt: skip
    """The mean prediction against a feature's values: a line, or a point for each category. The
    scale is what is shown, and the least and greatest of it in all pictures."""
    values, means, deciles = arrays
    y, low, high = scale
    pad = max(0.06 * (high - low), 1e-3 * max(abs(low), abs(high)))
    labels = [plain(o) for o in outputs] if len(outputs) > 1 else [""]

    def draw(ax: Axes) -> None:
        at, beside, looks = values, 0.0, style.LINES
        if categories is None:
            ax.set_xlabel(plain(feature, 30))
            inside = deciles[(deciles >= at[0]) & (deciles <= at[-1])]
            ax.plot(inside, np.zeros(len(inside)), "|", color=style.FAINT, ms=9,
                    transform=ax.get_xaxis_transform())  # fmt: skip
        else:
            at, beside, looks = np.arange(len(values)), 0.14, style.MARKS
            texts = [*map(str, categories), "(other)"]
            texts = [texts[int(value)] for value in values]
            words = [plain(text, 14) if text.strip() else "(empty)" for text in texts]
            ax.set_xticks(at, words, rotation=38, ha="right", rotation_mode="anchor")
        # points of several outputs stand beside one another, so that none hides another
        asides = beside * (np.arange(len(labels)) - (len(labels) - 1) / 2)
        shown = zip(labels, at + asides[:, None], means.T, strict=True)
        style.add_lines(ax, shown, looks)
        ax.set(ylabel=y, ylim=(low - pad, high + pad))

    said = f"from {scored(float(means.min()))} to {scored(float(means.max()))}"
    return picture(f"Dependence on {shortened(feature)}", said, draw, heading=name(feature))


def survival_pictures(model: Any, table: Any, y: np.ndarray, known: np.ndarray) -> list[Html]:
    """Curves of groups of risk, calibration and Brier scores; targets f64[N, 2]."""
    time, event, grid, n = y[:, 0], y[:, 1] > 0, model.unique_times_, len(y)
    said = np.asarray(model.predict_survival_function(table, return_array=True))
    first, last = np.quantile(time, [0.05, 0.95])
    times = np.linspace(first, last, BRIER_TIMES)
    of_all = at_times(*kaplan_meier(known[:, 1] > 0, known[:, 0]), times)[None]
    scores = {"the forest": brier_scores(known, y, at_times(grid, said, times), times)}
    scores["Kaplan-Meier of all rows"] = brier_scores(known, y, of_all, times)
    means = {key: (b[1:] + b[:-1]).mean() / 2 for key, b in scores.items()}
    briers = [(f"{key}: mean {means[key]:.4f}", times, score) for key, score in scores.items()]
    quarters = np.quantile(time[event], [0.25, 0.5, 0.75]) if event.any() else np.zeros(0)
    target = np.rec.fromarrays([y[:, 1].astype(int), time], dtype=[("event", int), ("time", float)])

    calibrated = []
    for t, p in zip(quarters, at_times(grid, said, quarters).T, strict=True):
        parts = np.array_split(np.argsort(p, kind="stable"), max(1, min(5, n // 20)))
        seen = [at_times(*kaplan_meier(event[part], time[part]), t) for part in parts]
        calibrated.append((f"time {figure(t)}", [p[part].mean() for part in parts], seen))
    by_groups = partial(plot_survival, model, table, target, min(3, n))
    axes = ("mean predicted survival", KAPLAN_MEIER)
    return [
        picture("Survival by groups of risk", f"{n:,} rows", by_groups),
        compared("Calibration of survival", calibrated, axes, style.MARKS, DIAGONAL),
        compared("Brier score over time", briers, ("time", "Brier score"), ylim=(0, None)),
    ]


def bands(y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Of rows in the order of their predictions, in bands of as many rows, f64[4, b]: the mean
    prediction, the mean target, and an interval of it by its standard error."""
    order = np.argsort(predicted, kind="stable")
    parts = np.array_split(order, max(1, min(BANDS, len(y) // 5)))
    mean = np.array([[predicted[p].mean(), y[p].mean()] for p in parts]).T
    unit = float(np.abs(y).max()) or 1.0  # so that no square is too large or too small
    error = unit * np.array([(y[p] / unit).std() / np.sqrt(len(p)) for p in parts])
    return np.stack([*mean, mean[1] - 1.96 * error, mean[1] + 1.96 * error])


def residual_pictures(y: np.ndarray, predicted: np.ndarray) -> list[Html]:
    """Residuals against predictions, their histogram, and means of bands."""
    n, residuals = len(y), y - predicted
    rows = np.arange(n) if n <= MOST_RESIDUALS else draw_rows(SEED, n, MOST_RESIDUALS)
    mean, truth, low, high = bands(y, predicted)
    ends = float(min(mean.min(), low.min())), float(max(mean.max(), high.max()))
    q5, q25, q75, q95 = map(figure, np.quantile(residuals, [0.05, 0.25, 0.75, 0.95]))

    half = f"half of all residuals lie between {q25} and {q75}"
    points = [(half, predicted[rows], residuals[rows])]
    groups = [(f"{len(mean)} groups of rows", mean, truth, low, high)]
    level, shown = ([predicted.min(), predicted.max()], [0.0, 0.0]), f"{len(rows):,} of {n:,}."
    means, title = ("mean prediction", "mean target"), "Means of predictions and targets"
    return [
        compared("Residuals against predictions", points, ("prediction", SIZES), ".", level, shown),
        histogram_picture("Sizes of residuals", residuals, (SIZES, "rows"), f"{q5} and {q95}."),
        compared(title, groups, means, style.MARKS, (ends, ends)),
    ]
