"""Pictures of survival: the curves are those of the rows, and of the forest."""

import numpy as np
import pytest
from drawn import check_readable
from matplotlib import pyplot

from gpuforest import RandomForestRegressor, RandomSurvivalForest
from gpuforest.plot import plot_oob, plot_survival
from gpuforest.tools.plot.survival import kaplan_meier

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TIME, ENDS = RNG.exponential(np.exp(-2 * X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= ENDS, np.round(np.minimum(TIME, ENDS), 1)], names="event,time")
TOWN = np.where(X[:, 1] > 0, "$ east", "west $")


@pytest.fixture(scope="module")
def forest():
    return RandomSurvivalForest(10, random_state=0, backend="numpy").fit(X, Y)


def test_kaplan_meier_by_its_definition():
    times, survival = kaplan_meier(Y["event"], Y["time"])
    value, known = 1.0, dict(zip(times, survival, strict=True))
    assert sorted(known) == sorted({*Y["time"]})
    for t in sorted(known):
        died = (Y["event"] & (Y["time"] == t)).sum()
        value *= 1 - died / (Y["time"] >= t).sum()
        assert known[t] == pytest.approx(value)


def test_groups_of_risk_and_of_labels(forest):
    said = forest.predict_survival_function(X, True)
    order = np.split(np.argsort(forest.predict(X), kind="stable"), 3)
    thirds = {"lowest risk": order[0], "risk 2 of 3": order[1], "highest risk": order[2]}
    towns = {label: np.flatnonzero(label == TOWN) for label in ("$ east", "west $")}
    for groups, rows_of in ((3, thirds), (TOWN, towns)):
        ax = plot_survival(forest, X, Y, groups)
        lines, (seen, meant) = ax.lines[:-2], ax.lines[-2:]
        assert (seen.get_linestyle(), meant.get_linestyle()) == ("-", "--")
        assert len(lines) == 3 * len(rows_of)
        for i, (name, rows) in enumerate(rows_of.items()):
            own, marks, mean = lines[3 * i : 3 * i + 3]
            assert own.get_label().replace(r"\$", "$") == f"{name}: {len(rows)} rows"
            assert own.get_drawstyle() == mean.get_drawstyle() == "steps-post"
            times, survival = kaplan_meier(Y["event"][rows], Y["time"][rows])
            assert own.get_xydata()[0].tolist() == [0, 1]
            assert np.array_equal(own.get_xydata()[1:], np.stack([times, survival], axis=1))
            left = Y["time"][rows][~Y["event"][rows]]
            assert set(marks.get_xdata()) == {*left}
            assert np.array_equal(mean.get_xdata(), [0, *forest.unique_times_])
            assert np.allclose(mean.get_ydata(), [1, *said[rows].mean(axis=0)])
        check_readable(plot_survival(forest, X, Y, groups))


def test_groups_of_risk_by_all_causes():
    cause = np.where(Y["event"], 1 + (X[:, 2] > 0), 0)
    y = np.rec.fromarrays([cause, Y["time"]], names="cause,time")
    forest = RandomSurvivalForest(10, random_state=0, backend="numpy").fit(X, y)
    risk = forest.predict(X)
    assert risk.shape == (N, 2)
    most = np.argsort(risk.sum(axis=1), kind="stable")[N // 2 :]
    drawn = plot_survival(forest, X, y, 2).lines[3].get_ydata()[1:]
    assert np.array_equal(drawn, kaplan_meier(cause[most] > 0, Y["time"][most])[1])


def test_the_error_out_of_bag_is_that_of_the_order():
    forest = RandomSurvivalForest(40, oob_score=True, random_state=0, backend="numpy").fit(X, Y)
    ax = plot_oob(forest)
    assert ax.get_ylabel() == "out-of-bag error: 1 - concordance"
    assert ax.lines[0].get_ydata()[-1] == 1 - forest.oob_score_


def test_one_group(forest):
    given = pyplot.subplots()[1]
    assert plot_survival(forest, X, Y, 1, ax=given) is given
    texts = [text.get_text() for text in given.get_legend().get_texts()]
    assert texts == ["all: 60 rows", "rows (Kaplan-Meier)", "the forest's mean"]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (0, "groups=0: pass a number from 1 to 10, or labels of rows"),
        (11, "groups=11: pass a number from 1 to 10"),
        ("town", "groups='town': pass a number"),
        (TOWN[1:], r"X has 60 rows, groups has the shape \(59,\)"),
        (np.arange(N), "groups has 60 labels: pass at most 10"),
    ],
)
def test_groups_that_are_refused(forest, groups, message):
    with pytest.raises(ValueError, match=message):
        plot_survival(forest, X, Y, groups)


def test_what_else_is_refused(forest):
    other = RandomForestRegressor(2, backend="numpy").fit(X, TIME)
    with pytest.raises(TypeError, match="a RandomForestRegressor has no curves: pass a survival"):
        plot_survival(other, X, Y)
    with pytest.raises(ValueError, match="X has 60 rows, y has 59"):
        plot_survival(forest, X, Y[1:])
    with pytest.raises(ValueError, match="groups=3: pass a number from 1 to 2"):
        plot_survival(forest, X[:2], Y[:2])
