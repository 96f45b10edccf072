"""Pictures of trees: every node has its box, no box overlaps another."""

import itertools

import numpy as np
import pandas as pd
import pytest
from drawn import DIABETES, DIGITS, IRIS, LONG, SPECIES, check_readable, overlaps, texts
from matplotlib import pyplot
from matplotlib.patches import FancyBboxPatch

import gpuforest as gf
from gpuforest.export.graphviz import Drawing
from gpuforest.plot import plot_tree
from gpuforest.tools.plot import style


@pytest.fixture(scope="module")
def tree():
    return gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, SPECIES)


def boxes_of(ax):
    return [p for p in ax.patches if isinstance(p, FancyBboxPatch)]


def check_tree(ax, least=style.SMALL):
    """No boxes overlap, each text is in a box or is a label outside all."""
    check_readable(ax, least)
    boxes = [p.get_window_extent() for p in boxes_of(ax)]
    assert not any(overlaps(a, b) for a, b in itertools.combinations(boxes, 2))
    extents = [t.get_window_extent() for t in texts(ax)]
    assert not any(
        overlaps(a.shrunk(0.9, 0.9), b.shrunk(0.9, 0.9))
        for a, b in itertools.combinations(extents, 2)
    )
    for e in extents:
        holders = [b for b in boxes if overlaps(e, b)]
        assert len(holders) <= 1
        for b in holders:
            assert b.x0 <= e.x0 <= e.x1 <= b.x1
            assert b.y0 <= e.y0 <= e.y1 <= b.y1


def test_a_tree_has_a_box_a_node_says_what_dot_says_and_edges_lead_to_children(tree):
    names = ["sl", "sw", "pl", "pw"]
    ax = plot_tree(tree, feature_names=names)
    nodes = gf.tree_nodes(tree, feature_names=names)
    assert len(boxes_of(ax)) == len(nodes) == 9
    assert len(ax.lines) == len(nodes) - 1
    said = [t.get_text() for t in ax.texts]
    for node in nodes.values():
        assert f"samples = {node.n_samples}" in said
        assert f"class = {node.prediction}" in said
        if node.branches:
            assert node.branches[0].plain().words() in said
    assert said.count("yes") == said.count("no") == 4
    assert said.count("gini = 0") == 2
    ax = plot_tree(tree)
    boxes = dict(zip(gf.tree_nodes(tree).values(), boxes_of(ax), strict=True))
    by_number = {node.number: box for node, box in boxes.items()}
    children = [n for n in boxes if n.parent is not None]
    for node, line in zip(children, ax.lines, strict=True):
        (x0, x1), (y0, y1) = line.get_data()
        above, below = by_number[node.parent], by_number[node.number]
        assert x0 == pytest.approx(above.get_x() + above.get_width() / 2)
        assert y0 == pytest.approx(above.get_y() + above.get_height())
        assert x1 == pytest.approx(below.get_x() + below.get_width() / 2)
        assert y0 < y1 < below.get_y()


def test_what_is_shown_of_a_tree(tree):
    def said(**options):
        return [t.get_text() for t in plot_tree(tree, **options).texts]

    top = said(max_depth=1, node_ids=True, impurity=False, proportion=True, precision=1)
    assert top.count("(...)") == 2
    assert "node #2" in top
    assert "samples = 33.3%" in top
    assert "value = [0, 0.5, 0.5]" in top
    assert not any("gini" in line for line in top)
    assert "class = b" in said(class_names=["a", "b", "c"])
    fills = {p.get_facecolor() for p in boxes_of(plot_tree(tree, filled=False))}
    assert fills == {(1.0, 1.0, 1.0, 1.0)}


@pytest.mark.parametrize("depth", [1, 6])
def test_no_box_of_a_tree_overlaps_another(depth):
    tree = gf.DecisionTreeClassifier(max_depth=depth).fit(DIGITS.data, DIGITS.target)
    check_tree(plot_tree(tree, feature_names=LONG))


@pytest.mark.parametrize("data", [IRIS, DIABETES], ids=["classes", "numbers"])
def test_trees_of_boosting(data):
    kind = gf.HistGradientBoostingClassifier if data is IRIS else gf.HistGradientBoostingRegressor
    y = SPECIES if data is IRIS else data.target
    model = kind(max_iter=3, max_leaf_nodes=6).fit(data.data, y)
    ax = plot_tree(model, 2, max_depth=2)
    check_tree(ax)
    nodes = gf.tree_nodes(model, 2)
    number, said = "1" if data is IRIS else "3", [t.get_text() for t in ax.texts]
    assert " ".join(said).startswith(f"round {number} of 3: leaves add to the ")
    number_of = Drawing(model, 2).number
    for node in nodes.values():
        if node.depth <= 2:
            assert f"value = {number_of(node.prediction)}" in said
            assert node.is_leaf or f"gain = {number_of(node.gain)}" in said
    without = plot_tree(model, 2, impurity=False).texts
    assert not any("gain" in t.get_text() for t in without)
    check_tree(plot_tree(model, 0))


def test_trees_of_numbers_of_several_outputs_and_of_many_branches():
    both = np.column_stack([DIABETES.target, DIABETES.target**2])
    for y in (DIABETES.target, both):
        tree = gf.DecisionTreeRegressor(max_depth=3).fit(DIABETES.data, y)
        check_tree(plot_tree(tree, feature_names=LONG[:10]))
    classes = np.column_stack([IRIS.target, IRIS.target == 1])
    check_tree(plot_tree(gf.DecisionTreeClassifier(max_depth=3).fit(IRIS.data, classes)))
    frame = pd.DataFrame({"shop": list("abcdefgh") * 20, "$ a day, $": np.arange(160) % 9})
    tree = gf.DecisionTreeClassifier(categorical_split="multiway").fit(frame, frame.shop)
    ax = plot_tree(tree)
    check_tree(ax)
    assert len(boxes_of(ax)) == 9
    said = [t.get_text() for t in ax.texts]
    assert said[0] == "shop"
    assert {*"abcdefgh"} <= {*said}


def test_two_trees_side_by_side_are_made_small_enough(tree):
    _, axes = pyplot.subplots(1, 2, figsize=(8, 4), layout="constrained")
    for ax in axes:
        plot_tree(tree, feature_names=IRIS.feature_names, ax=ax)
    for ax in axes:
        check_tree(ax, least=2)


def test_a_tree_too_large_to_draw_or_not_there(tree):
    rows = DIGITS.data[:600], np.arange(600)
    large = "200 inches: show fewer levels of it with max_depth"
    for model, options, message in (
        (gf.RandomForestRegressor(1, random_state=0).fit(*rows), {}, large),
        (gf.DecisionTreeRegressor(max_depth=9).fit(*rows), {}, large),
        (tree, {"max_depth": -1}, "max_depth=-1 is negative"),
        (tree, {"tree": 1}, "tree 1 does not exist"),
        (object(), {}, "no trees of gpuforest's"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            plot_tree(model, **options)
