"""The structs of boosted trees on CUDA devices, declared as in kernels/shared/structs.py.

Those whose fields are numbers alone lie in arrays on the device, as words of 64 bits. K trees
grow side by side; the arrays of a struct hold one part for each of them.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from gpuforest.kernels.boosted_tree.records import NodeSplit, TreeNode, TreeState, struct
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


# What numbers are multiplied by, powers of two: gradients and hessians, so that they become
# integers; their sums while trees grow, and in the finished tree those of gradients; and the values
# of leaves. `overflows`: the largest gradients are too large, if it is not zero
Scales = struct("Scales", f64="g h sum_g sum_h overflows unit value")

# A leaf of a finished tree: its sums; where its rows and others lie, in which half of the order;
# its value, and what it adds to raw predictions
Leaf = struct("Leaf", i64="g h n begin end other_begin other_end half", f64="value added")


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
    """K trees while they grow: M nodes and a state each, the interaction groups of nodes
    bool[K, M, n], sets u64[K, M, W] of splits, and the open nodes i64[K, M].

    hist : i64[K, P + 2, F, B, WORDS], histograms, of which the last two are scratch
    free : i64[K, P], the numbers of those that no node has
    tried : bool[K, 3, F], as in `GrowTable`
    splits, split_sets : [K, 2, F] and u64[K, 2, F, W], the best splits of the first and second node
    """

    nodes: NodesOut
    states: StatesOut
    groups: BoolsOut
    sets: U64sOut
    open: I64sOut
    hist: I64sOut
    free: I64sOut
    tried: BoolsOut
    splits: SplitsOut
    split_sets: U64sOut
    M: I64
    W: I64
    P: I64


class TreeRules(NamedTuple):
    """The rules of growing, see `BoostRules`; most: before it is scaled; limited: leaves are so few
    that it matters which node is split next."""

    n_bins: I32s
    kinds: Kinds
    signs: Signs
    groups: Bools
    scale: Annotated[Array, "const Scales*"]
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
    sums, and whether gradients were too large; the nodes; a `Leaf` for each two; split sets."""

    at: U64sOut
    size: I64
    M: I64


ALL = {
    record.__name__: record
    for record in (
        LossOf, Scales, Leaf, TreeNode, TreeState, NodeSplit, TreeRows, TreeTable, TreeRules,
        TreesOut,
    )
}  # fmt: skip
