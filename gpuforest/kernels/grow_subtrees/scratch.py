"""Scratch of a CPU thread for subtrees, reused, because new memory takes longer than filling."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler import types
from gpuforest.core.frontier import Data
from gpuforest.kernels.best_split.cuts import Scan, scan_arrays
from gpuforest.kernels.grow_subtrees.cuts import MOST_SORTED, RANK_ROWS

CACHE_BYTES = 2**19  # of the block for small nodes: half of a core's second-level cache
# Rows that the block for small nodes holds of wide data too, if they take at most WIDE_BYTES: with
# fewer rows, copies of 500 columns, where a node tries 22, cost 7 to 13 % of the time of growing
WIDE_ROWS, WIDE_BYTES = 3072, 2**22
COLUMN_GAP = 72  # bytes or more, so that columns do not begin 4,096 bytes apart
SPARSE = 8  # slots of fewer than 1/8 of all rows copy their codes at once
HIST_BYTES = 2**18  # of histograms filled together: within a core's second-level cache
PURE_WEIGHTS = 16  # weights of pure leaves that share their sums


class Order(NamedTuple):
    """The rows of a block, node by node."""

    positions: types.U32s  # where each row lies in the block of codes
    stats: types.Targets2  # what each adds to a sum: class and weight, or weight and moments


class OpenNode(NamedTuple):
    """A node on the stack."""

    low: types.I64  # its rows in the order are low .. high - 1
    high: types.I64
    depth: types.I64
    number: types.I64  # in the block's nodes
    n_trail: types.I64  # the length of the trail of features that are constant above it
    weight: types.I64  # the channel sums, where there are two channels
    second: types.I64
    key: types.U64  # random key


class Scratch(NamedTuple):
    """The scratch for slots of at most `most` rows each and `total` rows together."""

    some: types.Codes2  # [F, n], the block for nodes of middle size, see `new_blocks`
    few: types.Codes2  # [F, n], and the one for small nodes
    order: Order
    spare: Order
    code: types.Codes  # the codes of a node's rows in one feature
    keys: types.U32s  # for sorting them
    spare_keys: types.U32s
    counts: types.I64s  # i64[256], for sorting too
    hists: types.I64s2  # i64[n, B * width], histograms filled together
    batch: types.I32s  # i32[n], their features
    scan: Scan
    open_nodes: Annotated[Any, types.Type(OpenNode, 1)]
    refused: types.Bools  # bool[F], features that the slot's tree did not draw
    constant: types.Bools  # bool[F], these, and features that do not vary on the path from the root
    trail: types.I32s  # these, in the order in which they were found
    sums: types.I64s  # i64[C], channel sums of a node
    left_sums: types.I64s  # i64[C], and of its left side
    pure: types.I64s2  # i64[C, PURE_WEIGHTS], rows of `leaf_sums` of leaves by class and weight
    used: types.I64s  # i64[3], the row of the order up to which each block is in use
    nodes: types.U64s  # u64[2 * total]; a tree of n leaves has 2 n - 1 nodes
    leaf_sums: types.I64s2  # i64[total, C]

    def holds(self, most: int, total: int) -> bool:
        return len(self.order.positions) >= most and len(self.leaf_sums) >= total


class Ways(NamedTuple):
    """What a kind of split does in its own way: functions, see `CUTS` in numba.py."""

    load: Any  # copies a slot's rows to the order
    search: Any  # finds a node's best split
    write: Any  # writes it, and makes the node's children
    resume: Any  # writes the split of a node that has one already


class Growth(NamedTuple):
    """What these functions take."""

    data: Any
    rules: Any
    scratch: Any
    order_domain: Any  # see `domain`
    first: Any  # the number of the subtree's first node
    of_kind: Any  # scratch of the kind of split alone


class Grown(NamedTuple):
    """How many nodes, rows of the leaf table, and words of sets have been written."""

    n_nodes: Any
    n_leaves: Any
    n_words: Any


def new_scratch(
    data: Data, most: int, total: int, k: int, width: int, B: int, more: int = 0
) -> Scratch:
    """Scratch for codes [F, N], k tried features, histograms of B codes and `width` channels.

    more : columns of the order besides what a row adds to a sum"""
    columns, C = data.codes, data.n_channels
    n_stats = (2 if data.y.dtype.itemsize == 4 else C) + more
    sorted_rows = min(most, MOST_SORTED)
    n_hists = max(1, min(k, HIST_BYTES // (8 * B * width)))
    some, few = new_blocks(columns, most)
    return Scratch(
        some,
        few,
        order=Order(np.empty(most, np.uint32), np.empty((most, n_stats), data.y.dtype)),
        spare=Order(np.empty(most, np.uint32), np.empty((most, n_stats), data.y.dtype)),
        code=np.empty(most, columns.dtype),
        keys=np.empty(sorted_rows + RANK_ROWS, np.uint32),
        spare_keys=np.empty(sorted_rows + RANK_ROWS, np.uint32),
        counts=np.empty(256, np.int64),
        hists=np.zeros((n_hists, B * width), np.int64),
        batch=np.empty(n_hists, np.int32),
        scan=scan_arrays(max(sorted_rows, B), C),
        open_nodes=np.empty(most + 1, types.dtype_of(OpenNode)),
        refused=np.zeros(len(columns), np.bool_),
        constant=np.zeros(len(columns), np.bool_),
        trail=np.empty(len(columns), np.int32),
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
    few = min(few, 2**14) if n_rows > 2 * few else 0
    some = math.isqrt(few * most) if most > 8 * few else 0
    return (most if most * SPARSE < n_rows else some), few


def new_blocks(columns: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Two blocks besides the matrix: for middle nodes, and for few rows, which stay in the cache.
    If slots hold few of all rows, the first block holds all rows of a slot."""
    F, N = columns.shape
    some, few = block_rows(F * columns.itemsize, N, most)
    # columns 4,096 bytes apart would share few lines of the cache, which cost half of all time
    # in blocks of 4,096 rows
    return (
        np.empty((F, some + COLUMN_GAP * (some > 0)), columns.dtype),
        np.empty((F, few), columns.dtype),
    )
