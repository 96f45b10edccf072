"""The trees of all rounds as one forest, whose predictions add up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpuforest.backends.booster import SUM_BITS, Round
from gpuforest.common.errors import need
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.forest import joined as trees_joined
from gpuforest.core.nodes import LEAF_WORD, is_leaf, leaf_rows, unpack
from gpuforest.core.target import TargetCoding
from gpuforest.kernels.gradients.losses import Loss

NO_UNITS = np.zeros((0, 2))


@dataclass(frozen=True, eq=False)
class BoostedCoding(TargetCoding):
    """Turns sums and leaves of boosted trees back into predictions. Channels of a leaf: its number
    of rows, integer sums of gradients and of hessians; of a tree for all outputs K of each."""

    loss: Loss = field(default_factory=lambda: Loss("squared_error", 0))
    baseline: np.ndarray = field(default_factory=lambda: np.zeros(1))  # f64[K], before all trees
    units: np.ndarray = field(default_factory=lambda: NO_UNITS)  # f64[T, 2], of trees' integers
    l2: float = 0.0  # added to the sum of hessians
    has_offset: bool = False  # the model was fitted with init_score, which predictions need
    is_vector: bool = False  # a round has one tree, whose leaves add to all raw predictions

    @property
    def is_classes(self) -> bool:
        """False: leaves hold no class counts."""
        return False

    @property
    def n_channels(self) -> int:
        return 1 + 2 * (self.n_values if self.is_vector else 1)

    @property
    def round_trees(self) -> int:
        """The trees of a round."""
        return 1 if self.is_vector else self.n_values

    @property
    def n_values(self) -> int:
        """K, the raw predictions of a row."""
        return len(self.baseline)

    def columns(self, tree: int) -> slice:
        """The raw predictions to which the leaves of a tree add."""
        if self.is_vector:
            return slice(0, self.n_values)
        return slice(tree % self.n_values, tree % self.n_values + 1)

    @property
    def lacking(self) -> str | None:
        """Why writers for other libraries cannot write the model, in words; None: they can."""
        if self.has_offset:
            return "was fitted with init_score, which each prediction needs"
        if self.n_values > 1 and not self.loss.is_classes:
            return "predicts several numbers"
        if self.loss.is_logit and not self.loss.is_classes:
            return "predicts probabilities of numbers"
        return None

    def scores(self, sums: np.ndarray, tree: np.ndarray, unit: float = 1.0) -> np.ndarray:
        """Scores G^2 / (H + l2) f64[n] of channel sums i64[n, n_channels], added up over outputs;
        inf beyond float64.

        unit : a power of two, of G"""
        outputs = sums.shape[1] // 2
        g, h = (
            sums[:, 1 + i * outputs : 1 + (i + 1) * outputs] * self.units[tree, i, None]
            for i in (0, 1)
        )
        g, bottom = g / unit, h + self.l2
        with np.errstate(over="ignore"):
            return np.asarray((g * g / np.where(bottom > 0, bottom, 1.0)).sum(axis=1))

    def check(self, n_trees: int) -> None:
        """Raise ModelFormatError unless a forest of n_trees trees can have this coding."""
        baseline, units = self.baseline, self.units
        need(baseline.dtype == np.float64 and baseline.shape == (self.loss.n_raw,), "no baseline")
        need(np.isfinite(baseline).all(), "a baseline that is no finite number")
        need(units.dtype == np.float64 and units.shape == (n_trees, 2), "units that do not fit")
        need((np.isfinite(units) & (units > 0)).all(), "a unit that is no positive number")
        need(n_trees % self.round_trees == 0, "a round that is not whole")
        need(type(self.l2) is float and 0 <= self.l2 < np.inf, "l2 out of range")


def forest_of(rounds: list[Round], edges: BinEdges, coding: BoostedCoding, seed: int) -> Forest:
    """The forest of some rounds, one or more; `coding` need not have their units."""
    K, trees = coding.round_trees, [tree for r in rounds for tree in r.trees]
    sizes, n_leaves = (np.array([len(t[part]) for t in trees]) for part in (0, 2))
    nodes = np.concatenate([t.nodes for t in trees])
    # leaves are numbered in the order of the nodes
    at_leaf = is_leaf(nodes)
    rows = leaf_rows(nodes[at_leaf]) + np.repeat(np.cumsum(n_leaves) - n_leaves, n_leaves)
    nodes[at_leaf] = LEAF_WORD + np.arange(len(rows), dtype=np.uint64)
    leaves = np.concatenate([t.leaves for t in trees])[rows]
    sums = np.stack([leaves[name] for name in "ngh"], axis=1)
    if coding.is_vector:
        of_outputs = np.concatenate([r.sums for r in rounds if r.sums is not None])[rows]
        sums = np.concatenate([sums[:, :1], of_outputs[:, :, 0], of_outputs[:, :, 1]], axis=1)
        values = np.concatenate([r.added for r in rounds if r.added is not None])[rows]
    else:
        values = np.zeros((len(rows), K))
        column = np.repeat(np.tile(np.arange(K), len(rounds)), n_leaves)
        values[np.arange(len(rows)), column] = leaves["added"]
    units = np.repeat(np.array([r.units for r in rounds]), K, axis=0)
    return Forest(
        nodes=nodes,
        tree_offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        leaf_sums=sums,
        edges=edges,
        coding=replace(coding, units=units),
        seed=seed,
        leaf_values=values,
        sets=np.concatenate([t.sets for t in trees]),
        combine="sum",
    )


def joined(first: Forest, second: Forest) -> Forest:
    """The trees of two boosted forests of the same bins, one after the other."""
    coding: Any = first.coding
    other: Any = second.coding
    units = np.concatenate([coding.units, other.units])
    return replace(trees_joined([first, second]), coding=replace(coding, units=units))


def node_gains(forest: Forest, first: int, last: int, unit: float = 1.0) -> np.ndarray:
    """Gains of the splits of the trees first .. last - 1, f64[m], 0 at leaves. Bounds of
    monotonic constraints are ignored.

    unit : float, of sums of gradients, see `BoostedCoding.scores`"""
    coding: Any = forest.coding
    begin, end = forest.tree_offsets[first], forest.tree_offsets[last]
    tree = np.repeat(np.arange(first, last), np.diff(forest.tree_offsets[first : last + 1]))
    scores = coding.scores(forest.node_sums(first, last), tree, unit)
    feature, _, _, child = unpack(np, forest.nodes[begin:end])
    split = np.flatnonzero(feature >= 0)
    left = child[split] + forest.tree_offsets[tree[split]] - begin
    gains = np.zeros(len(scores))
    with np.errstate(invalid="ignore"):  # what infinite scores gain is not known: zero
        gains[split] = np.fmax(scores[left] + scores[left + 1] - scores[split], 0.0)
    return gains


def gain_importances(forest: Forest) -> np.ndarray:
    """The total gain of the splits by each feature, f64[F], as shares of all gains."""
    coding: Any = forest.coding
    # no sum is larger, so squares are finite in this unit, and shares are the same in any
    unit = float(np.ldexp(coding.units[:, 0].max(), SUM_BITS))
    gains = node_gains(forest, 0, forest.n_trees, unit)
    feature = unpack(np, forest.nodes)[0]
    split = feature >= 0
    total = np.zeros(forest.edges.n_features)
    np.add.at(total, feature[split], gains[split])
    return total / total.sum() if total.sum() > 0 else total
