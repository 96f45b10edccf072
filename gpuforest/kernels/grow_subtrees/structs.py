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
    """Rows of the D slots of the deep phase: first i64[D + 1] counts rows before each slot. A block
    takes the slots that begin in the same `share` rows; the first begins at row `begin`."""

    first: I64s
    D: I64
    share: I64
    begin: I64


class Categories(NamedTuple):
    """Categorical features of a subtree, whose `kinds` u8[F] are CATEGORICAL; None without them and
    without combinations. Splits write sets or combinations u64[R, words]. The rest is scratch: of
    the R rows, spare i32[R], and for categories key f64[R], begin i32[R], off f64[R, K]; of each
    warp, scatter f64[K + 2, K]; the last two are None if no order of categories needs them."""

    kinds: U8s
    sets: U64sOut
    words: I64
    key: F64sOut
    begin: I32sOut
    spare: I32sOut
    off: F64sOut
    scatter: F64sOut


class Grown(NamedTuple):
    """Where subtrees of first i64[D + 1] rows are written: zeroed nodes u64[2 first[D]]; leaf_sums
    i64[first[D], C]; bounds f64[first[D], 2] or None; numbers of nodes, leaves i64[D, 2]."""

    nodes: U64sOut
    leaf_sums: I64sOut
    bounds: F64sOut
    counts: I64sOut


class Layout(NamedTuple):
    """Byte offsets of the parts of a block's shared memory; `row` 0: no such part. `rows` fit;
    `stride`: codes of a row with padding, 0 if not copied; `n_cells`: words of histograms."""

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
    """An open node in a block: n rows from `low` on, position, first position of descendants,
    levels left below, first row of its subtree, next waiting node."""

    low: U16
    n: U16
    position: U16
    below: U16
    levels: U16
    base: U16
    next: U16


ALL = {record.__name__: record for record in (Roots, Categories, Grown, Layout, Open)}
