"""What the splits of a grown forest test, read from its nodes and sets."""

from __future__ import annotations

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import MOST_COORDINATE
from gpuforest.core import terms
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import combined, has_set, unpack


def terms_of(forest: Forest, node: int) -> tuple[list[int], list[int], int]:
    """Features, weights and threshold of the combination that a node splits by."""
    n = combined(forest.nodes[node : node + 1])
    at = forest.set_at[node] + np.arange(terms.words_for(int(n[0])))
    features, weights, threshold = terms.unpack(xp, forest.sets[at][None], n, int(n[0]))
    return features[0].tolist(), weights[0].tolist(), int(threshold[0])


def in_units(
    edges: BinEdges, features: list[int], weights: list[int], threshold: int, names: list[str]
) -> tuple[str, float]:
    """A combination in the units of the data: its sum in words, and the limit of the left side.

    The first feature that varies has the weight 1."""
    parts: list[str] = []
    limit, unit = float(threshold) + 0.5, 1.0
    for f, weight, name in zip(features, weights, names, strict=True):
        if edges.n_bins[f] < 2:
            continue
        middle, scale = edges.middles(f)
        slope = weight * MOST_COORDINATE / (middle[-1] - middle[0])  # of a coordinate
        limit += slope * middle[0]
        slope /= scale
        if not parts:
            unit = abs(slope)
        size = float(f"{abs(slope) / unit:.3g}")
        sign = ("- " if parts else "-") if slope < 0 else "+ " if parts else ""
        parts.append(f"{sign}{name}" if size == 1 else f"{sign}{size:g} {name}")
    return " ".join(parts), float(f"{limit / unit:.6g}")


Sum = tuple[list[int], list[int], int]  # features, their weights, the most that goes left


def sums_of(forest: Forest, begin: int = 0, end: int | None = None) -> dict[int, Sum]:
    """The sums of features that the nodes begin .. end - 1 split by, by node."""
    if not forest.oblique:
        return {}
    nodes = begin + np.flatnonzero(combined(forest.nodes[begin:end]) > 0)
    return {node: terms_of(forest, node) for node in nodes.tolist()}


def sets_of(forest: Forest, begin: int = 0, end: int | None = None) -> dict[int, np.ndarray]:
    """The codes bool[n_bins] that go left at each split by a set of categories, by node."""
    nodes = begin + np.flatnonzero(has_set(forest.nodes[begin:end]))
    return {node: _codes(forest, node) for node in nodes.tolist()}


def _codes(forest: Forest, node: int) -> np.ndarray:
    feature, first = int(unpack(np, forest.nodes[node : node + 1])[0][0]), int(forest.set_at[node])
    words = forest.sets[first : first + forest.edges.set_words[feature]]
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return bits[: forest.edges.n_bins[feature]].astype(bool)
