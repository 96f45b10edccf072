"""Out-of-bag: bags drawn again, and what the errors decide: how many trees and features."""

from functools import partial

import numpy as np
import pytest
from engine import out_of_bag, same_forest
from sklearn.datasets import load_diabetes, load_iris, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score

import gpuforest as gf
from gpuforest.backends.registry import get_backend
from gpuforest.core.rules import Sampling
from gpuforest.estimators.out_of_bag import FIRST_TREES
from gpuforest.explain import oob
from gpuforest.explain.oob import curve_points
from gpuforest.growing.bags import draw_bags
from gpuforest.growing.edges import bin_matrix


def slow_means(model, X, sampling, n_values):
    """Tree by tree, from the bags and the leaves' values."""
    forest, leaves = model.forest_, model.apply(X)
    numpy = get_backend("numpy")
    sums, counts = np.zeros((len(X), n_values)), np.zeros(len(X), int)
    for t in range(forest.n_trees):
        out = draw_bags(sampling, model.seed_, t, t + 1, numpy)[0] == 0
        values = forest.coding.values(forest.node_sums(t, t + 1)[leaves[:, t]])
        sums[out] += values[out]
        counts += out
    return sums / counts[:, None]


IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
NOISY = make_classification(300, 12, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)


def test_scores_are_those_of_trees_that_did_not_draw_the_row():
    X, y = IRIS
    model = gf.RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, y)
    expected = slow_means(model, X, Sampling(150, 150, None), 3)
    assert np.array_equal(model.oob_decision_function_, expected)
    assert model.oob_score_ == accuracy_score(y, expected.argmax(axis=1))
    assert 0.9 < model.oob_score_ < 1
    X, y = DIABETES
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    model = gf.RandomForestRegressor(40, oob_score=True, max_samples=200, random_state=0)
    model.fit(X, y, weights)
    expected = slow_means(model, X, Sampling(len(y), 200, weights.astype("i4")), 1)[:, 0]
    assert np.array_equal(model.oob_prediction_, expected)
    some = weights > 0  # the others score nothing
    assert model.oob_score_ == r2_score(y[some], expected[some])
    assert 0.3 < model.oob_score_ < 0.6


def test_the_memory_budget_changes_no_bit(backend):
    X, y = DIABETES
    model = gf.RandomForestRegressor(9, random_state=1).fit(X, y)
    found = []
    for budget in (1, 30_000, 2**28):
        engine = get_backend(backend, memory_budget=budget)
        matrix = bin_matrix(X, model.forest_.edges, engine)
        found.append(out_of_bag(model.forest_, matrix, Sampling(442, 442, None), engine))
    for other in found[1:]:
        assert np.array_equal(other.sums, found[0].sums)
        assert np.array_equal(other.counts, found[0].counts)


@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.RandomForestRegressor])
def test_rows_in_every_bag_are_nan_with_a_warning(backend, kind):
    model = kind(2, oob_score=True, random_state=0, backend=backend)
    with pytest.warns(UserWarning, match="Some inputs do not have OOB scores"):
        model.fit(*IRIS)
    bags = draw_bags(Sampling(150, 150, None), 0, 0, 2, get_backend("numpy"))
    never = (bags > 0).all(axis=0)
    name = "oob_decision_function_" if kind is gf.RandomForestClassifier else "oob_prediction_"
    means = getattr(model, name).reshape(150, -1)
    assert never.any()
    assert np.array_equal(np.isnan(means).all(axis=1), never)
    assert np.array_equal(np.isnan(means).any(axis=1), never)
    assert 0.5 < model.oob_score_ <= 1  # of the other rows


def two(y):
    return np.stack([y, np.roll(y, 1)], axis=1)


