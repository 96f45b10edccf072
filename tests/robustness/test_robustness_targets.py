"""Unusual labels, targets and weights: rows of docs/robustness.md, on both CPU backends."""

import re

import numpy as np
import pytest
from engine import same_forest
from robust import (
    KINDS,
    PAGE,
    X,
    Y,
    assert_refused,
    assert_same_trees,
    both_kinds,
    fitted,
    plain,
    predicted,
    refused,
)

import gpuforest as gf


def test_one_class(backend):
    model = fitted(gf.RandomForestClassifier, backend, X, ["only"] * len(X))
    assert model.forest_.n_nodes == 3  # a leaf a tree
    assert model.classes_.tolist() == ["only"]
    assert model.predict(X).tolist() == ["only"] * len(X)
    assert model.predict_proba(X).tolist() == [[1.0]] * len(X)


def test_5_000_classes(backend):
    rng = np.random.default_rng(0)
    many = rng.integers(0, 30, (10_000, 2))
    y = rng.permutation(10_000) % 5000
    model = fitted(gf.RandomForestClassifier, backend, many, y, max_depth=4)
    reference = fitted(gf.RandomForestClassifier, "numpy", many, y, max_depth=4)
    assert same_forest(model.forest_, reference.forest_)
    assert np.array_equal(model.predict_proba(many[:99]), reference.predict_proba(many[:99]))
    assert model.classes_.tolist() == list(range(5000))


UNICODE = ["", "é", "e\u0301", "日本", "שלום", "🌲", "\U0010ffff"]  # the second é is two letters
GAPPED = [-(2**60), -1, 0, 7, 8, 2**53 + 1, 2**62]


@pytest.mark.parametrize("names", [UNICODE, GAPPED], ids=["unicode", "gapped"])
@pytest.mark.parametrize("dtype", [None, object])
def test_unicode_and_gapped_labels(backend, names, dtype):
    names = np.array(sorted(names), dtype)
    codes = np.arange(len(X)) % len(names)
    model = fitted(gf.RandomForestClassifier, backend, X, names[codes])
    reference = fitted(gf.RandomForestClassifier, "numpy", X, codes)
    assert same_forest(model.forest_, reference.forest_)
    assert model.classes_.tolist() == names.tolist()
    assert model.predict(X).tolist() == names[reference.predict(X)].tolist()


@pytest.mark.parametrize("class_weight", [None, "balanced", "balanced_subsample"])
def test_a_class_absent_from_a_bag(backend, class_weight):
    y = np.where(np.arange(len(X)) == 3, 2, np.arange(len(X)) % 2)  # class 2 has one row
    params = {"class_weight": class_weight, "max_samples": 40}
    model = fitted(gf.RandomForestClassifier, backend, X, y, **params)
    reference = fitted(gf.RandomForestClassifier, "numpy", X, y, **params)
    drawn = [model.forest_.node_sums(t, t + 1)[0, 2] > 0 for t in range(3)]
    assert set(drawn) == {False, True}
    assert same_forest(model.forest_, reference.forest_)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (80, 3)
    assert np.array_equal(model.predict_proba(X), reference.predict_proba(X))


@pytest.mark.parametrize("exponent", [996, -900], ids=["1e300", "1e-271"])
def test_huge_and_tiny_targets(backend, exponent):
    unit = 2.0**exponent  # a power of two, so that moments are the same
    model = fitted(gf.RandomForestRegressor, backend, X, Y * unit)
    assert_same_trees(model, plain(gf.RandomForestRegressor))
    assert np.array_equal(model.predict(X), plain(gf.RandomForestRegressor).predict(X) * unit)
    importances = plain(gf.RandomForestRegressor).feature_importances_
    assert np.array_equal(model.feature_importances_, importances)


def test_least_decreases_of_huge_and_tiny_targets(backend):
    for exponent, n_nodes in ((996, 9), (400, 9), (-400, 3)):
        params = {"min_impurity_decrease": 2.0**-50, "max_depth": 1, "bootstrap": False}
        y = np.where(X[:, 0] > 25, 2.0**exponent, 0.0)
        model = fitted(gf.RandomForestRegressor, backend, X, y, **params)
        assert model.forest_.n_nodes == n_nodes  # a variance of 2^(2 exponent) / 4, or none


