"""All that a report tells of a model and of rows, computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.registry import run_on_backend
from gpuforest.common import hashing
from gpuforest.common.progress import report, stage
from gpuforest.engine.binning import bin_matrix
from gpuforest.engine.forest import Forest
from gpuforest.explain.importances import importance_spread
from gpuforest.explain.model_facts import feature_names, finite
from gpuforest.explain.oob import curve_points
from gpuforest.tools.report import scores
from gpuforest.tools.report.rows import SEED, Drift, Rows, alone, drift
from gpuforest.tools.report.scores import ClassResults, NumberResults, Score

SHOWN_DEPENDENCES = 6
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


@dataclass(frozen=True, eq=False)
class Permuted:
    """How much the score of the rows falls when a feature of i64[f], by their importance, is
    permuted: mean and standard deviation f64[f] over `REPEATS` orders."""

    features: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    score: float
    n_rows: int


@dataclass(frozen=True, eq=False)
class Dependence:
    """The mean predictions f64[g, K] of rows that all have the same value of a feature.

    values : f64[g] ascending, or the codes of categories by their frequency; code n of n
        categories is any other
    shares : f64[g], how many rows have a category; None: the feature is numeric
    """

    feature: int
    values: np.ndarray
    shares: np.ndarray | None
    means: np.ndarray
    n_rows: int
    deciles: np.ndarray


@dataclass(eq=False)
class Results:
    """What is known of a model and of rows; None where nothing is known.

    oob : the out-of-bag score
    importances, spread : impurity importances f64[F], and their deviations over the trees
    scores : of the rows
    classes, numbers : the results of one output
    outputs : the scores of each of several outputs
    anomalies : f64[N], of an isolation forest
    staged : numbers of trees, and the error of the first so many
    alone : see `rows.alone`
    """

    estimator: Any
    oob: Score | None = None
    importances: np.ndarray | None = None
    spread: np.ndarray | None = None
    rows: Rows | None = None
    scores: list[Score] = field(default_factory=list)
    classes: ClassResults | None = None
    numbers: NumberResults | None = None
    outputs: list[list[Score]] = field(default_factory=list)
    anomalies: np.ndarray | None = None
    permuted: Permuted | None = None
    staged: tuple[np.ndarray, np.ndarray] | None = None
    dependences: list[Dependence] = field(default_factory=list)
    drift: Drift | None = None
    alone: tuple[np.ndarray, float] | None = None

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return feature_names(self.estimator)

    @classmethod
    def of(cls, estimator: Any, X: Any = None, y: Any = None) -> Results:
        """The results of a fitted estimator, and of rows."""
        _check(estimator, X, y)
        results = cls(estimator, rows=None if X is None else Rows.read(estimator, X, y))
        results.oob = _oob_score(estimator)
        results.importances = getattr(estimator, "feature_importances_", None)
        if results.importances is not None:
            results.spread = importance_spread(estimator)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # of huge targets
            if results.rows is not None:
                results._score(results.rows)
                results._explain(results.rows)
        return results

    def _score(self, rows: Rows) -> None:
        """Compare predictions with targets."""
        model, table = rows.predictor(), rows.table
        if rows.labels is not None:
            proba = model.predict_proba(table)
            outputs = [*zip(rows.labels, [proba] if len(rows.labels) == 1 else proba, strict=True)]
            results = [scores.class_results(*output) for output in outputs]
            if len(results) == 1:
                self.classes, self.scores = results[0], results[0].scores
                return
            right = [labels.codes == labels.known[p.argmax(axis=1)] for labels, p in outputs]
            n_right = int(np.all(right, axis=0).sum())
            ends = scores.wilson(n_right, rows.n)
            self.scores = [Score("accuracy, all outputs right", n_right / rows.n, *ends, "Wilson")]
            self.outputs = [output.scores[:2] for output in results]
        elif rows.numbers is not None:
            y = rows.numbers
            predicted = np.asarray(model.predict(table), np.float64).reshape(y.shape)
            if y.shape[1] == 1:
                self.numbers = scores.number_results(y[:, 0], predicted[:, 0])
                self.scores = self.numbers.scores
                return
            pairs = zip(y.T, predicted.T, strict=True)
            self.outputs = [scores.number_scores(*pair) for pair in pairs]
            mean = float(np.mean([output[0].value for output in self.outputs]))
            self.scores = [Score("R², mean of the outputs", mean)]
        elif hasattr(self.estimator, "score_samples"):
            self.anomalies = np.asarray(model.score_samples(table))

    def _explain(self, rows: Rows) -> None:
        """What features and trees do, and how the rows differ from those of the training."""
        self.drift, importances = drift(rows), self.importances
        self.alone = alone(rows) if rows.has_targets else None
        if importances is None or not hasattr(self.estimator, "predict"):
            return
        order = np.argsort(-importances, kind="stable")
        order = order[importances[order] > 0]
        if rows.has_targets:
            self.staged = staged_error(rows)
            self.permuted = permuted(rows, importances)
            if self.permuted is not None:
                order = self.permuted.features
        if self.estimator.n_outputs_ == 1:
            shown = (dependence(rows, int(f)) for f in order[:SHOWN_DEPENDENCES])
            self.dependences = [found for found in shown if found is not None]


def _check(estimator: Any, X: Any, y: Any) -> None:
    kind = type(estimator).__name__
    check_is_fitted(estimator)
    if not isinstance(getattr(estimator, "forest_", None), Forest):
        raise TypeError(
            f"this {kind} holds other estimators than gpuforest's trees, and there is a report of "
            "these alone"
        )
    if y is not None and X is None:
        raise ValueError("y without X: pass the rows that y belongs to, too")
    if y is not None and not (is_classifier(estimator) or is_regressor(estimator)):
        raise ValueError(f"this {kind} has no target to compare with: leave out y")


def _oob_score(estimator: Any) -> Score | None:
    """The out-of-bag score; with an interval where it is a share of known rows."""
    value = finite(getattr(estimator, "oob_score_", None))
    if value is None:
        return None
    if callable(getattr(estimator, "oob_score", None)):
        return Score("out-of-bag score", value)
    if not is_classifier(estimator):
        return Score("out-of-bag R²", value)
    n = getattr(estimator, "_training_", {}).get("rows")
    means = getattr(estimator, "oob_decision_function_", None)
    if means is not None:  # rows that every tree drew have no prediction
        n = int((~np.isnan(means.reshape(len(means), -1)[:, 0])).sum())
    if not n:
        return Score("out-of-bag accuracy", value)
    return Score("out-of-bag accuracy", value, *scores.wilson(round(value * n), n), "Wilson")


def score_of(rows: Rows) -> Callable[[Any], float]:
    """A function that scores predictions: accuracy, of several outputs the share of the rows that
    are right in all of them, or R², NaN where numbers do not vary."""
    if rows.labels is not None:
        truth = np.stack([o.names[o.codes].astype(object) for o in rows.labels], axis=1)

        def accuracy(predicted: Any) -> float:
            predicted = np.asarray(predicted, object).reshape(len(truth), -1)
            return float((predicted == truth).all(axis=1).mean())

        return accuracy
    assert rows.numbers is not None
    unit = np.abs(rows.numbers).max() or 1.0  # so that no square is too large or too small
    y = rows.numbers / unit
    spread = ((y - y.mean(axis=0)) ** 2).sum(axis=0)

    def r2(predicted: Any) -> float:
        errors = ((y - np.asarray(predicted).reshape(y.shape) / unit) ** 2).sum(axis=0)
        varies = spread > 0
        return float(np.mean(1 - errors[varies] / spread[varies])) if varies.any() else np.nan

    return r2


def permuted(rows: Rows, importances: np.ndarray) -> Permuted | None:
    """Permutation importances (Breiman 2001) of the features that matter most by another measure.

    None: there are too few rows, or numbers do not vary.
    """
    order = np.argsort(-importances, kind="stable")
    features = order[importances[order] > 0][:PERMUTED_FEATURES]
    rows = rows.sample(_most(rows, PERMUTING // (REPEATS * max(len(features), 1)), PERMUTED_ROWS))
    model, score, table = rows.predictor(), score_of(rows), rows.dense
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
    mean, std = falls.mean(axis=1), falls.std(axis=1)
    best = np.argsort(-mean, kind="stable")
    return Permuted(features[best], mean[best], std[best], before, rows.n)


def _most(rows: Rows, steps: int, most: int) -> int:
    """How many rows can go through all trees by so many steps, `most` at the most."""
    forest = rows.estimator.forest_
    depth = math.log2(forest.n_nodes / forest.n_trees + 1)  # of a balanced tree
    return max(FEWEST_ROWS, min(most, int(steps / (forest.n_trees * depth))))


def dependence(rows: Rows, feature: int) -> Dependence | None:
    """The partial dependence (Friedman 2001) on a feature; None: it has a single value."""
    F = rows.estimator.n_features_in_
    most = min(DEPENDENCE_ROWS, MOST_VALUES // (GRID * F))
    sample = rows.sample(_most(rows, DEPENDING // GRID, most))
    column = rows.sample(STAGED_ROWS).column(feature)
    column, shares = column[~np.isnan(column)], None
    values, counts = np.unique(column, return_counts=True)
    if len(values) < 2:
        return None
    deciles = np.quantile(column, DECILES)
    if feature in rows.estimator.forest_.edges.categories:
        best = np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]
        values, shares = values[best], counts[best] / len(column)
    elif len(values) > GRID:
        levels = np.linspace(0.01, 0.99, GRID)
        grid = np.unique(np.quantile(column, levels))
        if len(grid) < GRID // 2:  # one value has most rows: others are drawn from the rest
            grid = np.unique(np.concatenate([grid, np.quantile(values, levels[1::2])]))
        values = grid
    table, model = np.tile(sample.dense, (len(values), 1)), rows.predictor()
    table[:, feature] = np.repeat(values, sample.n)
    predict = model.predict_proba if is_classifier(model) else model.predict
    predicted = np.asarray(predict(table)).reshape(len(values), sample.n, -1)
    return Dependence(feature, values, shares, predicted.mean(axis=1), sample.n, deciles)


def staged_error(rows: Rows) -> tuple[np.ndarray, np.ndarray] | None:
    """Numbers of trees, or of rounds of boosting, and the error of the first so many: 1 - accuracy,
    or 1 - R². None: the trees' predictions are not added up."""
    estimator, forest = rows.estimator, rows.estimator.forest_
    K = forest.coding.n_values if forest.baseline is not None else 1
    n_stages = forest.n_trees // K
    quantiles = hasattr(estimator, "default_quantiles")
    if forest.combine == "median" or quantiles or n_stages < 2 or estimator.n_outputs_ > 1:
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
