"""Computes what a report says about a model and about rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.backends.registry import run_on_backend
from gpuforest.common import hashing
from gpuforest.common.progress import report, stage
from gpuforest.core.model import Model, model_of
from gpuforest.explain.model_facts import feature_names, finite, is_survival, score_name
from gpuforest.explain.oob import curve_points
from gpuforest.explain.survival import concordance_of
from gpuforest.growing.edges import bin_matrix
from gpuforest.tools.report.rows import SEED, Labels, Rows, drift
from gpuforest.tools.report.scores import Score, class_scores, number_scores, risk_scores, wilson

REPEATS = 5  # orders of each feature
PERMUTED_FEATURES = 20
GRID = 20  # values of a feature that each row gets
# Rows are fewer where trees are many or deep: steps of rows down the trees, in all, and for each
# feature. A step takes some 10 ns
PERMUTING, DEPENDING = 150_000_000, 10_000_000
FEWEST_ROWS, PERMUTED_ROWS, DEPENDENCE_ROWS = 100, 2_000, 500
MOST_CATEGORIES = 12  # that are shown, the most frequent ones
STAGED_ROWS = 10_000
MOST_VALUES = 20_000_000  # of a table of float64: 160 MB
DECILES = np.arange(1, 10) / 10
SCORES = {
    "classification": class_scores, "regression": number_scores, "survival": risk_scores
}  # fmt: skip


class Results:
    """What several parts of a report say about a fitted estimator and rows, computed when it is
    first asked for; None where nothing is known."""

    def __init__(self, estimator: Any, X: Any = None, y: Any = None) -> None:
        self.model = _checked(estimator, X, y)
        self.task, self.estimator, self.names = self.model.task, estimator, feature_names(estimator)
        self.rows = None if X is None else Rows.read(estimator, X, y)
        self.judged = self.rows if y is not None else None  # rows with targets
        # f64[F], by what splits gained
        self.importances: np.ndarray | None = getattr(estimator, "feature_importances_", None)

    @cached_property
    def oob(self) -> Score | None:
        """The out-of-bag score; with an interval where it is a share of known rows."""
        facts = self.model.facts
        value = finite(facts.get("oob_score_"))
        if value is None:
            return None
        if callable(self.model.parameters.get("oob_score")):
            return Score("out-of-bag score", value)
        if self.task != "classification":
            return Score(f"out-of-bag {score_name(self.estimator)}", value)
        n = facts.get("_training_", {}).get("rows")
        means = facts.get("oob_decision_function_")
        if means is not None:  # rows that every tree drew have no prediction
            n = int((~np.isnan(means.reshape(len(means), -1)[:, 0])).sum())
        if not n:
            return Score("out-of-bag accuracy", value)
        return Score("out-of-bag accuracy", value, *wilson(round(value * n), n), "Wilson")

    @cached_property
    def pairs(self) -> list[tuple[Any, np.ndarray]]:
        """The targets and predictions of each output: Labels, and probabilities f64[N, C] of the
        model's classes; numbers f64[N] of both; or of survival, as one output, times and causes
        f64[N, 2] and risks f64[N, K]. []: there are no targets."""
        if (rows := self.judged) is None:
            return []
        model, table = rows.predictor(), rows.table
        if rows.labels is not None:
            proba = model.predict_proba(table)
            return [*zip(rows.labels, proba if len(rows.labels) > 1 else [proba], strict=True)]
        assert rows.numbers is not None
        predicted = np.asarray(model.predict(table), np.float64)
        if self.task == "survival":
            return [(rows.numbers, predicted.reshape(rows.n, -1))]
        predicted = predicted.reshape(rows.numbers.shape)
        return [*zip(rows.numbers.T, predicted.T, strict=True)]

    @property
    def classes(self) -> tuple[Labels, np.ndarray] | None:
        """The pair of a single output of classes."""
        return self.pairs[0] if len(self.pairs) == 1 and self.task == "classification" else None

    @property
    def numbers(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The pair of a single output of numbers."""
        return self.pairs[0] if len(self.pairs) == 1 and self.task == "regression" else None

    @cached_property
    def outputs(self) -> list[list[Score]]:
        """The scores of each output."""
        scores_of: Any = SCORES.get(self.task)
        return [scores_of(*pair) for pair in self.pairs]

    @cached_property
    def scores(self) -> list[Score]:
        """The scores of all outputs together."""
        if len(self.outputs) < 2:
            return [score for scores in self.outputs for score in scores]
        if self.task == "regression":
            mean = float(np.mean([scores[0].value for scores in self.outputs]))
            return [Score("R², mean of the outputs", mean)]
        right = [labels.codes == labels.predicted(proba) for labels, proba in self.pairs]
        n_right, n = int(np.all(right, axis=0).sum()), len(right[0])
        ends = wilson(n_right, n)
        return [Score("accuracy, all outputs right", n_right / n, *ends, "Wilson")]

    @cached_property
    def drift(self) -> np.ndarray | None:
        """See `drift`."""
        return None if self.rows is None else drift(self.rows)

    @cached_property
    def ranked(self) -> np.ndarray:
        """The features that have an importance, in its order, i64[...]."""
        if self.importances is None:
            return np.zeros(0, np.int64)
        order = np.argsort(-self.importances, kind="stable")
        return np.asarray(order[self.importances[order] > 0])

    @cached_property
    def permuted(self) -> tuple[np.ndarray, np.ndarray, float, int] | None:
        """See `permuted`."""
        if self.judged is None:
            return None
        return permuted(self.judged, self.ranked[:PERMUTED_FEATURES])


