"""Trees of boosting whose leaves have a value for each class, output or quantile."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from gpuforest import DecisionTreeRegressor
from gpuforest import HistGradientBoostingClassifier as Classifier
from gpuforest import HistGradientBoostingRegressor as Regressor
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.data.binned import FitInput
from gpuforest.estimators import boosting_fit
from gpuforest.kernels.boosted_tree import vector

rng = np.random.default_rng(0)
N = 600
X = np.column_stack([rng.normal(size=(N, 3)), rng.integers(0, 12, N)])
X[rng.random((N, 4)) < 0.05] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.sin(2 * np.nan_to_num(X[:, 1])) + (X[:, 3] % 3 == 0)
Y = np.stack([SIGNAL, -SIGNAL + rng.normal(size=N), rng.normal(size=N)], axis=1)
LABELS = np.digitize(SIGNAL + rng.normal(size=N) / 3, np.linspace(-1.5, 2, 8))
GIVEN = {"multi_strategy": "multi_output_tree", "max_iter": 4, "random_state": 0}
GIVEN |= {"early_stopping": False, "min_samples_leaf": 5}
NAMES = "nodes", "tree_offsets", "leaf_sums", "leaf_values", "sets", "baseline"


def same(a, b):
    return all(np.array_equal(getattr(a.forest_, n), getattr(b.forest_, n)) for n in NAMES)


def test_joint_stats_by_hand():
    """Three outputs of two rows, summed in two ways; counts take four bits."""
    stats = np.array([[[5, 1], [-2, 2]], [[1, 3], [1, 0]], [[7, 0], [0, 1]]])
    stats[:, :, 1] = (stats[:, :, 1] << 4) + 1
    joint, factors = np.empty((2, 3), np.int64), np.array([[1, -1, 0], [0, 1, 1]])
    vector.join(stats, factors, 4, joint)
    assert joint.tolist() == [[4, 8, (4 << 4) + 1], [-3, 1, (3 << 4) + 1]]


def test_factors_are_drawn_for_each_round():
    assert np.array_equal(vector.factors(0, 3, 4), np.eye(4))
    drawn = np.stack([vector.factors(7, number, 26) for number in range(200)])
    assert drawn.shape == (200, vector.MOST_SUMS, 26)
    shares = [(drawn == value).mean() for value in (-1, 0, 1)]
    assert np.allclose(shares, [0.25, 0.5, 0.25], atol=0.02)
    assert len(np.unique(drawn.reshape(200, -1), axis=0)) == 200


@pytest.mark.parametrize("y", [LABELS, Y], ids=["classes", "numbers"])
@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"subsample": 0.6, "max_features": 0.5, "l2_regularization": 1.0},
        {"categorical_features": [3], "max_leaf_nodes": None, "max_depth": 4},
    ],
    ids=["", "subsample", "categories"],
)
def test_all_backends_grow_the_same(y, rest):
    model = (Classifier if y is LABELS else Regressor)(**GIVEN, **rest)
    first = clone(model).set_params(backend="numpy").fit(X, y)
    for threads in (1, 3):
        second = clone(model).set_params(backend="numba", n_jobs=threads).fit(X, y)
        assert same(first, second)
    assert second.forest_.n_trees == second.n_iter_ == 4
    assert second.n_trees_per_iteration_ == 1


def test_one_round_of_squares_is_a_tree_of_several_outputs():
    X, y = load_digits(return_X_y=True)
    both = np.eye(10)[y][:, :5] + 0.1 * rng.normal(size=(len(y), 5))
    model = Regressor(
        multi_strategy="multi_output_tree", max_iter=1, learning_rate=1.0, max_leaf_nodes=None,
        min_samples_leaf=5, max_depth=5, min_hessian=0, early_stopping=False,
    ).fit(X, both)  # fmt: skip
    tree = DecisionTreeRegressor(max_depth=5, min_samples_leaf=5).fit(X, both)
    assert np.array_equal(model.forest_.leaf_sums[:, 0], tree.forest_.leaf_sums[:, 0])
    assert np.allclose(model.predict(X), tree.predict(X))


def test_one_output_takes_no_notice():
    y = LABELS > 3
    first = Classifier(**GIVEN).fit(X, y)
    assert same(first, Classifier(**GIVEN | {"multi_strategy": "one_output_per_tree"}).fit(X, y))


def test_quantiles_share_trees_and_do_not_cross():
    levels, y = [0.1, 0.5, 0.9], Y[:, 1]
    model = Regressor("quantile", quantile=levels, **GIVEN | {"max_iter": 60}).fit(X, y)
    found = model.predict(X)
    assert (np.diff(found) >= 0).all()
    assert np.allclose([(y <= q).mean() for q in found.T], levels, atol=0.05)


def test_leaf_values_are_newton_steps_of_all_outputs():
    model = Classifier(**GIVEN | {"max_iter": 1}).fit(X, LABELS)
    forest, K = model.forest_, len(model.classes_)
    units = forest.coding.units[0]
    g, h = forest.leaf_sums[:, 1 : K + 1] * units[0], forest.leaf_sums[:, K + 1 :] * units[1]
    assert np.allclose(forest.leaf_values, -0.1 * g / h)
    assert np.isclose(model.feature_importances_.sum(), 1)
    *_, last = model.staged_predict_proba(X)
    assert np.array_equal(last, model.predict_proba(X))


def test_monotonic_constraints_are_refused():
    with pytest.raises(ValueError, match="not supported"):
        Classifier(**GIVEN, monotonic_cst=[1, 0, 0, 0]).fit(X, LABELS)
    with pytest.raises(ValueError, match="multiple outputs"):
        Regressor(**GIVEN, monotonic_cst=[1, 0, 0, 0]).fit(X, Y)


def test_devices_leave_what_has_no_kernels_there_to_the_cpu():
    def lacking(kind, y, **params):
        class Device(NumpyBackend):
            name, on_host = "device", False

        return boosting_fit.on_host_alone(kind(**GIVEN | params), FitInput(X, y), Device())

    assert lacking(Classifier, LABELS > 3) == lacking(Regressor, SIGNAL) == []
    assert lacking(Classifier, LABELS) == ["trees for several classes"]
    for y in (Y, Y.tolist()):
        assert lacking(Regressor, y) == ["boosting of several outputs"]
    assert lacking(Regressor, SIGNAL, loss="quantile", quantile=[0.1, 0.9]) == ["loss of this kind"]
    assert lacking(Classifier, LABELS, multi_strategy="one_output_per_tree") == []
