"""Forests grown straight through the stages, on any backend, to be compared bit by bit."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gpuforest.backends import base, numba, numpy
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.forest import Forest
from gpuforest.core.rules import Rules, Sampling
from gpuforest.core.target import Target, TargetCoding
from gpuforest.core.terms import Combining
from gpuforest.core.training import Training
from gpuforest.explain.oob import OutOfBag
from gpuforest.growing.assemble import merged
from gpuforest.growing.edges import bin_matrix, fit_edges
from gpuforest.growing.grow import grow
from gpuforest.growing.predict import apply, predict
from gpuforest.growing.targets import encode_classes, encode_moments, encode_several, placed

UNLIMITED = 10**9


def grown(training: Training, backend: base.Backend, n_trees: int) -> Forest:
    return merged(grow(training, backend, 0, n_trees), training, backend.n_threads)


@dataclass(frozen=True, eq=False)
class Task:
    """Data and all that decides what forest grows from them.

    X : f32 or f64 [N, F]
    y : class codes [N], or of several outputs [N, K], or numbers f64[N, K]
    weights : i32[N] or None
    n_draws : rows, or groups, of a bag; 0: all rows, once
    groups : i32[N], the number of each row's group, or None
    n_tried : features tried; None: all
    """

    X: np.ndarray
    y: np.ndarray
    criterion: str = "gini"
    weights: np.ndarray | None = None
    n_draws: int = 0
    max_bins: int = 255
    n_tried: int | None = None
    max_depth: int = UNLIMITED
    min_rows_split: int = 2
    min_rows_leaf: int = 1
    min_gain: float = -math.inf
    min_weight_leaf: int = 1
    random: bool = False
    signs: tuple[int, ...] = ()
    n_features_tree: int = 0
    features_again: bool = False
    n_trees: int = 1
    seed: int = 0
    multiway: bool = False
    combined: float = 0.0
    heaviest: int = 1
    categorical: tuple[int, ...] = ()  # columns of X that hold category codes
    n_others: int = 0  # the last of them are not listed, as rare ones are not
    groups: np.ndarray | None = None

    def but(self, **changes: Any) -> Task:
        return replace(self, **changes)

    @property
    def sampling(self) -> Sampling:
        groups = self.groups if self.n_draws else None
        return Sampling(len(self.X), self.n_draws, self.weights, groups=groups)

    @property
    def rules(self) -> Rules:
        n_tried, n_features = self.n_tried or self.X.shape[1], self.X.shape[1]
        own = {f.name for f in fields(Task)} & {f.name for f in fields(Rules)}
        given = {name: getattr(self, name) for name in own}
        return Rules(**given | {
            "criterion": CRITERIA[self.criterion].of_outputs(self.n_class_outputs),
            "n_tried": n_tried if self.combined > 1 else min(n_tried, n_features),
            "signs": np.array(self.signs, np.int8),
        })  # fmt: skip

    @property
    def n_class_outputs(self) -> int:
        several = CRITERIA[self.criterion].task == "classification" and self.y.ndim == 2
        return self.y.shape[1] if several else 1

    def coded(self) -> tuple[TargetCoding, np.ndarray]:
        if self.n_class_outputs > 1:
            outputs = list(self.y.T)
            classes = [np.arange(int(y.max()) + 1) for y in outputs]
            return encode_several(outputs, classes, numpy.NumpyBackend())
        if CRITERIA[self.criterion].task == "classification":
            return encode_classes(self.y, np.arange(int(self.y.max()) + 1))
        y = self.y.reshape(len(self.y), -1).astype(np.float64)
        centred = CRITERIA[self.criterion].centred
        return encode_moments(y, self.sampling.most_weight, centred=centred)

    def training(self, backend: base.Backend) -> Training:
        matrix, target = self.prepared(backend)
        training = Training(matrix, target, self.sampling, self.rules, self.seed)
        if self.rules.combined <= 1:
            return training
        combining = Combining.of(matrix.edges, self.rules, backend.asarray)
        return replace(training, combining=combining)

    def prepared(self, backend: base.Backend) -> tuple[BinnedMatrix, Target]:
        categories = {f: self.categories_of(f) for f in self.categorical}
        how = {"max_bins": self.max_bins, "seed": self.seed, "weights": self.weights}
        edges = fit_edges(self.X, backend=backend, categories=categories, **how)
        coding, y = self.coded()
        return bin_matrix(self.X, edges, backend), placed(coding, y, backend)

    def categories_of(self, f: int) -> tuple[int, ...]:
        some = self.X[~np.isnan(self.X[:, f]), f]
        n = int(some.max()) + 1 if len(some) else 0
        return tuple(range(max(n - self.n_others, 0)))

    def grow(self, backend: base.Backend) -> Forest:
        return grown(self.training(backend), backend, self.n_trees)


def same_forest(a: Forest, b: Forest) -> bool:
    """Whether two forests are one, array for array and dtype for dtype."""
    one, other = (
        (f.nodes, f.tree_offsets, f.leaf_sums, f.sets, f.edges.values, f.edges.offsets)
        for f in (a, b)
    )
    pairs = zip(one, other, strict=True)
    equal = all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs)
    return equal and a.shrinkage == b.shrinkage


class DeepFrom(numba.NumbaBackend):
    """The compiled backend, whose deep phase takes slots of at most `rows` rows.

    0: every level is wide.
    """

    def __init__(self, rows: int, n_threads: int = 1, memory_budget: int = 256 * 2**20) -> None:
        super().__init__(n_threads, memory_budget)
        self.rows = rows

    def deep_rows(self, training: Training, n_rows: int) -> int:
        return self.rows if super().deep_rows(training, n_rows) else 0


def table(
    rng: np.random.Generator, n_rows: int, kinds: list[str], dtype: type = np.float64
) -> np.ndarray:
    """Columns [N, F] of these kinds, a letter each.

    c continuous, t heavy-tailed, b two values, f few values, m many whole numbers,
    0 constant, n a third missing, N few values and most missing, A all missing,
    d a copy of the column before
    """
    draws: dict[str, Any] = {
        "c": lambda: rng.normal(size=n_rows),
        "n": lambda: rng.normal(size=n_rows),
        "t": lambda: rng.lognormal(sigma=3, size=n_rows),
        "b": lambda: rng.integers(0, 2, n_rows).astype(float),
        "f": lambda: rng.integers(-2, 3, n_rows) / 2,
        "N": lambda: rng.integers(-2, 3, n_rows) / 2,
        "m": lambda: rng.integers(0, 1000, n_rows).astype(float),
        "0": lambda: np.full(n_rows, 3.5),
        "A": lambda: np.full(n_rows, np.nan),
        "d": lambda: columns[-1].copy() if columns else np.zeros(n_rows),
    }
    columns: list[np.ndarray] = []
    for kind in kinds:
        columns.append(draws[kind]())
        if kind in "nN":
            columns[-1][rng.random(n_rows) < {"n": 0.3, "N": 0.8}[kind]] = np.nan
    return np.stack(columns, axis=1).astype(dtype)


def places(rng: np.random.Generator, n_rows: int, n_categories: int) -> np.ndarray:
    """A column f64[N] of category codes, a fifth missing, of which the last one is there
    if anything is."""
    x = rng.integers(0, n_categories, n_rows).astype(float)
    x[rng.random(n_rows) < 0.2] = np.nan
    x[rng.integers(n_rows)] = n_categories - 1
    return x


def later_rows(task: Task, seed: int = 0) -> np.ndarray:
    """The task's rows and as many others, in which categories are missing or come later."""
    rng, X = np.random.default_rng(seed), task.X.copy()
    X *= rng.normal(size=X.shape).astype(X.dtype)
    for f in task.categorical:
        X[:, f] = rng.integers(0, len(task.categories_of(f)) + 1, len(X))
    X[rng.random(X.shape) < 0.1] = np.nan
    return np.concatenate([task.X, X])


