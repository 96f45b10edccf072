"""Records of boosted trees: loss, rules, trees while they grow, and grown trees.

NumPy, Numba and CUDA C++ share them. A CUDA device grows K trees side by side, so that its arrays
of a `TreeTable` hold K parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from gpuforest.compiler import types
from gpuforest.compiler.types import F64, I64, U64, Type

MOST_STEP = 1e304  # that a leaf adds: beyond it a fit diverges; sums of some stay finite
# As in scikit-learn: a category of fewer rows goes right, and the smoothing of its order
CATEGORY_ROWS = 10.0
BLOCK = 1024  # rows whose stats are put in order at once, to stay in the first-level cache


def struct(name: str, **fields: str) -> Any:
    """A record of numbers that lies in arrays: the names of its fields by their type."""
    of = {"i64": I64, "f64": F64, "u64": U64}
    pairs = [(field, of[kind]) for kind, names in fields.items() for field in names.split()]
    return NamedTuple(name, pairs)


# Powers of two that multiply numbers: gradients and hessians, so that they become
# integers (g, h); sums of these integers while trees grow (sum_g, sum_h), and those of gradients in
# the grown tree (unit); and the values of its leaves. `overflows` is not zero if the largest
# gradient is too large for float64
Scales = struct("Scales", f64="g h sum_g sum_h overflows unit value")

# A leaf of a grown tree: its sums; where its rows and its others begin and end, and on devices in
# which half of the order; its value, and what it adds to raw predictions
Leaf = struct("Leaf", i64="g h n begin end other_begin other_end half", f64="value added")
Leaves = Annotated[Any, Type(Leaf, 1)]

# A node while its tree grows: the positions of its rows and its others; the number of its
# histograms, or -1; its sums; its best split (feature -1: none) with the sums of the left side; the
# number of its left child, or -1 (the right child is the next one); the bounds of what it predicts.
# In the grown tree: where it lies, and on devices the leaves below it
TreeNode = struct(
    "TreeNode",
    i64="begin end other_begin other_end depth slot g h n feature bin missing_left left_g left_h "
    "left_n left position first_leaf n_leaves",
    f64="low high gain",
    u64="key",
)

# Where the growing of a tree stands: how many histograms no node has (n_free); the nodes that are
# searched next, or -1, and their histograms; whether the second one's are what the first one's
# leave of their parent's (subtract); the node whose rows are divided (split); the root's key.
# On the CPU: what comes next, see `STEPS` in numba.py; what threads share, in how many parts; words
# of all sets; how many threads there are, and the cells of histograms, and the rows, for which one
# more of them is worth the wait.
# On devices: whether the tree is finished; positions that say how far the division has come; the
# words of the sums of all rows; how many blocks have done their part of a search
TreeState = struct(
    "TreeState",
    i64="n_nodes n_open n_leaves n_free first first_slot second second_slot subtract split step "
    "work n_parts n_set_words n_threads least_cells least_rows done left right other_left "
    "other_right sum_first sum_last searched",
    u64="key",
)


class NodeSplit(NamedTuple):
    """Best split of a node by some features, and its left sums; gain 0: no split. `feature` is set
    on the CPU; devices have a record for each feature."""

    gain: F64
    bin: I64
    missing_left: I64
    g: I64
    h: I64
    n: I64
    feature: I64


class LossOf(NamedTuple):
    """A loss, and the rows and predictions that it is computed for.

    y : f64[N], numbers or class codes
    weight : f64[N], or None: all are one
    raw : f64[K, N], raw predictions
    number, parameter : see `Loss` in kernels/gradients/losses.py
    delta : f64[1], the largest residual that is not clipped, or None"""

    y: types.F64s
    weight: Annotated[Any, Type("float64", 1, may_be_none=True)]
    raw: types.F64s2
    N: I64
    K: I64
    number: I64
    parameter: F64
    delta: Annotated[Any, Type("float64", 1, may_be_none=True)]


class TreeRules(NamedTuple):
    """The rules for growing the trees of a fit.

    kinds : u8[F], of features
    signs : i8[F], of monotonic constraints, 0 where there is none
    groups : bool[n, F], sets of features that may meet on a path; bool[0, F]: all may
    scale : Scales[1] of the round; NumPy's kernels take `Scales`
    n_groups : int, n
    n_bits : int, the bits of a word that count rows
    n_drawn : int, R, the rows that a tree grows from: the first of all rows in its order
    min_rows : int, the fewest rows of either side
    max_depth, max_leaves : int
    limited : int, whether leaves are so few that it matters which node is split next
    min_hessian : float > 0, the least sum of hessians of either side
    l2 : float, added to the sum of hessians of a node
    most : float, the largest size of what a leaf predicts, or infinity
    share : float, the part of the allowed features that a node tries
    rate : float, the learning rate
    """

    kinds: types.U8s
    signs: types.I8s
    groups: types.Bools2
    scale: Annotated[Any, Type(Scales, 1)]
    n_groups: I64
    n_bits: I64
    n_drawn: I64
    min_rows: I64
    max_depth: I64
    max_leaves: I64
    limited: I64
    min_hessian: F64
    l2: F64
    most: F64
    share: F64
    rate: F64


class BoostColumns(NamedTuple):
    """Binned rows on the CPU in columns of one or several features, and what they add to sums.

    codes : u8 or u16 [C, N], see `columns_of` in boosters.py
    stats : i64[N, 1 or 2], see kernels/gradients
    starts : i64[C + 1], column c holds the features starts[c] .. starts[c + 1] - 1
    column, first, rest : i32[F], where a feature's codes lie
    cells : i64[F + 1], first cell of each feature's histogram: bins, then missing values"""

    codes: types.Codes2
    stats: types.I64s2
    starts: types.I64s
    column: types.I32s
    first: types.I32s
    rest: types.I32s
    cells: types.I64s


