"""Offsets of elements are 64-bit on the device: more cells than an int can count."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from far_rows import far_rows, far_training

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core import criteria
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.rules import Rules
from gpuforest.core.target import Target
from gpuforest.splits.base import NUMERIC

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(scope="module")
def data():
    return far_rows("C")


def rules(criterion: str = "gini") -> Rules:
    return Rules(criteria.CRITERIA[criterion], 8, 10**9, 2, 1, -np.inf)


def test_levels_and_partitions(data):
    matrix, target, frontier = data
    backends = (NumpyBackend(), EmulatedBackend())
    training = far_training(matrix, target, rules())
    found = [b.level(training, frontier) or NUMERIC.search(b, training, frontier) for b in backends]
    for a, b in zip(*(vars(f).values() for f in found), strict=True):
        assert np.array_equal(a, b)
    split = found[0]
    moved = []
    for b in backends:
        own = replace(frontier, rows=frontier.rows.copy())
        moved.append(b.partition(training, own, split))
    assert all(np.array_equal(a, b) for a, b in zip(*moved, strict=True))


@pytest.mark.parametrize("deep", ["codes in shared memory", "codes where they are"])
def test_subtrees(data, deep):
    matrix, target, frontier = data
    limit = 227 << 10 if deep == "codes in shared memory" else 16 << 10
    backend = EmulatedBackend(shared_limit=limit)
    training = far_training(matrix, target, rules())
    plan = backend.deep_plan(training)
    assert (plan.layout.stride > 0) == (deep == "codes in shared memory")
    assert plan.rows >= 130
    trees = backend.grow_subtrees(training, frontier, NUMERIC)
    # the same rows in a small matrix
    rows = frontier.rows[:300]
    small = BinnedMatrix(matrix.codes[rows], matrix.n_bins, matrix.edges)
    near = replace(frontier, rows=np.arange(600, dtype=np.int32) % 300)
    few = far_training(small, Target(target.coding, target.y[rows]), rules())
    expected = backend.grow_subtrees(few, near, NUMERIC)
    for a, b in zip(vars(trees).values(), vars(expected).values(), strict=True):
        assert np.array_equal(a, b)
    assert len(trees.nodes) > 20
