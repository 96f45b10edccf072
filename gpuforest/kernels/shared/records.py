"""Records that kernels take and return, in each of their Python implementations.

They are named tuples, because Numba takes those as arguments and reads their fields as fast as
items of a tuple. The letters are those of docs/glossary.md: N rows, F features, B codes, C
channels, T trees, S slots, R rows that slots hold, K outputs; and W words of a set.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import (
    Bools2,
    F64s,
    F64s2,
    I32s2,
    I64s,
    I64s3,
)


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


class Cuts(NamedTuple):
    """The best cut of each of k features in each of S slots.

    score : f64[S, k], -inf where no cut is allowed
    varies : bool[S, k], whether the slot's rows have more than one code
    bin : i32[S, k], codes <= bin go left
    missing_left : bool[S, k], as in `Splits`
    left : i64[S, k, C], channel sums of the left side
    """

    score: F64s2
    varies: Bools2
    bin: I32s2
    missing_left: Bools2
    left: I64s3


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
