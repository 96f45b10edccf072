"""Growth by several participants that each hold some rows: the forest of one process, ==."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from engine import DeepFrom, Task, same_forest
from hypothesis import given
from hypothesis import strategies as st
from tasks import large, tasks

from benchmarks import cluster
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.errors import ClusterError
from gpuforest.engine.assembly import merged
from gpuforest.engine.binning import BinnedMatrix
from gpuforest.engine.grow import grow
from gpuforest.engine.target import Target

pytest.importorskip("distributed", reason="dask is not installed")
from queues import by_threads

from gpuforest.tools.dask.rows import SharedRows, laid_out, ranges, require_shared_rows


def grown(task, cuts, make_backend):
    """The forest of each participant, and the participants."""
    training = task.training(NumpyBackend())
    matrix, target = training.matrix, training.target
    ends = [0, *cuts, len(task.X)]
    rows_of = [np.arange(*pair) for pair in pairwise(ends)]

    def work(communicator):
        require_shared_rows(training)
        rows = rows_of[communicator.rank]
        backend = SharedRows.of(make_backend(), communicator, rows)
        own = replace(
            training,
            matrix=BinnedMatrix(laid_out(matrix.codes[rows], backend), matrix.n_bins, matrix.edges),
            target=Target(target.coding, np.ascontiguousarray(target.y[rows])),
            backend=backend,
        )
        return merged(grow(own, 0, task.n_trees), own)

    return by_threads(len(rows_of), work)


def assert_grown(task, cuts, make_backend, of_whole=None):
    whole = task.grow(of_whole or NumpyBackend())
    forests, _ = grown(task, cuts, make_backend)
    errors = [f for f in forests if isinstance(f, BaseException)]
    for error in sorted(errors, key=lambda e: isinstance(e, ClusterError)):
        raise error  # what failed first, if one can tell
    assert all(same_forest(forest, whole) for forest in forests)


@st.composite
def cut_tasks(draw):
    task = draw(tasks())
    n = len(task.X)
    n_cuts = draw(st.sampled_from([0, 1, 2, 6]))
    return task, sorted(draw(st.lists(st.integers(0, n), min_size=n_cuts, max_size=n_cuts)))


@given(case=cut_tasks(), rows=st.sampled_from([0, 4, 60]))
def test_any_rows_of_any_participants(case, rows):
    task, cuts = case
    if task.combined > 1:
        with pytest.raises(ValueError, match=r"combinations .* needs all .* strategy='trees'"):
            assert_grown(task, cuts, NumpyBackend)
        return
    assert_grown(task, cuts, lambda: DeepFrom(rows))
    assert_grown(task, cuts, NumpyBackend)


@pytest.mark.parametrize("cuts", [[0, 1, 5900], [100, 200, 300, 300, 400, 4000]])
@pytest.mark.parametrize("name", ["7 classes", "two outputs", "counts", "16 bits"])
def test_larger_tasks(name, cuts):
    # the compiled forest is compared with the reference in test_parity.py
    assert_grown(large(name), cuts, lambda: DeepFrom(400), DeepFrom(400))


def test_traffic_by_hand():
    """400 rows by two participants. Rows to 350, 375, 400 have classes 2, 1, 0: the tree
    has a root, whose right child of 50 rows, all with the second one, goes to the first one.
    Three features of 16 bins and one for missing values."""
    X = np.repeat((np.arange(400) // 25).astype(np.float32)[:, None], 3, axis=1)
    y = 2 - (np.arange(400) >= 350) - (np.arange(400) >= 375)
    [whole, _], participants = grown(Task(X, y, max_bins=16), [200], lambda: DeepFrom(400))
    assert whole.n_nodes == 5
    first, second = (each.sent for each in participants)
    before = 8 * (3 + 1 + 1)  # sums of 3 classes and number of rows of the root, number of all rows
    root = 8 * (3 * 17 * 3 + 2)
    assert cluster.level_sums(1, 3, 17, 3) == root
    moved = 50 * (3 + 4 + 4) + 8  # codes, weights and labels; the number of rows of the node
    assert cluster.handed_over(50, 3, 1) == moved
    subtree = 8 * (3 + 2 * 3 + 2)  # nodes, sums of 2 leaves, number of nodes, first leaf
    assert cluster.subtrees(3, 2, 3, 1) == subtree
    agreed = 8 + 8  # which nodes to hand over, how many trees at once
    assert first == before + root + agreed + subtree
    assert second == before + root + agreed + moved


def test_one_that_fails_ends_all():
    calls = []

    class Failing(DeepFrom):
        def partition(self, *args):
            calls.append(1)
            if len(calls) == 5:
                raise MemoryError("no room")
            return super().partition(*args)

    results, _ = grown(large("7 classes"), [1000, 2000], lambda: Failing(0))
    kinds = [type(result) for result in results]
    assert (kinds.count(MemoryError), kinds.count(ClusterError)) == (1, 2)


def test_ranges():
    begin, end = np.array([3, 9, 9, 0]), np.array([5, 9, 12, 1])
    assert ranges(begin, end).tolist() == [3, 4, 9, 10, 11, 0]
