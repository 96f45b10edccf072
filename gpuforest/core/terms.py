"""Combinations of features: how nodes draw them, what they add up, and how forests store them.

A combination adds coordinates of a few features, each times a small whole number. A coordinate is
where a bin lies between the feature's first and its last bin, from 0 to 65,534, so that sums are
exact integers and straight lines stay straight. A row goes left if its sum is at most a threshold:

    petal length + petal width <= 81,004        coordinates, weights 1 and 1

Nodes draw combinations by hash. The first feature of combination number a of a node is the a-th
in the node's random order, as if features were tried alone; further features are drawn to it.

A split by a combination of n features has the bin OBLIQUE_BIN + n, and as its feature the first of
them. Its words lie among the forest's sets:

    word 0: first term | threshold      word 1: third term | second term      ...

in the upper and the lower 32 bits; a term is feature << 4 | weight + 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import CATEGORICAL, Array
from gpuforest.compiler.types import I64, I32s, I32s2, U64s
from gpuforest.core.bins import BinEdges
from gpuforest.core.nodes import MOST_COMBINED, OBLIQUE_BIN, SET_BIN, combined, is_leaf
from gpuforest.core.nodes import unpack as unpack_nodes
from gpuforest.core.rules import Rules

BINS = 255  # of a combination in a node: equal steps from its least to its greatest sum
DRAWS = 2**33  # hashed with a node's key, and a combination's number: what it draws
STRIDE = 16  # hashes reserved for a combination, which uses one a feature
ROUNDS = 2**34  # hashed with the number of a later round: the key for its random cuts
ALL_LEFT = 2**31 - 1  # the threshold of a split that sends all sums left
WEIGHT_BITS, WEIGHT_ZERO = 4, 8
# where the parts of a record begin, see `walking_records`
MISSING_AT, COUNT_AT, THRESHOLD_AT, FEATURES_AT, FEATURE_BITS = 30, 31, 40, 12, 17
TERMS_IN_WORD, BY_SET, MOST_THRESHOLD = 3, 9, 2**23 - 1  # no sum is above this threshold


@dataclass(frozen=True, eq=False)
class Combining:
    """What the combinations of one fit are drawn from, on the backend's device."""

    coordinates: I32s2  # i32[F, B], see `BinEdges.coordinates`
    chances: U64s  # u64[M], a combination has one feature more for each that its hash is below
    numeric: I32s  # i32[n_numeric], the numeric features
    position: I32s  # i32[F], where each feature is in `numeric`, or -1
    heaviest: I64  # weights are the whole numbers from 1 to it, and their negatives
    n_bins: I64  # codes of a combination in a node are 0 .. n_bins - 1, and n_bins is missing

    @classmethod
    def of(cls, edges: BinEdges, rules: Rules, asarray: Any) -> Combining:
        """What the rules ask for; asarray : puts an array where the trees grow."""
        numeric = np.flatnonzero(edges.kinds != CATEGORICAL).astype(np.int32)
        position = np.full(edges.n_features, -1, np.int32)
        position[numeric] = np.arange(len(numeric))
        if len(numeric) and edges.n_bins[numeric].max() > OBLIQUE_BIN:
            raise ValueError(
                f"combinations of features need at most {OBLIQUE_BIN} bins of each: lower max_bins"
            )
        host = edges.coordinates, chances(rules.combined, len(numeric)), numeric, position
        coordinates, above, numeric, position = map(asarray, host)
        return cls(coordinates, above, numeric, position, rules.heaviest, combined_bins(edges))

    @property
    def most(self) -> I64:
        """The most features of a combination besides its first."""
        return int(self.chances.shape[0])

    @property
    def n_numeric(self) -> I64:
        return int(self.numeric.shape[0])

    @property
    def most_features(self) -> int:
        return self.most + 1


_NO_INTS = np.zeros(0, np.int32)
NO_COMBINATIONS = Combining(
    np.zeros((0, 0), np.int32), np.zeros(0, np.uint64), _NO_INTS, _NO_INTS, 0, 0
)


def combined_bins(edges: BinEdges) -> int:
    """Bins of a combination: at least the bins of any feature."""
    return max(BINS, edges.n_codes - 1)


def words_for(n_features: int) -> int:
    """The 64-bit words of a combination of n_features features."""
    return 1 + n_features // 2


def chances(mean: float, n_numeric: int) -> np.ndarray:
    """P(more features than 1, 2, ...) times 2**64, u64[M], M = min(7, n_numeric - 1). The number is
    one plus a binomial draw from M, with mean `mean`; sums and products have a fixed order, so all
    machines agree."""
    most = max(min(MOST_COMBINED, n_numeric) - 1, 0)
    if not most:
        return np.zeros(0, np.uint64)
    p = min(1.0, (mean - 1.0) / most)
    exactly = np.ones(1)  # the chance of 0, 1, ... successes
    for _ in range(most):
        exactly = np.append(exactly, 0.0) * (1 - p) + np.append(0.0, exactly) * p
    above = np.cumsum(exactly[:0:-1])[::-1].tolist()
    return np.array([min(int(a * 2.0**64), 2**64 - 1) for a in above], np.uint64)


