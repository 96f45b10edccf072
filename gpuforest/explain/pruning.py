"""Pruning: a grown tree gives up the splits that it would not have made under other rules.

Pruning needs what each split gained, which follows from the leaves' sums; so it works on
the host, on a forest from any backend.

Best-first growth (Shi 2007) splits the open node that gains most until there are enough
leaves. In what order nodes are split changes no node, so the full tree is grown first,
level by level, and the splits are chosen afterwards.

Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3) collapses, again and again,
the weakest link: the node whose subtree gains least per split. A node cannot collapse
after one below it unless that gains less per split; so the nodes that collapse together
are the blocks of an isotonic regression of the gains over the tree, and all alphas come
out of one walk from the leaves to the root, which pools blocks as pool-adjacent-violators
does (Pardalos and Xue 1999), without repeating a step for each pruned subtree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate, count, pairwise
from operator import sub

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import NODE, OFFSET
from gpuforest.engine.assembly import in_order
from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest, tree_groups
from gpuforest.engine.nodes import CHILD_MASK, CHILD_SHIFT, LEAF_WORD, is_leaf, unpack
from gpuforest.explain.gains import gains_by_errors, gains_by_levels


def split_gains(forest: Forest, criterion: Criterion) -> np.ndarray:
    """Score that each node's split gained, f64[M]; zero for leaves."""
    found = np.zeros(forest.n_nodes)
    for first, last in tree_groups(forest):
        roots = forest.tree_offsets[first:last]
        if forest.node_errors is not None:
            splits, gains = gains_by_errors(forest, first, last)
            splits = splits + roots[0]
        else:
            splits, gains = gains_by_levels(forest.nodes, roots, forest.leaf_sums, criterion, xp)
        found[splits] = gains
    return found


def keep_splits(forest: Forest, keep: np.ndarray) -> Forest:
    """The forest as if only some of its nodes had been split.

    Parameters
    ----------
    keep : bool[M]; a split node without it becomes a leaf, and all below it vanish

    Returns
    -------
    Forest, bit for bit what growing only those splits makes
    """
    there = _kept_nodes(forest, keep)  # they stay in their order
    split = there & keep & ~is_leaf(forest.nodes)
    position = np.cumsum(there) - 1
    roots = position[forest.tree_offsets[:-1]]
    tree_offsets = np.append(roots, np.count_nonzero(there)).astype(OFFSET)
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_offsets))[split]
    left = forest.tree_offsets[tree] + unpack(xp, forest.nodes[split])[3]
    child = (position[left] - roots[tree]).astype(NODE) << NODE(CHILD_SHIFT)
    nodes = np.full(len(forest.nodes), LEAF_WORD, NODE)
    nodes[split] = forest.nodes[split] & ~NODE(CHILD_MASK << CHILD_SHIFT) | child
    leaf, tables = there & ~split, []
    for first, last in tree_groups(forest):
        inside = slice(forest.tree_offsets[first], forest.tree_offsets[last])
        tables.append(forest.node_sums(first, last)[leaf[inside]])
    nodes, leaf_sums = in_order(nodes[there], tables, forest.coding)
    sets = forest.sets
    if len(sets):
        n_words = np.diff(forest.set_at, append=len(sets))
        sets = sets[np.repeat(split, n_words)]
    found = replace(forest, nodes=nodes, tree_offsets=tree_offsets, leaf_sums=leaf_sums, sets=sets)
    if forest.node_values is None or forest.node_errors is None:
        return found
    values, errors = forest.node_values[there], forest.node_errors[there]
    return replace(found, node_values=values, node_errors=errors)


def _kept_nodes(forest: Forest, keep: np.ndarray) -> np.ndarray:
    """Nodes that no split without `keep` bool[M] lies above, bool[M]."""
    levels, there = forest.levels(), np.ones(forest.n_nodes, np.bool_)
    for parents, children in pairwise(levels):
        above = parents[~is_leaf(forest.nodes[parents])]
        there[children] = np.repeat(there[above] & keep[above], 2)
    return there


def best_first(forest: Forest, criterion: Criterion, max_leaf_nodes: int) -> Forest:
    """Each tree as best-first growth makes it, of at most `max_leaf_nodes` >= 1 leaves.

    The open node whose split gains most is split next; of equal ones the one found first:
    that of the parent split first, left before right.
    """
    gains, keep = split_gains(forest, criterion), np.zeros(forest.n_nodes, bool)
    for begin, end in pairwise(forest.tree_offsets.tolist()):
        nodes = forest.nodes[begin:end]
        left = np.where(is_leaf(nodes), 0, unpack(xp, nodes)[3])
        keep[begin:end][_best_splits(left, gains[begin:end], max_leaf_nodes - 1)] = True
    return keep_splits(forest, keep)


def _best_splits(left: np.ndarray, gains: np.ndarray, n_splits: int) -> list[int]:
    """Nodes of a tree in the order in which best-first growth splits them.

    Mostly few nodes are visited, so left children and gains stay arrays, in a quarter of the
    memory of lists.
    """
    number, chosen = count(), list[int]()
    found = [(-gains[0], next(number), 0)] if left[0] else []
    while found and len(chosen) < n_splits:
        node = heappop(found)[2]
        chosen.append(node)
        first = int(left[node])
        for child in (first, first + 1):
            if left[child]:
                heappush(found, (-gains[child], next(number), child))
    return chosen


