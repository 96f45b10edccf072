"""Results of a fit from the rows out of bag: scores, predictions, importances; trees that judge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpuforest.common import progress
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Sampling
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.task import Task
from gpuforest.estimators.tuning import as_bunch
from gpuforest.explain.importances import unbiased_importances
from gpuforest.explain.oob import Curve, OutOfBag, curve_points


def learned(
    plan: TrainingPlan, task: Task, forest: Forest, known: dict[str, Any]
) -> dict[str, Any]:
    """The attributes that a fitted forest learns from rows out of bag; `known`: the attributes that
    tuning has set."""
    plan, found, asked = plan.evaluation, dict(known), plan.settings
    wanted, judges = bool(asked.oob_score) or asked.unbiased_importances, forest
    if plan.blocks is not None and "_judges_" not in found:
        grown = plan.evaluation_forest(forest.n_trees) if wanted else None
        found["_judges_"] = (grown, plan.training.sampling) if wanted else None
    if plan.blocks is not None and wanted:
        judges = found["_judges_"][0]
    if asked.oob_score:
        with progress.stage("out of bag"):
            means, curve = predictions(plan, task, judges)
            found = {"oob_curve_": as_bunch(curve, "n_estimators")} | found
            found |= task.judged(plan, forest, means)
    if asked.unbiased_importances:
        found["_unbiased_importances_"] = importances(plan, judges)
    return found


def predictions(plan: TrainingPlan, task: Task, judges: Forest) -> tuple[np.ndarray, Curve]:
    """Out-of-bag predictions f64[N, n_values], and the errors on the way. Rows that every tree drew
    have NaN, with a warning."""
    forest, rows, curve = task.predicting(judges), plan.sample(), Curve()
    oob = OutOfBag(plan.training, plan.backend, n_values=forest.values.shape[1])
    error = task.error(plan.checked, rows)
    for point in oob.follow([forest], curve_points(forest.n_trees), error, rows=rows):
        curve.append(point)
        progress.report(point[0], forest.n_trees)
    means = oob.means()
    if plan.blocks is None and np.isnan(means).any():
        warn_of_rows_in_all_bags(stacklevel=2, word=task.out_of_bag_word)
    return means, curve


def importances(plan: TrainingPlan, judges: Forest) -> np.ndarray:
    """The mean unbiased importances f64[n_features] of the trees."""
    training = plan.training
    with progress.stage("importances"):
        of_trees = unbiased_importances(
            judges, training.matrix, training.target.y, training.sampling, plan.backend
        )
    known = of_trees[:, ~np.isnan(of_trees[0])]
    if known.shape[1]:
        return np.asarray(known.mean(axis=1))
    warnings.warn(
        "No row is out of any bag, so unbiased importances are unknown (NaN): lower max_samples",
        UserWarning,
        stacklevel=2,
    )
    return np.full(len(of_trees), np.nan)


def warn_of_rows_in_all_bags(stacklevel: int, word: str = "OOB") -> None:
    """Warn as scikit-learn does that some rows have no out-of-bag predictions."""
    warnings.warn(
        "Some inputs do not have OOB scores. This probably means too few trees were used to "
        f"compute any reliable {word} estimates.",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def evaluation_forest(estimator: Any) -> tuple[Forest, Sampling]:
    """The trees of a fitted forest that judge rows, and how they drew rows. With blocks of time
    the forest itself does not judge. A ValueError if there are no such trees, or they are not
    known."""
    if not hasattr(estimator, "_judges_"):
        return estimator.forest_, known_bags(estimator)
    if estimator._judges_ is None:
        raise ValueError(
            "rows are judged by blocks, and the trees that do so are known only to the estimator "
            "that was fitted with oob_score=True: fit it so"
        )
    return estimator._judges_  # type: ignore[no-any-return]


def known_bags(forest: Any) -> Sampling:
    """How the bags of a fitted forest were drawn; a ValueError if it has none or does not know."""
    if not hasattr(forest, "_sampling_"):
        raise ValueError(
            "the bags are not known to Bagging* that were loaded, older files and converted "
            "forests: fit it again, the same random_state gives the same trees"
        )
    if not forest._sampling_.n_draws:
        raise ValueError("no row is out of bag without bags: fit with bootstrap=True")
    return forest._sampling_  # type: ignore[no-any-return]


def check_rows(sampling: Sampling, n_rows: int) -> None:
    """Refuse another number of rows than that of the training data."""
    if n_rows != sampling.n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but the forest was fitted to {sampling.n_rows}: pass the "
            "data that it was fitted to"
        )
