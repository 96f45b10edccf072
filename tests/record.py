"""A record of grown forests: what must not change unless a commit says why.

    python tests/record.py            # prints what differs from tests/golden/forests.json
    python tests/record.py --write    # writes it anew

Each case is a fit with explicit `max_bins` of data made from whole numbers, which are the same on
every machine. Of each forest there is a SHA-256 of its nodes, leaf sums and predictions.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gpuforest

FILE = Path(__file__).parent / "golden" / "forests.json"
N, F = 700, 7
FORESTS = ("RandomForest", "ExtraTrees")
LIMITS: tuple[dict[str, Any], ...] = (
    {},
    {"max_depth": 5},
    {"min_samples_leaf": 5, "max_features": 2},
    {"min_samples_split": 0.05, "min_impurity_decrease": 0.001},
    {"min_weight_fraction_leaf": 0.02},
    {"max_leaf_nodes": 20},
    {"ccp_alpha": 0.003},
    {"monotonic_cst": [1, -1, 0, 0, 0, 0, 0]},
)


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X f64[N, F] with few and many values, one column with missing values, y f64[N] and
    weights f64[N] > 0."""
    rng = np.random.default_rng(14)
    X = rng.integers(-(2**20), 2**20, (N, F)) / 1024.0
    X[:, 1] = np.round(X[:, 1] / 256)
    X[:, 2] = X[:, 2] > 0
    y = np.round(X[:, 0] + X[:, 1] * 100 + rng.integers(-400, 400, N) + 300 * X[:, 2])
    X[rng.random(N) < 0.2, 3] = np.nan
    return X, y, rng.integers(1, 5, N).astype(np.float64)


def cases() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Estimator, parameters, and what is added to the fit: "", "weights" or "outputs"."""
    for name in (*FORESTS, "DecisionTree"):
        common: dict[str, Any] = {"random_state": 3, "max_bins": 255}
        common |= {} if name == "DecisionTree" else {"n_estimators": 4}
        for limits in LIMITS:
            yield name + "Regressor", common | limits, ""
            if "monotonic_cst" not in limits:  # which is for two classes
                yield name + "Classifier", common | limits, ""
        for task, more in (("Classifier", "weights"), ("Regressor", "weights")):
            yield name + task, common, more
            yield name + task, common | {"max_bins": 1000}, more
        yield name + "Regressor", common, "outputs"
        yield name + "Classifier", common, "outputs"
        for criterion in ("entropy", "misclassification"):
            yield name + "Classifier", common | {"criterion": criterion}, ""
        yield name + "Regressor", common | {"criterion": "poisson"}, ""
    for task in ("Classifier", "Regressor"):
        yield f"Bagging{task}", {"n_estimators": 4, "random_state": 3, "max_samples": 0.5}, ""
    yield "RandomForestClassifier", common | {"n_estimators": 4, "class_weight": "balanced"}, ""


def grown(name: str, params: dict[str, Any], more: str, backend: str) -> str:
    """SHA-256 of a forest and its predictions."""
    X, y, weights = data()
    y = y - y.min() if params.get("criterion") == "poisson" else y
    if name.endswith("Classifier"):
        y = np.digitize(y, np.quantile(y, [0.3, 0.8]))
    if more == "outputs":
        y = np.stack([y, np.roll(y, 1)], axis=1)
    if name.startswith("Bagging"):
        tree = "DecisionTree" + name.removeprefix("Bagging")
        params = params | {"estimator": getattr(gpuforest, tree)(max_bins=255, backend=backend)}
    else:
        params = params | {"backend": backend}
    model = getattr(gpuforest, name)(**params)
    model.fit(X, y, weights if more == "weights" else None)
    found = hashlib.sha256()
    values = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    for array in (model.forest_.nodes, model.forest_.leaf_sums, *np.atleast_3d(values)):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def title(name: str, params: dict[str, Any], more: str) -> str:
    return f"{name} {json.dumps(params)} {more}".strip()


if __name__ == "__main__":
    found = {title(*case): grown(*case, "numba") for case in cases()}
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(found, indent=1) + "\n")
    known = json.loads(FILE.read_text())
    print(*(case for case in found if found[case] != known.get(case)), sep="\n")
