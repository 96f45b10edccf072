"""The training rows in the leaves of a forest, as kernels take them."""

from typing import NamedTuple

import numpy as np

from gpuforest.compiler.types import I64, I32s2, I64s

# what is asked of the distribution of targets, see numba.py
LINEAR, LOWER, HIGHER, INVERTED, MEAN = range(5)
COUNT = 32  # where the count of an only member is, in bits


class Members(NamedTuple):
    """The members of each leaf: the training rows in it that the tree drew.

    Rows are numbered in the order of their first targets, so that a number is a rank. Most leaves
    of a tree of unlimited depth have one member, which takes one read of memory.

    leaf : i64[M], of a leaf with one member: its row, and how often it was drawn << COUNT; of one
        with several: ~begin; 0 of inner nodes
    lists : i32[L, 2], at `begin` a leaf's number of members and of draws, then for each member its
        row and how often it was drawn; the rows ascend
    rank : i32[K, N], the position of each row in the order of the targets of each output
    weight : int, what the members of a leaf weigh together: one of D draws weighs weight // D
    """

    leaf: I64s
    lists: I32s2
    rank: I32s2
    weight: I64


def new_members(sizes: np.ndarray, row_count: np.ndarray, rank: np.ndarray, weight: int) -> Members:
    """The record, from the number of members of each node i64[M], and the row and count of each
    member i32[E, 2], node after node."""
    leaf, many = np.zeros(len(sizes), np.int64), sizes > 1
    node = np.repeat(np.arange(len(sizes)), sizes)
    only = sizes[node] == 1
    row, count = row_count[only].T.astype(np.int64)
    leaf[node[only]] = row | count << COUNT
    lengths = np.where(many, sizes + 1, 0)
    begin = np.cumsum(lengths) - lengths
    leaf[many] = ~begin[many]
    lists = np.zeros((int(lengths.sum()), 2), np.int32)
    lists[begin[many], 0] = sizes[many]
    first = np.cumsum(sizes) - sizes
    listed = np.flatnonzero(~only)
    lists[begin[node[listed]] + 1 + listed - first[node[listed]]] = row_count[listed]
    if len(listed):
        starts = np.cumsum(sizes[many]) - sizes[many]
        lists[begin[many], 1] = np.add.reduceat(row_count[listed, 1], starts)
    return Members(leaf, lists, rank, weight)
