"""Assembly: the levels of a wave become trees in the order of nodes.py.

levels.py gives each node its position. Subtrees of the deep phase are contiguous in that order
already and are moved as blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.dtypes import OFFSET
from gpuforest.common.parallel import parallel_map
from gpuforest.frontier import Subtrees
from gpuforest.kernels.shared.constants import DEEP, LEAF, WIDE
from gpuforest.leaf_rows import distinct_of_all, distinct_rows
from gpuforest.levels import Level, exclusive
from gpuforest.nodes import (
    CHILD_SHIFT,
    FEATURE_SHIFT,
    LEAF_MASK,
    LEAF_WORD,
    has_set,
    is_leaf,
    pack_splits,
)
from gpuforest.slots import pairs

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.binning import BinEdges
    from gpuforest.target import TargetCoding

Array = Any


# nodes that a thread copies at a time, and that a core's cache holds; the one is a multiple of
# the other
THREAD_NODES, CACHED_NODES = 2**20, 2**15


@dataclass(frozen=True, eq=False)
class WaveTrees:
    """Finished trees of a wave: host arrays.

    nodes : u64[M]; leaves point into leaf_sums
    tree_sizes : i64[T]
    leaf_sums : i64[V, C], the canonical table, see `leaf_table`
    sets : u64[...], see `Forest`
    """

    nodes: np.ndarray
    tree_sizes: np.ndarray
    leaf_sums: np.ndarray
    sets: np.ndarray


def assemble(
    levels: list[Level],
    trees: Subtrees,
    edges: BinEdges,
    coding: TargetCoding,
    backend: Backend,
) -> WaveTrees:
    """The trees of a wave from its levels; the first level holds the root of each tree."""
    xp = backend.xp
    blocks = trees.offsets[1:] - trees.offsets[:-1]
    tree_sizes, position, below = backend.positions(levels, blocks)
    kind, tree, sums, feature, bin, missing_left, sets = (
        xp.concat([getattr(level, name) for level in levels], axis=0)
        for name in ("kind", "tree", "sums", "feature", "bin", "missing_left", "sets")
    )
    root = xp.take(xp.cumulative_sum(tree_sizes) - tree_sizes, xp.astype(tree, xp.int64))
    at = root + position
    # 1. pieces of a single node: the wide slots, then the leaves
    wide, leaf, deep = (xp.nonzero(kind == k)[0] for k in (WIDE, LEAF, DEEP))
    child = xp.astype(xp.take(below, wide), xp.uint64) << CHILD_SHIFT
    refused, n_leaves = feature < 0, leaf.shape[0]
    number = xp.astype(exclusive(xp, refused), xp.uint64) + (LEAF_WORD + n_leaves)
    words = xp.where(refused, number, pack_splits(xp, feature, bin, missing_left) + child)
    numbers = xp.arange(n_leaves, dtype=xp.uint64, device=backend.device) + LEAF_WORD
    leaf_sums = xp.take(sums, xp.concat([leaf, xp.take(wide, xp.nonzero(refused)[0])]), axis=0)
    single = xp.concat([wide, leaf])
    # 2. two pieces for each subtree: its root, which lies beside its sibling, and the rest
    below = xp.take(below, deep)
    begin = xp.concat(
        [xp.take(at, single), pairs(xp, xp.take(at, deep), xp.take(root, deep) + below)]
    )
    length = xp.concat([xp.ones_like(single), pairs(xp, xp.ones_like(blocks), blocks - 1)])
    children, leaves = below - 1, trees.first_leaf + leaf_sums.shape[0]
    nodes = xp.concat([words, numbers, trees.nodes])
    leaf_sums = xp.concat([leaf_sums, trees.leaf_sums])
    set_at = None
    if sets.shape[1]:
        at = xp.arange(wide.shape[0], dtype=xp.int64, device=backend.device) * sets.shape[1]
        sets, set_at = xp.reshape(sets, (-1,)), xp.concat([at, xp.zeros_like(leaf)])
        if trees.sets is not None:
            set_at = xp.concat([set_at, trees.set_at + sets.shape[0]])
            sets = xp.concat([sets, trees.sets])
    del trees
    # 3. all pieces in the order of nodes.py; then the trees leave the device
    nodes, set_at = in_order(nodes, set_at, begin, length, children, leaves, backend)
    sets = set_table(nodes, set_at, sets, edges, backend)
    nodes, leaf_sums = leaf_table(backend, nodes, leaf_sums, coding)
    nodes, tree_sizes, leaf_sums = map(backend.asnumpy, (nodes, tree_sizes, leaf_sums))
    return WaveTrees(nodes, tree_sizes, leaf_sums, sets)


def in_order(
    nodes: Array,
    set_at: Array | None,
    begin: Array,
    length: Array,
    children: Array,
    leaves: Array,
    backend: Backend,
) -> tuple[Array, Array | None]:
    """`nodes` u64[M] and `set_at` i64[M] with their pieces sorted by `begin` i64[P].

    The pieces lie one after another and have `length` i64[P] nodes. The last 2 D of them belong
    to D subtrees: `children` and `leaves` i64[D] are added to the numbers in their nodes.
    """
    xp, n, device = backend.xp, begin.shape[0], backend.device
    order = xp.argsort(begin, stable=True)
    # 1. how far each piece moves, and what is added to its splits and to its leaves
    source = xp.take(xp.cumulative_sum(length) - length, order)
    length = xp.take(length, order)
    move = source - (xp.cumulative_sum(length) - length)
    own = xp.zeros((n - 2 * children.shape[0], 2), dtype=xp.uint64, device=device)
    added = xp.stack([children * 2**CHILD_SHIFT, leaves], axis=1)
    added = xp.concat([own, xp.repeat(xp.astype(added, xp.uint64), 2, axis=0)])
    added = xp.reshape(xp.take(added, order, axis=0), (-1,))
    # 2. node by node, and in place, because memory is scarce here
    piece = xp.repeat(xp.arange(n, dtype=xp.int64, device=device), length)
    source = xp.take(move, piece)
    source += xp.arange(nodes.shape[0], dtype=xp.int64, device=device)
    nodes = xp.take(nodes, source)
    set_at = None if set_at is None else xp.take(set_at, source)
    del source
    piece *= 2
    piece += xp.astype(is_leaf(nodes), xp.int64)
    nodes += xp.take(added, piece)
    return nodes, set_at


def set_table(
    nodes: Array, set_at: Array | None, sets: Array, edges: BinEdges, backend: Backend
) -> np.ndarray:
    """The sets u64[...] in the order of the nodes u64[M], on the host.

    set_at : i64[M], the word of `sets` where each node's set begins now
    """
    xp = backend.xp
    if set_at is None:
        return np.zeros(0, np.uint64)
    own = xp.nonzero(has_set(nodes))[0]
    feature = xp.astype(xp.take(nodes, own) >> FEATURE_SHIFT, xp.int64)
    words = xp.take(backend.asarray(edges.set_words), feature)
    upto = xp.cumulative_sum(words)
    move = xp.take(set_at, own) - (upto - words)
    source = xp.repeat(move, words)
    source += xp.arange(source.shape[0], dtype=xp.int64, device=backend.device)
    return backend.asnumpy(xp.take(sets, source))


def leaf_table(
    backend: Backend, nodes: Array, sums: Array, coding: TargetCoding
) -> tuple[Array, Array]:
    """Nodes u64[M] and leaf sums i64[V, C] with the leaves in their canonical order.

    For classes, the table keeps every distinct row once, in the order of a hash: most leaves of a
    forest are pure and of small weight. Moments hardly repeat, so their rows are in node order.
    """
    xp, leaf = backend.xp, is_leaf(nodes)
    if coding.is_classes:
        sums, inverse = distinct_rows(backend, sums)
        number = xp.take(inverse, leaf_numbers(xp, nodes, leaf))
    else:
        sums = xp.take(sums, leaf_numbers(xp, nodes, leaf)[leaf], axis=0)
        number = exclusive(xp, leaf)
    number = xp.astype(number, xp.uint64)
    number += LEAF_WORD
    return xp.where(leaf, number, nodes), sums


def leaf_numbers(xp: Any, nodes: Array, leaf: Array) -> Array:
    """Each leaf's number, i64[M]; zero for splits."""
    return xp.astype(xp.where(leaf, nodes & LEAF_MASK, 0), xp.int64)


