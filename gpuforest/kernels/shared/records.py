"""Records that kernels take and return, in each of their Python implementations.

They are named tuples, because Numba takes those as arguments, and reads a field of one as fast as
an item of a tuple. Letters as in docs/design.md: N rows, F features, B codes, C channels, T trees,
S slots, R rows that slots hold, K outputs, W words of a set.
"""

from typing import Any, NamedTuple

import numpy as np


class Data(NamedTuple):
    """The binned rows that trees grow from.

    codes : u8 or u16 [N, F], row r's bin of feature f; the deep phase takes them as [F, N]
    y : i32[N, 1] class codes, or i64[N, K] moments
    n_bins : i32[F], bins of each feature, without the one for missing values
    n_codes : int, B; the last code, B - 1, is that of missing values
    n_channels : int, C
    """

    codes: Any
    y: Any
    n_bins: Any
    n_codes: Any
    n_channels: Any


class RuleNumbers(NamedTuple):
    """What splits must obey, from `Rules` in frontier.py.

    criterion : int, the number of the criterion, see criteria.py
    n_tried : int, k, features that vary in a node and are tried
    max_depth : int, levels below the root
    fewest_rows : int, rows of a node that may be split
    min_rows : int, rows that either side must have
    min_weight : int, weight that either side must have
    count_rows : bool, whether histograms have one more channel, which counts rows (where
        min_rows > 1)
    min_gain : float, least difference of scores; -inf: any
    is_random : bool, whether each feature has one cut, drawn at random
    gain_ratio : bool, whether features are chosen by C4.5's gain ratio
    signs : i8[F], -1 or 1: the mean (or median) of the second channel must not rise, or fall,
        from the left side to the right; i8[0]: there are no such constraints
    """

    criterion: Any
    n_tried: Any
    max_depth: Any
    fewest_rows: Any
    min_rows: Any
    min_weight: Any
    count_rows: Any
    min_gain: Any
    is_random: Any
    gain_ratio: Any
    signs: Any


class Slots(NamedTuple):
    """S open nodes, see `Frontier` in frontier.py.

    rows, weights : i32[2 R] or i32[R], row numbers and their weights in the bag
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    n_rows : i64[S], the rows of each node
    key : u64[S], random keys
    sums : i64[S, C], channel sums
    tree, depth : i32[S]
    bounds : f64[S, 2], between what the means of both sides of a split must lie; f64[0, 2]: there
        are none
    allowed : bool[T, F], features drawn for each tree; bool[0, 0]: all are
    """

    rows: Any
    weights: Any
    begin: Any
    end: Any
    n_rows: Any
    key: Any
    sums: Any
    tree: Any
    depth: Any
    bounds: Any
    allowed: Any


class Slot(NamedTuple):
    """One open node, as what looks for its split takes it.

    number : int, the slot's, or the node's in its block
    begin : int, position of its first row
    n_rows, weight : int
    key : u64, random key
    sums : i64[C], channel sums
    low, high : float, between what the means of both sides of a split must lie
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
    """A feature, and how its histogram lies: hist[code * width + channel].

    number : int
    bins : int, its bins, without the one for missing values
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
    """What limits the cuts of one feature in one node.

    min_rows, min_weight : int, of either side
    sign : int, 1 or -1: the means of the sides must not fall, or rise; 0: any
    low, high : float, between what these means must lie, where there is a sign
    """

    min_rows: Any
    min_weight: Any
    sign: Any
    low: Any
    high: Any


class Bin(NamedTuple):
    """What rows of one or more bins add up to: weight, second channel and number, each an int."""

    weight: Any
    second: Any
    rows: Any


class Split(NamedTuple):
    """A split of one node.

    score : float, -inf: none is allowed
    feature : int, -1: none
    bin : int, codes <= bin go left; SET_BIN: those in a set do
    missing_left : bool, whether missing values go left
    left : Bin, sums of the left side, of two channels; of more they are not known
    """

    score: Any
    feature: Any
    bin: Any
    missing_left: Any
    left: Any


class SetCut(NamedTuple):
    """A split of categories that lie in order.

    score : float
    at : int, position of the last category that goes left
    heavier : bool, whether these are the heavier side
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
    missing_left : bool[S], whether missing values go left; if none is missing there, whether the
        left side is the heavier one
    left : i64[S, C], channel sums of the left side
    tried : i64[S], features that varied and were tried
    sets : u64[S, W], bit c of a slot's is set where code c goes left
    """

    score: Any
    feature: Any
    bin: Any
    missing_left: Any
    left: Any
    tried: Any
    sets: Any


class Cuts(NamedTuple):
    """The best cut of each of k features in each of S slots.

    score : f64[S, k], -inf where no cut is allowed
    varies : bool[S, k], whether the slot's rows have more than one code
    bin : i32[S, k], codes <= bin go left
    missing_left : bool[S, k], as in `Found`
    left : i64[S, k, C], channel sums of the left side
    """

    score: Any
    varies: Any
    bin: Any
    missing_left: Any
    left: Any


class Trees(NamedTuple):
    """Trees of packed nodes, see nodes.py.

    nodes : u64[M]
    offsets : i64[T + 1], tree t is nodes[offsets[t]:offsets[t + 1]], its root first
    missing : int, the code of a missing value
    set_at : i64[M], where the set of each node whose bin is SET_BIN begins in `sets`
    sets : u64[...], bit c of a set is there where code c goes left
    """

    nodes: Any
    offsets: Any
    missing: Any
    set_at: Any
    sets: Any


NO_BIN = Bin(np.int64(0), np.int64(0), np.int64(0))
NO_SPLIT = Split(-np.inf, np.int64(-1), np.int64(0), False, NO_BIN)
