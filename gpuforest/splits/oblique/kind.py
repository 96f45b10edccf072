"""Oblique splits: nodes try combinations of features (Breiman 2001, section 5; Tomita et al. 2020).

The combinations of a level become columns of codes of their own, which kernels then take for
features. So histograms, cuts and moves of rows need no other code:

    codes of all rows  --draw, project-->  a column for each combination  --histogram, best split

A sum of coordinates has as its code its distance from the node's least sum, in steps of a power
of two: the least for which there are fewer than `n_bins` steps. terms.py says how combinations
are drawn and stored.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend, Moved, has
from gpuforest.backends.slots import gathered, held
from gpuforest.common.dtypes import CATEGORICAL, NUMERIC
from gpuforest.common.hashing import hash_at
from gpuforest.core import terms
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.nodes import MOST_COMBINED, OBLIQUE_BIN, SET_BIN
from gpuforest.core.rules import Rules
from gpuforest.core.target import Target
from gpuforest.core.terms import Combining
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import Kind, best_of_rounds, draw_features
from gpuforest.splits.oblique.numba import grow_combined, new_oblique

# A sum is missing where one of its values is missing, and a split leaves these rows together. At
# least this share of the rows should have the sums; the mean number is lowered in STEPS
COMPLETE, STEPS = 0.75, 64
ROW_BYTES = 40  # of a row of a chunk, besides a byte or two for each of its columns


def mean_combined(
    matrix: BinnedMatrix, weights: np.ndarray | None, wanted: float, backend: Backend
) -> float:
    """The mean number of features of a combination: `wanted`; or, with a warning, a lower one, with
    which on average the share COMPLETE of the weighted rows has all values of a combination. If a
    combination has each feature with the chance s, a row that lacks g values has all of it with the
    chance (1 - s)**g. Products and sums in a fixed order are the same on every machine."""
    edges, xp, codes = matrix.edges, backend.xp, matrix.codes
    numeric = np.flatnonzero(edges.kinds != CATEGORICAL).tolist()
    if len(numeric) < 2:
        return wanted
    lacks = xp.zeros((matrix.n_rows,), dtype=xp.int32)
    for f in numeric:
        lacks = lacks + xp.astype(codes[:, f] == edges.missing_code, xp.int32)
    counts = np.bincount(backend.asnumpy(lacks), weights)
    more = min(wanted, MOST_COMBINED, len(numeric)) - 1  # features besides the first, on average

    def complete(step: int) -> float:
        rows, share = 0.0, more * step / STEPS / (len(numeric) - 1)
        for count in counts[::-1].tolist():
            rows = rows * (1 - share) + count
        return rows / float(counts.sum())

    if complete(STEPS) >= COMPLETE:
        return wanted
    low, high = 1, STEPS  # not down to 0, where there would be no combinations
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if complete(middle) >= COMPLETE else (low, middle)
    mean = 1 + more * low / STEPS
    warnings.warn(
        f"so many values are missing that {complete(STEPS):.0%} of the rows would have a sum of "
        f"{wanted:g} features: sums have {mean:.2g} on average instead. Impute values, or lower "
        "feature_combinations",
        UserWarning,
        stacklevel=2,
    )
    return mean


def n_attempts(k: int, n_features: int) -> int:
    """Most combinations tried to find k that vary; each feature is the first equally often."""
    return n_features * -(-k // n_features)


def draw(
    xp: Any, keys: Array, first: int, k: int, n_features: int, combining: Combining, n_tried: int
) -> tuple[Array, Array]:
    """Combinations first .. first + k - 1 of slots with keys u64[S]: features i32[S, k, L], -1
    behind a combination's last and past the last attempt, and weights i32[S, k, L].

    n_tried : number of varying combinations that a slot tries"""
    S, device, most = keys.shape[0], keys.device, combining.most_features
    number = xp.arange(first, first + k, dtype=xp.uint64, device=device)
    leads = [
        draw_features(xp, keys, a % n_features, 1, n_features)
        if n_tried < n_features
        else xp.full((S, 1), a % n_features, dtype=xp.int32, device=device)
        for a in range(first, first + k)
    ]
    lead = xp.concat(leads, axis=1)
    past = number >= n_attempts(n_tried, n_features)
    lead = xp.where(past[None, :], -1, lead)
    base = number[None, :] * terms.STRIDE + terms.DRAWS
    hashes = [hash_at(keys[:, None], base + i) for i in range(most)]
    # 1. how many features it has
    place = xp.take(combining.position, xp.reshape(xp.where(lead < 0, 0, lead), (-1,)))
    place = xp.astype(xp.reshape(place, lead.shape), xp.int64)
    alone = (lead < 0) | (place < 0)
    n = xp.ones_like(place)
    for i in range(most - 1):
        n = n + xp.astype(hashes[0] < combining.chances[i], xp.int64)
    n = xp.where(alone, 1, n)
    # 2. the others, without replacement (Floyd's method), among all numeric ones but the first
    drawn: list[Array] = []
    features, others = [lead], combining.numeric.shape[0] - 1
    for i in range(1, most):
        last = others - (n - 1) + (i - 1)  # of n - 1 draws the i-th is from 0 .. last
        t = xp.astype(((hashes[i] >> 32) * xp.astype(last + 1, xp.uint64)) >> 32, xp.int64)
        taken = xp.zeros_like(alone)
        for earlier in drawn:
            taken = taken | (earlier == t)
        t = xp.where(taken, last, t)
        drawn.append(t)
        at = xp.where(n > i, t + xp.astype(t >= place, xp.int64), 0)
        other = xp.reshape(xp.take(combining.numeric, xp.reshape(at, (-1,))), at.shape)
        features.append(xp.where(n > i, other, -1))
    # 3. weights: one of 1 .. heaviest, and a sign; the first is positive, as its sign says nothing
    weights = []
    for i, h in enumerate(hashes):
        size = xp.astype((((h & 0xFFFFFFFF) >> 1) * combining.heaviest) >> 31, xp.int32) + 1
        negative = (h & 1 == 1) if i else xp.zeros_like(alone)
        weights.append(xp.where(negative, -size, size))
    return xp.stack(features, axis=2), xp.stack(weights, axis=2)


class Oblique(Kind):
    """Nodes try combinations of features; `cuts` is the kind of split of features alone."""

    name = "oblique"
    title = "combinations of features"
    whole_rows = True
    kernel = grow_combined

    def __init__(self, cuts: Kind) -> None:
        self.cuts, self.cpu_only, self.grows_whole = cuts, cuts.cpu_only, cuts.grows_whole
        # sums of a node's rows, and two columns of codes of all rows
        self.row_bytes = cuts.row_bytes + 4 + 2 * 4

    def fitted(self, backend: Backend, training: Training) -> Training:
        """The training with `combining`, of fewer features if too many values are missing."""
        rules, matrix = training.rules, training.matrix
        mean = mean_combined(matrix, training.sampling.weights, rules.combined, backend)
        rules = replace(rules, combined=mean)
        combining = Combining.of(matrix.edges, rules, backend.asarray)
        return replace(training, rules=rules, combining=combining)

    def runs_on(self, backend: Backend) -> bool:
        return has(backend, "project") and self.cuts.runs_on(backend)

    def split_words(self, rules: Rules, n_features: int) -> float:
        above = terms.chances(rules.combined, n_features) / 2.0**64
        # a combination of two features has two words, and a pair more has one more
        return float(2 * above[:1].sum() + above[2::2].sum())

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        return (new_oblique(scratch, data, training.combining),)

    def chunks(self, backend: Backend, training: Training, slots: Frontier) -> list[slice]:
        """Ranges of slots whose histograms and columns of codes fit the memory budget."""
        k = training.rules.n_tried
        n_rows = backend.asnumpy(slots.local_rows)
        histograms = 8 * k * training.combining.n_bins * training.hist_channels
        cost = np.cumsum(histograms + n_rows * (ROW_BYTES + 2 * k))
        chunk = cost // max(backend.memory_budget, 1)
        ends = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), slots.n_slots]
        return [slice(a, b) for a, b in pairwise(ends)]

    def _chunk(self, backend: Backend, training: Training, slots: Frontier) -> Splits:
        """Try combinations until enough were tried that vary."""
        xp, k, F = backend.xp, training.rules.n_tried, training.n_features
        gathered, y = _gathered(backend, training, slots)

        def best_from(first: int, need: Array) -> Splits:
            features, weights = draw(xp, slots.key, first, k, F, training.combining, k)
            if slots.allowed is not None:
                features, weights = _only_allowed(xp, slots, features, weights)
            features = xp.where((need > 0)[:, None, None], features, -1)
            key = slots.key if first == 0 else hash_at(slots.key, terms.ROUNDS + first // k)
            columns = replace(gathered, key=key)
            return self._best_of(backend, training, slots, columns, y, features, weights, need)

        return best_of_rounds(xp, slots, k, n_attempts(k, F), best_from)

    def _best_of(
        self, backend: Backend, training: Training, slots: Frontier, gathered: Frontier, y: Array,
        features: Array, weights: Array, need: Array,
    ) -> Splits:  # fmt: skip
        """The best split of each slot by combinations or single features i32[S, k, L]."""
        xp, k = backend.xp, training.rules.n_tried
        codes, low, shift = backend.project(training, slots, features, weights)
        local = features[:, :, 0]
        number = xp.arange(k, dtype=xp.int32)[None, :]
        if training.n_words:  # columns come twice: the second time they are categories
            is_set = backend.asarray(training.matrix.edges.kinds == CATEGORICAL)
            taken = xp.take(is_set, xp.reshape(xp.where(local < 0, 0, local), (-1,)))
            number = xp.where(xp.reshape(taken, local.shape), number + k, number)
        local = xp.where(local < 0, -1, number)
        columns = _as_features(backend, training, codes, y)
        splits = self.cuts.best(backend, columns, gathered, local, need)
        return _as_stored(backend, training, splits, features, weights, low, shift)

    def move(self, backend: Backend, training: Training, slots: Frontier, splits: Splits) -> Moved:
        """Move each slot's rows to the other half, as `Backend.partition`."""
        combining = training.combining
        xp, L = backend.xp, combining.most_features
        if not slots.n_slots:
            return backend.partition(training, slots, splits)
        split, n = splits.feature >= 0, xp.astype(splits.bin, xp.int64) - OBLIQUE_BIN
        is_sum = split & (n > 1) & (n <= L)
        several, weights, threshold = terms.unpack(xp, splits.sets, xp.where(is_sum, n, 0), L)
        # 1. each slot's own column
        column = xp.arange(L, dtype=xp.int64, device=splits.feature.device)[None, :]
        alone = xp.where(column == 0, splits.feature[:, None], -1)
        features = xp.where(is_sum[:, None], several, alone)
        codes, low, shift = backend.project(
            training, slots, features[:, None, :], weights[:, None, :]
        )
        # 2. its cut in the column's codes
        last = combining.n_bins - 1
        cut = ((threshold + 1 - low[:, 0]) >> shift[:, 0]) - 1
        cut = xp.astype(xp.where(threshold == terms.ALL_LEFT, last, cut), xp.int32)
        by_column = replace(
            splits,
            feature=xp.astype(split, xp.int32) - 1,
            bin=xp.where(is_sum, cut, splits.bin),
            sets=xp.asarray(splits.sets[:, : training.n_words], copy=True),
        )
        # 3. rows, for the time of the move, are numbered as in the column
        slot, position = held(backend.xp, slots)
        numbers = xp.zeros_like(slots.rows)
        numbers[position] = xp.arange(position.shape[0], dtype=xp.int32, device=numbers.device)
        by_number = replace(training, matrix=matrix_of(backend, codes, [last + 1], [NUMERIC]))
        numbers, moved, n_left = backend.partition(
            by_number, replace(slots, rows=numbers), by_column
        )
        half = slots.rows.shape[0] // 2
        position, source = position[xp.take(split, slot)], position
        other = xp.where(position < half, position + half, position - half)
        rows = slots.rows
        rows[other] = xp.take(rows, xp.take(source, xp.take(numbers, other)))
        return rows, moved, n_left


