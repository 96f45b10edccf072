"""A tree of boosting, grown best first: the specification.

    1. the root holds all rows; its best split is found
    2. the open node whose split gains most is split (of equals the one that was made first)
    3. the best splits of its two children are found; go to 2 until there are enough leaves

A side with the sums G of gradients and H of hessians predicts v = -G / (H + l2), cut off at the
bounds of monotonic constraints, and scores -G v. The gain of a split is

    score(left) + score(right) - score(node)

Candidates come in this order, and the first of the highest gain wins: features ascending; of a
numeric one the cuts ascending with missing values right, then with them left; of a categorical one
the sets of the first 1, 2, ... categories in the order of G / (H + 10), then of the last.

A tree for several outputs has several sums of gradients, see vector.py. Its sides score the sum of
their scores, and its sets follow the order of each sum of gradients in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common import dtypes, hashing
from gpuforest.compiler.types import dtype_of
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, SET_BIN, pack_splits, unpack
from gpuforest.kernels.boosted_tree import records
from gpuforest.kernels.boosted_tree.records import GrownTree, NodeSplit, TreeRules
from gpuforest.kernels.sets.order import packed
from gpuforest.kernels.shared.numpy import goes_left
from gpuforest.kernels.shared.records import Split

Sums = tuple[Any, int, int]  # of gradients (a tuple) and of hessians, and the number of rows
Candidate = tuple[NodeSplit, np.ndarray]  # with the codes of a category that go left
NO_CODES = np.zeros(0, bool)
NO_SPLIT = NodeSplit(0.0, 0, 0, 0, 0, 0, -1)


@dataclass(eq=False)
class Node:
    """Rows, sums, bounds of children's values, features, best split with its set, children."""

    rows: np.ndarray
    others: np.ndarray
    sums: Sums
    depth: int
    key: np.ndarray
    low: float
    high: float
    groups: np.ndarray
    split: NodeSplit = NO_SPLIT
    set: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))
    children: tuple[Node, ...] = ()


def grow_tree(
    matrix: BinnedMatrix, stats: np.ndarray, rules: TreeRules, rows: np.ndarray, key: int
) -> GrownTree:
    """Grow a tree from the first n_drawn rows i32[N], which add stats i64[N, 1 or 2] to sums.
    The other rows are only divided among the leaves. Both are put into the order of the leaves.

    key : the root's"""
    root = root_of(stats, rules, rows, key)
    find_split(matrix, stats, rules, root)
    open_nodes, n_leaves = [root], 1
    while n_leaves < rules.max_leaves:
        best = max(open_nodes, key=lambda node: node.split.gain)
        if best.split.feature < 0:
            break
        open_nodes.remove(best)
        divide(matrix, rules, best)
        for child in best.children:
            find_split(matrix, stats, rules, child)
            open_nodes.append(child)
        n_leaves += 1
    return in_order(root, rules, rows)


def root_of(stats: np.ndarray, rules: TreeRules, rows: np.ndarray, key: int = 0) -> Node:
    drawn, others = rows[: rules.n_drawn], rows[rules.n_drawn :]
    most = rules.most * rules.scale.g * rules.scale.sum_g
    return Node(
        drawn, others, unpacked(stats[drawn].sum(axis=0), rules), 0, np.array([key], np.uint64),
        -most, most, np.ones(len(rules.groups), bool),
    )  # fmt: skip


def refilled_tree(
    matrix: BinnedMatrix, stats: np.ndarray, rules: TreeRules, rows: np.ndarray, tree: Trees
) -> GrownTree:
    """A tree of known splits with the sums of these rows, which are put into its order."""
    root = root_of(stats, rules, rows)
    stack = [(0, root)]
    while stack:
        number, node = stack.pop()
        feature, bin, side, child = (int(a[0]) for a in unpack(xp, tree.nodes[number, None]))
        if feature < 0:
            continue
        if bin == SET_BIN:
            first = int(tree.set_at[number])
            node.set = tree.sets[first : first + int(matrix.edges.set_words[feature])]
        split, missing = Split(None, None, bin, bool(side), None), matrix.edges.missing_code
        codes = matrix.codes[node.rows, feature]
        left = node.rows[goes_left(xp, codes, split, missing, node.set, np.int64(0))]
        sums = unpacked(stats[left].sum(axis=0), rules)
        node.split = NodeSplit(0.0, bin, side, *sums, feature)
        divide(matrix, rules, node)
        stack += zip((child, child + 1), node.children, strict=True)
    return in_order(root, rules, rows)


