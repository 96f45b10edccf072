"""Partial dependence of forests, drawn by scikit-learn."""

import numpy as np
import pytest
from drawn import check_readable, close_figures  # noqa: F401
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay

from gpuforest import RandomForestRegressor

DIABETES = load_diabetes()


@pytest.fixture(scope="module")
def numbers():
    return RandomForestRegressor(10, random_state=0).fit(DIABETES.data, DIABETES.target)


def test_partial_dependence_is_drawn_by_recursion(numbers):
    drawn = [
        PartialDependenceDisplay.from_estimator(
            model, DIABETES.data, [2, (2, 8)], method="recursion", grid_resolution=8
        )
        for model in (numbers, numbers.to_sklearn())
    ]
    for own, theirs in zip(*(display.pd_results for display in drawn), strict=True):
        assert np.array_equal(own["average"], theirs["average"])


def test_curves_of_single_rows_are_drawn(numbers):
    display = PartialDependenceDisplay.from_estimator(
        numbers, DIABETES.data, [2], kind="both", subsample=30, random_state=0, grid_resolution=8
    )
    assert len(display.lines_.ravel()) == 31
    check_readable(display.axes_.ravel()[0])
