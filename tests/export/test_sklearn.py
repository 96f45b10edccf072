"""Trees go to scikit-learn and come back: equal predictions, missing values among them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from engine import table
from sklearn import ensemble, tree
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import partial_dependence
from sklearn.neighbors import KNeighborsClassifier

import gpuforest
from gpuforest import DecisionTreeClassifier, RandomForestRegressor, from_sklearn
from gpuforest.export.sklearn import HOMES

RNG = np.random.default_rng(0)
X = table(RNG, 300, list("cnNfm"), np.float32)  # what scikit-learn's trees look at
NEW = table(RNG, 300, list("nnNnn"), np.float32)  # missing also where it was not in training
LABELS = np.array(["a", "b", "c"])[(np.nan_to_num(X[:, 1]) + X[:, 0] > 0) + (X[:, 3] > 0) * 1]
NUMBERS = np.nan_to_num(X[:, 1]) * X[:, 3] + X[:, 0]
COUNTS = np.abs(NUMBERS * 3).round() + 1
CASES = [
    ("DecisionTreeClassifier", "gini", LABELS),
    ("DecisionTreeClassifier", "entropy", LABELS),
    ("DecisionTreeRegressor", "squared_error", NUMBERS),
    ("DecisionTreeRegressor", "poisson", COUNTS),
    ("RandomForestClassifier", "gini", LABELS),
    ("RandomForestClassifier", "log_loss", LABELS),
    ("RandomForestRegressor", "squared_error", NUMBERS),
    ("RandomForestRegressor", "poisson", COUNTS),
]
EACH = pytest.mark.parametrize(("name", "criterion", "y"), CASES)


def given(name, **more):
    """Parameters that both packages know."""
    if name.startswith("RandomForest"):
        more["n_estimators"] = 6
    return {"random_state": 0, "max_depth": 7, "min_samples_leaf": 2, **more}


def sklearn_kind(name):
    return getattr(ensemble if HOMES[name] == "sklearn.ensemble" else tree, name)


def predictions(model, X):
    """All that a model says of X."""
    methods = ("predict", "predict_proba") if hasattr(model, "classes_") else ("predict",)
    return [getattr(model, method)(X) for method in methods]


def same(a, b):
    return all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))


@EACH
def test_scikit_learn_predicts_what_we_do(backend, name, criterion, y):
    ours = getattr(gpuforest, name)(**given(name, criterion=criterion), backend=backend).fit(X, y)
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
    assert clone(theirs).fit(X, y).n_features_in_ == 5


@EACH
@pytest.mark.parametrize("weighed", [False, True])
def test_we_predict_what_scikit_learn_does(backend, name, criterion, y, weighed):
    weights = np.random.default_rng(1).integers(1, 5, len(y)) if weighed else None
    theirs = sklearn_kind(name)(**given(name, criterion=criterion)).fit(X, y, weights)
    ours = from_sklearn(theirs).set_params(backend=backend)
    assert type(ours) is getattr(gpuforest, name)
    assert ours.get_params().items() >= given(name, criterion=criterion).items()
    for rows in (X, NEW):
        found, expected = predictions(ours, rows), predictions(theirs, rows)
        if hasattr(ours, "classes_"):
            assert same(found, expected)
        else:  # means lie on the grid of the fixed point here
            assert np.allclose(found, expected, 1e-12, 1e-12)
    assert np.allclose(ours.feature_importances_, theirs.feature_importances_, 1e-9, 1e-9)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("DecisionTreeClassifier", {}),
        ("ExtraTreesClassifier", {"n_estimators": 2}),
        ("AdaBoostClassifier", {"n_estimators": 2}),
        ("HistGradientBoostingClassifier", {"max_iter": 2}),
        ("IsolationForest", {"n_estimators": 2}),
    ],
)
def test_scikit_learns_own_is_given_where_ours_stand_in_its_place(name, params, monkeypatch):
    model = getattr(gpuforest, name)(backend="numpy", **params).fit(X, LABELS)
    for module, other in ((tree, "DecisionTreeClassifier"), (ensemble, name)):
        monkeypatch.setattr(module, other, getattr(gpuforest, other), raising=False)
    found = model.to_sklearn()
    assert type(found).__module__.startswith("sklearn.")
    assert found.n_features_in_ == X.shape[1]


@pytest.mark.parametrize("name", sorted(HOMES))
def test_fractional_weights(name):
    y = LABELS if name.endswith("Classifier") else NUMBERS
    weights = np.random.default_rng(1).random(len(y))
    theirs = sklearn_kind(name)(**given(name)).fit(X, y, weights)
    found, expected = predictions(from_sklearn(theirs), NEW)[-1], predictions(theirs, NEW)[-1]
    # weights become whole numbers of a total of 2**30: a leaf's rounds in its last bits
    assert np.allclose(found, expected, 1e-5, 1e-6)


@pytest.mark.parametrize("name", sorted(HOMES))
def test_there_and_back(name, tmp_path):
    y = LABELS if name.endswith("Classifier") else COUNTS
    ours = getattr(gpuforest, name)(**given(name), backend="numpy").fit(X, y)
    back = from_sklearn(ours.to_sklearn())
    back.save(tmp_path / "model")
    for other in (back, gpuforest.load(tmp_path / "model")):
        if y is LABELS:
            assert np.array_equal(other.forest_.leaf_sums, ours.forest_.leaf_sums)
        assert np.array_equal(other.apply(NEW), ours.apply(NEW))
        # means are put on a grid anew
        assert np.allclose(predictions(other, NEW)[-1], predictions(ours, NEW)[-1], 1e-12, 1e-12)
        assert (other.seed_, other.n_features_in_, other.n_outputs_) == (0, 5, 1)


@pytest.mark.parametrize("kind", [ensemble.RandomForestClassifier, ensemble.ExtraTreesRegressor])
def test_several_outputs(kind):
    is_classes = kind is ensemble.RandomForestClassifier
    y = np.stack([LABELS, NUMBERS > 0] if is_classes else [NUMBERS, COUNTS], axis=1)
    full = np.nan_to_num(X)
    theirs = kind(5, max_depth=4, random_state=0).fit(full, y)
    ours = from_sklearn(theirs)
    for other in (ours, ours.to_sklearn()):
        assert other.n_outputs_ == 2
        if is_classes:
            assert np.array_equal(other.predict(full), theirs.predict(full))
            assert [list(c) for c in other.classes_] == [list(c) for c in theirs.classes_]
            for a, b in zip(other.predict_proba(full), theirs.predict_proba(full), strict=True):
                assert np.allclose(a, b, rtol=1e-12)  # their shares are of rounded sums
        else:  # means are rounded to the grid
            assert np.allclose(other.predict(full), theirs.predict(full), rtol=1e-12, atol=1e-12)


def test_impurity_travels():
    theirs = tree.DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, NUMBERS)
    ours = from_sklearn(theirs)
    back = ours.to_sklearn()
    # scikit-learn's is a difference of squares, which rounds
    assert np.allclose(np.sort(back.tree_.impurity), np.sort(theirs.tree_.impurity), 1e-9, 1e-12)
    assert np.array_equal(back.tree_.impurity, ours.tree_.impurity)


def test_trees_that_grew_best_first_come_in_our_order():
    theirs = tree.DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(X, LABELS)
    assert (np.diff(theirs.tree_.children_left[theirs.tree_.children_left > 0]) < 0).any()
    assert same(predictions(from_sklearn(theirs), NEW), predictions(theirs, NEW))


def test_names_of_features_and_classes_travel():
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    theirs = ensemble.RandomForestClassifier(3, random_state=5).fit(frame, LABELS)
    ours = from_sklearn(theirs)
    assert ours.feature_names_in_.tolist() == list("vwxyz")
    assert ours.classes_.tolist() == ["a", "b", "c"]
    assert (ours.n_classes_, ours.n_features_in_, ours.seed_) == (3, 5, 5)
    assert same(predictions(ours, frame), predictions(theirs, frame))
    back = ours.to_sklearn()
    assert back.feature_names_in_.tolist() == list("vwxyz")
    assert same(predictions(back, frame), predictions(theirs, frame))


def test_misclassification_becomes_gini(backend):
    ours = DecisionTreeClassifier(criterion="misclassification", max_depth=3, backend=backend)
    theirs = ours.fit(X, LABELS).to_sklearn()
    assert theirs.criterion == "gini"
    value = theirs.tree_.value[:, 0]
    assert np.array_equal(theirs.tree_.impurity, 1 - (value**2).sum(axis=1))
    assert same(predictions(ours, NEW), predictions(theirs, NEW))


def test_a_tree_of_one_leaf():
    ours = DecisionTreeClassifier(backend="numpy").fit(np.ones((4, 2)), [0, 1, 1, 1])
    for other in (ours.to_sklearn(), from_sklearn(ours.to_sklearn())):
        assert other.predict_proba([[1.0, 2.0]]).tolist() == [[0.25, 0.75]]


def test_scikit_learns_tools_take_what_comes(backend):
    data = load_iris()
    ours = DecisionTreeClassifier(max_depth=2, random_state=0, backend=backend)
    theirs = ours.fit(data.data, data.target).to_sklearn()
    text = tree.export_text(theirs, feature_names=data.feature_names)
    assert text.count("class:") == ours.get_n_leaves()
    assert tree.export_graphviz(theirs).count("samples = ") == ours.tree_.node_count
    assert tree.export_graphviz(theirs) == tree.export_graphviz(ours)
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0, backend=backend).fit(X, y).to_sklearn()
    found = partial_dependence(forest, X, [2], method="recursion")
    rises = found["average"][0]
    assert rises[-1] > rises[0]


def test_a_tree_is_drawn():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    ours = DecisionTreeClassifier(max_depth=2, backend="numpy").fit(X, LABELS)
    assert len(tree.plot_tree(ours.to_sklearn())) >= ours.tree_.node_count


def test_models_of_an_unknown_criterion_are_refused():
    model = tree.DecisionTreeRegressor(max_depth=2).fit(np.nan_to_num(X), NUMBERS)
    with pytest.raises(ValueError, match="criterion"):
        from_sklearn(model.set_params(criterion="of another release"))


def test_other_models_are_refused():
    for model in (KNeighborsClassifier(), None, DecisionTreeClassifier()):
        with pytest.raises(TypeError, match="from_sklearn takes a fitted"):
            from_sklearn(model)
    with pytest.raises(ValueError, match="not fitted"):
        from_sklearn(tree.DecisionTreeClassifier())
    with pytest.raises(ValueError, match="not fitted"):
        DecisionTreeClassifier().to_sklearn()


def test_too_many_thresholds_are_refused():
    values = np.arange(65_536, dtype=np.float32)[:, None]
    few = tree.DecisionTreeRegressor().fit(values[1:], values[1:, 0])
    found = from_sklearn(few)
    assert found.forest_.edges.n_bins.tolist() == [65_535]
    # means lie on the grid of the fixed point
    assert np.allclose(found.predict(values[1:]), values[1:, 0], 1e-12)
    with pytest.raises(ValueError, match="feature 0 has 65535 distinct thresholds"):
        from_sklearn(tree.DecisionTreeRegressor().fit(values, values[:, 0]))
