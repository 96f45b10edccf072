"""What a reader of a report should look at before believing it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.export.report.html import Html, h, listed, name, scored, share
from gpuforest.inspection.model_facts import feature_names
from gpuforest.inspection.report.classes import ClassResults
from gpuforest.inspection.report.results import Results
from gpuforest.inspection.report.rows import Rows

FEW = 10  # rows of a class
FEW_ROWS = 100
DOMINANT = 0.8  # share of all importance
LEFT = 0.02  # of the errors, which a feature leaves that alone predicts nearly all
DRIFTING, MISSING = 0.05, 0.5  # shares of rows
MOST = 5  # names in a sentence


def checks(found: Results) -> list[Html]:
    """What was found, as lines of a list."""
    told = _model_checks(found)
    if found.rows is not None:
        told += _row_checks(found, found.rows)
    if found.classes is not None:
        told += _class_checks(found.classes)
    if found.numbers is not None and not np.isfinite(found.scores[0].value):
        told.append(check("R² is not defined.", "The targets of the rows given do not vary."))
    return told


def _model_checks(found: Results) -> list[Html]:
    """What the model alone says."""
    estimator, importances, told = found.estimator, found.importances, []
    names = feature_names(estimator)
    if importances is not None and len(names) > 1 and importances.max() > DOMINANT:
        f = int(importances.argmax())
        text = (
            f" has {share(float(importances[f]))} of all impurity importance. Make sure that it is "
            "known when predictions are made, and is not made from the target."
        )
        told.append(check("One feature does nearly all.", name(names[f], 40), text))
    if hasattr(estimator, "oob_score_") and found.oob is None:
        told.append(check("No out-of-bag score.", "There were too few rows or trees for it."))
    if is_classifier(estimator) and estimator.n_outputs_ == 1 and len(estimator.classes_) == 1:
        text = "The training data had a single class, so the model predicts nothing else."
        told.append(check("One class.", text))
    return told


def _row_checks(found: Results, rows: Rows) -> list[Html]:
    """What the rows given say."""
    told, estimator, drifted = [], rows.estimator, found.drift
    assert drifted is not None
    if rows.has_targets and rows.n < FEW_ROWS:
        text = f"There are {rows.n:,}: intervals are wide, and curves are rough."
        told.append(check("Few rows.", text))
    known = getattr(estimator, "_training_", {}).get("rows")
    if rows.has_targets and known == rows.n:
        text = (
            f"The rows given are as many as those of the training, {rows.n:,}. If they are the "
            "same, then scores, curves and permutation importances here are far too good."
        )
        told.append(check("Are these the training rows?", text))
    told += _leaks(rows, found.alone) + _gap(found)
    names = feature_names(estimator)
    far = np.flatnonzero(drifted.worst > DRIFTING)
    if len(far):
        far = far[np.argsort(-drifted.worst[far], kind="stable")]
        text = (
            f" (up to {share(float(drifted.worst[far[0]]))} of the rows): values that training had "
            "not, where the model can only guess. The section Data has a table."
        )
        told.append(
            check("Other data than in training.", listed([names[f] for f in far], MOST), text)
        )
    gone = np.flatnonzero(drifted.missing > MISSING)
    if len(gone):
        text = f": missing in more than {share(MISSING)} of the rows."
        told.append(check("Mostly missing.", listed([names[f] for f in gone], MOST), text))
    return told


def _leaks(rows: Rows, alone: tuple[np.ndarray, float] | None) -> list[Html]:
    """Features that predict the target by themselves."""
    if alone is None or alone[1] >= 1:
        return []
    score, base = alone
    found = np.flatnonzero(1 - score <= LEFT * (1 - base))
    if not len(found):
        return []
    names = feature_names(rows.estimator)
    measure = "accuracy" if rows.labels is not None else "R²"
    text = (
        f": predicts the target without any other feature, with {measure} "
        f"{scored(float(score[found].max()))}. Such a feature often holds the target, or what is "
        "known only after it."
    )
    return [check("A leak?", listed([names[f] for f in found], MOST), text)]


def _gap(found: Results) -> list[Html]:
    """Whether the out-of-bag score lies far outside the interval of the rows given."""
    oob, own = found.oob, found.scores[0] if found.scores else None
    if oob is None or own is None or own.low is None or own.high is None:
        return []
    width = own.high - own.low
    if oob.name != f"out-of-bag {own.name}" or own.low - width <= oob.value <= own.high + width:
        return []
    better = "better" if own.value > oob.value else "worse"
    text = (
        f"The rows given have {own.name} {scored(own.value)}, far {better} than "
        f"{scored(oob.value)} out of bag: they may be of another origin than the training rows, "
        "or among these."
    )
    return [check("Out-of-bag and test scores differ.", text)]


def _class_checks(found: ClassResults) -> list[Html]:
    """What the classes of the rows say."""
    labels, told = found.labels, []
    counts = np.bincount(labels.codes, minlength=len(labels.names))
    if len(labels.unknown):
        names = [labels.names[k] for k in labels.unknown]
        n = int(counts[labels.unknown].sum())
        text = f": {n:,} rows of classes that the model does not know are always predicted wrong."
        told.append(check("Unknown classes.", listed(names, MOST), text))
    few = [labels.names[k] for k in labels.known if 0 < counts[k] < FEW]
    if few:
        text = f": fewer than {FEW} rows, too few to say how well they are predicted."
        told.append(check("Classes of few rows.", listed(few, MOST), text))
    absent = [labels.names[k] for k in labels.known if not counts[k]]
    if absent:
        told.append(check("Absent classes.", listed(absent, MOST), ": no row is of them."))
    if len(labels.known) > 1 and np.count_nonzero(found.confusion.sum(axis=0)) == 1:
        told.append(check("One answer.", "All rows are predicted as the same class."))
    return told


def check(title: str, *text: Any) -> Html:
    """A line of the list."""
    return h("li", h("b", title), " ", *text)
