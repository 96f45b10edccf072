"""Edges: where the bins of a feature end."""

import numpy as np

from gpuforest.common.dtypes import VALUE

TINY = np.finfo(VALUE).tiny
SUM_BITS = 50  # sums of whole numbers stay below 2**50, so that float64 never rounds them


def edges(column: np.ndarray, weights: np.ndarray | None, max_bins: int) -> np.ndarray:
    """Ascending edges f64[E < max_bins], each in the middle of two distinct values.

    If there are at most as many distinct values as bins, every gap between two values has its
    edge and the tree is exact. Otherwise two measures of the gaps determine the edges, half each:

    - the weight of the rows beside the gap: quantiles, for resolution where rows are;
    - width^3/4 weight^1/4, near the density of the best quantiser of a value under
      squared error (Panter and Dite 1951: density^1/3), for resolution where values
      are spread: in a heavy tail one quantile bin would cover all that matters.

    A gap can have one edge only, so its measure is capped at one edge's share.

    A gap's measures come from correctly rounded operations, and sums are of whole numbers below
    2^53: the edges are the same on any machine and in any order of the work.

    Parameters
    ----------
    column : f32[n] or f64[n], finite or NaN, which is ignored
    weights : i32[n] > 0, or None: all are one
    max_bins : int >= 2

    Example
    -------
    Values 0, 1, 2, 3, 19 and four bins, so three edges for the gaps 0-1, 1-2, 2-3, 3-19.

        weight beside           2      2      2      2     as shares  1/4   1/4   1/4   1/4
        width / widest          1/16   1/16   1/16   1
        its 3/4th power         1/8    1/8    1/8    1     as shares  1/11  1/11  1/11  8/11
        both shares             0.341  0.341  0.341  0.977   an edge's share: 2 / 3 edges
        the last one capped     0.341  0.341  0.341  0.511   at (3 * 0.341) / 2 edges
        running sum in edges    0.67   1.33   2.00   3.00
        rounded                 1      1      2      3     edges 0.5, 2.5, 11
    """
    # 1. distinct values, and the weight of the rows that have each
    values, counts = distinct(column, weights)
    low, high = values[:-1], values[1:]
    if len(values) <= max_bins:
        return middle(low, high)
    # from here on there are more gaps than edges, as `capped` needs
    n_edges = max_bins - 1
    # 2. two measures of each gap; halves, because the widest one may overflow
    rank = (counts[:-1] + counts[1:]).astype(VALUE)
    width = high / 2 - low / 2
    half = np.sqrt(np.maximum(width / max(width.max(), TINY), TINY))
    spread = half * np.sqrt(half * np.sqrt(rank))
    # 3. each capped, then both together
    rank = capped(rank, max(n_edges // 2, 1))
    spread = capped(spread, max(n_edges // 2, 1))
    share = capped(rank / rank.sum() + spread / spread.sum(), n_edges)
    # 4. an edge where their running sum, counted in edges, rounds to a new number
    total = np.cumsum(share)
    step = np.floor(total / total[-1] * n_edges + 0.5)
    chosen = np.flatnonzero(np.diff(step, prepend=0.0))
    return middle(low[chosen], high[chosen])


def distinct(column: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values f64[V] of a column, ascending, and the weight of their rows i64[V]."""
    present = ~np.isnan(column)
    if not present.all():
        column = column[present]
        weights = None if weights is None else weights[present]
    if weights is None:
        column = np.sort(column)
    else:
        order = np.argsort(column, kind="stable")
        column, weights = column[order], weights[order].astype(np.int64)
    first = np.flatnonzero(np.append(True, column[1:] != column[:-1])[: len(column)])
    if weights is None or not len(first):
        counts = np.diff(first, append=len(column))
    else:
        counts = np.add.reduceat(weights, first)
    return column[first].astype(VALUE), counts


def middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle of low < high, or low where rounding leaves none: low <= middle < high."""
    between = low / 2 + high / 2
    return np.where((between >= low) & (between < high), between, low)


def capped(measure: np.ndarray, n: int) -> np.ndarray:
    """min(measure, c) f64[G > n] of whole numbers; c is 1/n of the result's sum. A gap above 1/n of
    the sum is capped; then a gap above its share of the rest is, and so on: these are Newton's
    steps for c, a handful for most measures. Before a sum, measures are rounded up to units of the
    largest that is left, so that small ones count: fewer than n gaps are capped whatever the
    roundings."""
    units = 2.0 ** (SUM_BITS - len(measure).bit_length())
    rest, cap = measure, np.inf
    while True:
        top = rest.max()
        cap = min(cap, top * (np.ceil(rest * (units / top)).sum() / units / n))
        kept = rest[rest <= cap]
        if len(kept) == len(rest):
            return np.asarray(np.ceil(np.minimum(measure, cap) * (units / cap)))
        rest, n = kept, n - (len(rest) - len(kept))
