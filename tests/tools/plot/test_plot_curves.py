"""Pictures of losses, survival and effects: what is drawn is that of the fit and of the rows that
are passed."""

import numpy as np
import pytest
from drawn import check_readable
from matplotlib import pyplot
from scipy.stats import CensoredData, ecdf
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

import gpuforest as gf
from gpuforest import RandomSurvivalForest
from gpuforest.explain import effects
from gpuforest.plot import plot_effect_calibration, plot_effects, plot_loss, plot_survival
from gpuforest.tools.plot.survival import kaplan_meier

IRIS, CANCER, DIABETES = (
    train_test_split(*load(return_X_y=True), random_state=0)
    for load in (load_iris, load_breast_cancer, load_diabetes)
)
STOPS = {"max_iter": 40, "early_stopping": True, "random_state": 0}


def curves(ax):
    return {line.get_label(): line for line in ax.lines}


@pytest.mark.parametrize("data", [IRIS, DIABETES], ids=["classes", "numbers"])
def test_the_losses_of_a_fit(tmp_path, data):
    X, _, y, _ = data
    kind = gf.HistGradientBoostingClassifier if data is IRIS else gf.HistGradientBoostingRegressor
    model = kind(**STOPS).fit(X, y)
    model.save(tmp_path / "model")
    for shown in (model, gf.load(tmp_path / "model")):
        ax = plot_loss(shown)
        training, validation, best = ax.lines
        for line, scores in ((training, model.train_score_), (validation, model.validation_score_)):
            assert line.get_xdata().tolist() == [*range(model.n_iter_ + 1)]
            assert line.get_ydata().tolist() == (-scores).tolist()
        at = int(model.validation_score_.argmax())
        assert (*best.get_xdata(), *best.get_ydata()) == (at, -model.validation_score_[at])
        assert best.get_label().startswith(f"best: round {at}, ")
        assert ax.get_ylabel() == f"loss: {model.loss}"
        check_readable(plot_loss(shown))


def judge(estimator, X, y):
    return (estimator.predict(X) == y).mean()


def test_scores_are_drawn_as_they_are():
    X, X_test, y, y_test = CANCER
    for scoring, word in (("roc_auc", "roc_auc"), (None, "accuracy"), (judge, "judge")):
        model = gf.HistGradientBoostingClassifier(scoring=scoring, **STOPS).fit(X, y)
        ax = plot_loss(model, X_test, y_test)
        assert ax.get_ylabel() == f"score: {word}"
        lines = curves(ax)
        assert lines["validation"].get_ydata().tolist() == model.validation_score_.tolist()
        last = lines["rows passed"].get_ydata()[-1]
        if scoring != "roc_auc":
            assert last == accuracy_score(y_test, model.predict(X_test))
        assert ax.lines[-1].get_ydata()[0] == lines["rows passed"].get_ydata().max()
    model.set_params(scoring="loss").scored_by_ = "judge"  # as it is read from a file
    assert plot_loss(model).get_ylabel() == "score: judge"
    with pytest.raises(ValueError, match=r"those of judge: call set_params\(scoring=judge\)"):
        plot_loss(model, X_test, y_test)


@pytest.mark.parametrize("data", [IRIS, CANCER], ids=["three", "two"])
def test_the_loss_of_rows_that_are_passed(data):
    X, X_test, y, y_test = data
    names = np.array(["a", "b", "c"])
    model = gf.HistGradientBoostingClassifier(max_iter=15).fit(X, names[y])
    with pytest.raises(
        ValueError, match="kept no losses: fit it with early_stopping=True, or pass"
    ):
        plot_loss(model)
    ax = plot_loss(model, X_test, names[y_test])
    found = curves(ax)["rows passed"].get_ydata()
    expected = [log_loss(y_test, p) for p in model.staged_predict_proba(X_test)]
    np.testing.assert_allclose(found[1:], expected, rtol=1e-9)
    shares = np.tile(np.bincount(y) / len(y), (len(y_test), 1))
    assert found[0] == pytest.approx(log_loss(y_test, shares))
    check_readable(ax)


def test_the_loss_of_training_rows_is_that_of_the_fit():
    X, _, y, _ = DIABETES
    model = gf.HistGradientBoostingRegressor("huber", validation_fraction=None, **STOPS).fit(X, y)
    ax = plot_loss(model, X, y)
    lines = curves(ax)
    assert lines["rows passed"].get_ydata().tolist() == lines["training"].get_ydata().tolist()
    # the last of the training rows is the best, as a rule: it is not marked
    assert [line.get_label() for line in plot_loss(model).lines] == ["training"]


def test_the_errors_of_adaboost():
    for kind, (X, X_test, y, y_test), word in (
        (gf.AdaBoostClassifier, CANCER, "share of wrong rows"),
        (gf.AdaBoostRegressor, DIABETES, "1 - R²"),
    ):
        model = kind(n_estimators=10, random_state=0).fit(X, y)
        ax = plot_loss(model, X_test, y_test)
        line, best = ax.lines
        errors = [1 - score for score in model.staged_score(X_test, y_test)]
        assert line.get_xdata().tolist() == [*range(1, len(errors) + 1)]
        assert line.get_ydata().tolist() == errors
        assert best.get_xdata()[0] == 1 + np.argmin(errors)
        assert ax.get_ylabel() == word
        with pytest.raises(ValueError, match=f"an {kind.__name__} keeps no losses: pass rows"):
            plot_loss(model)


