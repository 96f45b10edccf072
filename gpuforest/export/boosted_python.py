"""A boosted model as Python source: the functions of its trees, their sum, and the inverse link."""

from __future__ import annotations

from typing import Any

from gpuforest.common.elementary import FACTORIALS, LN2_HIGH, LN2_LOW, LOG2_E, MOST
from gpuforest.export.tree_nodes import tree_title
from gpuforest.forest import Forest

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
{NO_NONE}    found = list(BASELINE)
    for number, tree in enumerate(TREES):
        found[number % len(found)] += tree(x)
    return found


'''
PREDICT = '''\
def predict(x):
    """What the model predicts for a row, a dict as of raw_predict."""
    raw = raw_predict(x)
    return {}
'''
TWO = '''\
def predict_proba(x):
    """The probabilities of the classes for a row, a dict as of raw_predict."""
    second = 1.0 / (1.0 + exp(-raw_predict(x)[0]))
    return [1.0 - second, second]


'''
SEVERAL = '''\
def predict_proba(x):
    """The probabilities of the classes for a row, a dict as of raw_predict."""
    raw = raw_predict(x)
    shares = [exp(value - max(raw)) for value in raw]
    total = 0.0
    for share in shares:  # sum() may add in another way
        total += share
    return [share / total for share in shares]


'''


def model_source(forest: Forest, bodies: list[str], labels: list[str]) -> str:
    """The source of a module that predicts as a boosted model does.

    bodies : of each tree the body of a function of x
    labels : the classes as literals; []: it predicts numbers
    """
    coding: Any = forest.coding
    several, is_exp = coding.n_values > 1, bool(labels) or coding.loss.is_log
    trees = [
        f"def tree_{t}(x):\n    # {tree_title(forest, t)}\n{body}\n\n"
        for t, body in enumerate(bodies)
    ]
    names = "".join(f"    tree_{t},\n" for t in range(len(bodies)))
    parts = [
        "import math\n\n\n" + EXP if is_exp else "",
        IS_MISSING,
        *trees,
        f"BASELINE = {coding.baseline.tolist()!r}\n",
        f"CLASSES = [{', '.join(labels)}]\n" if labels else "",
        f"TREES = [\n{names}]\n",
        RAW,
    ]
    if not labels:
        said = "exp(raw[0])" if is_exp else "raw[0]"
    elif several:
        parts.append(SEVERAL)
        said = "CLASSES[raw.index(max(raw))]"  # the first among equals
    else:
        parts.append(TWO)
        said = "CLASSES[int(raw[0] > 0)]"
    return "".join([*parts, PREDICT.format(said)])
