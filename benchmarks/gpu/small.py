"""Small fits through every kernel, for a sanitizer: python -m benchmarks.gpu.small [DEVICE [CASES]]

CASES are names of fits as they are printed, or how they begin: forest0,booster. Each fit is
compared with the reference, with the deep phase as the device plans it, without one, and with one
of few rows: where blocks hold a thousand rows, small trees would have no wide level. Boosters run
in two threads at once, each in a stream of its own. After all cases every kernel of the package
must have run. CuPy's pool is off, so that every array is an allocation of its own, and a sanitizer
sees accesses beyond its end.
"""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

import gpuforest
from benchmarks.gpu.device import open_device
from benchmarks.gpu.run import same_forest
from gpuforest.backends import registry
from gpuforest.backends.cuda.source import parameters
from gpuforest.backends.rows import rows_below

ROWS = 1500
NAME = "noting"
DEEP = (None, 0, 64)  # the most rows of a slot that is grown whole; None: as planned
COMBINED = {"feature_combinations": 2.0, "max_features": 3}

CASES = [  # (classes; 0: regression, columns, parameters)
    (2, 6, {}),
    (7, 40, {"criterion": "entropy", "min_samples_leaf": 3}),
    (60, 6, {"bootstrap": False, "max_depth": 6}),
    (3, 6, {"max_bins": 1000, "max_depth": 4}),
    (2, 300, {"max_depth": 3}),
    (2, 2, {"max_features": None, "max_bins": 7}),
    (0, 6, {"min_samples_leaf": 2, "max_features": 1.0}),
    (0, 6, {"criterion": "poisson", "max_depth": 8}),
    (0, 6, {"outputs": 2}),
    (0, 6, {"monotonic_cst": [1, -1, 0, 0, 0, 0]}),
    (2, 6, {"trees": "ExtraTrees", "bootstrap": True, "min_weight_fraction_leaf": 0.01}),
    (3, 6, {**COMBINED}),
    (0, 6, {**COMBINED, "categorical_features": [0], "min_samples_leaf": 5}),
    (3, 6, {"categorical_features": [0, 1]}),
    (0, 6, {"categorical_features": [0, 1], "categorical_split": "multiway", "max_depth": 4}),
    (300, 6, {"max_depth": 2, "bootstrap": False}),  # histograms that fit no block
]
BOOSTED = [  # (classes; 0: regression, columns, parameters)
    (0, 6, {"loss": "poisson", "subsample": 0.5}),
    (0, 40, {"loss": "huber", "monotonic_cst": [1] * 40, "early_stopping": True}),
    (3, 6, {"categorical_features": [0, 1], "max_features": 0.5}),
    (2, 300, {"max_leaf_nodes": None, "interaction_cst": "no_interactions"}),
]


def kernels() -> set[str]:
    """All of the package's, as operation.name."""
    folders = [path.name for path in files("gpuforest.kernels").iterdir() if path.is_dir()]
    there = [n for n in folders if files("gpuforest.kernels").joinpath(n, "cuda.cu").is_file()]
    return {f"{operation}.{name}" for operation in there for name in parameters(operation)}


def note(device: Any, deep: int | None = None) -> set[str]:
    """Estimators with backend=NAME have slots of at most `deep` rows in the deep phase; returns
    what they launch from now on."""
    ran: set[str] = set()

    class Noting(device.backend_class):
        def prepare(self, operation: str, name: str, *rest: Any, **more: Any) -> Any:
            ran.add(f"{operation}.{name}")
            return super().prepare(operation, name, *rest, **more)

        def deep_plan(self, training: Any) -> Any:
            plan = super().deep_plan(training)
            if deep is None:
                return plan
            rows = min(deep, plan.rows)
            return replace(plan, rows=rows, bytes=plan.bytes if rows else 0)

    registry.register_backend(NAME, lambda *_: device.make_backend(Noting, *_, deep=None))
    return ran


