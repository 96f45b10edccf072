"""The bag of each tree: its training rows and their weights, recomputed from the seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.rows import chosen, row_hashes
from gpuforest.common import hashing
from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT, WEIGHT
from gpuforest.core.rules import Sampling
from gpuforest.core.target import Target
from gpuforest.core.training import Training
from gpuforest.kernels.bag.numpy import mulhi

FEWEST_UNITS = 8  # rows or groups for effects, whose trees grow from a quarter
WEIGHED_AT_ONCE = 2**18  # elements of bags weighted at once, so that their scratch stays small


def draw_bags(sampling: Sampling, seed: int, first: int, last: int, backend: Backend) -> Array:
    """The weights of all rows in the bags of the trees first .. last - 1, i32[last - first, N]. For
    draw j of a tree, the hash of (bag key, j), as a fraction of 2**64, is a point in the cumulative
    weights; the row whose share holds this point is drawn. Weight 0: out of bag. Whole groups are
    drawn in the same way, and a row counts as often as its group was drawn: if the rows are of the
    groups 1, 0 and 1, and group 1 was drawn twice, the bag is (2, 0, 2). With a rate, the hash of
    (bag key, id) says how often the row of this id counts."""
    xp, n = backend.xp, sampling.n_rows
    if sampling.blocks is not None:
        trees = range(first, last)
        bags = [draw_bags(of_past(sampling, t), seed, t, t + 1, backend) for t in trees]
        return xp.concat(bags, axis=0)
    if sampling.groups is not None:
        drawn = draw_bags(sampling.units, seed, first, last, backend)
        drawn = xp.clip(drawn, 0, sampling.most_drawn)
        bags = xp.take(drawn, backend.asarray(sampling.groups), axis=1)
        return bags if sampling.weights is None else bags * backend.asarray(sampling.weights)
    if sampling.classes is not None:
        host = np.zeros((last - first, n), np.int32)
        for t in range(first, last):
            drawn, count = draws_by_class(sampling, seed, t)
            host[t - first, drawn] = count
        return backend.asarray(host)
    if not sampling.n_draws:
        row = np.ones(n, np.int32) if sampling.weights is None else sampling.weights
        return xp.broadcast_to(backend.asarray(row), (last - first, n))
    if sampling.parts is not None:  # trees 2 i and 2 i + 1 have the bag of number i
        begin, alone = first // 2, replace(sampling, parts=None)
        of_pairs = draw_bags(alone, seed, begin, (last + 1) // 2, backend)
        return xp.take(of_pairs, xp.arange(first, last) // 2 - begin, axis=0)
    keys = hashing.tree_keys(np, seed, first, last)  # few: the host hashes them
    keys = backend.asarray(hashing.hash_at(keys, hashing.BAG))
    if sampling.rate:
        ids, steps = backend.asarray(sampling.row_keys), backend.asarray(sampling.steps)
        bags = backend.sampling.poisson(backend, keys, ids, steps)
        each = backend.asarray(np.ones(n, WEIGHT) if sampling.weights is None else sampling.weights)
        bags = bags if sampling.weights is None else bags * each
        some = xp.any(bags > 0, axis=1, keepdims=True)
        # a tree needs rows: of few, chance may leave out all
        return bags if bool(xp.all(some)) else xp.where(some, bags, each)
    if sampling.distinct:
        if sampling.weights is None:
            return xp.astype(backend.sampling.once(backend, keys, sampling.n_draws, n), xp.int32)
        positive = sampling.weights > 0  # rows of weight zero alone would make an empty bag
        drawn = backend.sampling.once(backend, keys, sampling.n_draws, int(positive.sum()))
        position = backend.asarray(np.maximum(np.cumsum(positive) - 1, 0))
        drawn = xp.take(xp.astype(drawn, xp.int32), position, axis=1)
        return drawn * backend.asarray(sampling.weights)
    cumulative = None
    if sampling.weights is not None:
        cumulative = backend.asarray(np.cumsum(sampling.weights, dtype=np.int64))
    return backend.sampling.bag(backend, keys, n, sampling.n_draws, cumulative)


def draws_by_class(sampling: Sampling, seed: int, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a tree that draws a number of each class, i64[n], ascending, and how often it
    draws them, i32[n]: on the host, in a time that grows with the draws. The first draws are of the
    first class, and each is a point in the weights of the rows of its class, as in `draw_bags`."""
    rows, cumulative, first, total = sampling.by_class
    key = hashing.hash_at(hashing.tree_keys(np, seed, tree, tree + 1), hashing.BAG)
    label = np.repeat(np.arange(len(total)), sampling.draws)
    draws = hashing.hash_at(key, np.arange(sampling.n_draws, dtype=np.uint64))
    point = first[label] + mulhi(draws, total[label])
    if cumulative is not None:
        point = np.searchsorted(cumulative, np.sort(point), side="right")  # sorted: near in memory
    drawn, count = np.unique(rows[point], return_counts=True)
    return drawn, count.astype(WEIGHT)