# the last: a tolerance that needs some batches of trees
TASKS = {
    "classes": (gf.RandomForestClassifier, *NOISY, 0.013),
    "numbers": (gf.RandomForestRegressor, *DIABETES, 0.013),
    "outputs of classes": (gf.RandomForestClassifier, NOISY[0], two(NOISY[1]), 0.024),
    "outputs of numbers": (gf.RandomForestRegressor, DIABETES[0], two(DIABETES[1]), 0.013),
    "extra trees": (gf.ExtraTreesClassifier, *NOISY, 0.013),
    "bags": (gf.BaggingRegressor, *DIABETES, 0.013),
    "pruned trees": (
        partial(gf.RandomForestClassifier, ccp_alpha=0.005, max_leaf_nodes=20), *NOISY, 0.02
    ),
}  # fmt: skip


def same_curve(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("task", TASKS)
def test_auto_is_the_forest_of_as_many_trees(task):
    kind, X, y, tol = TASKS[task]
    given = {"random_state": 3, "bootstrap": True, "oob_score": True, "n_jobs": 2}
    auto = kind(n_estimators="auto", oob_tol=tol, **given).fit(X, y)
    assert auto.n_estimators_ == len(auto.estimators_) > FIRST_TREES
    fixed = kind(n_estimators=auto.n_estimators_, **given).fit(X, y)
    assert same_forest(auto.forest_, fixed.forest_)
    assert same_curve(auto.oob_curve_, fixed.oob_curve_)
    assert auto.oob_score_ == fixed.oob_score_
    assert fixed.oob_curve_.error[-1] == 1 - fixed.oob_score_
    assert fixed.oob_curve_.n_estimators.tolist() == curve_points(fixed.n_estimators_)


def test_the_curve_is_that_of_smaller_forests(backend):
    given = {"oob_score": True, "random_state": 0, "backend": backend}
    X, y = DIABETES
    curve = gf.RandomForestRegressor(50, **given).fit(X, y).oob_curve_
    for at in (15, -3):
        smaller = gf.RandomForestRegressor(curve.n_estimators[at], **given).fit(X, y)
        found = smaller.oob_prediction_
        assert curve.error[at] == 1 - r2_score(y, found)


def test_growing_ends_when_the_last_half_lies_within_the_tolerance():
    ended = []
    for tol in (0.1, 0.03, 0.01):
        forest = gf.RandomForestClassifier("auto", oob_tol=tol, random_state=0).fit(*NOISY)
        curve, ends = forest.oob_curve_, []
        for n in curve.n_estimators[curve.n_estimators >= FIRST_TREES]:
            half = (2 * curve.n_estimators >= n) & (curve.n_estimators <= n)
            ends.append(bool(np.ptp(curve.error[half]) <= tol))
        assert ends == [False] * (len(ends) - 1) + [True]
        ended.append(forest.n_estimators_)
    assert ended == sorted(ended)
    assert ended[0] < ended[-1]


@pytest.mark.parametrize("cap", [1, 7, FIRST_TREES, 60])
def test_the_cap_is_kept_with_a_warning(backend, cap):
    forest = gf.RandomForestRegressor(
        "auto", oob_tol=1e-9, max_estimators=cap, random_state=0, backend=backend
    )
    if cap == 1:  # a curve of one point changes by nothing
        forest.fit(*DIABETES)
    else:
        with pytest.warns(ConvergenceWarning, match=f"max_estimators={cap} trees it changed"):
            forest.fit(*DIABETES)
    assert forest.n_estimators_ == cap
    assert forest.oob_curve_.n_estimators[-1] == cap


def test_of_many_rows_a_sample_is_looked_at(monkeypatch):
    monkeypatch.setattr(oob, "FEWEST_ROWS", 100)
    curves = []
    for backend in ("numpy", "numba"):
        given = {"random_state": 5, "backend": backend, "oob_score": True}
        auto = gf.RandomForestClassifier("auto", oob_tol=0.05, **given).fit(*NOISY)
        fixed = gf.RandomForestClassifier(auto.n_estimators_, **given).fit(*NOISY)
        assert same_curve(auto.oob_curve_, fixed.oob_curve_)
        rows = oob.sampled_rows(5, Sampling(300, 300, None))
        found = fixed.oob_decision_function_[rows].argmax(axis=1)
        assert auto.oob_curve_.error[-1] == 1 - accuracy_score(NOISY[1][rows], found)
        assert len(rows) == 100
        curves.append(auto.oob_curve_)
    assert same_curve(*curves)


def test_sizes_of_samples_and_points_of_curves():
    assert oob.sampled_rows(0, Sampling(5_000, 5_000, None)) is None
    for n_rows, expected in ((5_001, 5_000), (30_000, 7_500), (500_000, 10_000)):
        rows = oob.sampled_rows(0, Sampling(n_rows, n_rows, None))
        assert len(np.unique(rows)) == expected
    assert curve_points(1) == [1]
    assert curve_points(9) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    points = curve_points(1000)
    assert points[-9:] == [256, 320, 384, 448, 512, 640, 768, 896, 1000]
    assert FIRST_TREES in points


def test_other_numbers_of_rows_out_of_bag():
    """A bag of so many draws leaves no row out: no error is known, and nothing converges."""
    forest = gf.RandomForestClassifier("auto", max_samples=5000, max_estimators=50, random_state=0)
    with pytest.warns(ConvergenceWarning, match="changed by nan"):
        forest.fit(*IRIS)
    assert np.isnan(forest.oob_curve_.error).all()
    assert forest.n_estimators_ == 50


# ------------------------------------------------------------------ max_features="oob"

WIDE = make_regression(200, 40, n_informative=3, noise=5, random_state=0)


@pytest.mark.parametrize(("kind", "data", "n_trees"), [
    (gf.RandomForestRegressor, WIDE, 60),
    (gf.RandomForestClassifier, NOISY, FIRST_TREES - 1),
    (gf.RandomForestClassifier, NOISY, FIRST_TREES),
    (gf.ExtraTreesRegressor, WIDE, FIRST_TREES + 1),
], ids=range(4))  # fmt: skip
def test_the_number_of_features_is_that_of_the_least_error(kind, data, n_trees):
    given = {"random_state": 2, "bootstrap": True, "oob_score": True}
    found = kind(n_trees, max_features="oob", **given).fit(*data)
    tried = found.oob_max_features_
    default = kind(FIRST_TREES, **given).fit(*data)
    assert default.max_features_ in tried.max_features
    for n, error in zip(tried.max_features.tolist(), tried.error, strict=True):
        small = kind(FIRST_TREES, max_features=n, **given).fit(*data)
        assert small.oob_curve_.error[-1] == error
    assert found.max_features_ == tried.max_features[tried.error.argmin()]
    plain = kind(n_trees, max_features=found.max_features_, **given).fit(*data)
    assert same_forest(found.forest_, plain.forest_)
    assert plain.max_features_ == found.max_features_ == found.estimators_[0].max_features_


def test_features_are_halved_and_doubled():
    tried = gf.RandomForestRegressor(5, max_features="oob", random_state=0).fit(*WIDE)
    assert tried.oob_max_features_.max_features.tolist() == [7, 13, 26, 40]
    assert tried.max_features_ > 13  # three of forty features are informative
    assert tried.n_estimators_ == 5


@pytest.mark.parametrize(
    "kind", [gf.RandomForestClassifier, gf.ExtraTreesClassifier, gf.BaggingClassifier]
)
@pytest.mark.parametrize(("wrong", "message"), [
    ({"n_estimators": "auto", "bootstrap": False}, "'auto' needs bootstrap=True"),
    ({"n_estimators": "auto", "bootstrap": True, "warm_start": True}, "no earlier trees"),
    ({"oob_tol": -0.1}, "'oob_tol' parameter"),
    ({"max_estimators": 0}, "'max_estimators' parameter"),
    ({"n_estimators": "all"}, "'n_estimators' parameter"),
])  # fmt: skip
def test_what_cannot_be_is_refused(kind, wrong, message):
    with pytest.raises(ValueError, match=message):
        kind(**wrong).fit(*IRIS)
