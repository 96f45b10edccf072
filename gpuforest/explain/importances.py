"""Importances of features: gains in the bag (Breiman 2001) or out of it, permutation, Boruta."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.common import hashing, progress
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.core.criteria import Criterion
from gpuforest.core.forest import Forest, tree_groups
from gpuforest.core.nodes import FEATURE_SHIFT, is_leaf
from gpuforest.core.rules import Sampling
from gpuforest.data.arrays import to_host
from gpuforest.explain.oob import judged_leaves
from gpuforest.explain.paths import some_trees, split_nodes
from gpuforest.growing import bags, memory

Score = Callable[[np.ndarray, np.ndarray], float]  # of rows i64[n], predictions f64[n, n_values]

SHADOWS = 2**41  # with the seed, beyond all trees and hashing.ROWS: the keys of Boruta's rounds
FEWEST_SHADOWS = 5  # so that few features left do not face a best shadow that is poor by chance
HASHES_AT_ONCE = 2**20


def impurity_importances(forest: Forest, criterion: Criterion) -> np.ndarray:
    """Importances f64[F] that add up to one, or zeros if no split gained anything. As in
    scikit-learn each tree's are normalised, averaged (boosted trees by weight), and normalised
    again."""
    total, weights = np.zeros(forest.edges.n_features), np.ones(forest.n_trees)
    if forest.tree_weights is not None and forest.tree_weights.any():
        weights = forest.tree_weights
    for trees, shares in tree_shares(forest, criterion):
        total += (shares * weights[trees, None]).sum(axis=0)
    return np.divide(total, total.sum() or 1.0, out=total)


def importance_spread(estimator: Any) -> np.ndarray | None:
    """Standard deviations f64[F] of importances over trees; None: one tree, or boosting."""
    forest = estimator.forest_
    if forest.baseline is not None or forest.n_trees == 1:
        return None
    shares = [shares for _, shares in tree_shares(forest, estimator._criterion)]
    return np.asarray(np.concatenate(shares).std(axis=0))


def tree_shares(forest: Forest, criterion: Criterion) -> Iterator[tuple[slice, np.ndarray]]:
    """Groups of trees, and what each feature's splits gained, f64[t, F]; a tree's add up to one. In
    whole units of a power of two, so that the order of sums does not matter."""
    all_gains = split_gains(forest, criterion)
    for first, last in tree_groups(forest):
        offsets = forest.tree_offsets[first : last + 1]
        gains, most = all_gains[offsets[0] : offsets[-1]], int(np.diff(offsets).max())
        bits = 62 - most.bit_length() - math.frexp(gains.max())[1]
        whole = np.floor(gains * math.ldexp(1.0, min(bits, 1000)) + 0.5).astype(np.int64)
        sums = gains_by_features(forest, first, last, whole)
        yield slice(first, last), sums / np.maximum(sums.sum(axis=1, keepdims=True), 1)


def split_gains(forest: Forest, criterion: Criterion) -> np.ndarray:
    """Score gained by each node's split, f64[M] >= 0; 0: leaf."""
    gains = np.zeros(forest.n_nodes)
    for first, last in tree_groups(forest):
        begin, end = forest.tree_offsets[[first, last]]
        if forest.node_errors is not None:
            score = -forest.node_errors[begin:end]
        else:
            score = criterion.side_score(xp, forest.node_sums(first, last))
        rises = _rises(forest, first, last, score)
        gains[begin:end] = np.where(rises > 0, rises, 0.0)
    return gains


def _rises(forest: Forest, first: int, last: int, score: np.ndarray) -> np.ndarray:
    """What the scores f64[m] of both children of a node exceed its own by, f64[m]; 0: leaf."""
    split, left = split_nodes(forest, first, last)
    rises = np.zeros(len(score))
    rises[split] = score[left] + score[left + 1] - score[split]
    return rises


def gains_by_features(forest: Forest, first: int, last: int, gains: np.ndarray) -> np.ndarray:
    """Sums over each feature's splits of gains i64[m] or f64[m]: [t, F] of the same dtype.
    Combinations share gains by weight; the remainder of a division of integers is the first
    feature's."""
    F, offsets = forest.edges.n_features, forest.tree_offsets[first : last + 1]
    split = np.flatnonzero(~is_leaf(forest.nodes[offsets[0] : offsets[-1]]))
    sums, gains = np.zeros((last - first) * F, gains.dtype), gains[split]
    n_splits = np.diff(np.searchsorted(split, offsets - offsets[0]))
    row = np.repeat(np.arange(last - first) * F, n_splits)
    at, feature, weight = forest.terms(offsets[0] + split)
    total = np.bincount(at, weight, minlength=len(split)).astype(np.int64)
    if gains.dtype.kind == "f":
        np.add.at(sums, row[at] + feature, gains[at] * weight / total[at])
        return sums.reshape(-1, F)
    share = gains[at] // total[at] * weight
    np.add.at(sums, row[at] + feature, share)
    np.subtract.at(gains, at, share)
    first_feature = (forest.nodes[offsets[0] + split] >> np.uint64(FEATURE_SHIFT)).astype(np.int64)
    np.add.at(sums, row + first_feature, gains)
    return sums.reshape(-1, F)


