"""A tree as indented text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.forest import Forest
from gpuforest.inspection.shape import subtree_sizes
from gpuforest.nodes import unpack

INDENT = "|   "


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
    if not 0 <= tree < forest.n_trees:
        raise ValueError(f"tree {tree} does not exist: choose one of 0 to {forest.n_trees - 1}")
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth={max_depth} is negative: pass 0 or more, or None")
    n_features = forest.edges.n_features
    if feature_names is None:
        feature_names = [f"feature_{i}" for i in range(n_features)]
    if len(feature_names) != n_features:
        raise ValueError(
            f"feature_names has {len(feature_names)} names, the forest {n_features} features: "
            "pass a name for each"
        )
    return _lines(forest, tree, feature_names, np.inf if max_depth is None else max_depth)


def _lines(
    forest: Forest, tree: int, feature_names: Sequence[str], max_depth: float
) -> Iterator[str]:
    nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
    feature, bin, missing_left, child = unpack(xp, nodes)
    threshold = forest.edges.threshold(np.maximum(feature, 0), bin)
    sizes = subtree_sizes(forest, tree)
    pending = [(0, 0, "")]  # nodes to show, the next one last: depth, and the way into them
    while pending:
        node, depth, way = pending.pop()
        if way:
            yield INDENT * (depth - 1) + way
        if feature[node] < 0:
            yield INDENT * depth + leaf_text(forest, int(child[node]))
        elif depth >= max_depth:
            yield INDENT * depth + f"... {sizes[node] - 1} more nodes"
        else:
            left, right = split_text(
                feature_names[feature[node]], float(threshold[node]), bool(missing_left[node])
            )
            pending.append((int(child[node]) + 1, depth + 1, right))
            pending.append((int(child[node]), depth + 1, left))


def split_text(name: str, threshold: float, missing_left: bool) -> tuple[str, str]:
    """The ways to the left and to the right child in words."""
    if np.isinf(threshold) and not missing_left:
        return f"{name} is not missing", f"{name} is missing"
    left, right = f"{name} <= {threshold!r}", f"{name} > {threshold!r}"
    return (f"{left} or missing", right) if missing_left else (left, f"{right} or missing")


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
