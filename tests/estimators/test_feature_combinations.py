"""feature_combinations on all estimators, with everything that reads their trees."""

import numpy as np
import pytest

import gpuforest
from gpuforest.backends import base, numpy, registry
from gpuforest.common.errors import ModelFormatError
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.nodes import MOST_COMBINED, combined, is_leaf
from gpuforest.explain.importances import split_features
from gpuforest.export.conditions import Range
from gpuforest.splits.kinds import kind_for

rng = np.random.default_rng(0)
X = rng.normal(size=(500, 4))
X[rng.random(X.shape) < 0.1] = np.nan
FILLED = np.nan_to_num(X)
Y = (FILLED.sum(axis=1) > 0).astype(int)
Z = FILLED[:, 0] + FILLED[:, 1]
OBLIQUE = {"feature_combinations": 2.0, "random_state": 0}
TREE = gpuforest.DecisionTreeClassifier(max_features=8, **OBLIQUE)
FOREST = gpuforest.RandomForestClassifier(10, **OBLIQUE)


@pytest.mark.parametrize(("model", "y"), [
    (TREE, Y), (gpuforest.DecisionTreeRegressor(**OBLIQUE), Z), (FOREST, Y),
    (gpuforest.RandomForestRegressor(10, combination_weights="integer", **OBLIQUE), Z),
    (gpuforest.ExtraTreesClassifier(10, **OBLIQUE), Y),
    (gpuforest.ExtraTreesRegressor(10, **OBLIQUE), Z),
    (gpuforest.BaggingClassifier(TREE, 10, max_features=0.8, random_state=0), Y),
    (gpuforest.BaggingRegressor(gpuforest.DecisionTreeRegressor(**OBLIQUE), 10), Z),
    (gpuforest.AdaBoostClassifier(TREE, n_estimators=5, random_state=0), Y),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_estimators(model, y):
    model.fit(X, y)
    assert model.forest_.oblique
    assert (combined(model.forest_.nodes) > 1).any()
    assert model.score(X, y) > 0.85


def test_what_other_parameters_make_of_it():
    many = gpuforest.RandomForestClassifier(2, max_features=20, **OBLIQUE).fit(X, Y)
    assert many.max_features_ == 20
    tuned = gpuforest.RandomForestClassifier(5, max_features="oob", **OBLIQUE).fit(X, Y)
    assert 1 <= tuned.max_features_ <= 4
    plain = gpuforest.RandomForestClassifier(5, random_state=0).fit(X, Y)
    one = gpuforest.RandomForestClassifier(5, random_state=0, feature_combinations=1).fit(X, Y)
    assert np.array_equal(plain.forest_.nodes, one.forest_.nodes)
    out_of_bag = gpuforest.RandomForestClassifier(50, oob_score=True, **OBLIQUE).fit(X, Y)
    assert out_of_bag.oob_score_ > 0.9


@pytest.mark.parametrize(
    "changes", [{"ccp_alpha": 0.01}, {"ccp_alpha": "cv"}, {"max_leaf_nodes": 6}]
)
def test_pruned_trees_keep_their_combinations(changes):
    whole = gpuforest.DecisionTreeClassifier(**OBLIQUE).fit(X, Y)
    pruned = gpuforest.DecisionTreeClassifier(**OBLIQUE, **changes).fit(X, Y)
    assert 1 < pruned.get_n_leaves() < whole.get_n_leaves()
    before, after = (set(gpuforest.export_text(m).splitlines()) for m in (whole, pruned))
    conditions = {line for line in after if "class" not in line}
    assert conditions
    assert conditions < before
    sums = pruned.forest_.node_sums(0, 1)
    reached = np.bincount(pruned.apply(X), minlength=len(sums))
    leaf = is_leaf(pruned.forest_.nodes)
    assert np.array_equal(reached[leaf], sums.sum(axis=1)[leaf])


def test_importances_are_shared_by_weight():
    tree = gpuforest.DecisionTreeClassifier(
        max_depth=1, max_features=20, combination_weights="integer", **OBLIQUE
    ).fit(FILLED[:, :2], Z > 0)
    _, feature, weight = tree.forest_.terms(np.array([0]))
    assert len(feature) == 2
    shares = np.bincount(feature, weight) / weight.sum()
    # gains are rounded to whole numbers of a small unit
    assert tree.feature_importances_ == pytest.approx(shares, abs=1e-9)


def test_permutation_knows_every_feature_of_a_sum():
    forest = FOREST.fit(X, Y).forest_
    for t in range(forest.n_trees):
        nodes = gpuforest.tree_nodes(FOREST, t).values()
        shown = [condition for node in nodes for condition in node.branches]
        sums = {term[0] for c in shown if isinstance(c, Range) for term in c.terms}
        alone = {c.feature for c in shown}
        assert len(sums) > 1
        assert split_features(forest, t) == sorted(sums | alone)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst is for splits by one feature"),
    ({"feature_combinations": MOST_COMBINED + 1}, "must be a float in the range"),
    ({"feature_combinations": 0.5}, "must be a float in the range"),
    ({"combination_weights": "real"}, "'combination_weights' parameter"),
    (
        {"categorical_features": [0], "categorical_split": "multiway"},
        "categorical_split='multiway' is for splits by one",
    ),
])  # fmt: skip
def test_refusals(parameters, message):
    data = np.column_stack([np.arange(500) % 3, X[:, 1:]])
    with pytest.raises(ValueError, match=message):
        gpuforest.RandomForestClassifier(2, **(OBLIQUE | parameters)).fit(data, Y)


def test_trees_of_scikit_learn_are_refused():
    with pytest.raises(ValueError, match="scikit-learn's trees have no splits by combinations"):
        FOREST.fit(X, Y).to_sklearn()
    with pytest.raises(ValueError, match="use export_text or tree_nodes"):
        _ = TREE.fit(X, Y).tree_


def test_damaged_files_are_refused(tmp_path):
    from dataclasses import replace

    from gpuforest.core.forest import check_forest

    forest = FOREST.fit(X, Y).forest_
    check_forest(forest)
    for damaged in (
        replace(forest, oblique=False),
        replace(forest, sets=forest.sets[:-1]),
        replace(forest, sets=forest.sets | np.uint64(2**63)),
        replace(forest, sets=forest.sets & np.uint64(0xFFFFFFFF)),
    ):
        with pytest.raises(ModelFormatError):
            check_forest(damaged)


def test_a_backend_without_combinations_hands_over_to_the_cpu(caplog):
    class Bare(numpy.NumpyBackend):
        name, project = "bare", base.Backend.project

    backend, gini = Bare(), CRITERIA["gini"]
    assert registry.for_splits(backend, gini, kind_for(gini, False, 2.0)).name == "numba"
    assert "has no combinations of features" in caplog.text
    assert registry.for_splits(backend, gini, kind_for(gini, False, 1.0)) is backend