class TreeRows(NamedTuple):
    """Rows of K trees on a device: stats i64[K, N, WORDS], and order i32[K, 2, N]. The R rows to
    grow from come first. A node of depth d has its rows in half d & 1."""

    stats: types.I64s3
    order: Annotated[Any, "i32[K, 2, N]"]
    N: I64
    R: I64


class TreeTable(NamedTuple):
    """A tree while it grows: nodes in the order of making, histograms, memory of searches.

    M, P, W : most nodes; histograms; words of a set
    F, C, B : features; cells of a node's histograms; most codes of a feature
    G : interaction groups
    parts : parts of a search: one for each thread, or each feature"""

    M: I64
    P: I64
    W: I64
    nodes: Annotated[Any, Type(TreeNode, 1, ("M",))]
    states: Annotated[Any, Type(TreeState, 1, ("1",))]
    groups: Annotated[Any, "bool[M, G]"]  # groups that hold all features of a node's path
    sets: Annotated[Any, "u64[M, W]"]  # of categorical splits
    open: Annotated[Any, "i64[M]"]  # the nodes that may still be split
    hist: Annotated[Any, "i64[P + 2, C]"]  # of open nodes; the last two are scratch
    free: Annotated[Any, "i64[P]"]  # the numbers of histograms that no node has
    # features of the first and of the second node of a search that are tried; features that have a
    # histogram
    tried: Annotated[Any, "bool[3, F]"]
    # the best split of both nodes among a part of the features
    splits: Annotated[Any, Type(NodeSplit, 2, ("2", "parts"))]
    split_sets: Annotated[Any, "u64[2, parts, W]"]
    # on the CPU alone: stats in the order of a node's rows, or sums in the order of a feature's
    # categories; categories by their scores; how many rows, and others, of each part go left; rows
    # while they are divided
    ordered: Annotated[Any, "i64[threads, BLOCK]"] = None
    scores: Annotated[Any, "f64[threads, 2, B + 1]"] = None
    order: Annotated[Any, "i64[threads, 2, B + 1]"] = None
    lefts: Annotated[Any, "i64[2, threads]"] = None
    spare: Annotated[Any, "i32[N]"] = None

    @classmethod
    def new(cls, make: Callable[..., Any], *, M: int, P: int, W: int, **sizes: int) -> TreeTable:
        """A table of these sizes; make : function of a shape and a dtype, maybe of a struct."""
        numbers = {str(n): n for n in (1, 2, 3)}
        sizes = sizes | numbers | {"M": M, "P": P, "W": W, "P + 2": P + 2}
        return cls(M, P, W, **types.new_arrays(cls, make, **sizes))


class GrownTree(NamedTuple):
    """A grown tree: nodes u64[n] and sets u64[...] in the order of nodes.py, and its leaves. A
    `Leaf` has positions begin .. end - 1 of rows grown from, other_begin .. other_end - 1 of
    others."""

    nodes: types.U64s
    sets: types.U64s
    leaves: Leaves


class TreesOut(NamedTuple):
    """Grown trees u64[K, size] on a device, at most M nodes each: number of nodes, units of sums,
    whether gradients were too large; nodes; a `Leaf` for each two nodes; sets."""

    at: types.U64s2
    size: I64
    M: I64


STRUCTS = {
    record.__name__: record
    for record in (
        LossOf, Scales, Leaf, TreeNode, TreeState, NodeSplit, TreeRows, TreeTable, TreeRules,
        TreesOut,
    )
}  # fmt: skip
