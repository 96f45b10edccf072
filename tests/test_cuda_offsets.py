"""Offsets of elements are 64-bit on the device: more cells than an int can count."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from far_rows import far_rows

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.binning import BinnedMatrix
from gpuforest.frontier import Rules
from gpuforest.target import Target

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(scope="module")
def data():
    return far_rows("C")


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
        where = split.feature, split.bin, split.missing_left, split.sets
        moved.append(backend.partition(matrix, own, *where))
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
