"""What a forest asks of a GPU: operations, launches, waits, and memory.

Array operations and waits are counted by the arrays of picky.py, launches by the emulated
kernels. An operation takes the host some microseconds, and mostly the device less.
"""

import tracemalloc
import weakref
from itertools import pairwise

import numpy as np
import pytest
from cuda_on_cpu.module import available, launches
from emulated import EmulatedBackend
from engine import Task, same_forest
from picky import PickyBackend, operations, waits
from tasks import large

from gpuforest import assembly, grow
from gpuforest.backends.numba import NumbaBackend

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))

TASKS = ["binary", "7 classes", "regression"]


def counts() -> np.ndarray:
    """Operations, waits and launches until now."""
    return np.array([operations.total(), waits.total(), launches.total()])


class Counting(PickyBackend):
    """Keeps the counts at the beginning of each level's search, and around the deep phase."""

    def __init__(self) -> None:
        super().__init__(deep=300)
        self.levels: list[np.ndarray] = []

    def level(self, *arguments):
        self.levels.append(counts())
        return super().level(*arguments)

    def grow_subtrees(self, *arguments):
        before = counts()
        found = super().grow_subtrees(*arguments)
        self.deep = before, counts()
        return found


def counted(name: str, **changes) -> tuple[Task, Counting]:
    """A task whose forest was just grown, and the backend with the counts."""
    task, backend = large(name).but(n_trees=2, **changes), Counting()
    task.grow(backend)
    return task, backend


@pytest.mark.parametrize("name", TASKS)
def test_a_level_waits_once(name):
    task, backend = counted(name)
    levels = [b - a for a, b in pairwise(backend.levels)]
    assert len(levels) > 5
    # three to draw features that vary; to fill histograms, for the cuts and the best split; two to
    # part the rows, one for the slots below, three to sort slots by kind, one for tiles (two if
    # slots are many); and two to see which targets are constant, which the sums of classes show:
    # moments are compared with their mean
    moments = not task.rules.criterion.of_classes
    for n_operations, n_waits, n_launches in levels:
        assert n_waits == 1
        assert n_launches <= 13 + 2 * moments
        assert n_operations <= 4 * moments


def test_nodes_are_scored_only_for_a_least_gain():
    common, scored = (counted("7 classes", **c)[1].levels for c in ({}, {"min_gain": 1e-9}))
    assert (scored[1] - scored[0] - common[1] + common[0])[0] > 100


@pytest.mark.parametrize("name", TASKS)
def test_the_ends_of_a_wave(name):
    task, backend = large(name).but(n_trees=2), Counting()
    training = task.training(backend)
    begin = counts()
    grow.grow_wave(training, 2, 2, None, 0)
    before, after = backend.deep
    # roots wait for the number of rows in the bags, and as every level for what to do
    assert (backend.levels[0] - begin)[1] == 2
    # the deep phase for the size of its trees
    assert (after - before).tolist() == [6, 1, 2]
    # the assembly for what each level holds, each piece, each leaf; and three arrays leave
    n_operations, n_waits, n_launches = counts() - after
    classes = task.rules.criterion.of_classes
    assert n_waits <= (13 if classes else 10)
    # two for each level, but none below the last; for the hashes of leaves' sums, and to see
    # whether equal ones are equal
    assert n_launches == 2 * len(backend.levels) - 1 + 2 * classes
    assert n_operations <= 101


@pytest.mark.parametrize("n_classes", [2, 7, 0], ids=["binary", "7 classes", "regression"])
def test_a_wave_keeps_within_its_memory(n_classes):
    # noise, each row once: no forest has more nodes for its rows
    rng, n = np.random.default_rng(0), 10_000
    y = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    task = Task(X, y, "gini" if n_classes else "squared_error", n_tried=1, n_trees=3)
    backend = EmulatedBackend(0)
    training = task.training(backend)
    growing = training, 3, 3, None, 0
    grow.grow_wave(*growing)  # kernels are built, tables made
    tracemalloc.start()
    grow.grow_wave(*growing)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # in 100 times that memory, little more than 100 times three trees would be planned: a
    # sixth, where three sixteenths of a GPU are left free
    backend.free = 100 * peak
    assert backend.waves(task.sampling, training.n_channels, 10**9)[2] <= 350


def test_what_is_needed_no_more_makes_room(monkeypatch):
    freed = []

    class Noting(NumbaBackend):
        def grow_subtrees(self, training, slots):
            found = super().grow_subtrees(training, slots)
            freed.extend(map(weakref.ref, (slots.rows, found.nodes, found.leaf_sums)))
            return found

    def leaf_table(*arguments):
        assert len(freed) == 3
        assert not any(array() is not None for array in freed)
        return own(*arguments)

    own = assembly.leaf_table
    monkeypatch.setattr(assembly, "leaf_table", leaf_table)
    task = large("regression").but(n_trees=2)
    assert same_forest(task.grow(Noting()), task.grow(NumbaBackend()))
