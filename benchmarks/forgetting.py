"""What it takes that rows leave a forest, beside a fit, and beside dare-rf.

    python -m benchmarks.forgetting [--part time|influence|rivals]

time : seconds of fits of `--rows` x 20 with drawn and with Poisson bags, and of deletions of a
    row (the median of `--singles`) and of 100 rows. Once the data are passed again, and once the
    fit keeps `--keep-gb` of tables, where it can. Deletions after which all trees grow anew, for
    which the data are passed, have figures of their own. A last fit of the rows that stay, which
    keeps nothing, tells whether the forest is the same; shares are of its time.
influence : seconds of the influence of 1,000 rows of 50,000 on 1,000 others, beside a fit.
rivals : accuracy, area under the ROC curve, and seconds of a fit and of 100 deletions, one by one,
    beside DaRE forests (Brophy and Lowd, "Machine unlearning for random forests", ICML 2021), with
    as many trees of the same depth. DaRE forests try `k` = 25 thresholds of a feature and draw no
    bags; "dare 3" has three levels of random splits. They have one thread, so all have one.
    Categories are numbers, and missing values -1. `pip install cython`, and dare-rf from its
    repository (github.com/jjbrophy47/dare_rf) with --no-build-isolation, installs them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks import public_data
from benchmarks.record import Log, options_of, scores, show
from benchmarks.turns import Found, seconds, take_turns

WAYS = ("data passed", "tables kept")
METHODS = ("gpuforest", "gpuforest kept", "dare", "dare 3")
SETS = ("adult", "lending-club", "credit")
BATCH = 100  # rows


def simulated(n: int, seed: int, step: float) -> tuple[Any, Any]:
    """n rows of 20 features, four of which count, and two classes. Features are normal, and where
    there is a step, rounded to its multiples."""
    rng = np.random.default_rng([7, seed])
    X = rng.normal(size=(n, 20)).astype(np.float32)
    X = np.round(X / step) * step if step else X
    z = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.sin(3 * X[:, 3])
    return X, (z + rng.normal(size=n) > 0).astype(int)


def ours(options: argparse.Namespace, seed: int, bootstrap: bool | str = "poisson") -> Any:
    kind = import_module("gpuforest").RandomForestClassifier
    return kind(options.trees, max_depth=options.depth, bootstrap=bootstrap, random_state=seed,
                n_jobs=options.threads, backend="numba")  # fmt: skip


def keeping(model: Any, n_bytes: float) -> dict[str, int]:
    """What a fit takes so that it keeps tables."""
    if not n_bytes:
        return {}
    if "keep_bytes" not in signature(model.fit).parameters:
        raise ModuleNotFoundError("fits here keep no tables")
    return {"keep_bytes": int(n_bytes)}


class Rows:
    """A forest with the rows that it holds, and those that have left."""

    def __init__(self, forest: Any, X: Any, y: Any, kept: bool, rng: np.random.Generator) -> None:
        self.forest, self.X, self.y, self.kept, self.rng = forest, X, y, kept, rng
        self.stays = np.ones(len(y), bool)

    def delete(self, n: int) -> tuple[float, bool]:
        """Seconds in which n rows leave, and whether all trees have grown anew."""
        gone = self.rng.choice(np.flatnonzero(self.stays), n, replace=False)
        data, start = (self.X[self.stays], self.y[self.stays]), time.perf_counter()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            refused = self.kept and not self.without_data(gone)
            if refused or not self.kept:
                self.forest.delete(gone, *data)
        took, self.stays[gone] = time.perf_counter() - start, False
        return took, refused or any("grow anew" in str(each.message) for each in seen)

    def without_data(self, gone: Any) -> bool:
        """Whether the tables are enough to delete these rows, which have left then."""
        try:
            self.forest.delete(gone)
        except ValueError as error:
            if "pass X and y of all rows" not in str(error):
                raise
            return False
        return True

    def rest(self) -> tuple[Any, Any, Any]:
        return self.X[self.stays], self.y[self.stays], np.flatnonzero(self.stays)

    def same_as(self, other: Any) -> bool:
        return bool(self.forest.digest_ == other.digest_)


def timed(name: str, split: int, way: str, options: argparse.Namespace) -> Found:
    """Seconds of two kinds of fit and of deletions, and shares of the fit with Poisson bags."""
    for n in (min(3000, options.rows), options.rows):  # the first loads kernels
        found: dict[str, Any] = {"rows": n}
        X, y = simulated(n, split, options.step)
        forest = ours(options, split)
        keep = keeping(forest, options.keep_gb * 1e9 * (way == WAYS[1]))
        found["drawn_s"] = seconds(partial(ours(options, split, True).fit, X, y))
        found["fit_s"] = seconds(partial(forest.fit, X, y, **keep))
        found["kept_mb"] = getattr(forest, "kept_bytes_", 0) / 1e6
        rows = Rows(forest, X, y, bool(keep), np.random.default_rng([8, split]))
        for label, size, times in (("row", 1, options.singles), ("batch", BATCH, options.batches)):
            found |= figures(label, [rows.delete(size) for _ in range(times)])
    *rest, ids = rows.rest()
    other = ours(options, split)
    found["fit_again_s"] = seconds(partial(other.fit, *rest, row_ids=ids))
    fit_s = found["fit_again_s"]
    shares = {f"{key[:-2]}_share": found[key] / fit_s for key in found if key in SHARED}
    return found | shares | {"same": rows.same_as(other)}


SHARED = ("drawn_s", "fit_s", "row_s", "batch_s", "row_anew_s", "batch_anew_s")


def figures(label: str, times: list[tuple[float, bool]]) -> dict[str, Any]:
    """Medians of deletions: those that keep trees, and those after which all grow anew."""
    found: dict[str, Any] = {}
    for key, wanted in ((label, False), (f"{label}_anew", True)):
        if own := [took for took, anew in times if anew == wanted]:
            found |= {f"{key}_s": float(np.median(own)), f"{key}_most_s": max(own)}
        found[f"{key}_count"] = len(own)
    return found


def left_out(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    """Seconds of a fit, and of the influence of some of its rows."""
    n, forest = min(options.rows, 50_000), ours(options, split)
    X, y = simulated(n + 1000, split, options.step)
    data, some = (X[:n], y[:n]), np.linspace(0, n - 1, 1000).astype(int)
    forest.fit(*data)  # which loads kernels
    fit_s = seconds(partial(forest.fit, *data))
    took = seconds(partial(forest.influence, X[n:], y[n:], some, *data))
    return {"rows": n, "fit_s": fit_s, "influence_s": took, "fits": took / fit_s}


def beside(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    """Scores, and seconds of a fit and of deletions."""
    found = public_data.numbers(name, options.data)
    if found is None:
        return None
    X, y = np.nan_to_num(found[0], nan=-1), found[1].astype(np.int32)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=split)
    fit = fitted_dare if method.startswith("dare") else fitted_ours
    for n in (500, len(y)):  # the first loads kernels
        model, took, delete = fit(X[:n], y[:n], split, method, options)
        before = scored(model, X_test, y_test)
        of_rows = delete(options.deletions if n == len(y) else 1)
    after = {f"{key}_after": value for key, value in scored(model, X_test, y_test).items()}
    share = of_rows["deletions_s"] / took
    return before | after | of_rows | {"rows": n, "fit_s": took, "deletions_share": share}


def scored(model: Any, X: Any, y: Any) -> dict[str, float]:
    found = model.predict_proba(X)
    return scores(found, y) | {"auc": float(roc_auc_score(y, found[:, 1]))}


Fitted = tuple[Any, float, Callable[[int], dict[str, Any]]]


def fitted_ours(X: Any, y: Any, split: int, method: str, options: argparse.Namespace) -> Fitted:
    model = ours(options, split)
    keep = keeping(model, options.keep_gb * 1e9 * method.endswith("kept"))
    took = seconds(partial(model.fit, X, y, **keep))

    def delete(n: int) -> dict[str, Any]:
        rows = Rows(model, X, y, bool(keep), np.random.default_rng([9, split]))
        times = [rows.delete(1) for _ in range(n)]
        *rest, ids = rows.rest()
        same = rows.same_as(ours(options, split).fit(*rest, row_ids=ids))
        kept = getattr(model, "kept_bytes_", 0) / 1e6
        total = sum(took for took, _ in times)
        return figures("row", times) | {"deletions_s": total, "same": same, "kept_mb": kept}

    return model, took, delete


def fitted_dare(X: Any, y: Any, split: int, method: str, options: argparse.Namespace) -> Fitted:
    model = import_module("dare").Forest(
        topd=3 if method.endswith("3") else 0, k=25, n_estimators=options.trees,
        max_depth=options.depth, random_state=split + 1,
    )  # fmt: skip
    took = seconds(partial(model.fit, X, y))

    def delete(n: int) -> dict[str, Any]:
        gone = np.random.default_rng([9, split]).choice(len(y), n, replace=False)
        times = [seconds(partial(model.delete, int(i))) for i in gone]
        return {"deletions_s": sum(times), "row_s": float(np.median(times))}

    return model, took, delete


def main() -> None:
    numbers: dict[str, Any] = {"splits": 1, "first": 0, "trees": 100, "depth": 16, "threads": 2}
    numbers |= {"rows": 1_000_000, "singles": 7, "batches": 3, "deletions": 100}
    options = options_of(
        __doc__, choices={"sets": public_data.NAMES}, part="time", sets=[*SETS], methods=[*METHODS],
        ways=[*WAYS], keep_gb=4.0, step=0.0, **numbers,
    )  # fmt: skip
    splits = range(options.first, options.first + options.splits)
    options.threads = 1 if options.part == "rivals" else options.threads
    log = Log("forgetting", part=options.part, threads=options.threads, trees=options.trees,
              depth=options.depth)  # fmt: skip
    if options.part == "time":
        of_step = f", steps of {options.step}" if options.step else ""
        jobs = product([f"{options.rows:,} x 20{of_step}"], splits, options.ways)
        lines = take_turns(log, jobs, timed, options)
        keys = (
            "drawn_s",
            "fit_s",
            "fit_again_s",
            "kept_mb",
            "row_s",
            "batch_s",
            "row_anew_s",
            "batch_anew_s",
        )
        show(lines, dict.fromkeys(keys, ("median",)))
        show(lines, {f"{key[:-2]}_share": ("median",) for key in SHARED})
    elif options.part == "influence":
        lines = take_turns(
            log, [("50,000 x 20", split, "gpuforest") for split in splits], left_out, options
        )
        show(lines, dict.fromkeys(("fit_s", "influence_s", "fits"), ("median",)))
    else:
        lines = take_turns(log, product(options.sets, splits, options.methods), beside, options)
        show(lines, dict.fromkeys(("accuracy", "auc", "log_loss"), ("mean", "difference")))
        show(lines, dict.fromkeys(("fit_s", "deletions_s"), ("median", "ratio")))
        show(lines, {"deletions_share": ("median",), "row_s": ("median",), "kept_mb": ("median",)})
    for line in lines:
        who = f"{line['set']}, {line['method']}"
        if not line.get("same", True):
            print(who, "gave another forest than a fit of the rest")
        for label in ("row", "batch"):
            if f"{label}_anew_count" in line:
                anew, others = line[f"{label}_anew_count"], line[f"{label}_count"]
                print(f"{who}, {label}: {anew} of {anew + others} made all trees grow anew")


if __name__ == "__main__":
    main()
