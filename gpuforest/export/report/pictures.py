"""The pictures of a report, each with a caption that says what to see in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuforest.export.report.charts import Axis, Plot, legend
from gpuforest.export.report.html import Html, figure, h, name, picture, scored, share, shortened
from gpuforest.inspection.report.classes import Curve
from gpuforest.inspection.report.effects import Dependence
from gpuforest.inspection.report.numbers import NumberResults

UNIT = (0.0, 1.0)
BINS = 24  # of a histogram


def curve_pictures(curves: list[Curve]) -> list[Html]:
    """ROC, precision and recall, and calibration."""
    names = [each.name for each in curves]
    said = "; ".join(f"{shortened(c.name, 30)}: area {c.auc:.3f}" for c in curves)
    roc = Plot("ROC curves", said, _unit("false positive rate"), _unit("true positive rate"))
    roc.line(UNIT, UNIT, style="rule")
    said = "; ".join(f"{shortened(c.name, 30)}: {c.average_precision:.3f}" for c in curves)
    precision = Plot("Precision and recall", said, _unit("recall"), _unit("precision"))
    said = "; ".join(_calibration_words(c) for c in curves)
    right = Plot("Calibration", said, _unit("predicted probability"), _unit("share of the class"))
    right.line(UNIT, UNIT, style="rule")
    for i, curve in enumerate(curves):
        roc.line(curve.roc[0], curve.roc[1], i)
        precision.line(curve.precision[0], curve.precision[1], i)
        mean, part, low, high, _ = curve.calibration
        right.whiskers(mean, low, high, i).line(mean, part, i).points(mean, part, i)
    of = _legend(names, [f"area {c.auc:.3f}" for c in curves])
    base = ", ".join(share(c.positive / c.n) for c in curves)
    return [
        picture(
            "ROC curve",
            roc.svg(),
            "The share of the class that is found (up) against the share of the others that is "
            "taken for it (right), at each threshold of the probability. A curve near the upper "
            "left corner is good; the dotted line is chance.",
            of,
        ),
        picture(
            "Precision and recall",
            precision.svg(),
            "How many of the rows that are taken for the class are of it (up), against the share "
            f"of the class that is found (right). Chance would be a level line at {base}.",
            _legend(names, [f"average precision {c.average_precision:.3f}" for c in curves]),
        ),
        picture(
            "Calibration",
            right.svg(),
            "Points on the dotted diagonal mean that predicted probabilities are right: of rows "
            "with a probability near 0.8, 80% are of the class. Bars are Wilson's 95% "
            "intervals; below the diagonal, probabilities are too high.",
            legend(names, points=True),
        ),
    ]


def _unit(label: str) -> Axis:
    """An axis from 0 to 1."""
    return Axis(label, *UNIT)


def _calibration_words(curve: Curve) -> str:
    mean, part, *_, n = curve.calibration
    gap = float((np.abs(mean - part) * n).sum() / n.sum())
    return f"{shortened(curve.name, 30)}: on average {gap:.3f} from the diagonal"


def _legend(names: Sequence[Any], words: Sequence[str]) -> Html:
    return legend([h("span", name(n, 40), f": {w}") for n, w in zip(names, words, strict=True)])


def error_picture(curves: dict[str, tuple[np.ndarray, np.ndarray]], x: str, y: str) -> Html | None:
    """Errors, or other measures, against the number of trees or rounds."""
    known = {
        key: (n[np.isfinite(e)], e[np.isfinite(e)])
        for key, (n, e) in curves.items()
        if np.isfinite(e).sum() > 1
    }
    if not known:
        return None
    every = np.concatenate([e for _, e in known.values()])
    most = max(n.max() for n, _ in known.values())
    least = min(n.min() for n, _ in known.values())
    pad = 0.06 * np.ptp(every)
    said = "; ".join(f"{key}: {e[-1]:.4g} with all" for key, (_, e) in known.items())
    ends = float(every.min() - pad), float(every.max() + pad)
    plot = Plot(f"{y} against {x}", said, Axis(x, float(least), float(most)), Axis(y, *ends))
    for i, (n, e) in enumerate(known.values()):
        plot.line(n, e, i)
    return picture(
        f"{y[:1].upper()}{y[1:]} against {x}",
        plot.svg(),
        f"Where a line is level, more {x.removeprefix('number of ')} would change little. Errors "
        "are those of samples of the rows where there are more than 10,000 of them, so that they "
        "differ a little from the scores above.",
        _legend(list(known), [f"{e[-1]:.4g} at the end" for _, e in known.values()]),
    )


def histogram_picture(
    title: str,
    values: np.ndarray,
    labels: tuple[str, str],
    caption: str,
    rule: tuple[float, str] | None = None,
) -> Html:
    """How often values occur; of few whole numbers, each by itself."""
    whole = values.dtype.kind in "iu" and np.ptp(values) <= BINS
    if whole:
        edges = np.arange(values.min(), values.max() + 2) - 0.5
    else:
        low, high = float(values.min()), float(values.max())
        pad = 0.0 if high > low else abs(low) / 2 or 0.5
        edges = np.linspace(low - pad, high + pad, BINS + 1)
    counts = np.histogram(values, edges)[0]
    said = f"from {figure(float(values.min()))} to {figure(float(values.max()))}, "
    said += f"median {figure(float(np.median(values)))}"
    ends = (float(edges[0]), float(edges[-1]))
    plot = Plot(title, said, Axis(labels[0], *ends), Axis(labels[1], 0, counts.max(), whole=True))
    plot.bars(edges[:-1], edges[1:], counts)
    if rule is not None and ends[0] <= rule[0] <= ends[1]:
        plot.rule(x=rule[0], text=rule[1])
    return picture(title, plot.svg(), caption)


def dependence_picture(
    found: Dependence,
    feature: Any,
    categories: tuple[Any, ...] | None,
    outputs: list[Any],
    scale: tuple[str, float, float],
) -> Html:
    """The mean prediction against a feature's values: a line, or a point for each category.

    outputs : the names of those whose numbers K of `found` are shown, [K]; one has no legend
    scale : what is shown, and the least and greatest of it in all pictures
    """
    y, low, high = scale
    pad = max(0.06 * (high - low), 1e-3 * max(abs(low), abs(high)))
    ends = low - pad, high + pad
    if y == "mean probability":
        ends = max(0.0, ends[0]), min(1.0, ends[1])
    said = f"from {scored(float(found.means.min()))} to {scored(float(found.means.max()))}"
    few, title = found.shares is not None, f"Dependence on {shortened(feature)}"
    if found.shares is not None:
        assert categories is not None
        words = [
            "(other)" if v >= len(categories) else str(categories[int(v)]) for v in found.values
        ]
        at, n = np.arange(len(words)), len(words)
        plot = Plot(title, said, Axis("", -0.6, n - 0.4, words), Axis(y, *ends))
    else:
        at, span = found.values, (float(found.values[0]), float(found.values[-1]))
        plot = Plot(title, said, Axis(shortened(feature, 30), *span), Axis(y, *ends))
        inside = (found.deciles >= span[0]) & (found.deciles <= span[1])
        plot.rug(found.deciles[inside])
    for k in range(found.means.shape[1]):
        if few:
            beside = 0.14 * (k - (found.means.shape[1] - 1) / 2)
            plot.points(at + beside, found.means[:, k], k)
        else:
            plot.line(at, found.means[:, k], k)
    return picture(
        name(feature), plot.svg(), None, legend(outputs, points=few) if len(outputs) > 1 else None
    )


def residual_pictures(found: NumberResults) -> list[Html]:
    """Residuals against predictions, their histogram, and means of bands."""
    predicted, residual = found.points
    spread = float(np.abs(residual).max()) or 1.0
    q = found.quantiles
    said = f"half of all residuals lie between {figure(q[2])} and {figure(q[4])}"
    ends = (-spread, spread)
    span = float(predicted.min()), float(predicted.max())
    scatter = Plot("Residuals", said, Axis("prediction", *span), Axis("target - prediction", *ends))
    scatter.points(predicted, residual, small=True).rule(y=0.0)
    mean, truth, low, high = found.bands
    both = float(min(mean.min(), low.min())), float(max(mean.max(), high.max()))
    said = f"{len(mean)} groups of rows in the order of their predictions"
    bands = Plot(
        "Means of groups", said, Axis("mean prediction", *both), Axis("mean target", *both)
    )
    bands.line(both, both, style="rule").whiskers(mean, low, high).points(mean, truth)
    middle = (q[1], q[5])
    inner = found.residuals[(found.residuals >= q[0]) & (found.residuals <= q[6])]
    return [
        picture(
            "Residuals against predictions",
            h("div", scatter.svg(), class_="dense"),
            f"Each point is a row ({len(predicted):,} of {len(found.residuals):,}). Points should "
            "lie around the dotted line at any prediction; a bow or a funnel means that the model "
            "errs in some range more than elsewhere.",
        ),
        histogram_picture(
            "Sizes of residuals",
            inner,
            ("target - prediction", "rows"),
            f"Nine of ten residuals lie between {figure(middle[0])} and {figure(middle[1])}.",
        ),
        picture(
            "Means of predictions and targets",
            bands.svg(),
            "Rows in groups by their prediction. Points on the dotted diagonal mean that "
            "predictions are right on average; bars are 95% intervals of the mean target.",
        ),
    ]
