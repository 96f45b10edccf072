"""Packed nodes: what is packed comes out again, and leaves are distinguished from splits."""

import array_api_compat.numpy as xp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.engine.nodes import (
    CHILD_SHIFT,
    LEAF_WORD,
    SET_BIN,
    has_set,
    is_leaf,
    leaf_rows,
    pack_splits,
    set_starts,
    unpack,
)


def test_bits_lie_where_the_picture_shows_them():
    word = int(pack_splits(xp, np.array([5]), np.array([9]), np.array([True]))[0])
    assert word == (5 << 47) + (1 << 46) + 9
    assert LEAF_WORD == (2**17 - 1) << 47


@given(
    st.integers(0, 2**17 - 2), st.integers(0, 2**16 - 1), st.booleans(), st.integers(0, 2**30 - 1)
)
def test_any_split_comes_back(feature, bin, side, child):
    word = pack_splits(xp, *(np.array([v]) for v in (feature, bin, side)))
    word = word + np.array([child], np.uint64) * np.uint64(2**CHILD_SHIFT)
    assert not is_leaf(word)[0]
    assert [a.tolist() for a in unpack(xp, word)] == [[feature], [bin], [side], [child]]
    assert has_set(word)[0] == (bin == SET_BIN)


def test_leaves_point_at_rows_of_the_table():
    leaves = np.array([0, 3, 2**47 - 1], np.uint64) + np.uint64(LEAF_WORD)
    assert is_leaf(leaves).all()
    assert leaf_rows(leaves).tolist() == unpack(xp, leaves)[3].tolist() == [0, 3, 2**47 - 1]
    assert unpack(xp, leaves)[0].tolist() == [-1, -1, -1]
    assert not has_set(leaves).any()  # though all bits of their bin may be one


def test_sets_follow_one_another():
    # two words for feature 0, one for feature 2, and none for the number 1
    feature, bin = np.array([0, 1, 2, 0]), np.array([SET_BIN, 4, SET_BIN, SET_BIN])
    nodes = pack_splits(xp, feature, bin, np.zeros(4, bool))
    nodes = np.insert(nodes, 2, np.uint64(LEAF_WORD))
    starts = set_starts(xp, nodes, np.array([2, 0, 1]))
    assert starts[has_set(nodes)].tolist() == [0, 2, 3]
