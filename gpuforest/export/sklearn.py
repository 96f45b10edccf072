"""Fitted models of scikit-learn as ours, and ours as scikit-learn's. Rows of float32, which
scikit-learn's trees look at, reach the same leaves, with missing values too."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from importlib import import_module
from numbers import Integral
from typing import Any

import array_api_compat.numpy as xp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common import dtypes, hashing, imports
from gpuforest.core.bins import BinEdges
from gpuforest.core.criteria import CRITERIA, Criterion
from gpuforest.core.forest import Forest, check_forest
from gpuforest.core.model import model_of
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, pack_splits
from gpuforest.core.rules import Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.explain.paths import average_path_length
from gpuforest.export.views import TreeView
from gpuforest.growing import assemble, bags, targets

# where scikit-learn defines what has the same name there and here: users put ours into the modules
# that it is imported from
HOMES = {
    "DecisionTreeClassifier": "sklearn.tree._classes",
    "DecisionTreeRegressor": "sklearn.tree._classes",
    "ExtraTreesClassifier": "sklearn.ensemble._forest",
    "ExtraTreesRegressor": "sklearn.ensemble._forest",
    "RandomForestClassifier": "sklearn.ensemble._forest",
    "RandomForestRegressor": "sklearn.ensemble._forest",
}
NOT_CONVERTED = f"is not converted: only {', '.join(HOMES)} are"
BOOSTING = ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")

BY_ERROR = ("n_estimators", "max_features", "min_samples_leaf")  # may be chosen by a fit
OF_FITS = ("n_features_in_", "n_outputs_", "feature_names_in_")  # set by every fit
sklearn_tree = imports.deferred("gpuforest.export.sklearn_tree", "sklearn_tree")
BAG_UNKNOWN = "none: gpuforest drew the rows of this tree's bag, and they are not kept in files"


class BagState(np.random.RandomState):
    """The seed of a tree of a converted forest, from which scikit-learn draws the rows of the bag
    again. A pickle has `BAG_UNKNOWN` instead, so that it can be read without gpuforest."""

    def __init__(self, sampling: Sampling, seed: int, tree: int) -> None:
        super().__init__(_seed_there(seed, tree))
        self._drawn_by = sampling, seed, tree

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """The rows of the bag, if as many rows are to be drawn from as the forest was fitted to."""
        sampling, seed, tree = self._drawn_by
        if (low, high) == (0, sampling.n_rows) and size is not None:
            return bags.drawn_rows(sampling, seed, tree, NumpyBackend()).astype(dtype)
        return super().randint(low, high, size, dtype)

    def __deepcopy__(self, memo: Any) -> BagState:
        return self

    def __reduce__(self) -> Any:
        return str, (BAG_UNKNOWN,)


def _write_bags(skops_io: Any) -> None:
    """skops writes states of random numbers by rules of its own: by them too a bag is unknown."""
    utils = import_module("skops.io._utils")
    utils._get_state.register(BagState)(lambda _, context: utils.get_state(BAG_UNKNOWN, context))


imports.after_import("skops.io", _write_bags)


def _seed_there(seed: int, tree: int) -> int:
    """A seed that scikit-learn takes, another one for each tree."""
    return int(hashing.tree_keys(np, seed, tree, tree + 1)[0]) % 2**31


def to_sklearn(estimator: Any) -> Any:
    """A fitted estimator as the fitted one of scikit-learn of the same name.

    Its predictions of float32 data are equal, and nodes keep their numbers. It has the parameters
    that both know, and "gini" for the criterion "misclassification". Weights and impurities are
    those of `TreeView`. Out-of-bag scores come along, and `estimators_samples_` are the rows that
    trees grew from, except in pickles. A ValueError: it has categorical features. A TypeError: its
    class is not in `HOMES`.
    """
    model = model_of(estimator, NOT_CONVERTED)
    name, forest, facts = model.kind, model.forest, model.facts
    if name not in HOMES:
        raise TypeError(f"a {name} {NOT_CONVERTED}")
    _refuse_unlike(forest)
    forest.coding.refuse_priors("scikit-learn's forests")
    converted = with_known(getattr(import_module(HOMES[name]), name), model.parameters)
    criterion = CRITERIA[CRITERIA[facts["criterion_"]].sklearn or facts["criterion_"]]
    found = {p: facts[f"{p}_"] for p in ("ccp_alpha", *BY_ERROR) if f"{p}_" in facts}
    converted.set_params(criterion=criterion.name, **found)
    measured = replace(model, criterion=criterion.of_outputs(forest.coding.n_outputs))
    trees = [sklearn_tree(TreeView(measured, t)) for t in range(forest.n_trees)]
    copy_to(converted, facts, *OF_FITS, "classes_", "n_classes_")
    if HOMES[name].startswith("sklearn.tree"):
        converted.tree_ = trees[0]
        return converted
    converted.estimator_ = converted.estimator  # what its trees are made from
    converted.estimators_ = [_sklearn_member(converted, tree) for tree in trees]
    copy_to(converted, facts, "oob_score_", "oob_decision_function_", "oob_prediction_")
    sampling, seed = facts.get("_sampling_"), facts["seed_"]
    bootstrap = model.parameters.get("bootstrap", False)
    for t, tree in enumerate(converted.estimators_):
        tree.random_state = _seed_there(seed, t) if not bootstrap else BAG_UNKNOWN
        if bootstrap and sampling is not None:  # scikit-learn draws the bag again
            tree.random_state = BagState(sampling, seed, t)
    if sampling is not None:
        converted._n_samples, converted._sample_weight = sampling.n_rows, None
        converted._n_samples_bootstrap = sampling.n_draws or None
    return converted


def with_known(kind: Any, parameters: dict[str, Any]) -> Any:
    """An estimator of a class, with the parameters that it knows."""
    names = kind._get_param_names()
    params = {k: v for k, v in parameters.items() if k in names}
    if isinstance(params.get("random_state"), Integral):
        params["random_state"] = int(params["random_state"]) % 2**32  # scikit-learn takes no more
    if params.get("class_weight") == "balanced_bootstrap":
        params["class_weight"] = "balanced_subsample"  # the nearest that it has
    if "bootstrap" in params:
        params["bootstrap"] = bool(params["bootstrap"])  # which draws a row about as often
    if isinstance(params.get("max_samples"), dict):
        params["max_samples"] = None
    return kind(**params)


def copy_to(estimator: Any, facts: dict[str, Any], *names: str) -> None:
    """Set the attributes of these names that are among the facts."""
    for name in facts.keys() & {*names}:
        setattr(estimator, name, facts[name])


def _sklearn_member(forest: Any, tree: Any) -> Any:
    """A tree of a fitted forest of scikit-learn; its classes are their numbers, as there."""
    converted = copy(forest.estimator_)
    vars(converted).update({p: getattr(forest, p) for p in forest.estimator_params})
    converted.n_features_in_, converted.n_outputs_ = tree.n_features, tree.n_outputs
    if hasattr(forest, "classes_"):
        converted.n_classes_ = forest.n_classes_
        several = isinstance(converted.n_classes_, list)
        numbers = [np.arange(n, dtype=np.float64) for n in np.atleast_1d(converted.n_classes_)]
        converted.classes_ = numbers if several else numbers[0]
    converted.tree_ = tree
    return converted


def _refuse_unlike(forest: Forest) -> None:
    """Raise a ValueError for splits that scikit-learn's trees do not have."""
    if forest.edges.known:
        lacks = "categorical features: train with numbers in their place (OneHotEncoder, "
        lacks += "OrdinalEncoder)"
    elif forest.coordinates is not None:
        lacks = "splits by combinations of features: train with feature_combinations=None"
    else:
        return
    raise ValueError(f"scikit-learn's trees have no {lacks} to convert the model")


