"""Effects of a treatment beside econml's causal forest, boosting and published averages.

    python -m benchmarks.causal [--part effects|time|studies]

effects : the simulations A to D of Nie and Wager (2021; 1,000 x 10) and those of Athey, Tibshirani
    and Wager (2019, section 6.2; 1,600 x 10), whose effects are known. econml grows on the
    residuals of gpuforest's fit by its criteria "het" (that of the paper) and "mse", with the same
    numbers of trees and rows a tree; CausalForestDML does everything itself. The R- and the
    T-learner are of HistGradientBoostingRegressor.
time : set-up A with 100,000 x 20. The forests are given the true expectations, and the seconds of
    `--few` trees of econml are scaled; "expectations" are two forests of 500 trees.
studies : NHEFS (Hernan and Robins 2020) and the incentives of Thornton (2008), of the package
    causaldata. `pip install econml causaldata` installs what is compared.
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib import import_module
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.utils import Bunch

from benchmarks.record import Log, mean_error, options_of, show, table
from benchmarks.turns import Found, median, take_turns

SETS = ("A", "B", "C", "D", "confounded", "heterogeneous", "both")
METHODS = (
    "gpuforest", "econml het", "econml mse", "econml DML", "R-learner", "T-learner",
)  # fmt: skip
TIMED = ("gpuforest forest", "econml forest", "expectations")
STUDIES = ("nhefs", "thornton_hiv")


class Rows(NamedTuple):
    """Simulated rows, what X lets expect of y and of the treatment, and the effects."""

    X: Any
    y: Any
    w: Any
    y_hat: Any
    w_hat: Any
    effect: Any


def simulated(name: str, n: int, p: int, seed: list[int]) -> Rows:
    """n rows of p features; noise and all units are 1."""
    rng = np.random.default_rng(seed)
    uniform = name not in "BCD"
    X = rng.uniform(size=(n, p)) if uniform else rng.normal(size=(n, p))
    base, share, effect = (nie_wager if len(name) == 1 else athey)(name, X)
    w = (rng.uniform(size=n) < share) * 1.0
    y = base + (w - 0.5) * effect + rng.normal(size=n)
    return Rows(X, y, w, base + (share - 0.5) * effect, share, effect)


def nie_wager(name: str, X: Any) -> tuple[Any, Any, Any]:
    """The mean of both arms, the probability of treatment and the effect."""
    a, b, c, d, e = X.T[:5]
    if name == "A":
        wave = np.sin(np.pi * a * b)
        return wave + 2 * (c - 0.5) ** 2 + d + e / 2, np.clip(wave, 0.1, 0.9), (a + b) / 2
    if name == "B":
        base = np.maximum(0, np.maximum(a + b, c)) + np.maximum(0, d + e)
        return base, np.full(len(X), 0.5), a + np.log1p(np.exp(b))
    if name == "C":
        return 2 * np.log1p(np.exp(a + b + c)), 1 / (1 + np.exp(b + c)), np.ones(len(X))
    treated, control = np.maximum(a + b + c, 0), np.maximum(d + e, 0)
    return (treated + control) / 2, 1 / (1 + np.exp(-a) + np.exp(-b)), treated - control


def athey(name: str, X: Any) -> tuple[Any, Any, Any]:
    """As `nie_wager`."""
    n, x = len(X), X[:, 2]
    base, share, effect = np.zeros(n), np.full(n, 0.5), np.zeros(n)
    if name != "heterogeneous":
        base, share = 2 * x - 1, (1 + 20 * x * (1 - x) ** 3) / 4  # the density of beta(2, 4)
    if name != "confounded":
        effect = np.prod(1 + 1 / (1 + np.exp(-20 * (X[:, :2] - 1 / 3))), axis=1)
    return base, share, effect


def econml_forest(trees: int, criterion: str, options: argparse.Namespace, seed: int) -> Any:
    return import_module("econml.grf").CausalForest(
        trees, criterion=criterion, max_samples=0.5, min_samples_leaf=5, honest=True,
        inference=True, n_jobs=options.threads, random_state=seed,
    )  # fmt: skip


def ours(trees: int, options: argparse.Namespace, seed: int, **more: Any) -> Any:
    kind = import_module("gpuforest").CausalForest
    return kind(trees, random_state=seed, n_jobs=options.threads, backend="numba", **more)


def clock() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def since(start: tuple[float, float]) -> dict[str, float]:
    wall, cpu = clock()
    return {"fit_s": wall - start[0], "fit_cpu_s": cpu - start[1]}


def effects(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    """Errors of the effects of new rows, and the share of intervals of 95 % that hold them."""
    n, seed = 1000 if len(name) == 1 else 1600, [SETS.index(name), split]
    rows, new = simulated(name, n, 10, [*seed, 0]), simulated(name, 1000, 10, [*seed, 1])
    low = high = None
    found: dict[str, Any] = {"rows": n, "spread": float(np.var(new.effect))}
    start = clock()
    if method == "gpuforest":
        forest = ours(options.trees, options, split).fit(rows.X, rows.y, rows.w)
        found |= since(start)
        effect, (low, high) = forest.effect(new.X), forest.effect_interval(new.X)
        average, truth = forest.ate(), float(rows.effect.mean())
        found |= {"average_off": float(average.estimate - truth)}
        found |= {"average_covered": float(average.low < truth < average.high)}
        found |= {"average_error": float(average.std_error)}
    elif method == "econml DML":
        forest = import_module("econml.dml").CausalForestDML(
            n_estimators=options.trees, discrete_treatment=True, n_jobs=options.threads,
            random_state=split,
        ).fit(rows.y, rows.w, X=rows.X)  # fmt: skip
        found |= since(start)
        effect, (low, high) = forest.effect(new.X), forest.effect_interval(new.X, alpha=0.05)
    elif method.startswith("econml"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two trees leave some rows without an effect
            y, w, _ = ours(2, options, split).fit(rows.X, rows.y, rows.w)._rows_.residuals
        start = clock()
        forest = econml_forest(options.trees, method.split()[1], options, split)
        forest.fit(rows.X, w[:, None], y)
        found |= since(start)
        effect, low, high = forest.predict(new.X, interval=True, alpha=0.05)
        effect, low, high = effect[:, 0], low[:, 0], high[:, 0]
    else:
        effect = by_boosting(method, rows, new.X, split)
        found |= since(start)
    found["mse"] = float(((effect - new.effect) ** 2).mean())
    if low is not None and high is not None:
        found["covered"] = float(((low < new.effect) & (new.effect < high)).mean())
        found["width"] = float((high - low).mean())
    return found


def by_boosting(method: str, rows: Rows, X: Any, seed: int) -> Any:
    """Effects by boosting with early stopping, of which no interval is known."""
    gpuforest = import_module("gpuforest")
    how = {"random_state": seed, "early_stopping": True, "n_jobs": 1}
    numbers = gpuforest.HistGradientBoostingRegressor(**how)
    if method == "T-learner":
        arms = [numbers.fit(rows.X[rows.w == w], rows.y[rows.w == w]).predict(X) for w in (0, 1)]
        return arms[1] - arms[0]
    y = rows.y - cross_val_predict(numbers, rows.X, rows.y, cv=5)
    classes = gpuforest.HistGradientBoostingClassifier(**how)
    share = cross_val_predict(classes, rows.X, rows.w, cv=5, method="predict_proba")[:, 1]
    w = rows.w - np.clip(share, 0.02, 0.98)
    return numbers.fit(rows.X, y / w, sample_weight=w**2).predict(X)


def timed(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    """Seconds of a fit, of the effect of a row, and of the effects of 1,000 rows."""
    small, rows = (simulated("A", n, 20, [99, split]) for n in (1000, options.rows))
    if method == "expectations":
        ours(8, options, 0).fit(small.X, small.y, small.w)
        start = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two trees leave some rows without an effect
            ours(2, options, split).fit(rows.X, rows.y, rows.w)
        return since(start) | {"rows": options.rows}
    grown = options.few if method == "econml forest" else options.trees
    for some, trees in ((small, 8), (rows, grown)):  # the first loads kernels
        start = clock()
        if method == "econml forest":
            forest = econml_forest(trees, "het", options, split)
            forest.fit(some.X, (some.w - some.w_hat)[:, None], some.y - some.y_hat)
        else:
            forest = ours(trees, options, split, model_y=some.y_hat, model_t=some.w_hat)
            forest.fit(some.X, some.y, some.w)
        found = since(start)
    effect = forest.predict
    if method == "gpuforest forest":
        found["intervals_s"] = median(lambda: forest.effect_interval(rows.X[:1000]), 1, 3)
    found |= {"effects_s": median(lambda: effect(rows.X[:1000]), 1, 3)}
    scaled = {key: value * options.trees / grown for key, value in found.items()}
    one_row = 1e3 * median(lambda: effect(rows.X[:1]), 5, 100)
    return scaled | {"one_row_ms": one_row, "trees_grown": grown, "rows": options.rows}


def study(name: str) -> Bunch:
    """Rows of a published study, and its average effect."""
    data: Any = import_module(f"causaldata.{'nhefs_complete' if name == 'nhefs' else name}")
    frame = data.load_pandas().data
    if name == "nhefs":
        features = ["sex", "race", "age", "education", "smokeintensity", "smokeyrs"]
        X = frame[[*features, "exercise", "active", "wt71"]].astype(float)
        given = {"X": X, "y": frame.wt82_71, "treatment": frame.qsmk.astype(float)}
        return Bunch(given=given, how={}, published="3.4 (2.4 to 4.5) kg")
    frame = frame.dropna(subset=["got", "any", "age", "distvct", "hiv2004", "villnum"])
    X, w = frame[["age", "distvct", "hiv2004"]].astype(float), frame["any"].astype(float)
    given = {"X": X, "y": frame.got.astype(float), "treatment": w, "groups": frame.villnum}
    return Bunch(given=given, how={"model_t": float(w.mean())}, published="about 0.45")


def studies(options: argparse.Namespace) -> None:
    """Average effects beside the published ones."""
    log, rows = Log("causal", part="studies"), []
    for name in STUDIES:
        case = study(name)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            forest = ours(options.trees, options, 0, **case.how).fit(**case.given)
            for target in ("all", "overlap"):
                found = {key: float(value) for key, value in forest.ate(target).items()}
                log.add(set=name, target=target, rows=len(case.given["X"]), **found)
                text = f"{found['estimate']:.3f} ({found['low']:.3f} to {found['high']:.3f})"
                rows.append([name, target, text, case.published])
        test = forest.calibration_test()
        numbers = {key: test[key].tolist() for key in ("coef", "std_error", "p_value")}
        line = log.add(set=name, warned=[str(w.message) for w in seen], **numbers)
        print(name, line["warned"], numbers)
    print(table(["study", "average of", "gpuforest", "published"], rows))


def main() -> None:
    numbers: dict[str, Any] = {"splits": 10, "first": 0, "trees": 2000, "threads": 2}
    numbers |= {"rows": 100_000, "few": 40, "part": "effects"}
    options = options_of(__doc__, sets=[*SETS], methods=[*METHODS], **numbers)
    if options.part == "studies":
        studies(options)
        return
    log = Log("causal", part=options.part, threads=options.threads, trees=options.trees)
    splits = range(options.first, options.first + options.splits)
    if options.part == "time":
        jobs = product([f"{options.rows:,} x 20"], splits, TIMED)
        lines = take_turns(log, jobs, timed, options)
        ways = ("fit_cpu_s", "fit_s", "effects_s", "one_row_ms", "intervals_s")
        show(lines, dict.fromkeys(ways, ("median", "ratio")))
        return
    jobs = product(options.sets, splits, options.methods)
    lines = take_turns(log, sorted(jobs, key=itemgetter(1)), effects, options)
    show(lines, {"mse": ("mean", "difference"), "covered": ("mean",), "width": ("mean",)})
    show(lines, {"fit_cpu_s": ("median", "ratio")}, 2)
    for key in ("average_off", "average_covered"):
        for name in options.sets:
            own = [x[key] for x in lines if x["set"] == name and key in x]
            print(key, name, mean_error(np.array(own)))


if __name__ == "__main__":
    main()
