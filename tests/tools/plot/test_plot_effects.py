"""Pictures of effects: points are what the forest says, and groups what their scores say."""

import numpy as np
import pandas as pd
import pytest
from drawn import check_readable
from matplotlib import pyplot

import gpuforest as gf
from gpuforest.explain import effects
from gpuforest.plot import plot_effect_calibration, plot_effects

N = 120
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["age", "$ dose"])
X["town"] = RNG.choice(["west", "east"], N)
TREATED, WEIGHTS = np.arange(N) % 2, np.repeat([0.0, 1.0, 2.0], N // 3)
Y = 2 * TREATED * (X["age"] > 0) + RNG.normal(size=N)


@pytest.fixture(scope="module")
def forest():
    coin = {"model_y": 0.5, "model_t": 0.5, "random_state": 0, "backend": "numpy"}
    return gf.CausalForest(40, **coin).fit(X, Y, TREATED, sample_weight=WEIGHTS)


def test_effects_and_their_intervals_by_a_feature(forest, tmp_path):
    forest.save(tmp_path / "model")
    rows = X[:30]
    for shown in (forest, gf.load(tmp_path / "model")):
        ax = plot_effects(shown, rows)
        _, points, average = ax.lines
        assert np.array_equal(points.get_xdata(), rows["age"])  # of most importance
        assert np.array_equal(points.get_ydata(), forest.effect(rows))
        ends = np.array([line[:, 1] for line in ax.collections[0].get_segments()]).T
        assert np.array_equal(ends, forest.effect_interval(rows))
        assert set(average.get_ydata()) == {forest.ate().estimate}
        check_readable(ax)
    ax = plot_effects(forest, rows, "town")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["east", "west"]
    assert np.array_equal(ax.lines[1].get_xdata() > 0.5, rows["town"] == "west")


def test_groups_of_rows_of_some_weight(forest):
    given = pyplot.subplots()[1]
    assert plot_effect_calibration(forest, 4, ax=given) is given
    rows, weights = forest._rows_.values[WEIGHTS > 0], WEIGHTS[WEIGHTS > 0]
    parts = np.split(np.argsort(effects.EffectRows(rows).effect, kind="stable"), 4)
    for part, x, y in zip(parts, *given.lines[1].get_data(), strict=True):
        some = effects.EffectRows(rows[part])
        assert x == pytest.approx(np.average(some.effect, weights=weights[part]))
        assert y == pytest.approx(np.average(effects.scores(some), weights=weights[part]))
    check_readable(plot_effect_calibration(forest))


def test_what_is_refused(forest):
    for n in (0, 41, 2.5):
        with pytest.raises(ValueError, match=f"n_groups={n}: pass a number from 1 to 40"):
            plot_effect_calibration(forest, n)
    with pytest.raises(ValueError, match="no feature 'agee': did you mean 'age'"):
        plot_effects(forest, X, "agee")
    other = gf.RandomForestRegressor(2, backend="numpy").fit(X[["age"]], Y)
    with pytest.raises(TypeError, match="a RandomForestRegressor has no effects: pass a Causal"):
        plot_effects(other, X[["age"]])
    with pytest.raises(ValueError, match="use effect, plot_effects and feature"):
        forest.report(X)
