"""Trees in the dot language: the labels of a textbook, colours, and names that cannot break out."""

import io
import re

import numpy as np
import pytest
from boosted_models import class_model
from shown import FIT, IRIS, NAMES, SPECIES, parsed, single

import gpuforest as gf


@pytest.mark.parametrize("kind", FIT)
@pytest.mark.parametrize("filled", [False, True])
def test_dot_has_all_nodes_and_edges(kind, filled):
    model, number = FIT[kind], single(FIT[kind])[1]
    nodes = gf.tree_nodes(model, number)
    labels, edges = parsed(gf.export_graphviz(model, number, filled=filled, rounded=True))
    assert labels.keys() == nodes.keys()
    assert sorted(edges) == sorted((n, c) for n, node in nodes.items() for c in node.children)


def test_dot_of_the_textbook():
    tree = gf.DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    names = {"feature_names": NAMES}
    labels, _ = parsed(gf.export_graphviz(tree, **names))
    assert labels[0] == (
        r"petal_length <= 2.45\ngini = 0.667\nsamples = 150\nvalue = [50, 50, 50]\nclass = setosa"
    )
    labels, _ = parsed(
        gf.export_graphviz(tree, proportion=True, node_ids=True, precision=1, **names)
    )
    assert labels[3] == (
        r"node #3\ngini = 0.2\nsamples = 36%\nvalue = [0, 0.9, 0.1]\nclass = versicolor"
    )
    labels, edges = parsed(gf.export_graphviz(tree, impurity=False, max_depth=1, **names))
    assert labels[3] == labels[4] == "(...)"
    assert labels[1] == r"samples = 50\nvalue = [50, 0, 0]\nclass = setosa"
    assert edges == [(0, 1), (0, 2), (2, 3), (2, 4)]
    named = gf.export_graphviz(tree, class_names=["a", "b", "c"])
    assert r"\nclass = b" in named


def test_dot_goes_to_files(tmp_path):
    tree, file = gf.DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES), io.StringIO()
    for out in (tmp_path / "dot", file):
        assert gf.export_graphviz(tree, class_names=["ä", "b", "c"], out_file=out) is None
    text = gf.export_graphviz(tree, class_names=["ä", "b", "c"])
    assert (tmp_path / "dot").read_text(encoding="utf-8") == file.getvalue() == text


def test_names_cannot_break_out():
    names = ['a "b"', "\\", "c\nd", "<b>&lt;</b>"]
    labels = np.array(['x"];\n0 -> 9', "y\\", "z&amp;"])[IRIS.target]
    tree = gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, labels)
    dot = gf.export_graphviz(tree, feature_names=names)
    assert parsed(dot)[0].keys() == gf.tree_nodes(tree).keys()
    assert r"class = x\"];\\n0 -> 9" in dot
    assert "class = z&amp;amp;" in dot
    assert r"c\\nd <= 2.45" in dot
    assert "<b>&amp;lt;</b> <= 1.75" in dot
    rules = gf.export_rules(tree, feature_names=names)
    assert rules.count("\n") == tree.get_n_leaves()
    assert rules.splitlines()[0] == r'if c\nd <= 2.45 then x"];\n0 -> 9'
    assert gf.export_text(tree, feature_names=names).splitlines()[0] == r"c\nd <= 2.45"
    boosted = class_model(labels, IRIS.data)
    dot = gf.export_graphviz(boosted)
    assert parsed(dot)[0].keys() == gf.tree_nodes(boosted).keys()
    assert r"raw prediction of x\"];\\n0 -> 9\n" in dot


def test_colours_are_by_class_and_by_value():
    tree = gf.DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(tree, filled=True))
    assert colours[0] == colours[2] == "#ffffff"  # no class leads
    assert len(set(colours)) == 4
    tree = gf.DecisionTreeRegressor(max_depth=2).fit(IRIS.data, IRIS.target)
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(tree, filled=True))
    assert colours[1] == "#ffffff"  # the smallest
    assert min(colours) == colours[-1]  # the largest


def test_colours_of_huge_numbers():
    huge = gf.DecisionTreeRegressor().fit([[0.0], [1.0]], [[-1e300, 1e299], [1e300, 2e299]])
    colours = re.findall(r'fillcolor="(.*)"', gf.export_graphviz(huge, filled=True))
    assert colours[0] == "#ffffff"
    assert colours[1] == colours[2] != "#ffffff"  # pure
