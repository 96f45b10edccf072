"""What a forest asks of a GPU: operations, launches, waits, copies and memory.

Array operations, waits and copies to the device are counted by the arrays of picky.py, launches by
the emulated kernels. An operation takes the host some microseconds, and mostly the device less; to
compile a kernel, which CuPy does for each kind of operation, takes longer than many fits.
"""

import sys
import tracemalloc
import weakref
from contextlib import nullcontext
from itertools import pairwise
from queue import SimpleQueue

import numpy as np
import pytest
from boosted import LOSSES, UNLIMITED, made
from cuda_on_cpu.module import available, busy_turns, launches, utilisation
from emulated import EmulatedBackend
from engine import Task, same_forest
from fake_cupy import cupy_module
from picky import Array, PickyBackend, copies, cupy_namespace, graphs, operations, waits
from sweeps import swept
from tasks import large

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.backends import registry, slots
from gpuforest.backends.cuda import boosting as cuda_boosters
from gpuforest.backends.cuda import launch as cuda_launches
from gpuforest.backends.numba import NumbaBackend
from gpuforest.growing import grow
from gpuforest.growing.rounds import rounds

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))

TASKS = ["binary", "7 classes", "regression"]


def counts() -> np.ndarray:
    """Operations, waits, launches of own kernels and copies to the device until now."""
    return np.array([each.total() for each in (operations, waits, launches, copies)])


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


@pytest.mark.parametrize("span", swept(1, [8, None]))
@pytest.mark.parametrize("name", TASKS)
def test_a_level_waits_once(name, span, monkeypatch):
    if span is not None:  # as if slots were many: several blocks number them
        monkeypatch.setattr(cuda_launches, "LEAST_SPAN", span)
    task, backend = counted(name)
    levels = [b - a for a, b in pairwise(backend.levels)]
    assert len(levels) > 5
    # three to draw features that vary; to fill histograms, for the cuts and the best split; two to
    # part the rows, one for the slots below, two to sort slots by kind, of which the second numbers
    # tiles. Moments are compared with their mean. Only the first level numbers the tiles of rows
    # that have got room, and copies a table to the device
    most = 11 + (not task.rules.criterion.of_classes)
    for i, (n_operations, n_waits, n_launches, n_copies) in enumerate(levels):
        assert (n_operations, n_waits, n_copies) == (0, 1, i == 0)
        assert n_launches <= most + (i == 0) * (1 + (span is not None))


def test_nodes_are_scored_only_for_a_least_gain():
    common, scored = (counted("7 classes", **c)[1].levels for c in ({}, {"min_gain": 1e-9}))
    assert (scored[1] - scored[0] - common[1] + common[0])[0] > 100


def idle(training, backend):
    """A queue with the one place where waves grow."""
    queue = SimpleQueue()
    queue.put((training, backend, nullcontext))
    return queue


@pytest.mark.parametrize("name", TASKS)
def test_the_ends_of_a_wave(name):
    task, backend = large(name).but(n_trees=2), Counting()
    training = task.training(backend)
    begin = counts()
    grow.grow_wave(idle(training, backend), 2, 2, None, 0)
    before, after = backend.deep
    # roots wait for the number of rows in the bags, and as every level for what to do
    n_operations, n_waits, n_launches, n_copies = backend.levels[0] - begin
    classes = task.rules.criterion.of_classes
    assert n_waits == 2
    # bags and totals are cleared, keys copied to the device, and rows to where they have room;
    # labels are packed
    assert n_operations <= 5 + 2 * classes
    assert n_copies <= 2
    # bags, their rows and totals, with running sums: six; roots; and slots are sorted. Moments are
    # compared with their mean, which takes tiles
    assert n_launches <= 9 + 2 * (not classes)
    # the deep phase waits for the size of its trees; three running sums
    assert (after - before).tolist() == [1, 1, 5, 0]
    n_operations, n_waits, n_launches, n_copies = counts() - after
    # four arrays of all levels leave, three of the subtrees, and the sums of leaves; of classes the
    # distinct ones and their numbers. These wait for how many they are, and whether rows of equal
    # keys are equal
    assert n_waits == 8 + 3 * classes
    # distinct rows are found by their keys
    assert n_launches == 4 * classes
    # five arrays of all levels, and the sums of leaves, are put together; CuPy sorts the keys
    assert (n_operations, n_copies) == (7 + classes, 1)