def unpacked(words: np.ndarray, rules: TreeRules) -> Sums:
    """The three sums in the words of sums."""
    last = int(words[-1])
    n = last & ((1 << rules.n_bits) - 1)
    whole = last >> rules.n_bits
    return ((whole,), n, n) if len(words) == 1 else ((*map(int, words[:-1]),), whole, n)


def value_of(sums: Sums, rules: TreeRules, low: float, high: float, j: int = 0) -> float:
    """What a node with these sums predicts, by sum j of gradients; nothing, if all hessians were
    rounded to zero."""
    bottom: float = sums[1] * rules.scale.sum_h + rules.l2
    value: float = -(sums[0][j] * rules.scale.sum_g) / bottom if bottom > 0.0 else 0.0
    return min(max(value, low), high)


def score_of(sums: Sums, rules: TreeRules, low: float, high: float) -> float:
    score = 0.0
    for j, g in enumerate(sums[0]):
        score += -(g * rules.scale.sum_g) * value_of(sums, rules, low, high, j)
    return score


def may_split(node: Node, rules: TreeRules) -> bool:
    """Whether a node has enough rows and hessian, and lies not too deep."""
    hessian = node.sums[1] * rules.scale.sum_h >= rules.min_hessian
    return node.sums[2] >= 2 * rules.min_rows and hessian and node.depth < rules.max_depth


def features_of(node: Node, rules: TreeRules, F: int) -> list[int]:
    """The features that a node tries, ascending."""
    allowed = np.ones(F, bool)
    if len(rules.groups):
        allowed = rules.groups[node.groups].any(axis=0)
    features = np.flatnonzero(allowed)
    wanted = max(1, math.ceil(rules.share * len(features)))
    if wanted < len(features):
        order = hashing.permute(np, node.key[:, None], np.arange(F, dtype=np.uint64)[None], F)[0]
        features = np.sort([f for f in order.astype(np.int64) if allowed[f]][:wanted])
    return [int(f) for f in features]


