"""A tree to unfold: nested elements that a browser opens and closes by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from gpuforest.export.conditions import TreeSplits
from gpuforest.export.report.html import Html, figure, h, name, share, shortened
from gpuforest.export.tree_nodes import class_labels, opened, tree_title
from gpuforest.inspection.boosted_view import BoostedView
from gpuforest.inspection.shape import subtree_sizes
from gpuforest.inspection.views import TreeView

LEVELS, OPEN = 4, 2  # levels that are there, and that are open at first
LONGEST = 90  # letters of a condition


def tree_details(estimator: Any, tree: int, which: str) -> Html:
    """A tree behind its title."""
    forest, splits = opened(estimator, tree, None)
    sizes = subtree_sizes(forest, tree)
    title = h("summary", h("h3", f"Tree {tree}, {which}"), f" ({sizes[0]:,} nodes)")
    about = [h("p", tree_title(forest, tree), class_="note")] if forest.baseline is not None else []
    shown = _Words(estimator, tree)
    root = h("ul", _node(splits, shown, sizes, 0, 0, "all rows"), class_="tree")
    note = (
        f"The upper {LEVELS} levels. Each line says which rows come here, how many of the tree's "
        "rows these are, and what it predicts for them."
    )
    return h("details", title, *about, h("p", note, class_="note"), root, class_="whole")


def _node(
    splits: TreeSplits, words: _Words, sizes: np.ndarray, node: int, depth: int, way: str
) -> Html:
    """A node and those below it."""
    text = [shortened(way, LONGEST), h("small", " · ", *words.of(node))]
    branches = splits.branches(node)
    if not branches:
        return h("li", h("span", *text))
    if depth >= LEVELS:
        more = h("small", f" · {sizes[node] - 1:,} nodes below")
        return h("li", h("span", *text, more))
    below = [
        _node(splits, words, sizes, b.child, depth + 1, b.condition.words(figure)) for b in branches
    ]
    opens = {"open": ""} if depth < OPEN else {}
    return h("li", h("details", h("summary", *text), h("ul", *below), **opens))


class _Words:
    """What is said of the nodes of a tree."""

    def __init__(self, estimator: Any, tree: int) -> None:
        forest = estimator.forest_
        self._labels = class_labels(forest) if forest.baseline is None else []
        self._predicts = is_classifier(estimator) or hasattr(estimator, "score")
        self._boosted = forest.baseline is not None
        if self._boosted:
            found = BoostedView.of(forest, tree)
            self._rows, self._value = found.n_samples, found.value[:, None, None]
        else:
            plain = replace(forest, combine="mean", tree_weights=None)
            view = TreeView(plain, tree, estimator._criterion, signs=estimator._signs())
            self._rows, self._value = view.n_node_samples, view.value

    def of(self, node: int) -> list[Any]:
        """Rows and prediction."""
        n = int(self._rows[node])
        rows = f"{n:,} row" + "s" * (n != 1)
        value = self._value[node]
        if self._labels:
            said: list[Any] = []
            for shares, names in zip(value, self._labels, strict=True):
                best = int(shares.argmax())
                said += [", " if said else "", name(names[best], 30), f" {share(shares[best])}"]
            return [rows, " · ", *said]
        if not self._predicts:
            return [rows]
        numbers = ", ".join(figure(float(v)) for v in value[:, 0])
        return [rows, f" · {'adds ' * self._boosted}{numbers}"]
