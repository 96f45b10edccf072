"""Combinations of features: how nodes draw them, what they add up, and how forests store them.

A combination adds coordinates of a few features, each times a small whole number. A coordinate is
where a bin lies between the feature's first and its last bin, from 0 to 65,534, so that sums are
exact integers and straight lines stay straight. A row goes left if its sum is at most a threshold:

    petal length + petal width <= 81,004        coordinates, weights 1 and 1

Nodes draw combinations by hash. The first feature of combination number a of a node is the a-th
in the node's random order, as if features were tried alone; others are drawn to it.

A split by a combination of n features has the bin OBLIQUE_BIN + n, and as its feature the first of
them. Its words lie among the forest's sets:

    word 0: first term | threshold      word 1: third term | second term      ...

in the upper and the lower 32 bits; a term is feature << 4 | weight + 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.common.hashing import hash_at
from gpuforest.frontier import draw_features
from gpuforest.nodes import (
    BIN_MASK,
    FEATURE_SHIFT,
    MOST_COMBINED,
    SET_BIN,
    combined,
    is_leaf,
)

if TYPE_CHECKING:
    from gpuforest.binning import BinEdges

Array = Any

BINS = 255  # of a combination in a node: equal steps from its least to its greatest sum
DRAWS = 2**33  # hashed with a node's key, and a combination's number: what it draws
STRIDE = 16  # hashes of a combination, of which it uses one a feature
ROUNDS = 2**34  # and the round, of those after the first: the key for its random cuts
ALL_LEFT = 2**31 - 1  # the threshold of a split by which all sums go left
WEIGHT_BITS, WEIGHT_ZERO = 4, 8


@dataclass(frozen=True, eq=False)
class Combining:
    """What the combinations of one fit are drawn from, on the backend's device.

    coordinates : i32[F, B], see `BinEdges.coordinates`
    chances : u64[M], a combination has one feature more for each that its hash is below
    numeric : i32[Fn], the numeric features; position : i32[F], where in it each is, -1: nowhere
    heaviest : int, weights are the whole numbers from 1 to it, and their negatives
    n_bins : int, codes of a combination in a node are 0 .. n_bins - 1, and n_bins is missing
    """

    coordinates: Array
    chances: Array
    numeric: Array
    position: Array
    heaviest: int
    n_bins: int

    @classmethod
    def of(cls, edges: BinEdges, mean: float, heaviest: int, asarray: Any) -> Combining:
        """For combinations of `mean` features on average."""
        numeric = np.flatnonzero(edges.kinds != CATEGORICAL).astype(np.int32)
        position = np.full(edges.n_features, -1, np.int32)
        position[numeric] = np.arange(len(numeric))
        host = edges.coordinates, chances(mean, len(numeric)), numeric, position
        return cls(*map(asarray, host), heaviest, combined_bins(edges))

    @property
    def most_features(self) -> int:
        """The most features of a combination."""
        return int(self.chances.shape[0]) + 1


def combined_bins(edges: BinEdges) -> int:
    """Bins of a combination: so many that features alone keep theirs beside it."""
    return max(BINS, edges.n_codes - 1)


def words_for(n_features: int) -> int:
    """The 64-bit words of a combination of so many features."""
    return 1 + n_features // 2


def chances(mean: float, n_numeric: int) -> np.ndarray:
    """P(more features than 1, 2, ...) times 2**64, u64[M]: a combination has one and as many more
    as a binomial draw from M = min(7, n_numeric - 1) gives, so that `mean` is the mean.

    Sums and products alone, in a fixed order, are the same on every machine.
    """
    most = max(min(MOST_COMBINED, n_numeric) - 1, 0)
    if not most:
        return np.zeros(0, np.uint64)
    p = min(1.0, (mean - 1.0) / most)
    exactly = [1.0] + [0.0] * most  # the chance of 0, 1, ... after so many trials
    for _ in range(most):
        exactly = [exactly[0] * (1 - p)] + [
            exactly[i] * (1 - p) + exactly[i - 1] * p for i in range(1, most + 1)
        ]
    above = [0.0] * most
    total = 0.0
    for i in range(most, 0, -1):
        total += exactly[i]
        above[i - 1] = total
    return np.array([min(int(a * 2.0**64), 2**64 - 1) for a in above], np.uint64)


def n_attempts(k: int, n_features: int) -> int:
    """The most combinations that a node looks at to find k that vary: each feature is the first
    of equally many."""
    return n_features * -(-k // n_features)


def draw(
    xp: Any, keys: Array, first: int, k: int, n_features: int, combining: Combining, n_tried: int
) -> tuple[Array, Array]:
    """Combinations number first .. first + k - 1 of each slot.

    Parameters
    ----------
    keys : u64[S]
    n_tried : the number of varying combinations wanted, which decides the order of features

    Returns
    -------
    features : i32[S, k, L], -1 behind the last of a combination; all -1 past the last attempt
    weights : i32[S, k, L]
    """
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
    base = number[None, :] * STRIDE + DRAWS
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
    features, drawn, others = [lead], [], combining.numeric.shape[0] - 1
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


def pack(xp: Any, features: Array, weights: Array, threshold: Array, n_words: int) -> Array:
    """The words u64[S, n_words] of combinations i32[S, L] and their thresholds i64[S]."""
    S, L = features.shape
    words = [xp.astype(threshold & 0xFFFFFFFF, xp.uint64)]
    words += [xp.zeros_like(words[0]) for _ in range(n_words - 1)]
    for i in range(L):
        term = (xp.astype(features[:, i], xp.int64) << WEIGHT_BITS) | xp.astype(
            weights[:, i] + WEIGHT_ZERO, xp.int64
        )
        term = xp.astype(xp.where(features[:, i] < 0, 0, term), xp.uint64)
        at, shift = ((i + 1) // 2, 0 if i % 2 else 32)
        words[at] = words[at] | (term << shift)
    return xp.stack(words, axis=1)


def unpack(xp: Any, words: Array, n: Array, most: int) -> tuple[Array, Array, Array]:
    """Features i32[S, most], -1 behind the last, weights i32[S, most] and thresholds i64[S] of
    combinations of n i64[S] features."""
    features, weights = [], []
    for i in range(most):
        at, shift = (i + 1) // 2, 0 if i % 2 else 32
        term = xp.astype((words[:, at] >> shift) & 0xFFFFFFFF, xp.int64)
        features.append(xp.where(n > i, xp.astype(term >> WEIGHT_BITS, xp.int32), -1))
        weights.append(xp.astype(term & 15, xp.int32) - WEIGHT_ZERO)
    threshold = xp.astype(words[:, 0] & 0xFFFFFFFF, xp.int64)
    threshold = xp.where(threshold >= 2**31, threshold - 2**32, threshold)
    return xp.stack(features, axis=1), xp.stack(weights, axis=1), threshold


def walking_terms(
    nodes: np.ndarray, set_at: np.ndarray, sets: np.ndarray, coordinates: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first two terms of each split, u64[M] with the first in the upper half, the third and
    fourth likewise, and its threshold, i32[M]. A feature alone is a term of weight 1, and its threshold the coordinate of
    its bin; leaves and sets have terms that add nothing.
    """
    terms = np.full(len(nodes), WEIGHT_ZERO << 32 | WEIGHT_ZERO, np.uint64)
    more = terms.copy()
    thresholds = np.zeros(len(nodes), np.int32)
    n, bin = combined(nodes), nodes & np.uint64(BIN_MASK)
    alone = np.flatnonzero((n == 0) & ~is_leaf(nodes) & (bin != SET_BIN))
    feature = nodes[alone] >> np.uint64(FEATURE_SHIFT)
    own = feature << np.uint64(WEIGHT_BITS) | np.uint64(WEIGHT_ZERO + 1)
    terms[alone] = own << np.uint64(32) | np.uint64(WEIGHT_ZERO)
    thresholds[alone] = coordinates[feature.astype(np.int64), bin[alone].astype(np.int64)]
    several = np.flatnonzero(n > 0)
    first, half, low = set_at[several], np.uint64(32), np.uint64(0xFFFFFFFF)
    terms[several] = (sets[first] >> half << half) | (sets[first + 1] & low)
    thresholds[several] = sets[first].astype(np.uint32).view(np.int32)
    for least, at in ((3, 1), (4, 2)):
        some = np.flatnonzero(n >= least)
        word = sets[set_at[some] + at]
        if least == 3:
            more[some] = (word >> half << half) | np.uint64(WEIGHT_ZERO)
        else:
            more[some] = (more[some] >> half << half) | (word & low)
    return terms, more, thresholds
