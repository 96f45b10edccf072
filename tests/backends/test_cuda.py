"""The CUDA backend grows the reference's forests: emulated, its host code and its kernels' own
text run on the CPU, whatever order threads and blocks take; and on a GPU where there is one."""

from dataclasses import replace
from itertools import count, cycle

import numpy as np
import pytest
from cuda_on_cpu.sanitizers import available, missing, sanitized
from cuda_tiny import fits
from cuda_tiny import tasks as tasks_of_all_kinds
from emulated import EmulatedBackend
from engine import Task, compare_answers, later_rows, out_of_bag, places, same_forest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import SUPPORT
from sweeps import swept
from tasks import category_tasks, few_builds, large, tasks

from gpuforest.backends import numba, numpy
from gpuforest.backends.cuda import forest as cuda_backend
from gpuforest.backends.cuda.launch import slot_bytes
from gpuforest.common.errors import BackendError
from gpuforest.explain.oob import judged_leaves

seeds = st.integers(0, 2**31)
SMALL = 20 << 10  # shared memory in which little fits


@settings(max_examples=3 * settings.default.max_examples)
@given(
    task=(tasks() | category_tasks()).map(few_builds),
    seed=seeds,
    budget=st.sampled_from([1, 1000, 30_000, *[2**26] * 3]),
    deep=st.sampled_from([None, None, 0, 5, 40]),
    shared_limit=st.sampled_from([4 << 10, SMALL, 64 << 10, *[227 << 10] * 3]),
    keeps_codes=st.booleans(),
)
def test_forests_are_the_reference(cuda, task, seed, budget, deep, shared_limit, keeps_codes):
    # of numbers and of categories; with little memory, of the device and of a block: histograms
    # that do not fit, no deep phase or a small one
    forest = task.grow(numpy.NumpyBackend())
    backend = cuda.backend(budget, deep=deep, shared_limit=shared_limit)
    backend.keeps_codes = keeps_codes
    with cuda.order(seed):
        assert same_forest(forest, task.grow(backend))
        compare_answers(forest, later_rows(task), backend)


@pytest.mark.emulated(every=5)
@pytest.mark.parametrize("n_tried", [1, 33, 90, 31, 40, 70])
@pytest.mark.parametrize("deep", [0, None])
def test_equal_features_go_as_they_are_drawn(cuda, n_tried, deep):
    # most columns are equal: a warp compares 32 of them at once, a round holds more or fewer
    rng = np.random.default_rng(n_tried)
    x = rng.integers(0, 3, (40, 2)).astype(float)
    X = x[:, rng.integers(0, 2, 90)]
    X[:, rng.random(90) < 0.3] = 1.0
    task = Task(X, rng.integers(0, 3, 40), n_draws=40, n_tried=n_tried, n_trees=5, seed=2)
    forest = task.grow(numpy.NumpyBackend())
    for seed in range(3):
        with cuda.order(seed):
            assert same_forest(forest, task.grow(cuda.backend(deep=deep)))


@pytest.mark.emulated(every=3)
@pytest.mark.parametrize("n_tried", [1, 3, 300])
def test_features_that_vary_in_few_rows_are_found(cuda, n_tried):
    # not in a sample of rows, in any of several tiles, and beyond the first 256 of an order
    rng, n, F = np.random.default_rng(n_tried), 5000, 300
    X = np.zeros((n, F), np.float32)
    some = rng.permutation(F)[: 8 * n_tried]
    X[rng.integers(0, n, len(some)), some] = 1.0
    task = Task(X, rng.integers(0, 3, n), n_draws=n, n_tried=n_tried, n_trees=2, max_depth=2)
    forest = task.grow(numba.NumbaBackend())
    assert len(forest.nodes) > 6
    for seed in range(2):
        with cuda.order(seed):
            assert same_forest(forest, task.grow(cuda.backend(deep=0)))


def least_memory(cuda, task):
    """A backend whose memory holds one tree at once, or few."""
    for bits in count(10):
        backend = cuda.backend(1000, free=2**bits)
        try:
            training = task.training(numpy.NumpyBackend())
            more = training.n_channels, task.n_trees, training.node_words, bool(task.signs)
            backend.waves(task.sampling, *more)
        except BackendError:
            continue
        return backend


