"""The pictures of a report, drawn by matplotlib as SVG in the page's own colours, each with a
caption that says what to see in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from html import escape
from io import StringIO
from typing import Any

import numpy as np
from sklearn import metrics

from gpuforest.backends.rows import draw_rows
from gpuforest.common.text import one_line
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import STYLE, Axes, plain, require_matplotlib
from gpuforest.tools.plot.survival import at_times, kaplan_meier, plot_survival
from gpuforest.tools.report.html import Html, figure, h, name, scored, share, shortened
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
Curve = tuple[Any, np.ndarray, np.ndarray]  # a class, whether rows are of it, its probabilities
UNIT = (0.0, 1.0)
# colours that the page's style sheet replaces, in dark mode too
VARIABLES = {
    "#1c2126": "var(--ink)", "#56606b": "var(--soft)", "#d5dbe1": "var(--rule)",
    "#0b62b0": "var(--c0)", "#b45309": "var(--c1)", "#0a7358": "var(--c2)", "#9c3d86": "var(--c3)",
}  # fmt: skip
INK, SOFT, RULE, *SERIES = VARIABLES
# of the series, which differ without colour too
LINES: list[dict[str, Any]] = [
    {"color": c, "ls": line} for c, line in zip(SERIES, ("-", "--", ":", "-."), strict=True)
]
POINTS: list[dict[str, Any]] = [
    {"color": c, "ls": "", "marker": m} for c, m in zip(SERIES, "os^D", strict=True)
]
DASHED: dict[str, Any] = {"color": SOFT, "lw": 1, "ls": (0, (2, 4)), "zorder": 0}
PAGE_STYLE: Any = STYLE | {
    "svg.fonttype": "none",
    "path.simplify_threshold": 1.0,  # points that a curve needs, of all that it has
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.formatter.limits": (-4, 6),
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "grid.color": RULE,
    "lines.markersize": 4,
    "lines.linewidth": 1.8,
}


def picture(
    title: str, text: str, draw: Callable[[Axes], Any], caption: Any = None, heading: Any = None
) -> Html:
    """A figure of the page, with a text for blind readers; the heading, which stands above, is the
    title unless it is given."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    buffer = StringIO()
    # letters that matplotlib's own font lacks are drawn by the browser's
    with rc_context(PAGE_STYLE | {"svg.hashsalt": title}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        drawing = Figure(SIZE, layout="constrained")
        ax = drawing.subplots()
        draw(ax)
        if n := len(ax.get_legend_handles_labels()[1]):
            drawing.set_size_inches(SIZE[0], SIZE[1] + n * ROW)
            drawing.legend(loc="outside lower left")
        drawing.savefig(buffer, format="svg", transparent=True)
    svg = Html(_of_page(buffer.getvalue(), title, text))
    return h("figure", h("h3", heading or title), svg, caption and h("figcaption", caption))


def _of_page(svg: str, title: str, text: str) -> str:
    """The picture as an element of the page: with the page's colours, and without what a file of
    its own has."""
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    body = svg[svg.index("<defs>") :]
    body = re.sub(
        r"<defs>\s*<style.*?</defs>|<clipPath.*?</clipPath>|<!--.*?-->", "", body, flags=re.S
    )
    body = re.sub(r' clip-path="[^"]*"|(?<=<g) id="[^"]*"|\n\s*', "", body)
    body = re.sub("|".join(VARIABLES), lambda colour: VARIABLES[colour[0]], body)
    words = f"<title>{escape(one_line(title))}</title><desc>{escape(one_line(text))}</desc>"
    return f'<svg viewBox="{box[1]}" role="img" class="plot">{words}{body}'


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
    labels = [plain(label) for label, *_ in curves]
    areas = [metrics.roc_auc_score(*pair) for _, *pair in curves]
    precisions = [metrics.average_precision_score(*pair) for _, *pair in curves]
    calibrations = [calibration(*pair) for _, *pair in curves]
    errors = [np.average(np.abs(c[0] - c[1]), weights=c[4]) for c in calibrations]

    def roc(ax: Axes) -> None:
        for (_, *pair), label, area, line in zip(curves, labels, areas, LINES, strict=False):
            ax.plot(*metrics.roc_curve(*pair)[:2], **line, label=f"{label}: area {area:.3f}")
        ax.plot(UNIT, UNIT, **DASHED)
        ax.set(xlabel="false positive rate", ylabel="true positive rate", xlim=UNIT)

    def precision(ax: Axes) -> None:
        for (_, *pair), label, mean, line in zip(curves, labels, precisions, LINES, strict=False):
            precision, recall, _ = metrics.precision_recall_curve(*pair)
            ax.plot(recall, precision, **line, label=f"{label}: average precision {mean:.3f}")
        ax.set(xlabel="recall", ylabel="precision", xlim=UNIT, ylim=(-0.02, 1.02))

    def probabilities(ax: Axes) -> None:
        for points, label, line, point in zip(calibrations, labels, LINES, POINTS, strict=False):
            mean, part, low, high, _ = points
            ax.vlines(mean, low, high, color=INK, lw=1)
            ax.plot(mean, part, **point | line, label=label)
        ax.plot(UNIT, UNIT, **DASHED)
        ax.set(xlabel="predicted probability", ylabel="share of the class", xlim=(-0.02, 1.02))

    def words(form: str, values: list[Any]) -> str:
        names = (shortened(label, 30) for label, *_ in curves)
        return "; ".join(f"{n}: {form.format(v)}" for n, v in zip(names, values, strict=True))

    base = ", ".join(share(truth.mean()) for _, truth, _ in curves)
    return [
        picture(
            "ROC curve",
            words("area {:.3f}", areas),
            roc,
            "The share of the class that is found (up) against the share of the others that is "
            "taken for it (right), at each threshold of the probability. A curve near the upper "
            "left corner is good; the dotted line is chance.",
        ),
        picture(
            "Precision and recall",
            words("{:.3f}", precisions),
            precision,
            "How many of the rows that are taken for the class are of it (up), against the share "
            f"of the class that is found (right). Chance would be a level line at {base}.",
        ),
        picture(
            "Calibration",
            words("on average {:.3f} from the diagonal", errors),
            probabilities,
            "Points on the dotted diagonal mean that predicted probabilities are right: of rows "
            "with a probability near 0.8, 80% are of the class. Bars are Wilson's 95% "
            "intervals; below the diagonal, probabilities are too high.",
        ),
    ]


def error_picture(curves: dict[str, tuple[np.ndarray, np.ndarray]], x: str, y: str) -> Html | None:
    """Errors, or other measures, against the number of trees or rounds."""
    finite = {
        key: (n[np.isfinite(errors)], errors[np.isfinite(errors)])
        for key, (n, errors) in curves.items()
        if np.isfinite(errors).sum() > 1
    }
    if not finite:
        return None

    def draw(ax: Axes) -> None:
        for (key, (n, errors)), line in zip(finite.items(), LINES, strict=False):
            ax.plot(n, errors, **line, label=f"{key}: {errors[-1]:.4g} at the end")
        ax.set(xlabel=x, ylabel=y)

    return picture(
        f"{y[:1].upper()}{y[1:]} against {x}",
        "; ".join(f"{key}: {errors[-1]:.4g} with all" for key, (_, errors) in finite.items()),
        draw,
        f"Where a line is level, more {x.removeprefix('number of ')} would change little. Errors "
        "are those of samples of the rows where there are more than 10,000 of them, so that they "
        "differ a little from the scores above.",
    )


def histogram_picture(
    title: str, values: np.ndarray, labels: tuple[str, str], caption: str,
    threshold: float | None = None,
) -> Html:  # fmt: skip
    """How often values occur; of few whole numbers, each by itself."""
    if values.dtype.kind in "iu" and np.ptp(values) <= BINS:
        edges = np.arange(values.min(), values.max() + 2) - 0.5
    else:
        low, high = float(values.min()), float(values.max())
        pad = 0.0 if high > low else abs(low) / 2 or 0.5
        edges = np.linspace(low - pad, high + pad, BINS + 1)
    counts = np.histogram(values, edges)[0]

    def draw(ax: Axes) -> None:
        ax.stairs(counts, edges, fill=True, color=SERIES[0])
        ax.set(xlabel=labels[0], ylabel=labels[1], xlim=edges[[0, -1]])
        ax.locator_params(axis="y", integer=True)
        if threshold is not None and edges[0] <= threshold <= edges[-1]:
            ax.axvline(threshold, color=INK, lw=1, ls=":", label="threshold")

    middle, ends = np.median(values), (float(values.min()), float(values.max()))
    said = f"from {figure(ends[0])} to {figure(ends[1])}, median {figure(float(middle))}"
    return picture(title, said, draw, caption)


def dependence_picture(
    feature: Any,
    categories: tuple[Any, ...] | None,
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray],
    outputs: list[Any],
    scale: tuple[str, float, float],
) -> Html:
    """The mean prediction against a feature's values: a line, or a point for each category. The
    scale is what is shown, and the least and greatest of it in all pictures."""
    values, means, deciles = arrays
    y, low, high = scale
    pad = max(0.06 * (high - low), 1e-3 * max(abs(low), abs(high)))
    labels = [plain(o) for o in outputs] if len(outputs) > 1 else [None] * means.shape[1]

    def draw(ax: Axes) -> None:
        at, beside, marks = values, 0.0, LINES
        if categories is None:
            ax.set_xlabel(plain(feature, 30))
            inside = deciles[(deciles >= at[0]) & (deciles <= at[-1])]
            ax.plot(inside, np.zeros(len(inside)), "|", color=SOFT, ms=9,
                    transform=ax.get_xaxis_transform())  # fmt: skip
        else:
            at, beside, marks = np.arange(len(values)), 0.14, POINTS
            texts = [*map(str, categories), "(other)"]
            shown = [texts[int(value)] for value in values]
            words = [plain(text, 14) if text.strip() else "(empty)" for text in shown]
            ax.set_xticks(at, words, rotation=38, ha="right", rotation_mode="anchor")
        for k, (column, label) in enumerate(zip(means.T, labels, strict=True)):
            aside = beside * (k - (len(labels) - 1) / 2)  # so that points do not hide one another
            ax.plot(at + aside, column, **marks[k], label=label)
        ax.set(ylabel=y, ylim=(low - pad, high + pad))

    said = f"from {scored(float(means.min()))} to {scored(float(means.max()))}"
    return picture(f"Dependence on {shortened(feature)}", said, draw, heading=name(feature))


