"""Absolute split: the cut of each feature that lowers the absolute error of a slot most."""

from typing import NamedTuple

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import SCORE, STAT
from gpuforest.common.hashing import CUT, hash_at
from gpuforest.engine.frontier import Data, Frontier, Rules
from gpuforest.kernels.shared.goes_left.numpy import goes_left
from gpuforest.kernels.shared.records import Cuts, Split

NO_SETS = np.zeros(0, np.uint64)
AT_ONCE = 2**18  # pairs of a cut and a row that are computed at once


def absolute_split(
    data: Data, slots: Frontier, features: np.ndarray, rules: Rules, factors: np.ndarray
) -> Cuts:
    """The best cut of every slot by each of the features tried there.

    The absolute error of a set of rows is the sum of w |y - m|, where m is their weighted median.
    A cut's score is what it takes off the slot's error: an integer for each output, times the
    output's factor, added up as float64 in the order of the outputs.

    Parameters
    ----------
    features : i32[S, k], the features tried; -1: none
    factors : f64[K], the factor of each output's error

    Of equal scores the lowest bin that holds rows wins, then missing values to the right.
    The cut is in the middle of the empty bins between the rows on its two sides; a random cut
    is where it was drawn, as in `best_split`.

    Example
    -------
    Targets 1, 2, 6, 8 of weight one have the codes 0, 0, 3, 3. Their median is 4 and their
    error 3 + 2 + 2 + 4 = 11. The one cut has medians 1.5 and 7 and errors 1 and 2: the score
    is 11 - 1 - 2 = 8, and the cut (0 + 3 - 1) // 2 = 1.
    """
    (S, k), missing = features.shape, data.n_codes - 1
    out = Cuts(
        np.full((S, k), -np.inf, SCORE),
        np.zeros((S, k), np.bool_),
        np.zeros((S, k), np.int32),
        np.zeros((S, k), np.bool_),
        np.zeros((S, k, 1 + data.y.shape[1]), STAT),
    )
    for s, j in np.ndindex(S, k):
        f, held = int(features[s, j]), slice(slots.begin[s], slots.end[s])
        own = slots.rows[held]
        if f < 0 or len(np.unique(data.codes[own, f])) < 2:
            continue
        out.varies[s, j] = True
        # 1. the cuts, in the order in which equal ones win
        rows = _Rows(data.codes[own, f].astype(np.int64), slots.weights[held].astype(STAT))
        y, key = data.y[own], np.uint64(slots.key[s]) if rules.random else None
        cuts = _cuts(rows.code, missing, key, f)
        # 2. and 3. the best that is allowed
        bounds = slots.bounds[s] if slots.bounds is not None and rules.signs[f] else None
        gain, w_left = _scores(rows, y, cuts, missing, factors, rules, f, bounds)
        best = int(np.argmax(gain))
        if gain[best] == -np.inf:
            continue
        # 4. the middle of the gap, and where missing values go
        at, upper, side = (int(values[best]) for values in cuts)
        drawn = at if key is not None else (at + upper - 1) >> 1
        out.bin[s, j] = data.n_bins[f] - 1 if upper < 0 else drawn
        heavier = w_left[best] > rows.w.sum() - w_left[best]
        out.missing_left[s, j] = side if (rows.code == missing).any() else heavier
        out.score[s, j] = gain[best]
        channels = np.column_stack([rows.w, rows.w[:, None] * y])
        chosen = slice(best, best + 1)
        is_left = _left_rows(rows.code, missing, cuts[0][chosen], cuts[2][chosen])[0]
        out.left[s, j] = channels[is_left].sum(axis=0)
    return out


class _Rows(NamedTuple):
    """The rows of a slot: codes of a feature and weights, i64[n] each."""

    code: np.ndarray
    w: np.ndarray


