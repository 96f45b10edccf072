"""Splits that set rows apart by the effect of a treatment: the gradient-based splits of causal
forests (Athey, Tibshirani and Wager, "Generalized random forests", Annals of Statistics 47, 2019).

A row adds its weight and the moments y, w, z y and z w to the sums of a node: outcome y, treatment
w, and instrument z, which is w itself or one moment more. In each node the effect is the slope b of
y on w, by the instrument, and a row's pseudo-outcome is

    r = (z - mean z) (y - mean y - b (w - mean w)),    b = cov(z, y) / cov(z, w)

whose sum over a node is 0. It is large on a side whose effect is above the node's. So splits are
those of a regression of r, which is rounded to whole multiples of a node's step. An example of four
rows of weight one, whose w are 0, 1, 0, 1 and y 0, 1, 2, 5: cov(w, y) = 1/2, var(w) = 1/4, b = 2,

    y - mean y - b (w - mean w)    -1   -2    1    2
    r                              1/2  -1  -1/2   1

and the first two rows, of effect 1, add up to -1/2, the others, of effect 3, to 1/2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend, Moved, has
from gpuforest.backends.slots import gathered, held
from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.core.target import Target, TargetCoding, moment_bits
from gpuforest.core.training import Training
from gpuforest.kernels.grow_subtrees.scratch import Scratch
from gpuforest.splits.base import NUMERIC, Sets
from gpuforest.splits.effects.numba import ROOM, Pseudo, grow_effects

ONE_MOMENT = TargetCoding(None, np.zeros(1), 1.0)


class Effects(Sets):
    """Cuts, and sets of categories, by pseudo-outcomes of the rows of each node."""

    name = "effects"
    title = "splits by effects of a treatment"
    whole_rows = True
    by_level = False
    kernel = grow_effects
    row_bytes = 16  # a weight and a pseudo-outcome

    def deep_rows(self, backend: Backend, training: Training, n_rows: int) -> int:
        """Compiled code grows whole trees; other backends go on level by level."""
        return n_rows if backend.on_host and has(backend, "grow_subtrees") else 0

    def cpu_scratch(self, training: Training, scratch: Scratch, data: Data) -> tuple[Any, ...]:
        share = training.rules.least_share
        units = np.array([training.target.coding.scale, most_of(training), share])
        order = scratch.order
        stats = np.empty((len(order.stats), 2), np.int64)
        by_pseudo = scratch._replace(order=order._replace(stats=stats))
        return (Pseudo(units, np.zeros(2, np.int64), by_pseudo),)

    def best(
        self, backend: Backend, training: Training, slots: Frontier, features: Array, need: Array
    ) -> Splits:
        """The best split by pseudo-outcomes; `move` fills in the sums of left sides."""
        xp, matrix = backend.xp, training.matrix
        rows = xp.take(slots.rows, held(xp, slots)[1])
        pseudo = pseudo_outcomes(backend, training, slots, rows)
        codes = xp.take(matrix.codes, rows, axis=0)
        by_pseudo = replace(
            training,
            matrix=replace(matrix, codes=codes, scratch=None),
            target=Target(ONE_MOMENT, pseudo[:, None]),
        )
        local = gathered(xp, slots)
        sums = backend.totals(by_pseudo, local.rows, local.weights, local.begin, local.end)[0]
        local = replace(local, sums=sums)
        splits = self._best_of_shares(backend, by_pseudo, local, features, need)
        return replace(splits, left=xp.zeros_like(slots.sums))

    def _best_of_shares(
        self, backend: Backend, training: Training, slots: Frontier, features: Array, need: Array
    ) -> Splits:
        """The best splits, of slots with the same least number of rows of a side at a time."""
        xp, rules, found = backend.xp, training.rules, []
        n_rows = backend.asnumpy(slots.n_rows)
        share = np.ceil(rules.least_share * n_rows).astype(np.int64)
        least = np.maximum(rules.min_rows_leaf, share)
        order = np.argsort(least, kind="stable")
        best = super().best if training.n_words else NUMERIC.best
        for part in np.split(order, np.flatnonzero(np.diff(least[order])) + 1):
            at = backend.asarray(part)
            some = slots.take(xp, at, int(n_rows[part].sum()))
            limited = replace(rules, min_rows_leaf=int(least[part[0]]))
            of_part = (xp.take(a, at, axis=0) for a in (features, need))
            found.append(best(backend, replace(training, rules=limited), some, *of_part))
        return Splits.join(xp, found).take(xp, backend.asarray(np.argsort(order)))

    def move(self, backend: Backend, training: Training, slots: Frontier, splits: Splits) -> Moved:
        xp = backend.xp
        rows, weights, n_left = super().move(backend, training, slots, splits)
        size = rows.shape[0]
        begin = (slots.begin + size // 2) % max(size, 1)  # in the other half
        end = begin + xp.where(splits.feature >= 0, n_left, 0)
        splits.left[...] = backend.totals(training, rows, weights, begin, end)[0]
        return rows, weights, n_left


def most_of(training: Training) -> float:
    """A bound of the moments of all rows."""
    return 2.0 ** moment_bits(training.sampling.most_weight)


def pseudo_outcomes(backend: Backend, training: Training, slots: Frontier, rows: Array) -> Array:
    """Pseudo-outcomes i64[n] of rows, slot after slot, in steps that differ from slot to slot: no
    sum of weights times pseudo-outcomes reaches 2**61."""
    xp, scale, most = backend.xp, training.target.coding.scale, most_of(training)
    sums = xp.astype(slots.sums, xp.float64)
    n = xp.where(sums[:, 0] > 0, sums[:, 0], 1.0)
    y, w, zy, zw, z = (sums[:, c] / n for c in (1, 2, 3, 4, sums.shape[1] - 1))
    if sums.shape[1] < 6:  # the treatment is its own instrument
        z = w
    of_y, of_w = zy * scale - z * y, zw * scale - z * w
    slope = xp.where(of_w != 0, of_y / xp.where(of_w != 0, of_w, 1.0), 0.0)
    step = ROOM / (n * (most * most) * (1.0 + xp.abs(slope)))
    slot = held(xp, slots)[0]
    moments = xp.astype(xp.take(training.target.y, rows, axis=0), xp.float64)

    def off(column: int, means: Array) -> Array:
        return moments[:, column] - xp.take(means, slot)

    z_off = off(4 if sums.shape[1] == 6 else 1, z)
    pseudo = z_off * (off(0, y) - xp.take(slope, slot) * off(1, w))
    return xp.astype(xp.floor(pseudo * xp.take(step, slot) + 0.5), xp.int64)
