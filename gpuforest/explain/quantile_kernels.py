"""Quantiles: the distribution of the training targets in the leaves that a row reaches.

A training row has the sum, over the leaves, of its weights in them: a draw weighs one integer over
the number of draws in its leaf, rounded down. Sums of integers are the same in any order.

V(c) is the target at the cumulative weight c: targets ascend, and each takes as much of the axis
from 0 to W as its row weighs. With D draws in all leaves together, one of them has the mean weight
u = W / D, and the window of a quantile q is the interval from q (D - 1) u to q (D - 1) u + u. Then
LINEAR is the mean of V over the window; LOWER and HIGHER are V where the window begins and ends;
MIDPOINT is the middle of both, and NEAREST the one that is nearer to LINEAR;
INVERTED is the least target which with the lesser ones weighs at least q W (Meinshausen 2006);
MEAN is the weighted mean of all targets. If all draws weigh the same, these are the quantiles of
`numpy.quantile` for the list of all draws.

Three rows with the targets 10, 20 and 30 and two leaves, {10, 20} and {20, 30, 30}; the
last row was drawn twice. A leaf weighs 60, and a power of two in forests.

    weights in the leaves        30 30,  20 40
    weights of the rows          30     50     40          W = 120, D = 5, u = 24
    cumulative                   30     80    120
    window of q = 0.25           24 to 48: 6 of 10, 18 of 20
    LINEAR                       (6 * 10 + 18 * 20) / 24 = 17.5
    LOWER, HIGHER                10, 20
    INVERTED, 0.25 * 120 = 30    10
    MEAN                         (30 * 10 + 50 * 20 + 40 * 30) / 120 = 20.83

A row's members are few among all training rows: an array of bits, one for each rank, says which
ranks have a weight, and its words are read in order, so nothing is sorted. Leaves lie far apart in
memory, so those of the next rows are prefetched.
"""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.decorators import device, kernel
from gpuforest.compiler.intrinsics import prefetch
from gpuforest.compiler.types import I64, F64s, F64s2, F64s3, I32s2, I64s, I64s2, I64s3, U64s
from gpuforest.kernels.shared.numba import U

# what is asked of the distribution of targets
LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST, INVERTED, MEAN = range(7)
COUNT = 32  # where the count of an only member is, in bits
WORD, IN_WORD, ONE, NONE = U(6), U(63), U(1), U(0)
ROW = np.int64(2**COUNT - 1)
EXPONENT, BIAS = np.int64(52), np.int64(1023)  # of float64
AHEAD = 2  # rows whose leaves are prefetched


class Members(NamedTuple):
    """The members of each leaf: the training rows in it that the tree drew.

    Rows are numbered in the order of their first targets, so that a number is a rank. Most leaves
    of a tree of unlimited depth have one member, which takes one read of memory."""

    # [M], of a leaf with one member: its row, and how often it was drawn << COUNT; of one with
    # several: ~begin; 0 of inner nodes
    leaf: I64s
    # [L, 2], at `begin` a leaf's number of members and of draws, then for each member its row and
    # how often it was drawn; the rows ascend
    lists: I32s2
    rank: I32s2  # [K, N], the position of each row in the order of the targets of each output
    weight: I64  # of a leaf's members together: one of D draws weighs weight // D; 0: each weighs 1


def new_members(sizes: np.ndarray, row_count: np.ndarray, rank: np.ndarray, weight: int) -> Members:
    """The record, from numbers of members of nodes i64[M], and (row, count) i32[E, 2] by node."""
    leaf, several = np.zeros(len(sizes), np.int64), sizes > 1
    node = np.repeat(np.arange(len(sizes)), sizes)
    only = sizes[node] == 1
    row, count = row_count[only].T.astype(np.int64)
    leaf[node[only]] = row | count << COUNT
    listed, lengths = row_count[~only], sizes[several]
    first = np.cumsum(lengths) - lengths
    leaf[several] = ~(first + np.arange(len(first)))
    draws = np.add.reduceat(listed[:, 1], first)
    lists = np.insert(listed, first, np.stack([lengths, draws], axis=1), axis=0)
    return Members(leaf, lists, rank, weight)


class ByRank(NamedTuple):
    """Scratch of a thread. `weight` and `bits` are zero before and after each row."""

    weight: I64s  # [N]
    bits: U64s  # [N / 64 + 1], bit r is set where weight[r] is not zero
    at: I64s  # [N], the ranks of a row's members
    upto: I64s  # [N], and the weights up to each


