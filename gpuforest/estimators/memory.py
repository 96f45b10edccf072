"""An estimate of the memory that a fit with an estimator's parameters will take."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.backends import base, registry
from gpuforest.backends.booster import words_of
from gpuforest.common import arguments, dtypes
from gpuforest.core import criteria
from gpuforest.core.bins import Categories
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.estimators.boosting_fit import most_leaves, stops_early, validation_rows
from gpuforest.estimators.rows import Rows
from gpuforest.estimators.settings import Settings, rules_of, sampling_of
from gpuforest.growing import boosting_memory
from gpuforest.growing.boosting_memory import BoostedFit
from gpuforest.growing.edges import FEW_VALUES, MANY_BINS
from gpuforest.growing.memory import FOREST_SIZE, Fit, MemoryEstimate, Table, within
from gpuforest.kernels.gradients import losses
from gpuforest.splits.kinds import kind_of

logger = logging.getLogger("gpuforest")
SMALL = 2**14  # values of X, and channels of all rows in all trees
_warned: set[str] = set()  # the warnings that this process has given


def estimate_memory(
    estimator: Any, n_samples: int, n_features: int, n_classes: int = 2, n_outputs: int = 1,
    dtype: Any = np.float32, backend: str | None = None,
) -> MemoryEstimate:  # fmt: skip
    """The memory that a fit will take, from its parameters alone.

    Parameters
    ----------
    estimator : of this package, need not be fitted
    n_samples, n_features : int
    n_classes : int, of a classifier, in each output
    n_outputs : int, outputs of y
    dtype : of X
    backend : str or None, its name; None: the estimator's own

    Returns
    -------
    MemoryEstimate
        In bytes, besides X and y. It assumes that labels have little to do with the features, for
        which trees grow largest; other labels give a smaller forest. With max_bins="auto"
        some feature is taken to have as many values as rows.

    Raises
    ------
    ValueError
        A parameter out of its range; sizes below one.
    BackendError
        The backend cannot run on this machine.

    Examples
    --------
    >>> from gpuforest import RandomForestRegressor, estimate_memory
    >>> estimate_memory(RandomForestRegressor(), 10_000, 50, backend="numpy").codes
    500000
    """
    sizes = {"n_samples": n_samples, "n_features": n_features}
    for name, size in (sizes | {"n_classes": n_classes, "n_outputs": n_outputs}).items():
        if size < 1:
            raise ValueError(f"{name}={size} must be at least 1")
    estimator._validate_params()
    X = np.broadcast_to(np.zeros((), dtype), (n_samples, n_features))
    name = estimator.backend if backend is None else backend
    threads = estimator._n_threads(n_samples, n_features)
    on = registry.get_backend(name, threads, n_rows=n_samples)
    if hasattr(estimator, "max_iter"):
        if n_outputs > 1:
            raise ValueError(f"n_outputs={n_outputs}: boosting has one output")
        n = n_classes if is_classifier(estimator) else 0
        fits = [expected_boosting(estimator, X, n, again) for again in {False, estimator.refit}]
        on, part = registry.for_boosting(on), boosting_memory.HISTOGRAM_BYTES
        return max((fit.estimate(on, part) for fit in fits), key=attrgetter("total"))
    coding = TargetCoding(None, np.zeros(n_outputs), 1.0)
    if is_classifier(estimator):
        classes = (np.arange(n_classes),) * n_outputs
        coding = TargetCoding(None, np.zeros(n_classes * n_outputs), 1.0, classes)
        if n_outputs == 1:
            coding = TargetCoding(classes[0], np.zeros(1), 1.0)
    settings = estimator._settings().for_rows(n_samples)
    if settings.max_bins == "auto":
        max_bins = FEW_VALUES if n_samples <= FEW_VALUES else MANY_BINS
        settings = replace(settings, max_bins=max_bins)
    sampling = sampling_of(settings, n_samples, None)
    if settings.class_weight is not None:
        # the weights are not known, only that their sums are other and larger than counts
        heavy = replace(sampling, factors=np.ones(1, dtypes.WEIGHT))
        balanced = settings.class_weight == "balanced_subsample" and settings.bootstrap
        sampling = replace(sampling, balance=1) if balanced else heavy
    rules = rules_of(settings, n_features, sampling, coding)
    return fit_of(settings, X, sampling, rules, coding).estimate(on)


def fit_of(
    settings: Settings, X: Any, sampling: Sampling, rules: Rules,
    coding: TargetCoding, categories: Categories | None = None,
) -> Fit:  # fmt: skip
    """The facts about a fit that its memory depends on.

    X : anything with the shape and the dtype of the table
    categories : as `BinEdges` has them; they may be more than `max_bins`
    """
    max_bins = FEW_VALUES if settings.max_bins == "auto" else int(settings.max_bins)
    coded = 4 if coding.is_classes else 8 * len(coding.centre)
    # of survival times, events, exposures and the weights made of these
    labels = 28 if rules.criterion.task == "survival" else 8 * coding.n_outputs
    judged = settings.oob_score or settings.unbiased_importances or settings.n_estimators == "auto"
    forests = 2 if sampling.blocks is not None and judged else 1  # the second judges rows
    weighed = sampling.weights is not None or settings.reweighted or forests > 1
    weights = 12 * weighed + 4 * (sampling.groups is not None or sampling.blocks is not None)
    return Fit(
        table=table_of(X, X.shape[0], max_bins, categories),
        coding=coding,
        sampling=sampling,
        rules=rules,
        kind=kind_of(rules, bool(categories)),
        n_trees=max(settings.n_trees * forests, settings.trial_trees),
        target_bytes=labels + coded + weights,
        scores_bytes=8 * coding.n_values if settings.oob_score else 0,
        most_leaves=_most_leaves(settings, coding),
        prunes=settings.prunes,
        links=settings.ccp_alpha > 0,
        reweighted=settings.reweighted,
        walks=settings.unbiased_importances,
    )


def table_of(X: Any, n_rows: int, max_bins: int, categories: Categories | None) -> Table:
    """What is known about n_rows rows of a table like X."""
    most = max(map(len, (categories or {}).values()), default=0)
    return Table(n_rows, X.shape[1], max(max_bins, most + 2), np.dtype(X.dtype))


def expected_boosting(estimator: Any, X: Any, n_classes: int, again: bool = False) -> BoostedFit:
    """The fit of a table of the shape and dtype of X, as far as parameters tell.

    n_classes : 0 for regression
    again : `refit` grows from all rows
    """
    loss = losses.Loss.of(estimator.loss, getattr(estimator, "quantile", None), n_classes)
    stops = not again and stops_early(estimator.early_stopping, X.shape[0])
    held = 0
    if stops and estimator.validation_fraction is not None:
        held = min(validation_rows(X.shape[0], estimator.validation_fraction), X.shape[0] - 1)
    weighted = getattr(estimator, "class_weight", None) is not None
    return boosted_fit_of(estimator, X, loss, (X.shape[0] - held, held), stops, weighted)


def boosted_fit_of(
    estimator: Any, X: Any, loss: losses.Loss, n_rows: tuple[int, int], stops: bool, weighted: bool,
    categories: Categories | None = None,
) -> BoostedFit:  # fmt: skip
    """The facts about a fit that its memory depends on.

    X : anything with the shape and the dtype of the table
    n_rows : to train on, and to validate on; if the first are not all of X, they are a copy
    """
    depth, leaves = most_leaves(estimator)
    splits = n_rows[0] < X.shape[0]
    # labels become codes, and those numbers; what is split is there twice
    labels = 16 if is_classifier(estimator) else 8
    return BoostedFit(
        table=table_of(X, n_rows[0], int(estimator.max_bins), categories),
        n_validation=n_rows[1],
        loss=loss,
        n_words=words_of(loss, weighted, n_rows[0]),
        n_rounds=int(estimator.max_iter),
        max_leaves=leaves,
        max_depth=depth,
        min_rows=int(estimator.min_samples_leaf),
        target_bytes=labels + 8 * splits + (12 + 8 * splits) * weighted,
        copied=X.shape[0] * X.shape[1] * X.dtype.itemsize if splits else 0,
        stops=stops,
        keeps_rows=stops and estimator.scoring != "loss",
    )


def _most_leaves(settings: Settings, coding: TargetCoding) -> float:
    """The most leaves of a pruned tree. Each of its splits gains more than `ccp_alpha`, and all
    together at most the highest impurity of classes; that of numbers is not known."""
    most = float(settings.max_leaf_nodes or math.inf)
    classes = [coding.classes] if coding.classes is not None else list(coding.several)
    if settings.ccp_alpha > 0 and classes:
        n = max(2, *map(len, classes))
        impurity = criteria.CRITERIA[settings.criterion].impurity
        assert impurity is not None
        highest = float(impurity(np.full(n, 1 / n)))  # the highest is that of equal shares
        most = min(most, 1 + highest / settings.ccp_alpha)
    return most


def fitted_to_memory(
    settings: Settings, rows: Rows, sampling: Sampling, rules: Rules, coding: TargetCoding,
    backend: base.Backend,
) -> base.Backend:  # fmt: skip
    """The backend, changed so that the fit stays within the limit; a ValueError if it cannot."""
    (n_rows, n_features), limit = rows.X.shape, settings.memory_limit
    n_trees = max(settings.n_trees, settings.trial_trees)
    if limit is None and n_rows * (n_features + n_trees * coding.n_channels) <= SMALL:
        return backend
    fit = fit_of(settings, rows.X, sampling, rules, coding, rows.categories)
    n_bytes = arguments.byte_count(limit)
    if n_bytes is not None:
        return within(fit, backend, n_bytes)
    warn_of_little(backend, fit.estimate, FOREST_SIZE)
    return backend


def boosting_fitted_to_memory(
    estimator: Any, rows: Rows, loss: losses.Loss, train: Rows, held: Rows | None, stops: bool,
    backend: base.Backend,
) -> tuple[base.Backend, int]:  # fmt: skip
    """As `fitted_to_memory`; and the bytes that histograms of open nodes may take. A limit that is
    too little for `refit`, which grows from all rows, is refused before the first round."""
    n, n_held = len(train.y), 0 if held is None else len(held.y)
    parts = [((n, n_held), stops), ((n + n_held, 0), False)][: 1 + estimator.refit]
    weighted = rows.weight is not None
    fits = [
        boosted_fit_of(estimator, rows.X, loss, sizes, ends, weighted, train.categories)
        for sizes, ends in parts
    ]
    limit, memory = arguments.byte_count(estimator.memory_limit), boosting_memory.HISTOGRAM_BYTES
    if limit is not None:
        return boosting_memory.within(fits, backend, limit)
    warn_of_little(backend, lambda on: fits[0].estimate(on, memory), boosting_memory.ROUNDS_SIZE)
    return backend, memory


def warn_of_little(
    backend: base.Backend, estimate: Callable[[base.Backend], MemoryEstimate], what: str
) -> None:
    """Warn in the log, once in a process, of a fit on the host that may take more memory than the
    machine has; `what` might be lowered."""
    if not backend.on_host or "available" in _warned:
        return
    needed, free = estimate(backend), available_bytes()
    if free is not None and needed.total > free:
        _warned.add("available")
        logger.warning(
            "this fit takes about %d MB, but only %d MB of memory are available: lower %s, or "
            "free memory",
            needed.total / 1e6, free / 1e6, what,
        )  # fmt: skip


def room_of(estimator: Any) -> int | None:
    """Bytes that work on a fitted estimator may take; None: unknown."""
    limit = arguments.byte_count(estimator.memory_limit)
    return available_bytes() if limit is None else limit


def available_bytes() -> int | None:
    """Memory that new work may take on this machine; None: unknown."""
    try:
        facts = Path("/proc/meminfo").read_text()
        return int(facts.partition("MemAvailable:")[2].split()[0]) * 1024
    except (OSError, ValueError, IndexError):  # another system than Linux
        return None