def prune(forest: Forest, criterion: Criterion, ccp_alpha: float) -> Forest:
    """Each tree after minimal cost-complexity pruning.

    Parameters
    ----------
    ccp_alpha : float >= 0, in scikit-learn's unit: the decrease of impurity, weighted by
        the share of the tree's weight, that a subtree must gain for each of its splits.
        Weakest links of at most that collapse; at zero those that gain nothing
    """
    return keep_splits(forest, collapse_alphas(forest, criterion) > ccp_alpha)


def collapse_alphas(forest: Forest, criterion: Criterion) -> np.ndarray:
    """The alpha at which each node's split is gone, f64[M]; zero for leaves.

    No node's is below that of a node under it.
    """
    gains, found = split_gains(forest, criterion), np.zeros(forest.n_nodes)
    for tree, (begin, end) in enumerate(pairwise(forest.tree_offsets.tolist())):
        links = _links(forest, criterion, tree, gains[begin:end])
        found[begin:end] = [links.alpha(top) for top in links.top]
    return found


def pruning_path(forest: Forest, criterion: Criterion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nested subtrees of minimal cost-complexity pruning, the whole tree first.

    Equally weak links collapse in the order of the nodes, one subtree each.

    Parameters
    ----------
    forest : of one tree

    Returns
    -------
    ccp_alphas : f64[n], ascending from zero; the i-th subtree is the best from there on
    decreases : f64[n], total decrease of impurity by the splits that it still has: the
        impurity of its leaves is that of the root less this
    n_leaves : i64[n], of each subtree

    Raises
    ------
    ValueError : the forest has not one tree
    """
    if forest.n_trees != 1:
        raise ValueError(
            f"the forest has {forest.n_trees} trees: a pruning path is that of one tree"
        )
    links = _links(forest, criterion, 0, split_gains(forest, criterion))
    splits = np.flatnonzero(~is_leaf(forest.nodes)).tolist()
    tops = sorted({links.top[i] for i in splits}, key=lambda i: (links.alpha(i), i))
    totals = [links.total[i] for i in tops]
    left = [links.decrease(total) for total in accumulate(totals, sub, initial=sum(totals))]
    gone = [0, *accumulate(links.n_splits[i] for i in tops)]
    alphas = np.array([0.0, *(links.alpha(i) for i in tops)])
    return alphas, np.array(left), len(splits) + 1 - np.array(gone)


@dataclass(frozen=True)
class Links:
    """When the splits of a tree collapse: a block of them at once.

    top : the node that becomes a leaf when each node's split goes; a leaf's is itself
    total, n_splits : of a top, what its block gained in whole numbers, and its splits
    unit : what makes such whole numbers of score, times the tree's weight
    gain_unit : what makes impurity of score
    """

    top: list[int]
    total: list[int]
    n_splits: list[int]
    unit: int
    gain_unit: float

    def decrease(self, total: int, n_splits: int = 1) -> float:
        """Decrease of impurity for each of some splits that gained `total` together."""
        return total / (n_splits * self.unit) * self.gain_unit

    def alpha(self, top: int) -> float:
        """The effective alpha of a block."""
        return self.decrease(self.total[top], self.n_splits[top])


def _links(forest: Forest, criterion: Criterion, tree: int, gains: np.ndarray) -> Links:
    """The links of a tree whose splits gained f64[m]."""
    nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
    _, _, _, child = unpack(xp, nodes)
    sums = forest.leaf_sums[child[is_leaf(nodes)]]
    weight = int(criterion.side_weight(xp, sums).sum())
    whole, unit = whole_numbers(gains.tolist())
    blocks = _pooled(left_children(nodes), whole)
    return Links(*blocks, unit * weight, forest.coding.decrease(1.0, criterion))


def _pooled(left: list[int], gains: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The blocks of splits that collapse together: `top`, `total` and `n_splits` of `Links`.

    A node takes in the block below it that gains most per split while that gains no less
    than its own does: it would not outlive the node. Below every block lie in the end
    only weaker ones, which collapse before.
    """
    top, total, n_splits = list(range(len(left))), list(gains), [1] * len(left)
    below: dict[int, list[tuple[float, int]]] = {}  # the blocks, strongest first
    for node in reversed(range(len(left))):  # children come after their parents
        if not left[node]:
            continue
        children = (left[node], left[node] + 1)
        heap = [(-total[i] / n_splits[i], i) for i in children if left[i]]
        heapify(heap)
        while heap and -heap[0][0] >= total[node] / n_splits[node]:
            strongest = heappop(heap)[1]
            top[strongest] = node
            total[node] += total[strongest]
            n_splits[node] += n_splits[strongest]
            heap, less = sorted((heap, below.pop(strongest)), key=len, reverse=True)
            for item in less:  # the shorter into the longer: O(n log^2 n) in all
                heappush(heap, item)
        below[node] = heap
    for node, above in enumerate(top):
        top[node] = top[above]
    return top, total, n_splits


def whole_numbers(numbers: list[float]) -> tuple[list[int], int]:
    """Numbers times a power of two that leaves no fraction, and that power.

    Python's integers have no largest: sums of them are exact, and equal links are equal.
    """
    unit = max(x.as_integer_ratio()[1] for x in numbers)
    # ratios again: a list of them would take several times the memory of the numbers
    return [n * (unit // d) for n, d in (x.as_integer_ratio() for x in numbers)], unit


def left_children(nodes: np.ndarray) -> list[int]:
    """The left child's number of every node of a tree u64[m]; zero for leaves."""
    left: list[int] = np.where(is_leaf(nodes), 0, unpack(xp, nodes)[3]).tolist()
    return left