def merge_waves(
    waves: list[WaveTrees], coding: TargetCoding, n_threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes u64[M], tree offsets i64[T + 1], leaf sums i64[V, C] and sets of all waves' trees.

    A fit holds most memory here, so `waves` is emptied, and each part is freed once it is copied.
    """
    offsets = np.cumsum(np.concatenate([[0], *(w.tree_sizes for w in waves)])).astype(OFFSET)
    if len(waves) == 1:
        return waves[0].nodes, offsets, waves[0].leaf_sums, waves[0].sets
    parts, tables = [w.nodes for w in waves], [w.leaf_sums for w in waves]
    sets = np.concatenate([w.sets for w in waves])
    waves.clear()
    first = np.cumsum([0] + [len(t) for t in tables])
    words = None
    if coding.is_classes:
        sums, number = distinct_of_all(tables)
        words = number.astype(np.uint64) + np.uint64(LEAF_WORD)
    else:
        sums = np.concatenate(tables)
    tables.clear()
    begin = np.cumsum([0] + [len(p) for p in parts])
    nodes = np.empty(begin[-1], np.uint64)
    for i in range(len(parts)):
        wave, parts[i] = parts[i], parts[i][:0].copy()
        own = None if words is None else words[first[i] : first[i + 1]]
        copy_nodes(wave, nodes[begin[i] : begin[i + 1]], int(first[i]), own, n_threads)
        del wave
    return nodes, offsets, sums, sets


def copy_nodes(
    wave: np.ndarray, out: np.ndarray, first: int, words: np.ndarray | None, n_threads: int
) -> None:
    """Copy the nodes of a wave, whose leaves get new numbers.

    first : added to the numbers of leaves, if `words` is None
    words : u64[V] or None, the words of leaves by their old numbers

    A choice for each node would cost more than the work, so something is added to all nodes: to
    splits, which have numbers above all leaves', what lies behind the last leaf's, a zero.
    """
    added = None
    if words is not None:
        old_words = np.arange(len(words), dtype=np.uint64) + np.uint64(LEAF_WORD)
        added = np.append(words - old_words, np.uint64(0))

    def copy(begin: int) -> None:
        for i in range(begin, min(begin + THREAD_NODES, len(wave)), CACHED_NODES):
            old = wave[i : min(i + CACHED_NODES, len(wave))]
            new = out[i : i + len(old)]
            if added is None:
                np.multiply(is_leaf(old), np.uint64(first), out=new)
            else:
                number = np.minimum(old - np.uint64(LEAF_WORD), np.uint64(len(added) - 1))
                added.take(number.view(np.int64), mode="clip", out=new)
            new += old

    parallel_map(copy, range(0, len(wave), THREAD_NODES), n_threads)
