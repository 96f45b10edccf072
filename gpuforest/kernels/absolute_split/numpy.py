"""Absolute split: the cut of each feature that lowers the absolute error of a slot most."""

import numpy as np

from gpuforest.dtypes import SCORE, STAT
from gpuforest.hashing import CUT, hash_at

AT_ONCE = 2**18  # pairs of a cut and a row that are looked at at once


def absolute_split(
    codes: np.ndarray,
    y: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    features: np.ndarray,
    n_bins: np.ndarray,
    missing: int,
    factors: np.ndarray,
    min_rows: int,
    min_weight: int,
    keys: np.ndarray,
    signs: np.ndarray,
    bounds: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Best cut of every slot by each of the features tried there.

    The absolute error of some rows is the sum of w |y - m|, where m is their weighted median.
    A cut's score is what it takes off the slot's error: an integer of each output, times the
    output's factor, added up as float64 in the order of the outputs.

    Parameters
    ----------
    codes : u8 or u16 [N, F], `missing` where a value is missing
    y : i64[N, K] moments
    rows, weights : i32[R]
    begin, end : i64[S], slot s holds rows[begin[s]:end[s]]
    features : i32[S, k], the features tried; -1: none
    n_bins : i32[F], bins of each feature, without the missing one
    missing : int, the code of missing values, above all others
    factors : f64[K], what an output's error counts
    min_rows, min_weight : int, rows that either side must have; what it must weigh
    keys : u64[S], random keys: each feature has one cut, drawn at random; u64[0]: all cuts
    signs : i8[F], -1 or 1: the median must not rise, or fall, from left to right; i8[0]:
        there are no such constraints
    bounds : f64[S, 2], with them: between what the medians of both sides must then lie

    Returns
    -------
    score : f64[S, k], -inf where no cut is allowed
    varies : bool[S, k], whether the rows have more than one code
    cut : i32[S, k], codes <= cut go left
    missing_left : bool[S, k]; if none is missing there, the heavier side
    left : i64[S, k, 1 + K], weight and moments of the left side

    Of equal scores the lowest bin that holds rows wins, then missing values to the right.
    The cut lies in the middle of the empty bins between the rows on its two sides; a random
    one where it was drawn, as in `best_split`.

    Example
    -------
    Targets 1, 2, 6, 8 of weight one have the codes 0, 0, 3, 3. Their median is 4 and their
    error 3 + 2 + 2 + 4 = 11. The one cut has medians 1.5 and 7 and errors 1 and 2: the score
    is 11 - 1 - 2 = 8, and the cut (0 + 3 - 1) // 2 = 1.
    """
    S, k = features.shape
    score, varies = np.full((S, k), -np.inf, SCORE), np.zeros((S, k), np.bool_)
    cut, missing_left = np.zeros((S, k), np.int32), np.zeros((S, k), np.bool_)
    left = np.zeros((S, k, 1 + y.shape[1]), STAT)
    for s, j in np.ndindex(S, k):
        f = int(features[s, j])
        own = rows[begin[s] : end[s]]
        if f < 0 or len(np.unique(codes[own, f])) < 2:
            continue
        varies[s, j] = True
        # 1. the cuts: which rows of each go left, in the order in which equal ones win
        code, w = codes[own, f].astype(np.int64), weights[begin[s] : end[s]].astype(STAT)
        key = np.uint64(keys[s]) if len(keys) else None
        at, upper, side = _cuts(code, missing, key, f)
        gain, w_left = np.zeros(len(at)), np.zeros(len(at), STAT)
        step = max(1, AT_ONCE // len(own))
        for some in (slice(i, i + step) for i in range(0, len(at), step)):
            goes_left = _left_rows(code, missing, at[some], side[some])
            # 2. limits of rows and weight
            n_left, w_left[some] = goes_left.sum(axis=1), [w[rows].sum() for rows in goes_left]
            allowed = (n_left >= min_rows) & (len(own) - n_left >= min_rows)
            allowed &= (w_left[some] >= min_weight) & (w.sum() - w_left[some] >= min_weight)
            # 3. errors of both sides, and their medians
            gain[some], middle = _gains(goes_left, y[own], w, factors)
            if len(signs) and signs[f]:
                low, high = middle if signs[f] > 0 else middle[::-1]
                inside = (middle >= bounds[s, 0]) & (middle <= bounds[s, 1])
                allowed &= (low <= high) & inside.all(axis=0)
            gain[some] = np.where(allowed, gain[some], -np.inf)
        best = int(np.argmax(gain))
        if gain[best] == -np.inf:
            continue
        # 4. the middle of the gap, and where missing values go
        if upper[best] < 0:
            cut[s, j] = n_bins[f] - 1
        else:
            cut[s, j] = at[best] if key is not None else (at[best] + upper[best] - 1) >> 1
        some_missing = (code == missing).any()
        missing_left[s, j] = side[best] if some_missing else w_left[best] > w.sum() - w_left[best]
        score[s, j] = gain[best]
        channels = np.column_stack([w, w[:, None] * y[own]])
        chosen = slice(best, best + 1)
        left[s, j] = channels[_left_rows(code, missing, at[chosen], side[chosen])[0]].sum(axis=0)
    return score, varies, cut, missing_left, left


def _cuts(
    code: np.ndarray, missing: int, key: np.uint64 | None, f: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cuts that leave rows on both sides: the codes <= at go left i64[m], the next code that
    rows have i64[m] (-1: there is none but the missing one), and whether missing values go
    left bool[m]."""
    held, some_missing = np.unique(code[code != missing]), bool((code == missing).any())
    if key is not None and len(held):
        low, high = int(held[0]), int(held[-1])
        h = int(hash_at(np.asarray([key], np.uint64), np.asarray([f + CUT], np.uint64))[0])
        drawn = low + (h >> 1) % max(high - low, 1)
        upper = held[held > drawn][:1] if high > low else np.array([-1])
        goes_left = h & 1 == 1 and high > low and some_missing
        return np.array([drawn]), upper, np.array([goes_left])
    found = [
        (int(b), int(held[i + 1]) if i + 1 < len(held) else -1, side)
        for i, b in enumerate(held)
        for side in ((False, True) if some_missing else (False,))
        if i + 1 < len(held) or (some_missing and not side)
    ]
    return np.array(found)[:, 0], np.array(found)[:, 1], np.array(found)[:, 2] > 0


def _left_rows(code: np.ndarray, missing: int, at: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Which of n rows go left by each of m cuts, bool[m, n]."""
    present = (code[None, :] <= at[:, None]) & (code != missing)
    return np.asarray(present | ((code == missing) & side[:, None]))


def _gains(
    goes_left: np.ndarray, y: np.ndarray, weights: np.ndarray, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What each of m cuts takes off the error of n rows f64[m], and the medians f64[2, m] of
    the first output on both sides.

    goes_left : bool[m, n]
    """
    m, n = goes_left.shape
    gain, medians = np.zeros(m), np.zeros((2, m))
    for k in range(y.shape[1]):
        order = np.argsort(y[:, k], kind="stable")
        q, w = y[order, k], weights[order]
        whole = absolute_errors(np.ones((1, n), np.bool_), q, w)[0]
        some = goes_left[:, order]
        sides = absolute_errors(some, q, w), absolute_errors(~some, q, w)
        gain += factors[k] * (whole - sides[0][0] - sides[1][0])
        if k == 0:
            medians[0], medians[1] = sides[0][1], sides[1][1]
    return gain, medians


def absolute_errors(
    inside: np.ndarray, q: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors i64[m] and weighted medians f64[m] of m sets of n rows, none of them empty.

    The median is the value at which half of the weight is reached; where it is reached
    exactly, the middle between that and the next one.

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
