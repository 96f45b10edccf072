"""The choice of a subtree by the losses of rows that took no part in growing the tree.

A row ends at its leaf, or at the lowest node above it that has become one. So each node is
asked once what the rows that pass it would lose there, and these sums are added up along the
whole path of nested subtrees: a node is a leaf from the alpha on at which its own split is
gone, up to that of its parent's (Breiman et al. 1984, chapter 3). No tree is made on the way.

The sums of nodes are added exactly, so that subtrees of equal errors are equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from gpuforest.engine.criteria import Criterion
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import is_leaf
from gpuforest.explain.monotonic import bounded_means, clip_leaves
from gpuforest.explain.node_impurity import node_impurity
from gpuforest.explain.paths import decision_paths
from gpuforest.explain.pruning import (
    collapse_alphas,
    keep_splits,
    left_children,
    whole_numbers,
)

BLOCK_ROWS = 2**16  # whose ways down are held at once: about 50 MB at a depth of 20
RULES = ("min", "one_se")


@dataclass(frozen=True, eq=False)
class Trial:
    """The losses of test rows in a tree of m nodes, if each node were a leaf.

    alphas : f64[m], at which a node becomes a leaf; zero for leaves
    left : the left child of each node, zero for leaves
    losses : f64[3, m], of the rows that pass a node the sums of w l, w^2 l and (w l)^2, where
        w is a row's weight and l its loss
    weights : f64[n] > 0, of the test rows that count
    """

    alphas: np.ndarray
    left: list[int]
    losses: np.ndarray
    weights: np.ndarray


def try_rows(
    forest: Forest,
    criterion: Criterion,
    signs: np.ndarray,
    leaves: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
) -> Trial:
    """Compute the losses of test rows at the nodes of a single tree.

    Parameters
    ----------
    signs : i8[F], or i8[0] without monotonic constraints, see `records.Rules`
    leaves : i64[n], the leaf that each row reaches
    y : i64[n, n_outputs] of classes their numbers, others are errors anywhere; or f64[n, K]
    weights : f64[n]

    Raises
    ------
    ValueError : losses beyond float64
    """
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
            loss = criterion.loss.each(y[block][row], predicted[node]).mean(axis=1)
            for total, each in zip(losses, (w * loss, w * w * loss, (w * loss) ** 2), strict=True):
                total += np.bincount(node, each, minlength=m)
    if not np.isfinite(losses).all():
        raise ValueError("the errors of y, squared, overflow: divide y by a constant")
    return Trial(collapse_alphas(forest, criterion), left_children(forest.nodes), losses, weights)


def _predictions(forest: Forest, criterion: Criterion, signs: np.ndarray) -> np.ndarray:
    """The prediction of each node as a leaf: class numbers i64[m, n_outputs], or f64[m, K]."""
    if forest.node_values is not None:
        return forest.node_values
    coding, sums = forest.coding, forest.node_sums(0, 1)
    values = coding.values(sums)
    if len(signs):
        values = coding.with_means(sums, bounded_means(forest, signs, criterion, 0, 1)[1])
    if coding.is_classes:
        return np.asarray(values.argmax(axis=1)[:, None])
    if coding.several:
        return np.stack([part.argmax(axis=1) for part in coding.split(values)], axis=1)
    return np.asarray(values)


def middles(alphas: np.ndarray) -> np.ndarray:
    """One alpha for each interval between f64[n] that ascend: the geometric mean of its ends,
    and the last one (Breiman et al. 1984, 3.4)."""
    with np.errstate(over="ignore"):
        found = np.sqrt(alphas[:-1] * alphas[1:])
    found = np.clip(found, alphas[:-1], np.nextafter(alphas[1:], 0))  # rounding may leave it
    return np.append(found, alphas[-1])


def path_alphas(alphas: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The alphas at which subtrees change, f64[n] ascending from zero, from `collapse_alphas`."""
    return np.unique(np.append(0.0, alphas[~is_leaf(nodes)]))


def error_curve(
    trials: Sequence[Trial], ccp_alphas: np.ndarray, repeats: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Error of pruning at each alpha, and its standard error, f64[n] and f64[n].

    The error is the mean loss of all test rows by weight, R; the square of its standard error
    is the sum of w^2 (l - R)^2 over the square of the total weight: R (1 - R) / N for classes
    without weights (Breiman et al. 1984, 3.4.3 and 8.5).

    Parameters
    ----------
    trials : of one or more trees, whose test rows are taken together
    ccp_alphas : f64[n], ascending
    repeats : how often a row is tested in the mean; all losses of a row count as one
    """
    weights = np.concatenate([trial.weights for trial in trials])
    total, squares = math.fsum(weights), math.fsum(weights**2)
    spans = np.hstack([_spans(trial, ccp_alphas) for trial in trials])
    some = spans[0] < spans[1]
    losses = np.hstack([trial.losses for trial in trials])[:, some]
    parts = [_sums_along(spans[:, some], each, len(ccp_alphas)) for each in losses]
    errors = parts[0] / total
    spread = parts[2] - 2 * errors * parts[1] + errors**2 * squares
    return errors, np.sqrt(np.maximum(spread, 0.0) * repeats) / total


def _spans(trial: Trial, ccp_alphas: np.ndarray) -> np.ndarray:
    """The first alpha at which each node is a leaf, and the one after the last, i64[2, m].

    A node that never is one has an empty span.
    """
    first = np.searchsorted(ccp_alphas, trial.alphas)
    last = np.full(len(first), len(ccp_alphas))  # the root stays
    left = np.array(trial.left)
    split = np.flatnonzero(left)
    last[left[split]] = last[left[split] + 1] = first[split]
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
    """The number of the smallest subtree of least error ("min"), or of at most one standard
    error more ("one_se"); the subtrees shrink."""
    best = np.flatnonzero(errors == errors.min())[-1]
    most = errors[best] + (std_errors[best] if rule == "one_se" else 0.0)
    return int(np.flatnonzero(errors <= most)[-1])


def reduced_error(trial: Trial) -> np.ndarray:
    """Splits that are worth it, bool[m]: all below a node together lose less than the node
    itself would, each pruned so before (Quinlan 1987)."""
    losses, _ = whole_numbers(trial.losses[0].tolist())
    keep = np.zeros(len(losses), bool)
    for node in reversed(range(len(losses))):  # children come after their parents
        if child := trial.left[node]:
            below = losses[child] + losses[child + 1]
            keep[node] = below < losses[node]
            losses[node] = min(below, losses[node])
    return keep


def cut(forest: Forest, keep: np.ndarray, criterion: Criterion, signs: np.ndarray) -> Forest:
    """A single fitted tree without all splits but bool[m], as if it had been grown so."""
    found = keep_splits(replace(forest, leaf_values=None), keep)
    if forest.leaf_impurity is not None:
        leaves = _new_leaves(left_children(forest.nodes), keep.tolist())
        found = replace(found, leaf_impurity=node_impurity(forest, 0, criterion)[leaves])
    return clip_leaves(found, signs, criterion) if len(signs) else found


def _new_leaves(left: list[int], keep: list[bool]) -> list[int]:
    """Nodes that are leaves when only some splits are kept, in their order."""
    there, leaves = [True] + [False] * (len(left) - 1), []
    for node, child in enumerate(left):
        if there[node] and child and keep[node]:
            there[child] = there[child + 1] = True
        elif there[node]:
            leaves.append(node)
    return leaves
