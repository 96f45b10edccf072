"""Pruning: a grown tree gives up the splits that it would not have made under other rules.

It works on the host, on a forest from any backend.

Best-first growth (Shi 2007) splits the open node that gains most until there are enough leaves. In
what order nodes are split changes no node, so the full tree is grown first, level by level, and the
splits are chosen afterwards.

Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3) collapses, again and again, the
weakest link: the node whose subtree gains least per split. A node cannot collapse after one below
it unless that gains less per split; so the nodes that collapse together are the blocks of an
isotonic regression of the gains over the tree, and all alphas come out of one walk from the leaves
to the root, which pools blocks as pool-adjacent-violators does (Pardalos and Xue 1999).

A subtree is chosen by the losses of rows that took no part in growing the tree. A row ends at its
leaf, or at the lowest node above it that has become one. So each node is asked once what the rows
that pass it would lose there, and these sums are added up exactly along the whole path of nested
subtrees: a node is a leaf from the alpha on at which its own split is gone, up to its parent's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate, count, pairwise
from operator import sub

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.dtypes import NODE, OFFSET
from gpuforest.core.criteria import Criterion
from gpuforest.core.forest import Forest, tree_groups
from gpuforest.core.nodes import CHILD_MASK, CHILD_SHIFT, LEAF_WORD, is_leaf, unpack
from gpuforest.explain.importances import split_gains
from gpuforest.explain.node_values import bounded_means, clip_leaves, node_impurity, own_rows
from gpuforest.explain.paths import decision_paths, split_nodes
from gpuforest.growing.assemble import in_order

BLOCK_ROWS = 2**16  # whose ways down are held at once: about 50 MB at a depth of 20
TREE_VALUES = 2**22  # predictions of trees that are held at once: some 100 MB
RULES = ("min", "one_se")


def keep_splits(forest: Forest, keep: np.ndarray) -> Forest:
    """The forest as if only the marked nodes bool[M] had been split, bit for bit."""
    kept = _kept_nodes(forest, keep)  # they stay in their order
    split = kept & keep & ~is_leaf(forest.nodes)
    position = np.cumsum(kept) - 1
    roots = position[forest.tree_offsets[:-1]]
    tree_offsets = np.append(roots, np.count_nonzero(kept)).astype(OFFSET)
    at, left = split_nodes(forest)
    at, left = at[split[at]], left[split[at]]
    tree = np.searchsorted(forest.tree_offsets, at, side="right") - 1
    child = (position[left] - roots[tree]).astype(NODE) << NODE(CHILD_SHIFT)
    nodes = np.full(len(forest.nodes), LEAF_WORD, NODE)
    nodes[split] = forest.nodes[split] & ~NODE(CHILD_MASK << CHILD_SHIFT) | child
    leaf, tables = kept & ~split, []
    for first, last in tree_groups(forest):
        inside = slice(*forest.tree_offsets[[first, last]])
        tables.append(forest.node_sums(first, last)[leaf[inside]])
    nodes, leaf_sums = in_order(nodes[kept], tables, forest.coding)
    sets = forest.sets
    if len(sets):
        sets = sets[np.repeat(split, np.diff(forest.set_at, append=len(sets)))]
    pruned = replace(forest, nodes=nodes, tree_offsets=tree_offsets, leaf_sums=leaf_sums, sets=sets)
    names = [name for name in ("node_values", "node_errors") if getattr(forest, name) is not None]
    pruned = replace(pruned, **{name: getattr(forest, name)[kept] for name in names})
    return own_rows(pruned) if forest.shrinkage else pruned


def _kept_nodes(forest: Forest, keep: np.ndarray) -> np.ndarray:
    """Which nodes have only splits with `keep` bool[M] above them, bool[M]."""
    kept = np.ones(forest.n_nodes, np.bool_)
    for split, left in reversed(list(forest.upward())):
        kept[left] = kept[left + 1] = kept[split] & keep[split]
    return kept


def best_first(forest: Forest, criterion: Criterion, max_leaf_nodes: int) -> Forest:
    """Each tree as best-first growth makes it, of at most `max_leaf_nodes` >= 1 leaves. Ties go to
    the node whose parent was split first, left before right."""
    gains, keep = split_gains(forest, criterion), np.zeros(forest.n_nodes, bool)
    for begin, end in pairwise(forest.tree_offsets.tolist()):
        left = left_children(forest.nodes[begin:end])
        keep[begin:end][_best_splits(left, gains[begin:end], max_leaf_nodes - 1)] = True
    return keep_splits(forest, keep)


def _best_splits(left: np.ndarray, gains: np.ndarray, n_splits: int) -> list[int]:
    """Nodes of a tree in the order of best-first growth, from arrays: few nodes are visited."""
    number, chosen = count(), list[int]()
    candidates = [(-gains[0], next(number), 0)] if left[0] else []
    while candidates and len(chosen) < n_splits:
        node = heappop(candidates)[2]
        chosen.append(node)
        first = int(left[node])
        for child in (first, first + 1):
            if left[child]:
                heappush(candidates, (-gains[child], next(number), child))
    return chosen


def prune(forest: Forest, criterion: Criterion, ccp_alpha: float) -> Forest:
    """Each tree after minimal cost-complexity pruning. Each split of a subtree must exceed
    `ccp_alpha`: decrease of impurity, weighted by the share of the tree's weight, as in
    scikit-learn."""
    return keep_splits(forest, collapse_alphas(forest, criterion) > ccp_alpha)


def collapse_alphas(forest: Forest, criterion: Criterion) -> np.ndarray:
    """The alpha at which each node's split is gone, f64[M], falling along paths; 0: leaf."""
    gains, alphas = split_gains(forest, criterion), np.zeros(forest.n_nodes)
    for tree, (begin, end) in enumerate(pairwise(forest.tree_offsets.tolist())):
        top, total, n_splits, decrease = _links(forest, criterion, tree, gains[begin:end])
        alphas[begin:end] = [decrease(total[i], n_splits[i]) for i in top]
    return alphas


