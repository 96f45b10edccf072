"""A tree as indented text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuforest.engine.forest import Forest
from gpuforest.explain.paths import subtree_sizes
from gpuforest.explain.views import BoostedView
from gpuforest.export.conditions import TreeSplits
from gpuforest.export.walker import opened, tree_title, walk

INDENT = "|   "


def export_text(
    estimator: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> str:
    """A tree as indented text: a line for each way out of a split, and one for each leaf.

    Of a boosted model the first line says what leaves add to, and leaves show their rows and the
    sums of gradients and hessians that the value follows from.

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

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier, export_text
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> print(export_text(tree, feature_names=["x"]), end="")
    x <= 1.5 or missing
    |   class: a (a: 2)
    x > 1.5
    |   class: b (b: 1)
    """
    forest, splits = opened(estimator, tree, feature_names)
    return "".join(line + "\n" for line in tree_lines(forest, tree, splits.names, max_depth))


def tree_lines(
    forest: Forest,
    tree: int,
    feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> Iterator[str]:
    """The lines of `export_text` one by one; a ValueError comes before the first.

    feature_names : names of all features; None: feature_0, feature_1, ...
    """
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth={max_depth} is negative: pass 0 or more, or None")
    splits = TreeSplits(forest, tree, feature_names)
    return _lines(forest, tree, splits, np.inf if max_depth is None else max_depth)


def _lines(forest: Forest, tree: int, splits: TreeSplits, max_depth: float) -> Iterator[str]:
    sizes, boosted = subtree_sizes(forest, tree), None
    if forest.baseline is not None:
        boosted = BoostedView.of(forest, tree)
        yield tree_title(forest, tree)
    for node, depth, _, way, branches in walk(splits, max_depth):
        if way is not None:
            yield INDENT * (depth - 1) + way.condition.words()
        if branches and depth == max_depth:
            yield INDENT * depth + f"... {sizes[node] - 1} more nodes"
        elif not branches:
            row = splits.leaf_row(node)
            text = leaf_text(forest, row) if boosted is None else step_text(boosted, node)
            yield INDENT * depth + text


def leaf_text(forest: Forest, leaf: int) -> str:
    """A row of the leaf table: the class and the weights of all that occur, or the value."""
    sums, values, classes = forest.leaf_sums[leaf], forest.values[leaf], forest.coding.classes
    if forest.coding.several:
        parts = forest.coding.split(sums[None]), forest.coding.several
        outputs = [
            _shares(labels, part[0], int(np.argmax(part)))
            for part, labels in zip(*parts, strict=True)
        ]
        return "classes: " + "; ".join(outputs)
    if classes is None:
        shown = values.tolist() if len(values) > 1 else float(values[0])
        return f"value: {shown!r} (weight: {sums[0]})"
    return f"class: {_shares(classes, sums, int(np.argmax(values)))}"


def step_text(tree: BoostedView, leaf: int) -> str:
    """What a leaf of a boosted model adds, and what that follows from."""
    g, h = (f"{float(sums[leaf]):.6g}" for sums in (tree.gradients, tree.hessians))
    n = tree.n_samples[leaf]
    return f"value: {float(tree.value[leaf])!r} (rows: {n}, gradients: {g}, hessians: {h})"


def _shares(classes: np.ndarray, sums: np.ndarray, first: int) -> str:
    """The class predicted, and the weights of all that occur."""
    weights = ", ".join(f"{classes[i]}: {sums[i]}" for i in np.flatnonzero(sums))
    return f"{classes[first]} ({weights})"
