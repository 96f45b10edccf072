"""A tree as decision rules in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuforest.export.conditions import Number, all_of
from gpuforest.export.walker import BoostedNode, Node, leaf_labels, tree_nodes, written


def export_rules(
    estimator: Any,
    tree: int = 0,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
    per: str = "leaf",
    decimals: int | None = None,
    plain: bool = False,
) -> str:
    """A tree as rules: one line a leaf, or a class, with one condition a feature.

    Every row meets the conditions of exactly one leaf; a side that rows without a value take
    says "or missing". The rules of a boosted model say what a leaf adds, and to what.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest
    tree : int, the number of one of its trees
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...
    class_names : names of all classes in the order of `classes_`, of several outputs a list of
        names for each; None: the classes themselves
    per : {"leaf", "class"}, what a line is for; that of a class joins its leaves by "or"
    decimals : int >= 0, digits after the point; None: numbers that read back the same
    plain : bool, whether rules are as in textbooks, without a word on where missing values and
        categories go that training did not see

    Returns
    -------
    str, lines that end in a newline

    Raises
    ------
    ValueError : no such tree, a wrong number of names, per="class" of a tree for numbers
    TypeError : no estimator of gpuforest

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
    if decimals is not None and decimals < 0:
        raise ValueError(f"decimals={decimals} is negative: pass 0 or more, or None")
    nodes = tree_nodes(estimator, tree, feature_names=feature_names, class_names=class_names)
    leaves = [node for node in nodes.values() if node.is_leaf]
    number: Number = repr if decimals is None else lambda value: f"{value:.{decimals}f}"
    groups = [[leaf] for leaf in leaves]
    if per == "class":
        if not leaf_labels(estimator.forest_):
            raise ValueError(
                'per="class" is for classes, and this tree predicts numbers: pass per="leaf"'
            )
        groups = _by_class(leaves)
    return "".join(_line(group, number, plain) + "\n" for group in groups)


def _by_class(leaves: list[Node]) -> list[list[Node]]:
    """The leaves of each class, or combination of classes, in the order of `classes_`."""
    groups: dict[tuple[int, ...], list[Node]] = {}
    for leaf in leaves:
        groups.setdefault(tuple(leaf.value.argmax(axis=1).tolist()), []).append(leaf)
    return [groups[codes] for codes in sorted(groups)]


def _line(leaves: list[Node], number: Number, plain: bool) -> str:
    """The rule for leaves of one prediction."""
    first = leaves[0]
    said = written(first.prediction, number)
    if isinstance(first, BoostedNode):
        said = f"add {said} to {first.adds_to}"
    conditions = [[c.plain() if plain else c for c in leaf.conditions] for leaf in leaves]
    ways = [all_of(each, number) for each in conditions]
    if ways == [""]:  # the root is a leaf
        return f"always {said}"
    joined = ways[0] if len(ways) == 1 else " or ".join(f"({way})" for way in ways)
    return f"if {joined} then {said}"