def adaboost_to_sklearn(ensemble: Any) -> Any:
    """A fitted AdaBoost estimator as the fitted one of scikit-learn of the same name.

    Predictions of float32 data are equal up to rounding, except classes of equal votes. A
    ValueError: it has categorical features, or boosts other estimators than gpuforest's trees.
    """
    check_is_fitted(ensemble)
    if ensemble._fitted_by_sklearn:
        raise ValueError(
            f"an ensemble of {type(ensemble.estimator).__name__} was fitted by scikit-learn: "
            "only trees of gpuforest's are converted"
        )
    home = import_module("sklearn.ensemble._weight_boosting")
    model, tree = ensemble._model(), ensemble.estimator
    converted = with_known(getattr(home, model.kind), model.parameters)
    converted.estimator = None if tree is None else _unfitted(tree)
    converted.estimator_ = _unfitted(ensemble.estimator_)
    converted.estimators_ = [tree.to_sklearn() for tree in ensemble.estimators_]
    names = "estimator_weights_", "estimator_errors_", "classes_", "n_classes_", *OF_FITS[::2]
    copy_to(converted, model.facts, *names)
    return converted


def _unfitted(tree: Any) -> Any:
    """scikit-learn's tree with the parameters that both know."""
    name = type(tree).__name__
    converted = with_known(getattr(import_module(HOMES[name]), name), tree.get_params(deep=False))
    return converted.set_params(criterion=CRITERIA[tree.criterion].sklearn or tree.criterion)