# out of bag: a split is chosen because it gains much for the rows of its bag, and features of many
# values have more splits to choose from, so impurity importances favour them


def unbiased_importances(
    forest: Forest, matrix: BinnedMatrix, y: np.ndarray, sampling: Sampling, backend: Backend
) -> np.ndarray:
    """Gain of each feature's splits for the rows out of bag, f64[F, T], see `oob_gains`. NaN for a
    tree whose bag has all rows. Rows of weight zero do not count. The target y is i32[N, 1] class
    codes or i64[N, K] moments."""
    y, T = to_host(y), forest.n_trees
    counted = True if sampling.weights is None else sampling.weights > 0
    importances = np.zeros((forest.edges.n_features, T))
    for begin, end in tree_groups(forest):
        step = memory.walked_at_once(sampling.n_rows, backend.memory_budget)
        for first in range(begin, end, step):
            last = min(first + step, end)
            out = ~to_host(bags.was_drawn(sampling, forest.seed, first, last, backend)) & counted
            leaves = judged_leaves(some_trees(forest, first, last), matrix, backend)
            sums = _leaf_sums(forest, first, last, leaves, out, y)
            gains = gains_by_features(forest, first, last, oob_gains(forest, first, last, sums))
            n_out = out.sum(axis=1)
            importances[:, first:last] = np.where(n_out, gains.T / np.maximum(n_out, 1), np.nan)
            progress.report(last, T)
    return importances


def _leaf_sums(
    forest: Forest, first: int, last: int, leaves: np.ndarray, out: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Channel sums i64[m, C] of the marked rows bool[t, N] in their leaves, which i64[N, t] numbers
    within trees; zero for other nodes."""
    offsets = forest.tree_offsets
    m, C = int(offsets[last] - offsets[first]), forest.leaf_sums.shape[1]
    tree, row = np.nonzero(out)
    node = leaves[row, tree] + (offsets[first:last] - offsets[first])[tree]
    if forest.coding.is_classes:
        return np.bincount(node * C + y[row, 0], minlength=m * C).reshape(m, C)
    sums = np.zeros((m, C), np.int64)
    sums[:, 0] = np.bincount(node, minlength=m)
    for k in range(C - 1):
        np.add.at(sums[:, k + 1], node, y[row, k])  # integers: bincount would round them
    return sums


def oob_gains(forest: Forest, first: int, last: int, sums: np.ndarray) -> np.ndarray:
    """What each split of the trees first .. last - 1 gains for other rows, f64[m], 0 for leaves,
    from the channel sums i64[m, C] of these rows in leaves.

    With p for the shares of classes in the bag, and o for shares in the n other rows
    in the node, a node's impurity is 1 - sum(p o). A split gains

        n_left sum(p_left o_left) + n_right sum(p_right o_right) - n sum(p o).

    Of numbers p and o are the means of the targets less the mean of the tree's bag. For classes
    this is the measure of Zhou and Hooker (2021) and, the same, MDI-oob of Li et al. (2019), which
    defines it for numbers too. With the bag's own rows as the others it is the usual gain of
    Gini's impurity or the squared error, times n.
    """
    others = forest.added_up(sums, first, last).astype(np.float64)
    in_bag = forest.node_sums(first, last).astype(np.float64)
    coding = forest.coding
    if coding.is_classes:
        score = (others * (in_bag / in_bag.sum(axis=1, keepdims=True))).sum(axis=1)
    else:
        means = in_bag[:, 1:] / in_bag[:, :1]
        offsets = forest.tree_offsets[first : last + 1] - forest.tree_offsets[first]
        middle = means[np.repeat(offsets[:-1], np.diff(offsets))]
        deviations = (others[:, 1:] - others[:, :1] * middle) * (means - middle)
        score = deviations.sum(axis=1) if coding.several else deviations.mean(axis=1)
        score = score / coding.scale**2 / (coding.n_outputs if coding.several else 1)
    return _rises(forest, first, last, score)


# permutation


def permutation_decreases(
    forest: Forest, matrix: BinnedMatrix, sampling: Sampling, score: Score, backend: Backend,
    groups: list[list[int]] | None = None,
) -> np.ndarray:  # fmt: skip
    """Fall of each tree's score when a feature, or a group of features, is permuted, f64[F or
    groups, T]. Rows of positive weight out of the tree's bag are scored; one hashed order serves
    all features of a tree. Zero for features without a split; NaN for trees whose bag has all
    rows."""
    xp, T, K = backend.xp, forest.n_trees, forest.coding.n_values
    groups = [[f] for f in range(matrix.n_features)] if groups is None else groups
    counted = True if sampling.weights is None else sampling.weights > 0

    def of_tree(t: int, rows: np.ndarray) -> list[float]:
        mixed = rows[random_order(forest.seed, t, len(rows))]
        at, mixed = backend.asarray(rows), backend.asarray(mixed)
        codes, used = matrix.judged_codes(xp, at), set(split_features(forest, t))

        def score_with(features: set[int]) -> float:
            for feature in features:
                codes[:, feature] = xp.take(matrix.judged_column(feature), mixed)
            values = xp.zeros((len(rows), K), dtype=xp.float64)
            values = backend.accumulate(forest, codes, range(t, t + 1), None, values)
            for feature in features:
                codes[:, feature] = xp.take(matrix.judged_column(feature), at)
            return score(rows, backend.asnumpy(values))

        before, parts = score_with(set()), [used.intersection(group) for group in groups]
        return [before - score_with(part) if part else 0.0 for part in parts]

    decreases = np.full((len(groups), T), np.nan)
    for t in range(T):
        drawn = bags.was_drawn(sampling, forest.seed, t, t + 1, backend)[0, :]
        rows = np.flatnonzero(~backend.asnumpy(drawn) & counted)
        if len(rows):
            decreases[:, t] = of_tree(t, rows)
        progress.report(t + 1, T)
    return decreases


def split_features(forest: Forest, tree: int) -> list[int]:
    """The features that a tree splits on, ascending."""
    split = forest.tree_offsets[tree] + split_nodes(forest, tree, tree + 1)[0]
    features: list[int] = np.unique(forest.terms(split)[1]).tolist()
    return features


def random_order(seed: int, tree: int, n: int) -> np.ndarray:
    """A random order i64[n] of range(n), of a tree's rows out of bag."""
    key = hashing.hash_at(hashing.tree_keys(np, seed, tree, tree + 1), hashing.OUT_OF_BAG)
    positions = np.arange(n, dtype=np.uint64)[None]
    return np.asarray(hashing.permute(np, key[:, None], positions, n)[0], np.int64)


