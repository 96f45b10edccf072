"""SHAP values on a CUDA device have the bits of the reference."""

import numpy as np
import pandas as pd
import pytest
from shap_cases import NAMES, fitted, numbers

from gpuforest import DecisionTreeRegressor, ExtraTreesRegressor
from gpuforest.backends.cuda_shap import n_points, points_of
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.data.validation import check_table
from gpuforest.inspection.shap import Explainer


def values(model, X, backend):
    explainer = Explainer.of(model.forest_, backend)
    return explainer.values(check_table(model, X, NumpyBackend()), backend)


@pytest.mark.parametrize("name", NAMES)
def test_values_are_the_reference(cuda, name):
    model, X = fitted(name)
    expected = values(model, X, NumpyBackend())
    assert np.array_equal(values(model, X, NumbaBackend(1)), expected)
    # 1: a row and a tree at once; 100,000: several trees
    for seed, budget in enumerate((2**26, 1, 100_000)):
        with cuda.order(seed):
            assert np.array_equal(values(model, X, cuda.backend(budget)), expected)


def test_many_rows_and_trees_without_a_split(cuda):
    X, y = numbers(n=1100)
    model = DecisionTreeRegressor(max_depth=4, random_state=0, backend="numba").fit(X, y)
    assert np.array_equal(values(model, X, cuda.backend()), values(model, X, NumbaBackend(1)))
    leaf = DecisionTreeRegressor(backend="numba").fit(X, np.ones(len(X)))
    assert not values(leaf, X[:3], cuda.backend()).any()


def test_codes_of_two_bytes(cuda):
    kinds = np.random.default_rng(0).integers(0, 300, 900)
    X = pd.DataFrame({"kind": pd.Categorical(kinds), "x": kinds % 7 / 3})
    model = DecisionTreeRegressor(random_state=0, backend="numba", min_samples_leaf=2)
    model.set_params(min_category_frequency=1).fit(X, kinds % 5 + X["x"])
    assert model.forest_.edges.code_dtype == np.uint16
    expected = values(model, X[:40], NumpyBackend())
    assert np.array_equal(values(model, X[:40], cuda.backend()), expected)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_points_are_those_of_each_tree_and_output_in_turn(most):
    X, y = numbers(n=30)
    model = ExtraTreesRegressor(4, random_state=0, backend="numpy", n_jobs=1)
    explainer = Explainer.of(model.fit(X, np.stack([y, -y], axis=1)).forest_, NumpyBackend())
    points = explainer.points
    expected = [
        (t, c, points.at[points.first[t] + k], points.weight[points.first[t] + k], k == 0)
        for t in range(4)
        for c in range(2)
        for k in range(points.count[t])
    ]
    parts = list(points_of(explainer, most))
    assert [item for part in parts for item in zip(*part, strict=True)] == expected
    assert len(expected) == n_points(explainer)
    sizes = [len(part[0]) for part in parts]
    assert all(part[4][0] for part in parts)
    assert max(sizes) <= max(most, points.count.max())
    assert len(parts) == {1: 8, 1000: 1}.get(most, len(parts))
