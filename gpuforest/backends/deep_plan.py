"""How the deep phase of the CUDA backend uses a block's shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuforest.kernels.shared.constants import NODE_SUMS, THREADS
from gpuforest.kernels.shared.structs import Layout, Open, dtype_of

if TYPE_CHECKING:
    from gpuforest.training import Training

MOST_DEEP_ROWS = 8192  # positions of nodes in a block have 16 bits
ALIGNED = 16  # bytes; the parts begin at multiples of it


@dataclass(frozen=True)
class DeepPlan:
    """How many rows a block takes, and the layout of its shared memory.

    rows : the most rows of a slot; 0: there is no deep phase
    bytes : bytes of shared memory
    layout : the byte offsets of its parts, which hold at least `rows` rows
    """

    rows: int
    bytes: int
    layout: Layout


NO_PLAN = DeepPlan(0, 0, Layout(*[0] * len(Layout._fields)))


def plan_of(training: Training, limit: int, copy_codes: bool) -> DeepPlan:
    """The plan with the most rows that fit `limit` bytes of shared memory; rows <= 0 if none do.

    copy_codes : whether codes are copied to shared memory, or read from global memory
    """
    itemsize, coding = training.matrix.codes.itemsize, training.target.coding
    C, B, warps = coding.n_channels, training.n_codes, THREADS // 32
    # an odd number of 32-bit words, so that rows begin in different banks
    stride = (-(-training.n_features * itemsize // 4) | 1) * 4 if copy_codes else 0
    counts = 4 * warps * B
    # bytes of each part: a constant and a number for each row, in the order of Layout
    node = dtype_of(Open).itemsize
    parts = {
        "target": (0, 4 if coding.is_classes else 8 * (C - 1)),
        "scratch": (8 * NODE_SUMS * C * warps, 0),
        "open": (2 * node, node),  # two levels; each has at most half as many nodes as rows
        "keys": (0, 4),
        "weight": (0, 4),
        "row": (0, 0 if copy_codes else 4),
        # each warp counts rows by code, to sort them, if the counts leave most memory free
        "counts": (counts if 6 * counts <= limit else 0, 0),
        "order": (0, 2),
        "codes": (0, stride),
    }
    fixed = sum(own + ALIGNED for own, _ in parts.values())
    rows = min(MOST_DEEP_ROWS, (limit - fixed) // sum(each for _, each in parts.values()))
    begin, at = {}, 0
    for name, (own, each) in parts.items():
        size = own + each * max(rows, 0)
        begin[name] = at if size else 0
        at += -(-size // ALIGNED) * ALIGNED
    return DeepPlan(rows, limit, Layout(**begin, rows=rows, stride=stride // itemsize))
