"""What growth asks a kind of split; the base class has cuts of numeric features, and `Sets` sets.

A fit chooses its kind once (kinds.py). The loop over levels, backends and memory estimates call it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpuforest.backends.base import Array, Backend, Moved, has
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.common.hashing import permute
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.rules import Rules
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.numba import grow_random, grow_subtrees
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.kernels.sets.order import as_sets, in_order

IN_ORDER = 8  # times a histogram's memory, which ordering the bins of categories takes


class Kind:
    """Splits by a cut of one numeric feature: codes up to a bin go left."""

    name = "numeric"
    title = "cuts of numeric features"  # for messages
    cpu_only = False  # whether they are found by compiled code for the CPU, on every backend
    whole_rows = False  # whether they need all rows of a node in one place
    has_sets = False  # whether `cpu_kernel` takes sets of categories where no feature has any, too
    columns = 0  # numbers that the deep phase keeps of a row besides what it adds to a sum
    by_level = False  # whether a backend's `level` finds them
    # whether trees grow as whole subtrees; False: level by level, None: as the backend says
    grows_whole: bool | None = None
    # bytes of a row, besides those of all kinds, in the scratch of a thread that grows subtrees
    row_bytes = 0
    kernel: Any = None  # what grows whole subtrees on the CPU; None: the kernel of cuts and sets

    def fitted(self, backend: Backend, training: Training) -> Training:
        """The training, adapted to its data."""
        return training

    def runs_on(self, backend: Backend) -> bool:
        """Whether this backend grows trees by this kind of split."""
        return not self.cpu_only or (backend.on_host and has(backend, "grow_subtrees"))

    def split_words(self, rules: Rules, n_features: int) -> float:
        """The mean number of words of a split, as the estimate of memory takes it."""
        return 0.0

    def slot_bytes(self, training: Training) -> int:
        """Bytes of a slot's histograms, which decide how many slots make a chunk of a level."""
        return 8 * training.rules.n_tried * training.n_codes * (training.n_channels + 1)

    # the wide phase

    def search(self, backend: Backend, training: Training, slots: Frontier) -> Splits:
        """The best split of each slot, by chunks of slots that fit the memory budget."""
        xp = backend.xp
        if not slots.n_slots:
            return Splits.empty(xp, slots, training.node_words)
        chunks = map(slots.part, self.chunks(backend, training, slots))
        return Splits.join(xp, [self._chunk(backend, training, chunk) for chunk in chunks])

    def chunks(self, backend: Backend, training: Training, slots: Frontier) -> list[slice]:
        """Ranges of slots whose histograms fit the memory budget."""
        size, S = max(1, backend.memory_budget // self.slot_bytes(training)), slots.n_slots
        return [slice(s, min(s + size, S)) for s in range(0, S, size)]

    def _chunk(self, backend: Backend, training: Training, slots: Frontier) -> Splits:
        """Try features in each slot's random order until enough varying ones were tried."""
        xp, k, F = backend.xp, training.rules.n_tried, training.n_features

        def best_from(first: int, need: Array) -> Splits:
            features = draw_features(xp, slots.key, first, k, F)
            if slots.allowed is not None:
                features = slots.only_allowed(xp, features)
            if first:
                features = xp.where((need > 0)[:, None], features, -1)
            return self.best(backend, training, slots, features, need)

        return best_of_rounds(xp, slots, k, F, best_from)

    def best(
        self, backend: Backend, training: Training, slots: Frontier, features: Array, need: Array
    ) -> Splits:
        """The best split of each slot by the first need[s] varying ones of features i32[S, k]."""
        hist = backend.histogram(training, slots, features)
        return self.best_of(backend, training, slots, hist, features, need)

    def best_of(
        self, backend: Backend, training: Training, slots: Frontier, hist: Array, features: Array,
        need: Array,
    ) -> Splits:  # fmt: skip
        """As `best`, from the histograms of these features; it reads no row."""
        return backend.best_split(training, slots, hist, features, need)

    def move(self, backend: Backend, training: Training, slots: Frontier, splits: Splits) -> Moved:
        """Move each slot's rows to the other half, left ones first: see `Backend.partition`."""
        return backend.partition(training, slots, splits)

    def side_values(self, backend: Backend, training: Training, below: Frontier) -> Array:
        """The values f64[S] of slots that monotonic constraints compare."""
        return training.rules.criterion.side_value(backend.xp, below.sums)

    # the deep phase

    def deep_rows(self, backend: Backend, training: Training, n_rows: int) -> int:
        """The most rows of a slot whose subtree is grown whole, 0: none; n_rows : of all slots"""
        if self.grows_whole is None:
            return backend.deep_rows(training, n_rows)
        return n_rows * self.grows_whole

    def cpu_kernel(self, training: Training) -> Any:
        if self.kernel is not None:
            return self.kernel
        numeric = not training.node_words
        return grow_random if training.rules.random and numeric else grow_subtrees

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        """What `cpu_kernel` takes besides the scratch of all kinds."""
        return ()

    def given(self, data: Data) -> tuple[Any, ...]:
        """What it takes besides scratch, which other calls may use again."""
        return ()

    def written(self, slots: Frontier, of_kind: tuple[Any, ...]) -> None:
        """Take what `cpu_kernel` has written of some slots there."""


class Numeric(Kind):
    """As the base class; backends may search whole levels."""

    by_level = True


NUMERIC = Numeric()


class Sets(Kind):
    """Some features are categorical, and are split by sets; the others by cuts."""

    name = "sets"
    title = "sets of categories"
    by_level = True

    def slot_bytes(self, training: Training) -> int:
        # the scatter matrix of classes has C^2 numbers
        matrices = max(1, training.n_channels // training.n_codes)
        return super().slot_bytes(training) * IN_ORDER * matrices

    def best_of(
        self, backend: Backend, training: Training, slots: Frontier, hist: Array, features: Array,
        need: Array,
    ) -> Splits:  # fmt: skip
        """Bins of categories are put in the order in which their best set is a cut."""
        matrix, rules = training.matrix, training.rules
        xp, is_set = backend.xp, backend.asarray(matrix.edges.kinds == CATEGORICAL)
        keys = slots.key if rules.random else slots.key[:0]
        hist, order = in_order(xp, hist, features, is_set, training.n_channels, rules, keys)
        # missing values are a category like the others
        n_bins = matrix.n_bins + xp.astype(is_set, matrix.n_bins.dtype)
        with_missing = replace(training, matrix=replace(matrix, n_bins=n_bins))
        splits = backend.best_split(with_missing, slots, hist, features, need)
        return as_sets(
            xp, splits, hist, order, features, is_set, matrix.n_bins, training.n_words, rules
        )


def best_of_rounds(
    xp: Any, slots: Frontier, k: int, end: int, best_from: Callable[[int, Array], Splits]
) -> Splits:
    """The best splits of rounds of k attempts, until each slot tried k that vary. `best_from` takes
    the number of the round's first attempt, below `end`, and how many to try still, i64[S]."""
    need = xp.full((slots.n_slots,), k, dtype=xp.int64)
    best = best_from(0, need)
    need = need - best.tried
    for first in range(k, end, k):
        if not bool(xp.any(need > 0)):
            break
        splits = best_from(first, need)
        best, need = best.better(xp, splits), need - splits.tried
    return best


def draw_features(xp: Any, keys: Array, first: int, k: int, n_features: int) -> Array:
    """Elements first .. first + k - 1 of each slot's random order of features: i32[S, k], then -1.

    keys : u64[S]. If k >= n_features, the order is 0, 1, 2, ..."""
    S, device = keys.shape[0], keys.device
    position = xp.arange(first, first + k, dtype=xp.uint64, device=device)[None, :]
    if k >= n_features:
        return xp.broadcast_to(xp.astype(position, xp.int32), (S, k))
    inside = position < n_features
    drawn = permute(xp, keys[:, None], xp.where(inside, position, 0), n_features)
    return xp.where(inside, xp.astype(drawn, xp.int32), -1)
