"""Rows leave a forest, or join it: trees grow anew below splits that they turn, all else stays.

With Poisson bags, a row's count in a tree is a hash of its id, and what a fit learns from all rows
before trees grow comes from few of them. So a fit of the other rows would grow the same trees, and
sides of splits, where no changed row counts.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import joblib
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
from gpuforest.data.binned import BinnedData
from gpuforest.data.digest import data_digest
from gpuforest.estimators import fit_scope
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.settings import Settings
from gpuforest.explain.model_facts import WHERE_IT_RUNS
from gpuforest.growing.assemble import in_order, merged
from gpuforest.growing.changed import grown_below
from gpuforest.growing.edges import encode_blocks
from gpuforest.growing.grow import keeping_scratch
from gpuforest.growing.splice import spliced
from gpuforest.growing.upper import Changes, Rows, upper_of
from gpuforest.splits.kinds import kind_in

NOT_GROWN_BY = {*WHERE_IT_RUNS, "verbose", "warm_start"}  # parameters that may change after a fit
FEWEST = 64  # rows in the mean of a bag: of fewer, chance may leave a tree without any
FEW = 8  # changed rows; more take about the time of a fit where histograms are not kept
FEWEST_UPPER = 1024  # rows of a node whose search is done again before all below it grows anew


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
    if hasattr(estimator, "_altered_"):
        raise ValueError(
            f"{estimator._altered_} has changed the trees since their fit, so they are not those "
            "of its rows: fit anew"
        )
    drawn: Sampling | None = getattr(estimator, "_sampling_", None)
    if drawn is None or not drawn.rate:
        raise ValueError(
            "rows leave or join a forest whose bags are drawn by ids of rows: fit with "
            "bootstrap='poisson'"
        )
    if hasattr(estimator, "_judges_"):
        raise ValueError(
            "the rows of the fit are judged by blocks of time, which are not known here: fit anew, "
            "or without blocks"
        )
    now = parameters_of(estimator)
    if names := sorted(n for n, digest in estimator._grown_by_.items() if now.get(n) != digest):
        raise ValueError(
            f"{', '.join(names)} changed since the trees grew: set what the fit had, or fit anew"
        )
    return np.arange(drawn.n_rows) if drawn.ids is None else drawn.ids


def parameters_of(estimator: Any, earlier: Any = None) -> dict[str, str]:
    """Digests of the parameters that trees grow by, by their names.

    earlier : the estimator whose trees came first, by its own parameters; or None"""
    grown_by = {
        name: str(joblib.hash(value))
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_GROWN_BY
        and not (callable(value) or isinstance(value, np.random.RandomState))
    }
    first: dict[str, str] = getattr(earlier, "_grown_by_", grown_by)
    return first | {"n_estimators": grown_by["n_estimators"]}


def checked_ids(row_ids: Any, known: np.ndarray) -> np.ndarray:
    """Ids that a user gives, in the type of known ones; in another type, where some do not fit."""
    given = np.atleast_1d(arrays.host_array(arrays.to_host(row_ids, "row_ids"), "row_ids"))
    if not given.size:
        raise ValueError("row_ids are empty: name one row or more")
    ids = validation.check_ids(given, len(given))
    assert ids is not None
    fits = ids.dtype == known.dtype or not (ids.astype(np.int64) < 0).any()
    return ids.astype(known.dtype) if fits else ids.astype(object)


def check_length(X: Any, n_rows: int, what: str) -> None:
    if isinstance(X, BinnedData):
        raise ValueError("rows are taken from arrays and frames: fit binned data with keep_bytes")
    if (n := arrays.count_rows(X)) != n_rows:
        raise ValueError(f"X must have {n_rows} rows, {what}, and has {n}")


def check_digest(estimator: Any, *of_rows: Any) -> None:
    """Raise a ValueError if a model has a proof, and the first rows of X, y and weights are not
    those of its digest."""
    ids, proof = ids_of(estimator), getattr(estimator, "proof_", None)
    first = np.arange(len(ids))
    if proof is not None:
        parts = [None if part is None else _safe_indexing(part, first) for part in of_rows]
        if data_digest(*parts, row_ids=ids) != proof["data"]:
            raise ValueError(
                "X, y and sample_weight do not match the digest of the data in proof_: pass the "
                "rows of the last fit in the order of row_ids_"
            )


def check_known(ids: np.ndarray, known: np.ndarray) -> None:
    """Raise a ValueError if ids are no ids of the fit."""
    if (strange := ids[~np.isin(ids, known)]).size:
        raise ValueError(
            f"{len(strange)} of {len(ids)} row_ids are no rows of the fit: {strange[:5]}"
        )


def stays_without(known: np.ndarray, row_ids: Any) -> np.ndarray:
    """Which rows of a fit, whose ids are known, stay without some, bool[N]."""
    gone = checked_ids(row_ids, known)
    stays = ~np.isin(known, gone)
    if np.count_nonzero(stays) > len(known) - len(gone):
        check_known(gone, known)
    if not stays.any():
        raise ValueError("row_ids are all rows of the fit, and a forest needs some")
    return np.asarray(stays)


def new_ids(known: np.ndarray, row_ids: Any) -> np.ndarray:
    """The ids of rows that join, in the type of those of the fit."""
    new = checked_ids(row_ids, known)
    if new.dtype != known.dtype:
        raise ValueError(f"row_ids must fit {known.dtype}, the type of the ids of the fit: {new}")
    if (there := np.isin(new, known)).any():
        raise ValueError(
            f"{there.sum()} of {len(new)} row_ids are rows of the fit already: {new[there][:5]}"
        )
    return new


def without(estimator: Any, row_ids: Any, X: Any, of_rows: list[Any]) -> tuple[Any, ...]:
    """The rows that stay when some leave: X, y and weights, their ids, and what is `Kept`."""
    known = ids_of(estimator)
    check_length(X, len(known), "those of the fit in the order of row_ids_")
    stays = stays_without(known, row_ids)
    at, leave = np.flatnonzero(stays), np.flatnonzero(~stays)
    parts = [None if part is None else _safe_indexing(part, at) for part in (X, *of_rows)]
    kept = kept_of(estimator, known[leave], stays, _safe_indexing(X, leave))
    return *parts, known[at], kept


def with_more(estimator: Any, row_ids: Any, X: Any) -> tuple[np.ndarray, Kept]:
    """The ids of all rows when some join, and what is `Kept`."""
    known = ids_of(estimator)
    new = new_ids(known, row_ids)
    check_length(X, len(known) + len(new), "those of the fit and then those that row_ids name")
    join = np.arange(len(known), len(known) + len(new))
    kept = kept_of(estimator, new, np.ones(len(known), bool), _safe_indexing(X, join))
    return np.concatenate([known, new]), kept


def kept_of(estimator: Any, changed: np.ndarray, stays: np.ndarray, X: Any) -> Kept:
    """What is kept of an estimator when these rows change."""
    codes = codes_of(estimator, X)
    return Kept(estimator.forest_, estimator._sampling_, changed, stays, codes)


def codes_of(estimator: Any, X: Any) -> np.ndarray:
    """The bins of rows, [n, F]."""
    table = validation.check_table(estimator, X, HOST)
    blocks = encode_blocks(table, estimator.forest_.edges, HOST)
    return np.concatenate([codes for *_, codes in blocks])


def why_anew(
    asked: Settings, before: Sampling, now: Sampling, stays: np.ndarray, codings: list[TargetCoding]
) -> str:
    """What changed rows have moved besides bin edges, so that all trees grow anew; "": nothing.

    stays : bool, which of the earlier rows are still there"""
    if not fit_scope.same_coding(*codings):
        return "the fixed point of targets"
    weights = before.weights, now.weights
    if any(w is not None for w in weights):
        each: Any = [np.ones(s.n_rows) if s.weights is None else s.weights for s in (before, now)]
        if not np.array_equal(each[0][stays], each[1][: np.count_nonzero(stays)]):
            return "weights"
    if min(s.n_counted * s.rate for s in (before, now)) < FEWEST:
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
        refuse_classes(one, other)


def refuse_classes(before: np.ndarray, now: np.ndarray) -> None:
    lost, new = np.setdiff1d(before, now).tolist(), np.setdiff1d(now, before).tolist()
    what = f"are the last of class {lost}" if lost else f"bring the new class {new}"
    raise ValueError(f"the rows {what}, which changes all trees: fit anew")


def waves_of(plan: TrainingPlan, kept: Kept) -> list[Forest]:
    """The trees of a fit by the plan; only what changed rows touch grows anew.
    Where all are to grow anew, a warning says why, and there are none yet."""
    check_classes(kept.forest.coding, plan.training.target.coding)
    forest, training = kept.forest, keeping_scratch(plan.training)
    codings = [forest.coding, training.target.coding]
    why = why_anew(plan.settings, kept.sampling, plan.drawn, kept.stays, codings)
    if not fit_scope.same_edges(forest.edges, training.matrix.edges):
        why = "bin edges"
    if why:
        warnings.warn(f"the rows move {why}, so all trees grow anew", stacklevel=2)
        return []
    backend = plan.backend
    weights = bag_weights(forest.seed, forest.n_trees, plan.drawn, kept.changed)
    touched = np.flatnonzero(weights.any(axis=1))
    if not len(touched):
        return [plain(forest)]
    if not by_path(plan) or weights.shape[1] > FEW:
        first = touched[np.diff(touched, prepend=-2) > 1]
        last = touched[np.diff(touched, append=forest.n_trees + 1) > 1] + 1
        runs = zip(first.tolist(), last.tolist(), strict=True)
        waves = [wave for run in runs for wave in plan.grow(*run)]
        at = forest.tree_offsets[touched]
        grown = merged(waves, training, backend.n_threads)
        return [spliced(forest, at, grown, backend)[0]]
    nothing = np.zeros((0, 1), training.target.y.dtype)
    changes = Changes(kept.changed[:0].astype(int), kept.codes, nothing, weights)
    upper = upper_of(training, backend, forest, FEWEST_UPPER, changes)
    blocks = [(i, held) for i, held in enumerate(upper.kept) if isinstance(held, Rows)]
    numbers, held = np.array([i for i, _ in blocks]), [rows for _, rows in blocks]
    grown = grown_below(upper, training, backend, numbers, held)
    return [spliced(forest, upper.at(forest, numbers), grown, backend)[0]]


def by_path(plan: TrainingPlan) -> bool:
    """Whether the search of a node needs no more than its histograms."""
    rules, kind = plan.training.rules, kind_in(plan.training)
    return (
        plan.backend.on_host and kind.by_level and not len(rules.signs) and not plan.settings.prunes
    )


def bag_weights(seed: int, n_trees: int, drawn: Sampling, ids: np.ndarray) -> np.ndarray:
    """How often rows with ids [n] count in the bags of trees, i32[T, n]."""
    keys = hashing.hash_at(hashing.tree_keys(np, seed, 0, n_trees), hashing.BAG)
    counts: np.ndarray = RowSampling().poisson(HOST, keys, ids.astype(np.uint64), drawn.steps)
    return counts


def plain(forest: Forest) -> Forest:
    """The forest as its trees have grown."""
    nodes = forest.nodes.copy()
    table = forest.leaf_sums[leaf_rows(nodes[is_leaf(nodes)])]
    nodes, sums = in_order(nodes, [table], forest.coding)
    return replace(forest, nodes=nodes, leaf_sums=sums, leaf_values=None, shrinkage=0.0)
