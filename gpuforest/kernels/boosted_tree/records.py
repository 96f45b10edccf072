"""What grows a tree of boosting, and what has grown."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.types import (
    F64,
    I64,
    U64,
    Bools2,
    Codes2,
    F64s,
    F64s2,
    F64s3,
    I8s,
    I32s,
    I64s,
    I64s2,
    I64s3,
    U8s,
    U64s,
    U64s2,
    U64s3,
)

MIN_HESSIAN = 1e-3  # the least sum of hessians of either side of a split
# As in scikit-learn: a category of fewer rows goes right, and the smoothing of its order
CATEGORY_ROWS = 10.0


class BoostRows(NamedTuple):
    """The binned rows, and what they add to sums in this round.

    codes : u8 or u16 [F, N]
    stats : i64[N, 1 or 2], see kernels/gradients
    n_bins : i32[F], without the one for missing values
    kinds : u8[F], NUMERIC or CATEGORICAL
    n_codes : int, B; the last code is that of missing values
    """

    codes: Codes2
    stats: I64s2
    n_bins: I32s
    kinds: U8s
    n_codes: I64


class BoostColumns(NamedTuple):
    """The same rows, with all codes of a feature beside each other, see boosting/columns.py.

    codes : u8 or u16 [C, N]
    stats : as above
    kinds : u8[F]
    starts : i64[C + 1], column c holds the features starts[c] .. starts[c + 1] - 1
    column, first, rest : i32[F], where a feature's codes lie
    cells : i64[F + 1], where each feature's part of a histogram begins: its bins, and a cell of
        missing values
    """

    codes: Codes2
    stats: I64s2
    kinds: U8s
    starts: I64s
    column: I32s
    first: I32s
    rest: I32s
    cells: I64s


class BoostRules(NamedTuple):
    """The rules by which a tree grows.

    g, h : float, what sums of gradients and of hessians are multiplied by, powers of two
    n_bits : int, the bits of a word that count rows
    l2 : float, added to the sum of hessians of a node
    most : float, the largest size of what a node predicts, or infinity
    min_rows : int, the fewest rows of either side
    max_depth, max_leaves : int
    share : float, the part of the allowed features that a node tries
    key : u64, of the root
    signs : i8[F], of monotonic constraints, 0 where there is none
    groups : bool[n, F], sets of features that may meet on a path; bool[0, F]: all may
    """

    g: F64
    h: F64
    n_bits: I64
    l2: F64
    most: F64
    min_rows: I64
    max_depth: I64
    max_leaves: I64
    share: F64
    key: U64
    signs: I8s
    groups: Bools2


class GrownTree(NamedTuple):
    """A grown tree.

    nodes : u64[n], in the order of nodes.py; leaf i of the tree is row i of the arrays below
    sets : u64[...], the split sets in the order of the nodes
    sums : i64[L, 3], sums of gradients and hessians and the number of rows of each leaf
    values : f64[L], what each leaf adds to the raw prediction, before the learning rate
    ranges : i64[L, 4], leaf i holds rows[ranges[i, 0]:ranges[i, 1]] of the rows that it was grown
        from, and others[ranges[i, 2]:ranges[i, 3]] of the others
    """

    nodes: np.ndarray
    sets: np.ndarray
    sums: np.ndarray
    values: np.ndarray
    ranges: np.ndarray


# columns of `Table.numbers`: what belongs to a node
BEGIN, END, OTHER_BEGIN, OTHER_END, DEPTH, SLOT, G, H, ROWS = range(9)
# and to its best split; FEATURE is -1 if it has none, LEFT is the left child's number or -1
FEATURE, BIN, MISSING_LEFT, LEFT_G, LEFT_H, LEFT_ROWS, LEFT = range(9, 16)
NUMBERS = 16
LOW, HIGH, GAIN = range(3)  # columns of `Table.floats`


class Table(NamedTuple):
    """The nodes of a tree while it grows, in the order in which they are made.

    numbers : i64[M, NUMBERS]; floats : f64[M, 3]; keys : u64[M]
    groups : bool[M, n], the interaction groups that hold all features of a node's path
    sets : u64[M, W], the set of a categorical split
    open : i64[M], the nodes that may still be split
    """

    numbers: I64s2
    floats: F64s2
    keys: U64s
    groups: Bools2
    sets: U64s2
    open: I64s


class Pool(NamedTuple):
    """Histograms of open nodes, and scratch of the searches.

    hist : i64[P + 2, cells * words], the last two are scratch
    free : i64[P], the numbers of those that no node has
    tried : bool[3, F], features of the first and of the second node of a search that are tried;
        and those that have a histogram
    found : i64[parts, 2, 6], the best split of both nodes among a part of the features, as the
        columns FEATURE .. LEFT_ROWS; gains : f64[parts, 2]; sets : u64[parts, 2, W]
    ordered : i64[parts, BLOCK * words], stats in the order of a node's rows
    scores : f64[parts, 2, B + 1]; order : i64[parts, 2, B + 1], categories in order
    lefts : i64[2, parts], of each part of a node's rows, and others, how many go left
    units : f64[2], g and h of the tree's rules
    """

    hist: I64s2
    free: I64s
    tried: Bools2
    found: I64s3
    gains: F64s2
    sets: U64s3
    ordered: I64s2
    scores: F64s3
    order: I64s3
    lefts: I64s2
    units: F64s


class Tree(NamedTuple):
    """What a grown tree is written to, see `GrownTree`."""

    nodes: U64s
    sets: U64s
    sums: I64s2
    values: F64s
    ranges: I64s2


# elements of `state` i64[24]: where growing stands
STATUS, N_NODES, N_OPEN, N_LEAVES, N_FREE, FIRST, FIRST_SLOT, SECOND, SECOND_SLOT, SUBTRACT = range(
    10
)
N_THREADS, N_PARTS, N_WORDS, NODE, WORK = range(10, 15)
# the cells of histograms, and the rows, for which one more thread is worth the wait
CELLS_SHARED, ROWS_SHARED = range(15, 17)
# steps of growing: what state[STATUS] says comes next
BEGUN, PLANNED, SEARCHED, DIVIDED, MOVED, DONE = range(6)
SEARCH, DIVIDE, MOVE = range(3)  # works that threads share
BLOCK = 1024  # rows whose stats are put in order at once, to stay in the first-level cache


def new_table(M: int, n_groups: int, W: int) -> Table:
    """A table of M nodes."""
    return Table(
        np.empty((M, NUMBERS), np.int64), np.empty((M, 3)), np.empty(M, np.uint64),
        np.empty((M, n_groups), np.bool_), np.empty((M, W), np.uint64), np.empty(M, np.int64),
    )  # fmt: skip


def new_pool(P: int, parts: int, data: BoostColumns, B: int, W: int) -> Pool:
    """A pool of P histograms; B : codes of a feature at the most."""
    F, words = len(data.kinds), data.stats.shape[1]
    return Pool(
        np.empty((P + 2, int(data.cells[-1]) * words), np.int64), np.arange(P, dtype=np.int64),
        np.empty((3, F), np.bool_), np.empty((parts, 2, 6), np.int64), np.empty((parts, 2)),
        np.empty((parts, 2, W), np.uint64), np.empty((parts, BLOCK * words), np.int64),
        np.empty((parts, 2, B + 1)), np.empty((parts, 2, B + 1), np.int64),
        np.empty((2, parts), np.int64), np.empty(2),
    )  # fmt: skip


def new_tree(M: int, W: int) -> Tree:
    """Room for a tree of M nodes."""
    L = (M + 1) // 2
    return Tree(
        np.empty(M, np.uint64), np.empty(L * W, np.uint64), np.empty((L, 3), np.int64),
        np.empty(L), np.empty((L, 4), np.int64),
    )  # fmt: skip
