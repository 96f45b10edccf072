"""Pictures of boosted models, where they differ from those of forests."""

import numpy as np
import pytest
from drawn import check_readable
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch

from gpuforest import HistGradientBoostingRegressor, IsolationForest
from gpuforest.plot import plot_boundaries, plot_importances, plot_steps

DIABETES = load_diabetes()


@pytest.fixture(scope="module")
def numbers():
    return HistGradientBoostingRegressor("poisson", max_iter=10).fit(DIABETES.data, DIABETES.target)


def test_boundaries_of_counts_are_means_and_no_logarithms(numbers):
    shades = plot_boundaries(numbers, DIABETES.data, DIABETES.target, (2, 8)).collections[0]
    assert shades.get_array().min() > 0


@pytest.mark.parametrize("n_trees", [0, 1, 3])
def test_steps_are_the_predictions_after_rounds(n_trees):
    x, y = DIABETES.data[:, [2]], DIABETES.target
    model = HistGradientBoostingRegressor(max_iter=10).fit(x, y)
    ax = plot_steps(model, x, y, n_trees=n_trees)
    _, *stages, line = ax.lines
    ends = line.get_xdata()
    inside = ((ends[:-1] + ends[1:]) / 2)[:, None]
    assert line.get_ydata()[:-1].tolist() == model.predict(inside).tolist()
    assert line.get_label() == "10 rounds"
    expected = [found.tolist() for found in model.staged_predict(inside)]
    assert [stage.get_ydata()[:-1].tolist() for stage in stages] == expected[:n_trees]
    if n_trees:
        words = {1: "after its first round", 3: "after its first 3 rounds"}
        assert stages[0].get_label() == words[n_trees]
    check_readable(ax)


def test_importances(numbers):
    ax = plot_importances(numbers, top=4)
    gains = np.sort(numbers.feature_importances_)[::-1]
    assert [p.get_width() for p in ax.patches] == gains[:4].tolist()
    assert ax.get_xlabel() == "gain of splits, as a share of all"
    assert len(ax.containers) == 1  # there is no tree whose importances stand by themselves
    found = Bunch(importances_mean=np.ones(2), importances_std=np.ones(2))  # of scikit-learn
    assert plot_importances(found).get_xlabel().startswith("decrease of the score when permuted")
    with pytest.raises(ValueError, match="IsolationForest has no importances: its cuts are random"):
        plot_importances(IsolationForest(n_estimators=2, backend="numpy").fit(DIABETES.data))
