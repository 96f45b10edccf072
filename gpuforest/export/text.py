"""A tree as indented text, and as decision rules in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf
from typing import Any

import numpy as np

from gpuforest.explain import paths
from gpuforest.export import conditions, documentation, views, walker

INDENT = "|   "


@documentation.documented
def export_text(
    estimator: Any, tree: int = 0, *, feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> str:  # fmt: skip
    """A tree as indented text: a line for each way out of a split, and one for each leaf.

    Of a boosted model the first line says what leaves add to, and leaves show their rows and the
    sums of gradients and hessians that the value follows from.

    Returns
    -------
    str, lines that end in a newline

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
    return "".join(line + "\n" for line in tree_lines(estimator, tree, feature_names, max_depth))


def tree_lines(
    estimator: Any, tree: int = 0, feature_names: Sequence[str] | None = None,
    max_depth: int | None = None,
) -> Iterator[str]:  # fmt: skip
    """The lines of `export_text` one by one."""
    view = walker.opened(estimator, tree, feature_names)
    walker.check_not_negative(max_depth=max_depth)
    sizes, deepest = paths.subtree_sizes(view.forest, 0), inf if max_depth is None else max_depth
    boosted = view.forest.baseline is not None
    if boosted:
        yield walker.tree_title(view.model.forest, tree)
    for node, depth, _, condition, branches in view.walk(deepest):
        if condition is not None:
            yield INDENT * (depth - 1) + condition.words()
        if branches and depth == max_depth:
            yield INDENT * depth + f"... {sizes[node] - 1} more nodes"
        elif not branches:
            text = _step_text(view.columns, node) if boosted else _leaf_text(view, node)
            yield INDENT * depth + text


def _step_text(columns: dict[str, np.ndarray], leaf: int) -> str:
    """What a leaf of a boosted model adds, and what that follows from."""
    n, g, h = (columns[name][leaf] for name in ("n_samples", "gradients", "hessians"))
    rows = f"rows: {n}, gradients: {float(g):.6g}, hessians: {float(h):.6g}"
    return f"value: {float(columns['value'][leaf, 0, 0])!r} ({rows})"


def _leaf_text(view: views.TreeView, leaf: int) -> str:
    """A leaf: the class and the weights of all that occur, or the value."""
    forest, row = view.forest, view.child[leaf]
    sums, values, coding = forest.leaf_sums[row], forest.values[row], forest.coding
    if coding.several:
        both = ([part[0] for part in coding.split(a[None])] for a in (sums, values))
        outputs = zip(coding.several, *both, strict=True)
        return "classes: " + "; ".join(_shares(*output) for output in outputs)
    if coding.classes is None:
        shown = values.tolist() if len(values) > 1 else float(values[0])
        return f"value: {shown!r} (weight: {sums[0]})"
    return f"class: {_shares(coding.classes, sums, values)}"


def _shares(classes: np.ndarray, sums: np.ndarray, values: np.ndarray) -> str:
    """The class of the highest value, and the weights of all that occur."""
    weights = ", ".join(f"{classes[i]}: {sums[i]}" for i in np.flatnonzero(sums))
    return f"{classes[int(np.argmax(values))]} ({weights})"


@documentation.documented
def export_rules(
    estimator: Any, tree: int = 0, *, feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None, per: str = "leaf", decimals: int | None = None,
    plain: bool = False,
) -> str:  # fmt: skip
    """A tree as rules: one line a leaf, or a class, with one condition a feature.

    Every row meets the conditions of exactly one leaf; a side that rows without a value take
    says "or missing". The rules of a boosted model say what a leaf adds, and to what.

    Returns
    -------
    str, lines that end in a newline

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier, export_rules
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> print(export_rules(tree, feature_names=["x"]), end="")
    if x <= 1.5 or missing then a
    if x > 1.5 then b
    """
    if per not in ("leaf", "class"):
        raise ValueError(f'per={per!r} is unknown: pass "leaf" or "class"')
    walker.check_not_negative(decimals=decimals)
    model = walker.opened(estimator, tree).model
    nodes = walker.nodes_of(model, tree, feature_names, class_names)
    leaves = [node for node in nodes.values() if node.is_leaf]
    number: conditions.Number = repr if decimals is None else lambda value: f"{value:.{decimals}f}"
    groups = [[leaf] for leaf in leaves]
    if per == "class":
        if not walker.leaf_labels(model.forest):
            raise ValueError(
                'per="class" is for classes, and this tree predicts numbers: pass per="leaf"'
            )
        groups = [[*of_class] for _, of_class in groupby(sorted(leaves, key=_codes), _codes)]
    return "".join(_line(group, number, plain) + "\n" for group in groups)


def _codes(leaf: walker.Node) -> list[int]:
    """The class of each output that a leaf predicts, by its number in `classes_`."""
    codes: list[int] = leaf.value.argmax(axis=1).tolist()
    return codes


def _line(leaves: list[walker.Node], number: conditions.Number, plain: bool) -> str:
    """The rule for leaves of one prediction."""
    first = leaves[0]
    said = walker.written(first.prediction, number)
    if first.adds_to:
        said = f"add {said} to {first.adds_to}"
    met = [[c.plain() if plain else c for c in leaf.conditions] for leaf in leaves]
    ways = [conditions.all_of(path, number) for path in met]
    if ways == [""]:  # the root is a leaf
        return f"always {said}"
    joined = ways[0] if len(ways) == 1 else " or ".join(f"({way})" for way in ways)
    return f"if {joined} then {said}"