def pruning_path(forest: Forest, criterion: Criterion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nested subtrees of a tree: alphas f64[n], decrease of impurity f64[n], leaves i64[n]. The
    whole tree comes first, alphas ascend from zero; equal links collapse in the order of nodes."""
    if forest.n_trees != 1:
        raise ValueError(
            f"the forest has {forest.n_trees} trees: a pruning path is that of one tree"
        )
    top, total, n_splits, decrease = _links(forest, criterion, 0, split_gains(forest, criterion))
    splits = np.flatnonzero(~is_leaf(forest.nodes)).tolist()
    blocks = sorted((decrease(total[i], n_splits[i]), i) for i in {top[i] for i in splits})
    totals = [total[i] for _, i in blocks]
    left = [decrease(rest) for rest in accumulate(totals, sub, initial=sum(totals))]
    gone = [0, *accumulate(n_splits[i] for _, i in blocks)]
    alphas = np.array([0.0, *(alpha for alpha, _ in blocks)])
    return alphas, np.array(left), len(splits) + 1 - np.array(gone)


def _links(
    forest: Forest, criterion: Criterion, tree: int, gains: np.ndarray
) -> tuple[list[int], list[int], list[int], Callable[..., float]]:
    """The blocks of `_pooled` from gains f64[m]; a function from gains to decreases per split."""
    nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
    sums = forest.leaf_sums[unpack(xp, nodes)[3][is_leaf(nodes)]]
    whole, unit = whole_numbers(gains.tolist())
    unit *= int(criterion.side_weight(xp, sums).sum())
    of_score = forest.coding.decrease(1.0, criterion)

    def decrease(total: int, n_splits: int = 1) -> float:
        return total / (n_splits * unit) * of_score

    return *_pooled(left_children(nodes).tolist(), whole), decrease


def _pooled(left: list[int], gains: list[int]) -> tuple[list[int], list[int], list[int]]:
    """The blocks of splits that collapse together: `top`, the node that becomes a leaf when each
    node's split goes (a leaf's is itself), and of each top what its block gained and its splits. A
    node takes in the block below it that gains most per split while that gains no less than its own
    does: it would not outlive the node. Below every block lie in the end only weaker ones, which
    collapse before."""
    top, total, n_splits = list(range(len(left))), list(gains), [1] * len(left)
    below: dict[int, list[tuple[float, int]]] = {}  # the blocks, strongest first
    for node in reversed(range(len(left))):  # children come after their parents
        if not left[node]:
            continue
        heap = [(-total[i] / n_splits[i], i) for i in (left[node], left[node] + 1) if left[i]]
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
    """Numbers times a power of two that leaves no fraction, and the power: sums are exact."""
    unit = max(x.as_integer_ratio()[1] for x in numbers)
    # ratios again: a list of them would take several times the memory of the numbers
    return [n * (unit // d) for n, d in (x.as_integer_ratio() for x in numbers)], unit


def left_children(nodes: np.ndarray) -> np.ndarray:
    """The left child's number of every node of a tree u64[m], i64[m]; zero for leaves."""
    return np.where(is_leaf(nodes), 0, unpack(xp, nodes)[3])


