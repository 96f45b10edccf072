"""Nodes, text and rules: each says what it is, and their conditions lead every row to its leaf."""

import doctest
import re
from importlib import import_module

import numpy as np
import pytest
from shown import FIT, IRIS, NAMES, SPECIES, grid, parsed, python_predictions, single
from sklearn.tree import DecisionTreeClassifier as Sklearns

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestRegressor,
    export_graphviz,
    export_python,
    export_rules,
    export_text,
    tree_nodes,
)
from gpuforest.export.conditions import Branch, OneOf, TreeSplits
from gpuforest.export.text import tree_lines


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


def test_text_is_that_of_the_forest():
    forest = FIT["forest"]
    names = ["a", "b", "c", "d"]
    for tree, max_depth, given in ((2, None, names), (1, 2, None)):
        lines = tree_lines(forest.forest_, tree, given, max_depth)
        text = export_text(forest, tree, feature_names=given, max_depth=max_depth)
        assert text.splitlines() == list(lines)


def test_rules_of_the_textbook():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    assert export_rules(tree, feature_names=NAMES) == (
        "if petal_length <= 2.45 then setosa\n"
        "if (petal_length > 2.45 or missing) and (petal_width <= 1.75 or missing) then versicolor\n"
        "if (petal_length > 2.45 or missing) and petal_width > 1.75 then virginica\n"
    )
    tree = DecisionTreeClassifier(max_depth=3).fit(IRIS.data[:, 2:3], SPECIES)
    lines = export_rules(tree, feature_names=["x"], decimals=1, per="class").splitlines()
    assert [line.rpartition(" then ")[2] for line in lines] == list(IRIS.target_names)
    assert lines[1] == "if (2.5 < x <= 4.5) or (4.5 < x <= 4.8) then versicolor"


def test_rules_of_a_class_are_those_of_its_leaves():
    tree = FIT["classes"]
    leaves = [line.removeprefix("if ") for line in export_rules(tree).splitlines()]
    for line in export_rules(tree, per="class").splitlines():
        ways, label = line.removeprefix("if ").rsplit(" then ", 1)
        own = [w.rpartition(" then ")[0] for w in leaves if w.endswith(f" then {label}")]
        assert ways == " or ".join(f"({way})" for way in own)
    assert len(export_rules(tree, per="class").splitlines()) == 3


def test_rules_of_numbers_and_of_several_outputs():
    x = [[0.0], [1.0]]
    assert export_rules(DecisionTreeRegressor().fit(x, [24.6, 1 / 3]), decimals=2) == (
        "if feature_0 <= 0.50 then 24.60\nif feature_0 > 0.50 or missing then 0.33\n"
    )
    assert export_rules(DecisionTreeClassifier().fit(x, [["a", "c"], ["b", "c"]])) == (
        "if feature_0 <= 0.5 then a, c\nif feature_0 > 0.5 or missing then b, c\n"
    )
    assert export_rules(DecisionTreeRegressor().fit(x, [[1, 2], [3, 4]])).splitlines()[1] == (
        "if feature_0 > 0.5 or missing then 3.0, 4.0"
    )
    assert export_rules(FIT["one leaf"]) == export_rules(FIT["one leaf"], per="class")
    assert export_rules(FIT["one leaf"]) == "always a\n"


def test_names_are_those_of_the_fit():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(IRIS.data, columns=NAMES)
    forest = RandomForestRegressor(2, random_state=0, max_depth=2).fit(frame, IRIS.target)
    for export in (export_text, export_rules, export_python, export_graphviz):
        assert "petal_" in export(forest, 1)
        assert "feature_" not in export(forest, 1)


@pytest.fixture
def three_ways(monkeypatch):
    """A tree of two splits in a row on one feature, read as one split of three branches."""
    tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["stay", "go", "stay"])
    assert tree_nodes(tree)[2].children == (3, 4)
    known = ("sunny", "overcast", "rainy")

    def branches(self, node):
        if node != 0:
            return ()
        kind = {"feature": 0, "name": "outlook", "known": known}
        return (
            Branch(OneOf(values=("sunny",), missing=True, **kind), 1),
            Branch(OneOf(values=("overcast",), **kind), 3),
            Branch(OneOf(values=("rainy",), others=True, **kind), 4),
        )

    monkeypatch.setattr(TreeSplits, "branches", branches)
    return tree


def test_nodes_may_have_more_than_two_branches(three_ways):
    assert export_rules(three_ways) == (
        "if outlook is sunny or missing then stay\n"
        "if outlook is overcast then go\n"
        "if outlook is rainy or other then stay\n"
    )
    assert export_rules(three_ways, per="class") == (
        "if outlook is overcast then go\n"
        "if (outlook is sunny or missing) or (outlook is rainy or other) then stay\n"
    )
    assert export_text(three_ways).splitlines()[::2] == [
        "outlook is sunny or missing",
        "outlook is overcast",
        "outlook is rainy or other",
    ]
    assert list(tree_nodes(three_ways)) == [0, 1, 3, 4]
    weather = np.array([["sunny"], [None], [np.nan], ["overcast"], ["rainy"], ["fog"]], object)
    found = python_predictions(export_python(three_ways), ["outlook"], weather)
    assert found == ["stay", "stay", "stay", "go", "stay", "stay"]
    dot = export_graphviz(three_ways)
    labels, edges = parsed(dot)
    assert labels[0].startswith(r"outlook\ngini")
    assert edges == [(0, 1), (0, 3), (0, 4)]
    assert '0 -> 3 [label="outlook is overcast"] ;' in dot


EXPORTS = [export_text, export_rules, export_python, export_graphviz, tree_nodes]


@pytest.mark.parametrize("export", EXPORTS)
def test_trees_that_cannot_be_shown(export):
    with pytest.raises(ValueError, match="tree 3 does not exist: choose one of 0 to 2"):
        export(FIT["forest"], 3)
    with pytest.raises(ValueError, match="feature_names has 1 names, the forest 4 features"):
        export(FIT["forest"], feature_names=["a"])
    with pytest.raises(ValueError, match="not fitted"):
        export(DecisionTreeClassifier())
    with pytest.raises(TypeError, match=r"a DecisionTreeClassifier has no trees of gpuforest's"):
        export(Sklearns().fit(IRIS.data, IRIS.target))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export_rules(FIT["classes"], per="row"), "per='row' is unknown"),
        (lambda: export_rules(FIT["classes"], decimals=-1), "decimals=-1 is negative"),
        (lambda: export_rules(FIT["numbers"], per="class"), 'pass per="leaf"'),
        (lambda: export_rules(FIT["classes"], class_names=["a"]), "1 names, the tree 3 classes"),
        (
            lambda: tree_nodes(FIT["several classes"], class_names=[["a"], ["b", "c"]]),
            "1, 2 names, the tree 3, 2 classes",
        ),
        (lambda: tree_nodes(FIT["numbers"], class_names=["a"]), "class_names are for classes"),
        (lambda: export_graphviz(FIT["classes"], max_depth=-1), "max_depth=-1 is negative"),
        (lambda: export_graphviz(FIT["classes"], precision=-1), "precision=-1 is negative"),
        (
            lambda: export_python(FIT["classes"], feature_names=list("abca")),
            "two features are called 'a'",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("export", EXPORTS)
def test_examples_run(export):
    found = doctest.testmod(import_module(export.__module__))
    assert (found.failed, found.attempted) == (0, len(re.findall(">>> ", export.__doc__)))