def test_what_is_refused():
    X, X_test, y, y_test = IRIS
    model = gf.HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    other = gf.RandomForestClassifier(2).fit(X, y)
    for shown, given, message in (
        (other, {}, "a RandomForestClassifier has no rounds of boosting"),
        (gf.HistGradientBoostingClassifier(), {}, "not fitted"),
        (model, {"X": X}, "y is missing: pass both X and y"),
        (model, {"y": y}, "X is missing: pass both X and y"),
        (model, {"X": X_test, "y": y_test + 1}, "y has a class that the estimator does not know"),
        (model, {"X": X_test, "y": y_test[1:]}, "y has 37 targets, X 38 rows"),
    ):
        with pytest.raises(TypeError if shown is other else ValueError, match=message):
            plot_loss(shown, **given)


N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TIME, ENDS = RNG.exponential(np.exp(-2 * X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= ENDS, np.round(np.minimum(TIME, ENDS), 1)], names="event,time")
TOWN = np.where(X[:, 1] > 0, "$ east", "west $")


@pytest.fixture(scope="module")
def forest():
    return RandomSurvivalForest(10, random_state=0, backend="numpy").fit(X, Y)


def test_kaplan_meier_is_that_of_scipy():
    times, survival = kaplan_meier(Y["event"], Y["time"])
    expected = ecdf(CensoredData.right_censored(Y["time"], ~Y["event"])).sf
    assert times.tolist() == expected.quantiles.tolist()
    assert survival == pytest.approx(expected.probabilities)


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


def test_one_group(forest):
    given = pyplot.subplots()[1]
    assert plot_survival(forest, X, Y, 1, ax=given) is given
    texts = [text.get_text() for text in given.get_legend().get_texts()]
    assert texts == ["all: 60 rows", "rows (Kaplan-Meier)", "the forest's mean"]


@pytest.mark.parametrize(("rows", "y", "groups", "message"), [
    (X, Y, 0, "groups=0: pass a number from 1 to 10, or labels of rows"),
    (X, Y, 11, "groups=11: pass a number from 1 to 10"),
    (X, Y, "town", "groups='town': pass a number"),
    (X, Y, TOWN[1:], r"X has 60 rows, groups has the shape \(59,\)"),
    (X, Y, np.arange(N), "groups has 60 labels: pass at most 10"),
    (X, Y[1:], 3, "X has 60 rows, y has 59"),
    (X[:2], Y[:2], 3, "groups=3: pass a number from 1 to 2"),
])  # fmt: skip
def test_survival_that_is_refused(forest, rows, y, groups, message):
    with pytest.raises(ValueError, match=message):
        plot_survival(forest, rows, y, groups)
    other = gf.RandomForestRegressor(2, backend="numpy").fit(X, TIME)
    with pytest.raises(TypeError, match="a RandomForestRegressor has no curves: pass a survival"):
        plot_survival(other, X, Y)


TREATED, WEIGHTS = np.arange(N) % 2, np.repeat([0.0, 1.0, 2.0], N // 3)


@pytest.fixture(scope="module")
def causal():
    coin = {"model_y": 0.5, "model_t": 0.5, "random_state": 0, "backend": "numpy"}
    cost = 2 * TREATED * (X[:, 0] > 0) + X[:, 1]
    return gf.CausalForest(40, **coin).fit(X, cost, TREATED, sample_weight=WEIGHTS)


def test_effects_and_their_intervals_by_a_feature(causal, tmp_path):
    causal.save(tmp_path / "model")
    for shown in (causal, gf.load(tmp_path / "model")):
        ax = plot_effects(shown, X)
        _, points, average = ax.lines
        assert np.array_equal(points.get_xdata(), X[:, causal.feature_importances_.argmax()])
        assert np.array_equal(points.get_ydata(), causal.effect(X))
        ends = np.array([line[:, 1] for line in ax.collections[0].get_segments()]).T
        assert np.array_equal(ends, causal.effect_interval(X))
        assert set(average.get_ydata()) == {causal.ate().estimate}
        check_readable(ax)


def test_groups_of_rows_of_some_weight(causal):
    given = pyplot.subplots()[1]
    assert plot_effect_calibration(causal, 4, ax=given) is given
    rows, weights = causal._rows_.values[WEIGHTS > 0], WEIGHTS[WEIGHTS > 0]
    parts = np.split(np.argsort(effects.EffectRows(rows).effect, kind="stable"), 4)
    for part, x, y in zip(parts, *given.lines[1].get_data(), strict=True):
        some = effects.EffectRows(rows[part])
        assert x == pytest.approx(np.average(some.effect, weights=weights[part]))
        assert y == pytest.approx(np.average(effects.scores(some), weights=weights[part]))
    check_readable(plot_effect_calibration(causal))


def test_effects_that_are_refused(causal, forest):
    for n in (0, 21, 2.5):
        with pytest.raises(ValueError, match=f"n_groups={n}: pass a number from 1 to 20"):
            plot_effect_calibration(causal, n)
    with pytest.raises(ValueError, match="no feature 3"):
        plot_effects(causal, X, 3)
    with pytest.raises(TypeError, match="a RandomSurvivalForest has no effects: pass a Causal"):
        plot_effects(forest, X)
