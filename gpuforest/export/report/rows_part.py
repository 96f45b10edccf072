"""The part of a report about rows that were given: how well they are predicted, and how they
differ from those of the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from gpuforest.export.report.html import (
    Html,
    figure,
    figures,
    h,
    interval,
    joined,
    name,
    scored,
    section,
    share,
    table,
)
from gpuforest.export.report.pictures import (
    curve_pictures,
    dependence_picture,
    histogram_picture,
    residual_pictures,
)
from gpuforest.inspection.model_facts import feature_names
from gpuforest.inspection.report.classes import MOST_CURVES, ClassResults
from gpuforest.inspection.report.intervals import Score, n_samples, wilson
from gpuforest.inspection.report.results import Results

MOST_CELLS = 30  # classes of a confusion matrix
MOST_PAIRS, MOST_CLASSES, MOST_DRIFTING = 10, 40, 20


def score_section(found: Results) -> Html | None:
    """Scores with their intervals, and how these were made."""
    if not is_classifier(found.estimator) and not is_regressor(found.estimator):
        return None
    scores = [*([found.oob] if found.oob is not None else []), *found.scores]
    if not scores:
        text = "There are none: the model keeps none, and no rows with targets were given."
        return section("scores", "Scores", h("p", text))
    parts: list[Html] = []
    if found.oob is not None:
        text = (
            "Out of bag: each training row is predicted by the trees that did not draw it, which "
            "estimates the score for new rows of the same origin without a test set."
        )
        if found.oob.low is None:
            text += " There is no interval of it: that needs facts of the training not kept."
        parts.append(h("p", text))
    header = ["score", "value", "95% interval"]
    told = table(header, map(_score_row, scores), numbers=(1, 2), class_="wide")
    if (quantiles := getattr(found.estimator, "default_quantiles", None)) is not None:
        which = "medians" if np.ndim(quantiles) else f"quantiles {quantiles:g}"
        parts.append(h("p", f"The model predicts quantiles; these are results of its {which}."))
    if not found.scores:
        return section("scores", "Scores", *parts, told)
    assert found.rows is not None
    n = found.rows.n
    others = "The other scores" if found.oob is not None else "The scores"
    parts.append(h("p", f"{others} are those of the {n:,} rows given."))
    text = (
        "Intervals hold the score of other rows of the same origin in about 95 of 100 cases. "
        + "Wilson: from the number of right rows. " * any(s.how == "Wilson" for s in scores)
        + f"Bootstrap: the middle 95% of {n_samples(n)} samples of the rows with replacement, "
        "drawn by a hash, so that the same rows give the same interval."
    )
    return section("scores", "Scores", *parts, told, h("p", text, class_="note"))


def _score_row(score: Score) -> list[Any]:
    less, how = h("small", "less is better"), h("small", f"by {score.how}")
    title = joined([score.name, less]) if score.less else score.name
    return [title, _value(score), joined([interval(score), how]) if score.how else "–"]


def _value(score: Score) -> str:
    return scored(score.value) if abs(score.value) < 10 else figure(score.value)


def result_sections(found: Results) -> list[Html]:
    """What the scores are made of."""
    if found.classes is not None:
        return class_sections(found.classes)
    if found.numbers is not None:
        pictures = figures(*residual_pictures(found.numbers))
        return [section("residuals", "Residuals", pictures)]
    if found.outputs:
        return [_outputs(found)]
    if found.anomalies is not None:
        return [anomaly_section(found.anomalies, found.estimator.offset_)]
    return []


def _outputs(found: Results) -> Html:
    """Scores of several outputs, a line for each."""
    header = ["output", *(score.name for score in found.outputs[0])]
    lines = []
    for i, scores in enumerate(found.outputs):
        ends = [h("small", interval(s)) if interval(s) else None for s in scores]
        values = [joined([_value(s), e]) for s, e in zip(scores, ends, strict=True)]
        lines.append([str(i), *values])
    text = (
        f"The model has {len(lines):,} outputs, each a line here. Confusions, curves, residuals "
        "and partial dependence are shown only of models of one output. Below a score stands its "
        "95% interval."
    )
    told = table(header, lines, numbers=range(1, len(header)), class_="wide")
    return section("outputs", "Outputs", h("p", text), told)


def class_sections(found: ClassResults) -> list[Html]:
    """Confusions, and curves."""
    parts = [section("confusions", "Confusions", *_confusion(found))]
    if found.curves:
        more = len(found.labels.known) > len(found.curves) + 1
        note = [h("p", f"Those of the {MOST_CURVES} classes of most rows.")] * more
        curves = figures(*curve_pictures(found.curves))
        parts.append(section("curves", "Curves", *note, curves))
    return parts


def _confusion(found: ClassResults) -> list[Html]:
    names, counts = found.labels.names, found.confusion
    per_class = _class_table(found)
    if len(names) > MOST_CELLS:
        text = f"{len(names):,} classes are too many for a matrix; these are mistaken most often."
        return [h("p", text), _pairs(found), per_class]
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = []
    for i, row in enumerate(counts):
        cells = []
        for j, count in enumerate(row):
            part = float(count / total[i, 0])
            said = [f"{count:,}", h("small", share(part))] if count else ["0"]
            cells.append((said, part, i == j))
        rows.append([h("th", name(names[i], 40), scope="row"), *(_cell(*c) for c in cells)])
    head = h(
        "tr",
        h("th", "true ↓ predicted →", scope="col"),
        *(h("th", name(n, 24), scope="col", class_="n") for n in names),
    )
    whole = h(
        "table", h("thead", head), h("tbody", *(h("tr", *r) for r in rows)), class_="confusion"
    )
    text = (
        "Each line is a true class, and each column a predicted one; shares are of the line. "
        "Framed cells are right; the deeper its colour, the more of its line a cell holds."
    )
    parts = [h("p", text), h("div", whole, class_="box", tabindex="0"), per_class]
    return [*parts, _pairs(found)] if len(names) > 3 else parts


def _cell(said: list[Any], part: float, right: bool) -> Html:
    style = f"--v:{part:.2f}"
    return h("td", *said, class_="n right" if right else "n", style=style)


def _class_table(found: ClassResults) -> Html:
    """Precision and recall of each class."""
    counts, names = found.confusion, found.labels.names
    total, taken, right = counts.sum(axis=1), counts.sum(axis=0), counts.diagonal()
    order = np.argsort(-total, kind="stable")[:MOST_CLASSES]
    rows = []
    for k in order:
        recall, precision = "–", "–"
        ends = None
        if total[k]:
            low, high = wilson(int(right[k]), int(total[k]))
            recall, ends = scored(right[k] / total[k]), h("small", f"{low:.3f} to {high:.3f}")
        if taken[k]:
            precision = scored(right[k] / taken[k])
        rows.append([name(names[k]), f"{total[k]:,}", joined([recall, ends]), precision])
    header = ["class", "rows", "recall", "precision"]
    title = h("h3", "Each class")
    text = (
        "Recall: the share of the class's rows that are found. Precision: the share of the rows "
        "taken for the class that are of it. Below a recall stands Wilson's 95% interval."
    )
    more = len(names) - len(order)
    rest = [h("p", f"{more:,} classes of fewer rows are left out.", class_="note")] if more else []
    shown = table(header, rows, numbers=(1, 2, 3), class_="wide")
    return h("div", title, h("p", text), shown, *rest)


def _pairs(found: ClassResults) -> Html:
    """The most frequent errors."""
    names, wrong = found.labels.names, found.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    total = found.confusion.sum(axis=1)
    rows = [
        [name(names[i]), name(names[j]), f"{wrong[i, j]:,}", share(wrong[i, j] / total[i])]
        for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True)
        if wrong[i, j]
    ]
    if not rows:
        return h("p", "No row is predicted wrong.")
    header = ["true class", "predicted as", "rows", "share of the class"]
    shown = table(header, rows, numbers=(2, 3), class_="wide")
    return h("div", h("h3", "The most frequent errors"), shown)


def dependence_section(results: Results) -> Html | None:
    """What predictions are on average at each value of the features of most importance."""
    found, estimator = results.dependences, results.estimator
    if not found:
        return None
    names, kinds = feature_names(estimator), estimator.forest_.edges.categories
    keep, outputs, y = [0], [], "mean prediction"
    what: list[Any] = ["the mean prediction"]
    if is_classifier(estimator):
        keep, y = _classes_shown(found[0].means), "mean probability"
        outputs = [estimator.classes_[k] for k in keep]
        what = ["the mean probability of the classes that are most probable on average"]
        if len(keep) == 1:
            what = ["the mean probability of ", name(outputs[0], 40)]
    every = np.concatenate([each.means[:, keep].ravel() for each in found])
    scale = y, float(every.min()), float(every.max())
    pictures = [
        dependence_picture(
            replace(each, means=each.means[:, keep]),
            names[each.feature],
            kinds.get(each.feature),
            outputs,
            scale,
        )
        for each in found
    ]
    text = (
        f" of {found[0].n_rows:,} of the rows given, if all of them had this value of "
        "the feature. All pictures have the same scale, so the steepest lines matter most. Ticks "
        "on the axis are the deciles of the feature: where they lie apart, few rows support the "
        "line. Effects of features that depend on one another are mixed."
    )
    intro = h("p", "Up: ", *what, text)
    return section("dependence", "Partial dependence", intro, figures(*pictures))


def _classes_shown(means: np.ndarray) -> list[int]:
    """The classes whose probabilities f64[g, C] are drawn: of two, the second."""
    if means.shape[1] == 2:
        return [1]
    most = np.argsort(-means.mean(axis=0), kind="stable")[:MOST_CURVES]
    return sorted(most.tolist())


def drift_section(results: Results) -> Html | None:
    """How the rows differ from what the model learned."""
    found = results.drift
    if found is None:
        return None
    names, order = feature_names(results.estimator), np.argsort(-found.worst, kind="stable")
    some = [f for f in order if found.worst[f] > 0 or found.missing[f] > 0][:MOST_DRIFTING]
    text = (
        "How the rows given differ from those of the training. Beyond the bins: numbers that lie "
        "further out than the outermost bins of the training data are wide. Unknown: categories "
        "that training did not see, or that were too rare to be learned. The model does not keep "
        "how many values were missing in training."
    )
    if not some:
        told = h("p", "No value is missing, beyond the bins, or of an unknown category.")
        return section("data", "Data", told)
    rows = [
        [name(names[f]), share(found.beyond[f]), share(found.unknown[f]), share(found.missing[f])]
        for f in some
    ]
    header = ["feature", "beyond the bins", "unknown", "missing"]
    shown = table(header, rows, numbers=(1, 2, 3), class_="wide")
    note = f"Shares of {found.n_rows:,} rows."
    if rest := len(names) - len(some):
        note += f" {rest:,} other features have none of the three, or smaller shares."
    return section("data", "Data", h("p", text), shown, h("p", note, class_="note"))


def anomaly_section(scores: np.ndarray, offset: float) -> Html:
    """The scores of an isolation forest."""
    flagged = float((scores < offset).mean())
    shown = histogram_picture(
        "Scores",
        scores,
        ("score: from -1, an anomaly, to 0", "rows"),
        f"{share(flagged)} of {len(scores):,} rows are below {figure(offset)}: anomalies.",
        (offset, "threshold"),
    )
    return section("anomalies", "Anomalies", figures(shown))
