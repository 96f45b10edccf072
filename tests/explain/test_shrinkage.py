"""Hierarchical shrinkage: what leaves predict, how lambda is chosen, who reads shrunk leaves."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from engine import same_forest
from sklearn.datasets import load_diabetes, load_iris, make_classification

import gpuforest as gf
from gpuforest.common.errors import ModelFormatError
from gpuforest.core import forest as core
from gpuforest.core.forest import check_forest
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.core.rules import Sampling
from gpuforest.explain.paths import one_tree, split_nodes
from gpuforest.tools.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
IRIS, NUMBERS = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
NOISY = make_classification(300, 8, n_informative=3, n_redundant=0, flip_y=0.3, random_state=0)
TWO = NOISY[0], np.stack([NOISY[1], NOISY[1] + (NOISY[0][:, 0] > 0)], axis=1)
COUNTS = NUMBERS[0], np.maximum(np.round(NUMBERS[1] / 40) - 2, 0)
FEW = {"n_estimators": 12, "random_state": 0}
TOWNS = np.random.default_rng(0).integers(0, 6, 300)


def times(n=200, causes=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.empty(n, [("event", int if causes > 1 else bool), ("time", float)])
    y["event"], y["time"] = rng.integers(0, causes + 1, n), rng.exponential(np.exp(-X[:, 0])) + 0.01
    return X, y


def by_the_formula(forest, t, means, rows, shrinkage):
    """What each node of a tree predicts as a leaf, by equation 1 of the paper."""
    found = np.array(means)
    for split, left in zip(*split_nodes(forest, t, t + 1), strict=True):
        for child in (left, left + 1):
            step = (means[child] - means[split]) / (1 + shrinkage / rows[split])
            found[child] = found[split] + step
    return found


@pytest.mark.parametrize(("kind", "data", "params"), [
    (gf.RandomForestClassifier, NOISY, {}),
    (gf.RandomForestClassifier, TWO, {}),
    (gf.ExtraTreesClassifier, IRIS, {}),
    (gf.RandomForestRegressor, NUMBERS, {}),
    (gf.RandomForestRegressor, COUNTS, {"criterion": "poisson"}),
    (gf.ExtraTreesRegressor, (NUMBERS[0], np.stack([NUMBERS[1], NUMBERS[0][:, 2]], axis=1)), {}),
    (gf.RandomForestRegressor, NUMBERS, {"criterion": "absolute_error", "max_depth": 4}),
    (gf.DecisionTreeRegressor, NUMBERS, {"min_samples_leaf": 5}),
    (gf.DecisionTreeClassifier, NOISY, {"ccp_alpha": 0.005}),
    (gf.RandomForestClassifier, NOISY, {"max_leaf_nodes": 9, "class_weight": "balanced"}),
])  # fmt: skip
def test_leaves_follow_the_formula(kind, data, params):
    X, y = data
    params = {"random_state": 0, **params} | ({} if "Tree" in kind.__name__[:12] else FEW)
    plain = kind(**params).fit(X, y)
    shrunk = kind(**params, shrinkage=7.5).fit(X, y)
    bags = shrunk._sampling_.mean_weight  # of class weights; else 1
    assert (bags == 1) == ("class_weight" not in params)
    trees = [plain], [shrunk]
    if hasattr(plain, "estimators_"):
        trees = plain.estimators_, shrunk.estimators_
    for t, (one, other) in enumerate(zip(*trees, strict=True)):
        before, after = one.tree_, other.tree_
        rows = before.weighted_n_node_samples / bags
        wanted = by_the_formula(plain.forest_, t, before.value, rows, 7.5)
        np.testing.assert_allclose(after.value, wanted, rtol=0, atol=1e-12 * abs(y).max())
        np.testing.assert_array_equal(after.impurity, before.impurity)
        found = other.predict_proba(X) if hasattr(other, "predict_proba") else other.predict(X)
        if not isinstance(found, list):
            of_leaf = after.value[other.apply(X)].reshape(len(X), -1)
            np.testing.assert_array_equal(np.reshape(found, of_leaf.shape), of_leaf)


def test_branches_of_a_chain_hang_on_one_node():
    X = np.column_stack([TOWNS, NUMBERS[0][:300, 2]])
    y = NUMBERS[1][:300] + 80 * (TOWNS % 3)
    given = {"categorical_features": [0], "categorical_split": "multiway", "max_depth": 1}
    tree = gf.DecisionTreeRegressor(**given, shrinkage=20.0).fit(X, y)
    assert tree.get_n_leaves() == 6
    for town in range(6):
        own = y[town == TOWNS].mean()
        wanted = y.mean() + (own - y.mean()) / (1 + 20 / 300)
        assert tree.predict([[town, 0.0]])[0] == pytest.approx(wanted, rel=1e-9)


def test_all_of_it_gives_the_roots():
    most = gf.RandomForestClassifier(**FEW, shrinkage=1e12).fit(*NOISY)
    roots = np.mean([tree.tree_.value[0, 0] for tree in most.estimators_], axis=0)
    np.testing.assert_allclose(most.predict_proba(NOISY[0]), np.tile(roots, (300, 1)), atol=1e-9)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_one_tree_at_a_time_is_the_same(voting, monkeypatch):
    kind = partial(gf.RandomForestClassifier, **FEW, shrinkage="oob", voting=voting)
    whole = kind().fit(*NOISY)
    monkeypatch.setattr(core, "GROUP_VALUES", 1)
    one = kind(backend="numpy").fit(*NOISY)
    np.testing.assert_array_equal(one.oob_shrinkage_.error, whole.oob_shrinkage_.error)
    np.testing.assert_array_equal(one.predict_proba(NOISY[0]), whole.predict_proba(NOISY[0]))
    votes = [tree.predict_proba(NOISY[0])[:, 1] for tree in whole.estimators_]
    votes = np.mean(np.greater(votes, 0.5) if voting == "hard" else votes, axis=0)
    np.testing.assert_allclose(whole.predict_proba(NOISY[0])[:, 1], votes, atol=1e-12)


@pytest.mark.parametrize(("kind", "data"), [
    (gf.RandomForestClassifier, NOISY), (gf.RandomForestClassifier, TWO),
    (gf.RandomForestRegressor, NUMBERS), (gf.RandomSurvivalForest, times()),
])  # fmt: skip
def test_lambda_has_the_least_loss_out_of_bag(kind, data):
    model = kind(**FEW, shrinkage="oob", oob_score=True, bootstrap=True).fit(*data)
    tried = model.oob_shrinkage_
    assert model.shrinkage_ == tried.shrinkage[tried.error.argmin()]
    assert (tried.shrinkage[0] == 0) == (not hasattr(model, "classes_"))
    by_number = kind(**FEW, shrinkage=model.shrinkage_, oob_score=True, bootstrap=True).fit(*data)
    assert same_forest(by_number.forest_, model.forest_)
    assert by_number.oob_score_ == model.oob_score_
    assert model.estimator_.shrinkage == model.shrinkage_
    if kind is gf.RandomForestRegressor:  # the loss is that of the forest's own predictions
        error = np.nanmean((data[1] - model.oob_prediction_) ** 2)
        assert error == pytest.approx(tried.error.min(), rel=1e-12)


def test_blocks_of_time_judge():
    blocks = np.arange(len(NUMBERS[1])) // 60
    given = {**FEW, "shrinkage": "oob", "oob_score": True}
    model = gf.RandomForestRegressor(**given).fit(*NUMBERS, blocks=blocks)
    plain = gf.RandomForestRegressor(**given).fit(*NUMBERS)
    assert (model.oob_shrinkage_.error != plain.oob_shrinkage_.error).any()
    seen = ~np.isnan(model.oob_prediction_)
    judged = np.mean((NUMBERS[1] - model.oob_prediction_)[seen] ** 2)
    assert judged == pytest.approx(model.oob_shrinkage_.error.min(), rel=1e-12)


def test_weights_count_relative_to_their_mean():
    X, y = NUMBERS
    weight = np.random.default_rng(0).uniform(0.2, 3, len(y))
    fit = gf.DecisionTreeRegressor(max_depth=3, shrinkage=9.0, random_state=0).fit
    tree = fit(X, y, weight).forest_
    assert tree.shrinkage / 9 == pytest.approx(tree.node_sums(0, 1)[0, 0] / len(y))
    assert Sampling(4, 0, np.array([2, 0, 4, 6], np.int32)).mean_weight == 4.0
    assert Sampling(4, 4, np.array([2, 0, 4, 6], np.int32)).mean_weight == 1.0  # chances


@pytest.mark.parametrize("causes", [1, 2])
@pytest.mark.parametrize("shrinkage", [6.0, "oob"])
def test_curves_are_shrunk_as_risks_are(causes, shrinkage):
    X, y = times(causes=causes)
    given = {"shrinkage": shrinkage, "n_times": 500, **FEW}
    forest = gf.RandomSurvivalForest(**given).fit(X, y)
    risks = forest.predict(X).reshape(len(X), -1)
    incidence, total = forest.predict_cumulative_incidence_function, 0.0
    for cause in range(1, causes + 1):
        hazard = forest.predict_cumulative_hazard_function(X, return_array=True, cause=cause)
        np.testing.assert_allclose(hazard.sum(axis=1), risks[:, cause - 1], rtol=1e-9)
        assert (np.diff(hazard, axis=1) >= -1e-12).all()
        total += incidence(X, return_array=True, cause=cause)
    left = forest.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(left + total, 1, atol=1e-9)
    tree = one_tree(forest.forest_, 0)
    rows = tree.node_sums(0, 1)[:, 0] / (tree.shrinkage / forest.shrinkage_)
    wanted = by_the_formula(tree, 0, survival_means(X, y, forest), rows, forest.shrinkage_)
    leaf = is_leaf(tree.nodes)
    np.testing.assert_allclose(tree.values[leaf_rows(tree.nodes[leaf])], wanted[leaf], rtol=1e-9)


def survival_means(X, y, forest):
    """Risks f64[m, K] of the nodes of the first tree, whose rows' hazards are summed here."""
    tree, bag = forest.estimators_[0], np.bincount(forest.estimators_samples_[0], minlength=len(X))
    path, grid = tree.decision_path(X).toarray() > 0, np.unique(y["time"][y["event"] > 0])
    found = np.zeros((path.shape[1], int(y["event"].max())))
    for node, cause in np.ndindex(found.shape):
        w = bag * path[:, node]
        for i, time in enumerate(grid):
            died = w[(y["time"] == time) & (y["event"] == cause + 1)].sum()
            found[node, cause] += died and died / w[y["time"] >= time].sum() * (len(grid) - i)
    return found