@given(task=tasks().map(few_builds), seed=seeds)
def test_waves_change_nothing(cuda, task, seed):
    task = task.but(n_trees=5, n_draws=len(task.X))
    forest, backend = task.grow(numpy.NumpyBackend()), least_memory(cuda, task)
    with cuda.order(seed):
        assert same_forest(forest, task.grow(backend))
        expected, found = (
            out_of_bag(forest, task.prepared(b)[0], task.sampling, b)
            for b in (numpy.NumpyBackend(), backend)
        )
    for a, b in ((expected.sums, found.sums), (expected.counts, found.counts)):
        assert np.array_equal(a, backend.asnumpy(b))


@pytest.mark.emulated(every=2)
@pytest.mark.parametrize("name", ["7 classes", "regression"])
def test_launches_of_the_deep_phase_take_few_rows(cuda, name, monkeypatch):
    task, begun = large(name).but(n_trees=2), []
    forest, backend = task.grow(numba.NumbaBackend()), cuda.backend(deep=300)
    launch = backend.launch

    def noted(operation, kernel, grid, *arguments, **options):
        if kernel == "grow_subtrees":
            begun.append((arguments[3].begin, grid * arguments[3].share))
        launch(operation, kernel, grid, *arguments, **options)

    backend.launch = noted
    assert same_forest(forest, task.grow(backend))
    assert len(begun) == 1
    whole = begun.pop()[1]
    monkeypatch.setattr(cuda_backend, "LAUNCH_ROWS", -(-whole // (3 * backend.n_processors)))
    assert same_forest(forest, task.grow(backend))
    # each begins where the last one ends, and all rows have their turn
    assert len(begun) >= 3
    assert [b for b, _ in begun] == [0, *np.cumsum([n for _, n in begun])[:-1]]
    assert sum(n for _, n in begun) == whole


def test_a_tree_that_does_not_fit_is_an_error_that_says_what_to_do(cuda):
    with pytest.raises(BackendError, match=r"needs about \d+ bytes .* max_samples") as error:
        large("binary").grow(cuda.backend(1000, free=10_000))
    assert "10000 are free" in str(error.value)


def test_out_of_bag_copies_nothing_to_the_host(cuda, monkeypatch):
    rng, backend = np.random.default_rng(0), cuda.backend()
    task = Task(rng.normal(size=(50, 3)), rng.integers(0, 2, 50), n_draws=50, n_trees=3)
    forest, matrix = task.grow(numpy.NumpyBackend()), task.prepared(backend)[0]
    with monkeypatch.context() as patches:
        patches.setattr(type(backend), "asnumpy", lambda *_: pytest.fail("a copy"))
        oob = out_of_bag(forest, matrix, task.sampling, backend)
    assert backend.asnumpy(oob.counts).max() == 3


def test_rows_are_judged_by_other_codes_than_trees_grew_from(cuda, monkeypatch):
    monkeypatch.setattr("gpuforest.explain.oob.block_rows", lambda *_: 17)
    rng, host, backend = np.random.default_rng(0), numpy.NumpyBackend(), cuda.backend()
    task = Task(rng.normal(size=(50, 3)), rng.integers(0, 2, 50), n_draws=50, n_trees=3)
    forest, means, column = task.grow(host), [], rng.integers(0, 9, 50).astype(np.uint8)
    for on in (host, host, backend):
        matrix = task.prepared(on)[0]
        matrix = replace(matrix, judged={1: on.asarray(column)} if means else {})
        oob = out_of_bag(forest, matrix, task.sampling, on)
        means.append((oob.means(), judged_leaves(forest, matrix, on)))
    for plain, expected, found in zip(*means, strict=True):
        assert np.array_equal(expected, found, equal_nan=True)
        assert not np.array_equal(plain, expected, equal_nan=True)


@pytest.mark.emulated(every=8)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"random": True},
        {"min_rows_leaf": 3},
        {"n_tried": 2, "n_features_tree": 3},
        {"min_gain": 0.0, "max_bins": 300},
    ],
    ids=lambda changes: ", ".join(changes) or "default",
)
@pytest.mark.parametrize("target", ["binary", "7 classes", "regression", "counts"])
def test_subtrees_split_by_categories(cuda, target, changes):
    # of few and of many categories, several of them without rows in most nodes, beside numbers
    rng, n = np.random.default_rng(len(target)), 2500
    columns = [places(rng, n, m) for m in (2, 6, 9, 150)] + list(rng.normal(size=(2, n)))
    X = np.stack(columns, axis=1)
    noise, z = rng.normal(size=n), np.nan_to_num(X[:, 3] % 7 - X[:, 2] + X[:, 4])
    y, criterion = {
        "binary": ((z + noise > 0).astype(int), "gini"),
        "7 classes": (np.digitize(z + noise, np.linspace(-8, 4, 6)), "entropy"),
        "regression": (z + noise, "squared_error"),
        "counts": (rng.poisson(0.3, n) + (z > 2.0), "poisson"),
    }[target]
    weights = rng.integers(0, 3, n).astype(np.int32)
    common = {"n_draws": n, "n_trees": 2, "weights": weights, "categorical": (0, 1, 2, 3)}
    task = Task(X, y, criterion, **common).but(**changes)
    forest = task.grow(numba.NumbaBackend())
    for seed, deep in ((1, None), (2, 300)):
        backend = cuda.backend(deep=deep)
        # several classes, whose categories need another order, have wide levels alone
        assert (backend.deep_rows(task.training(backend), n) >= 300) == (
            target != "7 classes" or "random" in changes
        )
        with cuda.order(seed):
            assert same_forest(forest, task.grow(backend))


