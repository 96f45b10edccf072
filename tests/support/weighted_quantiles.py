"""Quantiles of leaves by their definition: lists of weights, sorted."""

import numpy as np

from gpuforest.explain.quantile_kernels import COUNT, HIGHER, INVERTED, LINEAR, LOWER, MEAN


def members_of(members, node):
    """The row and the count of each member of a leaf, i32[n, 2]."""
    leaf = int(members.leaf[node])
    if leaf >= 0:
        return np.array([[leaf & 2**COUNT - 1, leaf >> COUNT]], np.int32)
    begin = ~leaf
    return members.lists[begin + 1 : begin + 1 + members.lists[begin, 0]]


def weights_of(members, leaves):
    """The weight of each training row in the leaves i64[T] of one row, i64[N], and their draws."""
    weights, draws = np.zeros(members.rank.shape[1], np.int64), 0
    for node in leaves[leaves >= 0]:
        row, count = members_of(members, node).T
        np.add.at(weights, row, count * np.int64(members.weight // count.sum()))
        draws += count.sum()
    return weights, draws


def quantile(members, leaves, k, y, q, how):
    """One quantile of output k, whose ascending targets are y f64[N], or with MEAN their mean."""
    weights, draws = weights_of(members, leaves)
    if not draws:
        return np.nan
    weights = weights[np.argsort(members.rank[k])].astype(np.float64)
    upto, unit = np.cumsum(weights), weights.sum() / draws
    start = 0.0 if how == MEAN else q * (draws - 1) * unit
    end = upto[-1] if how == MEAN else start + unit
    if how in (LINEAR, MEAN):
        shares = np.clip(np.minimum(upto, end) - np.maximum(upto - weights, start), 0, None)
        return (shares * y).sum() / (end - start)
    slack = draws + 1.0  # of rounded weights
    if how == LOWER:
        return y[np.flatnonzero((upto > start + slack) & (weights > 0))[:1]].sum()
    assert how in (HIGHER, INVERTED)
    limit = (q * upto[-1] if how == INVERTED else end) - slack
    return y[np.flatnonzero((upto >= limit) & (weights > 0))[0]]
