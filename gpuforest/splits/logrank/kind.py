"""Splits by the log-rank statistic: events of both sides against the hazards' prediction.

Hazards need a node's rows in the order of times, so trees are grown whole on the CPU; other
backends hand these fits over to it.
"""

from __future__ import annotations

from typing import Any

from gpuforest.core.frontier import Data
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import Sets
from gpuforest.splits.logrank.numba import grow_logrank, new_at_risk


class LogRank(Sets):
    """Cuts, and sets of categories, by the events that rows at risk let expect on either side."""

    name = "logrank"
    title = "criterion='logrank'"
    cpu_only = whole_rows = has_sets = grows_whole = True
    by_level = False
    kernel = grow_logrank
    row_bytes = 80  # of rows by time, and of times
    columns = 1  # a row's number

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        times = training.target.times
        assert times is not None
        return (new_at_risk(times, data.n_channels),)
