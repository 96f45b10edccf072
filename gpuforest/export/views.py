"""A tree as all that shows it sees it: its nodes, their conditions and values, and the names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from gpuforest.common import dtypes, text
from gpuforest.core import bins, nodes, terms
from gpuforest.core.forest import Forest
from gpuforest.core.model import Model
from gpuforest.core.target import EffectCoding
from gpuforest.explain import node_values, paths
from gpuforest.export.conditions import Condition, OneOf, Range
from gpuforest.growing.boosted import node_gains

Branches = tuple[tuple[Condition, int], ...]  # conditions, and the nodes that they lead to
Sum = tuple[list[int], list[int], int]  # features, their weights, the most that goes left


class Splits:
    """What the M nodes of a forest test.

    feature : i64[M]; -1: a leaf
    threshold : f64[M]; x <= threshold goes left. +inf: all but missing values do
    missing_left : bool[M], whether missing values go left
    child : i64[M], the left child in the split's tree, or a leaf's row of the leaf table
    """

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.feature, bin, self.missing_left, self.child = nodes.unpack(np, forest.nodes)
        self.threshold = forest.edges.threshold(np.maximum(self.feature, 0), bin)

    @cached_property
    def sets(self) -> dict[int, np.ndarray]:
        """The codes bool[n_bins] that go left at each split by a set of categories, by node."""
        found, forest = {}, self.forest
        for node in np.flatnonzero(nodes.has_set(forest.nodes)).tolist():
            feature, first = self.feature[node], forest.set_at[node]
            words = forest.sets[first : first + forest.edges.set_words[feature]]
            bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
            found[node] = bits[: forest.edges.n_bins[feature]].astype(bool)
        return found

    @cached_property
    def sums(self) -> dict[int, Sum]:
        """The sums of features that nodes split by, by node."""
        found, n_summed = {}, self.forest.n_summed(self.forest.nodes)
        for node in np.flatnonzero(n_summed).tolist():
            n = n_summed[node : node + 1]
            at = self.forest.set_at[node] + np.arange(terms.words_for(int(n[0])))
            parts = terms.unpack(np, self.forest.sets[at][None], n, int(n[0]))
            features, weights, (threshold,) = (part.tolist() for part in parts)
            found[node] = features[0], weights[0], threshold
        return found


class TreeView(Splits):
    """One tree of a fitted model. Nodes are numbered as in `apply` and `decision_path`.

    forest : the tree as a forest of its own
    names : of all features
    """

    def __init__(self, model: Model, tree: int, feature_names: Sequence[str] | None = None) -> None:
        forest = model.forest
        if isinstance(forest.coding, EffectCoding):
            raise ValueError(
                "the effects of a causal forest are ratios of means over its trees, so no tree has "
                "predictions of its own to show or explain: use effect, plot_effects and "
                "feature_importances_"
            )
        if not 0 <= tree < forest.n_trees:
            raise ValueError(f"tree {tree} does not exist: choose one of 0 to {forest.n_trees - 1}")
        names = model.feature_names if feature_names is None else feature_names
        self.names = names_of(forest, names, "forest")
        for f in forest.edges.statistics:
            self.names[f] = f"mean target of {self.names[f]}"
        self.model, self.tree = model, tree
        super().__init__(paths.one_tree(forest, tree))

    def walk(
        self, max_depth: float = inf
    ) -> Iterator[tuple[int, int, int | None, Condition | None, Branches]]:
        """Walk over the nodes down to `max_depth`: each before all below it, and its first branch
        before the others.

        Each node comes with its depth, the node above it and the condition that leads here (None
        at the root), and the ways out of it.
        """
        pending: list[tuple[int, int, int | None, Condition | None]] = [(0, 0, None, None)]
        while pending:
            number, depth, parent, condition = pending.pop()
            branches = self.branches(number)
            yield number, depth, parent, condition, branches
            if depth < max_depth:
                pending += [(child, depth + 1, number, way) for way, child in reversed(branches)]

    def branches(self, node: int) -> Branches:
        """The ways out of a node: every value meets the condition of exactly one.

        A leaf has none. This is where a kind of split is read from its node; what shows trees
        knows only branches. A node may have more than two.
        """
        feature, left = int(self.feature[node]), int(self.child[node])
        if feature < 0:
            return ()
        if node in self.sets:
            return self._ways(node, feature)
        missing_left = bool(self.missing_left[node])
        if node in self.sums:
            side, high = self._sum(self.sums[node])
            least = most = self.sums[node][2]
        else:
            side = Range(feature=feature, name=self.names[feature])
            high, least, most = float(self.threshold[node]), side.least, side.most
        low = replace(side, high=high, most=most, missing=missing_left)
        rest = replace(side, low=high, least=least, missing=not missing_left)
        return (low, left), (rest, left + 1)

    def _sum(self, sum: Sum) -> tuple[Range, float]:
        """All values of a sum of features, and the most that goes left."""
        features, weights, most = sum
        edges, parts = self.forest.edges, []
        for f, weight in zip(features, weights, strict=True):
            ends = edges.values[edges.offsets[f] : edges.offsets[f + 1]].tolist()
            coordinates = edges.coordinates[f, : edges.n_bins[f]].tolist()
            parts.append((f, self.names[f], weight, tuple(ends), tuple(coordinates)))
        words, limit = in_units(edges, *sum, [text.one_line(part[1]) for part in parts])
        limit = inf if most == terms.ALL_LEFT else limit
        return Range(feature=features[0], name=words, terms=tuple(parts)), limit

    def _ways(self, node: int, feature: int) -> Branches:
        """The ways out of a split by a set, or of a chain of them."""
        known, branches = self.forest.edges.categories[feature], []
        everything: dict[str, Any] = {"values": known, "others": True, "missing": True}
        rest = OneOf(feature=feature, name=self.names[feature], known=known, **everything)
        while (codes := self.sets.get(node)) is not None:
            inside = replace(
                rest,
                values=tuple(v for v, goes in zip(known, codes, strict=False) if goes),
                others=bool(codes[len(known)]),
                missing=bool(self.missing_left[node]),
            )
            left = int(self.child[node])
            branches.append((rest & inside, left))
            rest, node = rest & ~inside, left + 1
            if not (self.forest.multiway and self.feature[node] == feature):
                break  # not the next link of a chain
        return (*branches, (rest, node))

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """What nodes hold, under the names of `Node`: value f64[m, n_outputs, max_n_classes],
        n_samples i64[m], others f64[m]. See `node_values.node_impurity` on the impurity of the
        trees of a regression forest."""
        forest, sums = self.forest, self.forest.node_sums(0, 1)
        if forest.baseline is not None:
            return self._boosted(sums)
        weight = sums.sum(axis=1) if forest.coding.is_classes else sums[:, 0].copy()
        impurity = node_values.node_impurity(forest, 0, self.model.criterion)
        return {"n_samples": weight, "impurity": impurity, "value": self._value()}

    def _value(self) -> np.ndarray:
        """Shares of the classes, means or medians."""
        forest, coding, signs = self.forest, self.forest.coding, self.model.signs()
        if forest.node_values is not None:
            return forest.node_means(0, 1)[:, :, None]
        if len(signs):
            means = node_values.bounded_means(forest, signs, self.model.criterion, 0, 1)[1]
            values = forest.counted(coding.of_means(means))
        else:
            values, leaf = forest.counted(forest.node_means(0, 1)), self.feature < 0
            values[leaf] = forest.values[self.child[leaf]]
        return coding.stacked(values)

    def _boosted(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """What nodes of a boosted model hold. `value` is above leaves the mean of the leaves below,
        weighted by hessians: of a Newton step without l2 and bounds, what the node would add if it
        were a leaf."""
        forest: Any = self.model.forest
        coding, t = forest.coding, self.tree
        outputs, leaf = sums.shape[1] // 2, self.feature < 0
        gradients, hessians = (
            sums[:, 1 + i * outputs : 1 + (i + 1) * outputs] * coding.units[t, i] for i in (0, 1)
        )
        value = np.zeros((len(sums), outputs))
        value[leaf] = forest.leaf_values[self.child[leaf], coding.columns(t)] + 0.0  # no -0
        for split, left in self.forest.upward():
            weighted = value[left] * hessians[left] + value[left + 1] * hessians[left + 1]
            value[split] = weighted / hessians[split]
        return {
            "n_samples": sums[:, 0],
            "gradients": gradients.sum(axis=1),
            "hessians": hessians.sum(axis=1),
            "gain": node_gains(forest, t, t + 1),
            "value": value[:, :, None],
        }


def in_units(
    edges: bins.BinEdges, features: list[int], weights: list[int], threshold: int, names: list[str]
) -> tuple[str, float]:
    """A combination in the units of the data: its sum in words, and the limit of the left side.

    The first feature that varies has the weight 1."""
    parts: list[str] = []
    limit, unit = float(threshold) + 0.5, 1.0
    for f, weight, name in zip(features, weights, names, strict=True):
        if edges.n_bins[f] < 2:
            continue
        middle, scale = edges.middles(f)
        slope = weight * dtypes.MOST_COORDINATE / (middle[-1] - middle[0])  # of a coordinate
        limit += slope * middle[0]
        slope /= scale
        if not parts:
            unit = abs(slope)
        size = float(f"{abs(slope) / unit:.3g}")
        sign = ("- " if parts else "-") if slope < 0 else "+ " if parts else ""
        parts.append(f"{sign}{name}" if size == 1 else f"{sign}{size:g} {name}")
    return " ".join(parts), float(f"{limit / unit:.6g}")


def names_of(forest: Forest, names: Sequence[str] | None, what: str) -> list[str]:
    """Names of all features; `what` has them, for the message of a wrong number."""
    n_features = forest.edges.n_features
    if names is None:
        names = [f"feature_{i}" for i in range(n_features)]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names, the {what} {n_features} features: pass a name "
            "for each"
        )
    return [str(name) for name in names]


def refuse_twice(names: Sequence[str], why: str) -> None:
    """Refuse features of one name; `why` names must differ."""
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(
            f"two features are called {twice[0]!r}, and {why}: pass feature_names that differ"
        )


def need_numbers(forest: Forest, features: Any) -> None:
    """Raise ValueError where one of these features is categorical."""
    if set(np.asarray(features).tolist()) & set(forest.edges.known):
        raise ValueError(
            "the partial dependence on a categorical feature needs method='brute': there are "
            "no thresholds to compare the grid with"
        )