# Boruta (Kursa and Rudnicki 2010)


def round_key(seed: int, number: int) -> np.ndarray:
    """The key u64[1] of a round: position 0 is the forest's seed, 1, 2, ... are keys of shadows."""
    key = hashing.hash_at(np.full(1, seed, np.uint64), SHADOWS)
    return np.asarray(hashing.hash_at(key, number))


def shadows_of(codes: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The same codes [F, N], where the rows of each feature are in a random order of its own."""
    F, n = codes.shape
    shadows, position = np.empty_like(codes), np.arange(n, dtype=np.uint64)[None]
    keys = hashing.hash_at(key, np.arange(1, F + 1, dtype=np.uint64))[:, None]
    step = max(1, HASHES_AT_ONCE // n)
    for f in range(0, F, step):
        order = hashing.permute(np, keys[f : f + step], position, n).astype(np.int64)
        shadows[f : f + step] = np.take_along_axis(codes[f : f + step], order, axis=1)
    return shadows


def with_shadows(
    codes: np.ndarray, edges: BinEdges, features: np.ndarray, key: np.ndarray
) -> tuple[np.ndarray, BinEdges, np.ndarray]:
    """Codes [n + m, N] of n features and m shadows, their edges, and the feature of each, i64[n +
    m]. m >= n and m >= FEWEST_SHADOWS: few features have several shadows each. See `round_key`."""
    n_shadows = max(len(features), FEWEST_SHADOWS)
    sources = np.concatenate([features, np.resize(features, n_shadows)])
    values, plain = np.split(edges.values, edges.offsets[1:-1]), codes[features]
    known = edges.categories
    labels = {i: known[f] for i, f in enumerate(sources.tolist()) if f in known}
    all_edges = BinEdges.of([values[f] for f in sources], labels)
    if all_edges.missing_code != edges.missing_code:
        plain = np.where(plain == edges.missing_code, all_edges.missing_code, plain)
    plain = plain.astype(all_edges.code_dtype, copy=False)
    shadows = shadows_of(np.resize(plain, (n_shadows, plain.shape[1])), key)
    return np.concatenate([plain, shadows]), all_edges, sources


def decided(hits: np.ndarray, n_rounds: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Which features beat the best shadow more often than a fair coin, and which less often,
    bool[F] each, from the rounds i64[F] in which each beat all shadows. A binomial test of each
    feature, corrected twice: for the number of features, so that of those called different a share
    of `alpha` is wrong on average (Benjamini and Hochberg 1995), and for the number of rounds,
    because each round tests them again (Bonferroni)."""
    from scipy.stats import binom, false_discovery_control  # slow to import

    def is_rare(chances: np.ndarray) -> np.ndarray:
        few_wrong = false_discovery_control(chances) <= alpha
        return np.asarray(few_wrong & (chances <= alpha / n_rounds))

    return is_rare(binom.sf(hits - 1, n_rounds, 0.5)), is_rare(binom.cdf(hits, n_rounds, 0.5))
