"""A walk down one of our trees and one of scikit-learn's, side by side."""

from fractions import Fraction

import numpy as np

from gpuforest.core.nodes import unpack


def split_value(X, y, rows, left, is_classes):
    """The exact worth of a cut of `rows`: sum of S^2 / n over both sides, as a Fraction."""
    total = Fraction(0)
    for side in (rows[left], rows[~left]):
        sums = np.bincount(y[side]) if is_classes else np.array([y[side].sum()])
        total += Fraction(sum(int(s) ** 2 for s in sums), len(side))
    return total


def compare_trees(model, reference, X, y, is_classes):
    """Assert that both trees are one, node for node, wherever no two splits tie.

    X must hold what both trained on, y class codes or whole numbers. Returns how many
    splits are the same, and how many are of equal worth but on another feature or cut.
    Below those the walk goes on only where both sides hold the same rows.
    """
    forest, other = model.forest_, reference.tree_
    feature, bin, _, child = unpack(np, forest.nodes)
    threshold = forest.edges.threshold(np.maximum(feature, 0), bin)
    values = forest.node_sums(0, 1)
    same = ties = 0
    pending = [(0, 0, np.arange(len(X)))]
    while pending:
        a, b, rows = pending.pop()
        assert other.n_node_samples[b] == len(rows)
        if is_classes:
            assert np.array_equal(values[a], np.bincount(y[rows], minlength=values.shape[1]))
        f, g = feature[a], other.feature[b]
        assert (f < 0) == (g < 0), "one tree has a leaf where the other splits"
        if f < 0:
            continue
        left = X[rows, f] <= threshold[a]
        right = X[rows, g] <= other.threshold[b]
        assert 0 < left.sum() < len(rows)
        if f == g and np.array_equal(left, right):  # the threshold lies in the same gap
            same += 1
        else:
            ours = split_value(X, y, rows, left, is_classes)
            theirs = split_value(X, y, rows, right, is_classes)
            assert ours == theirs, "different splits of different worth"
            ties += 1
        lower, upper = other.children_left[b], other.children_right[b]
        if np.array_equal(left, ~right):  # the same cut, seen from the other side
            lower, upper = upper, lower
        elif not np.array_equal(left, right):
            continue
        pending.append((child[a], lower, rows[left]))
        pending.append((child[a] + 1, upper, rows[~left]))
    return same, ties
