"""The parts of a run: each adds lines to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.gpu.device import bandwidth, timed
from benchmarks.gpu.run import Run, model_of, same_forest
from benchmarks.gpu.watch import NAME, watching
from benchmarks.gpu.work import SWEEP, TEST, Work, make
from benchmarks.record import ROOT, r2
from gpuforest.backends import registry

Array = Any
Data = tuple[Array, Array, Array, Array]  # X, y to train on, X, y held out

PIECE = 20_000  # rows of a forest that is compared with the reference's
SERIES = 15.0  # seconds of repeats, at most
CPU_LIMIT = 60.0  # estimated seconds of a fit on the CPU, at most
FIRST_ROWS = 50_000
FOREST_WAYS: dict[str, dict[str, Any]] = {
    "forest": {},
    "levels without a pad": {"macros": ("histogram", {"PAD": "0"})},
    "deep phase without a pad": {"macros": ("grow_subtrees", {"PAD": "0"})},
    "one feature at a time": {"macros": ("grow_subtrees", {"PAD": "0", "TURNED": "0"})},
    "codes kept": {"keeps_codes": True},
}
FEW = 3  # trees or rounds of a model that is compared


def data_of(run: Run, work: Work) -> Data:
    """The data of a work, on the device."""
    xp = run.device.xp
    return (*make(work, xp, work.rows), *make(work, xp, work.test_rows, TEST))


def series(run: Run, call: Callable[[], Any], times: int) -> tuple[list[float], Any]:
    """Seconds of calls, at most `times`, and the last result."""
    seconds: list[float] = []
    while len(seconds) < times and sum(seconds) < min(SERIES, run.left() / 2):
        taken, found = timed(run.device, call)
        seconds.append(taken)
    if not seconds:
        raise TimeoutError("the time is up")
    return seconds, found


def time_fits(
    run: Run, what: str, work: Work, model: Any, data: Any, test: Any = None, **more: Any
) -> None:
    """Seconds of up to three fits after one, and the score of test rows."""
    device, fit = run.device, partial(model.fit, *data)
    warm, _ = timed(device, fit)
    seconds, _ = series(run, fit, min(run.options.repeat, 3))
    if test is not None:
        found = np.asarray(device.get(device.xp.asarray(model.predict(test[0]))))
        more |= quality(work, found, device.get(test[1]))
    if hasattr(model, "backend_"):
        more["backend"] = model.backend_
    run.add(what, work, warm_up=warm, seconds=seconds, **more)
    name = more.get("source", what)
    print(f"{work.name}, {what}, {name}: {np.median(seconds):.3f} s", flush=True)


def copies(run: Run) -> None:
    found = bandwidth(run.device)
    run.copy = found["copy"]
    run.add("copy", bytes_per_second=found)
    print("copy bandwidth: " + ", ".join(f"{k} {v / 1e9:,.0f} GB/s" for k, v in found.items()))


def one_work(run: Run, work: Work) -> None:
    """Correct first, then times: from the device, from the host, and where they go."""
    device, repeat = run.device, run.options.repeat
    X, y, X_test, y_test = data_of(run, work)
    # 1. a smaller forest, beside the reference's
    small = partial(model_of, work, n_estimators=FEW)
    run.attempt("same", work, partial(compare, run, "same", work, small, X, y))
    # 2. fit and predict, from device arrays
    model = model_of(work, device.name)

    def fits() -> None:
        device.restart_memory()
        warm, _ = timed(device, lambda: model.fit(X, y))
        peak = device.peak_bytes()
        seconds, _ = series(run, lambda: model.fit(X, y), repeat)
        forest = model.forest_
        size = forest.nodes.nbytes + forest.tree_offsets.nbytes + forest.leaf_sums.nbytes
        run.add(
            "fit", work, source="device", seconds=seconds, warm_up=warm,
            nodes=forest.n_nodes, model_bytes=size, peak_bytes=peak,
        )  # fmt: skip
        print(f"{work.name}: {np.median(seconds):.3f} s, nodes {forest.n_nodes:,}", flush=True)

    run.attempt("fit", work, fits)
    if not hasattr(model, "forest_"):
        return

    def predictions() -> None:
        model.predict(X_test)
        found, truth = {}, device.get(y_test)
        for source, rows in (("device", X_test), ("host", device.get(X_test))):
            seconds, proba = series(run, partial(model.predict, rows), repeat)
            found[source] = device.get(proba)
            more = {"same": np.array_equal(*found.values())} if source == "host" else {}
            more |= quality(work, found[source], truth)
            run.add("predict", work, source=source, seconds=seconds, **more)

    run.attempt("predict", work, predictions)
    # 3. where the time goes
    if "stages" in run.options.parts:
        run.attempt("stages", work, lambda: stages(run, work, X, y))

    # 4. from host arrays
    host = device.get(X), device.get(y)
    part = partial(time_fits, run, "fit", work, model, host, source="host")
    run.attempt("fit from the host", work, part)


def compare(
    run: Run, what: str, work: Work, model: Callable[[str], Any], X: Array, y: Array
) -> None:
    """Whether a small model of a part of the rows is the reference's, by ==.

    model : of a backend's name
    """
    n, device = min(PIECE, work.rows), run.device
    mine = model(device.name).fit(X[:n], y[:n])
    same = same_forest(mine, model("numba").fit(device.get(X[:n]), device.get(y[:n])))
    run.add(what, work, piece=n, few=FEW, same=same)
    if not same:
        print(f"{work.name}, {what}: THE MODEL IS NOT THE REFERENCE'S", flush=True)


def quality(work: Work, found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Accuracy beside that of the most frequent class, or R2."""
    if not work.is_classes:
        return {"r2": r2(found, truth)}
    most = np.unique(truth, return_counts=True)[1].max() / len(truth)
    return {"accuracy": float((found == truth).mean()), "most_frequent": float(most)}


