"""Docstrings of estimators and their methods, made from tables: each text stands here once."""

import re
from functools import cache
from itertools import chain
from types import FunctionType
from typing import Any

ROWS = "array-like or frame of shape (n_samples, n_features)"
LABELS = "array-like of shape (n_samples,), default=None"
TARGETS = "array-like of shape (n_samples,) or (n_samples, n_outputs)"
PROMISE = """

The same data and `random_state` give the same model, bit for bit, on every backend and with any
number of threads."""
# fitted attributes: the type and the text of each; None: estimators of real numbers have it
ATTRIBUTES: dict[str, Any] = {
    "classes_": ("ndarray of shape (n_classes,), or a list with one for each output", "Labels."),
    "n_classes_": ("int, or a list with one for each output", "Number of classes."),
    "n_outputs_": ("int", "Number of outputs."),
    "n_features_in_": ("int", "Number of features."),
    "feature_names_in_": ("ndarray of shape (n_features_in_,)",
        "Names of the features, if X was a frame whose names are strings."),
    "is_categorical_": ("bool ndarray of shape (n_features_in_,), or None",
        "True for categorical features; None if no feature is categorical."),
    "feature_importances_": ("float64 ndarray of shape (n_features_in_,)",
        "Impurity importances, which add up to one."),
    "unbiased_feature_importances_": ("float64 ndarray of shape (n_features_in_,)",
        "With unbiased_importances, the means of `gpuforest.oob_impurity_importance`. A feature "
        "without information has 0 on average, whatever the number of its values."),
    "oob_score_": ("float", "Accuracy (or `oob_score`) over the rows that are out of some bag."),
    "oob_decision_function_": ("float64 ndarray of shape (n_samples, n_classes[, n_outputs])",
        "Class proportions by the trees that did not draw the row; NaN if every tree drew it."),
    "oob_prediction_": None,
    "oob_curve_": ("Bunch of `n_estimators`, int64, and `error`, float64 of the same shape",
        "Out-of-bag errors of growing numbers of trees, on a sample if there are many rows; with "
        'oob_score or n_estimators="auto".'),
    "oob_max_features_": ("Bunch of `max_features` and `error`",
        'With max_features="oob": the numbers that the fit tried, and their errors.'),
    "oob_parameters_": ("Bunch of `max_features`, `min_samples_leaf` and `error`",
        'With min_samples_leaf="oob": the pairs that the fit tried, and the loss of each (by the '
        "criterion, or the log loss) as it would be with infinitely many trees."),
    "oob_shrinkage_": ("Bunch of `shrinkage` and `error`",
        'With shrinkage="oob": the numbers that the fit tried, and the loss of each (by the '
        "criterion, or the log loss)."),
    "shrinkage_": ("float", 'Lambda of shrinkage; for "oob" the number that the fit chose.'),
    "n_estimators_": ("int", "Number of trees."),
    "max_features_": ("int", "Number of features that a split tries."),
    "min_samples_leaf_": ("int or float",
        'The fewest rows on each side of a split; for "oob" the number that the fit chose.'),
    "seed_": ("int", "The seed of all random draws; as `random_state` it gives the same model."),
    "digest_": ("str", "SHA-256 of the forest, in hexadecimal digits."),
    "criterion_": ("str", "The criterion that the trees grew by."),
    "backend_": ("str", "Name of the backend that grew the trees."),
    "forest_": ("gpuforest.core.forest.Forest", "The trees as arrays."),
    "estimators_": ("list of DecisionTreeClassifier", "The trees."),
    "kept_bytes_": ("int", "Bytes that are kept because of `keep_bytes`; 0: none."),
    "row_ids_": ("int64 or uint64 ndarray of shape (n_samples,), or None",
        "The ids that the fit was given; None: the rows' numbers."),
    "estimators_samples_": ("list of int32 ndarray", "The rows of each tree's bag."),
    "estimators_features_": ("list of int64 ndarray", "The features drawn for each tree."),
    "estimator_": ("estimator", "The unfitted estimator that each member is made from."),
    "expected_value_": ("float, or float64 ndarray of shape (n_outputs,)",
        "The prediction where no feature is known, see `shap_values`."),
    "tree_": ("sklearn.tree._tree.Tree", "The nodes as scikit-learn has them."),
    "ccp_alpha_": ("float", "The alpha that the tree was pruned at."),
    "pruning_curve_": ("Bunch of ndarrays of shape (n_subtrees,)",
        'If `ccp_alpha="cv"` or `prune` chose alpha: `ccp_alphas`; the `n_leaves` of the tree '
        "pruned at each, the largest tree first; `errors` on rows that did not grow the tree, and "
        "their `std_errors`."),
    "example": """>>> from gpuforest import {name}
>>> X, y = [[0], [1]] * 40, ["a", "b"] * 40
>>> {name}(random_state=0).fit(X, y).predict([[1]])
array(['b'], dtype='<U1')""",
    "unique_times_": ("float64 ndarray of shape (n_times,)",
        "The times of events in the training rows, or `n_times` quantiles of them."),
    "event_times_": ("float64 ndarray of shape (n_times,)", "The same times."),
}  # fmt: skip
OF_NUMBERS: dict[str, Any] = {
    "classes_": None, "n_classes_": None, "oob_decision_function_": None,
    "oob_score_": ("float", "R^2 (or `oob_score`) over the rows that are out of some bag."),
    "oob_prediction_": ("float64 ndarray of shape (n_samples[, n_outputs])",
        "Predictions by the trees that did not draw the row; NaN if every tree drew it."),
    "estimators_": ("list of DecisionTreeRegressor", "The trees."),
    "example": """>>> from gpuforest import {name}
>>> X, y = [[0], [1]] * 40, [2.0, 3.0] * 40
>>> {name}(random_state=0).fit(X, y).predict([[1]]).round(3)
array([3.])""",
}  # fmt: skip

