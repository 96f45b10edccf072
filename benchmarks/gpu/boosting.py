"""Gradient boosting on the device: the reference's model first, then times beside other libraries
that boost on GPUs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import gpuforest
from benchmarks.gpu.device import timed
from benchmarks.gpu.measure import PIECE, data_of, in_turn, quality, series
from benchmarks.gpu.run import Run, same_forest
from benchmarks.gpu.work import Work
from benchmarks.record import spread, table

WORKS = ("covtype", "HIGGS", "year")  # how the names of works begin that are boosted
FEW = 3  # rounds of the model that is compared
LEAVES = 31
RIVALS = {  # by the library, and where its rows come from
    ("xgboost", "device"): "XGBoost from the device",
    ("xgboost", "host"): "XGBoost",
    ("lightgbm", "host"): "LightGBM",
}
DASH = "-"


def boosted(work: Work, backend: str, **more: Any) -> Any:
    """The estimator of a work, as a user would make it; `trees` are rounds."""
    kind = "Classifier" if work.is_classes else "Regressor"
    parameters = {"max_iter": work.trees, "max_leaf_nodes": LEAVES, "early_stopping": False}
    parameters |= {"random_state": 1, "n_jobs": -1, "backend": backend, **more}
    return getattr(gpuforest, f"HistGradientBoosting{kind}")(**parameters)


def one_work(run: Run, work: Work) -> None:
    """Correct first, then times from the device and the host, then rivals."""
    device, repeat = run.device, run.options.repeat
    X, y, X_test, y_test = data_of(run, work)
    X_host, y_host = device.get(X), device.get(y)

    def same() -> None:
        n = min(PIECE, work.rows)
        mine = boosted(work, device.name, max_iter=FEW).fit(X[:n], y[:n])
        other = boosted(work, "numba", max_iter=FEW).fit(X_host[:n], y_host[:n])
        equal = same_forest(mine, other) and np.array_equal(
            mine.forest_.leaf_values, other.forest_.leaf_values
        )
        run.add("boost", work, piece=n, few=FEW, same=bool(equal))

    run.attempt("boost", work, same)
    truth = device.get(y_test)
    for source, own_X, own_y in (("device", X, y), ("host", X_host, y_host)):

        def fits(source: str = source, own_X: Any = own_X, own_y: Any = own_y) -> None:
            model = boosted(work, device.name)
            warm, _ = timed(device, lambda: model.fit(own_X, own_y))
            seconds, _ = series(run, lambda: model.fit(own_X, own_y), min(repeat, 3))
            found = np.asarray(device.get(device.xp.asarray(model.predict(X_test))))
            run.add(
                "boost", work, source=source, backend=model.backend_, warm_up=warm,
                seconds=seconds, **quality(work, found, truth),
            )  # fmt: skip
            print(f"{work.name}, boosted from the {source}: {np.median(seconds):.3f} s", flush=True)

        run.attempt("boost", work, fits)

    def huber() -> None:  # its delta is a quantile of all residuals, twice a round
        kind = gpuforest.HistGradientBoostingRegressor
        model = kind("huber", max_iter=FEW, early_stopping=False, backend=device.name)
        target = X[:, 0] + y
        model.fit(X, target)
        seconds, _ = series(run, lambda: model.fit(X, target), min(repeat, 3))
        run.add("boost", work, source="huber", few=FEW, seconds=seconds)

    run.attempt("boost", work, huber)

    def by_graph() -> None:  # of few rows, where the host's launches may be what takes the time
        n = min(PIECE, work.rows)
        ways: dict[str, dict[str, Any]] = {"one graph a round": {}}
        ways["launch by launch"] = {"together": one_by_one}
        in_turn(run, "graph", work, ways, lambda name: boosted(work, name).fit(X[:n], y[:n]))

    run.attempt("graph", work, by_graph)
    from_host = X_host, y_host, device.get(X_test)
    for (library, source), name in RIVALS.items():
        if find_spec(library) is None:
            run.skip("boost", work, f"{name} is not installed")
            continue
        own_X, own_y, own_test = from_host if source == "host" else (X, y, X_test)
        try:
            model = rival_of(library, work)
            model.fit(own_X, own_y)
        except Exception as error:  # LightGBM's packages may be built without CUDA
            run.skip("boost", work, f"{name} does not boost here: {error}")
            continue
        seconds, _ = series(run, lambda m=model, X=own_X, y=own_y: m.fit(X, y), min(repeat, 3))
        found = np.asarray(device.get(device.xp.asarray(model.predict(own_test))))
        run.add("boost", work, source=name, seconds=seconds, **quality(work, found, truth))


def one_by_one(launches: Sequence[Callable[[], None]]) -> Callable[[], None]:
    """As `CudaBackend.together`, without a graph."""

    def all_of_them() -> None:
        for launch in launches:
            launch()

    return all_of_them


def rival_of(library: str, work: Work) -> Any:
    """Another library's estimator with the same rounds, leaves and learning rate."""
    kind = "Classifier" if work.is_classes else "Regressor"
    module = importlib.import_module(library)
    common = {"n_estimators": work.trees, "learning_rate": 0.1}
    if library == "xgboost":
        return getattr(module, f"XGB{kind}")(
            max_leaves=LEAVES, max_depth=0, grow_policy="lossguide", tree_method="hist",
            device="cuda", **common,
        )  # fmt: skip
    return getattr(module, f"LGBM{kind}")(
        num_leaves=LEAVES, device_type="cuda", verbose=-1, **common
    )


def report(run: Run) -> str:
    """A row for each work."""
    lines = [line for line in run.lines if line["what"] == "boost" and "work" in line]
    rows = []
    sources = ["device", "host", *RIVALS.values()]
    for name in dict.fromkeys(line["work"] for line in lines if "seconds" in line):
        own = [line for line in lines if line["work"] == name]
        timed_lines = {line["source"]: line for line in own if "seconds" in line}
        same = [line["same"] for line in own if "same" in line]
        row = [name, f"{own[0]['rows']:,}", DASH if not same else "yes" if all(same) else "NO"]
        for source in sources:
            line = timed_lines.get(source)
            score = None if line is None else line.get("accuracy", line.get("r2"))
            row += [DASH if line is None else spread(line["seconds"], 3)]
            row += [DASH if score is None else f"{score:.4f}"]
        rows.append(row)
    names = ["from device", "from host", *RIVALS.values()]
    header = ["boosted", "rows", "same", *(f"{n}{w}" for n in names for w in (" s", " score"))]
    return table(header, rows) if rows else ""
