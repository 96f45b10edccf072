"""Wines of two class outputs and diabetes of two numbers, and forests of them."""

import numpy as np
from sklearn.datasets import load_diabetes, load_wine

import gpuforest as gf
from gpuforest.core.nodes import is_leaf

X, WINE = load_wine(return_X_y=True)
X = X[:, :6]
# three classes, two, and three of other names
TWO = np.stack([WINE, (X[:, 1] > 2).astype(int)], axis=1)
NAMES = np.array([["low", "no"], ["mid", "yes"], ["high", "maybe"]])
DIABETES, SUGAR = load_diabetes(return_X_y=True)
PAIR = np.stack([SUGAR, 500 * DIABETES[:, 2] + SUGAR / 2], axis=1)
SEVERAL = [gf.RandomForestClassifier, gf.ExtraTreesClassifier]


def grown(Model, backend, target, *weights, **params):
    params = {"n_estimators": 4, "random_state": 0, "backend": backend, **params}
    return Model(**params).fit(X if len(target) == len(X) else DIABETES, target, *weights)


def same_splits(a, b):
    """Whether two forests split alike, whatever their leaves hold."""
    leaf = is_leaf(a.nodes)
    return (
        np.array_equal(a.tree_offsets, b.tree_offsets)
        and np.array_equal(leaf, is_leaf(b.nodes))
        and np.array_equal(a.nodes[~leaf], b.nodes[~leaf])
    )