def test_denormal_targets(backend):
    model = fitted(gf.RandomForestRegressor, backend, X, Y * 5e-324)
    assert model.forest_.n_nodes == 3  # all are alike on the grid of 2^-1000
    found = model.predict(X)
    assert (found >= 0).all()
    assert (found <= 2 * 5e-324).all()
    assert np.array_equal(
        found, fitted(gf.RandomForestRegressor, "numpy", X, Y * 5e-324).predict(X)
    )


def with_a_far_target(backend, far):
    """The median error of a tree of rows on a curve, and that of one where `far` is a target."""
    rows, other = np.random.default_rng(0).normal(size=(2, 400, 2))
    y = np.abs(rows[:, 1])
    errors = []
    for target in (y, np.where(np.arange(400) == 7, far, y)):
        params = {"bootstrap": False, "max_features": None}
        model = fitted(gf.RandomForestRegressor, backend, rows, target, **params)
        errors.append(np.median(np.abs(model.predict(other) - np.abs(other[:, 1]))))
    return errors


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [1e9, -1e12])
def test_a_target_that_lies_far_out(backend, far):
    without, found = with_a_far_target(backend, far)
    assert found < 2 * without  # its own surroundings are lost


def test_a_target_that_lies_too_far_out(backend):
    message = "y has the value 1e+18, and half of its values lie within 0.63: beside it they are "
    message += "rounded to steps of 256, "
    assert message in PAGE
    with pytest.warns(UserWarning, match=re.escape(message)):
        with_a_far_target(backend, 1e18)


AS_IF_ABSENT = [
    {"bootstrap": False},
    {"bootstrap": False, "min_samples_leaf": 0.1, "min_samples_split": 0.3},
    {"bootstrap": False, "min_weight_fraction_leaf": 0.1, "min_impurity_decrease": 0.01},
    {"oob_score": True}, {"max_samples": 50}, {"max_samples": 0.4},
    {"oob_score": True, "n_estimators": "auto", "oob_tol": 0.03},
    {"oob_score": True, "n_estimators": 50, "max_features": "oob"},
    {"oob_score": True, "n_estimators": 50, "min_samples_leaf": "oob"},
]  # fmt: skip


@both_kinds
@pytest.mark.parametrize("params", AS_IF_ABSENT, ids=str)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_zero_weights(backend, kind, params):
    weights = np.arange(len(X)) % 3
    some = weights > 0
    given = {"random_state": 0, "n_estimators": 12, **params}
    model = kind(**given, backend=backend).fit(X, np.where(some, Y, 1 - Y % 2), weights)
    fewer = kind(**given, backend="numpy").fit(X[some], Y[some], weights[some])
    assert same_forest(model.forest_, fewer.forest_)
    assert np.array_equal(predicted(model, X), predicted(fewer, X))
    if params.get("oob_score"):
        assert same_out_of_bag(model, fewer, some)


def same_out_of_bag(model, fewer, some):
    """Scores and errors; the other rows are predicted, but score nothing."""
    name = "oob_decision_function_" if hasattr(model, "classes_") else "oob_prediction_"
    a, b = getattr(model, name), getattr(fewer, name)
    same = model.oob_score_ == fewer.oob_score_ and np.array_equal(a[some], b, equal_nan=True)
    for curve in ("oob_curve_", "oob_max_features_", "oob_parameters_"):
        a, b = (getattr(m, curve, {}) for m in (model, fewer))
        same &= all(np.array_equal(a[key], b[key], equal_nan=True) for key in {*a, *b})
    return same and not np.isnan(getattr(model, name)[~some]).any()


