"""Survival trees beside those of rpart's method "exp": golden/rpart.R made golden/rpart.json."""

import json

import numpy as np
import pytest
from golden.make import HERE

from gpuforest import RandomSurvivalForest

SETS = json.loads((HERE / "rpart.json").read_text())
# rpart lets a side have no event, and ours does not
WITHOUT_EVENTS = {("gbsg", 7): 6}


def compared(tree, theirs, X, event):
    """The nodes of rpart whose splits of rows are ours, and those that have a side without
    events, below which nothing is compared."""
    at = {node: i for i, node in enumerate(theirs["node"])}
    same, other, open_nodes = 0, 0, [(0, 1, np.arange(len(X)))]
    while open_nodes:
        ours, node, rows = open_nodes.pop()
        feature, cut, below = (theirs[key][at[node]] for key in ("feature", "cut", "below"))
        is_leaf = tree.children_left[ours] < 0
        if feature < 0:
            assert is_leaf
            same += 1
            continue
        low = X[rows, feature] < cut
        if not (event[rows[low]].any() and event[rows[~low]].any()):
            other += 1
            continue
        assert not is_leaf
        left = X[rows, tree.feature[ours]] <= tree.threshold[ours]
        if not np.array_equal(left, low):  # another feature may part the same rows
            assert np.array_equal(~left, low)
            below ^= 1
        same += 1
        children = (tree.children_left[ours], below), (tree.children_right[ours], below ^ 1)
        open_nodes += [
            (*pair, rows[side]) for pair, side in zip(children, (left, ~left), strict=True)
        ]
    return same, other


@pytest.mark.parametrize("least", [7, 20])
@pytest.mark.parametrize("name", SETS)
def test_trees_are_those_of_rpart(name, least):
    *X, time, event = np.array(SETS[name]["columns"], float)
    X, event = np.stack(X, axis=1), event > 0
    y = np.rec.fromarrays([event, time])
    [theirs] = [tree for tree in SETS[name]["trees"] if tree["rows"] == least]
    options = {"min_samples_leaf": least, "min_samples_split": 2 * least, "max_features": None}
    options |= {"bootstrap": False, "max_bins": 1000, "backend": "numpy"}
    forest = RandomSurvivalForest(1, **options).fit(X, y)
    same, other = compared(forest.estimators_[0].tree_, theirs, X, event)
    assert other == WITHOUT_EVENTS.get((name, least), 0)
    if not other:
        assert same == len(theirs["node"]) == forest.forest_.n_nodes
    else:
        assert same > 90
