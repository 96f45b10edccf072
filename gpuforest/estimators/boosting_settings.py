"""The parameters of gradient boosting: what they may be, and what a fit takes for them."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.boosting.losses import Loss
from gpuforest.boosting.memory import BoostedFit
from gpuforest.boosting.rounds import words_of
from gpuforest.boosting.stopping import validation_rows
from gpuforest.engine.criteria import CRITERIA
from gpuforest.engine.memory import Fit
from gpuforest.engine.records import Rules
from gpuforest.engine.sampling import Sampling
from gpuforest.estimators.settings import UNLIMITED


def groups_of(wanted: Any, n_features: int) -> np.ndarray:
    """The sets of features that may meet on a path, bool[n, F]; bool[0, F]: all may.

    wanted : what a user passes as `interaction_cst`

    Raises
    ------
    ValueError : sets of something else than features
    """
    if wanted is None:
        return np.zeros((0, n_features), np.bool_)
    if isinstance(wanted, str):
        size = 1 if wanted == "no_interactions" else 2
        wanted = list(combinations(range(n_features), min(size, n_features)))
    try:
        groups = [set(group) for group in wanted]
    except TypeError:
        raise ValueError(
            f"Interaction constraints must be a sequence of tuples or lists, got: {wanted!r}."
        ) from None
    for group in groups:
        for x in group:
            if not (isinstance(x, Integral) and 0 <= int(x) < n_features):
                raise ValueError(
                    "Interaction constraints must consist of integer indices in"
                    f" [0, n_features - 1] = [0, {n_features - 1}], specifying the"
                    " position of features, got invalid indices:"
                    f" {group!r}"
                )
    if rest := set(range(n_features)).difference(*groups):
        groups.append(rest)
    found = np.zeros((len(groups), n_features), np.bool_)
    for row, group in zip(found, groups, strict=True):
        row[[int(x) for x in group]] = True
    return found


MANY_ROWS = 10_000  # early_stopping="auto" stops early where there are more


def stops_early(early_stopping: Any, n_rows: int) -> bool:
    """Whether a fit of so many rows watches its scores, without rows to validate on."""
    return n_rows > MANY_ROWS if early_stopping == "auto" else bool(early_stopping)


def most_leaves(estimator: Any) -> tuple[int, int]:
    """The most levels below the root, and the most leaves."""
    depth, leaves = estimator.max_depth, estimator.max_leaf_nodes
    return (
        UNLIMITED if depth is None else min(int(depth), UNLIMITED),
        UNLIMITED if leaves is None else min(int(leaves), UNLIMITED),
    )


def expected(estimator: Any, X: Any, n_classes: int) -> BoostedFit:
    """The fit of a table of the shape and dtype of X, as far as parameters tell; n_classes : 0
    for regression."""
    loss = Loss.of(estimator.loss, getattr(estimator, "quantile", None), n_classes)
    stops = stops_early(estimator.early_stopping, X.shape[0])
    held = 0
    if stops and estimator.validation_fraction is not None:
        held = validation_rows(X.shape[0], estimator.validation_fraction)
    weighted = getattr(estimator, "class_weight", None) is not None
    return fit_of(estimator, X, loss, (X.shape[0] - held, held), stops, weighted)


def fit_of(
    estimator: Any,
    X: Any,
    loss: Loss,
    n_rows: tuple[int, int],
    stops: bool,
    weighted: bool,
    most_categories: int = 0,
) -> BoostedFit:
    """The facts about a fit that its memory depends on.

    X : anything with the shape and the dtype of the table
    n_rows : to train on, and to validate on; if the first are not all of X, they are a copy
    """
    depth, leaves = most_leaves(estimator)
    n_train, splits = n_rows[0], n_rows[0] < X.shape[0]
    F, size = X.shape[1], min(8, max(4, X.dtype.itemsize))
    rules = Rules(CRITERIA["squared_error"], F, 1, 2, 1, 0.0)
    table = Fit(
        n_rows=n_train, n_features=F, n_trees=1, n_channels=3, is_classes=False,
        max_bins=max(int(estimator.max_bins), most_categories + 2), target_bytes=0,
        value_bytes=size, copied=X.dtype not in (np.float32, np.float64), scores_bytes=0,
        sampling=Sampling(n_train, 0, None), rules=rules,
    )  # fmt: skip
    # labels become codes, and those numbers; what is split is there twice
    labels = 16 if is_classifier(estimator) else 8
    return BoostedFit(
        table=table,
        n_train=n_train,
        n_validation=n_rows[1],
        n_raw=loss.n_raw,
        n_words=words_of(loss, weighted, n_train),
        n_rounds=int(estimator.max_iter),
        max_leaves=leaves,
        max_depth=depth,
        min_rows=int(estimator.min_samples_leaf),
        target_bytes=labels + 8 * splits + (12 + 8 * splits) * weighted,
        copied=X.shape[0] * F * X.dtype.itemsize if splits else 0,
        stops=stops,
        keeps_rows=stops and estimator.scoring != "loss",
        by_order=loss.by_order,
    )
