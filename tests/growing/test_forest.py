"""Packed nodes, and a forest made by hand: its levels, depths, sums, values and sets."""

import pickle
from dataclasses import replace

import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuforest import RandomForestClassifier
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.core import forest as module
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest, check_forest, joined, tree_groups
from gpuforest.core.nodes import (
    CHILD_SHIFT,
    LEAF_WORD,
    SET_BIN,
    has_set,
    is_leaf,
    leaf_rows,
    pack_splits,
    unpack,
    words_of,
)
from gpuforest.core.target import TargetCoding
from gpuforest.explain.paths import one_tree
from gpuforest.growing.predict import predict


def split(feature, bin, child):
    word = pack_splits(xp, *(np.array([v]) for v in (feature, bin, False)))[0]
    return int(word) + (child << CHILD_SHIFT)


def leaf(row):
    return LEAF_WORD + row


def by_hand() -> Forest:
    """Two trees of three classes: one of two splits in a row, and one of a leaf alone.

    0 -- 1 (leaf 0)
      \\- 2 -- 3 (leaf 1)         5 (leaf 2)
           \\- 4 (leaf 0)
    """
    nodes = [split(0, 0, 1), leaf(0), split(0, 1, 3), leaf(1), leaf(0), leaf(2)]
    return Forest(
        nodes=np.array(nodes, np.uint64),
        tree_offsets=np.array([0, 5, 6]),
        leaf_sums=np.array([[4, 0, 0], [0, 1, 3], [2, 2, 0]]),
        edges=BinEdges(np.array([1.5, 2.5]), np.array([0, 2]), np.zeros(1, np.uint8)),
        coding=TargetCoding(np.arange(3), np.zeros(1), 1.0),
        seed=0,
    )


def test_levels_are_nodes_by_depth():
    forest = by_hand()
    assert [level.tolist() for level in forest.levels()] == [[0, 5], [1, 2], [3, 4]]
    assert [level.tolist() for level in forest.levels(1)] == [[5]]
    assert (forest.depth, forest.n_trees, forest.n_nodes) == (2, 2, 6)


def test_sums_of_nodes_are_those_of_the_leaves_below():
    sums = by_hand().node_sums(0, 2)
    assert sums.tolist() == [[8, 1, 3], [4, 0, 0], [4, 1, 3], [0, 1, 3], [4, 0, 0], [2, 2, 0]]
    assert np.array_equal(by_hand().node_sums(1, 2), sums[5:])


def test_values_are_shares_and_the_sparse_ones_the_same():
    forest = by_hand()
    assert forest.values.tolist() == [[1, 0, 0], [0, 0.25, 0.75], [0.5, 0.5, 0]]
    begin, column, value = forest.sparse_values
    assert begin.tolist() == [0, 1, 3, 5]
    assert column.tolist() == [0, 1, 2, 0, 1]
    assert value.tolist() == [1, 0.25, 0.75, 0.5, 0.5]


def test_the_links_of_a_chain_are_one_level():
    edges = replace(by_hand().edges, values=np.arange(2.0), kinds=np.array([CATEGORICAL], np.uint8))
    edges = replace(edges, categories={0: ("a", "b")})
    nodes = by_hand().nodes.copy()
    nodes[0], nodes[2] = split(0, SET_BIN, 1), split(0, SET_BIN, 3)
    chain = replace(by_hand(), nodes=nodes, edges=edges, sets=np.array([1, 2], np.uint64))
    assert chain.set_at[[0, 2]].tolist() == [0, 1]
    assert chain.depth == 2
    assert replace(chain, multiway=True).depth == 1


def test_a_pickle_holds_what_is_not_derived():
    forest = by_hand()
    assert forest.values.any()
    again = pickle.loads(pickle.dumps(forest))
    assert "values" not in vars(again)
    assert np.array_equal(again.nodes, forest.nodes)
    assert np.array_equal(again.values, forest.values)


def test_groups_of_trees_are_small_and_hold_each_tree_once(monkeypatch):
    assert tree_groups(by_hand()) == [(0, 2)]
    monkeypatch.setattr(module, "GROUP_VALUES", 1)
    assert tree_groups(by_hand()) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("multiway", [False, True])
def test_trees_that_are_joined(multiway):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 6, (200, 3)), rng.integers(0, 3, 200)
    model = RandomForestClassifier(
        4,
        categorical_features=[0, 1],
        categorical_split="multiway" if multiway else "subset",
        random_state=0,
        backend="numpy",
    ).fit(X, y)
    whole = model.forest_
    again = joined([one_tree(whole, t) for t in range(4)])
    check_forest(again)
    assert len(again.leaf_sums) == 4 * len(whole.leaf_sums)
    assert np.array_equal(again.sets, whole.sets)
    assert np.array_equal(again.node_sums(0, 4), whole.node_sums(0, 4))
    assert again.multiway == whole.multiway
    assert np.array_equal(predict(again, X, NumpyBackend()), predict(whole, X, NumpyBackend()))
    # votes of trees of different weights
    weights = np.array([0.5, 0.0, 2.0, 1.5])
    boosted = replace(again, combine="votes", tree_weights=weights)
    check_forest(boosted)
    votes = [predict(one_tree(whole, t), X, NumpyBackend()).argmax(axis=1) for t in range(4)]
    shares = [np.average(np.array(votes) == c, axis=0, weights=weights) for c in range(3)]
    assert np.allclose(predict(boosted, X, NumpyBackend()), np.transpose(shares))
    assert boosted.unweighted.tree_weights is None


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


def test_sets_take_the_words_of_their_features():
    # two words for feature 0, one for feature 2, and none for the number 1
    feature, bin = np.array([0, 1, 2, 0]), np.array([SET_BIN, 4, SET_BIN, SET_BIN])
    nodes = pack_splits(xp, feature, bin, np.zeros(4, bool))
    nodes = np.insert(nodes, 2, np.uint64(LEAF_WORD))
    assert words_of(xp, nodes, np.array([2, 0, 1]), False).tolist() == [2, 0, 0, 1, 2]
