"""Fitted gradient boosting of ours as scikit-learn's, and scikit-learn's as ours.

scikit-learn has no public way to make a fitted model, so its private attributes are set and read.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder

from gpuforest.common.dtypes import NODE
from gpuforest.core.forest import Forest, check_forest
from gpuforest.core.model import model_of
from gpuforest.core.nodes import is_leaf, unpack
from gpuforest.explain.paths import node_depths, one_tree
from gpuforest.export import sklearn, views
from gpuforest.growing.boosted import BoostedCoding
from gpuforest.kernels.gradients.losses import NUMBERS, Loss

THERE = "sklearn.ensemble._hist_gradient_boosting."
OF_FITS = (
    *("n_features_in_", "feature_names_in_", "classes_", "n_trees_per_iteration_"),
    *("do_early_stopping_", "train_score_", "validation_score_"),
)
UNIT_BITS = 40  # of the sum of gradients of a leaf that is converted
CATEGORIES = (
    "models with categorical features are not converted: train with numbers in their place "
    "(OneHotEncoder, OrdinalEncoder, and categorical_features=None)"
)


def to_sklearn(estimator: Any) -> Any:
    """A fitted gradient boosting as the fitted estimator of scikit-learn of the same name.

    Raw predictions and classes are equal to the last bit; probabilities, and predictions of the
    losses "poisson" and "gamma", up to the rounding of exponentials. It has the parameters that
    both know, and "squared_error" for a loss that scikit-learn lacks. A ValueError: it has
    categorical features.
    """
    model = model_of(estimator, sklearn.NOT_CONVERTED)
    forest: Any = model.forest
    if forest.edges.known:
        raise ValueError(CATEGORIES)
    if model.task == "ranking":
        raise TypeError("scikit-learn has no ranker: use to_onnx, export_c, or gpuforest.load")
    home = import_module(THERE + "gradient_boosting")
    converted = sklearn.with_known(getattr(home, model.kind), model.parameters)
    coding, K, seed = forest.coding, forest.coding.n_values, forest.seed % 2**32
    if coding.lacking or coding.loss.on_host:
        why = coding.lacking or f"has the loss {coding.loss.name!r}"
        raise ValueError(f"this model {why}, which scikit-learn lacks: use gpuforest.load")
    if coding.loss.has_delta:
        converted.set_params(loss="squared_error", quantile=None)
    elif coding.loss.name == "tweedie":  # whose link is that of poisson
        converted.set_params(loss="poisson")
    sklearn.copy_to(converted, model.facts, *OF_FITS)
    converted.n_trees_per_iteration_ = K
    if hasattr(converted, "classes_"):
        converted._label_encoder = LabelEncoder().fit(converted.classes_)
    trees = [
        _predictor(forest, t, k) for t in range(forest.n_trees) for k in range(K)[coding.columns(t)]
    ]
    edges, n_bins = forest.edges, int(model.parameters["max_bins"]) + 1
    mapper = import_module(THERE + "binning")._BinMapper(n_bins=n_bins, n_threads=1)
    vars(mapper).update(  # what scikit-learn would bin rows by
        is_categorical_=np.zeros(edges.n_features, np.uint8),
        bin_thresholds_=[c.copy() for c in np.split(edges.values, edges.offsets[1:-1])],
        n_bins_non_missing_=edges.n_bins.astype(np.uint32),
        missing_values_bin_idx_=n_bins - 1,
    )
    vars(converted).update(
        _loss=converted._get_loss(sample_weight=None),
        _baseline_prediction=coding.baseline.reshape(1, -1).copy(),
        is_categorical_=None,
        _preprocessor=None,
        _is_categorical_remapped=None,
        _random_seed=seed,
        _feature_subsample_rng=np.random.default_rng(seed),
        _n_features=edges.n_features,
        _scorer=None,
        _use_validation_data=model.parameters["validation_fraction"] is not None,
        _bin_mapper=mapper,
        _predictors=[trees[i : i + K] for i in range(0, len(trees), K)],
    )
    return converted


def partial_dependence(forest: Any, grid: Any, target_features: Any) -> np.ndarray:
    """Sums over the trees of their partial dependence on some features, all of numbers, at points
    [n_points, n_features], as scikit-learn's gradient boosting has it: f64[n_trees_per_iteration_,
    n_points], without the baseline."""
    views.need_numbers(forest, target_features)
    grid = np.asarray(grid, np.float64, order="C")
    features = np.asarray(target_features, np.intp, order="C")
    out = np.zeros((forest.coding.n_values, len(grid)))
    for t in range(forest.n_trees):
        for k in range(len(out))[forest.coding.columns(t)]:
            # at splits by other features, of categories too, rows go both ways
            _predictor(forest, t, k).compute_partial_dependence(grid, features, out[k])
    return out


def _predictor(forest: Any, t: int, k: int) -> Any:
    """What a tree adds to raw prediction k, with nodes in the same order."""
    begin, end = forest.tree_offsets[t : t + 2]
    feature, bin, missing_left, child = unpack(np, forest.nodes[begin:end])
    inner, leaf = np.flatnonzero(feature >= 0), np.flatnonzero(feature < 0)
    sums = forest.node_sums(t, t + 1)
    scores = forest.coding.scores(sums, np.full(len(sums), t))
    nodes = np.zeros(len(feature), import_module(THERE + "common").PREDICTOR_RECORD_DTYPE)
    nodes["count"], nodes["depth"], nodes["gain"] = sums[:, 0], node_depths(one_tree(forest, t)), -1
    nodes["is_leaf"][leaf] = 1
    nodes["value"][leaf] = forest.leaf_values[child[leaf], k]
    nodes["feature_idx"][inner] = feature[inner]
    nodes["num_threshold"][inner] = forest.edges.threshold(feature[inner], bin[inner])
    nodes["missing_go_to_left"][inner] = missing_left[inner]
    nodes["left"][inner], nodes["right"][inner] = child[inner], child[inner] + 1
    nodes["bin_threshold"][inner] = bin[inner]
    nodes["gain"][inner] = scores[child[inner]] + scores[child[inner] + 1] - scores[inner]
    none = np.zeros((0, 8), np.uint32)
    return import_module(THERE + "predictor").TreePredictor(nodes, none, none.copy())


def forest_of(model: Any) -> Forest:
    """The trees of a fitted model of scikit-learn; a ValueError if it has categorical features or
    another loss. The sums of each leaf make its value the Newton step with hessians of one, so
    importances are near those of a fit here."""
    if model.is_categorical_ is not None:
        raise ValueError(CATEGORIES)
    if model.loss not in (*NUMBERS, "log_loss"):
        raise ValueError(f"loss={model.loss!r} is none of gpuforest's")
    trees = [_tree(t.nodes, model.n_features_in_) for row in model._predictors for t in row]
    K = model.n_trees_per_iteration_
    nodes, offsets, edges, orders = sklearn.packed_trees(trees)
    leaf = is_leaf(nodes)
    nodes[leaf] += np.arange(leaf.sum()).astype(NODE)
    counts, values = (sklearn.of_leaves(trees, orders, name) for name in ("count", "value"))
    sums, units = _sums(model, counts, values)
    column = np.repeat(np.arange(len(trees)) % K, [len(v) for v in values])
    leaf_values = np.zeros((len(column), K))
    leaf_values[np.arange(len(column)), column] = np.concatenate(values)
    classes = getattr(model, "classes_", None)
    n_classes = 0 if classes is None else len(classes)
    loss = Loss.of(model.loss, getattr(model, "quantile", None), n_classes)
    coding = BoostedCoding(
        classes, np.zeros(1), 1.0, loss=loss, l2=float(model.l2_regularization), units=units,
        baseline=np.asarray(model._baseline_prediction, np.float64).ravel(),
    )  # fmt: skip
    forest = Forest(nodes, offsets, sums, edges, coding, sklearn.seed_of(model))
    forest = replace(forest, leaf_values=leaf_values, combine="sum")
    check_forest(forest)
    return forest


def _tree(nodes: np.ndarray, n_features: int) -> Any:
    """The nodes of a predictor under the names of scikit-learn's other trees."""
    leaf = nodes["is_leaf"] != 0
    if np.isneginf(nodes["num_threshold"][~leaf]).any():
        raise ValueError("the model tells -inf from numbers, and infinities are refused here")
    return SimpleNamespace(
        n_features=n_features,
        node_count=len(nodes),
        feature=np.where(leaf, -2, nodes["feature_idx"]),
        threshold=nodes["num_threshold"],
        missing_go_to_left=nodes["missing_go_to_left"],
        children_left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        children_right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        count=nodes["count"].astype(np.int64),
        value=nodes["value"],
    )


def _sums(
    model: Any, counts: list[np.ndarray], values: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums i64[V, 3] of the leaves of all trees: rows, gradients and hessians; and units f64[T, 2]
    of the last two. Hessians are taken for one."""
    sums, units = [], []
    for count, value in zip(counts, values, strict=True):
        g = -value / model.learning_rate * (count + model.l2_regularization)
        power = int(np.frexp(np.abs(g).max())[1]) - UNIT_BITS
        sums.append(np.column_stack([count, np.rint(np.ldexp(g, -power)).astype(np.int64), count]))
        units.append([2.0**power, 1.0])
    return np.concatenate(sums), np.array(units)