def isolation_to_sklearn(estimator: Any) -> Any:
    """A fitted isolation forest as the fitted one of scikit-learn.

    Scores of float32 data are equal up to rounding. Trees have all features, whatever
    `max_features`. The rows that they grew from are unknown: `estimators_samples_` is an error. A
    ValueError: it has categorical features.
    """
    model = replace(model_of(estimator, NOT_CONVERTED), criterion=CRITERIA["squared_error"])
    forest = model.forest
    _refuse_unlike(forest)
    home = import_module("sklearn.ensemble._iforest")
    converted = with_known(home.IsolationForest, model.parameters)
    copy_to(converted, model.facts, "n_features_in_", "feature_names_in_", "offset_")
    converted.max_samples_ = int(forest.node_sums(0, 1)[0, 0])
    n_trees, features = forest.n_trees, np.arange(forest.edges.n_features)
    converted.estimator_ = import_module("sklearn.tree._classes").ExtraTreeRegressor(max_features=1)
    trees = [sklearn_tree(TreeView(model, t)) for t in range(n_trees)]
    converted.estimators_ = [_sklearn_member(converted, tree) for tree in trees]
    vars(converted).update(
        estimators_features_=[features.copy() for _ in range(n_trees)],
        _max_features=len(features),
        _max_samples=converted.max_samples_,
        _seeds=[BAG_UNKNOWN] * n_trees,
        _n_samples=0,
        _sample_weight=None,
        _average_path_length_per_tree=[average_path_length(t.n_node_samples) for t in trees],
        _decision_path_lengths=[tree.compute_node_depths() for tree in trees],
    )
    return converted


def forest_of(model: Any) -> Forest:
    """The trees of a fitted model."""
    trees = [member.tree_ for member in getattr(model, "estimators_", [model])]
    criterion = CRITERIA[model.criterion]
    nodes, offsets, edges, orders = packed_trees(trees)
    names = "weighted_n_node_samples", "impurity", "value"
    weight, impurity, value = (of_leaves(trees, orders, name) for name in names)
    if min(weights.min() for weights in weight) <= 0:
        raise ValueError("the model has leaves without weight: train it with weights above 0")
    spread = None
    if hasattr(model, "classes_"):
        coding, sums = _classes(weight, value, model.classes_)
    else:
        coding, sums = _moments(weight, value, criterion)
        # scikit-learn's may lie below zero by rounding
        spread = np.maximum(np.concatenate(impurity), 0.0)
    nodes, sums = assemble.in_order(nodes, [sums], coding)
    forest = Forest(nodes, offsets, sums, edges, coding, seed_of(model), spread)
    if criterion.medians:
        forest = _with_medians(forest, trees, orders, criterion)
    check_forest(forest)
    return forest


def packed_trees(trees: list[Any]) -> tuple[np.ndarray, np.ndarray, BinEdges, list[np.ndarray]]:
    """Packed nodes of trees, where leaves point at row 0, the offsets of trees, the edges, and of
    each tree its nodes there in the order of nodes.py."""
    orders = [_order(tree) for tree in trees]
    names = "feature", "threshold", "missing_go_to_left"
    columns = [np.concatenate(of_nodes(trees, orders, name)) for name in names]
    split = np.flatnonzero(columns[0] >= 0)
    feature, threshold, missing_left = (column[split] for column in columns)
    edges, bin = _edges(trees[0].n_features, feature, threshold)
    nodes = np.full(len(columns[0]), LEAF_WORD, dtypes.NODE)
    pairs = zip(orders, of_nodes(trees, orders, "children_left"), strict=True)
    child = np.concatenate([np.argsort(order)[left] for order, left in pairs])[split]
    words = pack_splits(xp, feature, bin, missing_left != 0)
    nodes[split] = words + (child.astype(dtypes.NODE) << np.uint64(CHILD_SHIFT))
    offsets = np.cumsum([0, *map(len, orders)]).astype(dtypes.OFFSET)
    return nodes, offsets, edges, orders


def of_nodes(trees: list[Any], orders: list[np.ndarray], name: str) -> list[np.ndarray]:
    """An attribute of the nodes of each tree, in the order of ours."""
    return [getattr(tree, name)[order] for tree, order in zip(trees, orders, strict=True)]


def of_leaves(trees: list[Any], orders: list[np.ndarray], name: str) -> list[np.ndarray]:
    """The same of the leaves alone."""
    pairs = zip(*(of_nodes(trees, orders, n) for n in (name, "children_left")), strict=True)
    return [values[left < 0] for values, left in pairs]


