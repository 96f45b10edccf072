"""Pictures of boosted models: those of forests, or an error that says why not."""

import runpy

import numpy as np
import pytest
from drawn import check_readable, close_figures  # noqa: F401
from paths import ROOT
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from gpuforest import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    oob_permutation_importance,
)
from gpuforest.plot import (
    plot_boundaries,
    plot_importances,
    plot_oob,
    plot_pruning,
    plot_steps,
)

IRIS, DIABETES = load_iris(), load_diabetes()
SPECIES = IRIS.target_names[IRIS.target]
PETALS = IRIS.data[:, 2:]


@pytest.fixture(scope="module")
def classes():
    return HistGradientBoostingClassifier(max_iter=10).fit(PETALS, SPECIES)


@pytest.fixture(scope="module")
def numbers():
    return HistGradientBoostingRegressor("poisson", max_iter=10).fit(DIABETES.data, DIABETES.target)


def test_boundaries(classes, numbers):
    ax = plot_boundaries(classes, PETALS, SPECIES)
    mesh = ax.collections[0]
    corners = mesh.get_coordinates()
    x, y = corners[0, :, 0], corners[:, 0, 1]
    middle = np.stack(np.meshgrid((x[1:] + x[:-1]) / 2, (y[1:] + y[:-1]) / 2), axis=-1)
    labels = classes.predict(middle.reshape(-1, 2)).reshape(middle.shape[:2])
    inside = np.argwhere(labels[:, 1:] != labels[:, :-1])
    upright = {(x[c + 1], y[r]) for r, c in inside}
    segments = ax.collections[1].get_segments()
    assert upright == {tuple(s[0]) for s in segments if s[0][0] == s[1][0]}
    check_readable(ax)
    shades = plot_boundaries(numbers, DIABETES.data, DIABETES.target, (2, 8)).collections[0]
    assert shades.get_array().min() > 0  # the mean of counts, not its logarithm


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
    found = permutation_importance(
        numbers, DIABETES.data, DIABETES.target, n_repeats=2, random_state=0
    )
    assert plot_importances(found).get_xlabel().startswith("decrease of the score when permuted")


def test_partial_dependence(numbers):
    def drawn(model, **how):
        shown = PartialDependenceDisplay.from_estimator(model, DIABETES.data, [2, 8], **how)
        return shown.lines_[0, 0]

    fast, theirs = drawn(numbers).get_ydata(), drawn(numbers.to_sklearn()).get_ydata()
    assert fast.tolist() == theirs.tolist()  # by recursion, as there
    line = drawn(numbers, method="brute")
    for value, mean in zip(*line.get_data(), strict=True):
        rows = DIABETES.data.copy()
        rows[:, 2] = value
        assert mean == pytest.approx(numbers.predict(rows).mean())


def test_what_forests_have_and_boosting_has_not(classes, numbers):
    with pytest.raises(ValueError, match="no oob_curve_: fit a forest with oob_score=True"):
        plot_oob(numbers)
    with pytest.raises(ValueError, match=r"no pruning_curve_: fit a DecisionTree\*"):
        plot_pruning(numbers)
    with pytest.raises(ValueError, match="steps are of predicted numbers"):
        plot_steps(classes, PETALS)
    with pytest.raises(TypeError, match="not a HistGradientBoostingRegressor"):
        oob_permutation_importance(numbers, DIABETES.data, DIABETES.target)


def test_the_picture_of_residuals_shows_what_the_page_says():
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["residuals"]().figure.axes
    fits, rests = drawn[:5], drawn[5:]
    assert [ax.get_title() for ax in fits] == [
        "1 round", "2 rounds", "5 rounds", "20 rounds", "100 rounds",
    ]  # fmt: skip
    squares = []
    for fit, rest in zip(fits, rests, strict=True):
        (data, curve), points = fit.lines, rest.lines[0]
        left = data.get_ydata() - curve.get_ydata()
        assert points.get_ydata().tolist() == left.tolist()
        assert points.get_xdata().tolist() == data.get_xdata().tolist()
        squares.append(f"{(left**2).mean():.3f}")
        assert rest.get_title() == f"mean square {squares[-1]}"
    page = (ROOT / "docs" / "boosting.md").read_text()
    assert f"[{', '.join(squares)}]" in page
    assert ", ".join(title.get_title().split()[0] for title in fits) in page
    check_readable(fits[0])
