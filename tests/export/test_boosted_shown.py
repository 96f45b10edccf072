"""Boosted trees as nodes, text, rules and dot: each says what a leaf adds, and to what."""

import re

import numpy as np
import pytest
from boosted_models import FIT, class_model, data_of, leaves, number_model
from shown import SUM, X, parsed

from gpuforest import export_graphviz, export_rules, export_text, tree_nodes
from gpuforest.explain.paths import subtree_sizes
from gpuforest.explain.views import BoostedView

ADDS_TO = {
    "numbers": "the prediction",
    "counts": "the log of the prediction",
    "positive": "the log of the prediction",
    "two classes": "the log odds of low",
}


def last(model):
    return model.forest_.n_trees - 1


@pytest.mark.parametrize("kind", FIT)
def test_every_row_meets_the_conditions_of_the_leaf_that_it_reaches(kind):
    model, rows = FIT[kind], data_of(kind)
    number = last(model)
    nodes, own = tree_nodes(model, number), leaves(model, rows)[:, number]
    values = np.asarray(rows, object)
    ends = [node for node in nodes.values() if node.is_leaf]
    for row, reached in zip(values, own, strict=True):
        met = [n.number for n in ends if all(c.holds(row[c.feature]) for c in n.conditions)]
        assert met == [reached]


@pytest.mark.parametrize("kind", FIT)
def test_nodes_are_those_of_the_arrays(kind):
    model = FIT[kind]
    number = last(model)
    nodes, tree = tree_nodes(model, number), BoostedView.of(model.forest_, number)
    assert sorted(nodes) == list(range(len(tree.value)))
    for n, node in nodes.items():
        assert node.n_samples == tree.n_samples[n]
        assert (node.gradients, node.hessians) == (tree.gradients[n], tree.hessians[n])
        assert node.gain == (None if node.is_leaf else tree.gain[n])
        assert node.prediction == tree.value[n] == node.value
        assert node.impurity is None
        assert node.round == model.n_iter_


def test_nodes_say_what_leaves_add_to():
    for kind, said in ADDS_TO.items():
        assert {node.adds_to for node in tree_nodes(FIT[kind]).values()} == {said}
    model = FIT["three classes"]
    for tree, label in enumerate([*model.classes_] * 2):
        node = tree_nodes(model, tree)[0]
        assert (node.round, node.adds_to) == (1 + tree // 3, f"the raw prediction of {label}")
    assert tree_nodes(model, 1, class_names=["a", "b", "c"])[0].adds_to.endswith(" of b")
    with pytest.raises(ValueError, match="class_names has 1 names, the tree 3 classes"):
        tree_nodes(model, class_names=["a"])
    alone = class_model(np.repeat("a", 300))  # which no row contradicts
    assert tree_nodes(alone)[0].adds_to == "the log odds of another class"
    with pytest.raises(ValueError, match="class_names are for classes"):
        tree_nodes(FIT["numbers"], class_names=["a"])


@pytest.mark.parametrize("kind", FIT)
def test_text_has_a_line_for_each_leaf_below_one_for_the_tree(kind):
    model = FIT[kind]
    number = last(model)
    nodes = tree_nodes(model, number)
    first, *lines = export_text(model, number).splitlines()
    assert first == f"round {model.n_iter_} of {model.n_iter_}: leaves add to {nodes[0].adds_to}"
    found = [line.strip("| ") for line in lines if "value: " in line]
    expected = [
        f"value: {n.prediction!r} (rows: {n.n_samples}, gradients: {n.gradients:.6g}, "
        f"hessians: {n.hessians:.6g})"
        for n in nodes.values()
        if n.is_leaf
    ]
    assert found == expected
    ways = [line.strip("| ") for line in lines if "value: " not in line]
    assert ways == [n.rule for n in nodes.values() if n.rule]


def test_text_that_ends_above_the_leaves():
    model = FIT["numbers"]
    sizes = subtree_sizes(model.forest_, 0)
    assert export_text(model, max_depth=0).splitlines() == [
        "round 1 of 4: leaves add to the prediction",
        f"... {sizes[0] - 1} more nodes",
    ]


def test_one_round_reads_well():
    x = np.repeat([0.0, 1.0], 20)[:, None]
    model = number_model(y=np.repeat([1.0, 3.0], 20), data=x, learning_rate=0.5)
    assert export_text(model, feature_names=["x"]) == (
        "round 1 of 4: leaves add to the prediction\n"
        "x <= 0.5\n"
        "|   value: -0.5 (rows: 20, gradients: 20, hessians: 20)\n"
        "x > 0.5 or missing\n"
        "|   value: 0.5 (rows: 20, gradients: -20, hessians: 20)\n"
    )
    assert export_rules(model, 1, feature_names=["x"]) == (
        "if x <= 0.5 then add -0.25 to the prediction\n"
        "if x > 0.5 or missing then add 0.25 to the prediction\n"
    )
    labels, edges = parsed(export_graphviz(model, feature_names=["x"], filled=True))
    assert edges == [(0, 1), (0, 2)]
    assert labels[0] == (
        r"round 1 of 4: leaves add to the prediction\nx <= 0.5\ngain = 40\nsamples = 40\nvalue = 0"
    )
    assert labels[1] == r"samples = 20\nvalue = -0.5"
    labels, _ = parsed(export_graphviz(model, impurity=False, proportion=True, node_ids=True))
    assert labels[0].split(r"\n")[1:] == [
        "node #0",
        "feature_0 <= 0.5",
        "samples = 100%",
        "value = 0",
    ]
    assert labels[2] == r"node #2\nsamples = 50%\nvalue = 0.5"


def test_rules_say_which_class():
    model = FIT["three classes"]
    for tree, label in enumerate(model.classes_):
        for line in export_rules(model, tree, decimals=3).splitlines():
            assert re.fullmatch(
                rf".* then add -?\d\.\d{{3}} to the raw prediction of {label}", line
            )
    assert export_rules(FIT["one leaf"]).startswith("always add ")
    with pytest.raises(ValueError, match='per="class" is for classes, and this tree predicts numb'):
        export_rules(model, per="class")


def test_dot_has_all_nodes_and_names_of_classes_cannot_break_out():
    labels = np.array(['x"];\n0 -> 9', "y\\", "z&amp;"])[np.digitize(SUM, [0, 1])]
    model = class_model(labels, X)
    dot = export_graphviz(model, 0)
    assert parsed(dot)[0].keys() == tree_nodes(model, 0).keys()
    assert r"raw prediction of x\"];\\n0 -> 9\n" in dot


def test_what_is_refused():
    model = FIT["three classes"]
    for export in (export_text, export_rules, export_graphviz, tree_nodes):
        with pytest.raises(ValueError, match="tree 12 does not exist: choose one of 0 to 11"):
            export(model, 12)
