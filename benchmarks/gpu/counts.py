"""What a fit asks of a GPU: counted on the CPU for a small part of a work, and multiplied.

Below its first j levels a tree of N rows is 2^j trees of N / 2^j rows. So the package's own host
code grows one tree of few rows, with j levels less to go, and the tests' runner traces its
kernels. Each count is multiplied by 2^j and by the number of trees. Each of the j levels above has
as many rows as the first level of all small trees, and counts as that for kernels over rows; slots
double from level to level, so for kernels over slots all levels above count as that once. Tables
are four times as large, so that few rows share a sector of memory, as in the nodes of a large fit.

Edges, codes and bags, which read all rows in their order, are counted apart, in dense tables.
Launches and operations of arrays are counted for each level, and not multiplied.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from math import exp, log, log2
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.gpu.work import Work, make
from benchmarks.record import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))

from cuda_on_cpu import module as runner
from engine import UNLIMITED, Task
from picky import PickyBackend, operations, waits
from traced import TracedBackend

from gpuforest.backends.cuda import launch as cuda_launches
from gpuforest.backends.cuda.nodes import CudaNodes, CudaSampling
from gpuforest.backends.numba import NumbaBackend
from gpuforest.engine import grow
from gpuforest.engine.binning import SAMPLE_ROWS
from gpuforest.engine.records import Sampling
from gpuforest.estimators.settings import features_tried

SPARSE = 4
# draws from a table SPARSE times as large that give as many different rows
FEWER = -SPARSE * log(1 - (1 - exp(-1)) / SPARSE)
# kernels over tiles of rows
ROWS = {"histogram", "histogram_direct", "compare_rows", "mark", "move", "differing"}
# kernels in which a block takes LEAST_SPAN slots or nodes, and as long for fewer
SPANS = {
    "number_kinds", "sum_spans", "sums_before", "count_keys", "number_keys",
}  # fmt: skip
EDGE_ROWS, EDGE_COLUMNS = 8192, 4
HOST_ROWS, HOST_DEEP = 600, 100  # of the fit whose operations of arrays are counted

Macros = tuple[tuple[str, str], ...]


@dataclass
class Asked:
    """What a kernel, or several, asked of a GPU.

    events : warp accesses, and meetings of warps; see loops.py
    taken, possible : meetings of all warps, and of as many as busy as the busiest
    lines : of 64 bytes, read or written by lanes side by side
    gathered_lines, gathered_sectors : of 64 and 32 bytes, read by lanes at random
    atomic_sectors : of 32 bytes, in all warp accesses of atomics on global memory
    passes, atomic_passes : over the banks of shared memory
    """

    launches: float = 0
    events: float = 0
    taken: float = 0
    possible: float = 0
    lines: float = 0
    gathered_lines: float = 0
    gathered_sectors: float = 0
    atomic_sectors: float = 0
    passes: float = 0
    atomic_passes: float = 0

    def __add__(self, other: Asked) -> Asked:
        return Asked(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float, launches: float) -> Asked:
        """So many launches, and of all else a multiple."""
        _, *others = astuple(self)
        return Asked(self.launches * launches, *(factor * n for n in others))

    @property
    def utilisation(self) -> float:
        return self.taken / self.possible if self.possible else 1.0


def asked_of(kernel: str) -> Asked:
    """What the runner counted since it was cleared."""
    t = runner.traffic(kernel)
    taken, possible = runner.busy_turns[kernel]
    return Asked(
        runner.launches[kernel], t.warps + taken, taken, possible, t.reads.lines + t.writes.lines,
        t.gathers.lines, t.gathers.sectors, t.atomics.parts,
        t.shared_reads.parts + t.shared_writes.parts, t.shared_atomics.parts,
    )  # fmt: skip


class PhasedNodes(CudaNodes):
    """Says that a level begins."""

    def sort_out(self, training: Any, *arguments: Any) -> Any:
        backend = training.backend
        backend.moved("first level" if backend.phase == "roots" else "levels")
        return super().sort_out(training, *arguments)


class HostEdges(CudaSampling):
    """Edges of the host, which are the same; those of the device are counted apart."""

    def column_edges(self, backend: Any, *arguments: Any) -> Any:
        return NumbaBackend.sampling.column_edges(NumbaBackend(1), *arguments)


class Phases:
    """Mixed into a backend: says where a fit has come to, to `moved`."""

    phase = "roots"
    nodes = PhasedNodes()

    def moved(self, phase: str) -> None:
        self.phase = phase

    def grow_subtrees(self, *arguments: Any) -> Any:
        self.moved("deep phase")
        found = super().grow_subtrees(*arguments)  # type: ignore[misc]
        self.moved("assembly")
        return found


class Tracing(Phases, TracedBackend):
    """What each kernel asked in each phase; and with which macros it was compiled."""

    sampling = HostEdges()

    def __init__(self, shared_limit: int) -> None:
        super().__init__(shared_limit=shared_limit)
        self.asked: dict[tuple[str, str], Asked] = defaultdict(Asked)
        self.macros_of: dict[str, tuple[str, Macros]] = {}
        self.clear()

    def clear(self) -> None:
        for counter in (runner.asked, runner.busy_turns, runner.launches):
            counter.clear()

    def moved(self, phase: str) -> None:
        for kernel in runner.asked:
            self.asked[self.phase, kernel] += asked_of(kernel)
        self.clear()
        super().moved(phase)

    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        self.macros_of[name] = operation, tuple(macros.items())
        return super().kernel(operation, name, macros, shared)


class Counting(Phases, PickyBackend):
    """Operations of arrays, and waits, in each phase."""

    def __init__(self) -> None:
        super().__init__(deep=HOST_DEEP)
        self.found: dict[str, int] = defaultdict(int)
        self.before = operations.total() + waits.total()

    def moved(self, phase: str) -> None:
        now = operations.total() + waits.total()
        self.found[self.phase] += now - self.before
        self.before = now
        super().moved(phase)


@dataclass
class Counts:
    """What a whole fit asks.

    kernels : by name
    operations : of arrays, and waits
    table_bytes : of all codes
    forest_bytes : that are copied to the host
    """

    work: Work
    table_bytes: float
    forest_bytes: float
    operations: float
    levels: float
    kernels: dict[str, Asked] = field(default_factory=dict)
    macros_of: dict[str, tuple[str, Macros]] = field(default_factory=dict)

    def add(self, kernel: str, asked: Asked) -> None:
        self.kernels[kernel] = self.kernels.get(kernel, Asked()) + asked


def task_of(work: Work, n: int, drawn: int, depth: int | None) -> Task:
    X, y = make(work, np, n)
    return Task(
        X, y, "gini" if work.is_classes else "squared_error", n_draws=drawn, seed=1,
        n_tried=features_tried(work.max_features, work.features),
        max_depth=UNLIMITED if depth is None else max(1, depth),
    )  # fmt: skip


def levels_above(work: Work, n_rows: int) -> int:
    """How many levels lie above trees of about n_rows rows."""
    return max(0, int(log2(work.rows / n_rows)))


def count(work: Work, shared_limit: int, memory: float, n_rows: int = 4096) -> Counts:
    """What a fit of a work asks of a device with so much memory, for itself and in a block.

    n_rows : rows of the small trees at the least; they have less than twice as many
    """
    above = levels_above(work, n_rows)
    n, T = work.rows >> above, work.trees
    with large_tiles():
        dense, deep = Tracing(shared_limit), Tracing(shared_limit)
        training = task_of(work, n, n, work.depth).training(dense)
        grow.roots(training, 0, 1)
        dense.moved("end")
        depth = None if work.depth is None else work.depth - above
        forest = task_of(work, SPARSE * n, round(FEWER * n), depth).grow(deep)
        deep.moved("end")
    if above and not deep.rows[0]:
        raise ValueError(f"{work.name}: {n} rows fit a block, so there is no level to count")
    waves = n_waves(work, training, memory)
    scale = work.rows / n
    found = Counts(
        work,
        work.rows * training.matrix.codes.nbytes / n,
        scale * T * (forest.nodes.nbytes + forest.leaf_sums.nbytes),
        waves * host_operations(work, above),
        above + len(deep.rows),
        macros_of={**dense.macros_of, **deep.macros_of},
    )
    for kernel, asked in edges_asked(work, shared_limit, found.macros_of):
        found.add(kernel, asked)
    for (_, kernel), asked in dense.asked.items():
        found.add(kernel, asked.times(scale * (1 if kernel == "encode" else T), waves))
    for (phase, kernel), asked in deep.asked.items():
        if phase == "roots":
            continue
        more = above if phase == "first level" else 0
        factor = scale * T * (1 + (more if kernel in ROWS else min(more, 1)))
        if kernel in SPANS:
            factor = max(1, factor * max(deep.slots) / cuda_launches.LEAST_SPAN)
        found.add(kernel, asked.times(factor, waves * (1 + more)))
    return found


@contextmanager
def large_tiles() -> Iterator[None]:
    """Tiles as large as in large fits."""
    with patch.object(cuda_launches, "LEAST_TILE", cuda_launches.MOST_TILE):
        yield


def edges_asked(
    work: Work, shared_limit: int, macros_of: dict[str, tuple[str, Macros]]
) -> list[tuple[str, Asked]]:
    """The edges of all columns, from those of a few."""
    backend = Tracing(shared_limit)
    columns = min(EDGE_COLUMNS, work.features)
    X, _ = make(work, np, EDGE_ROWS)
    CudaSampling().column_edges(backend, X[:, :columns].copy(), None, None, 255)
    backend.moved("end")
    macros_of.update(backend.macros_of)
    factor = work.features / columns * min(work.rows, SAMPLE_ROWS) / EDGE_ROWS
    return [(kernel, asked.times(factor, 1)) for (_, kernel), asked in backend.asked.items()]


def n_waves(work: Work, training: Any, memory: float) -> int:
    """Of all trees, with seven eighths of the memory free, and an eighth of these for
    histograms."""
    free = int(memory * 7 / 8 - 4 * work.rows * work.features)
    backend = TracedBackend(free // 8, free=free)
    sampling = Sampling(work.rows, work.rows, None)
    return -(-work.trees // backend.waves(sampling, training.n_channels, work.trees)[2])


def host_operations(work: Work, above: int) -> float:
    backend = Counting()
    task_of(work, HOST_ROWS, HOST_ROWS, work.depth).grow(backend)
    backend.moved("end")
    return sum(backend.found.values()) + above * backend.found["first level"]