def survival_pictures(model: Any, table: Any, y: np.ndarray, known: np.ndarray) -> list[Html]:
    """Curves of groups of risk, calibration and Brier scores, of rows, their targets f64[N, 2] and
    those of the training."""
    time, event, grid, n = y[:, 0], y[:, 1] > 0, model.unique_times_, len(y)
    said = np.asarray(model.predict_survival_function(table, return_array=True))
    first, last = np.quantile(time, [0.05, 0.95])
    times = np.linspace(first, last, BRIER_TIMES)
    of_all = at_times(*kaplan_meier(known[:, 1] > 0, known[:, 0]), times)[None]
    briers = {"the forest": brier_scores(known, y, at_times(grid, said, times), times)}
    briers["Kaplan-Meier of all rows"] = brier_scores(known, y, of_all, times)
    labels = [f"{k}: mean {(b[1:] + b[:-1]).mean() / 2:.4f}" for k, b in briers.items()]
    quarters = np.quantile(time[event], [0.25, 0.5, 0.75]) if event.any() else np.zeros(0)
    colours = dict(zip((*style.PALETTE[:3], style.INK), (*SERIES[:3], INK), strict=True))
    target = np.rec.fromarrays([y[:, 1].astype(int), time], dtype=[("event", int), ("time", float)])

    def curves(ax: Any) -> None:
        plot_survival(model, table, target, min(3, n), ax=ax)
        ax.get_legend().remove()
        for line in ax.lines:
            line.set_color(colours[line.get_color()])

    def calibrated(ax: Axes) -> None:
        ax.plot(UNIT, UNIT, **DASHED)
        for t, p, look in zip(quarters, at_times(grid, said, quarters).T, POINTS, strict=False):
            parts = np.array_split(np.argsort(p, kind="stable"), max(1, min(5, n // 20)))
            seen = [at_times(*kaplan_meier(event[part], time[part]), t) for part in parts]
            ax.plot([p[part].mean() for part in parts], seen, **look, label=f"time {figure(t)}")
        ax.set(xlabel="mean predicted survival", ylabel="survival (Kaplan-Meier)")

    def brier(ax: Axes) -> None:
        for values, label, line in zip(briers.values(), labels, LINES, strict=False):
            ax.plot(times, values, **line, label=label)
        ax.set(xlabel="time", ylabel="Brier score", ylim=(0, None))

    shown = {
        "Survival by groups of risk": "Rows in groups by their predicted risk. Where the dashed "
        "line of a group follows its solid line, the forest's probabilities can be believed. Marks "
        "are censored rows.",
        "Calibration of survival": "At the quartiles of the times of events, rows in groups by "
        "their predicted survival. Points on the dotted diagonal mean that predictions are right.",
        "Brier score over time": "Less is better. The forest should lie below the Kaplan-Meier "
        "estimate of all training rows. Rows weigh more where others were censored.",
    }
    words = f"{n:,} rows", f"times {', '.join(map(figure, quarters))}", "; ".join(labels)
    draws = zip(shown.items(), words, (curves, calibrated, brier), strict=True)
    return [picture(title, said, draw, text) for (title, text), said, draw in draws]


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

    def scatter(ax: Axes) -> None:
        look: dict[str, Any] = {"ms": 2.5, "mew": 0, "alpha": 0.55}
        ax.plot(predicted[rows], residuals[rows], "o", color=SERIES[0], **look)
        ax.axhline(0.0, **DASHED)
        ax.set(xlabel="prediction", ylabel="target - prediction")

    def means(ax: Axes) -> None:
        ax.plot(ends, ends, **DASHED)
        ax.vlines(mean, low, high, color=INK, lw=1)
        ax.plot(mean, truth, **POINTS[0])
        ax.set(xlabel="mean prediction", ylabel="mean target")

    return [
        picture(
            "Residuals against predictions",
            f"half of all residuals lie between {q25} and {q75}",
            scatter,
            f"Each point is a row ({len(rows):,} of {n:,}). Points "
            "should lie around the dotted line at any prediction; a bow or a funnel means that the "
            "model errs in some range more than elsewhere.",
        ),
        histogram_picture(
            "Sizes of residuals",
            residuals,
            ("target - prediction", "rows"),
            f"Nine of ten residuals lie between {q5} and {q95}.",
        ),
        picture(
            "Means of predictions and targets",
            f"{len(mean)} groups of rows in the order of their predictions",
            means,
            "Rows in groups by their prediction. Points on the dotted diagonal mean that "
            "predictions are right on average; bars are 95% intervals of the mean target.",
        ),
    ]
