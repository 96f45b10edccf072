"""The training rows in the leaves of a forest, as kernels take them."""

from typing import NamedTuple

from gpuforest.kernels.types import I32s, I32s2, I64s

# what is asked of the distribution of targets, see numpy.py
LINEAR, LOWER, HIGHER, INVERTED, MEAN = range(5)


class Members(NamedTuple):
    """The members of each leaf: the training rows in it that the tree drew.

    begin : i64[M + 1], the members of node a are begin[a] .. begin[a + 1] - 1; inner nodes
        have none
    draws : i64[M], how often the members of each leaf were drawn
    row : i32[E], the training row of each member
    weight : i64[E], the share of each member in its leaf's draws, as an integer; the members of
        every leaf have the same power of two together
    rank : i32[K, N], the position of each training row in the order of its targets
    """

    begin: I64s
    draws: I64s
    row: I32s
    weight: I64s
    rank: I32s2
