"""Where class codes lie on a device: in the padding of rows of codes, or in few bytes."""

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError

import numpy as np
import pytest
from engine import Task, grown, same_forest

from gpuforest.backends.cuda import forest as cuda_traverse
from gpuforest.backends.cuda import launch as cuda_targets
from gpuforest.backends.cuda.launch import targets_of
from gpuforest.backends.numba import NumbaBackend
from gpuforest.core.training import Training
from gpuforest.growing.targets import encode_classes, placed


def task_of(n_features, n_classes, *, n_tried=None, max_bins=255, n=800):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return Task(X, y, n_draws=n, n_tried=n_tried, max_bins=max_bins, n_trees=2, max_depth=5)


# features, classes, features tried, bins; whether class codes lie beside codes; their type
PLACES = {
    "four bytes left": (28, 2, 5, 255, True, "uint8"),
    "as many classes as a byte holds": (5, 256, None, 255, True, "uint8"),
    "more": (5, 257, None, 255, False, "uint16"),
    "codes of two bytes": (5, 257, None, 400, True, "uint16"),
    "no room": (16, 2, 4, 255, False, "uint8"),
    "no room, codes of two bytes": (8, 2, None, 400, False, "uint8"),
    "a sector that is mostly read": (54, 7, 7, 255, True, "uint8"),
    "one that is mostly not read": (100, 7, 10, 255, False, "uint8"),
}


@pytest.mark.emulated(every=5)
@pytest.mark.parametrize("deep", [0, None])
@pytest.mark.parametrize("name", PLACES)
def test_class_codes_lie_where_they_are_read_best(cuda, name, deep):
    n_features, n_classes, n_tried, max_bins, beside, dtype = PLACES[name]
    task = task_of(n_features, n_classes, n_tried=n_tried, max_bins=max_bins)
    backend = cuda.backend(deep=deep)
    training = task.training(backend)
    y, codes = targets_of(backend.xp, training), training.matrix.codes
    assert (y.at is codes) == beside
    assert y.at.dtype == dtype
    flat = backend.asnumpy(y.at).reshape(-1)
    assert np.array_equal(flat[y.first :: y.stride], task.y)
    assert targets_of(backend.xp, training) is y
    assert same_forest(task.grow(NumbaBackend()), grown(training, backend, task.n_trees))


@pytest.mark.emulated(every=2)
@pytest.mark.parametrize("deep", [0, None])
def test_trainings_of_one_matrix_keep_their_own_targets(cuda, deep):
    task, rng = task_of(28, 3, n_tried=5), np.random.default_rng(0)
    tasks = [task, task.but(y=rng.permutation(task.y)), task.but(y=task.y[::-1])]
    expected = [one.grow(NumbaBackend()) for one in tasks]
    assert not same_forest(*expected[:2])
    backend = cuda.backend(deep=deep)
    matrix = task.prepared(backend)[0]

    def training(one):
        target = placed(*one.coded(), backend)
        return Training(matrix, target, one.sampling, one.rules, one.seed)

    # all at the same time: only the first has the padding
    several = [training(one) for one in tasks]
    assert [targets_of(backend.xp, t).at is matrix.codes for t in several] == [True, False, False]
    for _ in range(2):
        for one, forest in zip(several, expected, strict=True):
            assert same_forest(forest, grown(one, backend, task.n_trees))
    # one after another
    several.clear()
    for one, forest in zip(tasks, expected, strict=True):
        gc.collect()
        alone = training(one)
        assert targets_of(backend.xp, alone).at is matrix.codes
        assert same_forest(forest, grown(alone, backend, task.n_trees))
        del alone


def test_of_two_threads_one_has_the_padding(cuda, monkeypatch):
    task, backend = task_of(28, 3, n_tried=5), cuda.backend()
    tasks = [task, task.but(y=task.y[::-1].copy())]
    matrix = task.prepared(backend)[0]
    several = [
        Training(matrix, placed(*one.coded(), backend), one.sampling, one.rules, 0) for one in tasks
    ]
    meeting, labels = Barrier(2), cuda_targets._labels

    def slow(*arguments):
        with suppress(BrokenBarrierError):  # if the other thread cannot be here, too
            meeting.wait(0.3)
        return labels(*arguments)

    monkeypatch.setattr(cuda_targets, "_labels", slow)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda t: targets_of(backend.xp, t), several))
    assert sum(y.at is matrix.codes for y in found) == 1
    for y, one in zip(found, tasks, strict=True):
        assert np.array_equal(backend.asnumpy(y.at).reshape(-1)[y.first :: y.stride], one.y)


def test_a_forest_is_shown_to_other_threads_when_it_is_there(cuda):
    task, backend = task_of(5, 3), cuda.backend()
    forest, seen = task.grow(NumbaBackend()), []
    before = backend.synchronise
    backend.synchronise = lambda: (before(), seen.append(dict(cuda_traverse._forests[forest])))
    backend.forest_here(forest)
    assert seen == [{}]
    assert backend.device_number in cuda_traverse._forests[forest]


def test_more_classes_than_two_bytes_hold(cuda):
    # of which few rows are seen
    backend = cuda.backend()
    task = task_of(5, 4)
    matrix, target = task.prepared(backend)
    coding, codes = encode_classes(task.y * 20_000, np.arange(70_000))
    target = placed(coding, codes, backend)
    training = Training(matrix, target, task.sampling, task.rules, 0)
    y = targets_of(backend.xp, training)
    assert y.at.dtype == np.int32
    assert np.array_equal(backend.asnumpy(y.at), codes)
    rows, weights = (backend.asarray(a.astype(np.int32)) for a in (np.arange(3), np.ones(3)))
    begin, end = (backend.asarray(np.array([i])) for i in (0, 3))
    sums = backend.asnumpy(backend.sums(training, rows, weights, begin, end))
    expected = np.bincount(codes[:3].ravel(), minlength=70_000)[None]
    assert np.array_equal(sums, expected)
