"""The page of a report: what to check before believing it, and its sections."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import date
from html import escape, unescape
from importlib.metadata import version
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.common.text import shortened
from gpuforest.explain.model_facts import score_name
from gpuforest.export.container import replaced
from gpuforest.tools.report.effects import NO_DOUBTS, effect_checks
from gpuforest.tools.report.html import Html, h, interval, listed, name, scored, share
from gpuforest.tools.report.results import Results, alone, unlike_training
from gpuforest.tools.report.rows import row_hashes
from gpuforest.tools.report.sections import SECTIONS

FEW = 10  # rows of a class
FEW_ROWS = 100
DOMINANT = 0.8  # share of all importance
LEFT = 0.02  # of the errors, which a feature leaves that alone predicts nearly all
DRIFTING, MISSING, MOSTLY = 0.05, 0.5, 0.5  # shares of rows
MOST = 5  # names in a sentence
Findings = Iterator[tuple[Any, ...]]  # of each a title, and the parts of a text
# a browser then loads nothing and runs nothing, whatever the page holds
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HEAD = Html(
    '<meta charset="utf-8"/>'
    '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
    f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>'
)
NOTHING = (
    "No problems found. Looked for: features that predict the target by themselves, training rows "
    "and rows unlike them, classes of few rows, scores that do not fit together."
)
NOTHING_ALONE = (
    "No problems found. Looked for: a feature that has nearly all of the importance, a missing "
    "out-of-bag score, a single class. Most checks need rows that were not in the training."
)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of huge targets
def write_report(estimator: Any, X: Any, y: Any, path: str | os.PathLike[str] | None) -> str | None:
    """The report as HTML, or, where there is a path, as a file; errors as of `Results`."""
    if hasattr(estimator, "to_local"):  # it was trained on a cluster
        estimator = estimator.to_local()
    results = Results(estimator, X, y)
    findings = checks(results)
    nothing = NO_DOUBTS if results.task == "effects" else NOTHING if results.rows else NOTHING_ALONE
    first = h("ul", *findings, class_="checks") if findings else h("p", nothing)
    parts = [("checks", "Checks", [first])]
    for key, word, make, task in SECTIONS:
        if (task is None or results.single(task)) and (made := make(results)):
            parts.append((key, word, made))
    target, arm = map(getattr(estimator, "source_", {}).get, ("target", "treatment"))
    effect = [] if arm is None else ["the effect of ", name(arm), " on "]
    predicts = [] if target is None else ["It predicts ", *effect, name(target), ". "]
    rows = "Of the model alone: no rows were given to test it with."
    if results.rows is not None:
        rows = f"With the results of {results.rows.n:,} rows that were given."
    title = f"Report: {type(estimator).__name__}" + (f" for {shortened(target)}" if target else "")
    links = [h("li", h("a", word, href=f"#{key}")) for key, word, _ in parts]
    by = f"Made by gpuforest {version('gpuforest')} on {date.today()}. It loads and runs nothing."
    style = files("gpuforest.tools.report").joinpath("style.css").read_text("utf-8")
    head = h("head", HEAD, h("title", title), h("style", Html(style)))
    body = h(
        "body",
        h("header", h("h1", title), h("p", *predicts, rows)),
        h("dl", *_tiles(results), class_="tiles"),
        h("nav", h("ul", *links), aria_label="Contents"),
        h("main", *(h("section", h("h2", word), *shown, id=key) for key, word, shown in parts)),
        h("footer", h("p", by)),
    )
    text = "<!DOCTYPE html>\n" + h("html", head, body, lang="en") + "\n"
    if path is None:
        return text
    with replaced(Path(path)) as file:
        file.write_text(text, "utf-8", newline="\n")
    return None


def _tiles(results: Results) -> list[Html]:
    estimator, oob = results.estimator, results.oob
    scores = [(f"{score.name}, rows given", score) for score in results.scores[:1]]
    scores += [] if oob is None else [(oob.name, oob)]
    trained = getattr(estimator, "_training_", {}).get("rows")
    counts = {"trees": estimator.forest_.n_trees, "features": estimator.n_features_in_}
    counts |= {"training rows": trained, "rows given": results.rows and results.rows.n}
    tiles: list[Any] = [
        (key, scored(of.value), interval(of) and h("small", interval(of))) for key, of in scores
    ]
    tiles += [(key, f"{n:,}") for key, n in counts.items() if n is not None]
    return [h("div", h("dt", key), h("dd", *said)) for key, *said in tiles]


def _model_checks(results: Results) -> Findings:
    estimator, importances, names = results.estimator, results.importances, results.names
    if importances is not None and len(names) > 1 and importances.max() > DOMINANT:
        f = int(importances.argmax())
        text = (
            f" has {share(float(importances[f]))} of all importance. Make sure that it is known "
            "when predictions are made, and is not made from the target."
        )
        yield "One feature does nearly all.", name(names[f], 40), text
    if hasattr(estimator, "oob_score_") and results.oob is None:
        yield "No out-of-bag score.", "There were too few rows or trees for it."
    if is_classifier(estimator) and estimator.n_outputs_ == 1 and len(estimator.classes_) == 1:
        text = "The training data had a single class, so the model predicts nothing else."
        yield "One class.", text


def _row_checks(results: Results) -> Findings:
    """What the number of rows says, and whether a feature predicts the target by itself."""
    if (rows := results.judged) is None:
        return
    if rows.n < FEW_ROWS:
        yield "Few rows.", f"There are {rows.n:,}: intervals are wide, and curves are rough."
    kept = getattr(results.estimator, "source_", {}).get("row_hashes")
    same = float(np.isin(kept, row_hashes(results.estimator, rows)).mean()) if kept else None
    if same is not None and same > MOSTLY:
        text = (
            f"About {share(same)} of the training rows are among the rows given, so results here "
            "are far too good. Pass rows that the model was not trained on."
        )
        yield "Rows of the training.", text
    elif same is None and getattr(results.estimator, "_training_", {}).get("rows") == rows.n:
        text = (
            f"The rows given are as many as those of the training, {rows.n:,}. If they are the "
            "same, then scores, curves and permutation importances here are far too good."
        )
        yield "Are these the training rows?", text
    if results.single("regression") and not np.isfinite(results.scores[0].value):
        yield "R² is not defined.", "The targets of the rows given do not vary."
    score, base = alone(rows) or (np.zeros(0), 0.0)
    leaks = np.flatnonzero((1 - score <= LEFT * (1 - base)) & (base < 1))
    if len(leaks):
        measure = score_name(results.estimator)
        text = (
            f": predicts the target without any other feature, with {measure} "
            f"{scored(float(score[leaks].max()))}. Such a feature often holds the target, or what "
            "is known only after it."
        )
        yield "A leak?", listed([results.names[f] for f in leaks], MOST), text


def _gap(results: Results) -> Findings:
    """Whether the out-of-bag score lies far outside the interval of the rows given."""
    score, oob = next(iter(results.scores), None), results.oob
    if oob is None or score is None or not score.how:
        return
    width = score.high - score.low
    near = score.low - width <= oob.value <= score.high + width
    if oob.name == f"out-of-bag {score.name}" and not near:
        better = "better" if score.value > oob.value else "worse"
        text = (
            f"The rows given have {score.name} {scored(score.value)}, far {better} than "
            f"{scored(oob.value)} out of bag: they may be of another origin than the training "
            "rows, or among these."
        )
        yield "Out-of-bag and test scores differ.", text


def _drift_checks(results: Results) -> Findings:
    """Features whose values are unlike those of the training."""
    if results.drift is None:
        return
    worst, missing = unlike_training(results.drift), results.drift[2]
    order = np.argsort(-worst, kind="stable")
    if far := [results.names[f] for f in order if worst[f] > DRIFTING]:
        text = (
            f" (up to {share(float(worst.max()))} of the rows): values that training had "
            "not, where the model can only guess. The section Data has a table."
        )
        yield "Other data than in training.", listed(far, MOST), text
    if gone := [results.names[f] for f in np.flatnonzero(missing > MISSING)]:
        text = f": missing in more than {share(MISSING)} of the rows."
        yield "Mostly missing.", listed(gone, MOST), text


def _class_checks(results: Results) -> Findings:
    if (pair := results.single("classification")) is None:
        return
    labels, proba = pair
    n_unknown = int(labels.counts[labels.unknown].sum())
    known = [(labels.names[k], labels.counts[k]) for k in labels.known]
    unknown = f": {n_unknown:,} rows of classes that the model does not know are always predicted "
    few = f": fewer than {FEW} rows, too few to say how well they are predicted."
    for title, names, text in (
        ("Unknown classes.", [labels.names[k] for k in labels.unknown], f"{unknown}wrong."),
        ("Classes of few rows.", [label for label, n in known if 0 < n < FEW], few),
        ("Absent classes.", [label for label, n in known if not n], ": no row is of them."),
    ):
        if names:
            yield title, listed(names, MOST), text
    if len(known) > 1 and len(np.unique(labels.predicted(proba))) == 1:
        yield "One answer.", "All rows are predicted as the same class."


def checks(results: Results) -> list[Html]:
    """What was found, as lines of a list."""
    kinds = (_model_checks, effect_checks, _row_checks, _gap, _drift_checks, _class_checks)
    findings = chain.from_iterable(check(results) for check in kinds)
    return [h("li", h("b", title), " ", *text) for title, *text in findings]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def check_lines(estimator: Any, X: Any, y: Any) -> list[str]:
    """What the checks of a report find, as lines of text."""
    found = checks(Results(estimator, X, y))
    return [unescape(re.sub("<[^>]*>", "", line)) for line in found]
