"""What splits gained, from the sums of the leaves alone."""

import numpy as np
import pytest
from small_trees import TASKS, children, some_task

from gpuforest.engine.criteria import CRITERIA
from gpuforest.engine.nodes import is_leaf
from gpuforest.explain.pruning import split_gains


@pytest.mark.parametrize("criterion", TASKS)
def test_gains_are_the_sides_less_the_node(engine, criterion):
    forest, c = some_task(1, criterion).grow(engine), CRITERIA[criterion]
    gains = split_gains(forest, c)
    assert (gains[is_leaf(forest.nodes)] == 0).all()
    for tree in range(forest.n_trees):
        score = c.side_score(np, forest.node_sums(tree, tree + 1))
        begin, left = children(forest, tree)
        for node, child in left.items():
            gain = score[child] + score[child + 1] - score[node]
            assert gains[begin + node] == max(gain, 0)