def _checked(estimator: Any, X: Any, y: Any) -> Model:
    lacks = "holds other estimators than gpuforest's trees, and there is a report of these alone"
    model = model_of(estimator, lacks)
    if y is not None and X is None:
        raise ValueError("y without X: pass the rows that y belongs to, too")
    if y is not None and model.task not in SCORES:
        raise ValueError(f"this {model.kind} has no target to compare with: leave out y")
    return model


def score_of(rows: Rows) -> Callable[[Any], float]:
    """A function that scores predictions: accuracy, of several outputs the share of the rows that
    are right in all of them; R², NaN where numbers do not vary; or the concordance by the first
    cause."""
    if rows.labels is not None:
        truth = np.stack([o.names[o.codes].astype(object) for o in rows.labels], axis=1)

        def accuracy(predicted: Any) -> float:
            predicted = np.asarray(predicted, object).reshape(len(truth), -1)
            return float((predicted == truth).all(axis=1).mean())

        return accuracy
    assert rows.numbers is not None
    if is_survival(rows.estimator):
        known = rows.numbers
        return lambda risks: concordance_of(known, np.asarray(risks).reshape(len(known), -1), 1)
    unit = np.abs(rows.numbers).max() or 1.0  # so that no square is too large or too small
    y = rows.numbers / unit
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)

    def r2(predicted: Any) -> float:
        errors = ((y - np.asarray(predicted).reshape(y.shape) / unit) ** 2).sum(axis=0)
        varies = spread > 0
        return float(np.mean(1 - errors[varies] / spread[varies])) if varies.any() else np.nan

    return r2