# arguments of methods, by their names or by "method name"
ARGUMENTS: dict[str, tuple[str, str]] = {
    "fit X": (ROWS,
        "Real numbers, or categories (see `categorical_features`); NaN (null in a frame) means "
        "missing. NumPy arrays of any layout and real dtype; pandas, polars and other frames; "
        "arrays on a GPU (CuPy, torch, JAX, DLPack, `__cuda_array_interface__`, cuDF), which stay "
        "there; SciPy's sparse matrices and arrays, made dense by blocks; or `BinnedData`."),
    "fit y": (TARGETS,
        "Class labels of any kind that sorts, or real numbers; of survival forests a structured "
        "array of two fields, event and time. None only if X is `BinnedData` that hold y."),
    "fit sample_weight": (LABELS,
        "Weights >= 0. With bootstrap they are the chances of a row to be drawn, without it they "
        "weigh the row in every statistic. A row of weight zero has no effect, but out-of-bag "
        "predictions have a row for it."),
    "fit groups": (LABELS,
        "Labels of groups of rows that belong together, such as the rows of a patient. Bags draw "
        "whole groups, with equal chances; then weights weigh the rows, and `max_samples` counts "
        "groups. Without bags groups change target statistics alone. See docs/groups.md."),
    "fit blocks": (LABELS,
        "Labels of the rows' blocks of time, such as months, which sort in the order of time. "
        "They do not change the forest; a second set of trees, which grow from earlier blocks "
        "only, judges the rows. See docs/blocks.md."),
    "row_ids": ("array-like of int of shape (n_samples,), default=None",
        'With bootstrap="poisson", integers that tell rows apart: a row counts in each tree by its '
        "id, wherever it stands. None: the numbers of the rows. See docs/row_ids.md."),
    "keep_bytes": ("int or str, default=0",
        "What may be kept, at most, of rows, bins and histograms, so that `delete` and `influence` "
        "need no data, and `insert` only the new rows, in far less time; such as '1GB'. See "
        "docs/learning.md."),
    "fit treatment": ("array-like of shape (n_samples,)",
        "What the effect is of: 0 or 1, or real numbers."),
    "fit instrument": (LABELS,
        "Real numbers that move the treatment, and the outcome by nothing else."),
    "alpha": ("float, default=0.05", "One minus the level of the intervals."),
    "target": ('{"all", "treated", "control", "overlap"}, default="all"',
        'The rows of the average; "overlap": all, weighed by how much the treatment varies.'),
    "A": ("array-like or frame of shape (n_samples, n_columns), default=None",
        "Numbers of the training rows; None: a constant alone."),
    "X": (ROWS, ""),
    "y": (TARGETS, "The true targets."),
    "sample_weight": (LABELS, "Weights of the rows."),
    "input_features": ("array-like of str, default=None", "Names of the features in training."),
    "check_input": ("bool", "Ignored: rows are always checked, because kernels trust them."),
    "background": ("array-like or frame of shape (n_background, n_features)",
        "Features that are not known have the values of its rows, and the SHAP values are means "
        'over these ("interventional"). None: at a split by a feature that is not known a row '
        'goes both ways, with the shares of the training rows ("path-dependent").'),
    "aggregate_leaves_first": ("bool, default=True",
        "False: the mean over the trees of the result for each tree's leaf."),
    "oob_score": ("bool, default=False",
        "Take only trees that did not draw a row; X holds the training rows in their order. NaN, "
        "with a warning, for rows that every tree drew."),
    "indices": ("array-like of int of shape (n_samples,), default=None",
        "With oob_score, the numbers of the training rows that X holds; -1: not a training row."),
    "duplicates": ("list of lists of int, default=None",
        "With oob_score, sets of equal training rows: a tree that drew one row of a set counts "
        "as if it had drawn all of them."),
    "init_score": ("array-like of shape (n_samples,) or (n_samples, n_classes), default=None",
        "Raw predictions before the first round; a model that was fitted with some needs them, and "
        "no other takes them."),
    "exposure": (LABELS, "What predictions are multiplied by."),
    "coverage": ("float, default=0.9",
        "The share of new rows, of the kind of the training rows, that should be covered."),
    "return_array": ("bool, default=False",
        "Return values at `unique_times_` instead of functions."),
    "cause": ("int, default=1",
        "The cause whose events count; rows with an event by another cause count as censored."),
    "report X": (f"{ROWS}, default=None",
        "Rows that were not in the training; None: the report is about the model alone."),
    "report y": (f"{TARGETS}, default=None", "Their targets; None: the report has no scores."),
    "report path": ("str or path, default=None",
        "The file to write, which is replaced as a whole or not at all."),
    "save path": ("str or path",
        "A file there is replaced as a whole, and never left half written; its mode stays. A pipe "
        "or a device is written into, and a symbolic link is followed."),
    "proximity Y": ("array-like or frame of shape (n_others, n_features); None: X", ""),
    "oob": ("bool, default=False",
        "For training rows: count only the trees that drew neither row, because rows of a bag are "
        "nearer to each other and further from other rows."),
    "prune method": ('{"cost_complexity", "reduced_error"}, default="cost_complexity"',
        '"cost_complexity" takes one of the nested subtrees by its error on these rows, and sets '
        '`ccp_alpha_` and `pruning_curve_`. "reduced_error" (Quinlan 1987) makes a node a leaf, '
        "from the bottom up, where the loss of these rows does not rise. The error is the share of "
        "wrong classes, the mean squared or absolute error, or the mean Poisson deviance."),
    "decay_rate": ("float, default=0.0",
        "From 0 to 1: the value of a leaf is decay_rate times its old value, and 1 - decay_rate "
        "times that of the new rows, as in LightGBM."),
    "index": ("slice, or array-like of int or bool", "The trees that stay."),
    "rule": ('{"min", "one_se"}, default="min"', 'For "cost_complexity": see `ccp_rule`.'),
    "AdaBoost.fit sample_weight": (LABELS,
        "Weights >= 0 of the first round; None: all are equal. A row of weight zero has no "
        "effect."),
    "UnsupervisedForest.fit y": ("ignored", ""),
    "SurvivalForest.score y": ("as in `fit`", ""),
    "SurvivalForest.score sample_weight": ("None, because concordance has no weights", ""),
    "quantile_ranks y": (TARGETS, ""),
    "fit_transform y": ("ignored", ""),
    "sparse_pickle": ("ignored, because pickles hold no lists of leaves", ""),
    "k": ("int", ""),
    "neighbours Y": ("array-like or frame of shape (n_others, n_features), such as the training "
        "data; None: the other rows of X", ""),
    "score quantiles": ('float or "mean", default=None',
        "The predicted quantile; None: `default_quantiles`."),
    "kind": ('{"rank", "weak", "strict", "mean"}, default="rank"',
        '"weak": the weight of targets up to y; "strict": of targets below y; "mean": the mean of '
        'both; "rank": the mean and, if a target equals y, half the mean weight of a draw, which '
        "gives the mean rank of equal targets."),
    "max_proximities": ("int, default=None",
        "Number of training rows to keep: the highest counts, the first rows of equal counts."),
    "return_sorted": ("bool, default=True",
        "Highest counts first, of equal counts the first row; False: rows in their order."),
}  # fmt: skip
CURVES = (
    "ndarray of n_samples functions of time, with the attributes x and y; or float64 ndarray of "
    "shape (n_samples, n_times)"
)
SHARES = (
    "float64 array of shape (n_samples, n_classes), in the order of `classes_`, or a list with one "
    "for each of several outputs; on a GPU where X is on one"
)
# results of methods, by their names or their classes and names
RETURNS = {
    "fit": "self", "score": "float", "predict_proba": SHARES, "predict_log_proba": SHARES,
    "score_samples": "float64 ndarray of shape (n_samples,)",
    "predict_survival_function": CURVES, "predict_cumulative_hazard_function": CURVES,
    "predict_cumulative_incidence_function": CURVES,
    "shap_values": "float64 ndarray of shape (n_samples, n_features), or (n_samples, n_features, "
        "n_outputs) if the prediction has several numbers, such as the classes' probabilities; "
        "equal to the values of shap's TreeExplainer",
    "shap_interaction_values": "float64 ndarray of shape (n_samples, n_features, n_features), or "
        "(n_samples, n_features, n_features, n_outputs) if the prediction has several numbers",
    "expected_value": "float, or float64 ndarray of shape (n_outputs,) if predictions have several "
        "numbers",
    "to_shap": "shap.Explanation", "report": "str, the HTML; None where it is written to a file",
    "proximity": "float64 csr_array of shape (n_samples, n_others), from 0 to 1; no zeros are "
        "stored",
    "predict_set": "bool ndarray of shape (n_samples, n_classes), in the order of `classes_`, or a "
        "list with one for each of several outputs",
    "predict_interval": "float64 ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2): "
        "lower and upper ends; infinite if fewer than coverage / (1 - coverage) rows were out of "
        "some bag",
    "quantile_ranks": "float64 ndarray of shape (n_samples,) or (n_samples, n_outputs), from 0 to "
        "1",
    "refit": "self", "add_rows": "self", "keep_trees": "self", "prune_trees": "self",
    "prune": "self, which has another tree now", "fit_transform": "as `transform`",
    "Classifier.predict": "Array of shape (n_samples,) or (n_samples, n_outputs), of the dtype of "
        "`classes_` and of the kind of X: where X is on a GPU, a result on it; but strings and "
        "several outputs are in a NumPy array always",
    "HistGradientBoostingClassifier.predict": "array of shape (n_samples,)",
    "AdaBoostClassifier.predict": "array of shape (n_samples,), as of "
        "`RandomForestClassifier.predict`",
    "QuantileForest.predict": "float64 array of shape (n_samples,), (n_samples, n_quantiles), "
        "(n_samples, n_outputs) or (n_samples, n_outputs, n_quantiles); on a GPU where X is on one",
    "SurvivalForest.predict": "float64 array of shape (n_samples,), or (n_samples, n_causes) with "
        "several causes, higher where the event comes sooner; on a GPU where X is on one",
    "transform": "float64 csr_matrix (or array) of shape (n_samples, number of all leaves)",
    "BaseForest.apply": "int64 array of shape (n_samples, n_estimators), numbers of nodes in their "
        "tree; on a GPU where X is on one",
    "SingleTree.decision_path": "sparse int64 matrix of shape (n_samples, n_nodes), ones where a "
        "row passes a node",
}  # fmt: skip
AS_SHAP = {"ValueError, TypeError": "As of `shap_values`."}
UNJUDGED = {
    "ValueError": "The forest was fitted without oob_score=True, or grows without bootstrap."
}
NEW_ROWS = {
    "ValueError": "X, y or weights that `fit` would refuse; an unknown class, or numbers too far "
    "from those of the fit; a model whose leaves are no sums of rows: see docs/learning.md."
}
NO_BACKEND = "The backend cannot run on this machine, or its GPU has too little memory."
# errors of methods, by their names or their classes and names
RAISES = {
    "shap_values": {
        "ValueError": "A forest that splits by combinations of features; an `AdaBoostRegressor`; a "
        "background without rows, or of other features.",
        "TypeError": "An ensemble of other estimators than gpuforest's trees, or one without "
        "predictions.",
    },
    "shap_interaction_values": AS_SHAP, "expected_value": AS_SHAP,
    "to_shap": {"ImportError": "The package shap is not installed."} | AS_SHAP,
    "predict_set": UNJUDGED, "predict_interval": UNJUDGED,
    "report": {
        "ValueError": "Rows that `predict` refuses, y without X, a wrong length of y, no known "
        "class in y.",
        "TypeError": "An ensemble of other estimators than gpuforest's trees.",
        "OSError": "The file cannot be written.",
    },
    "save": {
        "ValueError": "Class labels that are neither numbers nor strings; a subclass of "
        "gpuforest's estimators, which `load` could not make: pickle it.",
        "OSError": "The file cannot be written. The estimator can be saved elsewhere.",
    },
    "prune": {
        "ValueError": "An unknown method or rule; X, y or weights that `fit` would refuse, or of "
        "another number of outputs.",
    },
    "refit": NEW_ROWS, "add_rows": NEW_ROWS,
    "keep_trees": {"IndexError": "A tree that there is not.", "ValueError": "No tree."},
    "prune_trees": {"ValueError": "X, y or weights that `fit` would refuse; an unknown class."},
    "BorutaSelector.fit": {
        "TypeError": "Another estimator than a forest of gpuforest.",
        "ValueError": "A parameter out of its range; what the forest refuses; importances by rows "
        "out of bag of a forest without bags.",
    },
    "HistGradientBoosting.fit": {
        "ValueError": "A parameter out of its range; a loss that does not allow y; X or y that do "
        "not fit.",
    },
    "ByIds.fit": {
        "ValueError": "A parameter out of its range; infinities, complex numbers or no numbers in "
        "X; a wrong length; missing values in y, groups or blocks; negative or no weights; other "
        "row_ids than integers that differ.",
        "BackendError": NO_BACKEND,
    },
    "BaseTrees.fit": {
        "ValueError": "A parameter out of its range; infinities, complex numbers or no numbers in "
        "X; a wrong length; missing values in y, groups or blocks; negative or no weights.",
        "BackendError": NO_BACKEND,
    },
    "AdaBoost.fit": {
        "ValueError": "As the fit of a forest; several outputs; a first tree no better than "
        "chance.",
        "BackendError": NO_BACKEND,
    },
    "Classifier.predict": {
        "ValueError": "Other features than in training, infinities, no numbers; X on another GPU "
        "than the current one.",
    },
    "QuantileForest.predict": {
        "ValueError": "What other estimators refuse; quantiles out of range; oob_score without "
        "bootstrap.",
    },
    "proximity": {
        "ValueError": "oob=True with Y, without bags, with other data than in training, or for a "
        "`Bagging*` from a file, which does not know its bags.",
    },
}  # fmt: skip
ORDER = ("Parameters", "Attributes", "Returns", "Raises", "Notes", "References", "Examples")
ENTRY = re.compile(r"^([*\w][*\w, ]*) : ")
_documented: set[FunctionType] = set()