def _with_medians(
    forest: Forest, trees: list[Any], orders: list[np.ndarray], criterion: Criterion
) -> Forest:
    """The forest with what scikit-learn's trees know of all nodes, not of the leaves alone."""
    value, impurity = (np.concatenate(of_nodes(trees, orders, n)) for n in ("value", "impurity"))
    measure = criterion.of_outputs(forest.coding.n_outputs)
    weight = forest.node_sums(0, forest.n_trees)[:, 0]
    errors = np.maximum(impurity, 0.0) * weight / forest.coding.decrease(1.0, measure)
    values = np.ascontiguousarray(value[:, :, 0])
    return replace(forest, leaf_impurity=None, node_values=values, node_errors=errors)


def seed_of(model: Any) -> int:
    """The seed where the model had one; its trees are none that a seed of ours grows."""
    seed = model.random_state
    return int(seed) if isinstance(seed, Integral) else 0


def _edges(F: int, feature: np.ndarray, threshold: np.ndarray) -> tuple[BinEdges, np.ndarray]:
    """The distinct thresholds f64[n] of splits by each feature, and the bin i64[n] that each ends;
    +inf, above which only missing values lie, is the end of the last bin."""
    if F > dtypes.MAX_FEATURES:
        raise ValueError(f"the model has {F} features: at most {dtypes.MAX_FEATURES} are supported")
    order = np.lexsort((threshold, feature))
    ends, of_feature = threshold[order], feature[order]
    repeated, finite = np.zeros(len(ends), bool), np.isfinite(ends)
    repeated[1:] = (ends[1:] == ends[:-1]) & (of_feature[1:] == of_feature[:-1])
    is_edge = finite & ~repeated
    counts = np.bincount(of_feature[is_edge], minlength=F)
    if (most := counts.max()) >= dtypes.MAX_BINS:
        raise ValueError(
            f"feature {counts.argmax()} has {most} distinct thresholds: at most "
            f"{dtypes.MAX_BINS - 1} are supported, train fewer or shallower trees"
        )
    offsets = np.cumsum([0, *counts]).astype(dtypes.OFFSET)
    bin = np.zeros(len(ends), np.int64)
    bin[order] = np.cumsum(is_edge) - finite - offsets[of_feature]
    return BinEdges(ends[is_edge], offsets, np.zeros(F, np.uint8)), bin


def _order(tree: Any) -> np.ndarray:
    """The nodes of scikit-learn's tree in the order of nodes.py, i64[m]."""
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    order, pending = [0], [0]
    while pending:
        node = pending.pop()
        if left[node] >= 0:
            order += [left[node], right[node]]
            pending += [right[node], left[node]]
    return np.array(order)


def _class_sums(weight: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Channel sums i64[v, C] of a tree's leaves."""
    sums = value[:, 0] * weight[:, None]
    whole = np.round(sums)
    if (np.abs(sums - whole) <= 2.0**-50 * weight[:, None]).all():  # up to rounding
        sums = whole
    return targets.integer_weights(sums.ravel()).reshape(sums.shape).astype(np.int64)


def _classes(
    weight: list[np.ndarray], value: list[np.ndarray], classes: Any
) -> tuple[TargetCoding, np.ndarray]:
    """Coding and channel sums i64[V, C] of the leaves of all trees."""
    if not isinstance(classes, list):
        coding = TargetCoding(np.asarray(classes), np.zeros(1), 1.0)
        return coding, np.concatenate(list(map(_class_sums, weight, value)))
    weights = np.concatenate(list(map(targets.integer_weights, weight))).astype(np.int64)
    shares = np.concatenate(value)
    parts = [shares[:, k, : len(labels)] for k, labels in enumerate(classes)]
    sums = np.round(np.concatenate(parts, axis=1) * weights[:, None]).astype(np.int64)
    coding = TargetCoding(None, np.zeros(sums.shape[1]), 1.0, tuple(map(np.asarray, classes)))
    return coding, np.column_stack([weights, sums])


def _moments(
    weight: list[np.ndarray], value: list[np.ndarray], criterion: Criterion
) -> tuple[TargetCoding, np.ndarray]:
    """Coding and channel sums i64[V, 1 + K] of the leaves of all trees."""
    whole = [targets.integer_weights(leaves).astype(np.int64) for leaves in weight]
    total, weights = max(int(w.sum()) for w in whole), np.concatenate(whole)
    mean = np.concatenate(value)[:, :, 0]
    coding, _ = targets.encode_moments(mean, total, centred=criterion.centred)
    moments = np.round((mean - coding.centre) * coding.scale * weights[:, None])
    return coding, np.column_stack([weights, moments.astype(np.int64)])
