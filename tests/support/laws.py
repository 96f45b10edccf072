"""Small tasks of every kind, and every way to grow them on a CPU."""

import numpy as np
from engine import DeepFrom, Task, table
from hypothesis import strategies as st

from gpuforest.backends import base, numba, numpy
from gpuforest.core import nodes
from gpuforest.core.forest import Forest

# the reference, wide levels alone on one thread and on two, and the deep phase
GROWERS: dict[str, base.Backend] = {
    "numpy": numpy.NumpyBackend(),
    "wide": DeepFrom(0),
    "wide, threads": DeepFrom(0, 2),
    "deep": numba.NumbaBackend(),
}
seeds = st.integers(0, 2**32)


def some_task(seed: int, **changes: object) -> Task:
    """A small task of any kind, of all rows once."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(2, 120))
    X = table(rng, n_rows, list("cnfb") + list(rng.permutation(list("tm0Nd"))[:2]))
    criterion = ("gini", "entropy", "squared_error", "misclassification")[seed % 4]
    y = rng.integers(0, 2 + seed % 3, n_rows)
    return Task(X, y, criterion, n_trees=2, n_tried=2 + seed % 5, seed=seed % 7).but(**changes)


def column(*values: float) -> np.ndarray:
    """X f64[N, 1]."""
    return np.array(values, np.float64)[:, None]


def split_of(forest: Forest, node: int = 0) -> tuple[int, int, bool]:
    """Feature, bin, and whether missing values go left, of a node of the first tree."""
    feature, bin, missing_left, _ = nodes.unpack(np, forest.nodes)
    return int(feature[node]), int(bin[node]), bool(missing_left[node])


def leaves_below(forest: Forest) -> list[set[int]]:
    """The leaves below each node, itself included."""
    feature, _, _, child = nodes.unpack(np, forest.nodes)
    below = [{node} for node in range(len(feature))]
    for node in reversed(range(len(feature))):
        if feature[node] >= 0:
            below[node] = below[child[node]] | below[child[node] + 1]
    return below
