"""Waves, the deep phase and finished forests on a CUDA device: the sizes of launches, their memory,
and how a block of the deep phase uses its shared memory.

`CupyBackend` runs this on a GPU. Tests run the same code with NumPy arrays and kernels
built for the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from gpuforest.backends import gpu
from gpuforest.backends.base import Active, Array, Backend, SplitKind, evenly
from gpuforest.backends.booster import Boosting
from gpuforest.backends.cuda.boosting import CudaBooster
from gpuforest.backends.cuda.launch import codes_for, codes_of, macros_of, target_type, targets_of
from gpuforest.backends.cuda.levels import CudaLevels
from gpuforest.backends.cuda.nodes import CudaNodes, CudaSampling
from gpuforest.common.errors import BackendError
from gpuforest.core.forest import Forest
from gpuforest.core.frontier import Frontier, Subtrees, Trees
from gpuforest.core.rules import Sampling
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.structs import Categories, Grown, Layout, Open, Roots
from gpuforest.kernels.shared import constants, structs

MOST_DEEP_ROWS = 8192  # positions of nodes in a block have 16 bits
CELLS = 128  # bins of a histogram are rounded up to a multiple of it
CELLS_SHARE = 2
ALIGNED = 16  # bytes; the parts begin at multiples of it

# copies of forests on devices, by the device's number
_forests: WeakKeyDictionary[Forest, dict[int, tuple[Trees, Array]]] = WeakKeyDictionary()
# Rows of a launch of the deep phase, for each processor: by arithmetic a third of a second on a T4,
# while Windows ends kernels that take two
LAUNCH_ROWS = 2**22
LEFT_OUT = "GPU %d grows no trees: %s"


class CudaBackend(CudaLevels):
    """All kernels on a device: edges, waves, the deep phase, and finished forests."""

    nodes, sampling = CudaNodes(), CudaSampling()

    @cached_property
    def peers(self) -> Sequence[CudaBackend]:
        """Backends of other devices, where trees of a fit grow as well."""
        return ()

    def booster(self, boosting: Boosting) -> CudaBooster:
        return CudaBooster(self, boosting)

    def places(self, training: Training, n: int) -> list[tuple[Training, Backend, Active]]:
        """This device and its peers; each gets some threads, and a copy of codes and targets."""
        if n > 1:  # what grows tree after tree needs no peers, and makes none
            self.peers = self.able_peers(training, n)
        backends = [self, *self.peers][:n] if n > 1 else [self]
        if len(backends) == 1:
            return super().places(training, n)
        self.synchronise()  # neither other devices nor other threads wait for this stream
        places: list[tuple[Training, Backend, Active]] = []
        for backend in map(copy, backends):
            backend.n_threads = max(1, self.n_threads // len(backends))
            is_here = backend.device_number == self.device_number
            place = training if is_here else backend.brought(training)
            places.append((place, backend, backend.active))
        return places

    def able_peers(self, training: Training, n: int) -> list[CudaBackend]:
        """The peers whose waves hold half as many of n trees as this device's, or more, because
        waves have one size on all devices. Log records name the others."""
        wanted = (
            training.sampling, training.n_channels, -(-n // (1 + len(self.peers))),
            training.node_words, len(training.rules.signs) > 0,
        )  # fmt: skip
        size, able = self.waves(*wanted)[2], []
        for peer in self.peers:
            if self.room is not None:  # the limit of each device
                peer.room = self.room
                peer.memory_budget = min(peer.memory_budget, self.memory_budget)
            try:
                held = peer.waves(*wanted, beside=peer.bytes_to_bring(training))[2]
            except BackendError:
                held = 0
            if 2 * held >= size:
                able.append(peer)
            else:
                why = f"a wave of {held} trees fits its memory, and one of {size} the current GPU's"
                gpu.logger.warning(LEFT_OUT, peer.device_number, why)
        return able

    def waves(
        self, sampling: Sampling, C: int, n_trees: int, n_words: int = 0, bounded: bool = False,
        *, beside: int = 0,
    ) -> tuple[int, Backend, int]:  # fmt: skip
        """The trees that fit memory: bags, rows twice, nodes, leaves, sets twice, bounds. `beside`:
        bytes that are free, and will be taken before."""
        free = self.free_bytes() - self.memory_budget - beside
        row = 56 + 12 * C + 8 * self.keeps_codes
        row += (16 * n_words + 40) * (n_words > 0) + 16 * bounded
        tree = 4 * sampling.n_rows + row * sampling.likely_bag_rows
        if tree > free:
            raise BackendError(
                f"one tree of {sampling.n_rows} rows needs about {tree + self.memory_budget} "
                f"bytes of device memory, of which {self.free_bytes()} are free: lower "
                "max_samples, free memory, or use backend='numba'"
            )
        if self.room is not None:
            free = min(free, self.room - self.memory_budget)
        return 1, self, evenly(n_trees, free // tree)

    def deep_rows(self, training: Training, n_rows: int) -> int:
        C = training.n_channels
        if self.shared_limit < 8 * constants.CUT_SUMS * C:
            raise BackendError(
                f"{C} classes or outputs are too many for this GPU, which takes "
                f"{self.shared_limit // (8 * constants.CUT_SUMS)}: use backend='numba'"
            )
        # categories are put in order for two channels, see `registry.for_categories`
        if training.n_words and C > 2 and not training.rules.random:
            return 0
        return self.deep_plan(training).rows

    def deep_plan(self, training: Training) -> DeepPlan:
        """The plan of the deep phase. Four small blocks share a multiprocessor if many rows fit,
        because few warps wait for each other; else two, or one. They have as many warps as the
        registers allow. Codes stay in global memory if rows are too wide."""
        size = targets_of(self.xp, training).at.itemsize
        for blocks, share, least in ((4, 4, 900), (2, 2, 512), (2, 1, 256), (2, 2, 64)):
            limit = self.shared_share(share)
            plan = plan_of(training, size, limit, blocks, share == 1 or least > 64)
            if plan.rows >= least:
                return plan
        return NO_PLAN

    def grow_subtrees(self, training: Training, slots: Frontier, kind: SplitKind) -> Subtrees:
        xp, f, D = self.xp, slots, slots.n_slots
        matrix, rules, W = training.matrix, training.rules, training.node_words
        plan, C, y = self.deep_plan(training), training.n_channels, targets_of(self.xp, training)
        first = self.sums_before(f.end, f.begin)
        sparse = self.zeros(2 * f.max_rows, xp.uint64)
        sparse_sums = self.empty((f.max_rows, C), xp.int64)
        counts = self.empty((D, 2), xp.int64)
        categories = self.categories(training, f.max_rows)
        # as many rows as fit a block, or fewer, so that all blocks have work
        share = f.max_rows // (2 * self.n_processors * plan.blocks)
        share = max(1, min(share, plan.layout.rows))
        bounds = None if f.bounds is None else self.empty((f.max_rows, 2), xp.float64)
        grown = Grown(sparse, sparse_sums, bounds, counts)
        rest = categories, plan.layout, grown, training.combining, self.table
        special = constants.LIMITED if rules.limited else int(rules.random)
        macros = macros_of(
            matrix.codes, CRITERION=rules.criterion.number, TARGET=target_type(training, y),
            SPECIAL=special, BLOCKS=plan.blocks, SETS=W > 0, SUMS=training.combines,
        )  # fmt: skip
        blocks = -(-f.max_rows // share)
        most = max(1, LAUNCH_ROWS * self.n_processors // share)
        for begin in range(0, blocks, most):
            roots = Roots(first, D, share, begin * share)
            self.launch(
                "grow_subtrees", "grow_subtrees", min(most, blocks - begin), codes_of(training), y,
                f, roots, self.rules_of(training), *rest,
                macros=macros, threads=32 * plan.warps, shared=plan.bytes,
            )  # fmt: skip
        flat, ends = xp.reshape(counts, (-1,)), self.empty(2, xp.int64)
        offsets, leaf_offsets = (
            self.sums_before(flat[i:], stride=2, total=ends[i : i + 1]) for i in range(2)
        )
        n_nodes, n_leaves = self.asnumpy(ends).tolist()
        nodes = self.empty(n_nodes, xp.uint64)
        leaf_sums = self.empty((n_leaves, C), xp.int64)
        set_at = self.empty(n_nodes, xp.int64) if W else None
        self.launch(
            "grow_subtrees", "collect", self.blocks(D), grown, first, D, C, offsets, leaf_offsets,
            nodes, leaf_sums, W, set_at, macros=macros, shared=4 * plan.rows,
        )  # fmt: skip
        sets = xp.reshape(categories.sets, (-1,)) if W else None
        return Subtrees(offsets, nodes, leaf_offsets[:-1], leaf_sums, set_at, sets)

    def categories(self, training: Training, max_rows: int) -> Categories:
        """The categorical features, and room for sets or combinations and scratch."""
        xp, W = self.xp, training.node_words
        if not W:
            return Categories(None, None, 0, None, None, None)
        kinds, sets = (
            self.asarray(training.matrix.edges.kinds),
            self.empty((max_rows, W), xp.uint64),
        )
        scratch = (self.empty(max_rows, t) for t in (xp.float64, xp.int32, xp.int32))
        return Categories(kinds, sets, W, *scratch)

    def apply(self, forest: Forest, codes: Array) -> Array:
        N, T = codes.shape[0], forest.n_trees
        out = self.empty((N, T), self.xp.int64)
        arguments = self.forest_here(forest)[0], codes_for(forest.edges, codes), N, out
        macros = traverse_macros(forest, codes)
        self.launch("traverse", "apply", self.blocks(N, 32), *arguments, macros=macros)
        return out

    def accumulate(
        self, forest: Forest, codes: Array, trees: range, skip: Array | None, total: Array
    ) -> Array:
        N = codes.shape[0]
        walked, values = self.forest_here(forest)
        walked = replace(walked, offsets=walked.offsets[trees.start : trees.stop + 1])
        summed, macros = (values, values.shape[1], skip, total), traverse_macros(forest, codes)
        arguments = walked, codes_for(forest.edges, codes), N, *summed
        self.launch("traverse", "accumulate", self.blocks(N, 32), *arguments, macros=macros)
        return total

    def forest_here(self, forest: Forest) -> tuple[Trees, Array]:
        """A forest's trees and leaf values on the device, copied once for all streams, and kept
        while the forest lives."""
        copies = _forests.setdefault(forest, {})
        if self.device_number not in copies:
            trees = forest.walked()
            arrays = {
                name: self.asarray(value)
                for name, value in vars(trees).items()
                if hasattr(value, "shape")
            }
            copy = replace(trees, **arrays), self.asarray(forest.values)
            self.synchronise()  # a stream does not wait for the copies of another
            copies[self.device_number] = copy  # from here on other threads see it
        return copies[self.device_number]


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
    layout: Any  # a Layout

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return constants.DEEP_WARPS // self.blocks


NO_PLAN = DeepPlan(0, 0, 2, Layout(*[0] * len(Layout._fields)))


def plan_of(
    training: Training, target_size: int, limit: int, blocks: int, copy_codes: bool
) -> DeepPlan:
    """The plan with the most rows that fit `limit` bytes of shared memory; rows <= 0: no row fits.

    target_size : bytes of a class code or moment. copy_codes : False: codes stay in global
    memory"""
    itemsize, coding = training.matrix.codes.itemsize, training.target.coding
    C, warps = coding.n_channels, constants.DEEP_WARPS // blocks
    # an odd number of 32-bit words, so that rows begin in different banks
    stride = (-(-training.n_features * itemsize // 4) | 1) * 4 if copy_codes else 0
    # bytes of each part: a constant and a number for each row, in the order of Layout
    node = structs.dtype_of(Open).itemsize
    cells = cells_of(training, limit, warps)
    parts = {
        "target": (0, target_size * (1 if coding.is_classes else C - 1)),
        "scratch": (8 * C * constants.NODE_SUMS * warps, 0),
        "open": (2 * node, 2 * node / (constants.FEW_ROWS + 1)),
        "waiting": (node, node / 2),
        "roots": (2, 1),
        "keys": (0, 4),
        "weight": (0, 4),
        "row": (0, 0 if copy_codes else 4),
        "cells": (cells, 0),
        "order": (0, 2),
        "codes": (0, stride),
    }
    fixed = sum(constant + ALIGNED for constant, _ in parts.values())
    rows = min(
        MOST_DEEP_ROWS, int((limit - fixed) // sum(per_row for _, per_row in parts.values()))
    )
    begin, at = {}, 0
    for name, (constant, per_row) in parts.items():
        size = constant + math.ceil(per_row * max(rows, 0))
        begin[name] = at if size else 0
        at += -(-size // ALIGNED) * ALIGNED
    words = {"rows": rows, "stride": stride // itemsize, "n_cells": cells // 4}
    return DeepPlan(rows, limit, blocks, Layout(**begin, **words))


def cells_of(training: Training, limit: int, warps: int) -> int:
    """Bytes for histograms of a feature per warp, or of fewer that fit a part of `limit`, or for
    counts of codes to sort by, or 0. With categorical or combined features rows are sorted."""
    C, B = training.n_channels, training.grown_codes
    words = (C if training.target.coding.is_classes else 2 * C - 1) + training.rules.count_rows
    histogram, counts = 4 * words * (-(-B // CELLS) * CELLS), 4 * warps * B
    most = limit // CELLS_SHARE
    n_histograms = 0 if training.node_words else max(min(warps, most // histogram), 0)
    size = n_histograms * (histogram + 4 * constants.DEEP_PAD)
    return max(size, counts) if counts <= most else size


def traverse_macros(forest: Forest, codes: Array) -> dict[str, str]:
    sets = len(forest.sets) > 0
    return macros_of(codes, SETS=sets, SUMS=sets and forest.oblique)
