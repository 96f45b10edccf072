"""Score a saved model on a file, with a confusion matrix of its classes."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)

import gpuforest
from gpuforest.cli.facts import plain
from gpuforest.cli.file_options import DATA, add_reading_options, target_of
from gpuforest.cli.permutation import permutation_facts, permutation_rows
from gpuforest.cli.predict import add_runtime_options, load_for, set_runtime
from gpuforest.cli.show import print_rows, progress_bar, say
from gpuforest.data.columns import Table
from gpuforest.inspection.model_facts import finite
from gpuforest.tools.report.rows import aligned

ERRORS = ("mean_absolute_error", "root_mean_squared_error")  # in units of the target
SHOWN_CLASSES = 20  # rows of a confusion matrix in a summary; --json gives all


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    command.add_argument("model", metavar="MODEL", help="a file that `gpuforest train` wrote")
    command.add_argument("data", metavar="DATA", help=DATA)
    command.add_argument(
        "--target", metavar="COLUMN", help="the column to compare with (default: as in training)"
    )
    command.add_argument("--weight", metavar="COLUMN", help="the column of sample weights")
    command.add_argument(
        "--drop-missing-target", action="store_true", help="leave out rows without a target"
    )
    command.add_argument(
        "--permute",
        action="store_true",
        help="also how much accuracy or R2 falls when the values of a feature are permuted: the "
        "mean of five orders, and its standard deviation",
    )
    command.add_argument(
        "--json", action="store_true", help="print one JSON object instead of the summary"
    )
    add_runtime_options(command)
    add_reading_options(command)


def run(arguments: argparse.Namespace) -> None:
    """Load both, predict, compare and show."""
    with progress_bar():
        model = gpuforest.load(arguments.model)
        if is_outlier_detector(model):
            raise ValueError(
                f"a {type(model).__name__} has no target to compare with: predict gives scores"
            )
        target = target_of(model, arguments)
        set_runtime(model, vars(arguments))
        parts = {"weight": arguments.weight, "drop_missing_target": arguments.drop_missing_target}
        table = load_for(model, arguments, target, **parts)
        facts = {"model": arguments.model, "data": arguments.data, "target": target}
        facts |= {"rows": len(table.y), "task": "classification"}
        if is_classifier(model):
            facts |= class_scores(model, table)
        else:
            facts |= {"task": "regression", **number_scores(model, table)}
        if arguments.permute:
            facts |= {"permuted": permutation_facts(model, table)}
    for note in table.notes:
        say(note)
    if arguments.json:
        print(json.dumps(facts, default=plain, allow_nan=False))
    else:
        print_rows(summary(facts), "gpuforest evaluate")


def class_scores(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a classifier, and how many rows of each class were predicted as each.

    Raises
    ------
    ValueError : no class that the model knows
    """
    # a file may have classes that training had not
    found = aligned(model.classes_, table.y)
    labels, known, y = found.names, found.known, found.codes
    probabilities = model.predict_proba(table.X)
    predicted = known[probabilities.argmax(axis=1)]
    every, w = np.arange(len(labels)), table.weight
    return {
        "accuracy": accuracy_score(y, predicted, sample_weight=w),
        "balanced_accuracy": balanced(y, predicted, w),
        "log_loss": log_loss(y, probabilities, sample_weight=w, labels=known)
        if len(labels) == len(known) > 1
        else None,
        "classes": labels.tolist(),
        "confusion": confusion_matrix(y, predicted, labels=every, sample_weight=w).tolist(),
    }


def balanced(y: np.ndarray, found: np.ndarray, weight: np.ndarray | None) -> float:
    """The mean over the classes of the rows of the share that was found."""
    weight = np.ones(len(y)) if weight is None else weight
    classes, code = np.unique(y, return_inverse=True)
    total = np.bincount(code, weight, len(classes))
    right = np.bincount(code, weight * (y == found), len(classes))
    return float(np.mean(right[total > 0] / total[total > 0]))


def number_scores(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a regression."""
    if table.y.dtype.kind not in "iufb":
        raise ValueError("the target holds text, and the model predicts numbers")
    found, w = model.predict(table.X), table.weight
    squared = mean_squared_error(table.y, found, sample_weight=w)
    return {
        "r2": finite(r2_score(table.y, found, sample_weight=w)) if len(found) > 1 else None,
        "mean_absolute_error": mean_absolute_error(table.y, found, sample_weight=w),
        "root_mean_squared_error": float(np.sqrt(squared)),
    }


def summary(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as lines for a reader."""
    rows = [
        ("data", f"{facts['data']}: {facts['rows']:,} rows"),
        ("target", f"{facts['target']}: {facts['task']}"),
    ]
    names = {"r2": "R2", "log_loss": "log loss"}
    for key in ("accuracy", "balanced_accuracy", "log_loss", "r2", *ERRORS):
        if facts.get(key) is not None:
            shown = f"{facts[key]:.6g}" if key in ERRORS else f"{facts[key]:.4f}"
            rows += [(names.get(key, key.replace("_", " ")), shown)]
    if "confusion" in facts:
        rows += confusion_rows(facts["classes"], facts["confusion"])
    return rows + permutation_rows(facts.get("permuted", {}))


def confusion_rows(classes: list[Any], confusion: list[list[float]]) -> list[tuple[str, str]]:
    """A line for each true class: how many of its rows were predicted as each."""
    if len(classes) > SHOWN_CLASSES:
        return [("confusion", f"{len(classes)} classes: --json has the matrix")]
    lines = [["predicted", *map(str, classes)]]
    for name, counts in zip(classes, confusion, strict=True):
        lines.append([str(name), *(f"{n:,.6g}" for n in counts)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ["  ".join(f"{v:>{w}}" for v, w in zip(line, widths, strict=True)) for line in lines]
    return [("confusion" if i == 0 else "", line) for i, line in enumerate(text)]