@dataclass(frozen=True, eq=False)
class Trial:
    """The losses of test rows in a tree of m nodes, if each node were a leaf."""

    alphas: np.ndarray  # f64[m], at which a node becomes a leaf; zero for leaves
    left: np.ndarray  # i64[m], the left child of each node, zero for leaves
    # f64[3, m], of the rows that pass a node the sums of w l, w^2 l and (w l)^2, where w is a row's
    # weight and l its loss
    losses: np.ndarray
    weights: np.ndarray  # f64[n] > 0, of the test rows that count


def try_rows(
    forest: Forest, criterion: Criterion, signs: np.ndarray, leaves: np.ndarray, y: np.ndarray,
    weights: np.ndarray,
) -> Trial:  # fmt: skip
    """Losses of test rows at the nodes of a single tree, from each row's leaf i64[n], target and
    weight f64[n]. The target is i64[n, n_outputs] class numbers (unknown ones are errors) or f64[n,
    K]; signs i8[F] are of monotonic constraints, i8[0]: none."""
    counts = weights > 0  # other rows may lie anywhere
    leaves, y, weights = leaves[counts], y[counts], weights[counts]
    predicted, m = _predictions(forest, criterion, signs), forest.n_nodes
    losses = np.zeros((3, m))
    for begin in range(0, len(y), BLOCK_ROWS):
        block = slice(begin, begin + BLOCK_ROWS)
        paths = decision_paths(forest, leaves[block, None])
        row, node = np.repeat(np.arange(paths.shape[0]), np.diff(paths.indptr)), paths.indices
        w = weights[block][row]
        with np.errstate(over="ignore"):  # said below
            loss = criterion.loss(y[block][row], predicted[node]).mean(axis=1)
            for total, terms in zip(losses, (w * loss, w * w * loss, (w * loss) ** 2), strict=True):
                total += np.bincount(node, terms, minlength=m)
    if not np.isfinite(losses).all():
        raise ValueError("the errors of y, squared, overflow: divide y by a constant")
    return Trial(collapse_alphas(forest, criterion), left_children(forest.nodes), losses, weights)


def _predictions(forest: Forest, criterion: Criterion, signs: np.ndarray) -> np.ndarray:
    """The prediction of each node as a leaf: class numbers i64[m, n_outputs], or f64[m, K]."""
    coding, values = forest.coding, forest.node_means(0, 1)
    if forest.node_values is not None:
        return values
    if len(signs):
        sums = forest.node_sums(0, 1)
        values = coding.with_means(sums, bounded_means(forest, signs, criterion, 0, 1)[1])
    if coding.is_classes:
        return np.asarray(values.argmax(axis=1)[:, None])
    if coding.several:
        return np.stack([part.argmax(axis=1) for part in coding.split(values)], axis=1)
    return np.asarray(values)


def middles(alphas: np.ndarray) -> np.ndarray:
    """An alpha for each interval between ascending f64[n]: the geometric mean of its ends; and the
    last alpha for the interval after it (Breiman et al. 1984, 3.4)."""
    with np.errstate(over="ignore"):
        means = np.sqrt(alphas[:-1] * alphas[1:])
    means = np.clip(means, alphas[:-1], np.nextafter(alphas[1:], 0))  # rounding may leave it
    return np.append(means, alphas[-1])


