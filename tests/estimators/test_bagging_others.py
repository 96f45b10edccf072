"""Bags of other estimators than our trees: scikit-learn's class of the same name does the work."""

import pickle

import numpy as np
import pytest
import sklearn.ensemble
from engine import same_forest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier as SklearnTree
from sklearn.utils import get_tags

import gpuforest
from gpuforest import BaggingClassifier, BaggingRegressor, DecisionTreeClassifier
from gpuforest.estimators.foreign import sklearn_model

X, y = IRIS = [a[::2] for a in load_iris(return_X_y=True)]
DIABETES = load_diabetes(return_X_y=True)
LINEAR = SGDClassifier(loss="log_loss")
TREE = DecisionTreeClassifier(backend="numpy")

PARAMS = [
    {},
    {"max_samples": 0.5, "max_features": 2},
    {"max_features": 3, "bootstrap": False, "bootstrap_features": True},
    {"oob_score": True, "n_estimators": 30},
]


def pair(name, estimator, **params):
    """Ours and scikit-learn's, of the same parameters."""
    return (
        getattr(module, name)(clone(estimator), **{"random_state": 0, **params})
        for module in (gpuforest, sklearn.ensemble)
    )


def same(a, b):
    """Whether fitted attributes are equal, as they print."""
    return repr(a) == repr(b)


@pytest.mark.filterwarnings("ignore:divide by zero")  # of a logarithm there
@pytest.mark.parametrize("params", PARAMS, ids=str)
@pytest.mark.parametrize("estimator", [
    LINEAR, KNeighborsClassifier(), SklearnTree(), SVC(), LinearRegression(), KNeighborsRegressor()
])  # fmt: skip
def test_others_are_bagged_as_there(estimator, params):
    is_classes = is_classifier(estimator)
    name, (X, y) = ("Classifier", IRIS) if is_classes else ("Regressor", DIABETES)
    ours, theirs = pair("Bagging" + name, estimator, **params)
    ours.fit(X, y)
    theirs.fit(X, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        assert hasattr(ours, method) == hasattr(theirs, method), method
        if hasattr(theirs, method):
            assert np.array_equal(getattr(ours, method)(X), getattr(theirs, method)(X))
    assert ours.score(X, y) == theirs.score(X, y)
    names = {n for n in vars(theirs) if n.endswith("_")} | {"estimators_samples_"}
    for name in names:
        assert same(getattr(ours, name), getattr(theirs, name)), name


def test_trees_have_no_decision_function():
    assert not hasattr(BaggingClassifier(TREE), "decision_function")
    assert not hasattr(BaggingClassifier(SklearnTree()), "decision_function")


def test_a_subclass_of_our_tree_does_what_it_does():
    class Stump(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            self.max_depth = 1
            return super().fit(X, y, sample_weight)

    bag = BaggingClassifier(Stump(backend="numpy"), 3, random_state=0).fit(X, y)
    assert [tree.get_depth() for tree in bag.estimators_] == [1, 1, 1]


def test_copies_and_pickles():
    model = BaggingClassifier(LINEAR, 3, random_state=0)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert repr(clone(model)) == repr(model)
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert type(again) is BaggingClassifier
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert same(again.estimators_samples_, model.estimators_samples_)


def test_one_estimator_after_the_other():
    model = BaggingClassifier(TREE, 3, random_state=0, warm_start=True).fit(X, y)
    forest = model.forest_
    assert len(model.estimators_) == 3
    model.set_params(estimator=LINEAR).fit(X, y)
    assert not hasattr(model, "forest_")
    assert not hasattr(model, "feature_importances_")
    assert len(model) == 3
    first = model.estimators_[0]
    model.set_params(n_estimators=5).fit(X, y)  # warm start: two more
    assert len(model.estimators_) == 5
    assert model.estimators_[0] is first
    assert isinstance(model.estimator_, SGDClassifier)
    model.set_params(estimator=TREE, n_estimators=3).fit(X, y)
    assert same_forest(model.forest_, forest)
    assert len(model.estimators_) == len(model.estimators_samples_) == 3


@pytest.mark.parametrize("name", ["BaggingClassifier", "AdaBoostClassifier"])
def test_ours_may_stand_in_scikit_learns_place(name, monkeypatch):
    """As where users re-bind the name, so that code that they do not own takes ours."""
    ours, theirs = pair(name, LINEAR, n_estimators=3)
    expected = theirs.fit(X, y).predict(X)
    monkeypatch.setattr(sklearn.ensemble, name, getattr(gpuforest, name))
    assert np.array_equal(ours.fit(X, y).predict(X), expected)
    assert type(sklearn_model(ours)).__module__.startswith("sklearn.")


def test_tags_and_metadata_are_those_of_the_estimator():
    for estimator in (LINEAR, SklearnTree()):
        ours, theirs = (get_tags(m) for m in pair("BaggingClassifier", estimator))
        assert ours.input_tags == theirs.input_tags
        assert ours.classifier_tags == theirs.classifier_tags
    with config_context(enable_metadata_routing=True):
        inner = clone(LINEAR).set_fit_request(sample_weight=True)
        ours, theirs = pair("BaggingClassifier", inner, max_samples=25)
        assert str(ours.get_metadata_routing()) == str(theirs.get_metadata_routing())
        weights = np.linspace(0.0, 1.0, 75)
        found, expected = (m.fit(X, y, sample_weight=weights) for m in (ours, theirs))
        assert np.array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_what_only_our_trees_can():
    with pytest.raises(ValueError, match="'n_estimators' parameter of BaggingClassifier must be"):
        BaggingClassifier(LINEAR, "auto").fit(X, y)
    with pytest.raises(ValueError, match="voting='hard' is for bags of gpuforest's trees"):
        BaggingClassifier(LINEAR, voting="hard").fit(X, y)
    with pytest.raises(ValueError, match="'max_depth' parameter of DecisionTreeClassifier"):
        BaggingClassifier(DecisionTreeClassifier(max_depth=0)).fit(X, y)
    with pytest.raises(ValueError, match="max_features=5 must be <= n_features=4"):
        BaggingClassifier(TREE, max_features=5).fit(X, y)
    with pytest.raises(TypeError, match="no foo in fit"):
        BaggingClassifier(TREE).fit(X, y, foo=1)
    with pytest.raises(ValueError, match=r"must be a gpuforest\.DecisionTreeRegressor here"):
        BaggingRegressor(TREE).fit(X, y)


def test_a_bag_of_others_is_no_forest(tmp_path):
    model = BaggingClassifier(LINEAR, 2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="an ensemble of SGDClassifier is no forest"):
        model.save(tmp_path / "bag")
    assert not (tmp_path / "bag").exists()
    with pytest.raises(TypeError, match="has no trees of gpuforest's"):
        gpuforest.export_text(model)
    with pytest.raises(TypeError, match="is not converted"):
        model.to_sklearn()
