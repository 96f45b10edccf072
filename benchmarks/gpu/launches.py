"""python -m benchmarks.gpu.launches: microseconds of the host to prepare each launch of forests and
of boosting, and those that CuPy takes for its structs. The launches of fits on the tests' emulated
device are prepared again, in their order, with new records of CuPy's arrays: no GPU is needed."""

from __future__ import annotations

from collections import defaultdict
from time import perf_counter
from typing import Any

import cupy
import numpy as np
from cupy.cuda.function import CNumpyArray

import gpuforest
from benchmarks.gpu.device import open_device
from benchmarks.gpu.small import made
from benchmarks.record import Log, options_of, table
from gpuforest.backends import registry

FITS: dict[str, tuple[int, str, dict[str, Any]]] = {  # classes, estimators and their parameters
    "forest of classes": (3, "RandomForestClassifier", {"n_estimators": 4}),
    "forest of numbers": (0, "RandomForestRegressor", {"n_estimators": 4}),
    "boosting, poisson": (0, "HistGradientBoostingRegressor", {"loss": "poisson"}),
    "boosting, quantile": (
        0,
        "HistGradientBoostingRegressor",
        {"loss": "quantile", "quantile": 0.5},
    ),
}
LEAST = 5  # launches of a kernel in a fit, to be counted
Calls = list[tuple[tuple[Any, ...], dict[str, Any]]]


def prepared_in(fit: str, device: Any) -> Calls:
    """The arguments of each `prepare` of a fit."""
    calls: Calls = []

    class Noting(device.backend_class):
        def prepare(self, *given: Any, **more: Any) -> Any:
            calls.append((given, more))
            return super().prepare(*given, **more)

    registry.register_backend("noting", lambda *_: device.make_backend(Noting, deep=0))
    n_classes, kind, parameters = FITS[fit]
    X, y, _ = made(1500, 6, n_classes, [])
    getattr(gpuforest, kind)(random_state=1, backend="noting", **parameters).fit(X, y)
    return calls


def there(value: Any) -> Any:
    """An argument with CuPy's arrays, whose memory is never read, in place of NumPy's."""
    if isinstance(value, np.ndarray):
        memory = cupy.cuda.UnownedMemory(value.ctypes.data, value.nbytes, value, 0)
        place = cupy.cuda.MemoryPointer(memory, 0)
        return cupy.ndarray(value.shape, value.dtype, place, value.strides)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(there, value))
    if hasattr(value, "__dict__") and not callable(value):
        new = object.__new__(type(value))
        vars(new).update({name: there(field) for name, field in vars(value).items()})
        return new
    return value


def by_value(grid: Any, block: Any, arguments: tuple[Any, ...], shared_mem: int) -> None:
    """What CuPy does with each struct at a launch."""
    for value in arguments:
        if isinstance(value, np.ndarray):
            CNumpyArray(value)


def again(backend: Any, calls: Calls) -> dict[str, list[tuple[float, float]]]:
    """Microseconds to prepare each launch, and of `by_value`; by kernel."""
    new: dict[int, Any] = {}
    taken: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for given, more in calls:
        for value in given:
            if id(value) not in new:
                new[id(value)] = there(value)
        arguments = [new[id(value)] for value in given]
        begin = perf_counter()
        launch = backend.prepare(*arguments, **more)
        ready = perf_counter()
        launch()
        both = 1e6 * (ready - begin), 1e6 * (perf_counter() - ready)
        taken[f"{given[0]}.{given[1]}"].append(both)
    return taken


def main() -> None:
    options = options_of(__doc__, repeats=10)
    log, device, rows = Log("gpu_launches", cupy=cupy.__version__), open_device("emulated"), []
    kernels: dict[Any, Any] = {}

    class Preparing(device.backend_class):
        def address(self, array: Any) -> int:
            return int(array.data.ptr)

        def kernel(self, operation: str, name: str, macros: Any, shared: int) -> Any:
            return kernels.setdefault((operation, name, tuple(macros.items())), by_value)

    backend = device.make_backend(Preparing)
    for fit in FITS:
        calls = prepared_in(fit, device)
        found = [again(backend, calls) for _ in range(options.repeats)]
        launches = {}
        for launch, times in found[0].items():
            if len(times) >= LEAST:
                each = [one[launch] for one in found]
                prepare, structs = np.median(each, axis=(0, 1)).tolist()
                launches[launch] = {"n": len(times), "prepare_us": prepare, "structs_us": structs}
                rows.append([fit, launch, str(len(times)), f"{prepare:.1f}", f"{structs:.1f}"])
        log.add(fit=fit, launches=launches)
    print(table(["fit", "launch", "in a fit", "prepare, us", "structs, us"], rows))


if __name__ == "__main__":
    main()
