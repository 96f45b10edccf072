"""A tree as the source text of a Python function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuforest.export.boosted_python import IS_MISSING, NO_NONE, model_source
from gpuforest.export.conditions import SumRange
from gpuforest.export.tree_nodes import Node, class_labels, opened, tree_nodes, tree_title
from gpuforest.inspection.shape import subtree_sizes

INDENT = "    "
SUMS = '''\
from bisect import bisect_left

# of each feature that is added to others: the ends of its bins, and what each bin adds
BINS = {{
{rows}}}


def total_within(x, terms, least, most, missing):
    """Whether least < a sum of features <= most; `missing`: the answer where a value is missing."""
    total = 0
    for name, weight in terms:
        if is_missing(x[name]):
            return missing
        ends, coordinates = BINS[name]
        total += weight * coordinates[bisect_left(ends, x[name])]
    return (least is None or total > least) and (most is None or total <= most)


'''
HEAD = f'''\
{IS_MISSING}def predict(x):
    """What a decision tree %s for a row.

    x : dict, the row's value by the name of each feature; None or NaN: missing
    """
{NO_NONE}'''


def export_python(
    estimator: Any, tree: int | None = 0, *, feature_names: Sequence[str] | None = None
) -> str:
    """A tree, or a boosted model, as the source text of Python functions that need nothing but
    Python.

    `predict(x)` takes a row as a dict, by the name of each feature its value, None or NaN where
    it is missing, and returns what the tree predicts: of several outputs a tuple; of a boosted
    model what the tree adds to the raw prediction. The functions of a whole boosted model predict
    what it does, to the last bit: `predict(x)`, of classes `predict_proba(x)`, and
    `raw_predict(x)`.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest
    tree : int, the number of one of its trees; None: all trees of a boosted model
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
    forest, splits = opened(estimator, tree or 0, feature_names)
    twice = [n for i, n in enumerate(splits.names) if n in splits.names[:i]]
    if twice:
        raise ValueError(
            f"two features are called {twice[0]!r}, and values are looked up by name: pass "
            "feature_names that differ"
        )
    if tree is not None:
        title = "" if forest.baseline is None else f"# {tree_title(forest, tree)}\n"
        head = HEAD % ("adds" if title else "predicts")
        head = sums_source(estimator, tree, splits.names) + head
        return title + head + "".join(_lines(estimator, tree, splits.names))
    if forest.baseline is None:
        raise ValueError(
            f"the trees of a {type(estimator).__name__} are not one function: pass the number of "
            "a tree"
        )
    trees = ("".join(_lines(estimator, t, splits.names)) for t in range(forest.n_trees))
    labels = class_labels(forest)
    return model_source(forest, list(trees), [_literal(c) for c in labels[0]] if labels else [])


def sums_source(estimator: Any, tree: int, names: list[str]) -> str:
    """The function that adds up combinations of features, and what it needs; "": there are none."""
    if not estimator.forest_.oblique:
        return ""
    nodes = tree_nodes(estimator, tree, feature_names=names).values()
    found = (b.condition for node in nodes for b in node.branches)
    terms = [t for c in found if isinstance(c, SumRange) for t in c.terms]
    tables = {name: (edges, coordinates) for _, name, _, edges, coordinates in terms}
    rows = "".join(f"{INDENT}{name!r}: {table!r},\n" for name, table in sorted(tables.items()))
    return SUMS.format(rows=rows)


def _lines(estimator: Any, tree: int, names: list[str]) -> Iterator[str]:
    """The lines of a function's body that return what a tree predicts for x."""
    sizes = subtree_sizes(estimator.forest_, tree).tolist()
    return _body(tree_nodes(estimator, tree, feature_names=names), sizes)


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
        pending += [(b.child, level, b.condition.python()) for b in reversed(some)]


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
