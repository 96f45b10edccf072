"""The criteria "absolute_error" and "friedman_mse", against scikit-learn's."""

import pytest
from sklearn.base import clone

import gpuforest

REGRESSORS = [
    gpuforest.DecisionTreeRegressor,
    gpuforest.RandomForestRegressor,
    gpuforest.ExtraTreesRegressor,
]


@pytest.mark.parametrize("kind", REGRESSORS)
def test_friedman_mse_warns_and_means_squared_error(kind):
    with pytest.warns(FutureWarning, match=r'"friedman_mse".*"squared_error"') as caught:
        model = kind(criterion="friedman_mse")
    assert caught[0].filename == __file__
    assert model.criterion == "squared_error"
    assert clone(model).criterion == "squared_error"  # without a second warning


def test_friedman_mse_is_for_numbers():
    with pytest.raises(ValueError, match="criterion"):
        gpuforest.DecisionTreeClassifier(criterion="friedman_mse").fit([[0], [1]], [0, 1])
