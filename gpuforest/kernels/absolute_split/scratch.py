"""What looking for splits by absolute error works on."""

from typing import Any, NamedTuple

import numpy as np

from gpuforest.kernels.compile import maker


class Rows(NamedTuple):
    """The n rows of a slot: weights w i64[n], targets own i64[n, K], and of each output the rows
    by their targets i64[K, n], the rank of each i64[K, n], the targets in that order q i64[K, n]
    and the slot's error whole i64[K]."""

    w: Any
    own: Any
    by_target: Any
    rank: Any
    q: Any
    whole: Any


class Groups(NamedTuple):
    """The rows of a slot by their codes: order i64[n]; group g has the code `code[g]`, rows
    order[start[g]:start[g + 1]], and lies behind rows of the weight before[g]."""

    order: Any
    start: Any
    code: Any
    before: Any


class Work(NamedTuple):
    """Scratch: the Fenwick tree i64[n + 1, 2]; errors i64[4, n] and medians f64[4, n] of the
    left and the right sides, with missing values right and left; gains f64[2, n]; and what
    sorting takes."""

    tree: Any
    errors: Any
    medians: Any
    gains: Any
    goes_left: Any
    codes: Any
    keys: Any
    counts: Any


class Held(NamedTuple):
    """What a slot holds of a feature: m groups of n rows, which weigh `weight`; the last group is
    of missing values, of n_missing rows and that weight, if there are some."""

    m: Any
    n: Any
    weight: Any
    n_missing: Any
    w_missing: Any


class Way(NamedTuple):
    """A way through groups of rows: from the first to the last in steps of 1 or -1, with a group
    that is on that side too, -1: none."""

    first: Any
    last: Any
    step: Any
    also: Any


@maker
def new_scratch(n, K, B):
    """Of slots of at most n rows."""
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
    return rows, groups, work
