"""A run: its lines, its time, and what happens when a part of it fails."""

from __future__ import annotations

import argparse
import shutil
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import gpuforest
from benchmarks.gpu.work import Work
from benchmarks.record import Log

# what CUDA says when nothing more can be done in this process
LOST = (
    "illegaladdress", "illegalinstruction", "launchfail", "launchtimeout", "errorassert",
    "misaligned", "hardwarestack", "invalidpc", "ecc",
)  # fmt: skip


class LostDevice(Exception):
    """A kernel failed: CUDA is of no more use in this process."""


class Run:
    """What all parts share: `options.minutes` from now on, parts that would begin are left out."""

    def __init__(self, device: Any, log: Log, options: argparse.Namespace) -> None:
        self.device, self.log, self.options = device, log, options
        self.end = time.monotonic() + 60 * options.minutes
        self.lines: list[dict[str, Any]] = []
        self.copy: float | None = None  # bytes a second, read and written

    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()

    def add(self, what: str, work: Work | None = None, **measured: Any) -> None:
        """A line of results; `seconds` come with their median."""
        line: dict[str, Any] = {"what": what}
        if work is not None:
            line["work"] = work.name
            line |= {k: getattr(work, k) for k in ("rows", "features", "trees", "depth")}
        line |= measured
        if "seconds" in line:
            line["median"] = float(np.median(line["seconds"]))
        self.lines.append(line)
        self.log.add(**line)

    def attempt(
        self, what: str, work: Work | None, part: Callable[[], Any], least: float = 5.0
    ) -> None:
        """Do a part, unless fewer than `least` seconds are left; an error becomes a line."""
        if self.left() < least:
            self.skip(what, work, "the time is up")
            return
        try:
            part()
        except LostDevice:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            self.add(what, work, error=said)
            print(f"{what}{f' of {work.name}' if work else ''} failed: {said}")
            traceback.print_exc()
            plain = said.lower().replace("_", "")
            if "cuda" in plain and any(name in plain for name in LOST):
                raise LostDevice(said) from None
        self.device.restart_memory()

    def skip(self, what: str, work: Work | None, why: str) -> None:
        self.add(what, work, skipped=why)
        print(f"{what}{f' of {work.name}' if work else ''}: skipped, {why}", flush=True)

    @property
    def failed(self) -> bool:
        return any("error" in line or line.get("same") is False for line in self.lines)


def tool_of_cuda(name: str) -> str | None:
    """The path of a program."""
    return shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")


def model_of(work: Work, backend: str, **more: Any) -> Any:
    """The estimator of a work, as a user would make it."""
    kind = "Classifier" if work.is_classes else "Regressor"
    own = {"n_estimators": work.trees, "max_depth": work.depth, "max_features": work.max_features}
    own |= {"random_state": 1, "n_jobs": -1, "backend": backend}
    return getattr(gpuforest, f"RandomForest{kind}")(**{**own, **more})


def same_forest(a: Any, b: Any) -> bool:
    """Whether two models are one, array for array."""
    a, b = a.forest_, b.forest_
    names = "nodes", "tree_offsets", "leaf_sums", "leaf_values"
    pairs = [(getattr(a, n), getattr(b, n)) for n in names if hasattr(a, n)]
    pairs += [(a.edges.values, b.edges.values), (a.edges.offsets, b.edges.offsets)]
    return all(np.array_equal(x, y) for x, y in pairs)
