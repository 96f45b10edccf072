"""Interaction constraints of forests: no path has features that no set holds together."""

import numpy as np
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend

import gpuforest as gf
from gpuforest.backends import registry
from gpuforest.core.criteria import CRITERIA
from gpuforest.splits.interactions import kind as interactions
from gpuforest.splits.kinds import kind_for

SETS = {
    "no_interactions": [[f] for f in range(6)],
    "pairwise": [[f, g] for f in range(6) for g in range(f)],
    "overlapping": [[0, 1], [1, 2, 3], [3, 4, 5]],
    "the others are a set": [[0, 3], [1, 2, 4, 5]],
}
GIVEN = {
    "no_interactions": "no_interactions", "pairwise": "pairwise",
    "overlapping": [{0, 1}, (1, 2, 3), [3, 4, 5]], "the others are a set": [[0, 3]],
}  # fmt: skip
KINDS = [gf.RandomForestClassifier, gf.ExtraTreesRegressor, gf.RandomForestQuantileRegressor]


def rows(n=300, seed=0, classes=True, values=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) if values is None else rng.integers(0, values, (n, 6)) * 1.0
    z = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + X[:, 4] + rng.normal(size=n)
    return X, (z > 0).astype(int) if classes else z


def paths_of(tree):
    """The features on the way to each leaf."""
    paths, left = [], [(0, frozenset())]
    while left:
        node, above = left.pop()
        if tree.children_left[node] < 0:
            paths.append(above)
            continue
        below = above | {int(tree.feature[node])}
        left += [(tree.children_left[node], below), (tree.children_right[node], below)]
    return paths


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SETS)
def test_a_path_has_features_of_one_set(kind, name):
    X, y = rows(classes=kind is gf.RandomForestClassifier)
    X[::7, 2] = np.nan
    X[:, 5] = np.round(X[:, 5] * 2)
    model = kind(
        5, interaction_cst=GIVEN[name], categorical_features=[5], random_state=1, n_jobs=2
    ).fit(X, y)
    paths = [path for tree in model.estimators_ for path in paths_of(tree.tree_)]
    assert all(any(path <= set(members) for members in SETS[name]) for path in paths)
    assert max(map(len, paths)) == max(map(len, SETS[name]))  # and no fewer than it may


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", [{}, {"categorical_features": [0, 1]}, {"max_features": 2}])
def test_one_set_of_all_features_changes_nothing(kind, more):
    X, y = rows(classes=kind is gf.RandomForestClassifier, values=9)
    plain = kind(3, random_state=2, **more).fit(X, y)
    model = kind(3, random_state=2, interaction_cst=[list(range(6))], **more).fit(X, y)
    assert np.array_equal(model.forest_.nodes, plain.forest_.nodes)
    assert np.array_equal(model.predict(X), plain.predict(X))


def leaves_by_stumps(X, y, held, sets):
    """The rows of each leaf, by trees of one split from the columns that `sets` hold."""
    columns = sorted({f for members in sets for f in members})
    stump = gf.DecisionTreeClassifier(max_depth=1).fit(X[np.ix_(held, columns)], y[held])
    if stump.get_n_leaves() == 1:
        return [held]
    feature = columns[stump.tree_.feature[0]]
    left = stump.apply(X[np.ix_(held, columns)]) == 1
    below = [members for members in sets if feature in members]
    return [
        leaf for side in (held[left], held[~left]) for leaf in leaves_by_stumps(X, y, side, below)
    ]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(3))
def test_a_tree_is_that_of_its_best_allowed_splits(name, seed):
    X, y = rows(n=120, seed=seed, values=4)
    tree = gf.DecisionTreeClassifier(interaction_cst=GIVEN[name]).fit(X, y)
    expected = leaves_by_stumps(X, y, np.arange(len(X)), SETS[name])
    number = tree.apply(X)
    found = [np.flatnonzero(number == leaf) for leaf in np.unique(number)]
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


def test_features_drawn_for_trees_and_sets_hold_together():
    X, y = rows()
    bag = gf.BaggingClassifier(
        gf.DecisionTreeClassifier(interaction_cst=[[0, 1, 2], [3, 4, 5]]), 10, max_features=3,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    for tree, own in zip(bag.estimators_, bag.estimators_features_, strict=True):
        for path in paths_of(tree.tree_):
            assert path <= set(own)
            assert path <= {0, 1, 2} or path <= {3, 4, 5}


def test_example_of_states():
    allowed, after = interactions.states_of(((0, 1), (1, 2)), 3)
    # the root; below 0; below 2. Below 1, both sets are left, as at the root
    assert allowed.tolist() == [[True, True, True], [True, True, False], [False, True, True]]
    assert after.tolist() == [[1, 0, 2], [1, 1, -1], [-1, 2, 2]]


def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr(interactions, "MOST_CELLS", 100)
    model = gf.RandomForestClassifier(1, interaction_cst="pairwise")
    with pytest.raises(ValueError, match=r"too many overlapping sets for 11 features: .* 9 comb"):
        model.fit(np.random.default_rng(0).normal(size=(20, 11)), np.arange(20) % 2)


def test_a_least_weight_is_refused():
    model = gf.RandomForestClassifier(1, interaction_cst="pairwise", min_weight_fraction_leaf=0.1)
    with pytest.raises(ValueError, match="interaction_cst takes no min_weight_fraction_leaf"):
        model.fit(*rows(30))


@pytest.mark.parametrize("wrong", [[[0, 6]], [[-1]], "some"])
def test_wrong_sets_are_refused_as_by_boosting(wrong):
    X, y = rows(30)
    errors = []
    for kind in (gf.RandomForestClassifier, gf.HistGradientBoostingClassifier):
        with pytest.raises(ValueError, match="nteraction") as error:
            kind(interaction_cst=wrong).fit(X, y)
        errors.append(str(error.value).replace(kind.__name__, ""))
    assert errors[0] == errors[1]


@pytest.mark.skipif(available() is not None, reason=str(available()))
def test_devices_leave_them_to_the_cpu():
    kind = kind_for(CRITERIA["gini"], False, 0.0, interacts=True)
    backend = EmulatedBackend()
    assert registry.for_splits(backend, CRITERIA["gini"], kind).name == "numba"
