"""What a model file holds of boosting beside the trees.

baseline           f64[K]      units   f64[T, 2]     see boosting/model.py
train_score        f64[n]      validation_score  f64[n]
header "boosting"  {"loss": ..., "quantile": ..., "l2": ..., "stops": whether rounds end early}
                   and, where scores are a function's, which no file holds, {"scored_by": its name}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.boosting.losses import NUMBERS, Loss
from gpuforest.boosting.model import BoostedCoding
from gpuforest.common.errors import need
from gpuforest.forest import Forest
from gpuforest.inspection.model_facts import scorer_name

ARRAYS = {
    **dict.fromkeys(("baseline", "train_score", "validation_score"), (("F64",), 1)),
    "units": (("F64",), 2),
}
TYPES = {"loss": str, "quantile": float, "l2": float, "stops": bool}
SCORED_BY = "scored_by"


def arrays_of(estimator: Any) -> dict[str, np.ndarray]:
    """The arrays of a boosted model."""
    coding = estimator.forest_.coding
    scores = {
        name: own
        for name in ("train_score", "validation_score")
        if len(own := getattr(estimator, f"{name}_"))
    }
    return {"baseline": coding.baseline, "units": coding.units, **scores}


def header_of(estimator: Any) -> dict[str, Any]:
    """The header's part of a boosted model."""
    coding = estimator.forest_.coding
    loss, stops = coding.loss, bool(estimator.do_early_stopping_)
    found = {"loss": loss.name, "quantile": loss.quantile, "l2": coding.l2, "stops": stops}
    by = scorer_name(estimator)
    return found if by is None else found | {SCORED_BY: by}


def read_coding(
    header: dict[str, Any], arrays: dict[str, np.ndarray], classes: np.ndarray | None
) -> BoostedCoding:
    """The coding of a file; that its arrays fit the trees is not checked yet."""
    found = header["boosting"]
    need(found.keys() - {SCORED_BY} == TYPES.keys(), "boosting of something else")
    types = TYPES | {SCORED_BY: str} if SCORED_BY in found else TYPES
    need(all(type(found[name]) is kind for name, kind in types.items()), "boosting of other types")
    need(("baseline" in arrays) and ("units" in arrays), "boosting without its arrays")
    name, quantile = found["loss"], found["quantile"]
    need(name in NUMBERS or name == "log_loss", f"an unknown loss {name!r:.80}")
    need((name == "log_loss") == (classes is not None), "classes and loss disagree")
    need(0 <= quantile <= 1, "a quantile out of range")
    loss = Loss.of(name, quantile, 0 if classes is None else len(classes))
    return BoostedCoding(
        classes, np.zeros(1), 1.0, loss=loss, baseline=arrays["baseline"], units=arrays["units"],
        l2=found["l2"],
    )  # fmt: skip


def set_scores(estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The attributes of a fit that the trees do not have."""
    for name in ("train_score", "validation_score"):
        # infinite ones are losses beyond float64, and a user's scorer may give NaN
        setattr(estimator, f"{name}_", arrays.get(name, np.zeros(0)))
    if SCORED_BY in header["boosting"]:
        estimator.scored_by_ = header["boosting"][SCORED_BY]
    estimator.do_early_stopping_ = header["boosting"]["stops"]


def set_rounds(estimator: Any, forest: Forest, errors: np.ndarray | None) -> None:
    """Set the weights and errors of the trees of AdaBoost."""
    boosted = hasattr(estimator, "_keep_rounds")
    need(boosted == (forest.tree_weights is not None), "weights of trees amiss")
    need(boosted == (errors is not None), "errors of trees amiss")
    if errors is None or forest.tree_weights is None:
        return
    need(forest.combine == estimator._combine(), "trees that combine in another way")
    need(forest.n_trees <= estimator.n_estimators, "more trees than rounds")
    need(errors.shape == (forest.n_trees,), "errors of trees that do not fit")
    need(bool(((errors >= 0) & (errors <= 1)).all()), "an error of a tree out of range")
    estimator._keep_rounds(forest.tree_weights, errors)