def stages(run: Run, work: Work, X: Array, y: Array) -> None:
    """Watch the second of two fits."""
    with watching(run.device) as watch:
        model = model_of(work, NAME)
        model.fit(X, y)
        run.device.synchronize()
        watch.clear()
        with watch.span("fit"):
            model.fit(X, y)
        found = {"lines": watch.lines(), "levels": watch.levels(), "prepare": watch.preparing()}
    run.add("stages", work, **found, copy=run.copy)


def first_calls(run: Run, works: list[Work]) -> None:
    """What the first fit and prediction of a fresh process take, with and without a cache."""
    kinds = {work.is_classes: work for work in reversed(works)}
    for work in kinds.values():
        task = {"device": run.device.name, "work": work.name, "rows": min(FIRST_ROWS, work.rows)}
        task["parameters"] = {"n_estimators": work.trees, "max_depth": work.depth}
        with tempfile.TemporaryDirectory() as empty:
            cold = {"CUPY_CACHE_DIR": empty, "CUDA_CACHE_DISABLE": "1"}
            for variables in ({}, cold) if run.options.cold else ({},):
                run.attempt("first", work, partial(first, run, work, task, variables))


def first(run: Run, work: Work, task: dict[str, Any], variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "benchmarks.gpu.first", json.dumps(task)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=max(run.left(), 10),
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found = json.loads(done.stdout.splitlines()[-1])
    run.add("first", work, piece=task["rows"], cold=bool(variables), **found)


def sweep(run: Run, _: list[Work]) -> None:
    """Is the GPU ever slower? Rows from few to many, from device and host, and the CPU."""
    xp, n = run.device.xp, max(run.options.sweep)
    X, y = make(SWEEP, xp, n)
    X_host, y_host = run.device.get(X), run.device.get(y)
    for rows in run.options.sweep:
        work = replace(SWEEP, rows=rows, trees=run.options.sweep_trees)
        here, own, found = (X_host[:rows], y_host[:rows]), run.device.name, []
        sources = {"device": (own, (X[:rows], y[:rows])), "host": (own, here)}
        for source, (backend, data) in (sources | {"cpu": ("numba", here)}).items():
            found.append(model_of(work, backend).fit(*data))
            seconds, _ = series(run, partial(found[-1].fit, *data), 3)
            run.add("sweep", work, source=source, seconds=seconds)
        same = same_forest(found[0], found[2]) and same_forest(found[1], found[2])
        run.add("sweep", work, same=same)


def on_cpu(run: Run, work: Work) -> None:
    """The CPU backend with all cores on the same data, where that takes no minute; and
    whether the whole forest is the same."""
    X, y, _, _ = data_of(run, work)
    mine = model_of(work, run.device.name).fit(X, y)
    X, y = run.device.get(X), run.device.get(y)
    model, n = model_of(work, "numba"), max(2000, work.rows // 20)
    for _ in range(2):  # the first may compile
        taken, _ = timed(run.device, lambda: model.fit(X[:n], y[:n]))
    estimate = taken * work.rows / n * np.log2(work.rows) / np.log2(n)
    if estimate > min(CPU_LIMIT, run.left()):
        run.skip("cpu", work, f"it would take about {estimate:.0f} s")
        return
    taken, _ = timed(run.device, lambda: model.fit(X, y))
    run.add("cpu", work, seconds=[taken], cores=os.cpu_count(), same=same_forest(mine, model))
    print(f"{work.name}: {taken:.2f} s on the CPU", flush=True)


def extras(run: Run, work: Work) -> None:
    """What no other part times: combinations of features."""
    model = model_of(work, run.device.name, n_estimators=10, feature_combinations=2.0)
    time_fits(run, "combinations", work, model, data_of(run, work)[:2], few=10)


def in_turn(
    run: Run, what: str, work: Work, ways: dict[str, dict[str, Any]], model: Callable[[str], Any],
    data: tuple[Array, Array],
) -> None:  # fmt: skip
    """Fits by backends that differ in some attributes, one after another, again and again; and
    whether all give one model.

    ways : the attributes by the name of the backend, and `macros` of an operation's kernels
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for name, way in ways.items():
        registry.register_backend(name, partial(changed, run.device, way))
    models = {name: model(name) for name in ways}
    for i in range(1 + run.options.repeat):
        for name, one in models.items():
            took, _ = timed(run.device, partial(one.fit, *data))
            seconds[name] += [took] * (i > 0)
    first, *others = models.values()
    for name, of_name in seconds.items():
        run.add(what, work, source=name, seconds=of_name)
        print(f"{work.name}, {what} {name}: {np.median(of_name):.3f} s", flush=True)
    run.add(what, work, same=all(same_forest(first, other) for other in others))


def changed(device: Any, way: dict[str, Any], *arguments: Any) -> Any:
    """A backend with other attributes, or of whose kernels some have more macros."""
    made, attributes = device.make_backend(device.backend_class, *arguments), dict(way)
    operation, more = attributes.pop("macros", ("", {}))
    kernel = made.kernel

    def with_macros(of: str, name: str, macros: dict[str, str], shared: int) -> Any:
        return kernel(of, name, macros | more if of == operation else macros, shared)

    vars(made).update(attributes, kernel=with_macros)
    return made


def turns(run: Run, work: Work) -> None:
    """What only a device can decide: each way beside the one that is taken, in one process."""
    data = data_of(run, work)[:2]
    in_turn(run, "turns", work, FOREST_WAYS, partial(model_of, work), data)
