"""A tree as indented text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuforest.export.conditions import Splits
from gpuforest.export.tree_nodes import opened
from gpuforest.forest import Forest
from gpuforest.inspection.shape import subtree_sizes

INDENT = "|   "


def export_text(
    estimator: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> str:
    """A tree as indented text: a line for each way out of a split, and one for each leaf.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest
    tree : int, the number of one of its trees
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...
    max_depth : int >= 0, levels below the root that are shown; None: all

    Returns
    -------
    str, lines that end in a newline

    Raises
    ------
    ValueError : no such tree, a wrong number of names, a negative max_depth
    TypeError : no estimator of gpuforest
    """
    forest, splits = opened(estimator, tree, feature_names)
    return tree_text(forest, tree, splits.names, max_depth)


def tree_text(
    forest: Forest,
    tree: int,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> str:
    """One tree as text: a line for each way out of a split, and one for each leaf.

    Parameters
    ----------
    tree : int, the tree's number
    feature_names : names of all features; None: feature_0, feature_1, ...
    max_depth : int >= 0, levels below the root that are shown; None: all

    Returns
    -------
    str, lines that end in a newline

    Raises
    ------
    ValueError : no such tree, a wrong number of names, a negative max_depth

    Example
    -------
        age <= 40.5 or missing
        |   class: no (no: 12, yes: 3)
        age > 40.5
        |   class: yes (yes: 9)
    """
    return "".join(line + "\n" for line in tree_lines(forest, tree, feature_names, max_depth))


def tree_lines(
    forest: Forest,
    tree: int,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> Iterator[str]:
    """The lines of `tree_text` one by one; its errors come before the first."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth={max_depth} is negative: pass 0 or more, or None")
    splits = Splits(forest, tree, feature_names)
    return _lines(forest, tree, splits, np.inf if max_depth is None else max_depth)


def _lines(forest: Forest, tree: int, splits: Splits, max_depth: float) -> Iterator[str]:
    sizes = subtree_sizes(forest, tree)
    pending = [(0, 0, "")]  # nodes to show, the next one last: depth, and the way into them
    while pending:
        node, depth, way = pending.pop()
        if way:
            yield INDENT * (depth - 1) + way
        branches = splits.branches(node)
        if not branches:
            yield INDENT * depth + leaf_text(forest, splits.leaf_row(node))
        elif depth >= max_depth:
            yield INDENT * depth + f"... {sizes[node] - 1} more nodes"
        else:
            pending += [(b.child, depth + 1, b.condition.words()) for b in reversed(branches)]


def leaf_text(forest: Forest, leaf: int) -> str:
    """A row of the leaf table: the class and the weights of all that occur, or the value."""
    sums, values, classes = forest.leaf_sums[leaf], forest.values[leaf], forest.coding.classes
    if forest.coding.several:
        parts = forest.coding.split(sums[None]), forest.coding.several
        each = [
            _shares(labels, part[0], int(np.argmax(part)))
            for part, labels in zip(*parts, strict=True)
        ]
        return "classes: " + "; ".join(each)
    if classes is None:
        shown = values.tolist() if len(values) > 1 else float(values[0])
        return f"value: {shown!r} (weight: {sums[0]})"
    return f"class: {_shares(classes, sums, int(np.argmax(values)))}"


def _shares(classes: np.ndarray, sums: np.ndarray, first: int) -> str:
    """The class predicted, and the weights of all that occur."""
    found = ", ".join(f"{classes[i]}: {sums[i]}" for i in np.flatnonzero(sums))
    return f"{classes[first]} ({found})"
