"""NumPy's numbers as parameters are Python's: the same forest, and no kernel compiled anew."""

import numpy as np
import pytest
from engine import same_forest, table

import gpuforest
from gpuforest import DecisionTreeRegressor, estimate_memory

X = table(np.random.default_rng(0), 300, list("cfnm"))
Y = (X[:, 0] > 0) + (X[:, 1] > 0)
LIMITS = {
    "max_depth": (5, np.int32), "min_samples_split": (4, np.int16),
    "min_samples_leaf": (2, np.int64), "min_weight_fraction_leaf": (0.0078125, np.float32),
    "min_impurity_decrease": (2.0**-10, np.float32), "max_leaf_nodes": (9, np.uint16),
    "ccp_alpha": (2.0**-12, np.float16), "max_bins": (100, np.uint8),
    "random_state": (3, np.int64), "memory_limit": (2**31 - 1, np.int32),
}  # fmt: skip
OF_FORESTS = {
    "n_estimators": (3, np.uint8),
    # scikit-learn's check of these refuses np.float32, as it does for its own forests
    "max_samples": (0.5, np.float64),
    "max_features": (0.5, np.float64),
    "bootstrap": (True, np.bool_),
    "n_jobs": (1, np.int32),
}
KINDS = [
    gpuforest.DecisionTreeRegressor, gpuforest.RandomForestClassifier,
    gpuforest.RandomForestRegressor, gpuforest.ExtraTreesClassifier, gpuforest.BaggingRegressor,
]  # fmt: skip


def both(Model, backend):
    """The estimator with parameters of Python's types, and of NumPy's."""
    given = LIMITS if Model is DecisionTreeRegressor else LIMITS | OF_FORESTS
    for i in (0, 1):
        params = {name: own[0] if i == 0 else own[1](own[0]) for name, own in given.items()}
        if Model is gpuforest.BaggingRegressor:
            tree = {name: params.pop(name) for name in LIMITS if name != "random_state"}
            params["estimator"] = DecisionTreeRegressor(**tree, backend=backend)
            yield Model(**params)
        else:
            yield Model(**params, backend=backend)


@pytest.mark.parametrize("weight", [0.0, 0.0078125])
@pytest.mark.parametrize("Model", KINDS)
def test_the_forest_is_the_same_and_no_kernel_is_compiled_anew(backend, monkeypatch, Model, weight):
    from gpuforest.compiler.families import all_kernels

    def loaded() -> int:
        return sum(len(kernel.loaded) for kernel in all_kernels())

    # of weight zero subtrees are grown whole, else level by level
    monkeypatch.setitem(LIMITS, "min_weight_fraction_leaf", (weight, np.float32))
    python, numpy = both(Model, backend)
    expected = python.fit(X, Y).predict(X)
    before = loaded()
    assert np.array_equal(numpy.fit(X, Y).predict(X), expected)
    assert loaded() == before
    assert same_forest(python.forest_, numpy.forest_)
    assert estimate_memory(python, 1000, 4) == estimate_memory(numpy, 1000, 4)


def test_a_long_double_is_rounded():
    tree = DecisionTreeRegressor(min_weight_fraction_leaf=np.longdouble(0.1))
    assert type(tree._settings().min_weight_fraction_leaf) is float