def test_who_reads_leaves_reads_shrunk_ones(tmp_path):
    X, y = NOISY
    model = gf.RandomForestClassifier(**FEW, shrinkage="oob", max_depth=5).fit(X, y)
    wanted = model.predict_proba(X)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), wanted, atol=1e-12)
    shap = model.shap_values(X[:9]).sum(axis=1) + model.expected_value_
    np.testing.assert_allclose(shap, wanted[:9], atol=1e-9)
    model.save(tmp_path / "model")
    for copy in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict_proba(X), wanted)
        assert copy.shrinkage_ == model.shrinkage_ > 0
        np.testing.assert_array_equal(copy.oob_shrinkage_.error, model.oob_shrinkage_.error)
    tree = gf.DecisionTreeRegressor(shrinkage=3.0, ccp_alpha="cv", random_state=0).fit(*NUMBERS)
    means = tree.tree_.value[:, 0, 0]
    assert tree.forest_.shrinkage == 3.0
    np.testing.assert_array_equal(tree.predict(NUMBERS[0]), means[tree.apply(NUMBERS[0])])


@pytest.mark.parametrize("change", [
    {"shrinkage": -1.0}, {"shrinkage": np.inf}, {"shrinkage": 1}, {"combine": "sum"},
])  # fmt: skip
def test_damaged_forests_are_refused(change):
    shrunk = gf.RandomForestRegressor(**FEW, shrinkage=2.0).fit(*NUMBERS).forest_
    check_forest(shrunk)
    with pytest.raises(ModelFormatError):
        check_forest(replace(shrunk, **change))
    plain = gf.RandomForestClassifier(**FEW).fit(*NOISY).forest_
    with pytest.raises(ModelFormatError, match="share a row"):
        check_forest(replace(plain, shrinkage=2.0))


