"""The structs of boosted trees on CUDA devices, declared as in kernels/shared/structs.py.

Those whose fields are numbers alone lie in arrays on the device, as words of 64 bits. K trees
grow side by side; the arrays of a struct hold one part for each of them.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from gpuforest.kernels.boosted_tree.records import NodeSplit, TreeNode
from gpuforest.kernels.shared.structs import (
    F64,
    I64,
    Array,
    Bools,
    BoolsOut,
    F64s,
    I32s,
    I32sOut,
    I64s,
    I64sOut,
    Signs,
    U64sOut,
)

U64 = Annotated[int, "u64"]
Kinds = Annotated[Array, "const u8*"]
NodesOut = Annotated[Array, "TreeNode*"]
StatesOut = Annotated[Array, "TreeState*"]
SplitsOut = Annotated[Array, "NodeSplit*"]


class LossOf(NamedTuple):
    """A loss, see `LossNumbers`, and K raw predictions f64[K, N] of N rows. `weight` None: all
    weights are one. delta f64[1], of a loss that clips residuals; else None."""

    y: F64s
    weight: F64s
    raw: F64s
    N: I64
    K: I64
    number: I64
    quantile: F64
    delta: F64s


class Largest(NamedTuple):
    """The largest gradient and hessian, as the bits of doubles u64[2], and what follows: scale
    f64[7], the powers of two by which both are multiplied, and by which their sums are while trees
    grow; whether the largest are too large; the unit of gradients, and what leaves' values are
    multiplied by. The products need at most `g_bits` and `h_bits` bits; one: every hessian is one;
    keep: the largest are the same in each round."""

    most: U64sOut
    scale: Annotated[Array, "double*"]
    g_bits: I64
    h_bits: I64
    one: I64
    keep: I64


class TreeState(NamedTuple):
    """Where the growing of a tree stands.

    first and second are the nodes that are searched next (-1: none), `subtract` says whether the
    second one's histograms are what the first one's leave of their parent's; split is the node
    that is divided next, and the four positions after it say how far that has come.
    """

    done: I64
    n_nodes: I64
    n_open: I64
    n_leaves: I64
    n_free: I64
    first: I64
    first_slot: I64
    second: I64
    second_slot: I64
    subtract: I64
    split: I64
    left: I64
    right: I64
    other_left: I64
    other_right: I64
    sum_first: I64
    sum_last: I64
    key: U64


class TreeRows(NamedTuple):
    """The rows of K trees: what they add to sums, i64[K, N, WORDS], and their order, i32[K, 2, N].

    The R rows that trees grow from come first, then the others. A node of depth d has its own in
    half d & 1. Each word's lowest n_bits count rows, see kernels/gradients.
    """

    stats: I64s
    order: I32sOut
    N: I64
    R: I64
    n_bits: I64


class TreeTable(NamedTuple):
    """The nodes [K, M] of trees while they grow, and states [K]; groups bool[K, M, n], the
    interaction groups of nodes; sets u64[K, M, W] of splits; open i64[K, M]."""

    nodes: NodesOut
    states: StatesOut
    groups: BoolsOut
    sets: U64sOut
    open: I64sOut
    M: I64
    W: I64


class HistPool(NamedTuple):
    """Histograms i64[K, P + 2, F, B, WORDS], of which the last two are scratch, and the numbers
    of those that no node has, free i64[K, P].

    tried : bool[K, 3, F], as in records.Scratch
    splits, sets : [K, 2, F] and u64[K, 2, F, W], the best splits of the first and second node
    """

    hist: I64sOut
    free: I64sOut
    tried: BoolsOut
    splits: SplitsOut
    sets: U64sOut
    P: I64


class TreeRules(NamedTuple):
    """The rules of growing, see `BoostRules`; scale as in `Largest`; most: before it is
    scaled; limited: leaves are so few that it matters which node is split next."""

    n_bins: I32s
    kinds: Kinds
    signs: Signs
    groups: Bools
    scale: F64s
    n_groups: I64
    min_rows: I64
    max_depth: I64
    max_leaves: I64
    limited: I64
    l2: F64
    most: F64
    share: F64


class TreesOut(NamedTuple):
    """Finished trees u64[K, size], at the most M nodes each: the number of nodes, the units of
    sums, and whether gradients were too large; the nodes; of each leaf three sums, a value, what
    it adds to raw predictions, and five numbers of its rows; split sets."""

    at: U64sOut
    size: I64
    M: I64


ALL = {
    record.__name__: record
    for record in (
        LossOf, Largest, TreeNode, TreeState, NodeSplit, TreeRows, TreeTable, HistPool, TreeRules,
        TreesOut,
    )
}  # fmt: skip