def describe(cls: Any, parameters: Any, attributes: Any, example: str | None) -> None:
    """Add the sections Parameters and Attributes (name, type, text) to the docstring of a class,
    and describe the arguments of its methods."""
    if cls.__doc__:  # python -OO has none
        above, sections = _parts(cls.__doc__)
        for title, rows in ("Parameters", parameters), ("Attributes", attributes):
            sections[title] = "\n".join(entry(*row) for row in rows)
        if example:
            sections.setdefault("Examples", example.format(name=cls.__name__))
        cls.__doc__ = above + PROMISE + _joined(sections)
    ours = [base for base in cls.__mro__ if base.__module__.startswith("gpuforest.")]
    for name, member in chain.from_iterable(vars(base).items() for base in ours):
        public = isinstance(member, FunctionType) and name[0] != "_" and member.__doc__
        if public and member not in _documented:
            _documented.add(member)
            member.__doc__ = with_arguments(member, name)


def with_arguments(method: Any, name: str) -> str:
    """The docstring of a method with the sections that the tables have for its name."""
    above, sections = _parts(method.__doc__)
    code, ways = getattr(method, "__wrapped__", method).__code__, (method.__qualname__, name)
    result = next((RETURNS[way] for way in ways if way in RETURNS), "")
    errors = next((RAISES[way] for way in ways if way in RAISES), {})
    sections.setdefault("Returns", _wrapped(result, ""))
    sections.setdefault("Raises", "\n".join(f"{e}\n{_wrapped(t)}" for e, t in errors.items()))
    entries, made = dict[str, str](), dict[str, None]()
    for lines in re.split(r"\n(?! )", sections.get("Parameters", "")):
        names = ENTRY.match(lines)
        entries |= dict.fromkeys((names[1] if names else lines).split(", "), lines)
    for argument in code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]:
        keys = *(f"{own} {argument}" for own in ways), argument
        row = next((ARGUMENTS[key] for key in keys if key in ARGUMENTS), None)
        if argument in entries or row:
            made[entries.get(argument) or entry(argument, *row or ("", ""))] = None
    sections["Parameters"] = "\n".join(filter(None, made | dict.fromkeys(entries.values())))
    return above + _joined(sections)


def _parts(doc: str) -> tuple[str, dict[str, str]]:
    """A docstring without indentation: up to its first section, and its sections."""
    indented = re.search(r"\n *(?=\S)", doc)
    text = doc.replace(indented[0], "\n").rstrip() if indented else doc
    above, *own = re.split(r"\n\n(\w+)\n-+\n", text)
    return above, dict(zip(own[::2], own[1::2], strict=True))


def _joined(sections: dict[str, str]) -> str:
    found = [(title, sections[title]) for title in ORDER if sections.get(title)]
    return "".join(f"\n\n{title}\n{'-' * len(title)}\n{body}" for title, body in found)


def entry(name: str, types: str, text: str) -> str:
    """The lines of a parameter or an attribute in a docstring."""
    return f"{name} : {types}\n{_wrapped(text)}" if text else f"{name} : {types}"


@cache  # because many classes have the same text
def _wrapped(text: str, indentation: str = "    ") -> str:
    """The text in lines of at most 96 characters; `textwrap` makes imports slower."""
    lines = [indentation]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) > 96:
            lines[-1] = lines[-1].rstrip()
            lines.append(indentation)
        lines[-1] += f"{word} "
    return "\n".join(lines).rstrip()
