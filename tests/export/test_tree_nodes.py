"""Nodes: each says what it is, and their conditions lead every row to its leaf."""

import numpy as np
import pytest
from shown import FIT, IRIS, NAMES, SPECIES, grid, single

from gpuforest import (
    DecisionTreeClassifier,
    tree_nodes,
)


@pytest.fixture(params=FIT)
def model(request):
    return FIT[request.param]


def test_every_row_meets_one_leaf_and_it_is_its_own(model):
    own, number = single(model)
    nodes, rows = tree_nodes(model, number), grid()
    leaves = [node for node in nodes.values() if node.is_leaf]
    meets = np.array(
        [[all(c.holds(row[c.feature]) for c in leaf.conditions) for leaf in leaves] for row in rows]
    )
    assert np.array_equal(meets.sum(axis=1), np.ones(len(rows)))
    numbers = np.array([leaf.number for leaf in leaves])
    assert np.array_equal(numbers[meets.argmax(axis=1)], own.apply(rows))


def test_branches_are_exhaustive_and_exclude_each_other(model):
    for node in tree_nodes(model, single(model)[1]).values():
        for value in (*grid()[:50, 0], None):
            held = sum(b.condition.holds(value) for b in node.branches)
            assert held == (not node.is_leaf)


def test_nodes_are_those_of_the_tree(request, model):
    own, number = single(model)
    nodes, tree = tree_nodes(model, number), own.tree_
    assert sorted(nodes) == list(range(tree.node_count))
    for n, node in nodes.items():
        assert node.number == n
        assert node.children == tuple(
            c for c in (tree.children_left[n], tree.children_right[n]) if c >= 0
        )
        assert node.is_leaf == (tree.feature[n] < 0)
        assert node.n_samples == tree.n_node_samples[n]
        assert node.impurity == tree.impurity[n]
        if "votes" in request.node.name:  # votes are of the whole forest; a node has its shares
            assert np.array_equal(node.value.argmax(axis=1), tree.value[n].argmax(axis=1))
        else:
            assert np.array_equal(node.value, tree.value[n])
        for child in node.children:
            assert (nodes[child].parent, nodes[child].depth) == (n, node.depth + 1)
    assert nodes[0].parent is None
    assert (nodes[0].rule, nodes[0].path) == ("", "")


def test_a_node_says_what_it_is():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    node = tree_nodes(tree, feature_names=NAMES, class_names=["a", "b", "c"])[3]
    assert node.rule == "petal_width <= 1.75 or missing"
    assert node.path == "(petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing)"
    assert (node.prediction, node.depth, node.parent, node.n_samples) == ("b", 2, 2, 54)
    assert repr(node).startswith("Node(number=3, depth=2, parent=2, children=(), rule='petal_wi")