def test_presets_leave_no_share_at_zero():
    X, y = IRIS
    model = gf.RandomForestClassifier.preset("accurate", random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    assert 0 < shares.min() < shares.max() < 1
    assert model.shrinkage_ > 0
    signed = gf.RandomForestClassifier.preset("accurate", monotonic_cst=[1] * 8)
    assert signed.shrinkage == 0


def test_what_is_refused():
    X, y = NOISY
    with pytest.raises(ValueError, match="shrinkage='oob' needs bootstrap=True"):
        gf.ExtraTreesClassifier(shrinkage="oob").fit(X, y)
    for wrong in (-1.0, np.nan, "auto", None):
        with pytest.raises(ValueError, match="'shrinkage' parameter"):
            gf.RandomForestClassifier(shrinkage=wrong).fit(X, y)
    tree = gf.DecisionTreeClassifier(shrinkage=1.0, max_depth=2)
    with pytest.raises(ValueError, match="AdaBoost weighs trees"):
        gf.AdaBoostClassifier(tree).fit(X, y)
    bag = gf.BaggingClassifier(tree, **FEW).fit(X, y)
    assert bag.forest_.shrinkage == 1.0


def test_the_command_line(tmp_path):
    data, model = tmp_path / "d.csv", tmp_path / "model"
    np.savetxt(data, np.column_stack(NOISY), delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="")
    words = f"--target y --shrinkage oob --n-estimators 8 --out {model}".split()
    assert not main(["train", str(data), *words])
    assert gf.load(model).shrinkage_ > 0
