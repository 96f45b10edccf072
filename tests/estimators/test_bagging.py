"""Bagged trees: what rows and features each one sees, and what scikit-learn's bags do.

For other estimators than our trees, scikit-learn's class of the same name does the work."""

import pickle

import numpy as np
import pytest
import sklearn.ensemble
from engine import same_forest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier as SklearnTree
from sklearn.utils import get_tags

import gpuforest as gf
from gpuforest.core.nodes import is_leaf, unpack
from gpuforest.estimators.foreign import sklearn_model

X, y = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)


def bag(backend, n_estimators=5, tree=None, **params):
    tree = gf.DecisionTreeClassifier() if tree is None else clone(tree)
    return gf.BaggingClassifier(
        tree.set_params(backend=backend), n_estimators, **{"random_state": 0, **params}
    )


def tree_values(model, X):
    """What each tree's leaves say of each row: f64[T, N, C]."""
    forest, leaves = model.forest_, model.apply(X)
    child = unpack(np, forest.nodes)[3]
    return np.stack(
        [forest.values[child[forest.tree_offsets[t] + own]] for t, own in enumerate(leaves.T)]
    )


@pytest.mark.parametrize(
    "params",
    [{}, {"max_samples": 50}, {"max_samples": 0.5, "bootstrap": False}, {"bootstrap": False}],
)
def test_a_tree_is_the_one_grown_from_its_rows(backend, params):
    model = bag(backend, 4, **params).fit(X, y)
    for t, rows in enumerate(model.estimators_samples_):
        counts = np.bincount(rows, minlength=len(X))
        alone = gf.DecisionTreeClassifier(backend=backend).fit(X[rows], y[rows])
        weighted = gf.DecisionTreeClassifier(backend=backend).fit(X, y, sample_weight=counts)
        values = tree_values(model, X[rows])[t]
        assert np.array_equal(values, weighted.predict_proba(X[rows]))
        assert np.array_equal(values, alone.predict_proba(X[rows]))


def test_weights_are_chances_with_replacement_and_statistics_without(backend):
    weights = np.where(np.arange(len(y)) % 3 == 0, 0, 2)
    for rows in bag(backend).fit(X, y, weights).estimators_samples_:
        assert (weights[rows] == 2).all()
    model = bag(backend, bootstrap=False, max_samples=100).fit(X, y, weights)
    for t, rows in enumerate(model.estimators_samples_):
        counts = np.bincount(y[rows], weights[rows], minlength=3)
        assert np.array_equal(model.forest_.node_sums(t, t + 1)[0], counts)
    half = bag(backend, bootstrap=False, max_samples=0.5).fit(X, y, weights)
    assert {len(rows) for rows in half.estimators_samples_} == {(weights > 0).sum() // 2}


def test_shares_of_a_weighted_bag_are_of_the_bag(backend):
    # equal weights change nothing, whatever they are
    weights = np.full(len(y), 3)
    for limit in ({"min_weight_fraction_leaf": 0.2}, {"min_impurity_decrease": 0.02}):
        tree = gf.DecisionTreeClassifier(**limit)
        model = bag(backend, tree=tree, bootstrap=False, max_samples=60)
        plain, weighted = model.fit(X, y).forest_, clone(model).fit(X, y, weights).forest_
        assert np.array_equal(plain.tree_offsets, weighted.tree_offsets)
        assert np.array_equal(plain.node_sums(0, 5) * 3, weighted.node_sums(0, 5))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("max_features", "n"), [(0.5, 6), (1, 1), (4, 4), (1.0, 13), (0.01, 1)])
def test_trees_use_no_other_features(backend, max_features, n, again):
    params = {"max_features": max_features, "bootstrap_features": again}
    model = bag(backend, 12, **params).fit(X, y)
    used = unpack(np, model.forest_.nodes)[0]
    for t, features in enumerate(model.estimators_features_):
        assert np.array_equal(features, np.unique(features))
        assert len(features) <= n if again else len(features) == n
        own = used[slice(*model.forest_.tree_offsets[t : t + 2])]
        assert set(own[own >= 0]) <= set(features)
    if n < 13:
        assert len({tuple(f) for f in model.estimators_features_}) > 5


def test_a_tree_is_the_one_grown_from_its_features(backend):
    model = bag(backend, 4, max_features=5, bootstrap=False).fit(X, y)
    for t, features in enumerate(model.estimators_features_):
        alone = gf.DecisionTreeClassifier(backend=backend).fit(X[:, features], y)
        assert np.array_equal(tree_values(model, X)[t], alone.predict_proba(X[:, features]))


