"""A fitted model as plain tables, from which whole models are written for other runtimes.

A row of numbers walks down each tree to a leaf, and each leaf has a row of `values`. They are
added up tree after tree, in this order: sums of rounded numbers are equal to the last bit in no
other. Then they are divided, or a link function makes probabilities of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.model import Model, model_of
from gpuforest.data import arrays, validation
from gpuforest.explain import paths
from gpuforest.export.views import Splits, names_of


class Tables(Splits):
    """A model's trees, with M nodes in all, and how the values of leaves become predictions.

    kind : the name of the estimator's class
    names : the names of the features
    categories : those of the categorical features. Their values are codes: the position of a
        category, their number for any other value, NaN for a missing one
    offsets : i64[T + 1], tree t has the nodes offsets[t] .. offsets[t + 1] - 1
    feature, threshold, missing_left : see `Splits`
    tree : i64[M]
    left : i64[M], the node to the left, of all nodes; the one to the right is the next
    members : by split by categories, the codes that go left, ascending; a split that sends only
        missing values left has the threshold -1 instead
    sums : by split by a sum of features, which C alone has: see `views.Sum`
    leaf : i64[M], the row of `values` of leaves; 0 for splits
    values : f64[V, W], distinct rows
    baseline : f64[K] or None, what the sums begin with
    divisor : float or None, what they are divided by
    priors : f64[K] or None, the factors of these means, which are then divided by their sum
    link : "identity", "logistic", "softmax", "exp", "votes" of AdaBoost, or "isolation": minus two
        to the power of minus sum / `length`, the mean length of a path
    classes : the labels of each output; (): it predicts numbers
    n_sums : K, numbers that leaves add up to
    each_adds_one : True if tree t adds to sum t % K only (W = 1); False if each adds to all K
    n_values : numbers in a prediction: probabilities of all classes of all outputs, or means
    """

    def __init__(self, estimator: Any, form: str, names: Sequence[str] | None = None) -> None:
        """The tables of a fitted estimator; `form` is what is written, for messages."""
        model = _exported(estimator, form)
        self.kind, forest = model.kind, model.forest
        super().__init__(forest)
        names = model.feature_names if names is None else names
        self.names = names_of(forest, names, "model")
        self.edges, self.offsets = forest.edges, forest.tree_offsets
        self.categories = forest.edges.categories
        self.tree = np.repeat(np.arange(forest.n_trees), np.diff(self.offsets))
        leaves = self.feature < 0
        self.left = np.where(leaves, 0, self.offsets[self.tree] + self.child)
        if self.sums and form != "C":
            raise ValueError(
                f"splits by sums of features are not written as {form}: use export_c, train with "
                "feature_combinations=None, or use gpuforest.load where the model runs"
            )
        self.members = {n: np.flatnonzero(codes) for n, codes in self.sets.items() if codes.any()}
        self.threshold[[*(self.sets.keys() - self.members)]] = -1.0
        self.threshold[leaves] = 0.0
        rows, values = np.where(leaves, self.child, 0), forest.values
        self.baseline = forest.baseline
        coding: Any = forest.coding
        self.each_adds_one = self.baseline is not None and not coding.is_vector
        if self.each_adds_one:  # a leaf of tree t adds to sum t % K alone
            column = np.zeros(len(values), np.int64)
            column[rows[leaves]] = self.tree[leaves] % values.shape[1]
            values = values[np.arange(len(values)), column][:, None]
        distinct, which = np.unique(values, axis=0, return_inverse=True)
        self.values = np.ascontiguousarray(distinct)
        self.leaf = np.where(leaves, which.reshape(-1)[rows], 0)
        self.length = 1.0
        if model.task == "anomalies":  # what the lengths of paths are compared with
            self.length = float(paths.average_path_length(forest.node_sums(0, 1)[0, 0]))
        if not self.length:  # trees of one row: no path is longer than others
            self.values, self.length = np.ones_like(self.values), 1.0
        self.classes, self.priors = forest.coding.labels, forest.coding.priors
        self.link = _link(model)
        self.divisor = None if forest.combine == "sum" else float(forest.n_trees)
        if forest.tree_weights is not None:
            self.divisor = math.fsum(forest.tree_weights)
        self.n_trees, self.n_features = forest.n_trees, len(self.names)
        self.n_sums = forest.coding.n_values if self.each_adds_one else self.values.shape[1]
        self.n_values = sum(map(len, self.classes)) or self.n_sums


def is_text(categories: tuple[Any, ...]) -> bool:
    """Whether the categories of a feature are strings."""
    return any(isinstance(category, str) for category in categories)


def category_codes(estimator: Any, X: Any) -> np.ndarray:
    """The rows of X as numbers that exported models take: categories become codes or mean targets.

    Parameters
    ----------
    estimator : fitted estimator of gpuforest
    X : array-like or frame of shape (n_samples, n_features), as `predict` takes it

    Returns
    -------
    float32 or float64 array of shape (n_samples, n_features): for a categorical feature the
    position of the category among the categories of the fit, their number for any other value, NaN
    for a missing value, or the category's mean target if the fit split by that

    Raises
    ------
    ValueError : not fitted, or X is refused by `predict`
    TypeError : no estimator of gpuforest

    Examples
    --------
    >>> import numpy as np
    >>> from gpuforest import DecisionTreeClassifier, category_codes
    >>> X = np.array([["red", 1.0], ["blue", 2.0], ["red", 3.0]], object)
    >>> tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, [0, 1, 0])
    >>> category_codes(tree, np.array([["red", 5.0], ["green", 6.0]], object)).tolist()
    [[1.0, 5.0], [2.0, 6.0]]
    """
    model_of(estimator, "has no categories of gpuforest's")
    return np.asarray(arrays.to_host(validation.check_table(estimator, X, NumpyBackend())))


def reader_of_codes(estimator: Any) -> Any:
    """A copy of a fitted estimator that takes tables as `category_codes` returns them."""
    model, forest = copy(estimator), estimator.forest_
    model.forest_ = replace(forest, edges=replace(forest.edges, categories={}, statistics={}))
    for name in ("feature_names_in_", "estimators_"):  # trees are made again, of this forest
        model.__dict__.pop(name, None)
    return model


def _exported(estimator: Any, form: str) -> Model:
    """The model of an estimator that can be written whole."""
    name = type(estimator).__name__
    if getattr(estimator, "_fitted_by_sklearn", False):
        raise ValueError(
            f"an ensemble of {type(estimator.estimator).__name__} was fitted by scikit-learn: "
            f"only trees of gpuforest's are written as {form}"
        )
    refusal = (
        f"is not written as {form}: pass a fitted classifier or regressor of gpuforest "
        "(gpuforest.from_sklearn converts scikit-learn's)"
    )
    model = model_of(estimator, refusal)
    if model.task in ("survival", "embedding"):
        raise TypeError(f"a {name} {refusal}")
    if model.predicts_quantiles:
        raise TypeError(
            f"a {name} is not written as {form}: quantiles need the targets of all training rows. "
            f"For means write a {name.replace('Quantile', '')}, which grows the same trees from "
            "the same parameters and random_state; or use gpuforest.load where the model runs"
        )
    if model.task == "anomalies" and form not in ("ONNX", "C"):
        raise TypeError(
            f"a {name} is not written as {form}: use to_onnx, export_c or to_sklearn, or "
            "gpuforest.load where the model runs"
        )
    if why := getattr(model.forest.coding, "lacking", None):
        raise ValueError(
            f"a {name} that {why} is not written as {form}: use gpuforest.load where the model runs"
        )
    if model.forest.combine == "median":
        raise ValueError(
            f"a {name} predicts a weighted median of its trees, which {form} lacks: use a "
            "RandomForestRegressor, or gpuforest.load where the model runs"
        )
    for label in (label for labels in model.forest.coding.labels for label in labels.tolist()):
        written = isinstance(label, str) and form in ("C", "ONNX")  # others know classes by number
        if written and any("\ud800" <= c <= "\udfff" for c in label):
            raise ValueError(
                f"the class {label!r} has a lone surrogate, which is no character of Unicode, and "
                f"{form} holds classes as UTF-8: train with other labels"
            )
    return model


def _link(model: Model) -> str:
    """How sums become predictions."""
    forest: Any = model.forest
    if forest.tree_weights is not None:
        return "votes"
    if model.task == "anomalies":
        return "isolation"
    if forest.baseline is None:
        return "identity"
    loss = forest.coding.loss
    if loss.is_classes:
        return "softmax" if loss.n_raw > 1 else "logistic"
    return "exp" if loss.is_log else "identity"
