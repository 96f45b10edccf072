"""Parameters and errors of functions that show trees: each text stands here once."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
# by the name of the parameter, or by the names of the function and the parameter
PARAMETERS = {
    "estimator": "fitted estimator of gpuforest",
    "tree": "int, the number of a tree",
    "export_python tree": "int, the number of a tree; None: all trees of a boosted model",
    "feature_names": "names of all features; None: names of the fit, or feature_0, feature_1, ...",
    "class_names": "names of all classes in the order of `classes_`, for several outputs a list\n"
    "    of names for each; None: the classes themselves",
    "max_depth": "int >= 0, levels below the root that are shown; None: all",
    "out_file": "a path or an open file to write to; None: the text is returned",
    "filled": "colour nodes: by class, the paler the more mixed; by value; for several outputs by\n"
    "    impurity",
    "impurity": "show the impurity",
    "node_ids": "show the numbers of nodes",
    "proportion": "show shares instead of weights of rows and classes",
    "rounded": "draw boxes with round corners",
    "precision": "int >= 0, digits after the point",
    "per": '{"leaf", "class"}, what a line is for; a line for a class joins its leaves by "or"',
    "decimals": "int >= 0, digits after the point; None: numbers that read back the same",
    "plain": "bool, write rules as in textbooks, without a word on where missing values and\n"
    "    categories go that training did not see",
    "ax": "matplotlib axis, on which the text is made small enough; None: a figure as large as\n"
    "    the tree needs",
}
RAISES = """Raises
------
ValueError : no such tree, a wrong number of names, a negative number
TypeError : no estimator of gpuforest
"""


def documented(function: F) -> F:
    """Add the section Parameters above Returns, and Raises above Examples, to a docstring."""
    if function.__doc__:  # python -OO has none
        code, name, lines = function.__code__, function.__name__, ["Parameters", "----------"]
        for parameter in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            text = PARAMETERS.get(f"{name} {parameter}", PARAMETERS[parameter])
            lines.append(f"{parameter} : {text}")
        text = cleandoc(function.__doc__)
        if "\nRaises\n" not in text:
            text = text.replace("Examples\n", f"{RAISES}\nExamples\n", 1)
        function.__doc__ = text.replace("Returns\n", "\n".join([*lines, "", "Returns\n"]), 1)
    return function
