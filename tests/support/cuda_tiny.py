"""Tiny forests and boosted trees through every CUDA kernel and every way; run under a sanitizer:

python tests/support/cuda_on_cpu asan tests/support/cuda_tiny.py
python tests/support/cuda_on_cpu tsan tests/support/cuda_tiny.py
compute-sanitizer --tool memcheck python tests/support/cuda_tiny.py GPU
"""

import sys
from collections.abc import Iterator
from itertools import cycle, islice

import numpy as np
from boosted import Fit, differences, made
from devices import DEVICES
from engine import Task, grown, later_rows, out_of_bag, places, same_forest, table

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.growing.predict import apply, predict

# wide levels alone, the deep phase, less and less shared memory, both phases
WAYS = [{"deep": 0}, {}, {"shared_limit": 20 << 10}, {"shared_limit": 4 << 10}, {"deep": 9}]


def tasks(n_rows: int = 70) -> list[Task]:
    rng = np.random.default_rng(0)
    X = table(rng, n_rows, list("cbnN0dA"), np.float32)
    classes = rng.integers(0, 3, n_rows)
    numbers = np.stack([rng.poisson(2.0, n_rows) + 1.0, rng.random(n_rows) + 0.5], axis=1)
    common = {"n_tried": 2, "n_trees": 2, "seed": 4, "n_draws": n_rows}
    found = []
    for criterion in ("gini", "entropy", "misclassification", "squared_error", "poisson"):
        y = numbers if criterion in ("squared_error", "poisson") else classes
        found.append(Task(X, y, criterion, **common))
        weights = rng.integers(0, 3, n_rows).astype(np.int32)
        changes = {"max_bins": 300, "min_rows_leaf": 2, "weights": weights}
        found.append(Task(X.astype(np.float64), y, criterion, **common).but(**changes))
        if criterion in ("gini", "squared_error"):  # larger slots from those above
            found.append(Task(X, y, criterion, **common).but(n_tried=None, max_bins=3, n_draws=0))
    X[:, 0], X[:, 1] = places(rng, n_rows, 4), places(rng, n_rows, 70)
    for criterion, y in (("entropy", classes), ("squared_error", numbers)):
        task = Task(X, y, criterion, **common, categorical=(0, 1))
        found.append(task.but(max_bins=300))
    combined = {"combined": 3.0, "heaviest": 5, "categorical": (0,), "n_features_tree": 5}
    found.append(Task(X, classes, "gini", **common).but(**combined))
    return found


def fits() -> list[Fit]:
    """Rounds of boosting: one word or two, codes of one byte or two, rows that are left out."""
    rng = np.random.default_rng(0)
    groups = rng.random((2, 4)) < 0.7
    by_loss = [
        made(1, 90, [0, 1, 0, 1], [7, 5, 9, 70], "squared_error", "none", 0.2, max_leaves=6),
        made(2, 90, [0, 1, 0, 0], [300, 5, 9, 4], "poisson", "real", 0.2, subsample=0.6),
        made(3, 70, [0, 0, 1, 1], [7, 300, 4, 20], "3 classes", "none", 0.0, share=0.5),
    ]
    return [
        *(fit.but(by_loss=True) for fit in by_loss),
        made(4, 70, [0, 0, 0, 1], [7, 9, 4, 3], "huber", "none", 0.1, groups=groups, memory=1),
        made(5, 80, [0, 0], [7, 9], "quantile", "real", 0.1, subsample=0.6, max_leaves=4),
    ]


def orders(number: int) -> Iterator[int]:
    """Seeds of the orders of threads for the ways of one task: in turn, and from another beginning
    for the next task, so that each way is tried in both."""
    return islice(cycle((0, 3)), number % 2, None)


def main(name: str = "emulated") -> None:
    device = DEVICES[name]
    for number, task in enumerate(tasks()):
        reference, X = task.grow(NumpyBackend()), later_rows(task)
        answers = {stage: stage(reference, X, NumpyBackend()) for stage in (apply, predict)}
        for way, seed in zip(WAYS, orders(number), strict=False):
            with device.order(seed):
                backend = device.backend(**way)
                training = task.training(backend)
                forest = grown(training, backend, task.n_trees)
                assert same_forest(reference, forest), (task.criterion, way)
                for stage, expected in answers.items():
                    assert np.array_equal(stage(forest, X, backend), expected)
                out_of_bag(forest, training.matrix, task.sampling, backend)
        print(task.criterion, task.max_bins, "fine", flush=True)
    for number, fit in enumerate(fits()):
        expected, raw = fit.run(NumpyBackend())
        for limit, seed in zip((227 << 10, 12 << 10), orders(number), strict=False):
            with device.order(seed):
                found, there = fit.run(device.backend(shared_limit=limit))
            assert not differences(expected, found), fit.rest["loss"].name
            assert np.array_equal(raw, there)
        print(fit.rest["loss"].name, "fine", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
