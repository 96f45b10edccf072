"""SHAP values: what each feature adds to each prediction (Lundberg et al. 2020).

shap_kernels.py has the algorithm, background_kernels.py the one of interventional values: features
that are not known have the values of a background data set. They run on the CPU, whatever the
backend; threads share rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.parallel import blocks, parallel_map
from gpuforest.compiler.intrinsics import LANES
from gpuforest.core import nodes
from gpuforest.core.forest import Forest
from gpuforest.core.target import EffectCoding
from gpuforest.explain import background_kernels, shap_kernels
from gpuforest.growing.edges import bin_matrix

MOST_ROWS = 256  # rows of a task: some seconds of work, which no interrupt can end


def shap_values(forest: Forest, X: Array, backend: Backend, n_others: int = 0) -> np.ndarray:
    """Path-dependent SHAP values f64[N, F, K] for X [N, F], or of pairs f64[N, F * n_others, K].
    Trees are added in their order, so the number of threads changes nothing."""
    cover, shape = path_covers(forest, backend.n_threads)
    n_points, points = points_for(shape[:, 0])
    depth, most_points = int(shape[:, 1].max()), int(n_points.max())
    codes, columns = code_columns(X, forest, backend), columns_of(forest)
    (F, N), trees, values = codes.shape, forest.walked(), forest.values
    sums = np.zeros((N, F * max(1, n_others), values.shape[1]))

    def explain(rows: slice) -> None:
        work = shap_kernels.new_work(F, depth, most_points, with_pairs=n_others > 0)
        shap_kernels.shap_values(
            trees, cover, values, columns, n_points, points, codes, sums, rows.start, rows.stop,
            work,
        )  # fmt: skip

    parallel_map(explain, blocks(N, backend.n_threads, MOST_ROWS), backend.n_threads)
    return combined(forest, sums)


def shap_interactions(forest: Forest, X: Array, backend: Backend) -> np.ndarray:
    """SHAP interaction values f64[N, F, F, K], symmetric, which sum to SHAP values."""
    F = forest.edges.n_features
    sums = shap_values(forest, X, backend, F)
    both = sums.reshape(len(sums), F, F, -1)
    values, f = np.einsum("nffk->nfk", both).copy(), np.arange(F)
    both = (both + both.transpose(0, 2, 1, 3)) / 2.0
    both[:, f, f] = 0.0
    both[:, f, f] = values - both.sum(axis=2)
    return np.asarray(both)


def background_values(
    forest: Forest, background: Array, X: Array, backend: Backend, limit: int | None = None
) -> np.ndarray:
    """Interventional SHAP values f64[N, F, K] with a background [Z, F]; the weights of paths may
    take `limit` bytes."""
    refuse(forest)
    _, shape = covers(forest, np.ones(len(forest.values)), backend.n_threads)
    widest, depth = (int(most) for most in shape.max(axis=0))
    if limit is not None and (needed := 8 * (widest + 1) ** 2) > limit:
        raise ValueError(
            f"interventional SHAP values take {needed / 1e6:.3g} MB for paths of "
            f"{widest} features, and there are {limit / 1e6:.3g} MB: raise memory_limit, leave "
            "background out, or train with a lower max_depth"
        )
    codes, others = (code_columns(rows, forest, backend) for rows in (X, background))
    (F, N), trees, values = codes.shape, forest.walked(), forest.values
    columns, weights = columns_of(forest), weights_for(widest)
    sums, most_nodes = np.zeros((N, F, values.shape[1])), int(np.diff(trees.offsets).max())

    def explain(rows: slice) -> None:
        background_kernels.background_values(
            trees, values, columns, weights, codes, others, sums, rows.start, rows.stop,
            background_kernels.new_work(F, depth, most_nodes),
        )  # fmt: skip

    parallel_map(explain, blocks(N, backend.n_threads, MOST_ROWS), backend.n_threads)
    return combined(forest, sums / others.shape[1])


def expected(forest: Forest, backend: Backend) -> np.ndarray:
    """The prediction with no feature known, f64[K]: the mean over the cover of each tree."""
    cover, _ = path_covers(forest, backend.n_threads)
    leaf, begin = nodes.is_leaf(forest.nodes), forest.tree_offsets[:-1]
    share = cover / np.repeat(cover[begin], np.diff(forest.tree_offsets)) * leaf
    rows = np.where(leaf, nodes.leaf_rows(forest.nodes), 0)
    means = np.stack(
        [np.add.reduceat(share * values[rows], begin) for values in forest.values.T], axis=1
    )
    mean = forest.combined(means.sum(axis=0))
    return np.asarray(mean if forest.baseline is None else mean + forest.baseline)


def path_covers(forest: Forest, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """See `covers`, by the weight of training rows in each leaf. Refuses forests without one."""
    refuse(forest)
    sums = forest.leaf_sums
    weight = sums.sum(axis=1) if forest.coding.is_classes else sums[:, 0]
    if weight.min() <= 0:
        raise ValueError("the forest has leaves without training rows, of which no share is known")
    return covers(forest, weight.astype(np.float64), n_threads)


def covers(forest: Forest, leaf_cover: np.ndarray, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Cover of each node f64[M]; features of the longest path, and depth, of each tree i64[T, 2];
    from the training weight f64[V] of each row of the leaf table."""
    M, T, F = forest.n_nodes, forest.n_trees, forest.edges.n_features
    cover, parent, shape = np.empty(M), np.empty(M, np.int64), np.empty((T, 2), np.int64)

    def part(t: slice) -> None:
        trees = forest.walked(range(t.start, t.stop))
        shap_kernels.covers(trees, leaf_cover, cover, shape[t], parent, np.zeros(F, np.int64))

    parallel_map(part, blocks(T, n_threads, T), n_threads)
    return cover, shape