def _gathered(backend: Backend, training: Training, slots: Frontier) -> tuple[Frontier, Array]:
    """The slots with rows one after another, numbered 0, 1, ..., and these rows' targets."""
    rows = backend.xp.take(slots.rows, held(backend.xp, slots)[1])
    return gathered(backend.xp, slots), backend.xp.take(training.target.y, rows, axis=0)


def _only_allowed(xp: Any, slots: Frontier, features: Array, weights: Array) -> tuple[Array, Array]:
    """Combinations without features that trees did not draw; empty if the first is not drawn."""
    S, k, L = features.shape
    drawn = xp.reshape(slots.only_allowed(xp, xp.reshape(features, (S, k * L))), (S, k, L))
    drawn = xp.where(drawn[:, :, :1] < 0, -1, drawn)
    order = xp.argsort(xp.astype(drawn < 0, xp.int8), axis=2, stable=True)
    return xp.take_along_axis(drawn, order, axis=2), xp.take_along_axis(weights, order, axis=2)


def _as_features(backend: Backend, training: Training, codes: Array, y: Array) -> Training:
    """The training whose features are the columns [R, k]."""
    edges, k, n_bins = training.matrix.edges, training.rules.n_tried, training.combining.n_bins
    sizes, kinds = [n_bins] * k, [NUMERIC] * k
    if training.n_words:
        xp = backend.xp
        codes = xp.concat([codes, codes], axis=1)
        sizes += [int(edges.n_bins[edges.kinds == CATEGORICAL].max())] * k
        kinds += [CATEGORICAL] * k
    matrix = matrix_of(backend, codes, sizes, kinds)
    return replace(training, matrix=matrix, target=Target(training.target.coding, y))


