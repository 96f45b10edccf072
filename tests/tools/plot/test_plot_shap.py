"""Pictures of SHAP values: what is drawn is what the model says, and all of it can be read."""

import numpy as np
import pandas as pd
import pytest
from drawn import check_readable

import gpuforest as gf
from gpuforest import plot
from gpuforest.tools.plot.shap import partner, shades, swarm

SMALL = {"n_estimators": 5, "random_state": 0, "backend": "numpy", "n_jobs": 1, "max_depth": 4}
LONG = "a rather long name of a feature in $ and in $ again"
NAMES = [LONG, "kind of thing", "x", 'ünïcode "odd" <name>']


def mixed(n=60):
    """Odd names, categories, missing values, and classes that come of all of them."""
    rng = np.random.default_rng(0)
    kinds = rng.choice([f"kind {letter} of many" for letter in "abcdefghijklmnop"], n)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=NAMES).assign(**{NAMES[1]: kinds})
    y = np.where(X[LONG] + (kinds > "kind h") * X["x"] > 0.3, "yes, a long name of a class", "no")
    X.loc[::5, LONG] = np.nan
    X.loc[::7, "x"] = np.nan
    X.loc[::11, NAMES[1]] = None
    return X, y


@pytest.fixture(scope="module")
def classes():
    X, y = mixed()
    return gf.RandomForestClassifier(**SMALL).fit(X, y), X


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 12))
    return gf.RandomForestRegressor(**SMALL).fit(X, X[:, 3] * X[:, 5] + X[:, 0]), X


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_points_of_a_swarm_lie_apart_and_shades_go_from_small_to_large():
    y = swarm(np.array([0.0, 5.0, 0.0, 0.0, 10.0]), 10.0)
    assert y.tolist() == [-0.07, 0.0, 0.0, 0.07, 0.0]
    y = swarm(np.zeros(1000), 1.0)
    assert len(set(y)) == 1000
    assert -0.42 <= y.min() == -y.max()
    assert shades(np.array([3.0, 1.0, 2.0, np.nan]))[:3].tolist() == [1.0, 0.0, 0.5]
    assert shades(np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert shades(np.array([*[0.0] * 99, 5.0]))[-1] == 1.0
    assert shades(np.full(3, np.nan)).tolist() == [0.0] * 3


@pytest.mark.parametrize("background", [False, True])
def test_a_waterfall_leads_from_the_expected_value_to_the_prediction(numbers, background):
    model, X = numbers
    background = X[:9] if background else None
    values = model.shap_values(X, background=background)[4]
    base = model.expected_value_ if background is None else model.expected_value(background)
    ax = plot.plot_shap_waterfall(model, X, 4, background=background, top=4)
    bars = sorted(ax.patches, key=lambda bar: bar.get_y())
    order = np.argsort(-np.abs(values), kind="stable")
    steps = [*values[order[:4]], values[order[4:]].sum()]
    # a bar has a left end and a width, which round
    np.testing.assert_allclose([bar.get_width() for bar in bars], steps, rtol=1e-12)
    assert bars[-1].get_x() == pytest.approx(base, rel=1e-12)
    assert bars[0].get_x() + steps[0] == pytest.approx(model.predict(X[4:5])[0], rel=1e-12)
    assert labels(ax.yaxis)[-1] == "8 other features"
    assert labels(ax.yaxis)[0] == f"feature_{order[0]} = {X[4, order[0]]:.4g}".replace("-", "−")
    assert [bool(bar.get_hatch()) for bar in bars] != [True] * 5
    for bar, step in zip(bars, steps, strict=True):
        assert (bar.get_hatch() is not None) == (step < 0)
    check_readable(ax)


def test_summary_and_bars(numbers):
    model, X = numbers
    values = model.shap_values(X)
    ax = plot.plot_shap_summary(model, X, top=3)
    order = np.argsort(-np.abs(values).mean(axis=0), kind="stable")[:3]
    assert labels(ax.yaxis) == [f"feature_{f}" for f in order]
    for row, (f, points) in enumerate(zip(order, ax.collections, strict=True)):
        x, y = points.get_offsets().T
        assert np.array_equal(x, values[:, f])
        assert (np.abs(y - row) <= 0.42).all()
        assert np.array_equal(points.get_array(), shades(X[:, f]))
    assert ax.get_xlabel() == "SHAP value: what a feature adds to the prediction"
    check_readable(ax)
    background = X[:7]
    values = model.shap_values(X, background=background)
    for ax in (
        plot.plot_shap_bar(model, X, background=background, top=None),
        plot.plot_shap_bar(model, X, background=background, values=values, top=None),
    ):
        size = np.sort(np.abs(values).mean(axis=0))[::-1]
        assert [bar.get_width() for bar in ax.patches] == size.tolist()
        check_readable(ax)
    assert len(plot.plot_shap_waterfall(model, X, top=11).patches) == 12
    assert len(plot.plot_shap_waterfall(model, X, top=None).patches) == 12


def test_dependence(numbers):
    model, X = numbers
    values = model.shap_values(X)
    [points] = plot.plot_shap_dependence(model, X, 3, color_by=5).collections
    assert np.array_equal(points.get_offsets(), np.stack([X[:, 3], values[:, 3]], axis=1))
    assert np.array_equal(points.get_array(), X[:, 5])
    [points] = plot.plot_shap_dependence(model, X, 3, color_by=None).collections
    assert points.get_array() is None
    pairs = np.abs(model.shap_interaction_values(X)[:, 3]).mean(axis=0)
    pairs[3] = 0
    assert partner(model, X, 3, None) == pairs.argmax()
    [points] = plot.plot_shap_dependence(model, X, 3).collections
    assert np.array_equal(points.get_array(), X[:, pairs.argmax()])


def test_names_categories_and_missing_values(classes):
    model, X = classes
    ax = plot.plot_shap_summary(model, X)
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"missing", "a category"}
    assert ax.get_xlabel().endswith("the probability of yes, a long … of a class")
    holes = X[LONG].isna().to_numpy()
    crosses = [line.get_xdata() for line in ax.lines if line.get_marker() == "x"]
    own = model.shap_values(X)[holes, 0, 1]
    assert any(np.array_equal(x, own) for x in crosses)
    check_readable(ax)
    for drawn in (
        plot.plot_shap_bar(model, X),
        plot.plot_shap_waterfall(model, X, 0, output="no"),
        plot.plot_shap_waterfall(model, X, 1),
        plot.plot_shap_dependence(model, X, LONG, color_by="x"),
        plot.plot_shap_dependence(model, X, NAMES[1], color_by=LONG),
        plot.plot_shap_dependence(model, X, "x", color_by=NAMES[1]),
        plot.plot_shap_dependence(model, X, 3),
    ):
        check_readable(drawn)
    ax = plot.plot_shap_dependence(model, X, "x", color_by=None)
    [points] = ax.collections
    holes, x = X["x"].isna().to_numpy(), points.get_offsets()[:, 0]
    assert np.array_equal(x[~holes], X["x"][~holes])
    assert x[holes].max() < X["x"].min()
    assert "missing" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(("draw", "given", "message"), [
    (plot.plot_shap_summary, {"output": "maybe"}, "output='maybe' is none of the 2 outputs"),
    (plot.plot_shap_summary, {"top": 0}, "top=0 features are none"),
    (plot.plot_shap_waterfall, {"top": 0}, "top=0 features are none"),
    (plot.plot_shap_summary, {"feature_names": ["a"]}, "feature_names has 1 names"),
    (plot.plot_shap_summary, {"values": np.zeros((60, 4))}, r"values has the shape \(60, 4\)"),
    (plot.plot_shap_waterfall, {"row": 60}, "row=60: X has the rows 0 to 59"),
    (plot.plot_shap_dependence, {"feature": "z"}, "no feature 'z'"),
    (plot.plot_shap_dependence, {"feature": "x", "color_by": "z"}, "no feature 'z'"),
])  # fmt: skip
def test_what_cannot_be_drawn(classes, draw, given, message):
    with pytest.raises(ValueError, match=message):
        draw(*classes, **given)


def test_what_the_values_are_added_to_and_models_that_cannot_be_drawn(numbers):
    X, y = mixed()
    boosted = gf.HistGradientBoostingClassifier(max_iter=2, random_state=0, backend="numpy")
    ax = plot.plot_shap_bar(boosted.fit(X, y == "no"), X)
    assert ax.get_xlabel().endswith("\nthe raw prediction of True")
    several = gf.RandomForestRegressor(**SMALL).fit(X, np.stack([y == "no", y != "no"], axis=1))
    assert plot.plot_shap_bar(several, X, output=1).get_xlabel().endswith(" prediction 1")
    with pytest.raises(ValueError, match="the prediction is one number"):
        plot.plot_shap_bar(*numbers, output=1)
    embedding = gf.RandomTreesEmbedding(2, backend="numpy").fit(numbers[1])
    with pytest.raises(TypeError, match="predicts nothing"):
        plot.plot_shap_bar(embedding, numbers[1])
