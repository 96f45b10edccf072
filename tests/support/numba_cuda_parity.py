"""The numba-cuda backend beside the reference: ==, on a GPU or in Numba's simulator.

    NUMBA_ENABLE_CUDASIM=1 NUMBA_DISABLE_JIT=1 python tests/support/numba_cuda_parity.py

A script of its own, because Numba reads those variables when it is imported. At its end it
checks that kernels were launched with arguments of the types that test_numba_cuda.py compiles.
"""

import time
import warnings
from collections import defaultdict

import numpy as np
from engine import Task, compare_out_of_bag, later_rows, places, same_forest, table
from numba_cuda_types import KERNELS, described, signatures

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.backends import numba, numba_cuda, numpy, registry
from gpuforest.growing.predict import apply, predict

CLASSES = ("gini", "entropy", "misclassification")
MOMENTS = ("squared_error", "poisson")
REFERENCE = numpy.NumpyBackend()
WEIGHTS = np.arange(40, dtype=np.int32) % 3
LAUNCHED = defaultdict(set)  # types of arguments, by the kernel's name


class Recorded(numba_cuda.NumbaCudaBackend):
    """Keeps the types of all arguments of kernels."""

    def launch(self, kernel, n, *arguments):
        LAUNCHED[kernel.py_func.__name__].add(tuple(map(described, arguments)))
        super().launch(kernel, n, *arguments)


def task_of(criterion="gini", n_rows=40, kinds="cbnN0dAf", n_classes=3, n_outputs=2, **changes):
    rng = np.random.default_rng(5)
    X = table(rng, n_rows, list(kinds), np.float32)
    y = rng.integers(0, n_classes, n_rows)
    if criterion in MOMENTS:
        y = rng.poisson(2.0, (n_rows, n_outputs)) + rng.random((n_rows, n_outputs))
    return Task(X, y, criterion, n_draws=n_rows, n_tried=2, n_trees=3, seed=3).but(**changes)


def tasks():
    for criterion in (*CLASSES, *MOMENTS):
        yield task_of(criterion)
        yield task_of(criterion, n_classes=2, n_outputs=1, weights=WEIGHTS)
        yield task_of(criterion, n_draws=0, weights=WEIGHTS, min_rows_leaf=3)
    yield task_of(n_draws=0, n_tried=8)
    yield task_of(n_tried=1, kinds="0A0bcd", n_trees=8)
    yield task_of(n_rows=300, n_draws=300, kinds="cn", max_bins=1000, n_trees=1, max_depth=3)
    yield task_of("squared_error", n_rows=1)
    yield task_of("squared_error", y=np.stack([np.ones(40), np.arange(40.0)], axis=1))
    yield task_of(kinds="00bddddd0", n_tried=3)  # equal columns: as they are drawn
    yield task_of(n_rows=10, n_classes=1)
    yield task_of(kinds="A")
    yield task_of(kinds="0")
    yield task_of(max_depth=0)
    yield task_of("entropy", max_depth=2, min_rows_split=10, min_gain=0.0)
    for criterion in ("gini", "entropy", "poisson"):  # rules that most forests do without
        yield task_of(criterion, random=True, min_rows_leaf=2)
        yield task_of(criterion, random=True, n_classes=2, n_outputs=1, min_weight_leaf=5)
        signs = (1, -1, 0, 1, 0, 0, 0, -1)
        yield task_of(criterion, n_classes=2, n_outputs=1, signs=signs, n_features_tree=5)
    yield task_of("squared_error", X=np.arange(40.0)[:, None], n_draws=80, n_tried=1, max_bins=7)


def categorical_tasks():
    """Columns of few categories, of more than a word tells apart, and of more than a byte."""
    rng = np.random.default_rng(6)
    few = np.stack([places(rng, 40, 3), places(rng, 40, 12), rng.normal(size=40)], axis=1)
    many = np.stack([places(rng, 40, 70), few[:, 2]], axis=1)
    for criterion in ("gini", "entropy", "squared_error"):
        yield task_of(criterion, X=few, categorical=(0, 1))
        yield task_of(criterion, X=many, categorical=(0,), n_classes=2, n_outputs=1, n_trees=1)
    yield task_of(X=few, categorical=(0, 1), random=True, min_rows_leaf=2)
    most = np.stack([places(rng, 40, 300), few[:, 2]], axis=1)
    yield task_of(X=most, categorical=(0,), n_trees=1, max_depth=2)


def check_forests(backend):
    for task in tasks():
        assert same_forest(task.grow(REFERENCE), task.grow(backend)), task


def check_waves_and_chunks(backend):
    for criterion in ("gini", "squared_error"):
        for budget in (1, 10_000):
            task = task_of(criterion)
            assert same_forest(task.grow(REFERENCE), task.grow(Recorded(1, budget)))


def check_answers(backend):
    """Of forests of numbers, of categories, and of combinations, which grow on the CPU."""
    X = np.stack([places(np.random.default_rng(6), 40, 3), *task_of(kinds="cnAc").X.T], axis=1)
    for task in (
        task_of("entropy"),
        task_of("squared_error"),
        *categorical_tasks(),
        *(
            task_of(combined=4.0, heaviest=5, **changes)
            for changes in ({}, {"X": X, "categorical": (0,)}, {"max_bins": 1000, "random": True})
        ),
    ):
        forest, rows = task.grow(REFERENCE), later_rows(task)
        assert len(forest.sets) or not task.categorical
        assert forest.oblique == (task.combined > 0)
        assert forest.oblique or same_forest(forest, task.grow(backend)), task
        for stage in (apply, predict):
            assert np.array_equal(stage(forest, rows, REFERENCE), stage(forest, rows, backend))
        for each in (backend, Recorded(1, 1)):
            compare_out_of_bag(forest, task, each)


def check_estimators(backend):
    rng = np.random.default_rng(1)
    X = table(rng, 40, list("cfn"))
    for model, y in (
        (RandomForestClassifier(4, oob_score=True, random_state=0), rng.integers(0, 3, 40)),
        (RandomForestRegressor(4, oob_score=True, random_state=0), rng.normal(size=40)),
    ):
        found, expected = (
            model.set_params(backend=name).fit(X, y).predict(X) for name in (backend.name, "numpy")
        )
        assert np.array_equal(found, expected)


def check_thousands_of_rows(backend):
    """On a GPU only: the simulator runs a row after another."""
    if backend.simulated:
        return
    from tasks import large  # which needs Hypothesis

    for name in ("binary", "7 classes", "60 classes", "two outputs", "counts", "16 bits"):
        task = large(name)
        assert same_forest(task.grow(numba.NumbaBackend()), task.grow(backend)), name


if __name__ == "__main__":
    # what plain Python says of arithmetic modulo 2**64
    warnings.filterwarnings("ignore", "overflow encountered in scalar", RuntimeWarning)
    warnings.filterwarnings("ignore", "Some inputs do not have OOB scores", UserWarning)
    registry.get_backend("numba-cuda")  # which says why, if it cannot run here
    engine = Recorded()
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            start = time.perf_counter()
            check(engine)
            print(f"{name}: {time.perf_counter() - start:.1f} s")
    for kernel in KERNELS:
        assert LAUNCHED[kernel], kernel
        assert LAUNCHED[kernel] <= set(signatures(kernel)), (kernel, LAUNCHED[kernel])
    print("the same, simulated" if engine.simulated else "the same, on a GPU")