@pytest.mark.parametrize("on_device", swept(1, [True, False]))
@pytest.mark.parametrize("name", TASKS)
def test_what_a_fit_asks_of_cupy(name, on_device, monkeypatch):
    cupy_namespace()  # before CuPy is another
    fake = cupy_module()
    fake.ndarray = Array
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(PickyBackend.xp, "__name__", "array_api_compat.cupy", raising=False)
    monkeypatch.setitem(registry._factories, "picky", lambda *_: PickyBackend())
    task, of_classes = large(name), name != "regression"
    kind = RandomForestClassifier if of_classes else RandomForestRegressor
    X, y = (Array(a) if on_device else a for a in (task.X, task.y))
    before, copied = operations.copy(), copies.total()
    model = kind(4, random_state=0, backend="picky").fit(X, y)
    assert model.backend_ == "picky"
    asked = operations - before
    # data on the host: labels are packed, or moments computed. On the device they are checked too,
    # and classes are found by a sort. For each kind of operation CuPy compiles a kernel
    assert len(asked) <= {False: (7, 11), True: (10, 18)}[on_device][not of_classes]
    assert asked.total() <= {False: (20, 23), True: (26, 35)}[on_device][not of_classes]
    assert copies.total() - copied <= (11 if on_device else 14)


@pytest.mark.parametrize("name", TASKS)
def test_how_busy_warps_are(name):
    busy_turns.clear()
    counted(name)
    assert utilisation("grow_subtrees") >= 0.6
    assert utilisation("best_cut") >= 0.6
    for kernel in ("histogram", "mark", "move", "compare_rows"):
        assert utilisation(kernel) == 1.0


@pytest.mark.parametrize(
    ("n_classes", "signs"),
    swept(1, [(7, ()), (0, (1, 0, 0)), (2, ()), (0, ())]),
    ids=["7 classes", "monotonic", "binary", "regression"],
)
def test_a_wave_keeps_within_its_memory(n_classes, signs):
    # noise, each row once: no forest has more nodes for its rows. Bounds end the growth of most
    # nodes but where y follows the feature
    rng, n = np.random.default_rng(0), 10_000
    y = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = X[:, 0].astype(np.float64) if signs else y
    criterion = "gini" if n_classes else "squared_error"
    task = Task(X, y, criterion, n_tried=1, n_trees=3, signs=signs)
    backend = EmulatedBackend(0)
    training = task.training(backend)
    growing = idle(training, backend), 3, 3, None, 0
    grow.grow_wave(*growing)  # kernels are built, tables made
    tracemalloc.start()
    grow.grow_wave(*growing)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # in 100 times that memory, little more than 100 times three trees would be planned: a
    # sixth, where three sixteenths of a GPU are left free
    backend.free = 100 * peak
    wanted = task.sampling, training.n_channels, 10**9, 0, len(signs) > 0
    assert backend.waves(*wanted)[2] <= 350


def test_what_is_needed_no_more_makes_room(monkeypatch):
    freed = []

    class Noting(NumbaBackend):
        def grow_subtrees(self, training, slots, kind):
            found = super().grow_subtrees(training, slots, kind)
            freed.extend(map(weakref.ref, (slots.rows, found.leaf_sums)))
            return found

    def distinct_rows(*arguments):
        assert len(freed) == 2
        assert not any(array() is not None for array in freed)
        return own(*arguments)

    own = slots.distinct_rows
    monkeypatch.setattr(slots, "distinct_rows", distinct_rows)
    task = large("7 classes").but(n_trees=2)
    assert same_forest(task.grow(Noting()), task.grow(NumbaBackend()))


