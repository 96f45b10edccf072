"""Rows leave a forest, or join it: the trees whose bags they touch grow anew, and the others stay.

With Poisson bags, a row's count in a tree is a hash of its id, and what a fit learns from all rows
before trees grow comes from few of them. So of the trees that count no changed row, a fit of the
other rows would grow the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.base import RowSampling
from gpuforest.backends.numpy import HOST
from gpuforest.common import hashing
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.core.rules import Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.data import arrays, validation
from gpuforest.estimators import fit_scope
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.explain.paths import some_trees
from gpuforest.growing.assemble import in_order
from gpuforest.growing.changed import regrow
from gpuforest.growing.edges import encode_blocks
from gpuforest.growing.grow import keeping_scratch
from gpuforest.splits.kinds import kind_in

FEWEST = 64  # rows: of fewer, chance may leave a tree without any, and then it has all


class Kept(NamedTuple):
    """The trees of an earlier fit, how its rows were drawn, and the rows that changed since."""

    forest: Forest
    sampling: Sampling
    changed: np.ndarray  # ids i64[n] or u64[n] of rows that left, or joined
    stays: np.ndarray  # bool, which of the earlier rows are still there
    codes: np.ndarray  # u8 or u16 [n, F], of these rows by the edges of the forest


def ids_of(estimator: Any) -> np.ndarray:
    """The ids of the rows of a fit, i64[N] or u64[N]; a ValueError if they draw no bags."""
    check_is_fitted(estimator)
    drawn: Sampling | None = getattr(estimator, "_sampling_", None)
    if drawn is None or not drawn.rate:
        raise ValueError(
            "rows leave or join a forest whose bags are drawn by ids of rows: fit with "
            "bootstrap='poisson'"
        )
    if estimator.forest_.n_trees != estimator.n_estimators:
        raise ValueError(
            f"the forest has {estimator.forest_.n_trees} trees, and n_estimators is "
            f"{estimator.n_estimators}: change no parameter between a fit and this"
        )
    return np.arange(drawn.n_rows) if drawn.ids is None else drawn.ids


def checked_ids(row_ids: Any) -> np.ndarray:
    ids = np.atleast_1d(arrays.host_array(arrays.to_host(row_ids, "row_ids"), "row_ids"))
    found = validation.check_ids(ids, len(ids))
    assert found is not None
    return found


def check_length(X: Any, n_rows: int, what: str) -> None:
    if (n := arrays.count_rows(X)) != n_rows:
        raise ValueError(f"X must have {n_rows} rows, {what}, and has {n}")


def without(estimator: Any, row_ids: Any, X: Any, of_rows: list[Any]) -> tuple[Any, ...]:
    """The rows that stay when some leave: X, y and weights, their ids, and what is `Kept`."""
    known, gone = ids_of(estimator), checked_ids(row_ids)
    check_length(X, len(known), "those of the fit in the order of row_ids_")
    if (strange := ~np.isin(gone, known)).any():
        raise ValueError(
            f"{strange.sum()} of {len(gone)} row_ids are no rows of the fit: {gone[strange][:5]}"
        )
    stays = ~np.isin(known, gone)
    if not stays.any():
        raise ValueError("row_ids are all rows of the fit, and a forest needs some")
    at = np.flatnonzero(stays)
    parts = [None if part is None else _safe_indexing(part, at) for part in (X, *of_rows)]
    leave = np.flatnonzero(~stays)
    kept = kept_of(estimator, known[leave], stays, _safe_indexing(X, leave))
    return *parts, known[at], kept


def with_more(estimator: Any, row_ids: Any, X: Any) -> tuple[np.ndarray, Kept]:
    """The ids of all rows when some join, and what is `Kept`."""
    known, new = ids_of(estimator), checked_ids(row_ids)
    check_length(X, len(known) + len(new), "those of the fit and then those that row_ids name")
    if (there := np.isin(new, known)).any():
        raise ValueError(
            f"{there.sum()} of {len(new)} row_ids are rows of the fit already: {new[there][:5]}"
        )
    stays = np.ones(len(known), bool)
    join = np.arange(len(known), len(known) + len(new))
    kept = kept_of(estimator, new, stays, _safe_indexing(X, join))
    return np.concatenate([known, new]), kept


def kept_of(estimator: Any, changed: np.ndarray, stays: np.ndarray, X: Any) -> Kept:
    """What is kept of an estimator when these rows change."""
    table, forest = validation.check_table(estimator, X, HOST), estimator.forest_
    codes = np.concatenate([codes for *_, codes in encode_blocks(table, forest.edges, HOST)])
    return Kept(forest, estimator._sampling_, changed, stays, codes)


def why_anew(plan: TrainingPlan, kept: Kept) -> str:
    """What the changed rows have moved, so that all trees grow anew; "": nothing."""
    training, asked = plan.training, plan.settings
    if not fit_scope.same_edges(kept.forest.edges, training.matrix.edges):
        return "bin edges"
    if not fit_scope.same_coding(kept.forest.coding, training.target.coding):
        return "the fixed point of targets"
    before, now = kept.sampling, plan.drawn
    each: Any = [np.ones(s.n_rows) if s.weights is None else s.weights for s in (before, now)]
    n_stayed = int(kept.stays.sum())
    if not np.array_equal(each[0][kept.stays], each[1][:n_stayed]) or before.rate != now.rate:
        return "weights"
    if min(before.n_rows, now.n_rows) < FEWEST:
        return "a table of few rows"
    shares = (asked.min_samples_leaf, asked.min_samples_split)
    of_all = asked.min_weight_fraction_leaf or asked.min_impurity_decrease
    if of_all or any(isinstance(share, float) for share in shares):
        return "limits that are shares of all rows"
    return "medians" if asked.values_from_rows else ""


def check_classes(before: TargetCoding, now: TargetCoding) -> None:
    """Refuse rows whose leaving or joining changes the classes."""
    one, other = (c.classes for c in (before, now))
    if one is not None and other is not None and not np.array_equal(one, other):
        lost = [label for label in one.tolist() if label not in other]
        new = [label for label in other.tolist() if label not in one]
        what = f"are the last of class {lost}" if lost else f"bring the new class {new}"
        raise ValueError(f"the rows {what}, which changes all trees: fit anew")


def waves_of(plan: TrainingPlan, kept: Kept) -> list[Forest]:
    """The trees that a fit of the plan grows: kept where no changed row counts, else grown anew.
    Where all are to grow anew, a warning says why, and there are none yet."""
    check_classes(kept.forest.coding, plan.training.target.coding)
    if why := why_anew(plan, kept):
        warnings.warn(f"the rows move {why}, so all trees grow anew", stacklevel=2)
        return []
    keys = hashing.tree_keys(np, kept.forest.seed, 0, kept.forest.n_trees)
    keys, ids = hashing.hash_at(keys, hashing.BAG), kept.changed.astype(np.uint64)
    counted: np.ndarray = RowSampling().poisson(HOST, keys, ids, plan.drawn.steps) > 0
    return [*_waves(plan, kept, counted)]


def _waves(plan: TrainingPlan, kept: Kept, counted: np.ndarray) -> Iterator[Forest]:
    forest, training = kept.forest, keeping_scratch(plan.training)
    by_path = (
        plan.backend.on_host and kind_in(training).by_level and not len(training.rules.signs)
        and not plan.settings.prunes
    )  # fmt: skip
    touched: Any = counted.any(axis=1)
    for anew, run in groupby(range(forest.n_trees), key=lambda t: bool(touched[t])):
        first, *more = run
        last = more[-1] + 1 if more else first + 1
        if anew and by_path:
            of_run = counted[first:last]
            yield regrow(training, plan.backend, forest, first, of_run, kept.codes)
            continue
        if anew:
            yield from plan.grow(first, last)
            continue
        trees = some_trees(forest, first, last)
        nodes = trees.nodes.copy()
        table = forest.leaf_sums[leaf_rows(nodes[is_leaf(nodes)])]
        nodes, sums = in_order(nodes, [table], forest.coding)
        yield replace(trees, nodes=nodes, leaf_sums=sums, leaf_values=None, shrinkage=0.0)