@both_kinds
def test_zero_weights_and_permuted_features(backend, kind):
    weights = np.arange(len(X)) % 3
    some = weights > 0
    found = []
    for rows in (slice(None), some):
        model = fitted(kind, backend, X[rows], Y[rows], weights[rows])
        found.append(gf.oob_permutation_importance(model, X[rows], Y[rows]).importances)
    assert np.array_equal(*found)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("max_samples", [1.0, 0.5])
def test_zero_weights_and_bags(backend, max_samples, bootstrap):
    weights = np.arange(len(X)) % 3
    some = weights > 0
    tree = gf.DecisionTreeClassifier(backend=backend)
    given = {"max_samples": max_samples, "bootstrap": bootstrap, "random_state": 0}
    model = gf.BaggingClassifier(tree, 5, **given).fit(X, Y, weights)
    fewer = gf.BaggingClassifier(tree, 5, **given).fit(X[some], Y[some], weights[some])
    assert same_forest(model.forest_, fewer.forest_)


@both_kinds
@pytest.mark.parametrize("exponent", [900, -1074])
def test_huge_and_denormal_weights(backend, kind, exponent):
    weights = 1.0 + np.arange(len(X)) % 3
    for bootstrap in (True, False):
        params = {"bootstrap": bootstrap}
        model = fitted(kind, backend, X, Y, weights * 2.0**exponent, **params)
        reference = fitted(kind, "numpy", X, Y, weights, **params)
        assert np.array_equal(model.apply(X), reference.apply(X))
        assert np.array_equal(predicted(model, X), predicted(reference, X))


def of(labels):
    return np.array(labels)[Y]


