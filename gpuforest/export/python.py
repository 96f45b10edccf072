"""A tree, or a boosted model, as the source text of Python functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuforest.common.elementary import FACTORIALS, LN2_HIGH, LN2_LOW, LOG2_E, MOST
from gpuforest.core.forest import Forest
from gpuforest.explain.paths import subtree_sizes
from gpuforest.export import documentation, views, walker
from gpuforest.export.conditions import Condition, Range

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
    return least < total <= most


'''
IS_MISSING = """\
def is_missing(value):
    return value != value  # NaN alone is not itself


"""
NO_NONE = """\
    x = {name: float("nan") if value is None else value for name, value in x.items()}
"""
# the formula of common/elementary.py: the last bit of a library's exp differs between machines
EXP = f'''\
def exp(x):
    """The exponential, the same to the last bit on every machine."""
    x = min(max(x, {-MOST!r}), {MOST!r})
    k = math.floor(x * {LOG2_E!r} + 0.5)
    rest = (x - k * {LN2_HIGH!r}) - k * {LN2_LOW!r}
    series = {FACTORIALS[-1]!r}
    for i in range({len(FACTORIALS) - 2}, -1, -1):
        series = series * rest + 1.0 / math.factorial(i)
    return math.ldexp(series, k)


'''
RAW = f'''\


def raw_predict(x):
    """The sums of the baseline and of what the trees add, a list of raw predictions.

    x : dict, the row's value by the name of each feature; None or NaN: missing
    """
{NO_NONE}    sums = list(BASELINE)
    for number, tree in enumerate(TREES):
        sums[number % len(sums)] += tree(x)
    return sums


'''
PREDICT = '''\
def predict(x):
    """What the model predicts for a row, a dict as of raw_predict."""
    raw = raw_predict(x)
    return {}
'''
PROBA = '''\
def predict_proba(x):
    """The probabilities of the classes for a row, a dict as of raw_predict."""
'''
TWO = """\
    second = 1.0 / (1.0 + exp(-raw_predict(x)[0]))
    return [1.0 - second, second]


"""
SEVERAL = """\
    raw = raw_predict(x)
    shares = [exp(value - max(raw)) for value in raw]
    total = 0.0
    for share in shares:  # sum() may add in another way
        total += share
    return [share / total for share in shares]


"""
HEAD = f'''\
{IS_MISSING}def predict(x):
    """What a decision tree %s for a row.

    x : dict, the row's value by the name of each feature; None or NaN: missing
    """
{NO_NONE}'''


@documentation.documented
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
    view = walker.opened(estimator, tree or 0, feature_names)
    model, forest, names = view.model, view.model.forest, view.names
    if forest.edges.statistics:
        raise ValueError(
            "target statistics are not written as Python: use export_c with category_codes, train "
            "with categorical_split='subset', or use gpuforest.load where the model runs"
        )
    views.refuse_twice(names, "values are looked up by name")
    if tree is not None:
        title = "" if forest.baseline is None else f"# {walker.tree_title(forest, tree)}\n"
        nodes = walker.nodes_of(model, tree, names)
        head = _sums_source(nodes) + HEAD % ("adds" if title else "predicts")
        return title + head + "".join(_body(forest, tree, nodes))
    if forest.baseline is None:
        raise ValueError(
            f"the trees of a {model.kind} are not one function: pass the number of a tree"
        )
    trees = ((t, walker.nodes_of(model, t, names)) for t in range(forest.n_trees))
    return _model_source(forest, ["".join(_body(forest, t, nodes)) for t, nodes in trees])


def _sums_source(nodes: dict[int, walker.Node]) -> str:
    """The function that adds up combinations of features, and its tables; "" without any."""
    ways = [way for node in nodes.values() for way in node.branches if isinstance(way, Range)]
    tables = {name: tuple(table) for way in ways for _, name, _, *table in way.terms}
    rows = "".join(f"{INDENT}{name!r}: {table!r},\n" for name, table in sorted(tables.items()))
    return SUMS.format(rows=rows) if rows else ""


def _body(forest: Forest, tree: int, nodes: dict[int, walker.Node]) -> Iterator[str]:
    """The lines of a function's body that return what a tree predicts for x.

    The branch of most nodes comes last and is not indented, for every way out of the others
    returns: so a block is at most half of the one around it, and trees of any depth stay within
    the 100 levels of indentation that Python allows.
    """
    sizes = subtree_sizes(forest, tree).tolist()
    pending: list[tuple[int, int, Condition | None]] = [(0, 1, None)]
    while pending:
        number, level, condition = pending.pop()
        node = nodes[number]
        if condition is not None:
            yield f"{INDENT * level}if {condition.source()}:\n"
            level += 1
        if node.is_leaf:
            yield f"{INDENT * level}return {_literal(node.prediction)}\n"
            continue
        branches = zip(node.branches, node.children, strict=True)
        *smaller, (_, largest) = sorted(branches, key=lambda branch: sizes[branch[1]])
        pending.append((largest, level, None))
        pending += [(child, level, way) for way, child in reversed(smaller)]


def _literal(prediction: Any) -> str:
    """A prediction as a Python literal."""
    if isinstance(prediction, tuple):
        return f"({', '.join(map(_literal, prediction))})"
    if type(prediction) not in (bool, int, float, str, bytes):
        raise ValueError(
            f"the class {prediction!r} is a {type(prediction).__name__}, which has no Python "
            "literal: train on strings, numbers or booleans"
        )
    is_endless = isinstance(prediction, float) and prediction in (float("inf"), -float("inf"))
    return f'float("{prediction}")' if is_endless else repr(prediction)


def _model_source(forest: Forest, bodies: list[str]) -> str:
    """The source of a module that predicts as a boosted model does; `bodies` are those of a
    function of x for each tree."""
    coding: Any = forest.coding
    if coding.lacking:
        why = f"a model that {coding.lacking} is not written as Python: use gpuforest.load"
        raise ValueError(why)
    if coding.is_vector:
        raise ValueError("a model with trees for all outputs is not written as Python: export_c is")
    labels = [_literal(label) for classes in walker.class_labels(forest) for label in classes]
    trees = [
        f"def tree_{t}(x):\n    # {walker.tree_title(forest, t)}\n{body}\n\n"
        for t, body in enumerate(bodies)
    ]
    names = "".join(f"    tree_{t},\n" for t in range(len(bodies)))
    if not labels:
        shares, result = "", "exp(raw[0])" if coding.loss.is_log else "raw[0]"
    elif coding.n_values > 1:
        shares, result = PROBA + SEVERAL, "CLASSES[raw.index(max(raw))]"  # the first among equals
    else:
        shares, result = PROBA + TWO, "CLASSES[int(raw[0] > 0)]"
    parts = [
        "import math\n\n\n" + EXP if "exp(" in shares + result else "",
        IS_MISSING,
        *trees,
        f"BASELINE = {coding.baseline.tolist()!r}\n",
        f"CLASSES = [{', '.join(labels)}]\n" if labels else "",
        f"TREES = [\n{names}]\n",
        RAW,
        shares,
        PREDICT.format(result),
    ]
    return "".join(parts)
