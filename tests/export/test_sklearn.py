"""Models go to scikit-learn and come back: equal predictions, missing values among them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from engine import table
from saved import reloaded
from sklearn import ensemble, tree
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble._forest import _generate_sample_indices
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import check_is_fitted

import gpuforest as gf
from gpuforest.export.sklearn import HOMES

RNG = np.random.default_rng(0)
X = table(RNG, 300, list("cnNfm"), np.float32)  # what scikit-learn's trees look at
NEW = table(RNG, 300, list("nnNnn"), np.float32)  # missing also where it was not in training
LABELS = np.array(["a", "b", "c"])[(np.nan_to_num(X[:, 1]) + X[:, 0] > 0) + (X[:, 3] > 0) * 1]
NUMBERS = np.nan_to_num(X[:, 1]) * X[:, 3] + X[:, 0]
COUNTS = np.abs(NUMBERS * 3).round() + 1
IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
CASES = [
    ("DecisionTreeClassifier", "gini", LABELS),
    ("DecisionTreeClassifier", "entropy", LABELS),
    ("DecisionTreeRegressor", "squared_error", NUMBERS),
    ("DecisionTreeRegressor", "poisson", COUNTS),
    ("RandomForestClassifier", "gini", LABELS),
    ("RandomForestClassifier", "log_loss", LABELS),
    ("RandomForestRegressor", "squared_error", NUMBERS),
    ("RandomForestRegressor", "poisson", COUNTS),
    ("RandomForestRegressor", "absolute_error", NUMBERS),
]
EACH = pytest.mark.parametrize(("name", "criterion", "y"), CASES)


def given(name, **more):
    """Parameters that both packages know."""
    if name.startswith("RandomForest"):
        more["n_estimators"] = 6
    return {"random_state": 0, "max_depth": 7, "min_samples_leaf": 2, **more}


def sklearn_kind(name):
    return getattr(ensemble if "ensemble" in HOMES[name] else tree, name)


def predictions(model, X):
    methods = ("predict", "predict_proba") if hasattr(model, "classes_") else ("predict",)
    return [getattr(model, method)(X) for method in methods]


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


@EACH
def test_scikit_learn_predicts_what_we_do(name, criterion, y):
    ours = getattr(gf, name)(**given(name, criterion=criterion), backend="numba").fit(X, y)
    theirs = ours.to_sklearn()
    assert type(theirs) is sklearn_kind(name)
    assert theirs.get_params().items() >= given(name, criterion=criterion).items()
    for rows in (X, NEW):
        assert same(predictions(ours, rows), predictions(theirs, rows))
        assert np.array_equal(ours.apply(rows), theirs.apply(rows))
    assert np.isnan(NEW).mean() > 0.2
    # floating point on one side, whole numbers on the other
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, 1e-9, 1e-9)
    assert same(predictions(theirs, X), predictions(pickle.loads(pickle.dumps(theirs)), X))
    back = gf.from_sklearn(theirs)
    assert (back.seed_, back.n_features_in_, back.n_outputs_) == (0, 5, 1)
    assert y is not LABELS or np.array_equal(back.forest_.leaf_sums, ours.forest_.leaf_sums)
    assert clone(theirs).fit(X, y).n_features_in_ == 5


@EACH
@pytest.mark.parametrize("weighed", [False, True])
def test_we_predict_what_scikit_learn_does(name, criterion, y, weighed, tmp_path):
    weights = np.random.default_rng(1).integers(1, 5, len(y)) if weighed else None
    theirs = sklearn_kind(name)(**given(name, criterion=criterion)).fit(X, y, weights)
    ours = gf.from_sklearn(theirs).set_params(backend="numba")
    assert type(ours) is getattr(gf, name)
    assert ours.get_params().items() >= given(name, criterion=criterion).items()
    for model, rows in ((ours, X), (ours, NEW), (reloaded(ours, tmp_path), NEW)):
        found, expected = predictions(model, rows), predictions(theirs, rows)
        if hasattr(ours, "classes_"):
            assert same(found, expected)
        else:  # means lie on the grid of the fixed point here
            assert np.allclose(found, expected, 1e-12, 1e-12)
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, 1e-9, 1e-9)


@pytest.mark.parametrize(("name", "params"), [
    ("DecisionTreeClassifier", {}),
    ("ExtraTreesClassifier", {"n_estimators": 2}),
    ("AdaBoostClassifier", {"n_estimators": 2}),
    ("HistGradientBoostingClassifier", {"max_iter": 2}),
    ("IsolationForest", {"n_estimators": 2}),
])  # fmt: skip
def test_scikit_learns_own_is_given_where_ours_stand_in_its_place(name, params, monkeypatch):
    model = getattr(gf, name)(backend="numpy", **params).fit(X, LABELS)
    for module, other in ((tree, "DecisionTreeClassifier"), (ensemble, name)):
        monkeypatch.setattr(module, other, getattr(gf, other), raising=False)
    found = model.to_sklearn()
    assert type(found).__module__.startswith("sklearn.")
    assert found.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("name", sorted(HOMES))
def test_fractional_weights(name):
    y = LABELS if name.endswith("Classifier") else NUMBERS
    weights = np.random.default_rng(1).random(len(y))
    theirs = sklearn_kind(name)(**given(name)).fit(X, y, weights)
    found, expected = predictions(gf.from_sklearn(theirs), NEW)[-1], predictions(theirs, NEW)[-1]
    # weights become whole numbers of a total of 2**30: a leaf's rounds in its last bits
    assert np.allclose(found, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("kind", [ensemble.RandomForestClassifier, ensemble.ExtraTreesRegressor])
def test_several_outputs(kind):
    is_classes = kind is ensemble.RandomForestClassifier
    y = np.stack([LABELS, NUMBERS > 0] if is_classes else [NUMBERS, COUNTS], axis=1)
    full = np.nan_to_num(X)
    theirs = kind(5, max_depth=4, random_state=0).fit(full, y)
    ours = gf.from_sklearn(theirs)
    for other in (ours, ours.to_sklearn()):
        assert other.n_outputs_ == 2
        if is_classes:
            assert np.array_equal(other.predict(full), theirs.predict(full))
            assert [list(c) for c in other.classes_] == [list(c) for c in theirs.classes_]
            for a, b in zip(other.predict_proba(full), theirs.predict_proba(full), strict=True):
                assert np.allclose(a, b, rtol=1e-12)  # their shares are of rounded sums
        else:  # means are rounded to the grid
            assert np.allclose(other.predict(full), theirs.predict(full), rtol=1e-12, atol=1e-12)


def test_names_of_features_and_classes_travel():
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    theirs = ensemble.RandomForestClassifier(3, random_state=5).fit(frame, LABELS)
    ours = gf.from_sklearn(theirs)
    assert (ours.n_classes_, ours.n_features_in_, ours.seed_) == (3, 5, 5)
    isolation = gf.IsolationForest(n_estimators=2, backend="numpy").fit(frame).to_sklearn()
    for model in (ours, ours.to_sklearn(), isolation):
        assert model.feature_names_in_.tolist() == list("vwxyz")
        if model is not isolation:
            assert model.classes_.tolist() == ["a", "b", "c"]
            assert same(predictions(model, frame), predictions(theirs, frame))
    assert isolation.fit(frame).n_features_in_ == 5  # it is an estimator like any other


def test_odd_trees_travel():
    theirs = tree.DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(X, LABELS)
    assert (np.diff(theirs.tree_.children_left[theirs.tree_.children_left > 0]) < 0).any()
    assert same(predictions(gf.from_sklearn(theirs), NEW), predictions(theirs, NEW))
    ours = gf.DecisionTreeClassifier(criterion="misclassification", max_depth=3, backend="numba")
    theirs = ours.fit(X, LABELS).to_sklearn()
    assert theirs.criterion == "gini"
    value = theirs.tree_.value[:, 0]
    assert np.array_equal(theirs.tree_.impurity, 1 - (value**2).sum(axis=1))
    assert same(predictions(ours, NEW), predictions(theirs, NEW))
    ours = gf.DecisionTreeClassifier(backend="numpy").fit(np.ones((4, 2)), [0, 1, 1, 1])
    for other in (ours.to_sklearn(), gf.from_sklearn(ours.to_sklearn())):
        assert other.predict_proba([[1.0, 2.0]]).tolist() == [[0.25, 0.75]]


def of_another_release():
    model = tree.DecisionTreeRegressor(max_depth=2).fit(np.nan_to_num(X), NUMBERS)
    return model.set_params(criterion="new")


def of_others():
    return gf.AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(*IRIS)


def categorical_isolation():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 30), "b": np.arange(60.0)})
    return gf.IsolationForest(n_estimators=2, backend="numpy").fit(frame)


TAKES, UNFITTED = "from_sklearn takes a fitted", "not fitted"


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: gf.from_sklearn(KNeighborsClassifier()), TypeError, TAKES),
    (lambda: gf.from_sklearn(None), TypeError, TAKES),
    (lambda: gf.from_sklearn(gf.DecisionTreeClassifier()), TypeError, TAKES),
    (lambda: gf.from_sklearn(tree.DecisionTreeClassifier()), ValueError, UNFITTED),
    (lambda: gf.DecisionTreeClassifier().to_sklearn(), ValueError, UNFITTED),
    (lambda: gf.IsolationForest().to_sklearn(), ValueError, UNFITTED),
    (lambda: gf.from_sklearn(of_another_release()), ValueError, "criterion='new' is none of"),
    (lambda: of_others().to_sklearn(), ValueError, "an ensemble of LogisticRegression was fit"),
    (lambda: categorical_isolation().to_sklearn(), ValueError, "no categorical features: tra"),
])  # fmt: skip
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_too_many_thresholds_are_refused():
    values = np.arange(65_536, dtype=np.float32)[:, None]
    few = tree.DecisionTreeRegressor().fit(values[1:], values[1:, 0])
    found = gf.from_sklearn(few)
    assert found.forest_.edges.n_bins.tolist() == [65_535]
    # means lie on the grid of the fixed point
    assert np.allclose(found.predict(values[1:]), values[1:, 0], 1e-12)
    with pytest.raises(ValueError, match="feature 0 has 65535 distinct thresholds"):
        gf.from_sklearn(tree.DecisionTreeRegressor().fit(values, values[:, 0]))


SIZES, SPECIES = IRIS


def converted_bags(model):
    """The converted forest, and how often each row is in each of its bags."""
    there = model.to_sklearn()
    return there, [np.bincount(rows, minlength=len(SIZES)) for rows in there.estimators_samples_]


@pytest.mark.parametrize("weights", [None, np.arange(len(SIZES)) % 4])
@pytest.mark.parametrize("params", [{}, {"max_samples": 40}, {"class_weight": "balanced"}])
def test_bags_travel(params, weights):
    model = gf.RandomForestClassifier(6, random_state=3, backend="numpy", **params)
    model.fit(SIZES, SPECIES, weights)
    there, bags = converted_bags(model)
    for counts, rows in zip(bags, model.estimators_samples_, strict=True):
        assert np.array_equal(counts, np.bincount(rows, minlength=len(SIZES)))
    assert len({tuple(counts) for counts in bags}) == 6
    # what packages that look into scikit-learn do
    for member, counts in zip(there.estimators_, bags, strict=True):
        drawn = _generate_sample_indices(member.random_state, len(SIZES), counts.sum(), None)
        assert np.array_equal(np.bincount(drawn, minlength=len(SIZES)), counts)


def test_forests_without_bags_have_seeds_and_scores_out_of_bag_travel():
    model = gf.ExtraTreesClassifier(5, random_state=0, backend="numpy").fit(SIZES, SPECIES)
    there, bags = converted_bags(model)
    assert (np.array(bags) == 1).all()  # every tree has all rows, and a seed of its own
    seeds = [tree.random_state for tree in there.estimators_]
    assert len(set(seeds)) == 5
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    for kind, y in ((gf.RandomForestClassifier, SPECIES), (gf.RandomForestRegressor, SIZES[:, 0])):
        model = kind(60, oob_score=True, random_state=0, backend="numpy").fit(SIZES, y)
        there = model.to_sklearn()
        assert there.oob_score_ == model.oob_score_
        name = "oob_prediction_" if kind is gf.RandomForestRegressor else "oob_decision_function_"
        assert np.array_equal(getattr(there, name), getattr(model, name))


def test_what_is_not_known_of_bags_is_not_made_up(tmp_path):
    model = gf.RandomForestClassifier(3, random_state=0, backend="numpy").fit(SIZES, SPECIES)
    loaded = reloaded(model, tmp_path).to_sklearn()
    pickled = pickle.loads(pickle.dumps(model.to_sklearn()))
    assert np.array_equal(pickled.predict_proba(SIZES), model.predict_proba(SIZES))
    bags = zip(loaded.estimators_samples_, model.estimators_samples_, strict=True)
    assert all(np.array_equal(np.sort(one), np.sort(other)) for one, other in bags)
    with pytest.raises(ValueError, match="gpuforest drew the rows of this tree's bag"):
        _generate_sample_indices(pickled.estimators_[0].random_state, len(SIZES), len(SIZES), None)
    assert b"gpuforest.export.sklearn" not in pickle.dumps(model.to_sklearn())
    copied = copy.deepcopy(model.to_sklearn())
    assert len(copied.estimators_samples_[0]) == len(SIZES)


@pytest.mark.parametrize("model", [
    gf.AdaBoostClassifier(n_estimators=6, random_state=2**63),
    gf.AdaBoostClassifier(gf.DecisionTreeClassifier(criterion="misclassification", max_depth=2)),
    gf.AdaBoostRegressor(n_estimators=6, loss="square", random_state=0),
    gf.AdaBoostRegressor(gf.DecisionTreeRegressor(criterion="absolute_error", max_depth=2)),
])  # fmt: skip
def test_predictions_are_the_same(model):
    X, y = IRIS if isinstance(model, gf.AdaBoostClassifier) else DIABETES
    X = X.astype(np.float32)
    theirs = model.set_params(backend="numpy").fit(X, y).to_sklearn()
    assert type(theirs) is getattr(ensemble, type(model).__name__)
    check_is_fitted(theirs)
    for one in (theirs, pickle.loads(pickle.dumps(theirs))):
        assert np.allclose(one.predict(X), model.predict(X), rtol=1e-12)
    assert np.array_equal(theirs.estimator_errors_, model.estimator_errors_)
    if model.criterion_ != "misclassification":  # which scikit-learn does not have
        assert np.allclose(theirs.feature_importances_, model.feature_importances_)
    stages = zip(theirs.staged_predict(X), model.staged_predict(X), strict=True)
    assert all(np.allclose(one, other, rtol=1e-12) for one, other in stages)
    theirs.fit(X, y)  # its parameters are such as it takes


ROWS = RNG.normal(size=(400, 5)).astype(np.float32)
ROWS[:8] *= 6
GAPS = np.where(RNG.random(ROWS.shape) < 0.1, np.float32(np.nan), ROWS)


@pytest.mark.parametrize("rows", [ROWS, GAPS, ROWS[:1], np.zeros((9, 2), np.float32)])
@pytest.mark.parametrize(
    "params", [{}, {"max_features": 2, "bootstrap": True}, {"contamination": 0.03}]
)
def test_scores_of_isolation_are_the_same(rows, params):
    if "max_features" in params and rows.shape[1] < 3:
        params = {"bootstrap": True}
    model = gf.IsolationForest(n_estimators=20, random_state=2**63, backend="numpy", **params)
    model.fit(rows)
    theirs = model.to_sklearn()
    assert type(theirs) is ensemble.IsolationForest
    check_is_fitted(theirs)
    for one in (theirs, pickle.loads(pickle.dumps(theirs))):
        # sums of twenty lengths that are put together otherwise
        assert np.allclose(one.score_samples(rows), model.score_samples(rows), rtol=1e-14, atol=0)
        assert np.allclose(one.decision_function(rows), model.decision_function(rows), atol=1e-14)
        clear = np.abs(model.decision_function(rows)) > 1e-14
        assert np.array_equal(one.predict(rows)[clear], model.predict(rows)[clear])
    assert theirs.max_samples_ == model.max_samples_
    assert [t.tree_.node_count for t in theirs.estimators_] == [
        t.tree_.node_count for t in model.estimators_
    ]
    with pytest.raises(ValueError, match="they are not kept in files"):
        theirs.estimators_samples_  # noqa: B018
