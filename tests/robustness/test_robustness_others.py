"""Bad input of quantiles, anomalies, proximities, selection and SHAP values: rows of
docs/robustness.md."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from robust import KINDS, PAGE, X, Y, assert_refused, both_kinds, fitted, refused
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.linear_model import LogisticRegression

import gpuforest as gf


def forest(backend, kind=gf.RandomForestClassifier, n=20, **params):
    return kind(n, random_state=0, backend=backend, **params).fit(X, Y)


def selector(backend, **params):
    few = gf.RandomForestClassifier(10, max_depth=3, backend=backend)
    return gf.BorutaSelector(few, random_state=0, **params)


def test_anomalies_among_equal_rows(backend):
    for rows in (np.ones((80, 2)), np.full((80, 2), np.nan)):
        model = gf.IsolationForest(n_estimators=5, random_state=0, backend=backend).fit(rows)
        assert (model.score_samples(rows) == -0.5).all()
        assert (model.predict(rows) == 1).all()


def test_numbers_of_neighbours(backend):
    model = forest(backend, n=3)
    near, rows = model.neighbours(X[:3], 9)
    assert near.shape == rows.shape == (3, 9)
    assert (rows[:, 2:] == -1).all()  # there are two others
    assert (near[:, 2:] == 0).all()


def test_selection_where_nothing_varies(backend):
    rows = np.column_stack([X[:, 0], np.ones(80), np.full(80, np.nan)])
    found = selector(backend).fit(rows, X[:, 0] > 25)
    assert (found.ranking_ > 2).tolist() == [False, True, True]
    assert found.support_[0]
    found = selector(backend).fit(X, np.zeros(80))
    assert (found.ranking_ > 2).all()


def isolation(**params):
    return gf.IsolationForest(backend="numpy", **params).fit(X)


QUANTILES = forest("numpy", gf.RandomForestQuantileRegressor, 3)
NUMBERS = forest("numpy", gf.RandomForestRegressor, oob_score=True)
CLASSES = forest("numpy", oob_score=True)
PLAIN = forest("numpy", gf.RandomForestRegressor)
WHOLE = gf.RandomForestClassifier(3, bootstrap=False, backend="numpy").fit(X, Y)
RANGE = "Quantiles must be in the range [0, 1], got 1.5."
COVERAGE = "coverage=1.5 must be a number between 0 and 1"
OTHERS = "X has {} rows, but the forest was fitted to 80: pass the data that it was fitted to"
VALUES = "y has other values than in training: pass what the forest was fitted to"
REFUSED = [
    (RANGE, lambda: QUANTILES.predict(X, [0.5, 1.5])),
    (RANGE, lambda: forest("numpy", gf.RandomForestQuantileRegressor, default_quantiles=[1.5])),
    ("no quantiles are asked for: give a number from 0 to 1, or some",
     lambda: QUANTILES.predict(X, [])),
    (COVERAGE, lambda: NUMBERS.predict_interval(X, 1.5)),
    (COVERAGE, lambda: CLASSES.predict_set(X, 1.5)),
    ("predict_interval is calibrated on out-of-bag predictions: fit with oob_score=True",
     lambda: PLAIN.predict_interval(X)),
    ("The 'contamination' parameter of IsolationForest must be a str among {'auto'} or a float "
     "in the range (0.0, 0.5]. Got 0.6 instead.", lambda: isolation(contamination=0.6)),
    ("max_features=9 must be <= n_features=5", lambda: isolation(max_features=9)),
    (OTHERS.format(5), lambda: CLASSES.proximity(X[:5], oob=True)),
    ("k=0 neighbours are none: pass 1 or more", lambda: CLASSES.neighbours(X, 0)),
    ("y has 3 rows, but the proximities have 80: pass the same",
     lambda: gf.proximity_outliers(CLASSES.proximity(X), Y[:3])),
    (OTHERS.format(79), lambda: gf.oob_impurity_importance(PLAIN, X[1:], Y[1:])),
    (OTHERS.format(79), lambda: gf.oob_permutation_importance(PLAIN, X[1:], Y[1:])),
    (VALUES, lambda: gf.oob_impurity_importance(PLAIN, X, Y + 100)),
    (VALUES, lambda: gf.oob_permutation_importance(PLAIN, X, Y + 100)),
    ("The 'alpha' parameter of BorutaSelector must be a float in the range (0.0, 1.0). Got 1.0 "
     "instead.", lambda: selector("numpy", alpha=1.0).fit(X, Y)),
    ("importance='oob_impurity' needs rows out of bag: set bootstrap=True of the estimator, or "
     "importance='impurity'", lambda: gf.BorutaSelector(WHOLE).fit(X, Y)),
    ("Found array with 1 sample(s) (shape=(1, 5)) while a minimum of 2 is required by "
     "BorutaSelector.", lambda: selector("numpy").fit(X[:1], Y[:1])),
    ("BorutaSelector takes a RandomForest*, ExtraTrees* or Bagging* of gpuforest as estimator, "
     "not a RandomForestClassifier of sklearn", lambda: gf.BorutaSelector(TheirForest()).fit(X, Y)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "ask"), REFUSED, ids=range(len(REFUSED)))
def test_refused_others(message, ask):
    """With just these words, which the page has too."""
    with pytest.raises((ValueError, TypeError)) as caught:
        ask()
    assert str(caught.value) == message
    assert message in PAGE


def test_other_values_out_of_range():
    for wrong in (-0.1, np.nan, True):
        with pytest.raises(ValueError, match=f"Quantiles must be in the range .*got {wrong}"):
            QUANTILES.predict(X, wrong)
    for wrong in (0, 1, -1, np.nan, True, "a"):
        with pytest.raises(ValueError, match=f"coverage={wrong!r} must be a number between"):
            NUMBERS.predict_interval(X, wrong)


def adds_up(model, rows, background=None):
    """Whether the values of rows add up to their predictions, and are finite."""
    values = model.shap_values(rows, background=background)
    mean = model.expected_value_ if background is None else model.expected_value(background)
    known = getattr(model, "predict_proba", model.predict)(rows)
    return np.abs(values.sum(axis=1) + mean - known).max() < 1e-12


@both_kinds
def test_backgrounds_that_are_unusual(backend, kind):
    model = fitted(kind, backend, X)
    holes = np.full((2, 5), np.nan)
    for background in (X[:1], holes, np.vstack([X[:3], holes]), np.repeat(X[:1], 70, axis=0)):
        assert adds_up(model, X[:20], background)
    assert not model.shap_values(X[:1], background=X[:1]).any()


@both_kinds
def test_categories_that_training_did_not_see(backend, kind):
    kinds = np.array(list("abcd"))
    table = pd.DataFrame({"kind": kinds[X[:, 0].astype(int) % 4], "x": X[:, 1]})
    model = fitted(kind, backend, table, min_category_frequency=1)
    other = table[:9].assign(kind=["a", "new", None] * 3)
    assert adds_up(model, other)
    assert adds_up(model, table[:9], other)
    assert adds_up(model, other, table[:9])


@both_kinds
def test_missing_and_constant_columns(backend, kind):
    rows = X.copy()
    rows[:, 1], rows[:, 2] = np.nan, 7.0
    model = fitted(kind, backend, rows)
    assert adds_up(model, rows)
    assert not model.shap_values(rows)[:, 1:3].any()
    assert not model.shap_values(rows, background=rows[:5])[:, 1:3].any()


def test_pictures_of_odd_rows(backend):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib import pyplot

    from gpuforest import plot

    model = fitted(gf.RandomForestRegressor, backend, X)
    for rows in (X[:1], np.full((3, 5), np.nan), np.repeat(X[:1], 9, axis=0)):
        for draw in (plot.plot_shap_summary, plot.plot_shap_bar, plot.plot_shap_waterfall):
            draw(model, rows).figure.canvas.draw()
        plot.plot_shap_dependence(model, rows, 0).figure.canvas.draw()
        plot.plot_shap_dependence(model, rows, 0, color_by=1).figure.canvas.draw()
        assert len(pyplot.get_fignums()) == 5
        pyplot.close("all")


def questions(model, rows, background):
    """What is asked of a model about rows, alone and beside a background."""
    return [
        partial(model.shap_values, rows),
        partial(model.shap_interaction_values, rows),
        partial(model.shap_values, X, background=background),
        partial(model.expected_value, background),
    ]


@both_kinds
def test_rows_and_backgrounds_that_are_refused(backend, kind):
    model, infinite = fitted(kind, backend, X), X.copy()
    infinite[17, 1] = np.inf
    for rows, message in (
        (X[:0], "Found array with 0 sample(s) (shape=(0, 5)) while a minimum of 1 is required by "
         "{}."),
        (X[:, :4], "X has 4 features, but {} is expecting 5 features as input."),
        (infinite, "Input X contains infinity: column 1, row 17; NaN means missing, infinities "
         "must be replaced"),
    ):  # fmt: skip
        for i, ask in enumerate(questions(model, rows, rows)):
            assert_refused(kind, "background: " * (i > 1) + message, ask)


def test_models_without_shap_values(backend):
    oblique = gf.DecisionTreeRegressor(feature_combinations=2, random_state=0, backend="numpy")
    medians = gf.AdaBoostRegressor(n_estimators=2, random_state=0)
    others = gf.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X / 50, Y)
    leaves = gf.RandomTreesEmbedding(2, random_state=0, backend=backend).fit(X)
    for model, error, words in (
        (oblique.fit(X, Y), ValueError, "SHAP values are not defined for splits by combinations"),
        (medians.fit(X, Y), ValueError, "the prediction is a median of trees, to which no SHAP"),
        (others, TypeError, "this BaggingClassifier holds other estimators than gpuforest's trees"),
        (leaves, TypeError, "a RandomTreesEmbedding predicts nothing, so there is nothing to"),
    ):
        for ask in questions(model, X, X[:3]):
            with refused(words, error):
                ask()
        assert not hasattr(model, "expected_value_")


def test_pictures_that_are_refused(backend):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from gpuforest import plot

    classes, numbers = (fitted(kind, backend, X) for kind in KINDS)
    none = "output={} is none of the 3 outputs: choose one of 0, 1, 2"
    for draw, model, params, words in (
        (plot.plot_shap_bar, classes, {}, none.format(None)),
        (plot.plot_shap_summary, classes, {"output": "a"}, none.format("'a'")),
        (plot.plot_shap_bar, numbers, {"output": 1},
         "output=1: the prediction is one number, so leave it out"),
        (plot.plot_shap_waterfall, numbers, {"row": 80}, "row=80: X has the rows 0 to 79"),
        (plot.plot_shap_dependence, numbers, {"feature": "age"},
         "no feature 'age': choose one of feature_0, feature_1"),
        (plot.plot_shap_bar, numbers, {"values": np.zeros((3, 5))},
         "values has the shape (3, 5): pass shap_values(X) of the same X"),
    ):  # fmt: skip
        with refused(words):
            draw(model, X, **params)
