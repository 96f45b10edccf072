"""The records of boosted trees: what a tree grows from, while it grows, and what has grown."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from gpuforest.compiler import types
from gpuforest.compiler.types import F64, I64, U64

MIN_HESSIAN = 1e-3  # the least sum of hessians of either side of a split
# As in scikit-learn: a category of fewer rows goes right, and the smoothing of its order
CATEGORY_ROWS = 10.0
BLOCK = 1024  # rows whose stats are put in order at once, to stay in the first-level cache


class BoostColumns(NamedTuple):
    """The binned rows in columns of one or several features, see `columns_of` in boosters.py, and
    what they add to sums in this round.

    codes : u8 or u16 [C, N]
    stats : i64[N, 1 or 2], see kernels/gradients
    kinds : u8[F]
    starts : i64[C + 1], column c holds the features starts[c] .. starts[c + 1] - 1
    column, first, rest : i32[F], where a feature's codes lie
    cells : i64[F + 1], where each feature's part of a histogram begins: its bins, and a cell of
        missing values
    """

    codes: types.Codes2
    stats: types.I64s2
    kinds: types.U8s
    starts: types.I64s
    column: types.I32s
    first: types.I32s
    rest: types.I32s
    cells: types.I64s


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
    signs: types.I8s
    groups: types.Bools2


class GrownTree(NamedTuple):
    """A grown tree.

    nodes : u64[n], in the order of nodes.py; leaf i of the tree is row i of the arrays below
    sets : u64[...], the split sets in the order of the nodes
    sums : i64[L, 3], sums of gradients and hessians and the number of rows of each leaf
    values : f64[L], what each leaf adds to the raw prediction, before the learning rate
    ranges : i64[L, 4], leaf i holds rows[ranges[i, 0]:ranges[i, 1]] of the rows that it was grown
        from, and others[ranges[i, 2]:ranges[i, 3]] of the others
    """

    nodes: types.U64s
    sets: types.U64s
    sums: types.I64s2
    values: types.F64s
    ranges: types.I64s2


def struct(name: str, **fields: str) -> Any:
    """A record of numbers that lies in arrays: the names of its fields by their type."""
    of = {"i64": I64, "f64": F64, "u64": U64}
    pairs = [(field, of[kind]) for kind, names in fields.items() for field in names.split()]
    return NamedTuple(name, pairs)


# A node while its tree grows, on the CPU and on devices: the positions of its rows and its others;
# the number of its histograms, or -1; its sums; its best split (feature -1: none) with the sums of
# the left side; the number of its left child, or -1 (the right child is the next one); the bounds
# of what it predicts. In the finished tree: where it lies, and on devices the leaves below it
TreeNode = struct(
    "TreeNode",
    i64="begin end other_begin other_end depth slot g h n feature bin missing_left left_g left_h "
    "left_n left position first_leaf n_leaves",
    f64="low high gain",
    u64="key",
)

# Where the growing of a tree stands: how many histograms no node has (n_free); the nodes that are
# searched next, or -1, and their histograms; whether the second one's are what the first one's
# leave of their parent's (subtract); the node whose rows are divided (split).
# On the CPU: what comes next, see `STEPS` in numba.py; what threads share, in how many parts; words
# of all sets; how many threads there are, and the cells of histograms, and the rows, for which one
# more of them is worth the wait; g and h of the tree's rules.
# On devices: whether the tree is finished; positions that say how far the division has come; the
# words of the sums of all rows; the root's key
TreeState = struct(
    "TreeState",
    i64="n_nodes n_open n_leaves n_free first first_slot second second_slot subtract split step "
    "work n_parts n_set_words n_threads least_cells least_rows done left right other_left "
    "other_right sum_first sum_last",
    f64="g h",
    u64="key",
)


class NodeSplit(NamedTuple):
    """The best split of a node by some features, with the sums of its left side; gain 0: there is
    none. `feature` is set on the CPU alone: devices have one of these for each feature."""

    gain: F64
    bin: I64
    missing_left: I64
    g: I64
    h: I64
    n: I64
    feature: I64


class GrowTable(NamedTuple):
    """A tree while it grows on the CPU: nodes in the order in which they are made, histograms, and
    memory of the searches.

    nodes : TreeNode[M]; state : TreeState[1]
    groups : bool[M, n], the interaction groups that hold all features of a node's path
    sets : u64[M, W], the set of a categorical split
    open : i64[M], the nodes that may still be split
    hist : i64[P + 2, cells * words], histograms of open nodes; the last two are scratch
    free : i64[P], the numbers of those that no node has
    tried : bool[3, F], features of the first and of the second node of a search that are tried;
        and those that have a histogram
    splits : NodeSplit[parts, 2], the best split of both nodes among a part of the features, and
        split_sets : u64[parts, 2, W]
    ordered : i64[parts, BLOCK * words], stats in the order of a node's rows
    scores : f64[parts, 2, B + 1]; order : i64[parts, 2, B + 1], categories in order
    lefts : i64[2, parts], of each part of a node's rows, and others, how many go left
    spare : i32[N], rows while they are divided
    """

    nodes: Annotated[Any, types.Type(TreeNode, 1)]
    state: Annotated[Any, types.Type(TreeState, 1)]
    groups: types.Bools2
    sets: types.U64s2
    open: types.I64s
    hist: types.I64s2
    free: types.I64s
    tried: types.Bools2
    splits: Annotated[Any, types.Type(NodeSplit, 2)]
    split_sets: types.U64s3
    ordered: types.I64s2
    scores: types.F64s3
    order: types.I64s3
    lefts: types.I64s2
    spare: types.I32s


def new_table(
    data: BoostColumns, M: int, n_groups: int, P: int, parts: int, B: int, W: int
) -> GrowTable:
    """A table of M nodes and P histograms; B : codes of a feature at the most."""
    F, (N, words) = len(data.kinds), data.stats.shape
    table: GrowTable = types.allocated(
        GrowTable, nodes=M, state=1, groups=(M, n_groups), sets=(M, W), open=M,
        hist=(P + 2, int(data.cells[-1]) * words), free=P, tried=(3, F), splits=(parts, 2),
        split_sets=(parts, 2, W), ordered=(parts, BLOCK * words), scores=(parts, 2, B + 1),
        order=(parts, 2, B + 1), lefts=(2, parts), spare=N,
    )  # fmt: skip
    return table


def new_tree(M: int, W: int) -> GrownTree:
    """Memory of a tree of at most M nodes."""
    L = (M + 1) // 2
    tree: GrownTree = types.allocated(
        GrownTree, nodes=M, sets=L * W, sums=(L, 3), values=L, ranges=(L, 4)
    )
    return tree
