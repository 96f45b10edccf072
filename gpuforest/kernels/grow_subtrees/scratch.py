"""The scratch of growing subtrees on a CPU. A thread uses it for tree after tree, because new
memory for each tree would cost more time than filling it.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import (
    Bools,
    Codes,
    Codes2,
    I32s,
    I64s,
    I64s2,
    Targets2,
    U8s,
    U32s,
    U64s,
)
from gpuforest.engine.records import Data
from gpuforest.kernels.best_split.scan import Scan, scan_arrays
from gpuforest.kernels.best_split.set_order import CategoryWork, category_arrays
from gpuforest.kernels.grow_subtrees.sorting import MOST_SORTED, RANK_ROWS

if TYPE_CHECKING:
    from gpuforest.engine.binning import BinEdges

CACHE_BYTES = 2**19  # of the block for small nodes: half of a core's second-level cache
# Rows that the block for small nodes holds of wide data too, if they take at most WIDE_BYTES: with
# fewer rows, copies of 500 columns, of which a node tries 22, cost 7 to 13 % of the time of growing
WIDE_ROWS, WIDE_BYTES = 3072, 2**22
COLUMN_GAP = 72  # bytes or more, so that columns do not begin 4,096 bytes apart
SPARSE = 8  # slots of fewer than 1/8 of all rows copy their codes at once
HIST_BYTES = 2**18  # of histograms filled together: within a core's second-level cache
PURE_WEIGHTS = 16  # weights of pure leaves that share their sums


class Order(NamedTuple):
    """The rows of a block, node by node.

    positions : u32[most], where each row lies in the block of codes
    own : what each adds to a sum: i32[most, 2], class and weight, or i64[most, C], weight and
        moments
    """

    positions: U32s
    own: Targets2


class CutWork(NamedTuple):
    """The scratch of the search for the best cut of a feature.

    code : u8 or u16 [most], the codes of a node's rows
    keys, spare_keys : u32[...], for sorting them
    counts : i64[256], for sorting too
    hists : i64[n, B * width], histograms filled together
    batch : i32[n], their features
    scan : Scan
    """

    code: Codes
    keys: U32s
    spare_keys: U32s
    counts: I64s
    hists: I64s2
    batch: I32s
    scan: Scan


class OpenNodes(NamedTuple):
    """A stack of nodes: numbers i64[most + 1, 7] and keys u64[most + 1], see `push`."""

    numbers: I64s2
    keys: U64s


class Known(NamedTuple):
    """Features that do not vary on the path from the root: bool[F], and the trail of them in the
    order in which they were found, i32[F]."""

    constant: Bools
    trail: I32s


class Scratch(NamedTuple):
    """The scratch for slots of at most `most` rows each and `total` rows together.

    some, few : codes [F, some] and [F, few], see `new_blocks`
    order, spare : Order
    work : CutWork
    open_nodes : OpenNodes
    known : Known
    sums, left_sums : i64[C], channel sums of a node and of its left side
    pure : i64[C, PURE_WEIGHTS], rows of `leaf_sums` of pure leaves, by class and weight
    used : i64[3], see `Blocks`
    nodes, leaf_sums : u64[2 * total], i64[total, C]; a tree of n leaves has 2 n - 1 nodes
    """

    some: Codes2
    few: Codes2
    order: Order
    spare: Order
    work: CutWork
    open_nodes: OpenNodes
    known: Known
    sums: I64s
    left_sums: I64s
    pure: I64s2
    used: I64s
    nodes: U64s
    leaf_sums: I64s2

    def holds(self, most: int, total: int) -> bool:
        return len(self.order.positions) >= most and len(self.leaf_sums) >= total


class Sets(NamedTuple):
    """The scratch for sets of categories.

    kinds : u8[F], of features
    work : CategoryWork
    best : u64[W], the set of the best split so far
    at : i64[2 * total], where a node's set begins
    words : u64[...], the sets; pages that are not written take no memory
    """

    kinds: U8s
    work: CategoryWork
    best: U64s
    at: I64s
    words: U64s


class Grown(NamedTuple):
    """How many nodes, rows of the leaf table, and words of sets have been written."""

    n_nodes: Any
    n_leaves: Any
    n_words: Any


def new_sets(
    scratch: Scratch, edges: "BinEdges", C: int, width: int, n_words: int, n_codes: int
) -> Sets | None:
    """Sets of at most so many words for the nodes of the scratch, None if it is zero; categories
    have so many codes."""
    if not n_words:
        return None
    n_nodes = len(scratch.nodes)
    return Sets(
        edges.kinds,
        category_arrays(n_codes, C, width),
        np.empty(n_words, np.uint64),
        np.empty(n_nodes, np.int64),
        np.empty(n_nodes // 2 * n_words, np.uint64),
    )


def new_scratch(data: Data, most: int, total: int, k: int, width: int, B: int) -> Scratch:
    """Scratch for codes [F, N] and k features tried in a node.

    width : channels of a histogram, C or one more to count rows
    B : codes of a histogram
    """
    columns, C = data.codes, data.n_channels
    own = 2 if data.y.dtype.itemsize == 4 else C
    sorted_rows = min(most, MOST_SORTED)
    n_hists = max(1, min(k, HIST_BYTES // (8 * B * width)))
    some, few = new_blocks(columns, most)
    return Scratch(
        some,
        few,
        order=Order(np.empty(most, np.uint32), np.empty((most, own), data.y.dtype)),
        spare=Order(np.empty(most, np.uint32), np.empty((most, own), data.y.dtype)),
        work=CutWork(
            np.empty(most, columns.dtype),
            np.empty(sorted_rows + RANK_ROWS, np.uint32),
            np.empty(sorted_rows + RANK_ROWS, np.uint32),
            np.empty(256, np.int64),
            np.zeros((n_hists, B * width), np.int64),
            np.empty(n_hists, np.int32),
            scan_arrays(max(sorted_rows, B), C),
        ),
        open_nodes=OpenNodes(np.empty((most + 1, 7), np.int64), np.empty(most + 1, np.uint64)),
        known=Known(np.zeros(len(columns), np.bool_), np.empty(len(columns), np.int32)),
        sums=np.zeros(C, np.int64),
        left_sums=np.zeros(C, np.int64),
        pure=np.empty((C, PURE_WEIGHTS), np.int64),
        used=np.empty(3, np.int64),
        nodes=np.empty(2 * total, np.uint64),
        leaf_sums=np.empty((total, C), np.int64),
    )


def block_rows(row_bytes: int, n_rows: int, most: int) -> tuple[int, int]:
    """Rows of the two blocks besides the matrix, see `new_blocks`."""
    few = max(CACHE_BYTES // row_bytes, min(WIDE_ROWS, WIDE_BYTES // row_bytes))
    few = min(few, 2**14) if most > 2 * few else 0
    some = math.isqrt(few * most) if most > 8 * few else 0
    return (most if most * SPARSE < n_rows else some), few


def new_blocks(columns: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The two blocks besides the matrix: one for nodes of middle size, and one of so few rows that
    it stays in the cache. If slots hold few of all rows, the first holds all rows of a slot."""
    F, N = columns.shape
    some, few = block_rows(F * columns.itemsize, N, most)
    # columns 4,096 bytes apart would share few lines of the cache, which cost half of all time
    # in blocks of 4,096 rows
    return (
        np.empty((F, some + COLUMN_GAP * (some > 0)), columns.dtype),
        np.empty((F, few), columns.dtype),
    )
