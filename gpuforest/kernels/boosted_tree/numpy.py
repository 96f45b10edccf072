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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.common.hashing import hash_at, permute
from gpuforest.engine.nodes import CHILD_SHIFT, LEAF_WORD, SET_BIN, pack_splits
from gpuforest.kernels.boosted_tree.records import (
    CATEGORY_ROWS,
    MIN_HESSIAN,
    BoostRows,
    BoostRules,
    GrownTree,
)

Sums = tuple[int, int, int]  # of gradients and hessians, and the number of rows


@dataclass(eq=False)
class Node:
    """A node: its rows and other rows, sums, bounds of its children's values, features that it may
    split by, its best split (None: it is a leaf) and its children once it is split."""

    rows: np.ndarray
    others: np.ndarray
    sums: Sums
    depth: int
    key: np.ndarray
    low: float
    high: float
    groups: np.ndarray
    split: Split | None = None
    left: Node | None = None
    right: Node | None = None


@dataclass
class Split:
    """A split: bin is SET_BIN, and `codes` go left, where the feature is categorical."""

    gain: float
    feature: int
    bin: int
    missing_left: bool
    left: Sums
    codes: np.ndarray


def grow_tree(
    data: BoostRows, rules: BoostRules, rows: np.ndarray, others: np.ndarray, set_words: np.ndarray
) -> GrownTree:
    """Grow a tree from the rows i32[R]; `others` i32[...] are only divided among its leaves.

    Both arrays are put into the order of the leaves.

    set_words : i64[F], the 64-bit words of a set of each feature
    """
    root = Node(
        rows, others, sums_of(data, rules, rows), 0, np.array([rules.key], np.uint64), -rules.most,
        rules.most, np.ones(len(rules.groups), bool),
    )  # fmt: skip
    find_split(data, rules, root)
    open_nodes, n_leaves = [root], 1
    while n_leaves < rules.max_leaves:
        best = max(open_nodes, key=lambda node: node.split.gain if node.split else 0.0)
        if best.split is None:
            break
        open_nodes.remove(best)
        for child in divide(data, rules, best, best.split):
            find_split(data, rules, child)
            open_nodes.append(child)
        n_leaves += 1
    return in_order(root, rules, rows, others, set_words)


def sums_of(data: BoostRows, rules: BoostRules, rows: np.ndarray) -> Sums:
    """The sums of some rows."""
    return unpacked(data.stats[rows].sum(axis=0), rules)


def unpacked(words: np.ndarray, rules: BoostRules) -> Sums:
    """The three sums in the words of sums."""
    first, last = int(words[0]), int(words[-1])
    n = last & ((1 << rules.n_bits) - 1)
    whole = last >> rules.n_bits
    return (whole, n, n) if len(words) == 1 else (first, whole, n)


def value_of(sums: Sums, rules: BoostRules, low: float, high: float) -> float:
    """What a node with these sums predicts; nothing, if all hessians were rounded to zero."""
    bottom = sums[1] * rules.h + rules.l2
    value = -(sums[0] * rules.g) / bottom if bottom > 0.0 else 0.0
    return min(max(value, low), high)


def score_of(sums: Sums, rules: BoostRules, low: float, high: float) -> float:
    return -(sums[0] * rules.g) * value_of(sums, rules, low, high)


def may_split(node: Node, rules: BoostRules) -> bool:
    """Whether a node has enough rows and hessian, and lies not too deep."""
    enough = node.sums[2] >= 2 * rules.min_rows and node.sums[1] * rules.h >= MIN_HESSIAN
    return enough and node.depth < rules.max_depth


def features_of(node: Node, rules: BoostRules, F: int) -> list[int]:
    """The features that a node tries, ascending."""
    allowed = np.ones(F, bool)
    if len(rules.groups):
        allowed = rules.groups[node.groups].any(axis=0)
    found = np.flatnonzero(allowed)
    wanted = max(1, math.ceil(rules.share * len(found)))
    if wanted < len(found):
        order = permute(np, node.key[:, None], np.arange(F, dtype=np.uint64)[None], F)[0]
        found = np.sort([f for f in order.astype(np.int64) if allowed[f]][:wanted])
    return [int(f) for f in found]


def find_split(data: BoostRows, rules: BoostRules, node: Node) -> None:
    """Set the node's best split, if it has one that gains."""
    if not may_split(node, rules):
        return
    best = 0.0
    for f in features_of(node, rules, len(data.n_bins)):
        hist = np.zeros((data.n_codes, data.stats.shape[1]), np.int64)
        np.add.at(hist, data.codes[f, node.rows], data.stats[node.rows])
        bins = [unpacked(words, rules) for words in hist]
        find = sets if data.kinds[f] == CATEGORICAL else cuts
        for split in find(bins, f, int(data.n_bins[f]), node, rules):
            if split.gain > best:
                best, node.split = split.gain, split


def plus(a: Sums, b: Sums, sign: int = 1) -> Sums:
    return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2]


def gain_of(left: Sums, node: Node, rules: BoostRules, sign: int) -> float:
    """The gain of a split with these left sums; 0 if it is not allowed."""
    right = plus(node.sums, left, -1)
    for side in (left, right):
        if side[2] < rules.min_rows or side[1] * rules.h < MIN_HESSIAN:
            return 0.0
    bounds = node.low, node.high
    if sign * (value_of(left, rules, *bounds) - value_of(right, rules, *bounds)) > 0:
        return 0.0
    both = score_of(left, rules, *bounds) + score_of(right, rules, *bounds)
    return both - score_of(node.sums, rules, *bounds)


