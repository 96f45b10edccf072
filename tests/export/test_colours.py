"""Colours of nodes: by class and by value."""

import re

from shown import IRIS, SPECIES

from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_graphviz,
)


def test_colours_are_by_class_and_by_value():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, SPECIES)
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(tree, filled=True))
    assert colours[0] == colours[2] == "#ffffff"  # no class leads
    assert len(set(colours)) == 4
    tree = DecisionTreeRegressor(max_depth=2).fit(IRIS.data, IRIS.target)
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(tree, filled=True))
    assert colours[1] == "#ffffff"  # the smallest
    assert min(colours) == colours[-1]  # the largest


def test_colours_of_huge_numbers():
    huge = DecisionTreeRegressor().fit([[0.0], [1.0]], [[-1e300, 1e299], [1e300, 2e299]])
    colours = re.findall(r'fillcolor="(.*)"', export_graphviz(huge, filled=True))
    assert colours[0] == "#ffffff"
    assert colours[1] == colours[2] != "#ffffff"  # pure