def matrix_of(backend: Backend, codes: Array, sizes: list[int], kinds: list[int]) -> BinnedMatrix:
    """Columns of codes as a matrix of features, with `sizes` bins and of these kinds."""
    offsets = np.cumsum([0, *(size - 1 for size in sizes)])
    values = np.concatenate([np.arange(size - 1.0) for size in sizes])
    edges = BinEdges(values, offsets, np.array(kinds, np.uint8))
    return BinnedMatrix(codes, backend.asarray(edges.n_bins), edges)


def _as_stored(backend: Backend, training: Training, splits: Splits, *of_columns: Array) -> Splits:
    """Splits by columns as splits by features and combinations.

    of_columns : features, weights, low and shift of each column, see `Backend.project`"""
    xp, (S, k, _), device = backend.xp, of_columns[0].shape, splits.feature.device
    n_bins, slot = training.combining.n_bins, xp.arange(S, dtype=xp.int64, device=device)
    at = slot * k + xp.where(splits.feature < 0, 0, splits.feature % k)
    features, weights, low, shift = (
        xp.take(xp.reshape(values, (S * k, *values.shape[2:])), at, axis=0) for values in of_columns
    )
    n = xp.sum(xp.astype(features >= 0, xp.int64), axis=1)
    first, some = features[:, 0], splits.feature >= 0
    is_set, is_sum = splits.bin == SET_BIN, n > 1
    # 1. a feature alone: its last bin is not that of the widest column
    last = xp.take(training.matrix.n_bins, xp.where(first < 0, 0, first)) - 1
    bin = xp.where(is_set | (splits.bin < last), splits.bin, last)
    # 2. a combination
    cut = xp.astype(splits.bin, xp.int64)
    threshold = xp.where(cut >= n_bins - 1, terms.ALL_LEFT, low + ((cut + 1) << shift) - 1)
    width = training.node_words
    words = terms.pack(xp, features, weights, threshold, width)
    sets = xp.zeros((S, width), dtype=xp.uint64, device=device)
    if training.n_words:
        # 3. a set, without bits from the feature's bins on, which only wider columns have
        before = xp.arange(training.n_words, dtype=xp.int64, device=device) * 64
        bits = xp.clip(xp.astype(last + 1, xp.int64)[:, None] - before[None, :], 0, 64)
        whole = xp.full(bits.shape, 2**64 - 1, dtype=xp.uint64, device=device)
        drop = xp.astype(xp.where(bits > 0, 64 - bits, 0), xp.uint64)
        sets[:, : training.n_words] = xp.where(bits > 0, splits.sets & (whole >> drop), 0)
    return replace(
        splits,
        feature=xp.where(some, first, -1),
        bin=xp.where(some, xp.where(is_sum, xp.astype(n, xp.int32) + OBLIQUE_BIN, bin), 0),
        sets=xp.where((is_sum & some)[:, None], words, sets),
    )