def error_curve(
    trials: Sequence[Trial], ccp_alphas: np.ndarray, repeats: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Error of pruning at each ascending alpha f64[n], and its standard error: f64[n] each. The
    error is the mean loss R of the test rows of all trials by weight; its standard error squared is
    the sum of w^2 (l - R)^2 over the squared total weight: R (1 - R) / N for classes without
    weights (Breiman et al. 1984, 3.4.3 and 8.5). A row is tested `repeats` times on average, and
    counts once."""
    weights = np.concatenate([trial.weights for trial in trials])
    total, squares = math.fsum(weights), math.fsum(weights**2)
    spans = np.hstack([_spans(trial, ccp_alphas) for trial in trials])
    counted = spans[0] < spans[1]
    losses = np.hstack([trial.losses for trial in trials])[:, counted]
    sums = [_sums_along(spans[:, counted], values, len(ccp_alphas)) for values in losses]
    errors = sums[0] / total
    spread = sums[2] - 2 * errors * sums[1] + errors**2 * squares
    return errors, np.sqrt(np.maximum(spread, 0.0) * repeats) / total


def _spans(trial: Trial, ccp_alphas: np.ndarray) -> np.ndarray:
    """First alpha at which each node is a leaf, and the one past the last, i64[2, m]."""
    first = np.searchsorted(ccp_alphas, trial.alphas)
    last = np.full(len(first), len(ccp_alphas))  # the root stays
    left = trial.left[split := np.flatnonzero(trial.left)]
    last[left] = last[left + 1] = first[split]
    return np.stack([first, last])


def _sums_along(spans: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
    """Sums f64[n] of the values f64[m] whose spans i64[2, m] hold each of 0 .. n - 1."""
    whole, unit = whole_numbers(values.tolist())
    steps = [0] * (n + 1)
    for first, last, value in zip(*spans.tolist(), whole, strict=True):
        steps[first] += value
        steps[last] -= value
    return np.array([total / unit for total in accumulate(steps[:-1])])


def choose(errors: np.ndarray, std_errors: np.ndarray, rule: str) -> int:
    """Number of the smallest subtree of least error ("min"), or within a standard error of it
    ("one_se")."""
    best = np.flatnonzero(errors == errors.min())[-1]
    most = errors[best] + (std_errors[best] if rule == "one_se" else 0.0)
    return int(np.flatnonzero(errors <= most)[-1])


def fewest_trees(
    forest: Forest, rows: np.ndarray, y: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Numbers i64[n], ascending, of the fewest trees whose mean squared error is within a standard
    error of the least. Trees come one by one, each time the one that lowers the error most, the
    first of equals (Caruana et al. 2004, without replacement).

    rows : i64[N, T], the row of the leaf table that each row reaches in each tree
    y : f64[N, n_values]
    weights : f64[N], or None"""
    T, values = forest.n_trees, forest.values
    w = np.ones(len(y)) if weights is None else weights
    step = max(1, TREE_VALUES // (T * y.shape[1]))
    blocks = [slice(i, i + step) for i in range(0, len(y), step)]
    # products of the trees' residuals, whose sums over trees are squared errors
    products = np.zeros((T, T))
    for block in blocks:
        left = values[rows[block].T] - y[block]  # [T, n, n_values]
        weighed = (left * w[block][:, None]).reshape(T, -1)
        products += np.einsum("ta,ua->tu", weighed, left.reshape(T, -1))
    order, squares, with_chosen = list[int](), list[float](), np.zeros(T)
    open_trees = np.ones(T, bool)
    for _ in range(T):
        errors = 2 * with_chosen + products.diagonal()
        best = int(np.where(open_trees, errors, np.inf).argmin())
        squares.append(errors[best] + (squares[-1] if squares else 0.0))
        order.append(best)
        open_trees[best], with_chosen = False, with_chosen + products[best]
    errors = np.array(squares) / np.arange(1, T + 1) ** 2 / (w.sum() * y.shape[1])
    best = int(errors.argmin())
    means = [values[rows[b][:, order[: best + 1]]].mean(axis=1) for b in blocks]
    loss = ((np.concatenate(means) - y) ** 2).mean(axis=1)
    std_error = np.sqrt(((w * (loss - errors[best])) ** 2).sum()) / w.sum()
    n = int(np.flatnonzero(errors <= errors[best] + std_error)[0]) + 1
    return np.sort(np.array(order[:n], np.int64))


def reduced_error(trial: Trial) -> np.ndarray:
    """Splits to keep, bool[m]: the pruned subtree loses less than the node (Quinlan 1987)."""
    losses, left = whole_numbers(trial.losses[0].tolist())[0], trial.left.tolist()
    keep = np.zeros(len(losses), bool)
    for node in reversed(range(len(losses))):  # children come after their parents
        if child := left[node]:
            below = losses[child] + losses[child + 1]
            keep[node] = below < losses[node]
            losses[node] = min(below, losses[node])
    return keep


def cut(forest: Forest, keep: np.ndarray, criterion: Criterion, signs: np.ndarray) -> Forest:
    """A single fitted tree without all splits but bool[m], as if it had been grown so."""
    pruned = keep_splits(replace(forest, leaf_values=None), keep)
    if forest.leaf_impurity is not None:
        leaves = _kept_nodes(forest, keep) & (is_leaf(forest.nodes) | ~keep)
        pruned = replace(pruned, leaf_impurity=node_impurity(forest, 0, criterion)[leaves])
    return clip_leaves(pruned, signs, criterion) if len(signs) else pruned
