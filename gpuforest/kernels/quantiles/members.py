"""The training rows in the leaves of a forest, as kernels take them."""

from typing import NamedTuple

from gpuforest.kernels.types import I64, I32s2, I64s

# what is asked of the distribution of targets, see numpy.py
LINEAR, LOWER, HIGHER, INVERTED, MEAN = range(5)


class Members(NamedTuple):
    """The members of each leaf: the training rows in it that the tree drew.

    Rows are numbered in the order of their first targets, so that a number is a rank.

    begin : i64[M + 1], the members of node a are begin[a] .. begin[a + 1] - 1; inner nodes
        have none
    row_count : i32[E, 2], the row of each member, and how often it was drawn; the rows of a leaf
        ascend
    rank : i32[K, N], the position of each row in the order of the targets of each output
    weight : int, what the members of a leaf weigh together: one of D draws weighs weight // D
    """

    begin: I64s
    row_count: I32s2
    rank: I32s2
    weight: I64
