"""Random rows leave and join forests of random tasks: after each change the forest is the fit's.

GPUFOREST_CHANGES is the number of changes on each backend.
"""

import os
import warnings

import numpy as np
import pytest
from paths import has_numba

import gpuforest as gf
from gpuforest.backends import rows as rows_of
from gpuforest.estimators import forgetting, kept

STEPS, F = 20, 6
TASKS = int(os.environ.get("GPUFOREST_CHANGES", "1000")) // STEPS
BACKENDS = ["numpy", *["numba"] * has_numba]
# without tables: what a fit cannot keep
APART = {
    "max_leaf_nodes",
    "ccp_alpha",
    "monotonic_cst",
    "feature_combinations",
    "categorical_split",
}
LIMITS = [
    {}, {}, {"max_depth": 3}, {"max_depth": 9}, {"min_samples_leaf": 4}, {"min_samples_leaf": 0.02},
    {"max_leaf_nodes": 12}, {"ccp_alpha": 0.002}, {"min_samples_split": 9}, {"shrinkage": 3.0},
    {"max_samples": 0.3}, {"max_samples": 2.5}, {"min_impurity_decrease": 0.001},
    {"min_weight_fraction_leaf": 0.01}, {"max_bins": 12}, {"feature_combinations": 2},
]  # fmt: skip
OF_CLASSES = [
    {}, {"criterion": "entropy"}, {"criterion": "misclassification"}, {"voting": "hard"},
    {"class_weight": "balanced"}, {"class_weight": {0: 3, 1: 1}},
]  # fmt: skip
OF_NUMBERS = [
    {},
    {"criterion": "poisson"},
    {"criterion": "absolute_error"},
    {"monotonic_cst": True},
]


def features(rng, n):
    """Columns of ties, numbers, two values and categories, and one constant at times. Values are
    mostly few, so that bin edges stay; in one table of five all numbers differ."""
    X, digits = np.empty((n, F)), int(rng.choice([0, 0, 0, 1, 9]))
    for f, kind in enumerate([*rng.permutation([*"tnb"]), rng.choice([*"tnm"]), *"ct"]):
        X[:, f] = {
            "n": lambda: rng.normal(size=n).round(digits).clip(-2, 2), "m": lambda: np.full(n, 1.0),
            "t": lambda: rng.integers(0, 9, n), "c": lambda: rng.integers(0, 12, n),
            "b": lambda: rng.random(n) < 0.1,
        }[kind]()  # fmt: skip
    if rng.random() < 0.6:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def drawn(seed):
    """Rows, of which a half joins later; the estimator, its parameters, and what the fit keeps."""
    rng = np.random.default_rng([60, seed])
    n = int(2 * rng.choice([40, 90, 200, 200, 300, 300, 400, 400, 400, 4990]))
    X, numbers = features(rng, n), bool(rng.random() < 0.45)
    z = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) + rng.normal(size=n)
    params = dict(LIMITS[rng.integers(len(LIMITS))])
    if numbers:
        params |= OF_NUMBERS[rng.integers(len(OF_NUMBERS))]
        y = np.round(z, 1) if rng.random() < 0.5 else z * 10.0 ** rng.integers(-3, 4)
        y = np.abs(y) if params.get("criterion") == "poisson" else y
    else:
        params |= OF_CLASSES[rng.integers(len(OF_CLASSES))]
        y = np.digitize(z, np.quantile(z, np.linspace(0, 1, rng.integers(3, 7))[1:-1]))
    weight = [None, None, rng.integers(0, 4, n) * 1.0, rng.random(n)][rng.integers(4)]
    sums = "feature_combinations" in params
    if params.pop("monotonic_cst", False) and not sums and "shrinkage" not in params:
        params["monotonic_cst"] = [*rng.integers(-1, 2, F - 2).tolist(), 0, 0]
    if rng.random() < 0.5 and params.get("criterion") != "absolute_error":
        params["categorical_features"] = [F - 2]
        if "monotonic_cst" not in params and not sums and rng.random() < 0.3:
            params["categorical_split"] = "multiway"
    params["max_features"] = [None, "sqrt", 1, 2, 0.8][rng.integers(5)]
    params |= {"n_estimators": int(rng.integers(1, 5)), "random_state": seed}
    name = ("RandomForest", "ExtraTrees")[rng.integers(2)] + ("Classifier", "Regressor")[numbers]
    plain = not APART & {*params} and params.get("criterion") != "absolute_error"
    keep = {"keep_bytes": 10**8} if plain and rng.random() < 0.7 else {}
    params["oob_score"] = not keep
    ids = rng.permutation(10 * n)[:n] - (n if rng.random() < 0.5 else 0)
    return rng, X, y, weight, ids, getattr(gf, name), {**params, "bootstrap": "poisson"}, keep


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(TASKS))
def test_random_changes_give_the_forest_of_a_fit(seed, monkeypatch):
    rng, X, y, weight, ids, kind, params, keep = drawn(seed)
    monkeypatch.setattr(rows_of, "LEARNED_FROM", int(rng.choice([20, 60, 60, 2500])))
    for name, of in (("FEWEST_UPPER", forgetting), ("FEWEST_KEPT", kept)):
        monkeypatch.setattr(of, name, int(rng.choice([4, 30, getattr(of, name)])))
    always = np.unique(y, return_index=True)[1][:7]  # a row of each class never leaves
    held = np.union1d(np.arange(len(y) // 2), always)

    def rows(at):
        return X[at], y[at], None if weight is None else weight[at]

    def fitted(at, backend, **more):
        return kind(**params, backend=backend).fit(*rows(at), row_ids=ids[at], **more)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        backends = BACKENDS[-1:] if len(held) > 1000 else BACKENDS
        forests = [fitted(held, backend, **keep) for backend in backends]
        for step in range(STEPS):
            free = np.setdiff1d(np.arange(len(y)), held) if step % 2 else np.setdiff1d(held, always)
            n = min(int(rng.choice([1, 1, 1, 2, 7, 25])), len(free))
            some = rng.choice(free, n, replace=False)
            before, name = held, "insert" if step % 2 else "delete"
            held = np.r_[held, some] if step % 2 else held[~np.isin(held, some)]
            everything = rows(held if step % 2 else before)
            whole = fitted(held, BACKENDS[-1])
            for forest, backend in zip(forests, backends, strict=True):
                change = getattr(forest, name)
                try:
                    change(ids[some], *(everything if not keep else rows(some) if step % 2 else ()))
                except ValueError as error:
                    if not keep or "pass X and y of all rows" not in str(error):
                        raise
                    change(ids[some], *everything)
                assert forest.digest_ == whole.digest_, (step, backend)
                assert np.array_equal(forest.row_ids_, whole.row_ids_)
                assert keep or forest.oob_score_ == whole.oob_score_, (step, backend)