DAYS = np.array(["2026-01-01", "NaT", "2026-01-02"], "M8[D]")
INFINITE = "Input {} contains infinity or a value too large for dtype('float64')."
CLASSES, NUMBERS = KINDS
REFUSED = [
    (CLASSES, of([0.0, np.nan, 1.0]), None, "Input y contains NaN."),
    (CLASSES, of(DAYS), None, "Input y contains NaN or None: every row needs a label"),
    (NUMBERS, of([1.0, np.nan, 1.0]), None, "Input y contains NaN."),
    (NUMBERS, of([1.0, np.inf, 1.0]), None, INFINITE.format("y")),
    (NUMBERS, of([0.0, 1.7e308, 1.7e308]), None,
     "y has values beyond 1e304, whose sums overflow: divide y by a constant"),
    *((kind, Y, of(weights), message) for kind in KINDS for weights, message in (
        ([1.0, -1.0, 1.0], "Negative values in data passed to `sample_weight`."),
        ([1.0, np.nan, 1.0], "Input sample_weight contains NaN."),
        ([1.0, np.inf, 1.0], INFINITE.format("sample_weight")),
        ([1.0, 1e308, 1e308],
         "the weights of the rows add up to infinity: divide them by the largest"),
        ([0.0, 0.0, 0.0], "Sample weights must contain at least one non-zero number."),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "y", "weights", "message"), REFUSED, ids=range(len(REFUSED)))
def test_refused_targets_and_weights(backend, kind, y, weights, message):
    assert_refused(kind, message, lambda: fitted(kind, backend, X, y, weights))


@pytest.mark.parametrize("labels", [["a", None, "b"], ["a", 1, 2]])
def test_labels_without_an_order(backend, labels):
    message = "Unknown label type: y mixes labels without an order, or misses some (NaN, None): "
    with refused(message):
        fitted(CLASSES, backend, X, np.array(labels, object)[Y])


PAIRS = np.arange(len(X)) // 2


@both_kinds
@pytest.mark.parametrize(
    ("groups", "params", "message"),
    [
        (PAIRS[1:], {}, "X has 80 rows, groups has 79"),
        (PAIRS[:, None], {}, "groups has the shape (80, 1): pass one label for each row"),
        (np.where(PAIRS, PAIRS, np.nan), {},
         "groups contains NaN: every row needs the label of its group"),
        (0 * PAIRS, {}, "all rows of some weight are of one group, which every bag would hold: "
         "bags need two groups, or none"),
        (PAIRS // 20, {"max_samples": 10**9}, "bags of 1000000000 groups may weigh up to "
         "40000000000; at most 2147483647 are supported: lower max_samples, or pass fewer rows"),
    ],
    ids=range(5),
)  # fmt: skip
def test_refused_groups(backend, kind, groups, params, message):
    def fit(labels=groups, **others):
        return kind(3, random_state=0, backend=backend, **params, **others).fit(X, Y, groups=labels)

    assert_refused(kind, message, fit)
    mixed = "groups mixes labels without an order, or misses some (NaN, None): "
    for first in (None, 1):
        with refused(mixed):
            fit([first, *map(str, PAIRS[1:])])
    if not params:
        grown = fit(PAIRS, warm_start=True).set_params(n_estimators=5)
        again = "warm_start=True adds trees from the same groups, and they are others now. "
        again += "Fit anew with warm_start=False"
        for others in (None, PAIRS // 2):
            assert_refused(kind, again, lambda g=others: grown.fit(X, Y, groups=g))


@both_kinds
def test_groups_without_an_effect(backend, kind):
    forest = kind(3, random_state=0, backend=backend)
    one_each = forest.fit(X, Y, groups=range(len(X))).forest_
    assert same_forest(one_each, fitted(kind, "numpy", X).forest_)
    weights = (PAIRS % 3) * 1.0
    weighed = forest.fit(X, Y, weights, groups=PAIRS).forest_
    kept = weights > 0
    fewer = forest.fit(X[kept], Y[kept], weights[kept], groups=PAIRS[kept]).forest_
    assert same_forest(weighed, fewer)


MONTHS = np.arange(len(X)) // 10


@both_kinds
def test_refused_blocks(backend, kind):
    def refused(message, labels=MONTHS, weights=None, x=X, y=Y, model=None, **others):
        forest = kind(3, oob_score=True, backend=backend) if model is None else model
        assert_refused(kind, message, lambda: forest.fit(x, y, weights, blocks=labels, **others))

    refused("X has 80 rows, blocks has 79", MONTHS[1:])
    named = "blocks contains NaN: every row needs the label of its block"
    refused(named, np.where(MONTHS, MONTHS, np.nan))
    refused("blocks holds complex numbers, which have no order: pass real ones", MONTHS * 1j)
    one = "all rows of some weight are of one block, which no earlier one can judge: pass labels "
    for labels, weights in ((0 * MONTHS, None), (MONTHS, MONTHS == 3)):
        refused(one + "of two blocks or more, or none", labels, weights)
    both = "groups and blocks judge rows in two ways: pass groups for rows that belong together, "
    refused(both + "or blocks for rows in the order of time", groups=MONTHS)
    events = np.array([(True, 1.0 + m) for m in MONTHS], [("event", bool), ("time", float)])
    refused(
        "survival forests weigh rows by the hazard of all rows, so no row is judged by earlier "
        "ones only: pass no blocks", y=events, model=gf.RandomSurvivalForest(3, backend=backend),
    )  # fmt: skip
    known = "target statistics of categories know the targets of later blocks: pass "
    known += "categorical_split='subset', or no blocks"
    split = {"categorical_features": [0], "categorical_split": "ordered_target"}
    x = np.column_stack([np.arange(len(X)) % 4, X])
    refused(known, x=x, model=kind(3, backend=backend, **split))
    boosting = gf.HistGradientBoostingRegressor(
        max_iter=2, early_stopping=True, backend=backend, **split
    )
    split |= {"max_bins": 255, "min_category_frequency": 1}  # of boosting
    data = gf.BinnedData.from_blocks([(x, Y * 1.0)], **split)
    refused(known, x=data, y=None, model=boosting)
    refused(
        "validation_fraction=0.1 leaves no blocks to train on: there are 1; set "
        "early_stopping=False, or pass X_val and y_val", 0 * MONTHS, model=boosting,
    )  # fmt: skip
    unjudged = kind(3, random_state=0, backend=backend).fit(X, Y, blocks=MONTHS)
    assert same_forest(unjudged.forest_, fitted(kind, "numpy", X).forest_)