def permuted(rows: Rows, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, int] | None:
    """Permutation importances (Breiman 2001) of features i64[f]: how much the score falls when
    their values are permuted.

    It returns the features by their mean falls, the falls f64[f, REPEATS], the score before, and
    the number of rows; None: there are too few rows, or numbers do not vary.
    """
    rows = rows.sample(_most(rows, PERMUTING // (REPEATS * max(len(features), 1)), PERMUTED_ROWS))
    model, score, table = rows.predictor(), score_of(rows), rows.dense()
    keys = hashing.hash_at(np.full(1, SEED, np.uint64), np.arange(REPEATS, dtype=np.uint64))
    at = np.arange(rows.n, dtype=np.uint64)[None]
    orders = hashing.permute(np, keys[:, None], at, rows.n).astype(np.int64)
    before, falls = score(model.predict(table)), np.zeros((len(features), REPEATS))
    if rows.n < 2 or np.isnan(before):
        return None
    with stage("permuting"):
        for i, f in enumerate(features):
            column = table[:, f].copy()
            for j, moved in enumerate(orders):
                table[:, f] = column[moved]
                falls[i, j] = before - score(model.predict(table))
            table[:, f] = column
            report(i + 1, len(features))
    order = np.argsort(-falls.mean(axis=1), kind="stable")
    return features[order], falls[order], before, rows.n


def _most(rows: Rows, steps: int, most: int) -> int:
    """How many rows can walk through all trees in `steps` steps together; at most `most`."""
    forest = rows.estimator.forest_
    depth = math.log2(forest.n_nodes / forest.n_trees + 1)  # of a balanced tree
    return max(FEWEST_ROWS, min(most, int(steps / (forest.n_trees * depth))))


def dependence_rows(rows: Rows) -> Rows:
    """The rows over which `dependence` takes its means."""
    most = min(DEPENDENCE_ROWS, MOST_VALUES // (GRID * rows.estimator.n_features_in_))
    return rows.sample(_most(rows, DEPENDING // GRID, most))


def dependence(rows: Rows, feature: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The partial dependence (Friedman 2001) on a feature; None: it has a single value.

    It returns values f64[g], ascending, or the codes of categories by their frequency (code n of n
    categories is any other); the mean predictions f64[g, K] of rows that all have the same one of
    these values; and the deciles of the feature.
    """
    sample, model = dependence_rows(rows), rows.predictor()
    column = rows.sample(STAGED_ROWS).column(feature)
    column = column[~np.isnan(column)]
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return None
    if feature in rows.estimator.forest_.edges.categories:
        values = values[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]]
    elif len(values) > GRID:
        levels = np.linspace(0.01, 0.99, GRID)
        grid = np.unique(np.quantile(column, levels))
        if len(grid) < GRID // 2:  # one value has most rows: add quantiles of the distinct values
            grid = np.unique(np.concatenate([grid, np.quantile(values, levels[1::2])]))
        values = grid
    table = np.tile(sample.dense(), (len(values), 1))
    table[:, feature] = np.repeat(values, sample.n)
    predict = model.predict_proba if is_classifier(model) else model.predict
    predicted = np.asarray(predict(table)).reshape(len(values), sample.n, -1)
    return values, predicted.mean(axis=1), np.quantile(column, DECILES)


def staged_error(rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """Numbers n of trees (of boosting: rounds), and the error of the first n of them: 1 - accuracy
    or 1 - R². None for models that do not add up the predictions of trees."""
    estimator, forest = rows.estimator, rows.estimator.forest_
    K = forest.coding.n_values if forest.baseline is not None else 1
    n_stages = forest.n_trees // K
    adds_up = forest.combine in ("mean", "sum", "votes")
    quantiles = hasattr(estimator, "default_quantiles")
    if not adds_up or quantiles or n_stages < 2 or estimator.n_outputs_ > 1:
        return None
    rows = rows.sample(STAGED_ROWS)
    points, score, model = curve_points(n_stages), score_of(rows), rows.predictor()

    def work(backend: Any) -> list[float]:
        codes = bin_matrix(rows.table, forest.edges, backend).codes
        total = backend.xp.zeros((rows.n, forest.values.shape[1]), dtype=backend.xp.float64)
        if forest.baseline is not None:
            total = total + backend.asarray(forest.baseline)
        errors, done = [], 0
        for n in points:
            total = backend.accumulate(forest, codes, range(done * K, n * K), None, total)
            combined, done = backend.asnumpy(forest.combined(total, n)) + 0.0, n
            model.__dict__["_walk"] = lambda table, stage, total=combined: total
            model.__dict__["_raw_predict"] = lambda X, total=combined: total
            if is_classifier(model):
                predicted = model.classes_[model.predict_proba(rows.table).argmax(axis=1)]
            else:
                predicted = model.predict(rows.table)
            errors.append(1 - score(predicted))
        return errors

    with stage("predicting"):
        errors = run_on_backend(work, **estimator._chosen(rows.table))
    return np.array(points), np.array(errors)
