"""`predict`, `explain` and `evaluate`: what a saved model says of the rows of a file."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.utils import Bunch

from gpuforest.common.progress import progress_bar, report, stage
from gpuforest.data.frames import Table, find_columns, listed
from gpuforest.explain.effects import interval_of
from gpuforest.explain.model_facts import finite, has_quantiles, is_effects, is_survival
from gpuforest.export.model_tables import category_codes, reader_of_codes
from gpuforest.tools.cli import files, options, output
from gpuforest.tools.plot.shap import labels_of
from gpuforest.tools.report.page import check_lines
from gpuforest.tools.report.rows import aligned
from gpuforest.tools.report.scores import balanced

EXPECTED = "expected_value"
ERRORS = ("mean_absolute_error", "root_mean_squared_error")  # in units of the target
SHOWN_CLASSES = 20  # rows of a confusion matrix in a summary; --json gives all
REPEATS = 5  # orders of each permuted feature, as scikit-learn has by default
SHOWN_PERMUTED = 10  # features in a summary; --json gives all

OUT = "--out FILE  a .csv or .parquet file to write (default: CSV to stdout)"
PREDICT = """\
--proba  add a column for the probability of each class
--keep COLS  columns of DATA to write next to the predictions, such as an id, separated by commas"""
EVALUATE = """\
--target COLUMN  the column to compare with (default: as in training)
--event COLUMN  of a survival forest the column of whether the event came (default: as in training)
--weight COLUMN  the column of sample weights
--drop-missing-target  leave out rows without a target
--permute  also how much accuracy or R2 falls when the values of a feature are permuted: the mean \
of five orders, and its standard deviation"""


def run_rows(arguments: argparse.Namespace) -> None:
    """Write what a model predicts for the rows of a file, or explains of them, block by block."""
    explains, background = arguments.command == "explain", getattr(arguments, "background", None)
    keep = [] if explains else files.names_of(arguments.keep)
    out = output.table_path(arguments.out, arguments.model, arguments.data, background)
    n_rows, ignored = 0, list[str]()

    def blocks() -> Iterator[dict[str, Any]]:
        nonlocal n_rows, ignored
        for frame in rows.frames(keep):
            if explains:
                X, ignored = rows.choose(frame)
                yield explained(rows.model, X, background)
            else:
                columns, ignored = predicted(rows, frame, keep, arguments.proba)
                yield columns
            n_rows += len(frame)
            report(n_rows, n_rows)

    with progress_bar():
        rows = files.ModelRows(files.load_model(arguments), arguments)
        if explains:
            background = files.background_of(rows.model, arguments)
        else:
            require_predictions(rows.model, arguments)
        output.write_table(out, blocks())
    if ignored:
        output.say(f"columns ignored: {listed(ignored)}")
    if out is not None:
        noun = "explanations" if explains else "predictions"
        output.done(f"{n_rows:,} {noun} written to", out)


def require_predictions(model: Any, arguments: argparse.Namespace) -> None:
    """Raise a ValueError for a model that has not the predictions that are asked for."""
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{arguments.model}: a {type(model).__name__} predicts nothing; its transform() in "
            "Python gives the leaves"
        )
    if arguments.proba and not hasattr(model, "predict_proba"):
        raise ValueError("--proba: the model has no classes")
    if arguments.proba and model.n_outputs_ > 1:
        raise ValueError("--proba: the model has several outputs; predict_proba has all of them")


def predicted(
    rows: files.ModelRows, frame: Any, keep: list[str], proba: bool
) -> tuple[dict[str, Any], list[str]]:
    """The columns to write, and those of the data that the model ignores."""
    keep = find_columns(frame, keep)
    features = {name.strip() for name in rows.names}
    X, ignored = rows.choose(frame.drop([name for name in keep if name not in features]))
    columns = predictions(rows.model, X, proba)
    if twice := [name for name in keep if name in columns]:
        raise ValueError(
            f"--keep: the predictions have a column of the name {listed(twice)} too; rename it in "
            "the data"
        )
    return output.columns_of(frame, keep) | columns, ignored


def predictions(model: Any, X: Any, proba: bool) -> dict[str, np.ndarray]:
    """Columns `prediction`, probabilities of classes if `proba`, the score of anomalies, and the
    ends of intervals of effects."""
    if is_outlier_detector(model):
        score = model.score_samples(X)
        return {"prediction": np.where(score - model.offset_ < 0, -1, 1), "score": score}
    if is_effects(model):
        effect, std = model.effect_and_std(X)
        ends = interval_of(effect, std)
        return {"prediction": effect, "low": ends.low, "high": ends.high}
    if not proba:
        values = model.predict(X)
        if values.ndim == 1:
            return {"prediction": values}
        return {f"prediction_{i}": column for i, column in enumerate(values.T)}
    probabilities = model.predict_proba(X)
    columns = {"prediction": model.classes_[probabilities.argmax(axis=1)]}
    for i, name in enumerate(model.classes_):
        columns[f"probability_{name}"] = probabilities[:, i]
    return columns


def explained(model: Any, X: Any, background: Any = None) -> dict[str, np.ndarray]:
    """A column for each feature and the expected value, for each class if there are several."""
    values = model.shap_values(X, background=background)
    expected = model.expected_value_ if background is None else model.expected_value(background)
    names = getattr(model, "feature_names_in_", [f"x{f}" for f in range(model.n_features_in_)])
    if EXPECTED in names:
        raise ValueError(f"a feature has the name {EXPECTED}: rename it in the data")
    endings = [""]
    if values.ndim > 2:
        endings = [f"_{label}" for label in labels_of(model)]
    columns = [f"{name}{ending}" for ending in endings for name in (*names, EXPECTED)]
    if twice := [name for name, n in Counter(columns).items() if n > 1]:
        raise ValueError(f"two columns would have the name {listed(twice)}: rename the feature")
    values = values.reshape(*values.shape[:2], len(endings))
    of_all = np.broadcast_to(expected, (len(values), 1, len(endings)))
    table = np.concatenate([values, of_all], axis=1).T  # [K, F + 1, N]
    return dict(zip(columns, table.reshape(len(columns), -1), strict=True))


def run_evaluate(arguments: argparse.Namespace) -> None:
    """Compare predictions with the target, and show the scores."""
    with progress_bar():
        model = files.load_model(arguments)
        if is_outlier_detector(model):
            raise ValueError(
                f"a {type(model).__name__} has no target to compare with: predict gives scores"
            )
        if has_quantiles(model):
            raise ValueError("a model of several quantiles is not evaluated: fit one of a quantile")
        rows = files.ModelRows(model, arguments)
        dropping = arguments.drop_missing_target
        table = rows.table(weight=arguments.weight, drop_missing_target=dropping)
        facts = {"model": arguments.model, "data": arguments.data, "target": rows.target}
        facts |= {"rows": len(table.y), "task": "classification"}
        if is_classifier(model):
            facts |= class_scores(model, table)
        elif is_survival(model):
            facts |= {"task": "survival", **risk_scores(model, table)}
        else:
            facts |= {"task": "regression", **number_scores(model, table)}
        if arguments.permute:
            falls = permutation_importances(model, table)
            mean, std = falls.importances_mean.tolist(), falls.importances_std.tolist()
            largest = np.argsort(-falls.importances_mean, kind="stable")
            permuted = {table.names[f]: {"mean": mean[f], "std": std[f]} for f in largest}
            facts |= {"permuted": permuted}
        facts["checks"] = check_lines(model, table.X, table.y)
    for note in (*table.notes, *facts["checks"]):
        output.say(note)
    output.print_facts(facts, arguments.json, summary)


def class_scores(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a classifier, and how many rows of each class were predicted as each."""
    # a file may have classes that training had not
    classes = aligned(model.classes_, table.y)
    labels, known, y, w = classes.names, classes.known, classes.codes, table.weight
    probabilities, every = model.predict_proba(table.X), np.arange(len(labels))
    predicted, loss = classes.predicted(probabilities), None
    if len(labels) == len(known) > 1:
        loss = metrics.log_loss(y, probabilities, sample_weight=w, labels=known)
    return {
        "accuracy": metrics.accuracy_score(y, predicted, sample_weight=w),
        "balanced_accuracy": balanced(y, predicted == y, np.ones(len(y)) if w is None else w),
        "log_loss": loss,
        "classes": labels.tolist(),
        "confusion": metrics.confusion_matrix(y, predicted, labels=every, sample_weight=w).tolist(),
    }


