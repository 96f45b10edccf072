"""More cells than a 32-bit integer can count, of which only some rows are not zero.

The pages of these arrays that are never written take no memory.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.frontier import Frontier, Splits, Subtrees
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import Target, TargetCoding
from gpuforest.core.training import Training
from gpuforest.splits.base import NUMERIC

N, F = 40_000_000, 64  # 2.56e9 cells, more than 2^31
S = 3
Far = tuple[BinnedMatrix, Target, Frontier]


def far_rows(order: Literal["C", "F"]) -> Far:
    """Codes and targets of 300 rows at both ends, and slots that hold them."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(60), N - 1 - np.arange(240)[::-1]]).astype(np.int32)
    codes, y = np.zeros((N, F), np.uint8, order), np.zeros((N, 1), np.int32)
    codes[rows] = rng.integers(0, 4, (300, F))
    # the last feature is worth most: its codes are far in either order
    y[rows, 0] = (codes[rows, -1] + rng.integers(0, 2, 300)) > 2
    edges = BinEdges.of([np.array([0.5, 1.5, 2.5])] * F)
    matrix = BinnedMatrix(codes, edges.n_bins, edges)
    target = Target(TargetCoding(np.arange(2), np.zeros(1), 1.0), y)
    end, zeros = np.array([80, 170, 300]), np.zeros(S, np.int32)
    held, key = np.concatenate([rows, np.zeros(300, np.int32)]), rng.integers(0, 2**63, S)
    frontier = Frontier(
        tree=zeros, key=key.astype(np.uint64), n_rows=np.diff(end, prepend=0),
        begin=np.concatenate([[0], end[:-1]]), end=end, sums=np.zeros((S, 2), np.int64),
        constant=np.zeros(S, bool), depth=zeros, rows=held, weights=np.ones(600, np.int32),
        max_rows=300,
    )  # fmt: skip
    training = far_training(matrix, target, 1)
    frontier.sums[:], _ = NumpyBackend().totals(
        training, frontier.rows, frontier.weights, frontier.begin, frontier.end
    )
    return matrix, target, frontier


def far_training(matrix: BinnedMatrix, target: Target, n_tried: int) -> Training:
    """Of all rows, once each."""
    rules = Rules(CRITERIA["gini"], n_tried, 10**9, 2, 1, -np.inf)
    return Training(matrix, target, Sampling(matrix.n_rows, 0, None), rules, 0)


def check_levels_and_partitions(far: Far, backend: Backend, n_tried: int) -> Splits:
    """Against the reference; returns the splits."""
    matrix, target, frontier = far
    training, found, moved = far_training(matrix, target, n_tried), [], []
    for b in (NumpyBackend(), backend):
        found.append(b.level(training, frontier) or NUMERIC.search(b, training, frontier))
        own = replace(frontier, rows=frontier.rows.copy(), weights=frontier.weights.copy())
        rows, weights, n_left = b.partition(training, own, found[0])
        moved.append((rows[300:], weights[300:], n_left))
    for a, b in zip(
        (*vars(found[0]).values(), *moved[0]), (*vars(found[1]).values(), *moved[1]), strict=True
    ):
        assert np.array_equal(a, b)
    return found[0]


def check_subtrees(far: Far, backend: Backend, n_tried: int) -> Subtrees:
    """Against those of the same rows in a small matrix."""
    matrix, target, frontier = far
    trees = backend.grow_subtrees(far_training(matrix, target, n_tried), frontier, NUMERIC)
    rows = frontier.rows[:300]
    order = "F" if matrix.codes.flags.f_contiguous else "C"
    small = BinnedMatrix(np.asarray(matrix.codes[rows], order=order), matrix.n_bins, matrix.edges)
    near = replace(frontier, rows=np.arange(600, dtype=np.int32) % 300)
    few = far_training(small, Target(target.coding, target.y[rows]), n_tried)
    expected = backend.grow_subtrees(few, near, NUMERIC)
    for a, b in zip(vars(trees).values(), vars(expected).values(), strict=True):
        assert np.array_equal(a, b)
    assert len(trees.nodes) > 20
    return trees
