"""Small trees of each criterion, and the children of their nodes."""

import numpy as np
from engine import Task, table

from gpuforest.core.criteria import CRITERIA
from gpuforest.core.nodes import is_leaf, unpack

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