def out_of_bag(
    forest: Forest, matrix: BinnedMatrix, sampling: Sampling, backend: base.Backend
) -> OutOfBag:
    """Sums over the trees that did not draw each row."""
    target, rules = Target(forest.coding, None), Rules(CRITERIA["gini"], 1, 1, 2, 1, 0.0)
    oob = OutOfBag(Training(matrix, target, sampling, rules, forest.seed), backend)
    oob.add([forest], forest.n_trees)
    return oob


def compare_out_of_bag(forest: Forest, task: Task, backend: base.Backend) -> None:
    """The means of the trees that did not draw each row are NumPy's."""
    expected, found = (
        out_of_bag(forest, task.prepared(b)[0], task.sampling, b).means()
        for b in (numpy.NumpyBackend(), backend)
    )
    assert np.array_equal(expected, found, equal_nan=True)


def compare_answers(forest: Forest, X: np.ndarray, backend: base.Backend, *more: Any) -> None:
    """Leaves and predictions of rows are NumPy's; also of rows that lie where the backend works.

    more : other stages"""
    for stage in (apply, predict, *more):
        expected = stage(forest, X, numpy.NumpyBackend())
        assert np.array_equal(expected, stage(forest, X, backend))
        there = stage(forest, backend.asarray(X), backend)
        assert np.array_equal(expected, backend.asnumpy(there))
