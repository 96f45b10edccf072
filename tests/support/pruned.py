"""Tasks for pruned trees, and slow implementations of what rows lose in them."""

import pickle
from fractions import Fraction

import numpy as np
from scipy.special import xlogy
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.explain.pruning import prune, pruning_path

CANCER, DIABETES = (  # parts, because each fit grows a tree for each fold
    (X[:240, :9], y[:240])
    for X, y in (load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True))
)


def counts(y):
    return np.round(y / 20)


TASKS = {
    "gini": (DecisionTreeClassifier, *CANCER),
    "entropy": (DecisionTreeClassifier, *load_wine(return_X_y=True)),
    "misclassification": (DecisionTreeClassifier, *CANCER),
    "squared_error": (DecisionTreeRegressor, *DIABETES),
    "poisson": (DecisionTreeRegressor, DIABETES[0], counts(DIABETES[1])),
}


def alphas_of(tree):
    """Where a tree's subtrees change."""
    return np.unique(pruning_path(tree.forest_, tree._criterion)[0])


def losses(tree, y, found):
    if isinstance(tree, DecisionTreeClassifier):
        return (y != found).astype(float)
    if tree.criterion == "poisson":
        return np.maximum(2 * (xlogy(y, y / found) - y + found), 0)
    return (y - found) ** 2


def slow_sums(tree, alpha, X, y, w):
    """A tree pruned at an alpha: exact sums of w l, w^2 l and (w l)^2 over its leaves' sums."""
    small = tree.set_params(ccp_alpha=alpha)
    pruned = pickle.loads(pickle.dumps(small))
    pruned.forest_ = prune(tree.forest_, tree._criterion, alpha)
    loss, leaf = losses(tree, y, pruned.predict(X)), pruned.apply(X)
    return [
        sum(map(Fraction, np.bincount(leaf, each).tolist()))
        for each in (w * loss, w * w * loss, (w * loss) ** 2)
    ]