def test_a_part_of_the_features_drawn_is_tried(backend):
    # of four drawn for a tree two are tried at a node, so the root's is not always the best
    tree = gf.DecisionTreeClassifier(max_features=0.5, max_depth=1)
    some = bag(backend, 30, tree=tree, max_features=4).fit(X, y)
    every = bag(backend, 30, max_features=4, tree=gf.DecisionTreeClassifier(max_depth=1)).fit(X, y)
    roots = [unpack(np, m.forest_.nodes[m.forest_.tree_offsets[:-1]])[0] for m in (some, every)]
    assert some.estimators_features_[7].tolist() == every.estimators_features_[7].tolist()
    assert (roots[0] != roots[1]).any()


@pytest.mark.parametrize("kind", ["forest", "bag"])
def test_hard_votes_are_the_majority_of_the_trees(backend, kind, tmp_path):
    params = {"voting": "hard", "random_state": 0}
    if kind == "forest":
        model = gf.RandomForestClassifier(7, max_depth=2, backend=backend, **params)
    else:
        model = bag(backend, 7, tree=gf.DecisionTreeClassifier(max_depth=2), **params)
    labels = np.array(["a", "b", "c"])[y]
    model.fit(X, labels)
    forest, leaves = model.forest_, model.apply(X)
    votes = np.zeros((len(X), 3))
    for t in range(7):
        sums = forest.node_sums(t, t + 1)
        assert is_leaf(forest.nodes[forest.tree_offsets[t] + leaves[:, t]]).all()
        votes[np.arange(len(X)), sums[leaves[:, t]].argmax(axis=1)] += 1
    assert np.array_equal(model.predict_proba(X), votes / 7)
    # tools that add up the trees' answers then give the forest's
    shares = [tree.predict_proba(X) for tree in model]
    assert np.array_equal(np.mean(shares, axis=0), votes / 7)
    model[0].save(tmp_path / "tree")
    assert np.array_equal(gf.load(tmp_path / "tree").predict_proba(X), shares[0])
    assert np.array_equal(model.predict(X), model.classes_[votes.argmax(axis=1)])
    soft = clone(model).set_params(voting="soft").fit(X, labels)
    assert np.array_equal(soft.apply(X), leaves)
    assert not np.array_equal(soft.predict_proba(X), votes / 7)


def test_out_of_bag_votes(backend):
    model = bag(backend, 40, voting="hard", oob_score=True).fit(X, y)
    out = np.stack([np.bincount(r, minlength=len(X)) == 0 for r in model.estimators_samples_])
    votes = (tree_values(model, X) * out[:, :, None]).sum(axis=0) / out.sum(axis=0)[:, None]
    assert np.array_equal(model.oob_decision_function_, votes)
    assert model.oob_score_ == np.mean(votes.argmax(axis=1) == y)


def test_parameters_of_the_tree(backend):
    model = bag(backend, tree=gf.DecisionTreeClassifier(max_depth=2, criterion="entropy"))
    params = model.get_params(deep=True)
    assert params["estimator__max_depth"] == 2
    assert params["estimator__criterion"] == "entropy"
    copy = clone(model).set_params(estimator__max_depth=1)
    assert copy.fit(X, y).forest_.depth == 1
    assert model.estimator.max_depth == 2
    assert model.fit(X, y).forest_.depth == 2
    assert model.criterion_ == "entropy"
    assert model.estimator_.get_params() == model.estimator.get_params()
    assert model.estimator_ is not model.estimator


FLOWERS, SPECIES = IRIS = [a[::2] for a in load_iris(return_X_y=True)]
LINEAR = SGDClassifier(loss="log_loss")
TREE = gf.DecisionTreeClassifier(backend="numpy")

PARAMS = [
    {},
    {"max_samples": 0.5, "max_features": 2},
    {"max_features": 3, "bootstrap": False, "bootstrap_features": True},
    {"oob_score": True, "n_estimators": 30},
]


