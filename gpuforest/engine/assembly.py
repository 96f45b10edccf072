"""Assembly: the levels of a wave become trees on the host, and the trees of all waves a forest.

wave_nodes.py puts the nodes in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuforest.common.dtypes import OFFSET
from gpuforest.common.parallel import parallel_map
from gpuforest.engine.frontier import Subtrees
from gpuforest.engine.leaf_rows import distinct_of_all
from gpuforest.engine.levels import Level
from gpuforest.engine.nodes import LEAF_WORD, is_leaf, words_of

if TYPE_CHECKING:
    from gpuforest.backends.base import Backend
    from gpuforest.engine.binning import BinEdges
    from gpuforest.engine.target import TargetCoding

Array = Any


# nodes that a thread copies at a time, and that a core's cache holds; the one is a multiple of
# the other
THREAD_NODES, CACHED_NODES = 2**20, 2**15


@dataclass(frozen=True, eq=False)
class WaveTrees:
    """Finished trees of a wave: host arrays.

    nodes : u64[M]; leaves point into leaf_sums
    tree_sizes : i64[T]
    leaf_sums : i64[V, C], the canonical table, see wave_nodes.leaf_table
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
    oblique: bool = False,
) -> WaveTrees:
    """The trees of a wave from its levels; the first level holds the root of each tree.

    oblique : whether nodes may split by combinations of features
    """
    held = [trees]
    del trees
    tree_sizes, nodes, leaf_sums, set_at, sets = backend.wave_nodes(levels, held)
    sets = set_table(nodes, set_at, sets, edges, backend, oblique)
    nodes, leaf_sums = backend.leaf_table(nodes, leaf_sums, coding)
    nodes, tree_sizes, leaf_sums = map(backend.asnumpy, (nodes, tree_sizes, leaf_sums))
    return WaveTrees(nodes, tree_sizes, leaf_sums, sets)


def set_table(
    nodes: Array,
    set_at: Array | None,
    sets: Array,
    edges: BinEdges,
    backend: Backend,
    oblique: bool,
) -> np.ndarray:
    """The sets u64[...] in the order of the nodes u64[M], on the host.

    set_at : i64[M], the word of `sets` where each node's set begins now
    """
    xp = backend.xp
    if set_at is None:
        return np.zeros(0, np.uint64)
    words = words_of(xp, nodes, backend.asarray(edges.set_words), oblique)
    own = xp.nonzero(words)[0]
    words = xp.take(words, own)
    upto = xp.cumulative_sum(words)
    move = xp.take(set_at, own) - (upto - words)
    source = xp.repeat(move, words)
    source += xp.arange(source.shape[0], dtype=xp.int64, device=backend.device)
    return backend.asnumpy(xp.take(sets, source))


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