def find_split(matrix: BinnedMatrix, stats: np.ndarray, rules: TreeRules, node: Node) -> None:
    """Set the node's best split, if it has one that gains."""
    if not may_split(node, rules):
        return
    edges = matrix.edges
    for f in features_of(node, rules, edges.n_features):
        hist = np.zeros((edges.n_codes, stats.shape[1]), np.int64)
        np.add.at(hist, matrix.codes[node.rows, f], stats[node.rows])
        bins = [unpacked(words, rules) for words in hist]
        candidates = sets if edges.kinds[f] == dtypes.CATEGORICAL else cuts
        for split, codes in candidates(bins, f, int(edges.n_bins[f]), node, rules):
            if split.gain > node.split.gain:
                node.split, node.set = split, packed(xp, codes[None], -(-len(codes) // 64))[0]


def plus(a: Sums, b: Sums, sign: int = 1) -> Sums:
    g = tuple(own + sign * other for own, other in zip(a[0], b[0], strict=True))
    return g, a[1] + sign * b[1], a[2] + sign * b[2]


def gain_of(left: Sums, node: Node, rules: TreeRules, sign: int) -> float:
    """The gain of a split with these left sums; 0 if it is not allowed."""
    right = plus(node.sums, left, -1)
    for side in (left, right):
        if side[2] < rules.min_rows or side[1] * rules.scale.sum_h < rules.min_hessian:
            return 0.0
    bounds = node.low, node.high
    if sign * (value_of(left, rules, *bounds) - value_of(right, rules, *bounds)) > 0:
        return 0.0
    both = score_of(left, rules, *bounds) + score_of(right, rules, *bounds)
    return both - score_of(node.sums, rules, *bounds)


def nothing(node: Node) -> Sums:
    """The sums of no rows."""
    return (0,) * len(node.sums[0]), 0, 0


def cuts(
    bins: list[Sums], f: int, n_bins: int, node: Node, rules: TreeRules
) -> Iterator[Candidate]:
    """All splits by a numeric feature."""
    missing = bins[-1]
    for missing_left in range(2 if missing[2] else 1):
        left = missing if missing_left else nothing(node)
        # the last cut divides missing values from all others
        for b in range(n_bins if missing[2] and not missing_left else n_bins - 1):
            left = plus(left, bins[b])
            gain = gain_of(left, node, rules, int(rules.signs[f]))
            heavier = not missing[2] and 2 * left[2] > node.sums[2]
            yield NodeSplit(gain, b, missing_left or heavier, *left, f), NO_CODES


def sets(
    bins: list[Sums], f: int, n_bins: int, node: Node, rules: TreeRules
) -> Iterator[Candidate]:
    """All splits by a categorical feature; missing is one more category."""
    missing = len(bins) - 1
    used = [c for c in (*range(n_bins), missing) if bins[c][2] >= records.CATEGORY_ROWS]
    g, h = rules.scale.sum_g, rules.scale.sum_h
    orders = []
    for j in range(len(node.sums[0])):
        ratio = {c: (bins[c][0][j] * g) / (bins[c][1] * h + records.CATEGORY_ROWS) for c in used}
        ascending = sorted(used, key=lambda c: (ratio[c], c))
        orders += [ascending, ascending[::-1]]
    for order in orders:
        left = nothing(node)
        for i in range((len(used) + 1) // 2 if len(used) > 1 else 0):
            left = plus(left, bins[order[i]])
            gain = gain_of(left, node, rules, 0)
            side, codes = missing in order[: i + 1], np.isin(np.arange(n_bins), order[: i + 1])
            if not bins[missing][2]:
                side = 2 * left[2] > node.sums[2]
            if not bins[n_bins - 1][2]:  # unknown values, which count as missing
                codes[n_bins - 1] = side
            yield NodeSplit(gain, SET_BIN, side, *left, f), codes


def divide(matrix: BinnedMatrix, rules: TreeRules, node: Node) -> None:
    """Make the two children of a node."""
    split, missing, first = node.split, matrix.edges.missing_code, np.int64(0)
    sides = Split(None, None, split.bin, bool(split.missing_left), None)
    codes = (matrix.codes[rows, split.feature] for rows in (node.rows, node.others))
    left, other = (goes_left(xp, some, sides, missing, node.set, first) for some in codes)
    left_sums = split.g, split.h, split.n
    right_sums = plus(node.sums, left_sums, -1)
    bounds = [(node.low, node.high)] * 2
    if sign := int(rules.signs[split.feature]):
        ends = [value_of(s, rules, node.low, node.high) for s in (left_sums, right_sums)]
        middle = (ends[0] + ends[1]) * 0.5
        bounds = [(node.low, middle), (middle, node.high)][::sign]
    groups = node.groups & rules.groups[:, split.feature] if len(rules.groups) else node.groups
    both = (left, other, left_sums), (~left, ~other, right_sums)
    node.children = tuple(
        Node(
            node.rows[inside], node.others[other], sums, node.depth + 1,
            hashing.hash_at(node.key, side), *bounds[side], groups,
        )
        for side, (inside, other, sums) in enumerate(both)
    )  # fmt: skip


def in_order(root: Node, rules: TreeRules, rows: np.ndarray) -> GrownTree:
    """The tree in the order of nodes.py."""
    words: dict[int, int] = {}
    sets: dict[int, np.ndarray] = {}
    leaves: list[Node] = []
    stack, n_nodes = [(0, root)], 1
    while stack:
        number, node = stack.pop()
        if not node.children:
            words[number] = LEAF_WORD + len(leaves)
            leaves.append(node)
            continue
        split = node.split
        fields = split.feature, split.bin, bool(split.missing_left)
        word = pack_splits(np, *(np.array([value]) for value in fields))
        words[number] = int(word[0]) + (n_nodes << CHILD_SHIFT)
        if split.bin == SET_BIN:
            sets[number] = node.set
        left, right = node.children
        stack += [(n_nodes + 1, right), (n_nodes, left)]
        n_nodes += 2
    rows[:] = np.concatenate([*(leaf.rows for leaf in leaves), *(leaf.others for leaf in leaves)])
    return GrownTree(
        np.array([words[i] for i in range(n_nodes)], np.uint64),
        np.concatenate([np.zeros(0, np.uint64), *(sets[i] for i in sorted(sets))]),
        in_records(leaves, rules),
    )


def in_records(leaves: list[Node], rules: TreeRules) -> np.ndarray:
    """The leaves as `Leaf` [L]."""
    out = np.zeros(len(leaves), dtype_of(records.Leaf))
    out["g"], out["h"], out["n"] = np.transpose(
        [(leaf.sums[0][0], *leaf.sums[1:]) for leaf in leaves]
    )
    n_rows, n_others = np.transpose([(len(leaf.rows), len(leaf.others)) for leaf in leaves])
    out["end"], out["other_end"] = n_rows.cumsum(), rules.n_drawn + n_others.cumsum()
    out["begin"] = out["end"] - n_rows
    out["other_begin"] = out["other_end"] - n_others
    values = [value_of(leaf.sums, rules, leaf.low, leaf.high) for leaf in leaves]
    with np.errstate(over="ignore"):
        out["value"] = np.array(values) * rules.scale.value
        out["added"] = np.clip(out["value"] * rules.rate, -records.MOST_STEP, records.MOST_STEP)
    return out
