"""Quantiles: the distribution of the training targets in the leaves that a row reaches."""

import numpy as np

from gpuforest.kernels.quantiles.members import (
    COUNT,
    HIGHER,
    INVERTED,
    LINEAR,
    LOWER,
    MEAN,
    Members,
)


def quantiles(
    members: Members, leaves: np.ndarray, y: np.ndarray, q: np.ndarray, how: int
) -> np.ndarray:
    """Weighted quantiles of the targets of the rows in leaves, f64[n, K, Q]; NaN for a row
    without a leaf.

    A training row has the sum, over the leaves, of its weights in them: a draw weighs one integer
    over the number of draws in its leaf, rounded down. Sums of integers are the same in any
    order.

    V(c) is the target at the cumulative weight c: targets ascend, and each takes as much of the
    axis from 0 to W as its row weighs. With D draws in all leaves together, one of them has the
    mean weight u = W / D, and the window of a quantile q is the interval from q (D - 1) u to
    q (D - 1) u + u. If all draws weigh the same, these are the quantiles of `numpy.quantile` for
    the list of all draws.

    Parameters
    ----------
    leaves : i64[n, T], nodes of the forest; -1: no leaf of this tree
    y : f64[K, N], the targets of each output, ascending
    q : f64[Q], from 0 to 1
    how : LINEAR: the mean of V over the window; LOWER, HIGHER: V where the window begins and
        ends; INVERTED: the least target such that it and the lesser ones weigh at least q W
        (Meinshausen 2006); MEAN: the weighted mean of all targets, and `q` is not read

    Example
    -------
    Three rows with the targets 10, 20 and 30 and two leaves, {10, 20} and {20, 30, 30}, of which
    the last row was drawn twice. A leaf weighs 60, and a power of two in forests.

        weights in the leaves        30 30,  20 40
        weights of the rows          30     50     40          W = 120, D = 5, u = 24
        cumulative                   30     80    120
        window of q = 0.25           24 to 48: 6 of 10, 18 of 20
        LINEAR                       (6 * 10 + 18 * 20) / 24 = 17.5
        LOWER, HIGHER                10, 20
        INVERTED, 0.25 * 120 = 30    10
        MEAN                         (30 * 10 + 50 * 20 + 40 * 30) / 120 = 20.83
    """
    n, K = len(leaves), len(y)
    out = np.full((n, K, 1 if how == MEAN else len(q)), np.nan)
    for i in range(n):
        own = leaves[i][leaves[i] >= 0]
        if not len(own):
            continue
        # 1. the members of the leaves, their weights, and the draws
        parts = [weights_of(members, node) for node in own]
        row, each = (np.concatenate(part) for part in zip(*(p[:2] for p in parts), strict=True))
        draws = sum(p[2] for p in parts)
        for k in range(K):
            # 2. the weights of rows in the order of their targets
            rank, place = np.unique(members.rank[k][row], return_inverse=True)
            weight = np.zeros(len(rank), np.int64)
            np.add.at(weight, place, each)
            values, upto = y[k][rank], np.cumsum(weight)
            # 3. the mean, or the quantiles
            if how == MEAN:
                out[i, k, 0] = mean_over(values, upto, 0.0, float(upto[-1]))
            else:
                for j in range(len(q)):
                    out[i, k, j] = quantile(values, upto, draws, q[j], how)
    return out


def members_of(members: Members, node: int) -> np.ndarray:
    """The row and the count of each member of a leaf, i32[n, 2]."""
    leaf = int(members.leaf[node])
    if leaf >= 0:
        return np.array([[leaf & 2**COUNT - 1, leaf >> COUNT]], np.int32)
    begin = ~leaf
    found: np.ndarray = members.lists[begin + 1 : begin + 1 + members.lists[begin, 0]]
    return found


def weights_of(members: Members, node: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows i32[n] in a leaf, their weights i64[n], and the number of its draws."""
    row, count = members_of(members, node).T
    draws = int(count.sum())
    return row, count * np.int64(members.weight // draws), draws


def quantile(values: np.ndarray, upto: np.ndarray, draws: int, q: float, how: int) -> float:
    """One quantile of ascending values, from the cumulative weights up to each."""
    total = float(upto[-1])
    unit = total / draws
    start = q * (draws - 1) * unit
    end = start + unit
    if how == LINEAR:
        return mean_over(values, upto, start, end)
    # what a draw weighs is rounded by less than 1
    slack = draws + 1.0
    if how == LOWER:
        at = int(np.searchsorted(upto, start + slack, side="right"))
    else:
        assert how in (HIGHER, INVERTED)
        limit = q * total if how == INVERTED else end
        at = int(np.searchsorted(upto, limit - slack, side="left"))
    return float(values[min(at, len(values) - 1)])


def mean_over(values: np.ndarray, upto: np.ndarray, start: float, end: float) -> float:
    """The mean of V from `start` to `end`, added from the first value on."""
    at = int(np.searchsorted(upto, start, side="right"))
    at = min(at, len(values) - 1)
    base, sum_, before = values[at], 0.0, start
    while at < len(values):
        here = min(float(upto[at]), end)
        sum_ += (values[at] - base) * (here - before)
        before = here
        if upto[at] >= end:
            break
        at += 1
    return float(base + sum_ / (end - start))


def weights_below(
    members: Members, leaves: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The weights of the rows in leaves whose ranks are below low[i, k], and below high[i, k]; the
    weight of all; and the number of draws: i64[n, K, 4].

    Parameters
    ----------
    leaves : i64[n, T], nodes of the forest; -1: no leaf of this tree
    low, high : i64[n, K], numbers of training targets

    Example
    -------
    That of `quantiles`, and the target 20: one target is below it, and two are not above.

        low, high                1     2
        weights                 30    80    120    and 5 draws
    """
    n, K = low.shape
    out = np.zeros((n, K, 4), np.int64)
    for i in range(n):
        for node in leaves[i][leaves[i] >= 0]:
            row, weight, draws = weights_of(members, node)
            for k in range(K):
                rank = members.rank[k][row]
                out[i, k, 0] += weight[rank < low[i, k]].sum()
                out[i, k, 1] += weight[rank < high[i, k]].sum()
                out[i, k, 2] += weight.sum()
                out[i, k, 3] += draws
    return out
