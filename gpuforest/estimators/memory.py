"""An estimate of the memory that a fit with an estimator's parameters will take."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.backends import base, booster, registry
from gpuforest.common import arguments, dtypes
from gpuforest.core import bins, criteria, forest
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.estimators.boosting_fit import loss_of, most_leaves, stops_early, validation_rows
from gpuforest.estimators.settings import Settings, rules_of, sampling_of
from gpuforest.estimators.task import Rows
from gpuforest.growing import edges, memory
from gpuforest.kernels.gradients import losses
from gpuforest.kernels.grow_subtrees.scratch import CACHE_BYTES, block_rows
from gpuforest.splits.base import Kind
from gpuforest.splits.kinds import kind_of

logger = logging.getLogger("gpuforest")
SMALL = 2**14  # values of X, and channels of all rows in all trees
_warned: set[str] = set()  # the warnings that this process has given

DEEP_ROWS = 2**16  # rows of the trees that a thread grows one after another in one scratch
# Bytes of a node besides its sums: in a level, while its split is chosen again, and of links that
# are Python's numbers
LEVEL, CHOSEN, LINK = 150, 70, 250
KEYED = 288  # bytes of a row of leaf tables of classes: its key, order and numbers
# Bytes of a row: of AdaBoost besides integer weights, and after a tree has grown; of survival while
# rows are ranked by time, and while a thread puts them in the order of the leaves of several trees
WEIGHING, JUDGING, RANKED, BY_LEAF = 9, 24, 50, 50
JUDGED = 6  # of a feature with target statistics: a number, and its code, see `BinnedMatrix`
SHRUNK = 8 * 24  # of a node's value by eight lambdas, three times
LEAST_BY_LEAF = 10 * memory.MIB
FOREST_SIZE = "max_depth, n_estimators, max_samples or max_bins"  # what may be lowered

HISTOGRAM_BYTES = 256 * memory.MIB  # the most that histograms take, if no memory_limit says less
LEAST_POOL, SPARE = 2, 2  # histograms of a tree that grows, at least, and two more of each pool
PATHS = 3  # how many times longer a path is than in a balanced tree
NODE_BYTES = 2 * 250  # of a growing tree, for each leaf: two nodes and what is known of them
GROWN_BYTES = 2 * 8 + 80  # of a leaf and its part of the nodes, until rounds end
TREE_BYTES = 2500  # Python's objects and arrays of a grown tree
# Bytes of a row: of its loss, while early stopping computes it; of its residual, while quantiles
# are looked for; before the first round; of its gradient where it is not computed by blocks
SCORING_BYTES, ORDER_BYTES, BASELINE_BYTES, WHOLE_BYTES = 72, 40, 40, 48
ROUNDS_SIZE = "max_iter, max_leaf_nodes or max_bins"  # what may be lowered


@dataclass(frozen=True, eq=False)
class Fit:
    """What is known about a fit of a forest before it begins. Each stage has one formula, a bound
    for all kinds of split. Nodes are counted for random labels, which need the most leaves."""

    settings: Settings
    X: Any  # anything with the shape and the dtype of the table
    sampling: Sampling
    rules: Rules
    coding: TargetCoding
    categories: bins.Categories | None = None  # as of `BinEdges`; they may be more than `max_bins`
    n_judged: int = 0  # features whose numbers and codes judge rows out of bag

    @cached_property
    def table(self) -> memory.Table:
        asked = self.settings.max_bins
        max_bins = edges.FEW_VALUES if asked == "auto" else int(asked)
        return table_of(self.X, self.X.shape[0], max_bins, self.categories)

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.rules, bool(self.categories))

    @property
    def is_survival(self) -> bool:
        """True if the risks of leaves follow from their rows."""
        return self.rules.criterion.task == "survival"

    @property
    def judges_blocks(self) -> bool:
        """Whether a second forest, grown from earlier blocks of time, judges the rows."""
        return self.sampling.blocks is not None and self.settings.judges

    @property
    def n_trees(self) -> int:
        return max(self.settings.n_trees * (1 + self.judges_blocks), self.settings.trial_trees)

    @property
    def target_bytes(self) -> int:
        """Bytes of a row's target, labels and weights."""
        coding, sampling, reweighted = self.coding, self.sampling, self.settings.reweighted
        coded = 4 if coding.is_classes else 8 * len(coding.centre)
        # of survival times, events, exposures and the weights made of these
        labels = 28 if self.is_survival else 8 * coding.n_outputs
        weighed = sampling.weights is not None or reweighted or self.judges_blocks
        grouped = sampling.groups is not None or sampling.blocks is not None
        judged = JUDGED * self.n_judged
        drawn = (12 + 8 * weighed) * (sampling.classes is not None)
        more = WEIGHING * reweighted + judged + drawn + 8 * (sampling.ids is not None)
        return labels + coded + 12 * weighed + 4 * grouped + more

    @cached_property
    def most_leaves(self) -> float:
        """The most leaves of a pruned tree: splits gain more than `ccp_alpha` each, and at most the
        highest impurity of classes together; that of numbers is not known."""
        asked, classes = self.settings, self.coding.labels
        most = float(asked.max_leaf_nodes or math.inf)
        if asked.ccp_alpha > 0 and classes:
            n = max(2, *map(len, classes))
            impurity = criteria.CRITERIA[asked.criterion].impurity
            assert impurity is not None
            highest = float(impurity(np.full(n, 1 / n)))  # the highest is that of equal shares
            most = min(most, 1 + highest / asked.ccp_alpha)
        return most

    @cached_property
    def bag_rows(self) -> int:
        """The expected number of distinct rows in a bag."""
        drawn, N = self.sampling.n_draws, self.table.n_rows
        if not drawn or self.sampling.distinct:
            return self.sampling.max_bag_rows
        return math.ceil(-N * math.expm1(-drawn / self.sampling.units.n_rows))

    @cached_property
    def leaves(self) -> tuple[int, int]:
        """The numbers of a tree's leaves: all, and those at `max_depth`."""
        R, rules = self.bag_rows, self.rules
        most = R / max(rules.min_rows_leaf, rules.min_rows_split / 2)
        if self.coding.is_classes:
            C = max(self.coding.n_channels, 2)
            # what the best of cuts saves, where labels are random: leaves as parts of the rows
            # were 0.31, 0.65, 0.89, 0.98 of 2, 10, 100, 1,000 classes; where cuts are random too
            # 0.49 and 0.79 of 2 and 10
            saved = 0 if rules.random else 0.35 / (1 + C / 35)
            most = min(most, R * (1 - 1 / C) * (1 - saved))
        if rules.min_weight_leaf > 1:
            most = min(most, self.sampling.bag_weight / rules.min_weight_leaf)
        return memory.truncated_tree(most, rules.max_depth)

    @cached_property
    def words(self) -> float:
        """The mean number of 64-bit words of a split."""
        return self.kind.split_words(self.rules, self.table.n_features)

    def estimate(self, backend: base.Backend) -> memory.MemoryEstimate:
        """The memory that the fit takes on this backend, as it is set up."""
        N, C, T, table = self.table.n_rows, self.coding.n_channels, self.n_trees, self.table
        at_once = 1 if self.settings.reweighted else T
        bounded = len(self.rules.signs) > 0
        n_workers, worker, size = backend.waves(self.sampling, C, at_once, bounded=bounded)
        n_waves, at_once = -(-T // size), min(at_once, size * n_workers)
        n_leaves = min(self.leaves[0], self.most_leaves)
        nodes = T * 8 * (2 + self.words) * n_leaves
        rows = n_waves * min(self.leaf_rows(size), n_leaves * size)  # of the waves' leaf tables
        kept = T * n_leaves if self.settings.shrinkage else rows  # a row for each leaf
        # and threads, and Python's objects
        growing = n_workers * self.wave_bytes(worker, size) + memory.MIB / 2
        if n_waves > 1 and backend.on_host:  # waves are copied into one forest
            joined = nodes + 8 * C * rows
            if self.coding.is_classes:  # whose sums are looked up by keys
                last = 8 * C * rows * min(n_workers / n_waves, 1)  # which are in the forest, too
                growing = max(growing - last, joined) + KEYED * rows
            else:
                growing += joined
        return memory.MemoryEstimate(
            codes=N * table.row_bytes,
            target=N * self.target_bytes,
            binning=table.binning_bytes(backend),
            bags=at_once * (4 * N + 8 * self.bag_rows),
            growing=math.ceil(max(growing, self.after_bytes(backend))),
            forest=math.ceil(nodes + 8 * (C + (C - 1) * self.is_survival) * kept),
        )

    def leaf_rows(self, n_trees: float, growing: bool = False) -> float:
        """Rows of the leaf table of whole or growing trees. Leaves above `max_depth` of equal class
        and weight share a row if all leaves are of one class, and weights count draws."""
        (leaves, deepest), drawn, rules = self.leaves, self.sampling, self.rules
        is_pure = self.coding.is_classes and rules.min_rows_leaf == 1 and rules.min_rows_split == 2
        in_scratch = growing and (drawn.factors is not None or drawn.balance)
        if not is_pure or self.settings.reweighted or drawn.multiplies or in_scratch:
            return leaves * n_trees
        # balanced weights are others in every tree
        times, together = (n_trees, 1.0) if drawn.balance else (1.0, n_trees)
        weights = 1 + math.log1p(leaves * together / self.coding.n_channels)
        return min(leaves * n_trees, deepest * n_trees + times * weights * self.coding.n_channels)

    def wave_bytes(self, backend: base.Backend, n_trees: int) -> float:
        """Bytes of a wave, without bags and grown trees."""
        rows, C, budget = n_trees * self.bag_rows, self.coding.n_channels, backend.memory_budget
        if not backend.on_host:
            return budget + rows * (48 + 12 * C)
        levels = 2 * n_trees * self.leaves[0] * (LEVEL + 24 * C + 16 * self.words) + 16 * rows
        if base.has(backend, "grow_subtrees"):
            whole = self.kind.grows_whole
            by_levels = self.rules.limited if whole is None else not whole
            return self._whole_trees(backend, n_trees) + levels * by_levels
        # histograms of a level or a chunk of it, both sides and scores of all cuts
        slot = 8 * self.rules.n_tried * self.table.n_codes * (C + 1)
        chunk = min(13 * max(budget, slot), 4.5 * slot * n_trees * self.leaves[0])
        return max(chunk + 110 * rows + levels / 3, levels, self._pruning(n_trees))

    def _whole_trees(self, backend: base.Backend, n_trees: int) -> float:
        """Bytes of the scratch of threads, of nodes and of leaves, while subtrees grow whole."""
        R, C, threads, table = self.bag_rows, self.coding.n_channels, backend.n_threads, self.table
        leaves, most = self.leaves[0], R
        if threads > 1:  # which share a tree
            most = max(n_trees * R // (4 * threads), min(R, memory.MIB // table.n_features))
        # rows, targets and copies of codes; a MIB has room for the copies that stay in a cache
        target = 8 if self.coding.is_classes else 8 * C
        copied = table.row_bytes * sum(block_rows(table.row_bytes, table.n_rows, int(most)))
        scratch: float = (2 * (4 + target) + self.kind.row_bytes) * most
        scratch += memory.MIB + max(0, copied - CACHE_BYTES)
        # a thread's sums of leaves; nodes as threads grow them, together and in their places
        together = min(n_trees, max(1.0, DEEP_ROWS / R))
        sums = 8 * C * self.leaf_rows(together, growing=True)
        nodes = n_trees * (16 * (3 + self.words) * leaves + 2 * sums / together)
        scratch += (16 + 8 * C) * leaves * together if self.settings.prunes else sums
        return threads * scratch + max(nodes, self._pruning(n_trees))

    def _pruning(self, n_trees: int) -> float:
        """Bytes of a wave's whole trees, and of choosing their splits again."""
        C, n_nodes, asked = self.coding.n_channels, 2 * self.leaves[0], self.settings
        chosen = min(n_trees * n_nodes, max(n_nodes, forest.GROUP_VALUES / C)) * (CHOSEN + 8 * C)
        trees = 8 * n_trees * n_nodes + 8 * C * self.leaf_rows(n_trees)
        return asked.prunes * (trees + max(chosen, LINK * n_nodes * (asked.ccp_alpha > 0)))

    def after_bytes(self, backend: base.Backend) -> float:
        """Bytes of what a fit does with the trees when they have grown."""
        N, asked = self.table.n_rows, self.settings
        n_nodes = 2 * min(self.leaves[0], self.most_leaves)
        walked = min(self.n_trees, memory.walked_at_once(N, backend.memory_budget))
        walked *= asked.unbiased_importances
        threads = min(backend.n_threads, self.n_trees) * self.is_survival
        tree = n_nodes * self.coding.n_channels
        at_once = min(self.n_trees * tree, forest.GROUP_VALUES / 32)
        return max(
            32 * self.coding.n_values * N * bool(asked.oob_score),
            JUDGING * N * asked.reweighted,
            SHRUNK * (asked.shrinkage == "oob") * max(tree, at_once),
            walked * (memory.WALKED * N + n_nodes * (40 + 32 * self.coding.n_channels)),
            RANKED * N * self.is_survival + threads * max(BY_LEAF * N, LEAST_BY_LEAF),
        )


@dataclass(frozen=True, eq=False)
class BoostedFit:
    """What is known about a fit of boosting before it begins."""

    estimator: Any
    X: Any  # anything with the shape and the dtype of the table
    loss: losses.Loss
    n_train: int  # rows that trees grow from; if these are not all of X, they are a copy
    n_validation: int  # rows that early stopping judges by
    stops: bool  # there is early stopping
    weighted: bool
    categories: bins.Categories | None = None

    @cached_property
    def table(self) -> memory.Table:
        """Of the rows that trees grow from."""
        return table_of(self.X, self.n_train, int(self.estimator.max_bins), self.categories)

    @cached_property
    def leaves(self) -> int:
        """Of a tree."""
        depth, most = most_leaves(self.estimator)
        rows = max(1.0, self.n_train / int(self.estimator.min_samples_leaf))
        return max(1, min(memory.truncated_tree(rows, depth)[0], most))

    @cached_property
    def n_words(self) -> int:
        """Of the stats of a row."""
        return booster.words_of(self.loss, self.weighted, self.n_train, self.is_vector)

    @property
    def is_vector(self) -> bool:
        """Whether a round has one tree for all raw predictions."""
        return self.loss.n_raw > 1 and self.estimator.multi_strategy == "multi_output_tree"

    @property
    def round_trees(self) -> int:
        return 1 if self.is_vector else self.loss.n_raw

    @property
    def histogram_bytes(self) -> int:
        """Bytes of a histogram of all features, at the most."""
        return self.table.n_features * self.table.n_codes * self.n_words * 8

    def pools(self, n_threads: int) -> int:
        """Trees that grow at the same time: threads share one where there are more threads."""
        return n_threads if n_threads <= self.round_trees else 1

    def histograms(self, n_threads: int, room: int) -> int:
        """Bytes of all histograms; those of open nodes may take `room` bytes. All nodes of a tree
        with enough rows may be open, and a path if leaves are unlimited."""
        N, min_rows = self.n_train, int(self.estimator.min_samples_leaf)
        n_open = min(self.leaves, N // (2 * min_rows)) + 1
        if most_leaves(self.estimator)[1] >= N:
            n_open = PATHS * self.leaves.bit_length()
        n, size = self.pools(n_threads), self.histogram_bytes
        return n * size * (SPARE + max(LEAST_POOL, min(n_open, room // n // size)))

    def estimate(self, backend: base.Backend, room: int) -> memory.MemoryEstimate:
        """The memory of the fit on this backend; open nodes' histograms take `room` bytes."""
        N, V, K, threads = self.n_train, self.n_validation, self.loss.n_raw, backend.n_threads
        n_leaves, pools = self.leaves, self.pools(threads)
        n_trees, splits = int(self.estimator.max_iter) * self.round_trees, self.X.shape[0] > N
        # labels become codes, and those numbers; what is split is there twice
        labels = 16 if is_classifier(self.estimator) else 8
        target = labels + 8 * splits + (12 + 8 * splits) * self.weighted
        copied = math.prod(self.X.shape) * self.X.dtype.itemsize * splits
        keeps_rows = self.stops and self.estimator.scoring != "loss"
        rows, after = 4 * N * (1 + K), [SCORING_BYTES * max(N, V) * self.stops]
        growing = 8 * N * K * (1 + self.n_words) + 8 * V * K * 2
        if self.is_vector:  # stats of each output, and of the tree
            growing = 8 * N * (K * 3 + self.n_words) + 8 * V * K * 2
        if backend.name == "numpy" or self.loss.on_host:  # whole arrays
            after.append(WHOLE_BYTES * N * K)
        if backend.name != "numpy":  # which has one histogram at a time
            rows += 4 * N * pools
            growing += self.histograms(threads, room) + pools * n_leaves * NODE_BYTES
        after.append(ORDER_BYTES * N * self.loss.by_order)
        grown = n_trees * (TREE_BYTES + n_leaves * GROWN_BYTES)
        to_end = copied if keeps_rows else copied * V // (N + V)
        binning = max(self.table.binning_bytes(backend), BASELINE_BYTES * N)
        return memory.MemoryEstimate(
            codes=self.table.row_bytes * (N + V),
            target=(N + V) * target + to_end,
            binning=binning + copied - to_end,
            bags=rows,
            growing=growing + max(after) + grown + memory.MIB,
            forest=n_trees * n_leaves * (2 * 8 + (8 + 16 * K if self.is_vector else 24) + 8 * K),
        )


def estimate_memory(
    estimator: Any, n_samples: int, n_features: int, n_classes: int = 2, n_outputs: int = 1,
    dtype: Any = np.float32, backend: str | None = None,
) -> memory.MemoryEstimate:  # fmt: skip
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
        n = n_classes if is_classifier(estimator) else 0
        if n_outputs > 1 and n:
            raise ValueError(f"n_outputs={n_outputs}: boosting of classes has one output")
        loss = loss_of(estimator, n, n_outputs)
        fits = [expected_boosting(estimator, X, loss, again) for again in {False, estimator.refit}]
        on = registry.for_boosting(on)
        return max((fit.estimate(on, HISTOGRAM_BYTES) for fit in fits), key=attrgetter("total"))
    coding = TargetCoding(None, np.zeros(n_outputs), 1.0)
    if is_classifier(estimator):
        classes = (np.arange(n_classes),) * n_outputs
        coding = TargetCoding(None, np.zeros(n_classes * n_outputs), 1.0, classes)
        if n_outputs == 1:
            coding = TargetCoding(classes[0], np.zeros(1), 1.0)
    settings = estimator._settings().for_rows(n_samples)
    if settings.max_bins == "auto":
        max_bins = edges.FEW_VALUES if n_samples <= edges.FEW_VALUES else edges.MANY_BINS
        settings = replace(settings, max_bins=max_bins)
    sampling = sampling_of(settings, n_samples, None)
    if settings.weighs_classes:
        # the weights are not known, only that their sums are other and larger than counts
        heavy = replace(sampling, factors=np.ones(1, dtypes.WEIGHT))
        balanced = settings.class_weight == "balanced_subsample" and settings.bootstrap
        sampling = replace(sampling, balance=1) if balanced else heavy
    rules = rules_of(settings, n_features, sampling, coding)
    return Fit(settings, X, sampling, rules, coding).estimate(on)


def table_of(X: Any, n_rows: int, max_bins: int, known: bins.Categories | None) -> memory.Table:
    """What is known about n_rows rows of a table like X."""
    most = max(map(len, (known or {}).values()), default=0)
    return memory.Table(n_rows, X.shape[1], max(max_bins, most + 2), np.dtype(X.dtype))


def expected_boosting(estimator: Any, X: Any, loss: losses.Loss, again: bool = False) -> BoostedFit:
    """The fit of a table like X, as far as parameters tell; `again`: `refit` grows from all
    rows."""
    stops = not again and stops_early(estimator, X.shape[0])
    held = 0
    if stops and estimator.validation_fraction is not None:
        held = min(validation_rows(X.shape[0], estimator.validation_fraction), X.shape[0] - 1)
    weighted = getattr(estimator, "class_weight", None) is not None
    return BoostedFit(estimator, X, loss, X.shape[0] - held, held, stops, weighted)


def fitted_to_memory(
    settings: Settings, rows: Rows, sampling: Sampling, rules: Rules, coding: TargetCoding,
    backend: base.Backend,
) -> base.Backend:  # fmt: skip
    """The backend, changed so that the fit stays within the limit; a ValueError if it cannot."""
    (n_rows, n_features), limit = rows.X.shape, settings.memory_limit
    n_trees = max(settings.n_trees, settings.trial_trees)
    if limit is None and n_rows * (n_features + n_trees * coding.n_channels) <= SMALL:
        return backend
    known = rows.categories, len(rows.judged)
    fit = Fit(settings, rows.X, sampling, rules, coding, *known)
    n_bytes = arguments.byte_count(limit)
    if n_bytes is None:
        warn_of_little(backend, fit.estimate, FOREST_SIZE)
        return backend
    least = fit.estimate(backend)
    if least.total <= n_bytes:
        return backend
    room = max(0, n_bytes - least.codes - least.target - least.forest)

    def on(changed: base.Backend) -> memory.MemoryEstimate:
        changed.room = room
        return fit.estimate(changed)

    return memory.smaller(on, backend, n_bytes, "one tree at a time", FOREST_SIZE)


def boosting_fitted_to_memory(
    estimator: Any, rows: Rows, loss: losses.Loss, train: Rows, held: Rows | None, stops: bool,
    backend: base.Backend,
) -> tuple[base.Backend, int]:  # fmt: skip
    """As `fitted_to_memory`; and the bytes that histograms of open nodes may take. A limit that is
    too little for `refit`, which grows from all rows, is refused before the first round."""
    n, n_held = len(train.y), 0 if held is None else len(held.y)
    parts = [(n, n_held, stops), (n + n_held, 0, False)][: 1 + estimator.refit]
    known = rows.weight is not None, train.categories
    fits = [BoostedFit(estimator, rows.X, loss, *part, *known) for part in parts]
    limit = arguments.byte_count(estimator.memory_limit)
    if limit is not None:
        return within(fits, backend, limit)
    warn_of_little(backend, lambda on: fits[0].estimate(on, HISTOGRAM_BYTES), ROUNDS_SIZE)
    return backend, HISTOGRAM_BYTES


def within(fits: list[BoostedFit], backend: base.Backend, limit: int) -> tuple[base.Backend, int]:
    """The backend, perhaps of fewer threads, and bytes for the open histograms of the first fit."""

    def on(changed: base.Backend) -> memory.MemoryEstimate:
        return max((fit.estimate(changed, 0) for fit in fits), key=attrgetter("total"))

    changed = memory.smaller(on, backend, limit, "the fewest histograms", ROUNDS_SIZE)
    least, first = fits[0].estimate(changed, 0), fits[0]
    pools = first.pools(changed.n_threads) * LEAST_POOL * first.histogram_bytes
    after_binning = least.codes + least.target + least.bags + least.growing + least.forest
    return changed, limit - after_binning + pools


def warn_of_little(
    backend: base.Backend, estimate: Callable[[base.Backend], memory.MemoryEstimate], what: str
) -> None:
    """Warn in the log, once in a process, if a fit on the host may take more than all memory."""
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