def rounds_counted(name: str, n_rounds: int = 3, **rest) -> list[list[int]]:
    """Operations, waits, launches and graphs of each round of a fit of boosting but the first, in
    which kernels are loaded."""
    fit = made(3, 3000, [0, 0, 1, 0], [250, 3, 90, 40], name, "none", 0.1, min_rows=20)
    backend = PickyBackend()
    b = fit.but(**rest).boosting(backend)
    raw = np.zeros((b.loss.n_raw, b.n_rows))
    before = []
    for _, _ in zip(range(n_rounds), rounds(b, backend, raw), strict=False):
        before.append(np.append(counts()[:3], graphs.total()))
    return [(b - a).tolist() for a, b in pairwise(before)]


@pytest.mark.parametrize("max_leaves", swept(1, [31, 2]))
@pytest.mark.parametrize("name", swept(3, LOSSES[3:8:2] + LOSSES[:3] + LOSSES[4::2]))
def test_a_round_of_boosting_waits_once(name, max_leaves):
    # three launches for gradients, of which that of the largest is left out where it is known; two
    # for roots and one to begin; the last division; the trees; the predictions
    n_launches = 8
    n_launches += name in ("squared_error", "huber", "poisson", "gamma", "tweedie")
    sorts = 8 * (name == "huber")  # of all residuals, for their quantile, by array operations
    # leaves' values from all digits, whose sums begin at zero
    by_digits, by_order = (
        name in ("poisson", "gamma", "tweedie"),
        name in ("absolute_error", "quantile", "huber"),
    )
    n_launches += 2 * by_digits
    # the quantiles in leaves, for which residuals are sorted; sums of those that are cut off
    n_launches += 3 * by_order + 2 * (name == "huber")
    n = sorts + by_digits + 5 * by_order + 6 * (name == "huber")
    found = rounds_counted(name, watched=False, max_leaves=max_leaves)
    assert found == [[n, 1, n_launches, 1]] * 2  # all splits are one graph
    # the host's copy of the raw predictions
    watched = rounds_counted(name, watched=True, max_leaves=max_leaves)
    assert watched == [[n, 2, n_launches, 1]] * 2
    # or their mean loss, for which two numbers are set to zero
    by_loss = rounds_counted(name, watched=False, by_loss=True, max_leaves=max_leaves)
    assert by_loss == [[n + 1 + sorts, 2, n_launches + 2, 1]] * 2


def test_a_fit_of_one_round_makes_no_graph(monkeypatch):
    made, together = [], PickyBackend.together
    monkeypatch.setattr(
        PickyBackend, "together", lambda *arguments: made.append(1) or together(*arguments)
    )
    for n_rounds, n_made in [(1, 0), (2, 1), (3, 2)]:
        rounds_counted("binary", n_rounds, watched=False, max_leaves=31)
        assert len(made) == n_made


def test_three_kernels_split_a_node(monkeypatch):
    monkeypatch.setattr(PickyBackend, "together", EmulatedBackend.together)
    [[_, _, n_launches, n_graphs], _] = rounds_counted("binary", watched=False, max_leaves=31)
    assert (n_launches, n_graphs) == (8 + 3 * 30, 0)


def test_without_a_limit_of_leaves_the_host_waits_now_and_then(monkeypatch):
    monkeypatch.setattr(cuda_boosters, "STEPS_AT_ONCE", 10)
    found = rounds_counted("binary", watched=False, max_leaves=UNLIMITED)
    # of up to 150 leaves: the splits in tens, with a wait before each ten but the first
    for n_operations, n_waits, n_launches, tens in found:
        assert n_operations == 0
        assert 2 < tens <= 15
        assert n_launches == 8
        # and before the last ones that do nothing; for the number of nodes; for the trees
        assert n_waits == tens - 1 + 3 - (tens == 15)
