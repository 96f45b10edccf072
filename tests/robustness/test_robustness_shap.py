"""Unusual input of SHAP values and of their pictures: rows of docs/robustness.md."""

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from robust import KINDS, PAGE, X, Y, assert_refused, both_kinds, fitted
from sklearn.linear_model import LogisticRegression

import gpuforest as gf


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


def refused(error, words):
    assert words in PAGE
    return pytest.raises(error, match=re.escape(words))


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
            with refused(error, words):
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
        with refused(ValueError, words):
            draw(model, X, **params)
