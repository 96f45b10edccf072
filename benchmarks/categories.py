"""What do categorical splits cost?  python -m benchmarks.categories

- cost: forests on categorical columns beside forests on the same codes as numbers, in turn;
  seconds of CPU on one thread, and their ratio. The target follows an effect of each
  category, so the trees differ, and their numbers of nodes are reported.
- use: a frame of six columns of categories (strings, and pandas' `category`) and six of numbers,
  beside the codes as numbers, and beside LightGBM's boosting on pandas' `category`, if that is
  installed: seconds of CPU on one thread of a fit, and seconds of predictions, in turn.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import gpuforest
from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, measured, take_turns

N_ROWS, N_FEATURES = 100_000, 12


@lru_cache(1)
def coded(n_categories: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes f32[N, F] and targets that depend on the categories: classes, or numbers if n_classes
    is 0."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, n_categories, (N_ROWS, N_FEATURES))
    effects = rng.normal(size=(N_FEATURES, n_categories))
    y = effects[np.arange(N_FEATURES), X].sum(axis=1) + 2 * rng.normal(size=N_ROWS)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X.astype(np.float32), y


def cost(name: tuple[int, int, int | None], _: int, method: str, options: Any) -> Found:
    classes, categories, depth = name
    X, y = coded(categories, classes)
    X, y = X[: options.rows], y[: options.rows]
    kind = gpuforest.RandomForestClassifier if classes else gpuforest.RandomForestRegressor
    own = list(range(N_FEATURES)) if method == "categories" else None
    forest = kind(8, max_depth=depth, n_jobs=1, random_state=1, categorical_features=own)
    forest.fit(X[:2000], y[:2000])  # loads or compiles
    found = measured(forest, (X, X[:1000], y, y[:1000]))
    return {**found, "nodes": float(forest.forest_.n_nodes)}


@lru_cache(1)
def mixed(n_categories: int) -> tuple[dict[str, Any], np.ndarray]:
    """Six columns of categories and six of numbers, in several forms, and two classes."""
    rng = np.random.default_rng(1)
    codes, numbers = rng.integers(0, n_categories, (N_ROWS, 6)), rng.normal(size=(N_ROWS, 6))
    effects = rng.normal(size=(6, n_categories))[np.arange(6), codes].sum(axis=1)
    y = effects + numbers.sum(axis=1) + 2 * rng.normal(size=N_ROWS) > 0
    names = np.array([f"name {i:03}" for i in range(n_categories)])
    columns = {f"c{j}": names[codes[:, j]] for j in range(6)}
    strings = pd.DataFrame(columns | {f"x{j}": numbers[:, j] for j in range(6)})
    category = strings.astype(dict.fromkeys(columns, "category"))
    as_numbers = strings.assign(**{f"c{j}": codes[:, j].astype(float) for j in range(6)})
    return {"numbers": as_numbers, "strings": strings, "category": category}, y.astype(int)


def use(name: int, run: int, method: str, options: Any) -> Found:
    forms, y = mixed(name)
    kind, _, form = method.partition(", ")
    X, y = forms[form][: options.rows], y[: options.rows]
    if kind == "LightGBM":
        model = import_module("lightgbm").LGBMClassifier(n_jobs=1, verbose=-1)
    elif kind == "boosting":
        model = gpuforest.HistGradientBoostingClassifier(
            early_stopping=False, n_jobs=1, random_state=1
        )
    else:
        model = gpuforest.RandomForestClassifier(100, max_depth=16, n_jobs=1, random_state=1)
    if run == 0:
        model.fit(X[:2000], y[:2000])
    return measured(model, (X, X, y, y))


# sets, methods, and the tables
PARTS: dict[str, Any] = {
    "cost": (cost, [*product((2, 0, 3, 7), (4, 16, 50, 250), (8, 16, None))],
             ["numbers", "categories"], {"nodes": ["median"], "fit_cpu_s": ["median", "ratio"]}),
    "use": (use, [12, 50, 250],
            [*map(", ".join, product(("forest", "boosting"), ("numbers", "strings", "category"))),
             "LightGBM, category"],
            {"fit_cpu_s": ["median", "ratio"], "predict_s": ["median", "ratio"]}),
}  # fmt: skip


def main() -> None:
    # rows: of made sets
    options = options_of(__doc__, rows=N_ROWS, turns=3, parts=[*PARTS])
    for part in options.parts:
        fit, sets, methods, tables = PARTS[part]
        log = Log("categories", part=part)
        lines = take_turns(log, product(sets, range(options.turns), methods), fit, options)
        for line in lines:
            line["set"] = str(line["set"])
        show(lines, tables)


if __name__ == "__main__":
    main()