def new_scratch(n_rows: int) -> ByRank:
    """Scratch for this number of training rows."""
    weight, at, upto = np.zeros((3, n_rows), np.int64)
    return ByRank(weight, np.zeros(n_rows // 64 + 1, np.uint64), at, upto)


@device
def fetch_ahead(members, leaves, i):
    """Fetch the leaves of a later row, and the lists of the row before it."""
    last = leaves.shape[0] - 1
    later, next_ = min(i + AHEAD, last), min(i + 1, last)
    for t in range(leaves.shape[1]):
        prefetch(members.leaf, max(leaves[later, t], 0))
        leaf = members.leaf[U(max(leaves[next_, t], 0))]
        if leaf < 0:
            prefetch(members.lists, 2 * ~leaf)


@device
def add_member(members, k, ranks, row, weight):
    """Add the weight of one member."""
    r = U(row)
    if k > 0:
        r = U(members.rank[U(k), r])
    ranks.weight[r] += weight
    ranks.bits[r >> WORD] |= ONE << (r & IN_WORD)


@device
def add_members(members, leaves, i, k, ranks):
    """Add the weights of the members of row i's leaves, and return the draws."""
    draws = np.int64(0)
    for t in range(leaves.shape[1]):
        node = leaves[i, t]
        if node < 0:
            continue
        leaf = members.leaf[U(node)]
        if leaf >= 0:
            count = leaf >> COUNT
            draws += count
            each = members.weight // count if count > 1 else members.weight
            add_member(members, k, ranks, leaf & ROW, max(each, 1) * count)
            continue
        begin = ~leaf
        n, leaf_draws = members.lists[U(begin), U(0)], members.lists[U(begin), U(1)]
        draws += leaf_draws
        each = max(members.weight // leaf_draws, 1)
        for e in range(begin + 1, begin + 1 + n):
            weight = each * members.lists[U(e), U(1)]
            add_member(members, k, ranks, members.lists[U(e), U(0)], weight)
    return draws


@device
def in_order(ranks):
    """Write the ranks and the weights up to each, clear the weights, and return how many."""
    n, total = 0, np.int64(0)
    for w in range(len(ranks.bits)):
        word = ranks.bits[U(w)]
        if word == NONE:
            continue
        ranks.bits[U(w)] = NONE
        while word != NONE:
            rest = word & (word - ONE)
            bit = np.float64(word ^ rest).view(np.int64) >> EXPONENT  # of its lowest bit
            word, r = rest, (w << 6) + bit - BIAS
            total += ranks.weight[U(r)]
            ranks.weight[U(r)] = 0
            ranks.at[U(n)], ranks.upto[U(n)] = r, total
            n += 1
    return n


@device
def first_above(upto, n, limit, or_equal):
    """The first position whose weight is above the limit, or equal to it; n - 1 at most."""
    low, high = 0, n - 1
    while low < high:
        middle = (low + high) >> 1
        weight = np.float64(upto[middle])
        if weight > limit or (or_equal and weight == limit):
            high = middle
        else:
            low = middle + 1
    return low


@device
def mean_over(y, ranks, n, start, end):
    """The mean of V from `start` to `end`, added from the first value on."""
    upto, at = ranks.upto, first_above(ranks.upto, n, start, False)
    base, total, before = y[ranks.at[at]], 0.0, start
    while at < n:
        until = min(np.float64(upto[at]), end)
        total += (y[ranks.at[at]] - base) * (until - before)
        before = until
        if np.float64(upto[at]) >= end:
            break
        at += 1
    return base + total / (end - start)


@device
def quantile(y, ranks, n, draws, q, how, is_rounded):
    """One quantile of ascending values y[ranks.at], from the cumulative weights up to each.
    is_rounded is 1.0 where the weight of a draw was rounded down, 0.0 where it is exact."""
    total = np.float64(ranks.upto[n - 1])
    unit = total / draws
    start = q * (draws - 1) * unit
    end = start + unit
    linear = mean_over(y, ranks, n, start, end) if how in (LINEAR, NEAREST) else 0.0
    if how == LINEAR:
        return linear
    slack = (draws + 1.0) * is_rounded
    low = y[ranks.at[first_above(ranks.upto, n, start + slack, False)]]
    limit = q * total if how == INVERTED else end
    high = y[ranks.at[first_above(ranks.upto, n, limit - slack, True)]]
    if how == MIDPOINT:
        return (low + high) / 2
    nearest = low if linear - low <= high - linear else high
    return low if how == LOWER else nearest if how == NEAREST else high


@kernel
def quantiles(
    members: Members, leaves: I64s2, y: F64s2, q: F64s, how: I64, ranks: ByRank, out: F64s3
):  # fmt: skip
    """Write the quantiles to `out` f64[n, K, Q], or the mean to `out` f64[n, K, 1]."""
    is_rounded = np.float64(members.weight != 0)
    for i in range(len(leaves)):
        fetch_ahead(members, leaves, i)
        for k in range(len(y)):
            # 1. the members of the leaves, their weights, and the draws
            draws = add_members(members, leaves, i, k, ranks)
            # 2. the weights of rows in the order of their targets
            n = in_order(ranks)
            # 3. the mean, or the quantiles
            for j in range(out.shape[2]):
                if n == 0:
                    out[i, k, j] = np.nan
                elif how == MEAN:
                    out[i, k, j] = mean_over(y[k], ranks, n, 0.0, np.float64(ranks.upto[n - 1]))
                else:
                    out[i, k, j] = quantile(y[k], ranks, n, draws, q[j], how, is_rounded)


@device
def weight_below(ranks, n, rank):
    """The weight of the members before a rank."""
    at = first_above(ranks.at, n, np.float64(rank), True)
    if ranks.at[at] >= rank:
        at -= 1
    return ranks.upto[at] if at >= 0 else 0


@kernel
def weights_below(
    members: Members, leaves: I64s2, low: I64s2, high: I64s2, ranks: ByRank, out: I64s3
):  # fmt: skip
    """Write weights below two ranks and of all, draws, and numbers of ranks to `out` i64[n, K, 5].
    `out` holds zeros. The last row's ranks are left in ranks.at, weights up to each in
    ranks.upto."""
    for i in range(len(leaves)):
        fetch_ahead(members, leaves, i)
        for k in range(low.shape[1]):
            draws = add_members(members, leaves, i, k, ranks)
            n = in_order(ranks)
            if n:
                out[i, k, 0] = weight_below(ranks, n, low[i, k])
                out[i, k, 1] = weight_below(ranks, n, high[i, k])
                out[i, k, 2], out[i, k, 3], out[i, k, 4] = ranks.upto[n - 1], draws, n
