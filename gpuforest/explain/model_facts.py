"""Facts about a fitted estimator and the rounds of a boosted one, for scripts and reports."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from html import escape
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor

from gpuforest.common.text import one_line
from gpuforest.core.bins import categories_of
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import is_leaf
from gpuforest.explain.paths import tree_depths
from gpuforest.kernels.gradients import ranking

WHERE_IT_RUNS = ("backend", "n_jobs", "memory_limit")  # parameters that are the reader's own matter
DIGESTED = (  # arrays of a forest
    *("nodes", "tree_offsets", "leaf_sums", "leaf_impurity", "leaf_values"),
    *("node_values", "node_errors", "sets", "tree_weights"),
)
PLAIN = str, int, float
SHOWN = 6  # classes, or raw predictions, that a summary names


def has_quantiles(estimator: Any) -> bool:
    """Whether a prediction of boosting is of several quantiles."""
    quantile: Any = getattr(estimator, "quantile", None)
    return np.ndim(quantile) > 0


def model_facts(estimator: Any) -> dict[str, Any]:
    """Facts about a fitted estimator, for JSON (NumPy's numbers may be among them)."""
    forest, names = estimator.forest_, feature_names(estimator)
    depths, classes = tree_depths(forest), [labels.tolist() for labels in forest.coding.labels]
    gains = getattr(estimator, "feature_importances_", None)  # isolation forests have none
    importances = [] if gains is None else zip(names, gains, strict=True)
    return {
        "estimator": type(estimator).__name__,
        "seed": estimator.seed_,
        "task": task_of(estimator),
        "outputs": estimator.n_outputs_,
        "features": estimator.n_features_in_,
        "categories": {names[f]: len(categories_of(c)) for f, c in forest.edges.known.items()},
        "classes": (classes if forest.coding.several else classes[0]) if classes else None,
        "trees": forest.n_trees,
        "nodes": forest.n_nodes,
        "leaves": int(is_leaf(forest.nodes).sum()),
        "depth": int(depths.max()),
        "min_depth": int(depths.min()),
        "mean_depth": float(depths.mean()),
        "score": score_name(estimator).replace("²", "2"),
        "oob_score": finite(getattr(estimator, "oob_score_", None)),
        "importances": dict(sorted(importances, key=lambda item: -item[1])),
        **({"boosting": rounds_facts(estimator)} if forest.baseline is not None else {}),
    }


def task_of(estimator: Any) -> str:
    """What an estimator is for."""
    kinds = {
        "classification": is_classifier, "survival": is_survival, "regression": is_regressor,
        "anomalies": is_outlier_detector, "ranking": is_ranker, "effects": is_effects,
    }  # fmt: skip
    return next((task for task, is_kind in kinds.items() if is_kind(estimator)), "embedding")


def is_survival(estimator: Any) -> bool:
    """Whether it is a survival forest, whose target is whether an event came, and when."""
    return hasattr(type(estimator), "unique_times_")


def is_effects(estimator: Any) -> bool:
    """Whether it predicts effects of a treatment, which no row shows."""
    return hasattr(type(estimator), "effect_interval")


def is_ranker(estimator: Any) -> bool:
    """Whether it ranks the rows of queries, which its score needs."""
    return getattr(estimator, "loss", None) in ranking.NAMES


def score_name(estimator: Any) -> str:
    """What `score` and `oob_score_` are called."""
    if is_survival(estimator):
        return "concordance"
    if is_ranker(estimator):
        return "NDCG"
    if is_effects(estimator):
        return "R² over the average effect"
    return "accuracy" if is_classifier(estimator) else "R²"


def changed_settings(estimator: Any) -> dict[str, Any]:
    """The parameters that differ from the defaults, without backend, threads and memory."""
    return {
        name: getattr(estimator, name)
        for name, parameter in signature(type(estimator)).parameters.items()
        if name not in WHERE_IT_RUNS and np.any(getattr(estimator, name) != parameter.default)
    }


def feature_names(estimator: Any) -> list[str]:
    """The features' names, or feature_0, feature_1, ... where the training data had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"feature_{i}" for i in range(estimator.n_features_in_)] if names is None else [*names]


def finite(score: float | None) -> float | None:
    """A score, or None where there is none (of too few rows): JSON has no NaN."""
    return float(score) if score is not None and np.isfinite(score) else None


def forest_digest(forest: Forest) -> str:
    """SHA-256 of all of a forest that predictions depend on, in little-endian bytes: equal for
    equal models on any backend and machine."""
    digest, edges, coding = hashlib.sha256(), forest.edges, forest.coding
    arrays = {name: getattr(forest, name) for name in DIGESTED}
    arrays |= {f"edge_{name}": getattr(edges, name) for name in ("values", "offsets", "kinds")}
    arrays |= {"centre": coding.centre, "baseline": forest.baseline, "priors": coding.priors}
    arrays |= {"units": getattr(coding, "units", None)}
    for name, array in arrays.items():
        if array is not None:
            kind = "<f8" if array.dtype.kind == "f" else "<i8" if array.dtype.kind == "i" else "<u8"
            digest.update(f"{name}{array.shape}".encode() + array.astype(kind).tobytes())
    facts: list[Any] = [c.tolist() for c in coding.labels]
    facts += [[f, list(names)] for f, names in sorted(edges.known.items())]
    for part in (forest, coding):
        facts.append({n: fact for n, fact in vars(part).items() if isinstance(fact, PLAIN)})
    loss = vars(coding).get("loss")
    if loss is not None:
        plain = (*PLAIN, tuple)  # several quantiles
        facts.append({n: fact for n, fact in vars(loss).items() if isinstance(fact, plain)})
    digest.update(json.dumps(facts, default=str).encode())
    return digest.hexdigest()


def measure_of(estimator: Any) -> tuple[str, bool]:
    """What the rounds of a boosted model were judged by, and whether less of it is better."""
    by = scorer_name(estimator.scoring, getattr(estimator, "scored_by_", None))
    if by is None and estimator.scoring == "loss":
        return f"loss: {estimator.forest_.coding.loss.name}", True
    return f"score: {by or estimator.scoring or score_name(estimator)}", False


def scorer_name(scoring: Any, kept: str | None) -> str | None:
    """The name of the function that rounds were judged by; None if no function judged them."""
    if callable(scoring):
        return str(getattr(scoring, "__name__", type(scoring).__name__))
    return kept


def kept_curves(estimator: Any) -> dict[str, np.ndarray]:
    """Losses or scores before the first round and after each, "training" and "validation"."""
    sign = -1.0 if measure_of(estimator)[1] else 1.0
    curves = {"training": estimator.train_score_, "validation": estimator.validation_score_}
    return {name: sign * scores for name, scores in curves.items() if len(scores)}


def best_round(values: np.ndarray, less_is_better: bool) -> int:
    """The first round of the best loss or score, where a curve begins before the first round."""
    losses = values if less_is_better else -values
    return int(np.where(np.isnan(losses), np.inf, losses).argmin())


def tree_leaves(forest: Forest) -> np.ndarray:
    """Leaves of each tree, i64[T]."""
    return np.add.reduceat(is_leaf(forest.nodes).astype(np.int64), forest.tree_offsets[:-1])


def rounds_facts(estimator: Any) -> dict[str, Any]:
    """Facts about a fitted boosted model, for JSON."""
    forest, coding = estimator.forest_, estimator.forest_.coding
    K, rounds = coding.round_trees, estimator.n_iter_
    names = [None] * K if K == 1 or coding.classes is None else coding.classes.tolist()
    shapes = zip(tree_depths(forest).tolist(), tree_leaves(forest).tolist(), strict=True)
    trees = [
        {"round": t // K + 1, "class": names[t % K], "depth": depth, "leaves": leaves}
        for t, (depth, leaves) in enumerate(shapes)
    ]
    curves, (measure, less) = kept_curves(estimator), measure_of(estimator)
    judged = curves.get("validation")
    return {
        "rounds": rounds,
        "trees_per_round": K,
        "loss": coding.loss.name,
        "learning_rate": estimator.learning_rate,
        "l2_regularization": coding.l2,
        "baseline": coding.baseline.tolist(),
        "stopped_early": bool(estimator.do_early_stopping_ and rounds < estimator.max_iter),
        "measure": measure if curves else None,
        "best_round": None if judged is None else best_round(judged, less),
        "curves": {name: [*map(finite, values)] for name, values in curves.items()},
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
        kind, best = facts["measure"].partition(":")[0], facts["best_round"]
        numbers = ["no finite number" if value is None else f"{value:.6g}" for value in values]
        text = f"{numbers[-1]} after the last round"
        if name == "validation":
            text += f", {numbers[best]} after the best, round {best}"
        rows.append((f"{name} {kind}", text))
    return rows


def summary_html(estimator: Any) -> str:
    """A small table of what a fitted estimator is."""
    forest: Forest = estimator.forest_
    coding, depths = forest.coding, tree_depths(forest)
    deep, outputs = f"{depths.max():,}", ("outputs", str(coding.n_outputs))
    if len(depths) > 1:
        deep = f"{depths.min():,} to {deep}, on average {depths.mean():.1f}"
    if coding.classes is not None:
        names = [*map(one_line, coding.classes[:SHOWN]), *["..."] * (len(coding.classes) > SHOWN)]
        outputs = "classes", f"{len(coding.classes)}: {', '.join(names)}"
    elif coding.several:
        counts = ", ".join(str(len(c)) for c in coding.several)
        outputs = "outputs", f"{coding.n_outputs} of {counts} classes"
    score, backend = (getattr(estimator, name, None) for name in ("oob_score_", "backend_"))
    facts = [
        ("trees", f"{forest.n_trees:,}"),
        ("nodes", f"{forest.n_nodes:,}, of which {int(is_leaf(forest.nodes).sum()):,} leaves"),
        ("depth", deep),
        *(rounds_rows(rounds_facts(estimator)) if forest.baseline is not None else []),
        ("size", f"{n_bytes(forest):,} bytes"),
        *([] if backend is None else [("backend", backend)]),  # models from files have none
        outputs,
        *([] if score is None else [("out-of-bag score", f"{score:.4f}")]),
    ]
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return f'<table class="gpuforest-summary"><tbody>{rows}</tbody></table>'


def n_bytes(forest: Forest) -> int:
    """Bytes of a forest's arrays."""
    parts = [getattr(part, f.name) for part in (forest, forest.edges) for f in fields(part)]
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
