"""The records and scratch of the search for splits by absolute error."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import Bools, F64s2, I64s, I64s2


class Rows(NamedTuple):
    """The n rows of a slot: weights w i64[n] and targets own i64[n, K]; and for each output, the
    rows in the order of their targets i64[K, n], each row's rank i64[K, n], the targets in that
    order q i64[K, n], and the slot's error whole i64[K]."""

    w: I64s
    own: I64s2
    by_target: I64s2
    rank: I64s2
    q: I64s2
    whole: I64s


class Groups(NamedTuple):
    """The rows of a slot in groups of equal codes: group g has the code `code[g]` and the rows
    order[start[g]:start[g + 1]], and the groups before it weigh before[g]; order is i64[n]."""

    order: I64s
    start: I64s
    code: I64s
    before: I64s


class Work(NamedTuple):
    """Scratch: the Fenwick tree i64[n + 1, 2]; errors i64[4, n] and medians f64[4, n] of the
    left and the right sides, with missing values right and left; gains f64[2, n]; and what
    sorting takes."""

    tree: I64s2
    errors: I64s2
    medians: F64s2
    gains: F64s2
    goes_left: Bools
    codes: I64s
    keys: I64s
    counts: I64s


class Held(NamedTuple):
    """The groups of a feature in a slot: m groups of n rows, which weigh `weight`. If values are
    missing, they are the last group, with its number of rows and its weight."""

    m: Any
    n: Any
    weight: Any
    n_missing: Any
    w_missing: Any


class Way(NamedTuple):
    """A pass over groups of rows, from the first to the last in steps of 1 or -1, and a group that
    is on that side from the start, or -1."""

    first: Any
    last: Any
    step: Any
    also: Any


class AbsoluteScratch(NamedTuple):
    """The scratch of the search in one slot."""

    rows: Rows
    groups: Groups
    work: Work


def absolute_arrays(n: int, K: int, B: int) -> AbsoluteScratch:
    """Scratch for slots of at most n rows."""
    rows = Rows(
        np.empty(n, np.int64), np.empty((n, K), np.int64), np.empty((K, n), np.int64),
        np.empty((K, n), np.int64), np.empty((K, n), np.int64), np.empty(K, np.int64),
    )  # fmt: skip
    groups = Groups(
        np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n, np.int64),
        np.empty(n + 1, np.int64),
    )  # fmt: skip
    work = Work(
        np.empty((n + 1, 2), np.int64), np.empty((4, n), np.int64), np.empty((4, n)),
        np.empty((2, n)), np.empty(n, np.bool_), np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(B + 1, np.int64),
    )  # fmt: skip
    return AbsoluteScratch(rows, groups, work)
