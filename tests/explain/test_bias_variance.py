"""Bias and variance: worked by hand, the law that ties them to the error, what changes them."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpuforest as gf

X, Y = np.zeros((4, 1)), np.arange(4.0)  # which stubs do not look at


class Stub(BaseEstimator):
    """Predicts in round r the r-th of the lists it was given."""

    def __init__(self, script, rounds):
        self.script = script
        self.rounds = rounds

    def fit(self, X, y):
        self.predicted_ = self.script[len(self.rounds.seen)]
        self.rounds.seen.append((X, y))
        return self

    def predict(self, X):
        return np.array(self.predicted_)


class Numbers(RegressorMixin, Stub): ...


class Classes(ClassifierMixin, Stub): ...


class Rounds:
    """What every round was given, kept in one place by copies too."""

    def __init__(self):
        self.seen = []

    def __deepcopy__(self, memo):
        return self


def decompose(kind, script, y_test, y=Y):
    stub = kind(script, Rounds())
    return gf.bias_variance(stub, X, y, np.zeros((len(y_test), 1)), y_test, n_rounds=len(script))


def test_errors_by_hand():
    # row 0: predictions 1 and 3 for 2; row 1: 4 and 8 for 3
    found = decompose(Numbers, [[1, 4], [3, 8]], [2, 3])
    assert found.loss == "squared_error"
    assert found.main_prediction.tolist() == [2, 6]
    assert found.row_bias.tolist() == [0, 9]
    assert found.row_variance.tolist() == [1, 4]
    assert found.row_error.tolist() == [1, 13]
    assert (found.bias, found.variance, found.error) == (4.5, 2.5, 7)
    assert (found.unbiased_variance, found.biased_variance) == (2.5, 0)
    # row 0 is "a", three of four say so; row 1 is "b", one of four says so; row 2 always right
    script = [["a", "a", "b"], ["a", "a", "b"], ["a", "b", "b"], ["b", "a", "b"]]
    found = decompose(Classes, script, ["a", "b", "b"], ["a", "b", "a", "b"])
    assert found.loss == "zero_one"
    assert found.main_prediction.tolist() == ["a", "a", "b"]
    assert found.row_bias.tolist() == [0, 1, 0]
    assert found.row_variance.tolist() == [0.25, 0.25, 0]
    assert found.row_error.tolist() == [0.25, 0.75, 0]
    assert (found.bias, found.variance) == (1 / 3, 0.5 / 3)
    assert (found.unbiased_variance, found.biased_variance) == (0.25 / 3, 0.25 / 3)
    assert found.error == 1 / 3
    # the main prediction 0 is wrong; of the two that differ one is right: 4/8 of the variance
    found = decompose(Classes, [[0]] * 4 + [[1]] * 2 + [[2]] * 2, [2], [0, 1, 2, 0])
    assert found.row_variance.tolist() == [0.5]
    assert (found.bias, found.unbiased_variance, found.biased_variance) == (1, 0, 0.25)
    assert found.error == 0.75
    # of equally frequent classes the first
    assert decompose(Classes, [[2], [1]], [2], [0, 1, 2, 0]).main_prediction.tolist() == [1]


def test_each_round_has_a_bootstrap_sample():
    stub = Numbers([[0]] * 5, Rounds())
    rows = np.arange(4.0)
    gf.bias_variance(stub, rows[:, None], rows, [[0]], [0], n_rounds=5, random_state=0)
    assert all(len(y) == 4 and set(y) <= set(rows) for _, y in stub.rounds.seen)
    assert all(np.array_equal(X[:, 0], y) for X, y in stub.rounds.seen)
    assert any(len(set(y)) < 4 for _, y in stub.rounds.seen)


def test_the_seed_decides_all_and_a_fixed_one_draws_anew():
    data, y = load_iris(return_X_y=True)
    forest = gf.RandomForestClassifier(3, max_depth=2, random_state=None)
    a, b, c = (
        gf.bias_variance(forest, data, y, data, y, n_rounds=5, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert np.array_equal(a.row_error, b.row_error)
    assert not np.array_equal(a.row_error, c.row_error)
    assert forest.random_state is None
    assert not hasattr(forest, "forest_")
    data, y = np.repeat([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], 50, axis=0), np.repeat([0, 1, 1], 50)
    tree = gf.DecisionTreeClassifier(max_features=1, max_depth=1, random_state=0)
    model = make_pipeline(StandardScaler(), tree)
    assert gf.bias_variance(model, data, y, data, y, n_rounds=30, random_state=0).variance > 0


@pytest.mark.parametrize(("change", "message"), [
    ({"n_rounds": 1}, "n_rounds=1 must be at least 2"),
    ({"loss": "hinge"}, "loss='hinge' must be 'auto'"),
    ({"y": [0, 1]}, "inconsistent numbers of samples"),
    ({"y_test": [0, 1, 2]}, "inconsistent numbers of samples"),
    ({"y": np.zeros((4, 2))}, "1d array"),
    ({"y": list("abab")}, "choose loss='zero_one'"),
    ({"X": np.zeros((0, 1)), "y": []}, "at least one row"),
    ({"X_test": np.zeros((0, 1)), "y_test": []}, "at least one row"),
    ({"estimator": Numbers([[0], [0]], Rounds())}, "predicts 1 rows, but X_test has 4"),
])  # fmt: skip
def test_errors(change, message):
    given = {"estimator": gf.DecisionTreeRegressor(), "X": X, "y": Y, "X_test": X, "y_test": Y}
    with pytest.raises(ValueError, match=message):
        gf.bias_variance(**{**given, **change})
