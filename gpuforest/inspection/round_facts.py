"""The rounds of a boosted model: how its loss fell, which one was best, and what each grew."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.forest import Forest
from gpuforest.inspection.shape import tree_depths
from gpuforest.nodes import is_leaf

SHOWN = 6  # raw predictions in a summary


def measure_of(estimator: Any) -> tuple[str, bool]:
    """What the rounds of a boosted model were judged by, and whether less of it is better."""
    if (by := scorer_name(estimator)) is not None:
        return f"score: {by}", False
    if estimator.scoring == "loss":
        loss: Any = estimator.forest_.coding.loss
        return f"loss: {loss.name}", True
    if estimator.scoring is None:
        return f"score: {'accuracy' if is_classifier(estimator) else 'R²'}", False
    return f"score: {estimator.scoring}", False


def scorer_name(estimator: Any) -> str | None:
    """The name of the function that rounds were judged by; None: it was none."""
    if callable(estimator.scoring):
        return str(getattr(estimator.scoring, "__name__", type(estimator.scoring).__name__))
    found: str | None = getattr(estimator, "scored_by_", None)  # of a model from a file
    return found


def kept_curves(estimator: Any) -> dict[str, np.ndarray]:
    """The losses, or scores, before the first round of a boosted model and after each: of
    "training" and of "validation" rows, if the fit kept them."""
    sign = -1.0 if measure_of(estimator)[1] else 1.0
    kept = {"training": estimator.train_score_, "validation": estimator.validation_score_}
    return {name: sign * scores for name, scores in kept.items() if len(scores)}


def best_round(values: np.ndarray, less_is_better: bool) -> int:
    """The first round of the best loss or score, where a curve begins before the first round."""
    worst = np.inf if less_is_better else -np.inf
    known = np.where(np.isnan(values), worst, values)
    return int(known.argmin() if less_is_better else known.argmax())


def tree_leaves(forest: Forest) -> np.ndarray:
    """Leaves of each tree, i64[T]."""
    return np.add.reduceat(is_leaf(forest.nodes).astype(np.int64), forest.tree_offsets[:-1])


def rounds_facts(estimator: Any) -> dict[str, Any]:
    """Facts about a fitted boosted model, for JSON."""
    forest = estimator.forest_
    coding, K = forest.coding, forest.coding.n_values
    names = coding.classes.tolist() if K > 1 else [None]
    shapes = zip(tree_depths(forest).tolist(), tree_leaves(forest).tolist(), strict=True)
    trees = [
        {"round": t // K + 1, "class": names[t % K], "depth": depth, "leaves": leaves}
        for t, (depth, leaves) in enumerate(shapes)
    ]
    curves, (measure, less) = kept_curves(estimator), measure_of(estimator)
    judged = curves.get("validation")
    return {
        "rounds": estimator.n_iter_,
        "trees_per_round": K,
        "loss": coding.loss.name,
        "learning_rate": estimator.learning_rate,
        "l2_regularization": coding.l2,
        "baseline": coding.baseline.tolist(),
        "stopped_early": bool(estimator.do_early_stopping_)
        and estimator.n_iter_ < estimator.max_iter,
        "measure": measure if curves else None,
        "best_round": None if judged is None else best_round(judged, less),
        "curves": {
            name: [value if np.isfinite(value) else None for value in values.tolist()]  # as JSON
            for name, values in curves.items()
        },
        "trees": trees,
    }


def rounds_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts of `rounds_facts` as names and values for a reader."""
    leaves, K = [tree["leaves"] for tree in facts["trees"]], facts["trees_per_round"]
    grown = f"{facts['rounds']:,}" + f", each of {K} trees, one a class" * (K > 1)
    span = f"{min(leaves):,} to {max(leaves):,}, on average {np.mean(leaves):.1f}"
    baseline = ", ".join(f"{value:.6g}" for value in facts["baseline"][:SHOWN])
    more = ", ..." * (len(facts["baseline"]) > SHOWN)
    rows = [
        ("rounds", grown + ", stopped early" * facts["stopped_early"]),
        ("leaves of a tree", span),
        ("loss", f"{facts['loss']}, learning rate {facts['learning_rate']:g}"),
        ("baseline", f"{baseline}{more}: the raw prediction before the first round"),
    ]
    for name, values in facts["curves"].items():
        kind, text = facts["measure"].partition(":")[0], f"{_said(values[-1])} after the last round"
        if name == "validation":
            best = facts["best_round"]
            text += f", {_said(values[best])} after the best, round {best}"
        rows.append((f"{name} {kind}", text))
    return rows


def _said(value: float | None) -> str:
    """A loss or score in words; None: it is no finite number."""
    return "no finite number" if value is None else f"{value:.6g}"