def cutoff(blocks: np.ndarray, tree: int) -> int:
    """The last block of time that a tree draws from. Multiples of the golden ratio spread the
    cutoffs evenly over all blocks but the last."""
    return ((tree + 1) * hashing.GOLDEN % 2**64 * int(blocks.max())) >> 64


def of_past(sampling: Sampling, tree: int) -> Sampling:
    """How a tree draws: from the blocks up to its cutoff, and as many of their rows as from all."""
    blocks = sampling.blocks
    assert blocks is not None
    past, draws = blocks <= cutoff(blocks, tree), sampling.draws
    weights = np.where(past, 1 if sampling.weights is None else sampling.weights, 0)
    n_draws = -(-sampling.n_draws * int(np.count_nonzero(weights)) // sampling.n_counted)
    if sampling.classes is not None:  # of each class in proportion to its rows of the past
        counted = True if sampling.weights is None else sampling.weights > 0
        both = (
            np.bincount(sampling.classes, c * np.ones(len(past))) for c in (counted, weights > 0)
        )
        draws = tuple(int(-(-d * n // max(of, 1))) for d, of, n in zip(draws, *both, strict=True))
        n_draws = sum(draws)
    weights = weights.astype(WEIGHT)
    return replace(sampling, blocks=None, weights=weights, n_draws=n_draws, draws=draws)


def was_drawn(sampling: Sampling, seed: int, first: int, last: int, backend: Backend) -> Array:
    """bool[last - first, N]: True where a tree drew the row or its group; False: out of bag. With
    blocks of time, rows after a tree's cutoff are out of bag if it lies in the last quarter of the
    blocks before them: where the target drifts, older trees are worse than the forest will be in
    the next block (measured in docs/blocks.md)."""
    if sampling.blocks is not None:
        known = np.array([[cutoff(sampling.blocks, t) + 1] for t in range(first, last)])
        return backend.asarray((sampling.blocks < known) | (known < 0.75 * sampling.blocks))
    drawn = draw_bags(sampling.units, seed, first, last, backend) > 0
    if sampling.groups is None:
        return drawn
    return backend.xp.take(drawn, backend.asarray(sampling.groups), axis=1)


def learned_from(sampling: Sampling, seed: int) -> np.ndarray:
    """The rows i64[n] from which a fit with Poisson bags learns edges and fixed points, in an order
    that depends on their ids alone."""
    at = np.arange(sampling.n_rows) if sampling.counted is None else sampling.counted
    ids = sampling.row_keys[at]
    at = at[chosen(seed, ids, len(at))]
    return np.asarray(at[np.argsort(row_hashes(seed, sampling.row_keys[at]))])


def drawn_rows(sampling: Sampling, seed: int, tree: int, backend: Backend) -> np.ndarray:
    """The rows of a tree's bag, each as often as it was drawn, i64[n], ascending, on the host."""
    if sampling.weights is not None and sampling.multiplies:
        sampling = replace(sampling, weights=np.minimum(sampling.weights, 1))
    bag = backend.asnumpy(draw_bags(sampling, seed, tree, tree + 1, backend)[0, ...])
    return np.repeat(np.arange(sampling.n_rows), bag)


def tree_features(
    keys: np.ndarray, n_drawn: int, again: bool, n_features: int, backend: Backend
) -> Any:
    """Features drawn for trees with keys u64[T] (host), with replacement if `again`: bool[T, F].
    None if `n_drawn` is 0: trees have all features."""
    if not n_drawn:
        return None
    keys = backend.asarray(hashing.hash_at(keys, hashing.FEATURES))
    if again:
        return backend.sampling.bag(backend, keys, n_features, n_drawn, None) > 0
    return backend.sampling.once(backend, keys, n_drawn, n_features)


def tree_weights(training: Training, first: int, last: int, backend: Backend) -> Array:
    """Weights of rows in trees' statistics, i32[last - first, N]: draws times a draw's weight."""
    sampling, target = training.sampling, training.target
    bags = draw_bags(sampling, training.seed, first, last, backend)
    if sampling.parts is not None:
        part = (0, sampling.parts[0])
        grows = in_part(bags, sampling, training.seed, first, backend, part)
        # a tree needs rows: of few, chance may leave out all
        some = backend.xp.any(grows > 0, axis=1, keepdims=True)
        return backend.xp.where(some, grows, bags)
    if sampling.factors is None and not sampling.balance:
        return bags
    step = max(1, WEIGHED_AT_ONCE // sampling.n_rows)
    for t in range(0, last - first, step):
        block = bags[t : min(t + step, last - first), ...]
        if sampling.factors is not None:
            block *= backend.asarray(sampling.factors)[None, :]
        else:
            block *= _balanced(backend.xp, sampling, target, block)
    return bags


def pairs_of_trees(
    share: float, honest: bool, n_rows: int, weights: np.ndarray | None, groups: np.ndarray | None
) -> Sampling:
    """How two trees in a row draw half of the rows or groups, and each its parts of these; `share`
    of all rows, at most a half."""
    upto = min(int(float(share) * 2**33), 2**32)
    parts = (upto // 2 if honest else upto, upto)
    sampling = Sampling(n_rows, 1, weights, distinct=True, groups=groups, parts=parts)
    n = sampling.units.n_counted
    if n < FEWEST_UNITS:
        units = "rows" if groups is None else "groups"
        raise ValueError(f"effects need {FEWEST_UNITS} {units} of some weight, and there are {n}")
    return replace(sampling, n_draws=n // 2)


def in_part(
    bags: Array, sampling: Sampling, seed: int, first: int, backend: Backend, part: tuple[int, int]
) -> Array:
    """The bags i32[T, N] of trees from number `first` on, without the rows whose hash for the tree
    (or that of their group) does not lie in this part."""
    keys = hashing.tree_keys(np, seed, first, first + bags.shape[0])
    keys = backend.asarray(hashing.hash_at(keys, hashing.PARTS))
    units = sampling.units
    counts = np.ones(units.n_rows) if units.weights is None else units.weights > 0
    number = np.cumsum(counts).astype(np.uint64)
    number = number if sampling.groups is None else number[sampling.groups]
    return backend.sampling.in_part(backend, keys, backend.asarray(number), bags, part)


def held(training: Training, first: int, last: int, backend: Backend) -> tuple[Array, Array, Array]:
    """Rows and weights i32[R] of the bags of trees first .. last - 1, and offsets i64[T + 1]. Where
    a number of rows of each class is drawn, no bag is written out."""
    sampling = training.sampling
    if sampling.classes is None or sampling.blocks is not None or sampling.balance:
        return backend.nodes.in_bag(backend, tree_weights(training, first, last, backend))
    drawn = [draws_by_class(sampling, training.seed, t) for t in range(first, last)]
    rows, weights = (np.concatenate(part) for part in zip(*drawn, strict=True))
    if sampling.factors is not None:
        weights = weights * sampling.factors[rows]
    offsets = np.cumsum([0, *(len(rows) for rows, _ in drawn)])
    return tuple(map(backend.asarray, (rows.astype(np.int32), weights, offsets)))


def _balanced(xp: Any, sampling: Sampling, target: Target, bags: Array) -> Array:
    """The weight of a draw of each row, i32[T, N], that gives all classes of a bag equal weight."""
    if target.coding.several:
        return _products(xp, sampling, target, bags)
    label = xp.astype(target.y[:, 0], xp.int64)
    total = xp.sum(bags, axis=1) * sampling.balance
    class_weight = xp.floor(_shares(xp, total, label, target.coding.n_channels, bags) + 0.5)
    return xp.take(xp.astype(class_weight, xp.int32), label, axis=1)


def most_draw_weight(sampling: Sampling) -> int:
    """The greatest weight that a draw may add without overflow of a sum."""
    return MAX_TOTAL_WEIGHT // (2 * sampling.most_weight)


def _shares(xp: Any, total: Array, label: Array, C: int, bags: Array) -> Array:
    """The weight of a draw of each of C classes, f64[T, C], if classes of a bag weigh the same.

    bags : i32[T, N], whose weights sum to total i64[T]; label : i64[N]"""
    drawn = xp.stack([xp.sum(xp.where(label == c, bags, 0), axis=1) for c in range(C)], axis=1)
    share = xp.astype(total, xp.float64) / xp.sum(xp.astype(drawn > 0, xp.float64), axis=1)
    return share[:, None] / xp.astype(xp.where(drawn > 0, drawn, 1), xp.float64)


def _products(xp: Any, sampling: Sampling, target: Target, bags: Array) -> Array:
    """As `_balanced`, for several outputs: each output is balanced, and the weights multiply."""
    product = xp.full(bags.shape, float(sampling.balance), dtype=xp.float64)
    for moments in target.coding.split(target.y):
        label = xp.argmax(moments, axis=1)
        shares = _shares(xp, xp.sum(bags, axis=1), label, moments.shape[1], bags)
        product = product * xp.take(shares, label, axis=1)
    most = float(most_draw_weight(sampling))
    return xp.astype(xp.clip(xp.floor(product + 0.5), 1.0, most), xp.int32)
