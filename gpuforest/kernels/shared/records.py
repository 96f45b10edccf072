"""Records that kernels take and return, in each of their Python implementations.

They are named tuples, because Numba takes those as arguments and reads their fields as fast as
items of a tuple. The letters are those of docs/glossary.md: N rows, F features, B codes, C
channels, T trees, S slots, R rows that slots hold, K outputs; and W words of a set.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import (
    F64,
    I64,
    Bool,
    Bools,
    Bools2,
    Codes2,
    F64s,
    F64s2,
    I8s,
    I32s,
    I32s2,
    I64s,
    I64s2,
    I64s3,
    Targets2,
    U64s,
    U64s2,
)


class Data(NamedTuple):
    """The binned rows that trees grow from.

    codes : u8 or u16 [F, N], row r's bin of feature f; other backends take them as [N, F]
    y : i32[N, 1] class codes, or i64[N, K] moments
    n_bins : i32[F], bins of each feature, without the one for missing values
    n_codes : int, B; the last code, B - 1, is that of missing values
    n_channels : int, C
    """

    codes: Codes2
    y: Targets2
    n_bins: I32s
    n_codes: I64
    n_channels: I64


class RuleNumbers(NamedTuple):
    """The rules of splits, from `Rules` in frontier.py.

    criterion : int, the number of the criterion, see criteria.py
    n_tried : int, k, the number of features that vary in a node and are tried
    max_depth : int, the most levels below the root
    fewest_rows : int, the fewest rows of a node that may be split
    min_rows : int, the fewest rows of either side
    min_weight : int, the least weight of either side
    count_rows : bool, whether histograms have one more channel, which counts rows; they have it
        if min_rows > 1
    min_gain : float, the least difference of scores; -inf: any
    is_random : bool, whether each feature has one cut, drawn at random
    gain_ratio : bool, whether features are chosen by C4.5's gain ratio
    signs : i8[F], 1 (or -1): the mean (or median) of the second channel must not fall (or rise)
        from the left side to the right; i8[0]: there are no such constraints
    """

    criterion: I64
    n_tried: I64
    max_depth: I64
    fewest_rows: I64
    min_rows: I64
    min_weight: I64
    count_rows: Bool
    min_gain: F64
    is_random: Bool
    gain_ratio: Bool
    signs: I8s


class Slots(NamedTuple):
    """S open nodes, see `Frontier` in frontier.py.

    rows, weights : i32[2 R] or i32[R], row numbers and their weights in the bag
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    n_rows : i64[S], the number of rows of each node
    key : u64[S], node keys
    sums : i64[S, C], channel sums
    tree, depth : i32[S]
    bounds : f64[S, 2], bounds of the means of both sides of a split; f64[0, 2]: there are none
    allowed : bool[T, F], the features drawn for each tree; bool[0, 0]: trees have all
    """

    rows: I32s
    weights: I32s
    begin: I64s
    end: I64s
    n_rows: I64s
    key: U64s
    sums: I64s2
    tree: I32s
    depth: I32s
    bounds: F64s2
    allowed: Bools2


class Slot(NamedTuple):
    """One open node, as the split search takes it.

    number : int, the number of the slot, or of the node in its block
    begin : int, position of its first row
    n_rows, weight : int
    key : u64, node key
    sums : i64[C], channel sums
    low, high : float, bounds of the means of both sides of a split
    """

    number: Any
    begin: Any
    n_rows: Any
    weight: Any
    key: Any
    sums: Any
    low: Any
    high: Any


class Feature(NamedTuple):
    """A feature and the layout of its histogram: hist[code * width + channel].

    number : int
    bins : int, number of its bins, without the one for missing values
    missing : int, the code of missing values
    n_channels : int, C
    width : int, C, or C + 1 where the last channel counts rows
    is_classes : bool, whether the channels are weights of classes, or weight and moments
    """

    number: Any
    bins: Any
    missing: Any
    n_channels: Any
    width: Any
    is_classes: Any


class Limits(NamedTuple):
    """The limits on the cuts of one feature in one node.

    min_rows, min_weight : int, the least of either side
    sign : int, 1 (or -1): the means must not fall (or rise) from left to right; 0: any
    low, high : float, bounds of these means, if the sign is not 0
    """

    min_rows: Any
    min_weight: Any
    sign: Any
    low: Any
    high: Any


class Bin(NamedTuple):
    """Sums over the rows of one or more bins: weight, second channel and number of rows, ints."""

    weight: Any
    second: Any
    rows: Any


class Split(NamedTuple):
    """A split of one node.

    score : float, -inf: none is allowed
    feature : int, -1: none
    bin : int, codes <= bin go left; SET_BIN: those in a set do
    missing_left : bool, whether missing values go left
    left : Bin, sums of the left side if there are two channels; otherwise they are not known
    """

    score: Any
    feature: Any
    bin: Any
    missing_left: Any
    left: Any


class SetCut(NamedTuple):
    """A split of categories in their order.

    score : float
    at : int, position of the last category that goes left
    heavier : bool, whether the left side is the heavier one
    left : Bin, as in `Split`
    """

    score: Any
    at: Any
    heavier: Any
    left: Any


class Found(NamedTuple):
    """The splits of S slots, see `Splits` in frontier.py.

    score : f64[S], -inf where no split is allowed
    feature : i32[S], -1 where no split is allowed
    bin : i32[S], codes <= bin go left; SET_BIN: those in the slot's set do
    missing_left : bool[S], whether missing values go left; if the slot has none, whether the left
        side is the heavier one
    left : i64[S, C], channel sums of the left side
    tried : i64[S], number of features that varied and were tried
    sets : u64[S, W], bit c of a slot's is set where code c goes left
    """

    score: F64s
    feature: I32s
    bin: I32s
    missing_left: Bools
    left: I64s2
    tried: I64s
    sets: U64s2


class Cuts(NamedTuple):
    """The best cut of each of k features in each of S slots.

    score : f64[S, k], -inf where no cut is allowed
    varies : bool[S, k], whether the slot's rows have more than one code
    bin : i32[S, k], codes <= bin go left
    missing_left : bool[S, k], as in `Found`
    left : i64[S, k, C], channel sums of the left side
    """

    score: F64s2
    varies: Bools2
    bin: I32s2
    missing_left: Bools2
    left: I64s3


class Trees(NamedTuple):
    """Trees of packed nodes, see nodes.py.

    nodes : u64[M]
    offsets : i64[T + 1], tree t is nodes[offsets[t]:offsets[t + 1]], its root first
    missing : int, the code of a missing value
    set_at : i64[M], the word of `sets` where a node's set begins, if its bin is SET_BIN
    sets : u64[...], bit c of a set is 1 if code c goes left; or a combination, see
        combinations.py
    """

    nodes: U64s
    offsets: I64s
    missing: I64
    set_at: I64s
    sets: U64s


class Points(NamedTuple):
    """Points between 0 and 1 at which polynomials are integrated: for each tree as many as needed.

    first, count : i64[T], the points of tree t are at[first[t]:first[t] + count[t]]
    at, weight : f64[...], the points and their weights
    """

    first: I64s
    count: I64s
    at: F64s
    weight: F64s


NO_BIN = Bin(np.int64(0), np.int64(0), np.int64(0))
NO_SPLIT = Split(-np.inf, np.int64(-1), np.int64(0), False, NO_BIN)
