"""An estimate of the memory of a fit besides X and y, and a way to stay within a limit.

estimators/memory.py has the formulas of the stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.core.bins import SAMPLE_ROWS
from gpuforest.growing import edges

MIB = 2**20
ROUNDING = 1e-12  # of sums of probabilities
SORTED = 32  # bytes of a row, while a thread chooses the edges of a column
WALKED = 32  # bytes of a row and a tree that are walked for unbiased importances


@dataclass(frozen=True)
class MemoryEstimate:
    """An estimate of the bytes that a fit takes besides X and y. `str` of it is a table.

    codes : the binned features
    target : the coded target, its labels, weights
    binning : for a while, before trees grow
    bags : the rows and weights of the trees that grow at the same time
    growing : scratch, histograms and unfinished trees; and waves while they are joined
    forest : the grown trees; this depends on the data most
    total : the most at once: codes, target, and binning or the rest
    """

    codes: int
    target: int
    binning: int
    bags: int
    growing: int
    forest: int

    @property
    def total(self) -> int:
        after = self.bags + self.growing + self.forest
        return self.codes + self.target + max(self.binning, after)

    def __str__(self) -> str:
        names = [*(f.name for f in fields(self)), "total"]
        return "\n".join(f"{name:<8}{getattr(self, name) / 1e6:>12,.1f} MB" for name in names)


@dataclass(frozen=True)
class Table:
    """What is known about a table before it is binned."""

    n_rows: int
    n_features: int
    max_bins: int
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """Of a row of codes."""
        return self.n_features * (1 if self.max_bins < 256 else 2)

    @property
    def n_codes(self) -> int:
        """B."""
        return min(self.max_bins, self.n_rows) + 1

    def binning_bytes(self, backend: Backend) -> int:
        """Bytes while edges are chosen from columns of a sample, or blocks of X are encoded."""
        F, n, size = self.n_features, min(self.n_rows, SAMPLE_ROWS), self.dtype.itemsize
        value, is_copied = min(8, max(4, size)), self.dtype not in (np.float32, np.float64)
        found = 8 * min(self.max_bins, n)  # of a column
        columns = min(F, max(1, backend.memory_budget // (n * value + found)))
        choosing = columns * n * value + 2 * F * found + min(backend.n_threads, F) * SORTED * n
        block = min(self.n_rows, edges.block_rows(F, backend))
        return max(choosing, block * (self.row_bytes + F * value * is_copied))


def walked_at_once(n_rows: int, budget: int) -> int:
    """The number of trees that n_rows rows walk down at a time, for unbiased importances."""
    return max(1, budget // (WALKED * n_rows))


def truncated_tree(leaves: float, max_depth: int) -> tuple[int, int]:
    """Leaves of a random search tree of n leaves cut off at `max_depth`, and leaves at that depth.
    2**j P(Poisson(ln n) >= j) nodes lie j levels below the root. Trees of 40,000 rows, cut off 6 to
    20 levels below their roots, had 1.0 to 1.1 times as many nodes on data like HIGGS, and 0.6 to
    1.0 times in regression."""
    if leaves < 2:
        return 1, 1
    mean, above, chance = math.log(leaves), 0.0, 1.0
    term = 1 / leaves  # P(Poisson = level)
    for level in range(max_depth):
        above += term * 2.0**level
        chance -= term
        term *= mean / (level + 1)
        if chance < ROUNDING:
            return round(leaves), 0
    deepest = 2.0**max_depth * chance
    return min(round(above + deepest), round(leaves)), round(deepest)


def smaller(
    estimate_on: Callable[[Backend], MemoryEstimate], backend: Backend, limit: int, how: str,
    what: str,
) -> Backend:  # fmt: skip
    """The backend with less memory or fewer threads, so that the estimate fits the limit. If even
    the way `how` exceeds it, a ValueError says `what` to lower."""
    estimates, threads, budget = [], backend.n_threads, backend.memory_budget
    halves = [threads >> i for i in range(threads.bit_length())]
    quarters = [budget >> i for i in range(0, budget.bit_length(), 2)]
    for threads, budget in product(halves, quarters):
        changed = copy(backend)
        changed.n_threads, changed.memory_budget = threads, budget
        estimates.append(estimate_on(changed))
        if estimates[-1].total <= limit:
            return changed
    least = min(estimates, key=attrgetter("total"))
    raise ValueError(
        f"memory_limit={limit} bytes is too little: this fit takes about {least.total} bytes even "
        f"with {how}, {least.codes} of them for the binned features and {least.forest} for the "
        f"forest; lower {what}, or raise the limit"
    )
