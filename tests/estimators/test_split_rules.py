"""What rules forbid a split: least weight, monotonic predictions, few leaves; and random cuts."""

import numpy as np
import pytest
from engine import same_forest, table
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.tree import DecisionTreeClassifier as SklearnClassifier
from sklearn_trees import compare_trees

import gpuforest as gf
from gpuforest.core.nodes import is_leaf

CLASSIFIERS = [gf.DecisionTreeClassifier, gf.RandomForestClassifier, gf.ExtraTreesClassifier]
REGRESSORS = [gf.DecisionTreeRegressor, gf.RandomForestRegressor, gf.ExtraTreesRegressor]


def least_share(model):
    """The lightest leaf's share of its tree's weight."""
    forest, shares = model.forest_, []
    for t in range(forest.n_trees):
        sums = forest.node_sums(t, t + 1)
        weight = sums[:, 0] if forest.coding.classes is None else sums.sum(axis=1)
        leaf = is_leaf(forest.nodes[slice(*forest.tree_offsets[t : t + 2])])
        shares.append(weight[leaf].min() / weight[0])
    return min(shares)


@pytest.mark.parametrize("share", [0.03, 0.3])
@pytest.mark.parametrize("Model", [*CLASSIFIERS, *REGRESSORS])
def test_every_leaf_has_its_share_of_the_weight(backend, Model, share):
    X, y = load_diabetes(return_X_y=True)
    y = y if Model in REGRESSORS else np.digitize(y, [100, 200])
    weights = np.random.default_rng(0).random(len(y))
    params = {"min_weight_fraction_leaf": share, "random_state": 0, "backend": backend}
    for model in (Model(**params), Model(**params, max_depth=4)):
        if hasattr(model, "n_estimators"):
            model.set_params(n_estimators=4)
        for sample_weight in (None, weights):
            assert least_share(model.fit(X, y, sample_weight)) >= share
    if Model in (gf.DecisionTreeClassifier, gf.ExtraTreesClassifier):  # no bags of any weight
        model.set_params(class_weight={0: 3, 1: 1, 2: 2})
        assert least_share(model.fit(X, y)) >= share


def assert_monotonic(model, X, signs, predicted):
    """Along each constrained feature, the others as they are in some rows of X."""
    for f, sign in enumerate(signs):
        if not sign:
            continue
        values = np.unique(X[~np.isnan(X[:, f]), f])
        values = np.concatenate([[-1e9], values, [1e9]])
        rows = np.repeat(X[:12], len(values), axis=0)
        rows[:, f] = np.tile(values, len(X[:12]))
        steps = np.diff(predicted(model, rows).reshape(-1, len(values)), axis=1)
        assert (steps * sign >= 0).all()


@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(["gini", "entropy", "squared_error", "poisson"]),
    which=st.integers(0, 2),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4),
)
def test_predictions_are_monotonic(seed, kind, which, signs):
    rng = np.random.default_rng(seed)
    X = table(rng, int(rng.integers(5, 120)), list("cnfc"))
    is_classes = kind in ("gini", "entropy")
    signal = X[:, 0] + np.nan_to_num(X[:, 1]) - X[:, 2] + rng.normal(size=len(X))
    y = (signal > 0) if is_classes else signal if kind == "squared_error" else np.exp(signal)
    Model = (CLASSIFIERS if is_classes else REGRESSORS)[which]
    params = {"criterion": kind, "random_state": seed % 5, "monotonic_cst": signs}
    if which:
        params["n_estimators"] = 3
    weights = None if seed % 2 else rng.random(len(X))
    model = Model(**params, backend="numba").fit(X, y, weights)
    assert_monotonic(
        model, X, signs, lambda m, x: m.predict_proba(x)[:, -1] if is_classes else m.predict(x)
    )


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_monotonic_forests_learn_still(voting):
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    params = {"random_state": 0, "voting": voting}
    free = gf.RandomForestClassifier(20, **params).fit(X, y)
    bound = gf.RandomForestClassifier(20, **params, monotonic_cst=[-1] * 4).fit(X, y)
    assert_monotonic(bound, X, [-1] * 4, lambda m, x: m.predict_proba(x)[:, 1])
    with pytest.raises(AssertionError):
        assert_monotonic(free, X, [-1] * 4, lambda m, x: m.predict_proba(x)[:, 1])
    assert bound.score(X, y) > 0.85


@pytest.mark.parametrize("signs", [[1, -1, 1, -1], [1, -1, 0, 0], [0, 0, 0, -1]])
def test_monotonic_classes_are_scikit_learns(backend, signs):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 12, (500, 4)).astype(np.float32)
    y = (X[:, 0] - X[:, 1] + 4 * np.sin(X[:, 2]) + 3 * rng.normal(size=500) > 0).astype(int)
    params = {"monotonic_cst": signs, "min_samples_leaf": 10}
    ours = gf.DecisionTreeClassifier(**params, backend=backend).fit(X, y)
    theirs = SklearnClassifier(**params, random_state=0).fit(X, y)
    same, ties = compare_trees(ours, theirs, X, y, is_classes=True)
    assert same >= 10
    assert ties <= 1


def test_one_class_alone_is_monotonic(backend):
    model = gf.RandomForestClassifier(2, monotonic_cst=[1], backend=backend)
    assert model.fit([[0], [1]], ["a", "a"]).predict_proba([[5]]).tolist() == [[1]]


DIABETES, SUGAR = load_diabetes(return_X_y=True)


@pytest.mark.parametrize(("signs", "message"), [
    ([0, 0], "has shape 2 but the input data X has 10 features"), ([[1] * 10], r"shape \(1, 10\)"),
    *(
        ([bad] + [0] * 9, "must be None or an array-like of -1, 0 or 1")
        for bad in (2, 0.5, np.nan, None)
    ),
    ("up", "array-like"),
])  # fmt: skip
def test_bad_signs_are_refused_before_any_work(monkeypatch, signs, message):
    def work(*args, **params):
        raise AssertionError("binning began")

    monkeypatch.setattr("gpuforest.growing.edges.fit_edges", work)
    bag = gf.BaggingClassifier(gf.DecisionTreeClassifier(monotonic_cst=signs))
    for model in (gf.ExtraTreesClassifier(monotonic_cst=signs), bag):
        with pytest.raises(ValueError, match=message):
            model.fit(DIABETES, SUGAR > 100)


def test_few_leaves_and_least_decreases_stand_side_by_side(backend):
    X, y = load_diabetes(return_X_y=True)
    params = {"n_estimators": 3, "random_state": 0, "backend": backend}
    least = gf.RandomForestRegressor(**params, min_impurity_decrease=50).fit(X, y)
    many = {"max_leaf_nodes": 10**6, "ccp_alpha": 1e-300}
    assert same_forest(least.set_params(**many).fit(X, y).forest_, least.forest_)
    few = gf.RandomForestRegressor(**params, min_impurity_decrease=50, max_leaf_nodes=4).fit(X, y)
    assert np.diff(few.forest_.tree_offsets).max() <= 7
    assert few.forest_.n_nodes < least.forest_.n_nodes