def cuts(bins: list[Sums], f: int, n_bins: int, node: Node, rules: BoostRules) -> list[Split]:
    """All splits by a numeric feature."""
    missing, none, found = bins[-1], np.zeros(0, np.int64), []
    for missing_left in (False, True):
        left = missing if missing_left else (0, 0, 0)
        if missing_left and not missing[2]:
            break
        # the last cut divides missing values from all others
        for b in range(n_bins if missing[2] and not missing_left else n_bins - 1):
            left = plus(left, bins[b])
            gain = gain_of(left, node, rules, int(rules.signs[f]))
            heavier = not missing[2] and 2 * left[2] > node.sums[2]
            found.append(Split(gain, f, b, missing_left or heavier, left, none))
    return found


def sets(bins: list[Sums], f: int, n_bins: int, node: Node, rules: BoostRules) -> list[Split]:
    """All splits by a categorical feature; missing is one more category."""
    missing = len(bins) - 1
    used = [c for c in (*range(n_bins), missing) if bins[c][2] >= CATEGORY_ROWS]
    ratio = {c: (bins[c][0] * rules.g) / (bins[c][1] * rules.h + CATEGORY_ROWS) for c in used}
    used.sort(key=lambda c: (ratio[c], c))
    found: list[Split] = []
    if len(used) < 2:
        return found
    for order in (used, used[::-1]):
        left = (0, 0, 0)
        for i in range((len(used) + 1) // 2):
            left = plus(left, bins[order[i]])
            gain = gain_of(left, node, rules, 0)
            codes = np.array(order[: i + 1])
            side = missing in codes
            if not bins[missing][2]:
                side = 2 * left[2] > node.sums[2]
            if side and not bins[n_bins - 1][2]:  # of unknown values, which count as missing
                codes = np.append(codes, n_bins - 1)
            found.append(Split(gain, f, SET_BIN, side, left, codes[codes != missing]))
    return found


def goes_left(codes: np.ndarray, split: Split, missing: int) -> np.ndarray:
    inside = np.isin(codes, split.codes) if split.bin == SET_BIN else codes <= split.bin
    return np.where(codes == missing, split.missing_left, inside)


def divide(data: BoostRows, rules: BoostRules, node: Node, split: Split) -> list[Node]:
    """Make the two children of a node."""
    codes, missing = data.codes[split.feature], data.n_codes - 1
    left, other = (goes_left(codes[r], split, missing) for r in (node.rows, node.others))
    right_sums = plus(node.sums, split.left, -1)
    bounds = [(node.low, node.high)] * 2
    if sign := int(rules.signs[split.feature]):
        ends = [value_of(s, rules, node.low, node.high) for s in (split.left, right_sums)]
        middle = (ends[0] + ends[1]) * 0.5
        bounds = [(node.low, middle), (middle, node.high)][::sign]
    groups = node.groups & rules.groups[:, split.feature] if len(rules.groups) else node.groups
    sides = ((left, other, split.left), (~left, ~other, right_sums))
    depth, children = node.depth + 1, []
    for side, (here, there, sums) in enumerate(sides):
        rows, others, key = node.rows[here], node.others[there], hash_at(node.key, side)
        children.append(Node(rows, others, sums, depth, key, *bounds[side], groups))
    node.left, node.right = children
    return children


def in_order(
    root: Node, rules: BoostRules, rows: np.ndarray, others: np.ndarray, set_words: np.ndarray
) -> GrownTree:
    """The tree in the order of nodes.py."""
    words: dict[int, Any] = {}
    sets: dict[int, np.ndarray] = {}
    sums: list[Sums] = []
    values: list[float] = []
    ranges: list[list[int]] = []
    stack, n_nodes = [(0, root)], 1
    all_rows, all_others = [], []
    at, other_at = 0, 0
    while stack:
        number, node = stack.pop()
        if node.left is None or node.right is None or node.split is None:
            words[number] = LEAF_WORD + len(sums)
            sums.append(node.sums)
            values.append(value_of(node.sums, rules, node.low, node.high))
            ranges.append([at, at + len(node.rows), other_at, other_at + len(node.others)])
            at, other_at = ranges[-1][1], ranges[-1][3]
            all_rows.append(node.rows)
            all_others.append(node.others)
            continue
        split = node.split
        fields = split.feature, split.bin, split.missing_left
        word = pack_splits(np, *(np.array([field]) for field in fields))
        words[number] = int(word[0]) + (n_nodes << CHILD_SHIFT)
        if split.bin == SET_BIN:
            bits = np.zeros(set_words[split.feature], np.uint64)
            for code in split.codes:
                bits[code >> 6] |= np.uint64(1) << np.uint64(code & 63)
            sets[number] = bits
        stack += [(n_nodes + 1, node.right), (n_nodes, node.left)]
        n_nodes += 2
    rows[:], others[:] = np.concatenate(all_rows), np.concatenate(all_others)
    return GrownTree(
        np.array([words[i] for i in range(n_nodes)], np.uint64),
        np.concatenate([np.zeros(0, np.uint64), *(sets[i] for i in sorted(sets))]),
        np.array(sums, np.int64),
        np.array(values),
        np.array(ranges, np.int64),
    )