def pair(name, estimator, **params):
    return (
        getattr(module, name)(clone(estimator), **{"random_state": 0, **params})
        for module in (gf, sklearn.ensemble)
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


def test_a_subclass_of_our_tree_does_what_it_does():
    class Stump(gf.DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            self.max_depth = 1
            return super().fit(FLOWERS, SPECIES, sample_weight)

    bag = gf.BaggingClassifier(Stump(backend="numpy"), 3, random_state=0).fit(FLOWERS, SPECIES)
    assert [tree.get_depth() for tree in bag.estimators_] == [1, 1, 1]


def test_copies_and_pickles():
    model = gf.BaggingClassifier(LINEAR, 3, random_state=0)
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert repr(clone(model)) == repr(model)
    again = pickle.loads(pickle.dumps(model.fit(FLOWERS, SPECIES)))
    assert type(again) is gf.BaggingClassifier
    assert np.array_equal(again.predict_proba(FLOWERS), model.predict_proba(FLOWERS))
    assert same(again.estimators_samples_, model.estimators_samples_)


def test_one_estimator_after_the_other():
    model = gf.BaggingClassifier(TREE, 3, random_state=0, warm_start=True).fit(FLOWERS, SPECIES)
    forest = model.forest_
    assert len(model.estimators_) == 3
    model.set_params(estimator=LINEAR).fit(FLOWERS, SPECIES)
    assert not hasattr(model, "forest_")
    assert not hasattr(model, "feature_importances_")
    assert len(model) == 3
    first = model.estimators_[0]
    model.set_params(n_estimators=5).fit(FLOWERS, SPECIES)  # warm start: two more
    assert len(model.estimators_) == 5
    assert model.estimators_[0] is first
    assert isinstance(model.estimator_, SGDClassifier)
    model.set_params(estimator=TREE, n_estimators=3).fit(FLOWERS, SPECIES)
    assert same_forest(model.forest_, forest)
    assert len(model.estimators_) == len(model.estimators_samples_) == 3


@pytest.mark.parametrize("name", ["BaggingClassifier", "AdaBoostClassifier"])
def test_ours_may_stand_in_scikit_learns_place(name, monkeypatch):
    """As where users re-bind the name, so that code that they do not own takes ours."""
    ours, theirs = pair(name, LINEAR, n_estimators=3)
    expected = theirs.fit(FLOWERS, SPECIES).predict(FLOWERS)
    monkeypatch.setattr(sklearn.ensemble, name, getattr(gf, name))
    assert np.array_equal(ours.fit(FLOWERS, SPECIES).predict(FLOWERS), expected)
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
        found, expected = (m.fit(FLOWERS, SPECIES, sample_weight=weights) for m in (ours, theirs))
        assert np.array_equal(found.predict_proba(FLOWERS), expected.predict_proba(FLOWERS))


def test_what_only_our_trees_can():
    for tree in (TREE, SklearnTree()):
        assert not hasattr(gf.BaggingClassifier(tree), "decision_function")
    with pytest.raises(ValueError, match="'n_estimators' parameter of BaggingClassifier must be"):
        gf.BaggingClassifier(LINEAR, "auto").fit(FLOWERS, SPECIES)
    with pytest.raises(ValueError, match="voting='hard' is for bags of gpuforest's trees"):
        gf.BaggingClassifier(LINEAR, voting="hard").fit(FLOWERS, SPECIES)
    with pytest.raises(ValueError, match="'max_depth' parameter of DecisionTreeClassifier"):
        gf.BaggingClassifier(gf.DecisionTreeClassifier(max_depth=0)).fit(FLOWERS, SPECIES)
    with pytest.raises(ValueError, match="max_features=5 must be <= n_features=4"):
        gf.BaggingClassifier(TREE, max_features=5).fit(FLOWERS, SPECIES)
    with pytest.raises(TypeError, match="no foo in fit"):
        gf.BaggingClassifier(TREE).fit(FLOWERS, SPECIES, foo=1)
    with pytest.raises(ValueError, match=r"must be a gpuforest\.DecisionTreeRegressor here"):
        gf.BaggingRegressor(TREE).fit(FLOWERS, SPECIES)


def test_a_bag_of_others_is_no_forest(tmp_path):
    model = gf.BaggingClassifier(LINEAR, 2, random_state=0).fit(FLOWERS, SPECIES)
    with pytest.raises(ValueError, match="an ensemble of SGDClassifier is no forest"):
        model.save(tmp_path / "bag")
    assert not (tmp_path / "bag").exists()
    with pytest.raises(TypeError, match="has no trees of gpuforest's"):
        gf.export_text(model)
    with pytest.raises(TypeError, match="is not converted"):
        model.to_sklearn()
