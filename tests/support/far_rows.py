"""More cells than a 32-bit integer can count, of which only some rows are not zero.

The pages of these arrays that are never written take no memory.
"""

from typing import Literal

import numpy as np

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.frontier import Frontier
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import Target, TargetCoding
from gpuforest.core.training import Training

N, F = 40_000_000, 64  # 2.56e9 cells, more than 2^31
S = 3


def far_rows(order: Literal["C", "F"]) -> tuple[BinnedMatrix, Target, Frontier]:
    """Codes and targets of 300 rows at both ends, and slots that hold them."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(60), N - 1 - np.arange(240)[::-1]]).astype(np.int32)
    codes, y = np.zeros((N, F), np.uint8, order), np.zeros((N, 1), np.int32)
    codes[rows] = rng.integers(0, 4, (300, F))
    # the last feature is worth most: its codes are far in either order
    y[rows, 0] = (codes[rows, -1] + rng.integers(0, 2, 300)) > 2
    edges = BinEdges(np.tile([0.5, 1.5, 2.5], F), np.arange(F + 1) * 3, np.zeros(F, np.uint8))
    matrix = BinnedMatrix(codes, edges.n_bins, edges)
    target = Target(TargetCoding(np.arange(2), np.zeros(1), 1.0), y)
    end = np.array([80, 170, 300])
    frontier = Frontier(
        tree=np.zeros(S, np.int32),
        key=rng.integers(0, 2**63, S).astype(np.uint64),
        n_rows=np.diff(end, prepend=0),
        begin=np.concatenate([[0], end[:-1]]),
        end=end,
        sums=np.zeros((S, 2), np.int64),
        constant=np.zeros(S, bool),
        depth=np.zeros(S, np.int32),
        rows=np.concatenate([rows, np.zeros(300, np.int32)]),
        weights=np.ones(600, np.int32),
        max_rows=300,
    )
    training = far_training(matrix, target, Rules(CRITERIA["gini"], F, 1, 2, 1, -np.inf))
    frontier.sums[:], _ = NumpyBackend().totals(
        training, frontier.rows, frontier.weights, frontier.begin, frontier.end
    )
    return matrix, target, frontier


def far_training(matrix: BinnedMatrix, target: Target, rules: Rules) -> Training:
    """Of all rows, once each."""
    return Training(matrix, target, Sampling(matrix.n_rows, 0, None), rules, 0)
