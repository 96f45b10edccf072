"""Models of each kind to explain, and SHAP values by their definition."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd

import gpuforest as gf
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.data.validation import check_table
from gpuforest.growing.predict import predict


def numbers(n=60, F=5, seed=0):
    """Rows with missing values, and signals of two and three features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, F))
    y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + (X[:, 3] > 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def frame(n=60, seed=0):
    """The same with a column of categories, which decides too."""
    X, y = numbers(n, seed=seed)
    kinds = np.random.default_rng(seed).choice(list("abcdef"), n)
    return pd.DataFrame(X).rename(columns=str).assign(kind=pd.Categorical(kinds)), y + (kinds > "c")


def terciles(y):
    return np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


def fitted(name, backend="numba"):
    """A model of each kind, and rows to explain."""
    X, y = numbers()
    small = {"n_estimators": 3, "random_state": 0, "backend": backend, "n_jobs": 1}
    boosted = {"max_iter": 3, "min_samples_leaf": 3, "random_state": 0, "backend": backend}
    tree = {"random_state": 0, "backend": backend}
    Z, classes = (X, terciles(y)) if name not in ("categories", "multiway") else frame()
    classes = terciles(classes) if Z is not X else classes
    bagged = gf.DecisionTreeClassifier(max_depth=4, backend=backend)
    model, target = {
        "categories": (gf.RandomForestClassifier(**small), classes),
        "multiway": (gf.DecisionTreeClassifier(categorical_split="multiway", **tree), classes),
        "several outputs": (
            gf.ExtraTreesRegressor(**small), np.stack([y, np.nan_to_num(X[:, 4])], axis=1)
        ),
        "boosting": (gf.HistGradientBoostingClassifier(**boosted), classes),
        "margins": (gf.HistGradientBoostingRegressor(**boosted), y),
        "medians": (gf.RandomForestRegressor(criterion="absolute_error", max_depth=3, **small), y),
        "votes": (gf.AdaBoostClassifier(n_estimators=3, random_state=0), classes),
        "bags": (
            gf.BaggingClassifier(bagged, n_estimators=3, max_features=0.6, random_state=0), classes
        ),
        "pruned": (gf.DecisionTreeRegressor(ccp_alpha=0.02, **tree), y),
    }[name]  # fmt: skip
    return model.fit(Z, target), Z


NAMES = ["categories", "multiway", "several outputs", "boosting", "margins", "medians", "votes",
         "bags", "pruned"]  # fmt: skip


def raw_predictions(model, X):
    """What the forest predicts, f64[N, K]."""
    backend = NumpyBackend()
    return predict(model.forest_, check_table(model, X, backend), backend)


def by_definition(value, F):
    """SHAP values f64[N, F, K] and interactions f64[N, F, F, K] from predictions with subsets of
    features known (Lundberg et al. 2020, equations 4 to 6)."""

    def change(S, added):
        """The sum over parts of `added`, with alternating signs."""
        parts = [c for n in range(len(added) + 1) for c in combinations(added, n)]
        return sum((-1) ** (len(added) - len(c)) * value[tuple(sorted(S + c))] for c in parts)

    N, K = value[()].shape
    phi, both = np.zeros((N, F, K)), np.zeros((N, F, F, K))
    for S in value:
        others = [f for f in range(F) if f not in S]
        s = len(S)
        for f in others:
            phi[:, f] += factorial(s) * factorial(F - s - 1) / factorial(F) * change(S, (f,))
        for f, g in combinations(others, 2):
            weight = factorial(s) * factorial(F - s - 2) / factorial(F - 1) / 2
            both[:, f, g] += weight * change(S, (f, g))
    both += both.transpose(0, 2, 1, 3)
    f = np.arange(F)
    both[:, f, f] = phi - both.sum(axis=2)
    return phi, both