def host_codes(X: Array, forest: Forest, backend: Backend) -> np.ndarray:
    """The codes [N, F] of X, on the host."""
    codes = backend.asnumpy(bin_matrix(X, forest.edges, backend).codes)
    return codes[:, : forest.edges.n_features]  # a device's rows may be longer


def code_columns(X: Array, forest: Forest, backend: Backend) -> np.ndarray:
    """The codes of X u16[F, N], as kernels take them."""
    return np.ascontiguousarray(host_codes(X, forest, backend).T, np.uint16)


def refuse(forest: Forest) -> None:
    """Raise ValueError for a forest that has no SHAP values here."""
    if forest.coordinates is not None:
        raise ValueError(
            "SHAP values are not defined for splits by combinations of features: train with "
            "feature_combinations=None, or use permutation importances"
        )
    if isinstance(forest.coding, EffectCoding):
        raise ValueError(
            "effects are ratios of means over all trees, to which no SHAP values of trees add up: "
            "use permutation importances of effect, or feature_importances_"
        )
    forest.coding.refuse_priors("SHAP values")
    if forest.combine == "median":
        raise ValueError(
            "the prediction is a median of trees, to which no SHAP values of trees add up: explain "
            "a RandomForestRegressor or HistGradientBoostingRegressor instead"
        )


def combined(forest: Forest, sums: np.ndarray) -> np.ndarray:
    """SHAP values of a forest f64[..., K] from their sums over its trees."""
    if forest.coding.is_classes:  # the shares of all classes add up to a constant
        sums[..., 0] = -sums[..., 1:].sum(axis=-1)
    return np.asarray(forest.combined(sums))


def columns_of(forest: Forest) -> np.ndarray:
    """Range of the outputs of each tree, i64[T, 2], without the first class: minus the others."""
    t, K = np.arange(forest.n_trees), forest.coding.n_values
    coding: Any = forest.coding
    if forest.baseline is not None and not coding.is_vector:  # a tree for each in turn
        return np.stack([t % K, t % K + 1], axis=1)
    return np.stack([0 * t + int(forest.coding.is_classes), 0 * t + K], axis=1)


def points_for(widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points of each tree on 0 .. 1: number i64[T]; points and weights f64[T, 2, Q];
    from the most features on a path of each tree, i64[T]. n points are exact for polynomials of
    degree 2n - 1. Points of weight zero fill vectors."""
    counts = np.maximum(1, -(-widths // 2))
    n_points = -(-counts // LANES) * LANES
    points = np.zeros((len(counts), 2, int(n_points.max())))
    points[:, 0] = 0.5
    for n in np.unique(counts):
        at, weight = np.polynomial.legendre.leggauss(int(n))
        points[counts == n, :, :n] = (at + 1.0) / 2.0, weight / 2.0
    return n_points, points


def weights_for(most: int) -> np.ndarray:
    """(a - 1)! b! / (a + b)! for a and b up to `most`, f64[most + 1, most + 1]; 0 where a is 0."""
    weights = np.zeros((most + 1, most + 1))
    a = np.arange(1, most + 1)
    weights[1:, 0] = 1.0 / a
    for b in range(1, most + 1):
        weights[1:, b] = weights[1:, b - 1] * b / (a + b)
    return weights
