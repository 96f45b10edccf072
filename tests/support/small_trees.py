"""Small trees of each criterion, the children of their nodes, and a tree as deep as one likes."""

import numpy as np
from engine import Task, table

from gpuforest.core.bins import BinEdges
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, is_leaf, unpack
from gpuforest.growing.targets import encode_classes

TASKS = ["gini", "entropy", "misclassification", "squared_error", "poisson"]


def some_task(seed, criterion, **changes):
    """Small trees with bags, missing values and features that do not matter."""
    rng = np.random.default_rng(seed)
    X = table(rng, 120, ["f", "n", "c", "b"])
    score = np.nan_to_num(X).sum(axis=1) + rng.normal(size=120)
    if CRITERIA[criterion].task == "classification":
        y = np.digitize(score, [-1.0, 1.0])
    else:
        y = np.round(np.exp(score / 2)) + 1
    return Task(X, y, criterion, n_draws=100, n_tried=2, n_trees=4, seed=seed % 1000).but(**changes)


def children(forest, tree):
    """The first node of a tree, and of its splits the left child's number in the tree."""
    begin, end = forest.tree_offsets[tree : tree + 2].tolist()
    child = unpack(np, forest.nodes[begin:end])[3].tolist()
    return begin, {i: child[i] for i in np.flatnonzero(~is_leaf(forest.nodes[begin:end])).tolist()}


def chain(depth):
    """A tree whose right children go on: every left child is a leaf of the other class."""
    nodes = np.zeros(2 * depth + 1, np.uint64)
    for level in range(depth):
        nodes[2 * level] = (2 * level + 1) << CHILD_SHIFT
        nodes[2 * level + 1] = LEAF_WORD + level % 2
    nodes[-1] = LEAF_WORD + 2
    coding, _ = encode_classes(np.array([0, 1]), np.arange(2))
    edges = BinEdges.of([np.array([0.5])])
    sums = np.array([[1, 0], [0, 1], [3, 4]])
    return Forest(nodes, np.array([0, len(nodes)]), sums, edges, coding, 0)
