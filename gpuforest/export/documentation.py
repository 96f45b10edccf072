"""Parameters and errors of functions that show trees or draw: each text stands here once."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
# by the name of the parameter, or by the names of the function and the parameter
PARAMETERS = {
    "estimator": "fitted estimator of gpuforest",
    "tree": "int, the number of a tree",
    "export_python tree": "int, the number of a tree; None: all trees of a boosted model",
    "feature_names": "names of all features; None: those of the rows drawn, or of the fit, or\n"
    "    feature_0, feature_1, ...",
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
    "plot_tree ax": "matplotlib axis, on which the text is made small enough; None: a figure as\n"
    "    large as the tree needs",
    "ax": "matplotlib axis, which is returned; None: that of a new figure",
    "plot_boundaries estimator": "fitted estimator of gpuforest with one output",
    "plot_steps estimator": "fitted regressor of gpuforest with one output",
    "plot_survival estimator": "fitted survival forest of gpuforest",
    "plot_effects estimator": "fitted CausalForest",
    "plot_effect_calibration estimator": "fitted CausalForest",
    "plot_pruning estimator": 'fitted DecisionTree*, whose alpha was chosen: by `ccp_alpha="cv"`\n'
    "    or `prune`",
    "plot_oob estimator": "forest or bag of gpuforest, fitted with oob_score=True or\n"
    '    n_estimators="auto"',
    "plot_loss estimator": "fitted HistGradientBoosting* or AdaBoost* of gpuforest\n"
    "    Of the first, the losses that early stopping kept are drawn, or the scores of its\n"
    "    `scoring`: of the training rows and, if some were set aside, of the validation rows.",
    "importances": "fitted estimator of gpuforest, for its `feature_importances_`; or what\n"
    "    `oob_permutation_importance`, `oob_impurity_importance` or scikit-learn's\n"
    "    `permutation_importance` found",
    "X": "array-like or frame of shape (n_samples, n_features)",
    "plot_loss X": "as for `predict`, rows whose loss is drawn too; None: no rows\n"
    "    AdaBoost* keep no losses and need them: their loss is the share of wrong rows, or 1 - R².",
    "y": "array-like of shape (n_samples,), for points; None: no points",
    "plot_loss y": "as for `fit`, the targets of X",
    "plot_survival y": "as for `fit`",
    "output": "a class, or the number of an output; None: the only one, or the second of two\n"
    "    classes",
    "background": "array-like or frame; as of `shap_values`",
    "values": "what `shap_values(X)` gave, for all outputs; None: it is called",
    "top": "int >= 1, how many features, the largest first; None: all",
    "plot_shap_waterfall top": "int >= 1, how many features have a bar of their own, the largest;\n"
    "    None: all",
    "row": "the number of the row of X, from 0",
    "feature": "its number or name",
    "plot_effects feature": "its number or name; None: that of most importance",
    "features": "numbers or names of the two",
    "color_by": 'number or name of the feature that gives the colour; "auto": the one of the\n'
    "    largest mean SHAP interaction with `feature`, in the first 64 rows; None: no colour",
    "n_trees": "int >= 0, how many of a forest's first trees are drawn too; a boosted model shows\n"
    "    its predictions after each of its first n_trees rounds",
    "groups": "int, in how many groups of equal size the rows are parted by their predicted\n"
    "    risk, of several causes by the sum of risks; or array-like of shape (n_samples,), the\n"
    "    label of each row's group, such as a treatment",
    "n_groups": "int, in how many groups of equal size the training rows are parted by their\n"
    "    predicted effects, each row's by the trees that did not draw it",
    "legend": "the classes are named beside the axis, or numbers by a scale",
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
        begin, *rest = re.split(
            r"^(?=(?:Returns|Raises|Examples)\n--)", text, maxsplit=1, flags=re.M
        )
        function.__doc__ = "\n\n".join([begin.rstrip(), "\n".join(lines), *rest])
    return function
