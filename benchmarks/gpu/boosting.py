"""Gradient boosting on the device: the reference's model first, then times beside other libraries
that boost on GPUs."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import gpuforest
from benchmarks.gpu.measure import FEW, PIECE, compare, data_of, in_turn, time_fits
from benchmarks.gpu.run import Run
from benchmarks.gpu.watch import NAME, watching
from benchmarks.gpu.work import Work
from gpuforest.backends.cuda.launch import CudaLaunches

WORKS = ("covtype", "HIGGS", "year")  # how the names of works begin that are boosted
LEAVES = 31
WAYS: dict[str, dict[str, Any]] = {
    "boosting": {},
    "histograms without a pad": {"macros": ("boosted_tree", {"PAD": "0"})},
    "fences of all threads": {"macros": ("boosted_tree", {"ALL_FENCE": "1"})},
}
RIVALS = {  # by the library, and where its rows come from
    ("xgboost", "device"): "XGBoost from the device",
    ("xgboost", "host"): "XGBoost",
    ("lightgbm", "host"): "LightGBM",
}


def boosted(work: Work, backend: str, **more: Any) -> Any:
    """The estimator of a work, as a user would make it; `trees` are rounds."""
    kind = "Classifier" if work.is_classes else "Regressor"
    parameters = {"max_iter": work.trees, "max_leaf_nodes": LEAVES, "early_stopping": False}
    parameters |= {"random_state": 1, "n_jobs": -1, "backend": backend, **more}
    return getattr(gpuforest, f"HistGradientBoosting{kind}")(**parameters)


def one_work(run: Run, work: Work) -> None:
    """Correct first, then times from the device and the host, then rivals."""
    device, few = run.device, min(PIECE, work.rows)
    X, y, X_test, y_test = data_of(run, work)
    host = X_host, y_host = device.get(X), device.get(y)

    def fits(name: str, model: Any, data: tuple[Any, Any], **more: Any) -> None:
        part = partial(time_fits, run, "boost", work, model, data, source=name, **more)
        run.attempt("boost", work, part)

    small = partial(boosted, work, max_iter=FEW)
    run.attempt("boost", work, partial(compare, run, "boost", work, small, X, y))
    for source, data in (("device", (X, y)), ("host", host)):
        fits(source, boosted(work, device.name), data, test=(X_test, y_test))
    # its delta is a quantile of all residuals, twice a round
    kind = gpuforest.HistGradientBoostingRegressor
    model = kind("huber", max_iter=FEW, early_stopping=False, backend=device.name)
    fits("huber", model, (X, X[:, 0] + y), few=FEW)

    run.attempt("kernels", work, partial(kernels, run, work, X, y))
    run.attempt("graph", work, partial(by_graph, run, work, X[:few], y[:few]))
    for (library, source), name in RIVALS.items():
        on_host = source == "host"
        test = (device.get(X_test) if on_host else X_test), y_test
        try:
            model, data = rival_of(library, work), host if on_host else (X, y)
            model.fit(X_host[:few], y_host[:few])
        except Exception as error:  # not installed, or LightGBM's packages are without CUDA
            run.skip("boost", work, f"{name} does not boost here: {error}")
            continue
        fits(name, model, data, test=test)


def kernels(run: Run, work: Work, X: Any, y: Any) -> None:
    """The time of each kernel in the second of two fits, launch by launch."""
    with watching(run.device) as watch:
        model = boosted(work, NAME)
        model.fit(X, y)
        watch.clear()
        with watch.span("fit"):
            model.fit(X, y)
        run.add("kernels", work, lines=watch.lines(), prepare=watch.preparing())


def by_graph(run: Run, work: Work, X: Any, y: Any) -> None:
    """A graph a round beside launch by launch, on few rows, where the host's launches may be what
    takes the time; and whether both give one model."""
    ways: dict[str, dict[str, Any]] = {"one graph a round": {}}
    ways["launch by launch"] = {"together": partial(CudaLaunches.together, None)}
    in_turn(run, "graph", work, ways, partial(boosted, work), (X, y))


def turns(run: Run, work: Work) -> None:
    """Ways of the kernels, as `measure.turns`."""
    in_turn(run, "turns", work, WAYS, partial(boosted, work), data_of(run, work)[:2])


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
