"""How the deep phase of the CUDA backend uses a block's shared memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpuforest.engine.records import Training
from gpuforest.kernels.grow_subtrees.structs import Layout, Open
from gpuforest.kernels.shared.constants import DEEP_WARPS, FEW_ROWS, NODE_SUMS
from gpuforest.kernels.shared.structs import dtype_of

MOST_DEEP_ROWS = 8192  # positions of nodes in a block have 16 bits
CELLS = 128  # bins of a histogram are rounded up to a multiple of it
CELLS_SHARE = 2
ALIGNED = 16  # bytes; the parts begin at multiples of it


@dataclass(frozen=True)
class DeepPlan:
    """How many rows a block takes, and the layout of its shared memory.

    rows : the most rows of a slot; 0: there is no deep phase
    bytes : bytes of shared memory
    blocks : blocks on a multiprocessor for which the kernel is compiled
    layout : the byte offsets of its parts, which hold at least `rows` rows
    """

    rows: int
    bytes: int
    blocks: int
    layout: Layout

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return DEEP_WARPS // self.blocks


NO_PLAN = DeepPlan(0, 0, 2, Layout(*[0] * len(Layout._fields)))


def plan_of(
    training: Training, target_size: int, limit: int, blocks: int, copy_codes: bool
) -> DeepPlan:
    """The plan with the most rows that fit `limit` bytes of shared memory; rows <= 0 if none do.

    target_size : bytes of a class code, or of a moment
    blocks : see `DeepPlan`
    copy_codes : whether codes are copied to shared memory, or read from global memory
    """
    itemsize, coding = training.matrix.codes.itemsize, training.target.coding
    C, warps = coding.n_channels, DEEP_WARPS // blocks
    # an odd number of 32-bit words, so that rows begin in different banks
    stride = (-(-training.n_features * itemsize // 4) | 1) * 4 if copy_codes else 0
    # bytes of each part: a constant and a number for each row, in the order of Layout
    node = dtype_of(Open).itemsize
    cells = cells_of(training, limit, warps)
    parts = {
        "target": (0, target_size * (1 if coding.is_classes else C - 1)),
        "scratch": (8 * C * NODE_SUMS * warps, 0),
        "open": (2 * node, 2 * node / (FEW_ROWS + 1)),
        "waiting": (node, node / 2),
        "roots": (2, 1),
        "keys": (0, 4),
        "weight": (0, 4),
        "row": (0, 0 if copy_codes else 4),
        "cells": (cells, 0),
        "order": (0, 2),
        "codes": (0, stride),
    }
    fixed = sum(own + ALIGNED for own, _ in parts.values())
    rows = min(MOST_DEEP_ROWS, int((limit - fixed) // sum(each for _, each in parts.values())))
    begin, at = {}, 0
    for name, (own, each) in parts.items():
        size = own + math.ceil(each * max(rows, 0))
        begin[name] = at if size else 0
        at += -(-size // ALIGNED) * ALIGNED
    words = {"rows": rows, "stride": stride // itemsize, "n_cells": cells // 4}
    return DeepPlan(rows, limit, blocks, Layout(**begin, **words))


def cells_of(training: Training, limit: int, warps: int) -> int:
    """Bytes for histograms of as many features as warps, or of as many as fit a part of the
    memory; or for counts of codes, to sort by; or none. Where features are categorical or combined,
    rows are always sorted."""
    C, B = training.n_channels, training.kind.n_codes(training)
    words = (C if training.target.coding.is_classes else 2 * C - 1) + training.rules.count_rows
    each, counts = 4 * words * (-(-B // CELLS) * CELLS), 4 * warps * B
    most = limit // CELLS_SHARE
    size = 0 if training.node_words else max(min(warps, most // each) * each, 0)
    return max(size, counts) if counts <= most else size
