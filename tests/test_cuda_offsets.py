"""Offsets of elements are 64-bit on the device: more cells than an int can count.

The pages of these arrays that nobody touches take no memory.
"""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import BinEdges, BinnedMatrix
from gpuforest.frontier import Frontier, Rules
from gpuforest.target import Target, TargetCoding

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))

N, F = 40_000_000, 64  # 2.56e9 cells, more than 2^31
S = 3


@pytest.fixture(scope="module")
def data():
    """Codes and targets of which only some rows, at both ends, are not zero."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([np.arange(60), N - 1 - np.arange(240)[::-1]]).astype(np.int32)
    codes, y = np.zeros((N, F), np.uint8), np.zeros((N, 1), np.int32)
    codes[rows] = rng.integers(0, 4, (300, F))
    y[rows, 0] = (codes[rows, 1] + rng.integers(0, 2, 300)) > 2
    edges = BinEdges(np.tile([0.5, 1.5, 2.5], F), np.arange(F + 1) * 3)
    matrix = BinnedMatrix(codes, edges.n_bins, edges)
    target = Target(TargetCoding(np.arange(2), np.zeros(1), 1.0), y)
    end = np.array([80, 170, 300])
    frontier = Frontier(
        tree=np.zeros(S, np.int32),
        key=rng.integers(0, 2**63, S).astype(np.uint64),
        begin=np.concatenate([[0], end[:-1]]),
        end=end,
        sums=np.zeros((S, 2), np.int64),
        constant=np.zeros(S, bool),
        depth=np.zeros(S, np.int32),
        rows=np.concatenate([rows, np.zeros(300, np.int32)]),
        weights=np.ones(600, np.int32),
        n_held=300,
    )
    frontier.sums[:] = NumpyBackend().totals(
        target, frontier.rows, frontier.weights, frontier.begin, frontier.end
    )[0]
    return matrix, target, frontier


def rules(criterion: int = 0) -> Rules:
    return Rules(criterion, 8, 10**9, 2, 1, -np.inf)


def test_levels_and_partitions(data):
    matrix, target, frontier = data
    backends = (NumpyBackend(), EmulatedBackend())
    found = [b.level(matrix, target, frontier, rules()) for b in backends]
    for a, b in zip(*(vars(f).values() for f in found), strict=True):
        assert np.array_equal(a, b)
    split = found[0]
    moved = []
    for backend in backends:
        own = replace(frontier, rows=frontier.rows.copy())
        moved.append(backend.partition(matrix, own, split.feature, split.bin, split.missing_left))
    assert all(np.array_equal(a, b) for a, b in zip(*moved, strict=True))


@pytest.mark.parametrize("deep", ["codes in shared memory", "codes where they are"])
def test_subtrees(data, deep):
    matrix, target, frontier = data
    limit = 227 << 10 if deep == "codes in shared memory" else 16 << 10
    backend = EmulatedBackend(shared_limit=limit)
    plan = backend.deep_plan(matrix, target)
    assert (plan.stride > 0) == (deep == "codes in shared memory")
    assert plan.rows >= 130
    trees = backend.grow_subtrees(matrix, target, frontier, rules())
    # the same rows in a small matrix
    rows = frontier.rows[:300]
    small = BinnedMatrix(matrix.codes[rows], matrix.n_bins, matrix.edges)
    near = replace(frontier, rows=np.arange(600, dtype=np.int32) % 300)
    expected = backend.grow_subtrees(small, Target(target.coding, target.y[rows]), near, rules())
    for a, b in zip(vars(trees).values(), vars(expected).values(), strict=True):
        assert np.array_equal(a, b)
    assert len(trees.nodes) > 20