def number_scores(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a regression."""
    if table.y.dtype.kind not in "iufb":
        raise ValueError("the target holds text, and the model predicts numbers")
    y, predicted, w = table.y, model.predict(table.X), table.weight
    return {
        "r2": finite(metrics.r2_score(y, predicted, sample_weight=w)) if len(y) > 1 else None,
        "mean_absolute_error": metrics.mean_absolute_error(y, predicted, sample_weight=w),
        "root_mean_squared_error": metrics.root_mean_squared_error(y, predicted, sample_weight=w),
    }


def risk_scores(model: Any, table: Table) -> dict[str, Any]:
    """The concordance of a survival forest's risks, of several causes that of each."""
    names = ["concordance", *(f"concordance_{k}" for k in range(2, model.n_outputs_ + 1))]
    score = partial(model.score, table.X, table.y, sample_weight=table.weight)
    return {name: finite(score(cause=k)) for k, name in enumerate(names, 1)}


def permutation_importances(model: Any, table: Table) -> Bunch:
    """scikit-learn's permutation importances (Breiman 2001), of whatever a file was read into."""
    from sklearn.inspection import permutation_importance

    rows, how = category_codes(model, table.X), {"n_repeats": REPEATS, "random_state": 0}
    with stage("permuting"):
        return permutation_importance(
            reader_of_codes(model), rows, table.y, sample_weight=table.weight, **how
        )


def summary(facts: dict[str, Any]) -> output.Rows:
    """The scores as lines for a reader."""
    rows: output.Rows = {
        "data": f"{facts['data']}: {facts['rows']:,} rows",
        "target": f"{facts['target']}: {facts['task']}",
    }
    names = {"r2": "R2", "log_loss": "log loss"}
    by_cause = [key for key in facts if key.startswith("concordance")]
    for key in (*by_cause, "accuracy", "balanced_accuracy", "log_loss", "r2", *ERRORS):
        if facts.get(key) is not None:
            shown = f"{facts[key]:.6g}" if key in ERRORS else f"{facts[key]:.4f}"
            rows[names.get(key, key.replace("_", " "))] = shown
    if "confusion" in facts:
        rows["confusion"] = confusion_lines(facts["classes"], facts["confusion"])
    permuted = [*facts.get("permuted", {}).items()][:SHOWN_PERMUTED]
    lines = [f"{fall['mean']:.4f} ± {fall['std']:.4f} {name}" for name, fall in permuted]
    return rows | {"permuted": lines}


def confusion_lines(classes: list[Any], confusion: list[list[float]]) -> str | list[str]:
    """A line for each true class: how many of its rows were predicted as each."""
    if len(classes) > SHOWN_CLASSES:
        return f"{len(classes)} classes: --json has the matrix"
    lines = [["predicted", *map(str, classes)]]
    for name, counts in zip(classes, confusion, strict=True):
        lines.append([str(name), *(f"{n:,.6g}" for n in counts)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(f"{v:>{w}}" for v, w in zip(line, widths, strict=True)) for line in lines]


FILES, HOW = (options.MODEL, options.DATA), (options.declare_runtime, options.declare_reading)
COMMANDS = (  # name, help, options, function that runs
    (
        "predict",
        "Predict the rows of a file with a saved model.",
        (*FILES, OUT, PREDICT, *HOW),
        run_rows,
    ),
    (
        "explain",
        "Write the SHAP values of the rows of a file: what each feature adds to each prediction.",
        (*FILES, OUT, options.PARAMETERS["background"], *HOW),
        run_rows,
    ),
    (
        "evaluate",
        "Score a saved model on a file, with a confusion matrix of its classes.",
        (*FILES, EVALUATE, options.JSON, *HOW),
        run_evaluate,
    ),
)
