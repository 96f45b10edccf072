"""What growing a subtree on a CPU works on. One thread uses it for tree after tree: memory
that is new for each would cost more time than it takes to fill it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuforest.kernels.best_split.scan import scan_arrays
from gpuforest.kernels.best_split.sets import category_arrays
from gpuforest.kernels.grow_subtrees.sorting import MOST_SORTED, RANK_ROWS

if TYPE_CHECKING:
    from gpuforest.binning import BinEdges

CACHE_BYTES = 2**19  # of the last block: half of a core's second-level cache
COLUMN_GAP = 72  # bytes or more, so that columns do not begin 4,096 bytes apart
SPARSE = 8  # slots of less than this part of all rows copy them at once
HIST_BYTES = 2**18  # of histograms filled together: within a core's second-level cache
PURE_WEIGHTS = 16  # weights of pure leaves that share their sums

Pair = tuple[np.ndarray, np.ndarray]


class Scratch(NamedTuple):
    """For slots of up to `most` rows, `total` of them together.

    blocks : codes [F, some] and [F, few], see `new_blocks`
    order, spare : places u32[most], and what each row adds to a sum: i32[most, 2], class
        and weight, or i64[most, C], weight and moments
    work : of `best_cut`
    open_nodes : a stack of low, high, depth, number, length of the trail, weight and second
        channel; and of keys
    known : which features are constant on the path, and the trail of them
    sums : channel sums of a node and of its left side
    pure : i64[C, PURE_WEIGHTS], the sums of pure leaves by class and weight
    nodes, leaf_sums : u64[2 * total], i64[total, C]; a tree of n leaves has 2 n - 1 nodes
    """

    blocks: Pair
    order: Pair
    spare: Pair
    work: tuple[Any, ...]
    open_nodes: Pair
    known: Pair
    sums: Pair
    pure: np.ndarray
    nodes: np.ndarray
    leaf_sums: np.ndarray

    def holds(self, most: int, total: int) -> bool:
        return len(self.order[0]) >= most and len(self.leaf_sums) >= total


class Sets(NamedTuple):
    """What sets of categories need beside it, as the kernel takes it.

    kinds : u8[F], of features
    work : of `best_set`
    best : u64[W], a set
    at : i64[2 * total], where a node's set begins
    words : u64[...], the sets; what is not written takes no memory
    """

    kinds: np.ndarray
    work: tuple[np.ndarray, ...]
    best: np.ndarray
    at: np.ndarray
    words: np.ndarray


def new_sets(scratch: Scratch, edges: BinEdges, C: int, channels: int) -> Sets | None:
    """For the nodes that the scratch holds; None where all features are numeric."""
    if not edges.most_words:
        return None
    n_nodes = len(scratch.nodes)
    return Sets(
        edges.kinds,
        category_arrays(edges.n_codes, C, channels),
        np.empty(edges.most_words, np.uint64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes // 2 * edges.most_words, np.uint64),
    )


def new_scratch(
    columns: np.ndarray, y: np.ndarray, most: int, total: int, k: int, B: int, C: int, channels: int
) -> Scratch:
    """Scratch for codes [F, N] and targets [N, ...]; channels : C, or one more to count rows."""
    F, dtype = len(columns), columns.dtype
    width = 2 if y.dtype.itemsize == 4 else C
    sorted_rows = min(most, MOST_SORTED)
    n_hists = max(1, min(k, HIST_BYTES // (8 * B * channels)))
    return Scratch(
        blocks=new_blocks(columns, most),
        order=(np.empty(most, np.uint32), np.empty((most, width), y.dtype)),
        spare=(np.empty(most, np.uint32), np.empty((most, width), y.dtype)),
        work=(
            np.empty(most, dtype),
            np.empty(sorted_rows + RANK_ROWS, np.uint32),
            np.empty(sorted_rows + RANK_ROWS, np.uint32),
            np.empty(256, np.int64),
            np.zeros((n_hists, B * channels), np.int64),
            np.empty(n_hists, np.int32),
            scan_arrays(max(sorted_rows, B), C),
        ),
        open_nodes=(np.empty((most + 1, 7), np.int64), np.empty(most + 1, np.uint64)),
        known=(np.zeros(F, np.bool_), np.empty(F, np.int32)),
        sums=(np.zeros(C, np.int64), np.zeros(C, np.int64)),
        pure=np.empty((C, PURE_WEIGHTS), np.int64),
        nodes=np.empty(2 * total, np.uint64),
        leaf_sums=np.empty((total, C), np.int64),
    )


def new_blocks(columns: np.ndarray, most: int) -> Pair:
    """Beside the matrix: a block of as few rows as stay in the cache, after one between them;
    of slots that hold few of all rows, the one between holds every row."""
    F, N = columns.shape
    few = CACHE_BYTES // (F * columns.itemsize)
    few = min(few, 2**14) if most > 2 * few else 0
    some = math.isqrt(few * most) if most > 8 * few else 0
    some = most if most * SPARSE < N else some
    # columns 4,096 bytes apart would all want the same few lines of the cache: that cost
    # half of all time in blocks of 4,096 rows
    return (
        np.empty((F, some + COLUMN_GAP * (some > 0)), columns.dtype),
        np.empty((F, few), columns.dtype),
    )
