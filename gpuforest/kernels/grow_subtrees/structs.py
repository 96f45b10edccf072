"""The structs of the deep phase on CUDA devices, declared as in kernels/shared/structs.py."""

from __future__ import annotations

from typing import NamedTuple

from gpuforest.kernels.shared.structs import (
    I32,
    I64,
    U16,
    F64sOut,
    I32sOut,
    I64s,
    I64sOut,
    U8s,
    U64sOut,
)


class Roots(NamedTuple):
    """The rows of the D slots of the deep phase: `first` i64[D + 1] counts those before each slot.
    A block takes the slots of which the first row is among the same `share` rows; the first block
    of a launch begins at row `begin`."""

    first: I64s
    D: I64
    share: I64
    begin: I64


class Categories(NamedTuple):
    """The categorical features of a subtree, whose `kinds` u8[F] are CATEGORICAL; all are None if
    there are none and none are combined. Splits write sets or combinations u64[R, words]. The rest
    is scratch: of the R rows, spare i32[R], and for categories key f64[R], begin i32[R], off
    f64[R, K]; of each warp, scatter f64[K + 2, K]; the last two are None if no order of categories
    needs them."""

    kinds: U8s
    sets: U64sOut
    words: I64
    key: F64sOut
    begin: I32sOut
    spare: I32sOut
    off: F64sOut
    scatter: F64sOut


class Grown(NamedTuple):
    """Where subtrees are written, of `first` i64[D + 1] rows: nodes u64[2 first[D]], which hold
    zeros; leaf_sums i64[first[D], C]; bounds f64[first[D], 2], scratch for monotonic constraints,
    or None; and numbers of nodes and leaves, counts i64[D, 2]."""

    nodes: U64sOut
    leaf_sums: I64sOut
    bounds: F64sOut
    counts: I64sOut


class Layout(NamedTuple):
    """Where the parts of a block's shared memory begin, in bytes.

    row is 0 if there is no such part. `rows` is the number of rows that fit, `stride` the number
    of codes of a row and its padding, 0 if codes are not copied, and `n_cells` the number of words
    for histograms.
    """

    target: I32
    scratch: I32
    open: I32
    waiting: I32
    roots: I32
    keys: I32
    weight: I32
    row: I32
    cells: I32
    order: I32
    codes: I32
    rows: I32
    stride: I32
    n_cells: I32


class Open(NamedTuple):
    """An open node of a subtree, in a block: its n rows from `low` on, its node's position, the
    position where its descendants begin, how many levels there may be below, the first row of its
    subtree, and the next node that waits."""

    low: U16
    n: U16
    position: U16
    below: U16
    levels: U16
    base: U16
    next: U16


ALL = {record.__name__: record for record in (Roots, Categories, Grown, Layout, Open)}
