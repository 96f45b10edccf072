"""What the splits of a grown forest test, read from its nodes and sets."""

from __future__ import annotations

from math import inf

import numpy as np

from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import combined, has_set, unpack
from gpuforest.splits.oblique.terms import ALL_LEFT, in_units, terms_of

Sum = tuple[list[int], list[int], int]  # features, their weights, the most that goes left


def sum_of(forest: Forest, node: int) -> Sum | None:
    """The sum of features that a node splits by; None for other nodes."""
    if forest.oblique and combined(forest.nodes[node : node + 1])[0] > 0:
        return terms_of(forest, node)
    return None


def sums_of(forest: Forest) -> dict[int, Sum]:
    """The sums of features that nodes split by; the keys are the nodes."""
    nodes = np.flatnonzero(combined(forest.nodes) > 0).tolist() if forest.oblique else ()
    return {node: terms_of(forest, node) for node in nodes}


def in_words(forest: Forest, terms: Sum, names: list[str]) -> tuple[str, float]:
    """A sum in the units of the data, and the limit of those that go left; inf: all do."""
    words, limit = in_units(forest.edges, *terms, names)
    return words, inf if terms[2] == ALL_LEFT else limit


def set_of(forest: Forest, node: int) -> np.ndarray | None:
    """Which codes bool[n_bins] go left at a node, if it splits by a set of categories."""
    return _codes(forest, node) if has_set(forest.nodes[node : node + 1])[0] else None


def sets_of(forest: Forest) -> dict[int, np.ndarray]:
    """The codes i64[n] that go left at each split by a set, by node."""
    nodes = np.flatnonzero(has_set(forest.nodes)).tolist()
    return {node: np.flatnonzero(_codes(forest, node)) for node in nodes}


def _codes(forest: Forest, node: int) -> np.ndarray:
    feature, first = int(unpack(np, forest.nodes[node : node + 1])[0][0]), int(forest.set_at[node])
    words = forest.sets[first : first + forest.edges.set_words[feature]]
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")
    return bits[: forest.edges.n_bins[feature]].astype(bool)


def goes_on(forest: Forest, node: int, right: int) -> bool:
    """Whether the node to the right of a split by a set is the next link of its chain."""
    pair = forest.nodes[[node, right]]
    feature = unpack(np, pair)[0]
    return forest.multiway and bool(has_set(pair).all()) and bool(feature[0] == feature[1])
