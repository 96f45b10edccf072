"""A tree to unfold: nested elements that a browser opens and closes by itself."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier

from gpuforest.export.report.html import Html, figure, h, name, share, shortened
from gpuforest.export.walker import Node, class_labels, nodes_of, tree_title
from gpuforest.inspection.paths import subtree_sizes

LEVELS, OPEN = 4, 2  # levels that are there, and that are open at first
LONGEST = 90  # letters of a condition


def tree_details(estimator: Any, tree: int, which: str) -> Html:
    """A tree behind its title."""
    forest, nodes = estimator.forest_, nodes_of(estimator, tree, max_depth=LEVELS)
    sizes, items = subtree_sizes(forest, tree), dict[int, Html]()
    for number, node in reversed(nodes.items()):
        way = "all rows"
        if node.parent is not None:
            above = nodes[node.parent]
            way = above.branches[above.children.index(number)].condition.words(figure)
        text = [shortened(way, LONGEST), h("small", " · ", *_words(estimator, node))]
        if node.is_leaf:
            items[number] = h("li", h("span", *text))
        elif node.depth == LEVELS:
            more = h("small", f" · {sizes[number] - 1:,} nodes below")
            items[number] = h("li", h("span", *text, more))
        else:
            below = h("ul", *(items[child] for child in node.children))
            opens = {"open": ""} if node.depth < OPEN else {}
            items[number] = h("li", h("details", h("summary", *text), below, **opens))
    title = h("summary", h("h3", f"Tree {tree}, {which}"), f" ({sizes[0]:,} nodes)")
    about = [h("p", tree_title(forest, tree), class_="note")] if forest.baseline is not None else []
    note = (
        f"The upper {LEVELS} levels. Each line says which rows come here, how many of the tree's "
        "rows these are, and what it predicts for them."
    )
    root = h("ul", items[0], class_="tree")
    return h("details", title, *about, h("p", note, class_="note"), root, class_="whole")


def _words(estimator: Any, node: Node) -> list[Any]:
    """Rows and prediction of a node."""
    rows = f"{node.n_samples:,} row" + "s" * (node.n_samples != 1)
    if estimator.forest_.baseline is not None:
        return [rows, f" · adds {figure(float(node.value[0, 0]))}"]
    words: list[Any] = [rows]
    for shares, labels in zip(node.value, class_labels(estimator.forest_), strict=False):
        best = int(shares.argmax())
        before = " · " if len(words) == 1 else ", "
        words += [before, name(labels[best], 30), f" {share(shares[best])}"]
    if len(words) > 1 or not (is_classifier(estimator) or hasattr(estimator, "score")):
        return words
    return [rows, " · " + ", ".join(figure(float(value)) for value in node.value[:, 0])]
