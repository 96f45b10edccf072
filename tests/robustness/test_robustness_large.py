"""Very wide X, and more elements than a 32-bit integer can count, on the CPU backends.

The pages of these arrays that are never written take no memory.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine import DeepFrom, same_forest
from far_rows import F, N, check_levels_and_partitions, check_subtrees, far_rows

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.backends.numba import NO_SUMS, NO_VALUES, NumbaBackend, compiled_walk
from gpuforest.backends.rows import row_hashes, rows_below
from gpuforest.common.dtypes import MAX_FEATURES
from gpuforest.core.bins import BinEdges
from gpuforest.core.frontier import Trees
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, pack_splits, unpack
from gpuforest.growing.edges import fit_edges, hash_limit, lowest
from gpuforest.kernels.encode import numba as encode_numba
from gpuforest.kernels.encode import numpy as encode_numpy
from gpuforest.kernels.encode.numba import COARSE, ROWS
from gpuforest.kernels.traverse import numpy as traverse_numpy
from gpuforest.kernels.traverse.numba import new_group

COLUMNS = 70_000  # more than 16 bits can count
MANY = 2**31 // MAX_FEATURES + 1  # rows, so that with MAX_FEATURES columns cells pass 2^31


@cache
def of_70_000_columns(kind: type, backend: str) -> tuple[Any, np.ndarray]:
    X = np.random.default_rng(0).integers(0, 4, (30, COLUMNS)).astype(np.uint8)
    return kind(random_state=0, backend=backend).fit(X, X[:, -1] > 1), X


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_70_000_columns(backend, kind):
    model, X = of_70_000_columns(kind, backend)
    assert same_forest(model.forest_, of_70_000_columns(kind, "numpy")[0].forest_)
    feature, _, _, _ = unpack(np, model.forest_.nodes)
    assert feature.tolist() == [COLUMNS - 1, -1, -1]
    assert np.array_equal(model.predict(X), X[:, -1] > 1)


@pytest.fixture(scope="module")
def far() -> Any:
    return far_rows("F")  # as this backend's codes lie


@pytest.mark.parametrize("n_threads", [1, 2])
def test_offsets_of_levels_and_partitions(far, n_threads):
    split = check_levels_and_partitions(far, NumbaBackend(n_threads), F)
    assert split.feature.tolist() == [F - 1] * 3


def test_offsets_of_subtrees(far):
    trees = check_subtrees(far, DeepFrom(10**9), F)
    assert (unpack(np, trees.nodes)[0] == F - 1).any()


def test_offsets_of_edges(backend, engine):
    near = rows_below(0, N, hash_limit(500, N))
    rows = near[lowest(row_hashes(0, near), 500)]
    X = np.zeros((N, F), np.uint8)
    X[rows] = np.random.default_rng(0).integers(0, 9, (500, F))
    found = fit_edges(X, sample_rows=500, backend=engine)
    expected = fit_edges(X[rows])
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.offsets, expected.offsets)


def test_offsets_of_codes():
    rng = np.random.default_rng(0)
    last = rng.normal(size=(100, F))
    edges = BinEdges.of([*np.sort(rng.normal(size=(F, 3)), axis=1)])
    columns = np.zeros((F, N), np.uint8)
    arguments = (edges.values, edges.offsets, edges.missing_code)
    scratch = np.empty(ROWS), np.empty(COARSE), np.empty(ROWS, np.int32)
    encode_numba.encode(last, *arguments, columns, N - 100, *scratch)
    assert np.array_equal(columns[:, N - 100 :].T, encode_numpy.encode(last, *arguments))


def test_offsets_of_walks():
    columns = np.zeros((MAX_FEATURES, MANY), np.uint8)
    columns[-1] = np.arange(MANY) % 3
    split = pack_splits(np, np.array([MAX_FEATURES - 1]), np.array([1]), np.array([False]))
    nodes = np.array([split[0] + np.uint64(1 << CHILD_SHIFT), LEAF_WORD, LEAF_WORD], np.uint64)
    offsets, out = np.array([0, 3]), np.empty((MANY, 1), np.int64)
    trees = Trees(nodes, offsets, 3, np.zeros(0, np.int64), np.zeros(0, np.uint64))
    walk, codes, memory = compiled_walk(SimpleNamespace(oblique=False, sets=()), columns.T)
    walk(trees, NO_VALUES, codes, *NO_SUMS, out, new_group(), *memory)
    assert np.array_equal(out, traverse_numpy.apply(trees, columns.T))
    assert np.array_equal(out[:, 0], 1 + (columns[-1] > 1))
