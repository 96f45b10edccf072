"""What a fit with `keep_bytes` keeps, so that rows leave and join in less time, and without data.

The training keeps codes and targets of all rows, and trees keep their upper nodes and blocks: see
growing/changed.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gpuforest.backends.rows import chosen, n_halvings
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.core.forest import Forest
from gpuforest.core.target import CheckedTarget
from gpuforest.core.training import Training
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.data.categories import ALWAYS_KEPT
from gpuforest.estimators import by_ids, fit_scope, forgetting
from gpuforest.estimators.plan import TrainingPlan
from gpuforest.estimators.task import On
from gpuforest.growing.assemble import merged
from gpuforest.growing.changed import changed
from gpuforest.growing.grow import keeping_scratch
from gpuforest.growing.targets import integer_weights
from gpuforest.growing.upper import Changes, Upper, grown_with_upper, sums_dtype

FROM_FIT = ("n_features_in_", "feature_names_in_", "_grown_by_")
FEWEST_KEPT = 1024  # rows of a block, however many bytes may be kept


@dataclass(frozen=True, eq=False)
class Tables:
    """What a fit with `keep_bytes` keeps, so that rows can leave and join without all data.

    plan : of the fit; its training has the rows of `numbers`, and room for others
    weight : f64[N], the weights that the user gave the rows, or None
    most_bytes : that may be kept, and the rows that a block may hold for this
    """

    plan: TrainingPlan
    upper: Upper
    numbers: np.ndarray  # i64[N], of the rows in the order of their ids
    free: np.ndarray  # i64[m], numbers of rows that are not there
    weight: np.ndarray | None
    most_bytes: int
    most_rows: int
    known_edges: bool  # bins are those of `BinnedData`, which no row moves

    @property
    def n_bytes(self) -> int:
        """Bytes of histograms, rows of blocks, codes and targets."""
        training = self.plan.training
        arrays_of_rows = training.matrix.codes, training.target.y
        return self.upper.n_bytes + sum(int(a.nbytes) for a in arrays_of_rows)

    def with_room(self, n: int) -> Tables:
        """The same with at least n free numbers."""
        lacks, training = n - len(self.free), self.plan.training
        if lacks <= 0:
            return self
        y, matrix = training.target.y, training.matrix
        more = max(lacks, len(y) // 16)
        y = np.concatenate([y, np.zeros((more, y.shape[1]), y.dtype)])
        codes = np.concatenate(
            [matrix.codes.T, np.zeros((matrix.n_features, more), matrix.codes.dtype)], axis=1
        ).T
        free = np.concatenate([self.free, np.arange(len(y) - more, len(y))])
        target, matrix = replace(training.target, y=y), replace(matrix, codes=codes)
        plan = replace(self.plan, training=replace(training, target=target, matrix=matrix))
        return replace(self, plan=plan, free=free)


def known_ids(estimator: Any) -> np.ndarray:
    """The ids of the rows of an estimator that keeps tables; a ValueError if it keeps none."""
    known = forgetting.ids_of(estimator)
    if not hasattr(estimator, "_kept_"):
        raise ValueError(
            "pass X and y of all rows, or fit with keep_bytes, which keeps what this needs"
        )
    return known


def grown(
    plan: TrainingPlan, n_trees: int, most_bytes: int, fewest: int = 0
) -> tuple[list[Forest], Upper]:
    """The waves of a forest, and upper nodes in at most this number of bytes; a ValueError if they
    take more."""
    most_rows = most_rows_for(plan, n_trees, most_bytes, fewest)
    return grown_with_upper(plan.training, plan.backend, n_trees, most_rows)


def tables_of(
    plan: TrainingPlan, forest: Forest, given: FitInput, most_bytes: int, fewest: int = 0,
    upper: Upper | None = None,
) -> Tables:  # fmt: skip
    """What is kept of a fit in at most this number of bytes; a ValueError if it takes more.

    upper : of the forest, if known"""
    plan = replace(plan, training=keeping_scratch(of_its_own(plan.training)))
    most_rows = most_rows_for(plan, forest.n_trees, most_bytes, fewest)
    numbers = np.arange(plan.drawn.n_rows)
    if upper is None:
        waves, upper = grown(plan, forest.n_trees, most_bytes, fewest)
        again = merged(waves, plan.training, plan.backend.n_threads)
        same = np.array_equal(again.nodes, forest.nodes)
        if not (same and np.array_equal(again.leaf_sums, forest.leaf_sums)):
            raise ValueError(
                "X, y and sample_weight must be those of the last fit: other trees grow from these"
            )
    if (weight := given.sample_weight) is not None:
        weight = validation.check_weights(arrays.to_host(weight, "sample_weight"), len(numbers))
    known, free = isinstance(given.X, BinnedData), numbers[:0]
    return Tables(plan, upper, numbers, free, weight, most_bytes, most_rows, known)


def of_its_own(training: Training) -> Training:
    """The training with copies of codes and targets: the user may have passed these arrays."""
    target, matrix = training.target, training.matrix
    codes = matrix.codes.T.copy().T
    matrix, target = replace(matrix, codes=codes), replace(target, y=target.y.copy())
    return replace(training, matrix=matrix, target=target)


def check(plan: TrainingPlan, n_trees: int, most_bytes: int) -> None:
    """Raise a ValueError if a fit cannot keep tables of so many bytes."""
    if plan.settings.oob_score or plan.training.target.coding.priors is not None:
        raise ValueError(
            "oob_score and priors are learned from all rows: pass keep_bytes=0, and all data to "
            "delete"
        )
    most_rows_for(plan, n_trees, most_bytes)


def most_rows_for(plan: TrainingPlan, n_trees: int, most_bytes: int, fewest: int = 0) -> int:
    """The rows of a block, so that what is kept of a fit takes at most `most_bytes`; a ValueError
    if there is no way, or the kind of tree has no upper nodes."""
    training, drawn = plan.training, plan.drawn
    if not forgetting.by_path(plan):
        raise ValueError(
            "histograms are kept of cuts and sets, for trees of the CPU without pruning and "
            "monotonic_cst, which influence and keep_bytes need"
        )
    matrix, bag = training.matrix, n_trees * drawn.n_counted * -np.expm1(-drawn.rate)
    rows = 5 * bag + matrix.codes.nbytes + training.target.y.nbytes
    if rows > most_bytes:
        raise ValueError(
            f"keep_bytes={most_bytes} is too little: the rows of {n_trees} trees take "
            f"{int(rows)} bytes, and histograms come on top"
        )
    node = training.rules.n_tried * training.n_codes * training.hist_channels
    node *= np.dtype(sums_dtype(training)).itemsize
    most_rows = fewest or FEWEST_KEPT
    while rows + 2 * bag / most_rows * node > most_bytes and most_rows < bag:
        most_rows *= 2
    return most_rows


class Joining(NamedTuple):
    """Rows that join: ids i64[m] or u64[m], codes [m, F], target, weights f64[m] or None."""

    ids: np.ndarray
    codes: np.ndarray
    target: CheckedTarget
    weight: np.ndarray | None


def changed_target(
    checked: CheckedTarget, leave: np.ndarray, join: Joining | None
) -> CheckedTarget:
    """The target without some rows i64[n], and with rows that join."""
    if checked.classes is None:
        values = np.delete(checked.values, leave, axis=0)
        if join is not None:
            new = np.asarray(join.target.values).reshape(-1, *values.shape[1:])
            values = np.concatenate([values, new])
        return replace(checked, values=values)
    columns = []
    for k, (codes, labels) in enumerate(zip(checked.values, checked.classes, strict=True)):
        column = np.delete(codes, leave)
        if join is not None:
            new = (join.target.classes or [])[k][join.target.values[k]]
            column = np.concatenate([column, np.searchsorted(labels, new).astype(column.dtype)])
        columns.append(column)
    return replace(checked, values=columns)


def check_lost(before: CheckedTarget, now: CheckedTarget, leave: np.ndarray) -> None:
    """Refuse to let the last rows of a class leave, which are among the numbers i64[n]."""
    for labels, old, new in zip(before.classes or (), before.values, now.values, strict=False):
        lost = [c for c in np.unique(old[leave]).tolist() if not (new == c).any()]
        if lost:
            forgetting.refuse_classes(labels, np.delete(labels, lost))


def moved(estimator: Any, tables: Tables, ids: np.ndarray, codes: np.ndarray, sign: int) -> str:
    """What rows with these ids and codes [m, F] move when they leave (-1) or join (1), among what
    a fit learns from X; "": nothing."""
    plan, n = tables.plan, tables.plan.drawn.n_counted
    seed, keys = plan.training.seed, ids.astype(np.uint64)
    if tables.known_edges:
        return ""
    if n_halvings(n) != n_halvings(n + sign * len(ids)):
        return "the number of rows that bin edges come from"
    if (count := int(chosen(seed, keys, n).sum())) > 0:
        return f"bin edges, which come from {count} of them among others"
    training, weights = plan.training, plan.drawn.weights
    counted = tables.numbers if weights is None else tables.numbers[weights > 0]
    edges = training.matrix.edges
    for f in np.flatnonzero(edges.kinds == CATEGORICAL).tolist():
        code, fewest = codes[:, f], estimator.min_category_frequency
        known = np.bincount(training.matrix.codes[counted, f], minlength=edges.n_codes)
        known -= np.bincount(code, minlength=edges.n_codes) * (sign < 0)
        # rare and new categories have the code of missing values; where rare ones leave, those left
        # may be few enough to be kept
        rare = code == edges.missing_code
        may = sign > 0 or (fewest > 1 and edges.n_bins[f] <= ALWAYS_KEPT)
        if (may and rare.any()) or (known[code[~rare]] < fewest).any():
            return "the categories of a feature"
    return ""


def change(
    estimator: Any, known: np.ndarray, leave: np.ndarray, join: Joining | None = None
) -> None:
    """Change the rows of an estimator that keeps tables, whose ids are known: some leave, i64[n],
    numbers in the order of the ids, and others join."""
    tables: Tables = estimator._kept_.with_room(0 if join is None else len(join.ids))
    plan, forest = tables.plan, estimator.forest_
    training, before, stays = plan.training, plan.drawn, np.ones(len(known), bool)
    stays[leave] = False
    gone = tables.numbers[leave]
    # np.delete copies two slices around one row, and a mask would take several times as long
    ids, numbers, free = np.delete(known, leave), np.delete(tables.numbers, leave), tables.free
    weight = None if tables.weight is None else np.delete(tables.weight, leave)
    changing, codes, sign = known[leave], training.matrix.codes[gone], -1
    if join is not None:
        new, free = free[: len(join.ids)], free[len(join.ids) :]
        ids, numbers = np.concatenate([ids, join.ids]), np.concatenate([numbers, new])
        weight = None if weight is None else np.concatenate([weight, join.weight])
        changing, codes, sign = join.ids, join.codes, 1
    # what a fit of these rows would prepare
    checked = changed_target(plan.checked, leave, join)
    pair = None if weight is None else (weight, integer_weights(weight))
    drawn = by_ids.sampling_of(plan.settings, len(ids), pair, checked, ids)
    encoded = None
    codings = [forest.coding, forest.coding]
    check_lost(plan.checked, checked, leave)
    if checked.classes is None and (check_all := training.rules.criterion.check) is not None:
        check_all(checked.values)
    if checked.classes is None or len(checked.classes) > 1:
        on = On(training.rules.criterion, plan.backend, forest.seed)
        encoded = estimator._task.encode_target(checked, drawn, on)
        codings[1] = encoded.coding
    why = moved(estimator, tables, changing, codes, sign)
    if why := why or forgetting.why_anew(plan.settings, before, drawn, stays, codings):
        raise ValueError(f"the rows move {why}, so all trees grow anew: pass X and y of all rows")
    # the trees
    y = training.target.y[gone]
    if join is not None:
        column = checked.values[0] if encoded is None else encoded.y
        y = np.asarray(column)[-len(new) :].reshape(len(new), -1).astype(training.target.y.dtype)
        training.matrix.codes[new], training.target.y[new] = join.codes, y
    weights = forgetting.bag_weights(forest.seed, forest.n_trees, drawn, changing)
    of_rows = (drawn if sign > 0 else before).weights
    if of_rows is not None:
        weights = weights * (of_rows[-len(new) :] if sign > 0 else of_rows[leave])
    changes = Changes(new if sign > 0 else gone, codes, y, sign * weights)
    training = replace(training, sampling=drawn)
    plan = replace(plan, checked=checked, drawn=drawn, training=training)
    grown, upper = changed(tables.upper, training, plan.backend, forest, tables.most_rows, changes)
    tables = replace(
        tables, plan=plan, upper=upper, numbers=numbers, free=np.concatenate([free, gone]),
        weight=weight,
    )  # fmt: skip
    with fit_scope.replacing(estimator) as fitted:
        vars(fitted).update({n: v for n, v in vars(estimator).items() if n in FROM_FIT})
        fitted._keep(plan.finish([grown], 0), plan)
        fitted._kept_, fitted._training_ = tables, estimator._training_ | {"rows": len(ids)}
    training.matrix.codes[gone], training.target.y[gone] = 0, 0


def delete(estimator: Any, row_ids: Any) -> None:
    """Let rows leave an estimator that keeps tables."""
    known = known_ids(estimator)
    change(estimator, known, np.flatnonzero(~forgetting.stays_without(known, row_ids)))


def new_target(plan: TrainingPlan, y: Any, n_rows: int) -> CheckedTarget:
    """The target of rows that join; a ValueError if it has new classes, or something wrong."""
    known = plan.checked.classes
    if known is None:
        any_sum = replace(plan.training.rules.criterion, check=None)  # that looks at all rows
        return validation.check_numbers(y, n_rows, any_sum, plan.backend)
    target = validation.check_labels(y, n_rows, plan.backend)
    for old, new in zip(known, target.classes or (), strict=True):
        if not np.isin(new, old).all():
            forgetting.refuse_classes(old, np.union1d(old, new))
    return target


def insert(estimator: Any, row_ids: Any, X: Any, y: Any, weight: Any) -> None:
    """Let rows join an estimator that keeps tables; X, y, weight : of these rows alone."""
    known, plan = known_ids(estimator), estimator._kept_.plan
    ids = forgetting.new_ids(known, row_ids)
    forgetting.check_length(X, len(ids), "those that row_ids name")
    codes = forgetting.codes_of(estimator, X)
    target = new_target(plan, y, len(ids))
    if (weight is None) != (estimator._kept_.weight is None):
        raise ValueError("pass sample_weight for new rows if, and only if, the fit was given some")
    if weight is not None:  # together with others, rows may weigh nothing
        weight = np.append(arrays.to_host(weight, "sample_weight"), 1.0)
        checked: Any = validation.check_weights(weight, len(ids) + 1)
        weight = checked[:-1]
    change(estimator, known, np.zeros(0, int), Joining(ids, codes, target, weight))
