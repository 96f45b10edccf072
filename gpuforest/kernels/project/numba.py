"""Sums of combinations of features as codes, compiled; numpy.py in this folder specifies them."""

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.types import I64, Codes2, I32s, I32s2, I64s2, I64s3
from gpuforest.core.frontier import Data, Frontier
from gpuforest.kernels.shared.numba import U

HOLE = np.int32(-(2**31))  # the sum of a combination that lacks a value


@device
def add_up(table, positions, begin, n, terms, n_terms, coordinates, missing, sums):
    """Fill the sums i32[n] of a combination.

    table : codes [F, ...]; those of row i are at positions[begin + i]
    terms : i64[2, L], features and their weights
    """
    for t in range(n_terms):
        column, places = table[terms[0, t]], coordinates[terms[0, t]]
        w = np.int32(terms[1, t])
        for i in range(n):
            code = column[U(positions[U(begin + i)])]
            before = sums[U(i)] if t else np.int32(0)
            is_hole = (code == missing) | (before == HOLE)
            sums[U(i)] = HOLE if is_hole else before + w * places[U(code)]


@device
def steps_of(sums, n, n_bins):
    """The least sum, and the shift that makes codes below n_bins of sums."""
    low, high = np.int32(2**31 - 1), HOLE
    for i in range(n):
        s = sums[U(i)]
        low = min(low, s if s != HOLE else np.int32(2**31 - 1))
        high = max(high, s)
    if high == HOLE:
        return np.int64(0), np.int64(0)
    spread, shift = np.int64(high) - np.int64(low), np.int64(0)
    while spread >> shift >= n_bins:
        shift += 1
    return np.int64(low), shift


@kernel(target="int32")
def project(
    data: Data, slots: Frontier, features: I64s3, weights: I64s3, coordinates: I32s2, n_bins: I64,
    pieces: I64s2, sums: I32s, terms: I64s2, codes: Codes2, low: I64s2, shift: I64s2,
):  # fmt: skip
    """Fill codes [k, R], low and shift i64[S, k] for pieces i64[p, 3]: slot, combination, first
    code. It reads no targets; sums i32[...] and terms i64[2, L] are scratch."""
    missing = data.n_codes - 1
    for p in range(len(pieces)):
        s, j, at = pieces[p, 0], pieces[p, 1], pieces[p, 2]
        begin, n, n_terms, out = slots.begin[s], slots.end[s] - slots.begin[s], 0, codes[j]
        for i in range(features.shape[2]):
            if features[s, j, i] >= 0:
                terms[0, n_terms], terms[1, n_terms] = features[s, j, i], weights[s, j, i]
                n_terms += 1
        if n_terms < 2:
            low[s, j] = shift[s, j] = 0
            column = data.codes[terms[0, 0] if n_terms else 0]
            for i in range(n):
                code = column[U(slots.rows[U(begin + i)])] if n_terms else 0
                out[U(at + i)] = n_bins if code == missing and n_terms else code
            continue
        add_up(data.codes, slots.rows, begin, n, terms, n_terms, coordinates, missing, sums)
        least, steps = steps_of(sums, n, n_bins)
        low[s, j], shift[s, j] = least, steps
        for i in range(n):
            total = sums[U(i)]
            out[U(at + i)] = n_bins if total == HOLE else (np.int64(total) - least) >> steps
