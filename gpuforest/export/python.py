"""A tree as the source text of a Python function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuforest.export.tree_nodes import Node, opened, tree_nodes
from gpuforest.inspection.shape import subtree_sizes

INDENT = "    "
HEAD = '''\
def is_missing(value):
    return value != value  # NaN alone is not itself


def predict(x):
    """What a decision tree predicts for a row.

    x : dict, the row's value by the name of each feature; None or NaN: missing
    """
    x = {name: float("nan") if value is None else value for name, value in x.items()}
'''


def export_python(
    estimator: Any, tree: int = 0, *, feature_names: Sequence[str] | None = None
) -> str:
    """A tree as the source text of a Python function that needs nothing but Python.

    `predict(x)` takes a row as a dict, by the name of each feature its value, None or NaN where
    it is missing, and returns what the tree predicts: of several outputs a tuple.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest
    tree : int, the number of one of its trees
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...

    Returns
    -------
    str

    Raises
    ------
    ValueError : no such tree, a wrong number of names or one name twice, classes that have no
        Python literal
    TypeError : no estimator of gpuforest

    Examples
    --------
    >>> from gpuforest import DecisionTreeClassifier, export_python
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    >>> names = {}
    >>> exec(export_python(tree, feature_names=["x"]), names)
    >>> names["predict"]({"x": 1.7})
    'b'
    """
    forest, splits = opened(estimator, tree, feature_names)
    twice = [n for i, n in enumerate(splits.names) if n in splits.names[:i]]
    if twice:
        raise ValueError(
            f"two features are called {twice[0]!r}, and values are looked up by name: pass "
            "feature_names that differ"
        )
    nodes = tree_nodes(estimator, tree, feature_names=splits.names)
    return HEAD + "".join(_body(nodes, subtree_sizes(forest, tree).tolist()))


def _body(nodes: dict[int, Node], sizes: list[int]) -> Iterator[str]:
    """The function's lines below its head.

    The branch of most nodes comes last and is not indented, for every way out of the others
    returns: so a block is at most half of the one around it, and trees of any depth stay within
    the 100 levels of indentation that Python allows.
    """
    pending = [(0, 1, "")]  # nodes to write, the next one last: indentation, and the way in
    while pending:
        number, level, way = pending.pop()
        if way:
            yield f"{INDENT * level}if {way}:\n"
            level += 1
        node = nodes[number]
        if node.is_leaf:
            yield f"{INDENT * level}return {_literal(node.prediction)}\n"
            continue
        *some, last = sorted(node.branches, key=lambda branch: sizes[branch.child])
        pending.append((last.child, level, ""))
        for branch in reversed(some):
            value = f"x[{branch.condition.name!r}]"
            pending.append((branch.child, level, branch.condition.source(value)))


def _literal(prediction: Any) -> str:
    """A prediction as a Python literal.

    Raises
    ------
    ValueError : it has none
    """
    if isinstance(prediction, tuple):
        return f"({', '.join(map(_literal, prediction))})"
    if type(prediction) not in (bool, int, float, str, bytes):
        raise ValueError(
            f"the class {prediction!r} is a {type(prediction).__name__}, which has no Python "
            "literal: train on strings, numbers or booleans"
        )
    is_endless = isinstance(prediction, float) and prediction in (float("inf"), -float("inf"))
    return f'float("{prediction}")' if is_endless else repr(prediction)
