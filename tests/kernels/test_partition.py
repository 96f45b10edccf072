"""Partitions: the worked example, rows in their order, and nothing moved that should stay."""

import numpy as np
from engine import Task, table
from hypothesis import given
from hypothesis import strategies as st
from laws import frontier_of, seeds, splits_of

from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend


@given(seeds, st.integers(1, 6))
def test_partitions_are_stable(seed, n_slots):
    rng = np.random.default_rng(seed)
    X = table(rng, 80, list("cfnNA"))
    found = []
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        rng = np.random.default_rng(seed)
        task = Task(X, rng.integers(0, 2, 80))
        training = task.training(engine)
        matrix = training.matrix
        end = np.sort(rng.integers(1, 60, n_slots))
        begin = np.concatenate([[0], end[:-1]])
        begin, end = begin[end > begin], end[end > begin]
        begin, end = begin + 60 * (seed % 2), end + 60 * (seed % 2)
        S = len(begin)
        rows = rng.integers(0, 80, 120).astype(np.int32)
        weights = rng.integers(1, 9, 120).astype(np.int32)
        frontier = frontier_of(begin, end, rows, weights, np.zeros((S, 2), np.int64))
        feature = rng.integers(-1, 5, S).astype(np.int32)
        bin = rng.integers(0, 40, S).astype(np.int32)
        side = rng.random(S) < 0.5
        old_rows, old_weights = rows.copy(), weights.copy()
        splits = splits_of(feature, bin, side)
        new_rows, new_weights, n_left = engine.partition(training, frontier, splits)
        for s in range(S):
            own, weight = old_rows[begin[s] : end[s]], old_weights[begin[s] : end[s]]
            code = matrix.codes[own, feature[s]].astype(int)
            left = np.where(code == matrix.edges.missing_code, side[s], code <= bin[s])
            other = begin[s] + 60 if begin[s] < 60 else begin[s] - 60
            part = slice(other, other + len(own))
            if feature[s] < 0:
                assert n_left[s] == 0
                continue
            assert n_left[s] == left.sum()
            assert np.array_equal(new_rows[part], np.append(own[left], own[~left]))
            assert np.array_equal(new_weights[part], np.append(weight[left], weight[~left]))
            old_rows[part], old_weights[part] = new_rows[part], new_weights[part]
        # nothing else has moved
        assert np.array_equal(old_rows, new_rows)
        assert np.array_equal(old_weights, new_weights)
        found.append((new_rows, new_weights, n_left))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_example_of_partition(engine):
    # rows 5 and 9 go left in slot 0, row 1 in slot 1; row 0 belonged to a leaf
    goes_left = np.ones(10)
    goes_left[[5, 9, 1]] = 0
    task = Task(goes_left[:, None], np.arange(10) % 2)
    training = task.training(engine)
    held = [3, 5, 8, 9, 0, 7, 1, 4]
    rows = np.array(held + [0] * 8, np.int32)
    frontier = frontier_of(
        np.array([0, 6]), np.array([4, 8]), rows, rows + 1, np.zeros((2, 2), np.int64)
    )
    zeros = np.zeros(2, np.int32)
    splits = splits_of(zeros, zeros, zeros > 0)
    rows, weights, n_left = engine.partition(training, frontier, splits)
    assert rows.tolist() == [*held, 5, 9, 3, 8, 0, 0, 1, 4]
    assert n_left.tolist() == [2, 1]
    assert weights[8:12].tolist() == [6, 10, 4, 9]
