"""The structs of the deep phase on CUDA devices, declared as in kernels/shared/structs.py."""

from __future__ import annotations

from typing import NamedTuple

from gpuforest.kernels.shared import structs


class Roots(NamedTuple):
    """Rows of the D slots of the deep phase: first i64[D + 1] counts rows before each slot. A block
    takes the slots that begin in the same `share` rows; the first begins at row `begin`."""

    first: structs.I64s
    D: structs.I64
    share: structs.I64
    begin: structs.I64


class Categories(NamedTuple):
    """Categorical features of a subtree, whose `kinds` u8[F] are CATEGORICAL; None without them and
    without combinations. Splits write sets or combinations u64[R, words]. The rest is scratch of
    the R rows: key f64[R], begin i32[R], spare i32[R]."""

    kinds: structs.U8s
    sets: structs.U64sOut
    words: structs.I64
    key: structs.F64sOut
    begin: structs.I32sOut
    spare: structs.I32sOut


class Grown(NamedTuple):
    """Where subtrees of first i64[D + 1] rows are written: zeroed nodes u64[2 first[D]]; leaf_sums
    i64[first[D], C]; scratch bounds f64[first[D], 2] or None; counts of nodes, leaves i64[D, 2]."""

    nodes: structs.U64sOut
    leaf_sums: structs.I64sOut
    bounds: structs.F64sOut
    counts: structs.I64sOut


# Byte offsets of the parts of a block's shared memory; `row` 0: no such part. `rows` fit;
# `stride`: codes of a row with padding, 0 if not copied; `n_cells`: words of histograms
Layout = structs.record(
    "Layout",
    structs.I32,
    "target scratch open waiting roots keys weight row cells order codes rows stride n_cells",
)

# An open node in a block: n rows from `low` on, position, first position of descendants, levels
# left below, first row of its subtree, next waiting node
Open = structs.record("Open", structs.U16, "low n position below levels base next")

ALL = {record.__name__: record for record in (Roots, Categories, Grown, Layout, Open)}
