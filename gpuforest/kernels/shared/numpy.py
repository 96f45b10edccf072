"""The rule that says which rows go left, in partitions and in walks down trees."""

from typing import Any

from gpuforest.core.nodes import SET_BIN

Array = Any


def has_code(xp: Any, sets: Array, first: Array, code: Array) -> Array:
    """True where the set at word first i64[n] of sets u64[...] has the code i64[n]: bool[n]."""
    word = xp.take(sets, first + (code >> 6))
    return ((word >> xp.astype(code & 63, xp.uint64)) & 1) == 1


def goes_left(xp: Any, code: Array, split: Any, missing: int, sets: Array, first: Array) -> Array:
    """Whether rows go left, bool[n]; each row has a split of its own.

    A missing value goes left if `missing_left`. Any other code goes left if it is in the set, for a
    split by a set, or else if code <= bin.

    Parameters
    ----------
    code : u8 or u16 [n]
    split : a record with `bin` int[n] and `missing_left` bool[n]; SET_BIN marks a split by a set
    missing : int, the code of a missing value
    sets : u64[...], bit c of a set is 1 if code c goes left; empty: there are no sets
    first : i64[n], the word of `sets` where the split's set begins

    Example
    -------
    Let codes be 0, 3, 5, and 5 mean missing. With bin 2 and missing_left: True, False, True. With
    the set {3}, stored as the word 8, and without missing_left: False, True, False.
    """
    left = code <= split.bin
    by_set = (split.bin == SET_BIN) & (code != missing)
    if sets.shape[0]:
        bit = xp.where(by_set, xp.astype(code, xp.int64), 0)
        in_set = has_code(xp, sets, xp.where(by_set, first, 0), bit)
        left = xp.where(by_set, in_set, left)
    return xp.where(code == missing, split.missing_left, left)
