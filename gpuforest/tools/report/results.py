"""All that a report tells of a model and of rows, computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from gpuforest.engine.forest import Forest
from gpuforest.explain.importances import importance_spread
from gpuforest.explain.model_facts import finite
from gpuforest.tools.report import effects, scores
from gpuforest.tools.report.rows import Drift, Rows, alone, drift
from gpuforest.tools.report.scores import ClassResults, NumberResults, Score

SHOWN_DEPENDENCES = 6


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
    permuted: effects.Permuted | None = None
    staged: tuple[np.ndarray, np.ndarray] | None = None
    dependences: list[effects.Dependence] = field(default_factory=list)
    drift: Drift | None = None
    alone: tuple[np.ndarray, float] | None = None

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
            self.staged = effects.staged_error(rows)
            self.permuted = effects.permuted(rows, importances)
            if self.permuted is not None:
                order = self.permuted.features
        if self.estimator.n_outputs_ == 1:
            shown = (effects.dependence(rows, int(f)) for f in order[:SHOWN_DEPENDENCES])
            self.dependences = [dependence for dependence in shown if dependence is not None]


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
