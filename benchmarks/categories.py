"""What do categorical splits cost, and what do they give?  python -m benchmarks.categories

- Cost: forests on categorical columns beside forests on the same codes as numbers, in turn in one
  process; seconds of CPU on one thread, and their ratio. The target follows an effect of each
  category, so the trees differ, and their numbers of nodes are reported.
- Gain: adult, with strings and missing values, beside ordinal codes, in this library and in
  scikit-learn: log loss and accuracy on its test set, by the fewest rows of a leaf.
- Multiway: a tree of multiway splits beside one of sets, in turn; CPU seconds and their ratio.
- Use: a frame of six columns of categories (strings, and pandas' `category`) and six of numbers,
  beside the codes as numbers, and beside LightGBM's boosting on pandas' `category`, if that is
  installed: seconds of CPU on one thread of a fit and of predictions, in turn.
- Rare: 8,000 rows of adult with a column of noise (identifiers, days or zip codes), by the fewest
  rows of a category.
"""

from __future__ import annotations

import argparse
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier as SklearnForest
from sklearn.metrics import accuracy_score, log_loss
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.record import Log, spread, table
from gpuforest import (
    DecisionTreeClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

N_ROWS, N_FEATURES = 100_000, 12
DATA = Path(__file__).parents[2] / "shared" / "data"


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


def cpu_seconds(forest: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """CPU seconds of a fit, and the nodes that it grew."""
    begin = time.process_time()
    forest.fit(X, y)
    return time.process_time() - begin, forest.forest_.n_nodes


def cost(log: Log, depth: int | None, n_pairs: int) -> str:
    rows = []
    for n_classes in (2, 0, 3, 7):
        kind = RandomForestClassifier if n_classes else RandomForestRegressor
        for n_categories in (4, 16, 50, 250):
            X, y = coded(n_categories, n_classes)
            pair = {
                name: kind(8, max_depth=depth, n_jobs=1, random_state=1, categorical_features=own)
                for name, own in (("numbers", None), ("categories", list(range(N_FEATURES))))
            }
            for forest in pair.values():
                forest.fit(X[:2000], y[:2000])  # compiles
            found = [
                {name: cpu_seconds(forest, X, y) for name, forest in pair.items()}
                for _ in range(n_pairs)
            ]
            ratios = [run["categories"][0] / run["numbers"][0] for run in found]
            nodes = {name: found[0][name][1] for name in pair}
            log.add(
                part="cost", classes=n_classes, categories=n_categories, depth=depth,
                seconds=[{name: run[name][0] for name in pair} for run in found], nodes=nodes,
                ratios=ratios,
            )  # fmt: skip
            title = f"{n_classes} classes" if n_classes else "a number"
            cells = [f"{nodes['numbers']:,}", f"{nodes['categories']:,}", spread(ratios)]
            rows.append([f"{title}, {n_categories} categories", *cells])
            print(f"{rows[-1][0]}: {rows[-1][-1]}", flush=True)
    return table(["depth " + str(depth), "nodes, numbers", "categories", "CPU, ratio"], rows)


def adult(folder: Path) -> list[tuple[pd.DataFrame, np.ndarray]]:
    """Training and test rows."""
    frames = [
        pd.read_csv(folder / f"adult_{part}.csv.gz", na_values="?", skipinitialspace=True)
        for part in ("train", "test")
    ]
    return [(frame, frame.pop("class").str.strip(" .").to_numpy()) for frame in frames]


def gain(log: Log, folder: Path, n_seeds: int) -> str:
    (X, y), (X_test, y_test) = adult(folder)
    words = X.select_dtypes(exclude="number").columns
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(X[words])
    codes, codes_test = (
        frame.assign(**dict(zip(words, encoder.transform(frame[words]).T, strict=True)))
        for frame in (X, X_test)
    )
    rows = []
    for least in (1, 2, 5, 10, 20):
        row = [f"leaves of {least} or more"]
        for title, kind, train, test in (
            ("as it is", RandomForestClassifier, X, X_test),
            ("ordinal codes", RandomForestClassifier, codes, codes_test),
            ("scikit-learn, ordinal codes", SklearnForest, codes, codes_test),
        ):
            found = []
            for seed in range(n_seeds):
                model = kind(100, min_samples_leaf=least, random_state=seed, n_jobs=2).fit(train, y)
                proba = model.predict_proba(test)
                score = {
                    "log_loss": log_loss(y_test, proba),
                    "accuracy": accuracy_score(y_test, model.classes_[proba.argmax(axis=1)]),
                }
                log.add(part="adult", model=title, least_rows=least, seed=seed, **score)
                found.append(score)
            row += [f"{np.mean([s['log_loss'] for s in found]):.4f}"]
            row += [f"{100 * np.mean([s['accuracy'] for s in found]):.2f}"]
        rows.append(row)
        print(" ".join(row), flush=True)
    header = ["adult", "as it is", "%", "ordinal codes", "%", "scikit-learn, ordinal codes", "%"]
    return table(header, rows)


def noise(kind: str, n_rows: int, rng: np.random.Generator) -> list[str]:
    """A column of strings that does not depend on the target."""
    if kind == "identifiers":
        return [f"{i:x}" for i in rng.permutation(2**40 + np.arange(n_rows))]
    most = {"days": 3650, "zip codes": 2000}[kind]
    return [f"{kind} {i}" for i in rng.integers(0, most, n_rows)]


def rare(log: Log, folder: Path, n_seeds: int) -> str:
    (X, y), (X_test, y_test) = adult(folder)
    rows, frequencies = [], (1, 2, 5, 10, 20)
    for kind in (None, "identifiers", "days", "zip codes"):
        row = [kind or "adult alone"]
        for least in frequencies:
            found = []
            for seed in range(n_seeds):
                rng = np.random.default_rng(seed)
                some = rng.permutation(len(X))[:8000]
                train, test = X.iloc[some], X_test
                if kind is not None:
                    train = train.assign(noise=noise(kind, len(train), rng))
                    test = test.assign(noise=noise(kind, len(test), rng))
                model = RandomForestClassifier(
                    100, min_category_frequency=least, random_state=seed, n_jobs=2
                )
                with warnings.catch_warnings():  # of identifiers
                    warnings.simplefilter("ignore")
                    model.fit(train, y[some])
                found.append(model.score(test, y_test))
                log.add(part="rare", noise=kind, least_rows=least, seed=seed, accuracy=found[-1])
            row.append(f"{np.mean(found):.4f}")
        rows.append(row)
        print(" ".join(row), flush=True)
    return table(["least rows of a category", *map(str, frequencies)], rows)


def multiway(log: Log, folder: Path, n_pairs: int) -> str:
    rng, rows = np.random.default_rng(1), []
    few, many = rng.integers(0, 10, (20_000, 5)), rng.integers(0, 800, (20_000, 3))
    works: dict[str, tuple[Any, np.ndarray]] = {
        "five columns of 10 categories, 20,000 rows": (few, few.sum(axis=1) % 7 > 2),
        "three columns of 800 categories, 20,000 rows": (many, many.sum(axis=1) % 7 > 2),
    }
    if (folder / "adult_train.csv.gz").exists():
        works["adult, 32,561 rows"] = adult(folder)[0]
    for name, (X, y) in works.items():
        y = np.where(rng.random(len(y)) < 0.1, y[rng.permutation(len(y))], y)
        own = "from_dtype" if isinstance(X, pd.DataFrame) else list(range(X.shape[1]))
        pair = {
            split: DecisionTreeClassifier(
                categorical_features=own, categorical_split=split, random_state=1, backend="numba"
            )
            for split in ("subset", "multiway")
        }
        for tree in pair.values():
            tree.fit(X[:200], y[:200])  # compiles
        found = [
            {split: cpu_seconds(tree, X, y) for split, tree in pair.items()} for _ in range(n_pairs)
        ]
        ratios = [run["multiway"][0] / run["subset"][0] for run in found]
        nodes = {split: found[0][split][1] for split in pair}
        log.add(
            part="multiway", work=name, nodes=nodes, ratios=ratios,
            seconds=[{split: run[split][0] for split in pair} for run in found],
        )  # fmt: skip
        seconds = [f"{np.median([run[split][0] for run in found]):.3f}" for split in pair]
        rows.append([name, *(f"{n:,}" for n in nodes.values()), *seconds, spread(ratios)])
        print(" ".join(rows[-1]), flush=True)
    return table(["a tree", "nodes, sets", "multiway", "s, sets", "multiway", "ratio"], rows)


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
    return {"numbers": as_numbers, "strings": strings, "category": category}, y


def use(log: Log, n_pairs: int) -> str:
    kinds: dict[str, Any] = {
        "forest": lambda: RandomForestClassifier(100, max_depth=16, n_jobs=1, random_state=1),
        "boosting": lambda: HistGradientBoostingClassifier(
            max_iter=100, early_stopping=False, n_jobs=1, random_state=1
        ),
    }
    with suppress(ImportError):
        from lightgbm import LGBMClassifier

        kinds["LightGBM"] = lambda: LGBMClassifier(n_jobs=1, verbose=-1)
    rows = []
    for n_categories in (12, 50, 250):
        forms, y = mixed(n_categories)
        models = {
            (kind, form): kinds[kind]()
            for kind in kinds
            for form in (forms if kind != "LightGBM" else ["category"])
        }
        seconds: dict[tuple[str, str], dict[str, list[float]]] = {}
        for run in range(n_pairs + 1):
            for (kind, form), model in models.items():
                begin = time.process_time()
                model.fit(forms[form], y)
                middle = time.process_time()
                model.predict_proba(forms[form])
                found = {"fit": middle - begin, "predict": time.process_time() - middle}
                for step, each in found.items():
                    if run:  # the first compiles
                        own = seconds.setdefault((kind, form), {"fit": [], "predict": []})
                        own[step].append(each)
        for (kind, form), own in seconds.items():
            log.add(part="use", model=kind, form=form, categories=n_categories, seconds=own)
        for kind in ("forest", "boosting"):
            for step in ("fit", "predict"):
                median = {key: float(np.median(own[step])) for key, own in seconds.items()}
                base = seconds[kind, "numbers"][step]
                row = [f"{kind}, {n_categories} categories, {step}", f"{np.median(base):.3f}"]
                for form in ("strings", "category"):
                    ratios = np.array(seconds[kind, form][step]) / base
                    row += [f"{median[kind, form]:.3f}", f"{np.median(ratios):.2f}"]
                beside = median.get(("LightGBM", "category")) if kind == "boosting" else None
                row.append(f"{beside:.3f}" if beside else "")
                rows.append(row)
                print(*row, flush=True)
    header = ["", "s, numbers", "strings", "ratio", "pandas' category", "ratio", "LightGBM"]
    return table(header, rows)


PARTS = ("cost", "gain", "multiway", "use", "rare")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the real data sets")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    options = parser.parse_args()
    log, tables = Log("categories"), list[str]()
    if "cost" in options.parts:
        tables += [cost(log, depth, options.pairs) for depth in (8, 16, None)]
    if "multiway" in options.parts:
        tables.append(multiway(log, options.data, options.pairs))
    if "use" in options.parts:
        tables.append(use(log, options.pairs))
    if (options.data / "adult_train.csv.gz").exists():
        for name, part in (("gain", gain), ("rare", rare)):
            if name in options.parts:
                tables.append(part(log, options.data, options.seeds))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