def made(rows: int, columns: int, n_classes: int, categories: list[int], outputs: int = 1) -> Any:
    """X with missing values, y and weights."""
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    z = X[:, 0] * X[:, 1] + rng.normal(size=rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(z, np.linspace(-2, 2, n_classes - 1)) if n_classes else np.exp(z)
    for f in categories:
        X[:, f] = np.round(X[:, f] * 3) + 9  # some twenty categories, and missing ones
    y = y if outputs == 1 else np.stack([y, -z], axis=1)
    return X, y, rng.integers(0, 3, rows)


def one_forest(device: Any, rows: int, n_classes: int, columns: int, parameters: Any) -> set[str]:
    """Grow a forest in all ways, and return what ran."""
    parameters = dict(parameters)
    outputs, trees = parameters.pop("outputs", 1), parameters.pop("trees", "RandomForest")
    kind = getattr(gpuforest, f"{trees}{'Classifier' if n_classes else 'Regressor'}")
    categories = parameters.get("categorical_features", [])
    X, y, weights = made(rows, columns, n_classes, categories, outputs)
    parameters = {"n_estimators": 2, "random_state": 1, **parameters}
    parameters["oob_score"] = parameters.get("bootstrap", True)
    expected = kind(**parameters, backend="numpy").fit(X, y, weights)
    all_ran: set[str] = set()
    # sets in the order of several classes, and branches for categories, are left to the CPU
    handed = bool(categories) and (n_classes > 2 or "categorical_split" in parameters)
    for deep in DEEP:
        ran = note(device, deep)
        there = kind(**parameters, backend=NAME).fit(device.put(X), device.put(y), weights)
        assert (there.backend_ == device.name) != handed
        assert same_forest(there, expected), f"deep={deep}"
        assert handed or deep is None or "partition.move" in ran, f"deep={deep}: no wide level"
        if not handed and deep != 64:
            assert ("grow_subtrees.grow_subtrees" in ran) == (deep is None), f"deep={deep}"
        all_ran |= ran
    ran = note(device)
    there = kind(**parameters, backend=NAME).fit(X, y, weights)
    assert same_forest(there, expected)
    assert np.array_equal(there.predict(X), expected.predict(X))
    assert np.array_equal(there.apply(X), expected.apply(X))
    assert np.array_equal(device.get(there.predict(device.put(X))), expected.predict(X))
    return all_ran | ran


def one_booster(device: Any, rows: int, n_classes: int, columns: int, parameters: Any) -> set[str]:
    """Boost four rounds, so that graphs run more than once, and return what ran."""
    kind = getattr(gpuforest, f"HistGradientBoosting{'Classifier' if n_classes else 'Regressor'}")
    X, y, weights = made(rows, columns, n_classes, parameters.get("categorical_features", []))
    ran, there = note(device), (device.put(X), device.put(y))
    device.synchronize()  # other streams read the rows

    def fitted(backend: str, data: Any) -> Any:
        model = kind(max_iter=4, random_state=1, backend=backend, **parameters)
        return model.fit(*data, weights)

    def in_stream(data: Any) -> Any:
        with device.stream():
            return fitted(NAME, data)

    expected = fitted("numpy", (X, y))
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(in_stream, [there, (X, y)]):
            assert found.backend_ == device.name
            assert same_forest(found, expected)
    return ran


def alone(device: Any) -> set[str]:
    """Launch what only many rows or slots need: samples of rows, sums by several blocks."""
    ran = note(device)
    backend = registry.get_backend(NAME)
    rows = backend.sampling.rows_below(backend, 1, 5000, 2**61)
    assert np.array_equal(rows, rows_below(1, 5000, 2**61))
    counts = np.arange(5000)
    sums = device.get(backend.sums_before(device.put(counts)))
    assert np.array_equal(sums, np.append(0, counts.cumsum()))
    return ran


def main(name: str = "cupy", cases: str = "", rows: int = ROWS) -> None:
    warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
    warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
    device = open_device(name)
    if name == "cupy":
        device.cupy.cuda.set_allocator(None)
    left = kernels() - alone(device)
    named = {f"forest{i}": (one_forest, case) for i, case in enumerate(CASES)}
    named |= {f"booster{i}": (one_booster, case) for i, case in enumerate(BOOSTED)}
    for called, (fit, case) in named.items():
        if called.startswith(tuple(cases.split(","))):
            left -= fit(device, rows, *case)
            print(f"{called} {case}: the reference's", flush=True)
    if cases:
        return
    assert not left, f"never launched: {', '.join(sorted(left))}"
    print("every kernel ran")


if __name__ == "__main__":
    main(*sys.argv[1:])
