"""Where the time of a fit goes: spans on the device's own clock, by stage, operation, kernel.

Nothing in the package is timed by itself: a backend of its own class, and the stages' names
in the modules that call them, are wrapped while a fit is watched. Events are recorded in
the stream, so that nothing waits that would not wait otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from statistics import median
from time import perf_counter
from types import ModuleType
from typing import Any
from unittest.mock import patch

from gpuforest.backends import registry
from gpuforest.backends.cuda.launch import CudaLaunches
from gpuforest.estimators import plan, prepare, task
from gpuforest.growing import bags, edges, grow

NAME = "watched"

# a function, by the name by which it is called, and what the table calls it
STAGES: list[tuple[ModuleType, str, str]] = [
    (prepare.validation, "learn_table", "check X"),
    (edges, "fit_edges", "edges"),
    (prepare, "bin_matrix", "encode"),
    (grow, "grow", "grow"),
    (bags, "tree_weights", "bags"),
    (grow, "roots", "roots"),
    (grow, "split_slots", "split"),
    (grow, "grown_wave", "assembly"),
    (plan, "merged", "merge"),
]
# methods of a backend, and of its parts
OPERATIONS = [
    "asarray", "asnumpy", "encode", "sums", "level", "partition", "grow_subtrees", "apply",
    "accumulate",
]  # fmt: skip
PARTS = {"nodes": ["in_bag", "sort_out", "children", "distinct_rows"], "sampling": ["bag"]}
METHODS = [("check", "check y"), ("encode_target", "target")]
SHOWN = {"asnumpy": "to host", "asarray": "to device", "sums": "totals", "sort_out": "sort out"}
SHOWN |= {"grow_subtrees": "deep phase"}


class Watch:
    """Spans, nested as the calls are."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.spans: list[tuple[tuple[str, ...], Any, Any, bool]] = []
        self.open: tuple[str, ...] = ()
        self.depth = -1  # of the level that grows
        self.grown: dict[int, list[int]] = {}  # slots and rows of each level
        self.in_level: list[tuple[int, str, Any, Any]] = []
        self.prepared: dict[str, list[float]] = defaultdict(list)  # seconds of the host

    def wrap(self, name: str, function: Callable[..., Any], operation: str = "") -> Any:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if operation == "level":
                self.begin_level(arguments[2])
            elif operation in ("bag", "grow_subtrees"):  # before the first level, after the last
                self.depth = -1
            with self.span(name):
                return function(*arguments, **options)

        return call

    def wrap_prepare(self, function: Callable[..., Any]) -> Any:
        """Launches that are prepared are spans whenever they are made."""

        @wraps(function)
        def prepare(backend: Any, operation: str, name: str, *rest: Any, **more: Any) -> Any:
            begin = perf_counter()
            launch = function(backend, operation, name, *rest, **more)
            self.prepared[f"{operation}.{name}"].append(perf_counter() - begin)

            def watched() -> None:
                with self.span(f"{operation}.{name}", is_kernel=True):
                    launch()

            return watched

        return prepare

    @contextmanager
    def span(self, name: str, is_kernel: bool = False) -> Iterator[None]:
        outside = self.open
        self.open = (*outside, name)
        begin = self.device.event()
        try:
            yield
        finally:
            end = self.device.event()
            self.spans.append((self.open, begin, end, is_kernel))
            self.open = outside
            if is_kernel and self.depth >= 0:
                self.in_level.append((self.depth, name, begin, end))

    def begin_level(self, slots: Any) -> None:
        self.depth += 1
        grown = self.grown.setdefault(self.depth, [0, 0])
        grown[0] += slots.n_slots
        grown[1] += slots.max_rows

    def clear(self) -> None:
        """Forget what was seen."""
        for seen in (self.spans, self.grown, self.in_level, self.prepared):
            seen.clear()

    def preparing(self) -> dict[str, float]:
        """The median of the host's seconds to prepare a launch, by kernel."""
        return {name: median(seconds) for name, seconds in self.prepared.items()}

    def levels(self) -> list[dict[str, Any]]:
        """Of each level of all waves its slots, their rows, and seconds by kernel."""
        self.device.synchronize()
        kernels: dict[int, dict[str, float]] = {depth: {} for depth in self.grown}
        for depth, name, begin, end in self.in_level:
            own = kernels[depth]
            own[name] = own.get(name, 0.0) + self.device.elapsed(begin, end)
        return [
            {"depth": depth, "slots": n, "rows": rows, "kernels": kernels[depth]}
            for depth, (n, rows) in self.grown.items()
        ]

    def lines(self) -> list[dict[str, Any]]:
        """Calls, launches of the package's own kernels, and seconds of each path, without the spans
        inside, too: in the order of the first calls, each after the path that it is in."""
        self.device.synchronize()
        found: dict[tuple[str, ...], dict[str, Any]] = defaultdict(
            lambda: {"calls": 0, "launches": 0, "seconds": 0.0, "own_seconds": 0.0}
        )
        for path, begin, end, is_kernel in self.spans:
            line, seconds = found[path], self.device.elapsed(begin, end)
            line["calls"] += 1
            line["seconds"] += seconds
            line["own_seconds"] += seconds
            for n in range(1, len(path) + 1):
                found[path[:n]]["launches"] += is_kernel
            if len(path) > 1:
                found[path[:-1]]["own_seconds"] -= seconds
        # a span ends, and so is noted, after those inside it
        first = {path: i for i, path in enumerate(found)}
        order = sorted(found, key=lambda x: [first[x[:n]] for n in range(1, len(x) + 1)])
        return [{"path": "/".join(path), **found[path]} for path in order]


@contextmanager
def watching(device: Any) -> Iterator[Watch]:
    """Inside, estimators with backend=NAME are watched."""
    watch, kind = Watch(device), device.backend_class

    def subclass(kind: type, names: list[str], **more: Any) -> Any:
        methods = {n: watch.wrap(SHOWN.get(n, n), getattr(kind, n), n) for n in names}
        return type("Watched", (kind,), methods | more)

    parts = {part: subclass(type(getattr(kind, part)), n)() for part, n in PARTS.items()}
    parts |= {"prepare": watch.wrap_prepare(kind.prepare), "together": CudaLaunches.together}
    watched = subclass(kind, OPERATIONS, **parts)
    registry.register_backend(NAME, lambda n, budget: device.make_backend(watched, n, budget))
    with ExitStack() as patches:
        for module, name, shown in STAGES:
            wrapped = watch.wrap(shown, getattr(module, name))
            patches.enter_context(patch.object(module, name, wrapped))
        for owner in (task.Classes, task.Numbers):
            for name, shown in METHODS:
                wrapped = watch.wrap(shown, getattr(owner, name))
                patches.enter_context(patch.object(owner, name, wrapped))
        yield watch
