"""Impurity functions on the numbers of textbooks, and beside what trees compute."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris

from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor
from gpuforest.impurity import (
    entropy,
    gain_ratio,
    gini,
    gini_gain,
    information_gain,
    misclassification,
    squared_error,
)

# branches x (yes, no), Witten and Frank's weather data, which are Quinlan's of 1986
TENNIS = {
    "outlook": [[2, 3], [4, 0], [3, 2]], "temperature": [[2, 2], [4, 2], [3, 1]],
    "humidity": [[3, 4], [6, 1]], "windy": [[3, 3], [6, 2]],
}  # fmt: skip
GAINS = {"outlook": 0.247, "temperature": 0.029, "humidity": 0.152, "windy": 0.048}
RATIOS = {"outlook": 0.156, "temperature": 0.019, "humidity": 0.152, "windy": 0.049}


@pytest.mark.parametrize("p", [[1.0], [0.0, 1.0, 0.0]])
def test_a_pure_node_has_none(p):
    assert [f(p) for f in (gini, entropy, misclassification)] == [0, 0, 0]


@pytest.mark.parametrize("C", [2, 4, 8])
def test_equal_proportions_have_the_most(C):
    p = np.full(C, 1 / C)
    assert gini(p) == 1 - 1 / C
    assert entropy(p) == math.log2(C)
    assert misclassification(p) == 1 - 1 / C


def test_nodes_at_once():
    p = np.array([[[0.5, 0.5], [0.25, 0.75]]])
    for f in (gini, entropy, misclassification):
        assert f(p).tolist() == [[f(p[0, 0]), f(p[0, 1])]]
    assert squared_error([[1, 3], [2, 2]]).tolist() == [1, 0]


def test_base():
    assert entropy([0.5, 0.5], base=4) == 0.5
    assert entropy([0.5, 0.5], base=math.e) == math.log(2)


def test_two_splits_that_misclassification_does_not_tell_apart():
    """Breiman et al. 1984, 4.2.2: both miss 200 of 800, one has a pure branch."""
    even, pure = [[300, 100], [100, 300]], [[200, 400], [200, 0]]
    for counts in (even, pure):
        missed = sum(misclassification(np.array(n) / sum(n)) * sum(n) for n in counts)
        assert missed == pytest.approx(200, rel=1e-15)  # 400 / 600 is rounded
    assert gini_gain(even) == 0.125
    assert gini_gain(pure) == pytest.approx(1 / 6, abs=1e-15)  # of four roundings
    assert information_gain(pure) > information_gain(even)


@pytest.mark.parametrize("name", TENNIS)
def test_tennis(name):
    assert round(information_gain(TENNIS[name]), 3) == GAINS[name]
    assert round(gain_ratio(TENNIS[name]), 3) == RATIOS[name]
    assert round(entropy([9 / 14, 5 / 14]), 3) == 0.940


def test_a_number_of_its_own_for_each_row_gains_all_but_has_a_low_ratio():
    days = np.array([[1, 0]] * 9 + [[0, 1]] * 5)
    assert information_gain(days) == entropy([9 / 14, 5 / 14])
    assert round(gain_ratio(days), 3) == 0.247
    assert gini_gain(days) == gini([9 / 14, 5 / 14])


def test_an_empty_branch_changes_nothing():
    for f in (information_gain, gain_ratio, gini_gain):
        assert f([[2, 3], [0, 0], [4, 0]]) == f([[2, 3], [4, 0]])
        assert f([[2, 3], [0, 0]]) == 0


def test_splits_at_once():
    stacked = [TENNIS["humidity"], TENNIS["windy"]]
    for f in (information_gain, gain_ratio, gini_gain):
        assert f(stacked).tolist() == [f(counts) for counts in stacked]


@pytest.mark.parametrize(
    ("criterion", "impurity"),
    [("gini", gini), ("entropy", entropy), ("misclassification", misclassification)],
)
def test_trees_have_the_same_impurity(criterion, impurity):
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(criterion=criterion, max_depth=3).fit(X, y).tree_
    assert tree.impurity.tolist() == impurity(tree.value[:, 0]).tolist()


def test_a_regression_tree_has_the_same_impurity():
    y = [1.0, 2.0, 3.0, 6.0]
    root = DecisionTreeRegressor(max_depth=1).fit([[0], [0], [0], [0]], y).tree_
    assert root.impurity.tolist() == [squared_error(y)]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: gini([9, 5]), "add up to 1, but a sum is 14.0: divide counts by their sum"),
    (lambda: entropy([1.5, -0.5]), "0 or more, but the least is -0.5"),
    (lambda: misclassification([np.nan, 1.0]), "0 or more"),
    (lambda: gini(1.0), "one class at least"), (lambda: gini([]), "one class at least"),
    (lambda: entropy([0.5, 0.5], base=1), "base=1 must be positive"),
    (lambda: squared_error([]), "at least one number"),
    (lambda: information_gain([9, 5]), r"shape \(n_branches, n_classes\).*\(2,\)"),
    (lambda: gain_ratio([[1, -1]]), "finite and 0 or more"),
    (lambda: gini_gain([[0, 0], [0, 0]]), "at least one row"),
])  # fmt: skip
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
