"""Records that kernels of all Python implementations take and return; letters as in
docs/glossary.md.

They are named tuples: Numba reads their fields as fast as items of a tuple.
"""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import Bools2, F64s2, I32s2, I64s3


class Slot(NamedTuple):
    """One open node, as the split search takes it."""

    number: Any  # of the slot, or of the node in its block
    begin: Any  # position of its first row
    n_rows: Any
    weight: Any
    key: Any
    sums: Any  # i64[C], channel sums
    low: Any  # bounds of the means of both sides of a split
    high: Any


class Feature(NamedTuple):
    """A feature and the layout of its histogram: hist[code * width + channel]."""

    number: Any
    bins: Any  # without the one for missing values
    missing: Any  # the code of missing values
    n_channels: Any  # C
    width: Any  # C, or C + 1 where the last channel counts rows
    is_classes: Any  # whether the channels are weights of classes, or weight and moments


class Limits(NamedTuple):
    """The limits on the cuts of one feature in one node."""

    min_rows: Any  # the least of either side
    min_weight: Any
    sign: Any  # 1 (or -1): the means must not fall (or rise) from left to right; 0: any
    low: Any  # bounds of these means, if the sign is not 0
    high: Any


class Bin(NamedTuple):
    """Sums over the rows of one or more bins: weight, second channel and number of rows, ints."""

    weight: Any
    second: Any
    rows: Any


class Split(NamedTuple):
    """A split of one node."""

    score: Any  # -inf: no split is allowed
    feature: Any  # -1: none
    bin: Any  # codes <= bin go left; SET_BIN: those in a set do
    missing_left: Any  # whether missing values go left
    left: Any  # Bin, sums of the left side if there are two channels; otherwise they are not known


class Cuts(NamedTuple):
    """The best cut of each of k features in each of S slots."""

    score: F64s2  # [S, k], -inf where no cut is allowed
    varies: Bools2  # [S, k], whether the slot's rows have more than one code
    bin: I32s2  # [S, k], codes <= bin go left
    missing_left: Bools2  # [S, k], as in `Splits`
    left: I64s3  # [S, k, C], channel sums of the left side


NO_BIN = Bin(np.int64(0), np.int64(0), np.int64(0))
NO_SPLIT = Split(-np.inf, np.int64(-1), np.int64(0), False, NO_BIN)