def _scores(
    rows: _Rows,
    y: np.ndarray,
    cuts: tuple[np.ndarray, np.ndarray, np.ndarray],
    missing: int,
    factors: np.ndarray,
    rules: Rules,
    f: int,
    bounds: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """What each of m cuts takes off the error, f64[m], -inf if limits forbid it; and the weight of
    its left side, i64[m].

    bounds : f64[2], if the feature has a sign; else None
    """
    (code, w), (at, _, side) = rows, cuts
    gain, w_left = np.zeros(len(at)), np.zeros(len(at), STAT)
    step = max(1, AT_ONCE // len(w))
    for some in (slice(i, i + step) for i in range(0, len(at), step)):
        is_left = _left_rows(code, missing, at[some], side[some])
        # 2. limits of rows and weight
        n_left, w_left[some] = is_left.sum(axis=1), [w[left].sum() for left in is_left]
        fewer = np.minimum(n_left, len(w) - n_left)
        lighter = np.minimum(w_left[some], w.sum() - w_left[some])
        allowed = (fewer >= rules.min_rows_leaf) & (lighter >= rules.min_weight_leaf)
        # 3. errors of both sides, and their medians
        gain[some], middle = _gains(is_left, y, w, factors)
        if bounds is not None:
            low, high = middle if rules.signs[f] > 0 else middle[::-1]
            inside = (middle >= bounds[0]) & (middle <= bounds[1])
            allowed &= (low <= high) & inside.all(axis=0)
        gain[some] = np.where(allowed, gain[some], -np.inf)
    return gain, w_left


def _cuts(
    code: np.ndarray, missing: int, key: np.uint64 | None, f: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The m cuts with rows on both sides: the last code that goes left i64[m], the next code that
    rows have i64[m] (-1: no code but the missing one), and whether missing values go left
    bool[m]."""
    held, some_missing = np.unique(code[code != missing]), bool((code == missing).any())
    if key is not None and len(held):
        low, high = int(held[0]), int(held[-1])
        h = int(hash_at(np.asarray([key], np.uint64), np.asarray([f + CUT], np.uint64))[0])
        drawn = low + (h >> 1) % max(high - low, 1)
        upper = held[held > drawn][:1] if high > low else np.array([-1])
        side = h & 1 == 1 and high > low and some_missing
        return np.array([drawn]), upper, np.array([side])
    found = [
        (int(b), int(held[i + 1]) if i + 1 < len(held) else -1, side)
        for i, b in enumerate(held)
        for side in ((False, True) if some_missing else (False,))
        if i + 1 < len(held) or (some_missing and not side)
    ]
    return np.array(found)[:, 0], np.array(found)[:, 1], np.array(found)[:, 2] > 0


def _left_rows(code: np.ndarray, missing: int, at: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Which of n rows go left by each of m cuts, bool[m, n]."""
    split = Split(None, None, at[:, None], side[:, None], None)
    return np.asarray(goes_left(xp, code[None, :], split, missing, NO_SETS, np.zeros(1, np.int64)))


def _gains(
    is_left: np.ndarray, y: np.ndarray, weights: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each of m cuts takes off the error of n rows, f64[m], and the medians of the first
    output on both sides, f64[2, m].

    is_left : bool[m, n]
    """
    m, n = is_left.shape
    gain, medians = np.zeros(m), np.zeros((2, m))
    for k in range(y.shape[1]):
        order = np.argsort(y[:, k], kind="stable")
        q, w = y[order, k], weights[order]
        whole = absolute_errors(np.ones((1, n), np.bool_), q, w)[0]
        some = is_left[:, order]
        sides = absolute_errors(some, q, w), absolute_errors(~some, q, w)
        gain += factors[k] * (whole - sides[0][0] - sides[1][0])
        if k == 0:
            medians[0], medians[1] = sides[0][1], sides[1][1]
    return gain, medians


def absolute_errors(
    inside: np.ndarray, q: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors i64[m] and weighted medians f64[m] (see medians.py) of m non-empty sets of rows.

    Parameters
    ----------
    inside : bool[m, n]
    q : i64[n], ascending
    weights : i64[n] > 0
    """
    each = np.where(inside, weights, 0)
    upto, total = np.cumsum(each, axis=1), each.sum(axis=1)
    lower = np.argmax(2 * upto >= total[:, None], axis=1)
    upper = np.argmax(2 * upto > total[:, None], axis=1)
    error = (each * np.abs(q - q[lower][:, None])).sum(axis=1)
    return error, (q[lower] + q[upper]) * 0.5
