"""Codes as compiled boosting reads them: by columns, each of one feature or of several.

Adjacent features share a column if in no row more than one of them has another code than its most
common one, its `rest`, as those of a one-hot encoding. A row then adds to one histogram instead of
many ("exclusive feature bundling" of Ke et al., "LightGBM", 2017). Such a column has the codes

    0 .. n_bins(a) - 1: a's but for its rest | n_bins(b) of b's but for its rest | .. | none of them

where missing values have the code n_bins. In a column of its own a feature has all its codes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gpuforest.engine.binning import BinnedMatrix
from gpuforest.kernels.boosted_tree.records import BoostColumns

Array = np.ndarray


def columns_of(matrix: BinnedMatrix, kinds: Array, stats: Array) -> BoostColumns:
    """The columns of a binned matrix; kinds u8[F], stats i64[N, words].

    Where the matrix's codes lie by columns already, these are used, and missing values change
    their code there: a copy would take as much memory again, and nothing else reads them.
    """
    codes, n_bins = np.ascontiguousarray(matrix.codes.T), matrix.edges.n_bins.astype(np.int64)
    missing = matrix.edges.missing_code
    for own, n in zip(codes, n_bins.tolist(), strict=True):
        if n < missing:
            own[own == missing] = n
    runs = list(exclusive(codes, n_bins))
    starts = np.cumsum([0, *(len(run) for run in runs)])
    column = np.repeat(np.arange(len(runs)), np.diff(starts)).astype(np.int32)
    first, rest = np.zeros(len(n_bins), np.int32), (n_bins + 1).astype(np.int32)
    out = codes if len(runs) == len(codes) else np.empty((len(runs), codes.shape[1]), codes.dtype)
    for c, run in enumerate(runs):
        begin, end = starts[c], starts[c + 1]
        if len(run) > 1:
            rest[begin:end] = run
            first[begin:end] = np.cumsum(n_bins[begin:end]) - n_bins[begin:end]
            out[c] = n_bins[begin:end].sum()
            for f in range(begin, end):
                here = np.flatnonzero(codes[f] != rest[f])
                own = codes[f, here].astype(np.int64)
                out[c, here] = first[f] + own - (own > rest[f])
        elif out is not codes:
            out[c] = codes[begin]
    cells = np.concatenate([[0], np.cumsum(n_bins + 1)])
    return BoostColumns(out, stats, kinds, starts, column, first, rest, cells)


def exclusive(codes: Array, n_bins: Array) -> Iterator[list[int]]:
    """Runs of adjacent features that may share a column: of each its most common code, or -1 of a
    feature alone."""
    run: list[int] = []
    most = int(np.iinfo(codes.dtype).max)  # codes of a column, without the one for none
    room, used = 0, np.zeros(0, bool)
    for own, n in zip(codes, n_bins.tolist(), strict=True):
        common = most_common(own, n) if 2 * n <= most else -1
        others = own != common
        if run and common >= 0 and n <= room and not (used & others).any():
            run.append(common)
            room, used = room - n, used | others
            continue
        if run:
            yield run
        run, room, used = [common], most - n if common >= 0 else 0, others
    if run:
        yield run


def most_common(codes: Array, n: int) -> int:
    """The code that most rows have, if at least half have it; else -1. codes : u8 or u16 [N]"""
    found = int(np.bincount(codes, minlength=n + 1).argmax())
    return found if 2 * np.count_nonzero(codes == found) >= len(codes) else -1
