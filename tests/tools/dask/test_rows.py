"""Growth by several participants that each hold some rows: the forest of one process, ==."""

from itertools import pairwise

import numpy as np
import pytest
from engine import DeepFrom, same_forest
from hypothesis import given
from hypothesis import strategies as st
from tasks import large, tasks

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.errors import ClusterError
from gpuforest.growing.assemble import merged
from gpuforest.growing.grow import grow
from gpuforest.splits.kinds import kind_in

pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
from queues import by_threads

from gpuforest.tools.dask.rows import SharedRows, of_rows, ranges


def grown(task, cuts, make_backend):
    """The forest of each participant, and the participants."""
    training = task.training(NumpyBackend())
    ends = [0, *cuts, len(task.X)]
    rows_of = [np.arange(*pair) for pair in pairwise(ends)]

    def work(communicator):
        rows = rows_of[communicator.rank]
        backend = SharedRows.of(make_backend(), communicator, rows)
        own = of_rows(training, training.matrix.codes[rows], training.target.y[rows], backend)
        return merged(grow(own, backend, 0, task.n_trees), own, 1)

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
    if kind_in(task.training(NumpyBackend())).whole_rows:
        return  # refused, see test_dask.py
    assert_grown(task, cuts, lambda: DeepFrom(rows))
    assert_grown(task, cuts, NumpyBackend)


@pytest.mark.parametrize("cuts", [[0, 1, 5900], [100, 200, 300, 300, 400, 4000]])
@pytest.mark.parametrize("name", ["7 classes", "two outputs", "counts", "16 bits"])
def test_larger_tasks(name, cuts):
    # the compiled forest is compared with the reference in test_parity.py
    assert_grown(large(name), cuts, lambda: DeepFrom(400), DeepFrom(400))


def test_ranges():
    begin, end = np.array([3, 9, 9, 0]), np.array([5, 9, 12, 1])
    assert ranges(begin, end).tolist() == [3, 4, 9, 10, 11, 0]