def pack(xp: Any, features: Array, weights: Array, threshold: Array, n_words: int) -> Array:
    """The words u64[S, n_words] of combinations i32[S, L] and their thresholds i64[S]."""
    words = [xp.astype(threshold & 0xFFFFFFFF, xp.uint64)]
    words += [xp.zeros_like(words[0]) for _ in range(n_words - 1)]
    for i in range(features.shape[1]):
        term = (xp.astype(features[:, i], xp.int64) << WEIGHT_BITS) | xp.astype(
            weights[:, i] + WEIGHT_ZERO, xp.int64
        )
        term = xp.astype(xp.where(features[:, i] < 0, 0, term), xp.uint64)
        at, shift = ((i + 1) // 2, 0 if i % 2 else 32)
        words[at] = words[at] | (term << shift)
    return xp.stack(words, axis=1)


def unpack(xp: Any, words: Array, n: Array, most: int) -> tuple[Array, Array, Array]:
    """Features i32[S, most] (-1: none), weights i32[S, most], thresholds i64[S], of n i64[S]."""
    features, weights = [], []
    for i in range(most):
        at, shift = (i + 1) // 2, 0 if i % 2 else 32
        term = xp.astype((words[:, at] >> shift) & 0xFFFFFFFF, xp.int64)
        features.append(xp.where(n > i, xp.astype(term >> WEIGHT_BITS, xp.int32), -1))
        weights.append(xp.astype(term & 15, xp.int32) - WEIGHT_ZERO)
    threshold = xp.astype(words[:, 0] & 0xFFFFFFFF, xp.int64)
    threshold = xp.where(threshold >= 2**31, threshold - 2**32, threshold)
    return xp.stack(features, axis=1), xp.stack(weights, axis=1), threshold


def walking_records(
    nodes: np.ndarray, offsets: np.ndarray, set_at: np.ndarray, sets: np.ndarray,
    coordinates: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """What a step down the trees of an oblique forest reads of a node: a record of two words,
    u64[2M], and of splits by more than three features a third, u64[M].

         63        40     34     31             30      29    0
        | threshold |    | features | missing_left     | child |
        | features of the first three terms | their weights + 8 |

        | features of the next three terms  | their weights + 8 |

    `features` is how many are added up, BY_SET for a split by a set, or 0 for a leaf, which has
    itself as its child, so that rows stay there. Terms that a node lacks have its first feature and
    the weight 0. A feature alone has the weight 1, and the coordinate of its bin as its threshold.

    offsets : i64[T + 1], of the trees' nodes
    """
    u64, n, leaf = np.uint64, combined(nodes), is_leaf(nodes)
    feature, bin, missing_left, child = unpack_nodes(xp, nodes)
    number = np.arange(len(nodes)) - np.repeat(offsets[:-1], np.diff(offsets))
    count = np.where(leaf, 0, np.where(bin == SET_BIN, BY_SET, np.maximum(n, 1)))
    threshold = np.full(len(nodes), MOST_THRESHOLD)
    alone, several = np.flatnonzero(count == 1), np.flatnonzero(n)
    threshold[alone] = coordinates[feature[alone], bin[alone]]
    lower = sets[set_at[several]].astype(np.uint32).view(np.int32)
    threshold[several] = np.clip(lower, -MOST_THRESHOLD - 1, MOST_THRESHOLD)
    first = np.where(leaf, number, child).astype(u64)
    first |= (leaf | missing_left).astype(u64) << u64(MISSING_AT)
    first |= count.astype(u64) << u64(COUNT_AT)
    first |= threshold.astype(u64) << u64(THRESHOLD_AT)
    terms = np.zeros((2, len(nodes)), u64)
    for i in range(2 * TERMS_IN_WORD):
        term = np.maximum(feature, 0).astype(u64) << u64(WEIGHT_BITS) | u64(WEIGHT_ZERO)
        if i == 0:
            term[alone] += u64(1)
        some = np.flatnonzero(n > i)
        word = sets[set_at[some] + (i + 1) // 2]
        term[some] = word & u64(2**32 - 1) if i % 2 else word >> u64(32)
        half, at = divmod(i, TERMS_IN_WORD)
        terms[half] |= (term & u64(15)) << u64(WEIGHT_BITS * at)
        terms[half] |= term >> u64(WEIGHT_BITS) << u64(FEATURES_AT + FEATURE_BITS * at)
    return np.stack([first, terms[0]], axis=1).reshape(-1), terms[1]
