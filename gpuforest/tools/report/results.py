"""Computes what a report says about a model and about rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.inspection import permutation_importance

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.progress import stage
from gpuforest.core.model import model_of
from gpuforest.explain import oob, survival
from gpuforest.explain.model_facts import (
    feature_names,
    finite,
    has_quantiles,
    is_survival,
    score_name,
)
from gpuforest.growing import predict as prediction
from gpuforest.growing.edges import bin_matrix
from gpuforest.tools.report import scores
from gpuforest.tools.report.rows import MOST_ROWS, SEED, Rows
from gpuforest.tools.report.scores import Score, mean_known, r_squared, wilson

REPEATS = 5  # orders of each feature
PERMUTED_FEATURES = 20
GRID = 20  # values of a feature that each row gets
# Rows are fewer where trees are many or deep: steps of rows down the trees, in all, and for each
# feature. A step takes some 10 ns
PERMUTING, DEPENDING = 150_000_000, 10_000_000
FEWEST_ALONE = 50  # rows, below which nothing is said of what a feature alone predicts
FEWEST_ROWS, PERMUTED_ROWS, DEPENDENCE_ROWS = 100, 2_000, 500
MOST_CATEGORIES = 12  # that are shown, the most frequent ones
STAGED_ROWS = 10_000
MOST_VALUES = 20_000_000  # of a table of float64: 160 MB
LACKS = "holds other estimators than gpuforest's trees, and there is a report of these alone"
DECILES = np.arange(1, 10) / 10
SCORES: dict[str, Any] = {
    "classification": scores.class_scores,
    "regression": scores.number_scores,
    "survival": scores.risk_scores,
}


class Results:
    """What a report says of an estimator and rows, computed when it is first asked for."""

    def __init__(self, estimator: Any, X: Any = None, y: Any = None) -> None:
        self.model = model_of(estimator, LACKS)
        if y is not None and X is None:
            raise ValueError("y without X: pass the rows that y belongs to, too")
        if y is not None and self.model.task not in SCORES:
            raise ValueError(f"this {self.model.kind} has no target to compare with: leave out y")
        if y is not None and has_quantiles(estimator):
            raise ValueError("this model predicts several quantiles: leave out y, or report on one")
        self.task, self.estimator, self.names = self.model.task, estimator, feature_names(estimator)
        self.rows = None if X is None else Rows.read(estimator, X, y)
        self.judged = self.rows if y is not None else None  # rows with targets
        # f64[F], by what splits gained
        self.importances: np.ndarray | None = getattr(estimator, "feature_importances_", None)

    @cached_property
    def oob(self) -> Score | None:
        """The out-of-bag score; with an interval where it is a share of known rows."""
        facts = self.model.facts
        value, n = finite(facts.get("oob_score_")), facts.get("_training_", {}).get("rows")
        if value is None:
            return None
        if callable(self.model.parameters.get("oob_score")):
            return Score("out-of-bag score", value)
        means = facts.get("oob_decision_function_")
        if means is not None:  # rows that every tree drew have no prediction
            n = int((~np.isnan(means.reshape(len(means), -1)[:, 0])).sum())
        ends: Any = ()
        if self.task == "classification" and n:
            ends = *wilson(round(value * n), n), "Wilson"
        return Score(f"out-of-bag {score_name(self.estimator)}", value, *ends)

    @cached_property
    def pairs(self) -> list[tuple[Any, np.ndarray]]:
        """The targets and predictions of each output: Labels and probabilities f64[N, C], numbers
        f64[N], or times and causes f64[N, 2] and risks f64[N, K]. []: there are no targets."""
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

    def single(self, task: str) -> Any:
        """The pair of the only output of a model for this task; None: it is for another."""
        return self.pairs[0] if len(self.pairs) == 1 and self.task == task else None

    @cached_property
    def outputs(self) -> list[list[Score]]:
        """The scores of each output."""
        return [SCORES[self.task](*pair) for pair in self.pairs]

    @cached_property
    def scores(self) -> list[Score]:
        """The scores of all outputs together."""
        if len(self.outputs) < 2:
            return [score for scores in self.outputs for score in scores]
        if self.task == "regression":
            mean = np.mean([scores[0].value for scores in self.outputs])
            return [Score("R², mean of the outputs", float(mean))]
        right = np.all([of.codes == of.predicted(proba) for of, proba in self.pairs], axis=0)
        ends = *wilson(right.sum(), len(right)), "Wilson"
        return [Score("accuracy, all outputs right", float(right.mean()), *ends)]

    @cached_property
    def drift(self) -> np.ndarray | None:
        """What bins and categories of a model say about rows, shares f64[3, F]: of numbers that lie
        further out than the outermost bins are wide (NaN: too few bins to tell); of categories that
        are new, or were rare in training (NaN: the feature is numeric); and of missing values."""
        if self.rows is None:
            return None
        rows, edges, F = self.rows.sample(MOST_ROWS), self.model.forest.edges, len(self.names)
        beyond, unknown, missing = shares = np.full((3, F), np.nan)
        for f in range(F):
            values = rows.dense([f])[:, 0]
            cuts = edges.values[edges.offsets[f] : edges.offsets[f + 1]]
            missing[f] = np.isnan(values).mean()
            if f in edges.categories:
                unknown[f] = (values >= len(edges.categories[f])).mean()
            elif len(cuts) > 1:
                # Where each value had a bin, training reached no further: its last value is nearer
                # to the last edge than the bin below that edge is wide.
                low, high = 2 * cuts[0] - cuts[1], 2 * cuts[-1] - cuts[-2]
                beyond[f] = ((values < low) | (values > high)).mean()
        return shares

    @cached_property
    def ranked(self) -> np.ndarray:
        """The features that have an importance, in its order, i64[...]."""
        importances = np.zeros(0) if self.importances is None else self.importances
        order = np.argsort(-importances, kind="stable")
        return np.asarray(order[importances[order] > 0])

    @cached_property
    def permuted(self) -> tuple[np.ndarray, np.ndarray, float, int] | None:
        """Permutation importances (Breiman 2001): features i64[f] by mean falls of the score, falls
        f64[f, REPEATS], the score before, the number of rows; None: no targets, or equal ones, or
        one row."""
        if self.judged is None:
            return None
        features = self.ranked[:PERMUTED_FEATURES]
        most = _most(self.judged, PERMUTING // (REPEATS * max(len(features), 1)), PERMUTED_ROWS)
        rows = self.judged.sample(most)
        model, table = rows.predictor(), rows.dense()
        before, falls = score_of(rows, model.predict(table)), np.zeros((len(features), REPEATS))
        if rows.n < 2 or np.isnan(before):
            return None

        def score(model: Any, columns: np.ndarray, y: None) -> float:
            table[:, features] = columns
            return score_of(rows, model.predict(table))

        if len(features):
            how: Any = {"scoring": score, "n_repeats": REPEATS, "random_state": SEED}
            with stage("permuting"):
                falls = permutation_importance(model, table[:, features], None, **how).importances
        order = np.argsort(-falls.mean(axis=1), kind="stable")
        return features[order], falls[order], before, rows.n


def unlike_training(shares: np.ndarray) -> np.ndarray:
    """The share f64[F] of the rows, of these by `drift`, whose value of a feature is new."""
    return np.asarray(np.nan_to_num(shares[:2]).max(axis=0))


def score_of(rows: Rows, predicted: Any) -> float:
    """The accuracy (of several outputs the share of rows right in all), R² (the mean; NaN where no
    numbers vary), or the concordance by the first cause."""
    if rows.labels is not None:
        truth = np.stack([o.names[o.codes].astype(object) for o in rows.labels], axis=1)
        right = np.asarray(predicted, object).reshape(truth.shape) == truth
        return float(right.all(axis=1).mean())
    assert rows.numbers is not None
    values = np.asarray(predicted).reshape(rows.n, -1)
    if is_survival(rows.estimator):
        return survival.concordance_of(rows.numbers, values, 1)
    return mean_known(r_squared(*pair) for pair in zip(rows.numbers.T, values.T, strict=True))


def alone(rows: Rows) -> tuple[np.ndarray, float] | None:
    """The accuracy, or R², f64[F] of what each feature predicts without any other, each half of the
    rows by their bins in the other half; and the accuracy of the most frequent class, or 0. None:
    few rows, several outputs, equal targets, or times that may be censored."""
    rows = rows.sample(MOST_ROWS)
    forest, F = rows.estimator.forest_, rows.estimator.n_features_in_
    if rows.n < FEWEST_ALONE or rows.estimator.n_outputs_ > 1 or is_survival(rows.estimator):
        return None
    is_class = rows.labels is not None
    y = rows.labels[0].codes if rows.labels is not None else np.asarray(rows.numbers)[:, 0]
    y = y if is_class else y / (np.abs(y).max() or 1.0)
    if not is_class and y.min() == y.max():
        return None
    codes = bin_matrix(rows.table, forest.edges, NumpyBackend()).codes[:, :F].astype(np.int64)
    half, scores, predicted = np.arange(rows.n) % 2 == 0, np.zeros(F), np.zeros_like(y)
    for f, column in enumerate(codes.T):
        for one, other in ((half, ~half), (~half, half)):
            is_category = f in forest.edges.categories
            predicted[other] = _by_bin(column[one], y[one], column[other], is_category, is_class)
        scores[f] = (y == predicted).mean() if is_class else r_squared(y, predicted)
    return scores, float(np.bincount(y).max() / rows.n) if is_class else 0.0


def _by_bin(
    codes: np.ndarray, y: np.ndarray, asked: np.ndarray, is_category: bool, is_class: bool
) -> np.ndarray:
    """The most frequent class, or the mean, of the rows in the bins asked for. A category without
    rows has that of all rows; a bin of numbers the class of the nearest bin with rows, or an
    interpolated mean."""
    n = np.bincount(codes)
    filled = np.flatnonzero(n)
    if is_class:
        K = int(y.max()) + 1
        counts = np.bincount(codes * K + y, minlength=len(n) * K).reshape(-1, K)[filled]
        of_bin, of_all = counts.argmax(axis=1), counts.sum(axis=0).argmax()
    else:
        of_bin, of_all = np.bincount(codes, y)[filled] / n[filled], y.mean()
    if not is_class and not is_category:
        return np.asarray(np.interp(asked, filled, of_bin))
    nearest = np.rint(np.interp(asked, filled, np.arange(len(filled)))).astype(np.int64)
    is_known = np.isin(asked, filled) if is_category else True
    return np.asarray(np.where(is_known, of_bin[nearest], of_all))


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
    """The partial dependence (Friedman 2001) on a feature: values f64[g], ascending, or codes of
    the most frequent categories (code n of n is any other); the mean predictions f64[g, K] of rows
    that all have the same value; and the deciles of the feature. None: it has a single value."""
    sample, model = dependence_rows(rows), rows.predictor()
    column = rows.sample(STAGED_ROWS).dense([feature])[:, 0]
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
    """Numbers n of trees (of boosting: rounds), and the error of the first n of them: one minus the
    score. None: there is one tree, several outputs, or quantiles, which do not add up."""
    model = rows.predictor()
    n_stages = model.forest_.n_trees if model.forest_.baseline is None else model.n_iter_
    if n_stages < 2 or model.n_outputs_ > 1 or hasattr(model, "default_quantiles"):
        return None
    rows, points = rows.sample(STAGED_ROWS), oob.curve_points(n_stages)
    with stage("predicting"):
        stages = enumerate(_staged(model, rows.table), 1)
        errors = [1 - score_of(rows, predicted) for n, predicted in stages if n in points]
    return np.array(points), np.array(errors)


def _staged(model: Any, table: Any) -> Iterator[Any]:
    """Predictions of the first tree or round, of the first two, and so on."""
    if hasattr(model, "staged_predict"):
        yield from model.staged_predict(table)
        return
    codes, backend = model._coded(table)
    for values in map(backend.asnumpy, prediction.staged(model.forest_, codes, backend)):
        yield model.classes_[values.argmax(axis=1)] if is_classifier(model) else values