LARGE = ["binary", "7 classes", "60 classes", "regression", "two outputs", "counts", "16 bits"]


@pytest.mark.emulated(every=5)
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize(
    "changes",
    [{}, {"shared_limit": SMALL}, {"deep": 0}, {"deep": 300}],
    ids=lambda changes: ", ".join(f"{k} {v}" for k, v in changes.items()) or "default",
)
def test_thousands_of_rows(cuda, name, changes):
    task = large(name).but(n_trees=2)
    if name == "16 bits":  # histograms of 2,000 bins take a CPU their time
        task = task.but(n_trees=1, max_depth=4)
    elif "deep" in changes:
        task = task.but(max_depth=10)
    elif name == "60 classes" and changes:  # many passes
        task = task.but(n_trees=1, max_depth=8)
    with cuda.order(len(name)):
        assert same_forest(task.grow(numba.NumbaBackend()), task.grow(cuda.backend(**changes)))


# wide levels, where all features are tried
ALL_TRIED = {"n_tried": None, "max_bins": 15, "n_trees": 2, "max_depth": 7}
NAMES = ["binary", "60 classes", "regression", "two outputs", "counts"]
CHANGES = [
    {"n_draws": 0},
    {"random": True},
    {"min_rows_leaf": 3, "min_rows_split": 20},
    {"min_weight_leaf": 6},
    {"max_bins": 255},
    {"weights": np.arange(6000, dtype=np.int32) % 3},
    {"n_features_tree": 7},
    {"min_gain": 0.5},
]
LEVELS = [(name, {}) for name in NAMES]
LEVELS += [(name, {"signs": (1, 0, -1, *[0] * 9)}) for name in ("binary", "regression")]
LEVELS += [pair for two in (NAMES, NAMES[2:]) for pair in zip(cycle(two), CHANGES, strict=False)]


@pytest.mark.emulated(every=6)
@pytest.mark.parametrize(
    ("name", "changes"), LEVELS, ids=lambda v: v if v in NAMES else ", ".join(v)
)
def test_wide_levels_of_thousands_of_rows(cuda, name, changes):
    task = large(name).but(**ALL_TRIED | changes)
    forest = task.grow(numba.NumbaBackend())
    for seed, deep in enumerate([0, 300]):
        with cuda.order(seed):
            assert same_forest(forest, task.grow(cuda.backend(deep=deep)))


@pytest.mark.skipif(available() is not None, reason=str(available()))
@pytest.mark.parametrize("n_slots", swept(1, [5, 1, 23]))
def test_histograms_keep_within_the_budget(n_slots, monkeypatch):
    task = large("regression").but(**ALL_TRIED)
    backend, made, empty = EmulatedBackend(deep=20), [], EmulatedBackend.empty
    backend.memory_budget = n_slots * slot_bytes(task.training(numpy.NumpyBackend()))

    def noting(self, shape, dtype):
        array = empty(self, shape, dtype)
        made.append(len(array) if array.ndim == 4 else 0)
        return array

    monkeypatch.setattr(EmulatedBackend, "empty", noting)
    assert same_forest(task.grow(numba.NumbaBackend()), task.grow(backend))
    assert 0 < max(made) <= n_slots


@pytest.mark.deep
@pytest.mark.skipif(missing("asan") is not None, reason=str(missing("asan")))
def test_no_kernel_leaves_its_arrays_or_does_undefined_arithmetic():
    # "tsan" in its place looks for races; it takes longer, see CONTRIBUTING
    script = SUPPORT / "cuda_tiny.py"
    done, reports = sanitized("asan", [str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr + reports
    assert done.stdout.count("fine") == len(tasks_of_all_kinds()) + len(fits())
