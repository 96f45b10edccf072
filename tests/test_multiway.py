"""Multiway splits: a branch for each category, the textbook's tree, C4.5's gain ratio."""

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from paths import SHARED

import gpuforest
from gpuforest.backends.numba import NumbaBackend

PLAY_TENNIS = SHARED / "data" / "play_tennis.arff"
needs_play_tennis = pytest.mark.skipif(not PLAY_TENNIS.exists(), reason="no shared data here")


def play_tennis() -> tuple[pd.DataFrame, pd.Series]:
    rows = [line.strip().split(",") for line in PLAY_TENNIS.read_text().splitlines()]
    rows = [row for row in rows if len(row) == 5]
    frame = pd.DataFrame(rows, columns=["outlook", "temperature", "humidity", "windy", "play"])
    return frame, frame.pop("play")


@needs_play_tennis
def test_gains_of_play_tennis_are_the_textbooks():
    X, y = play_tennis()
    gains = {}
    for name in X:
        stump = gpuforest.DecisionTreeClassifier(
            criterion="entropy", categorical_split="multiway", max_depth=1, backend="numpy"
        ).fit(X[[name]], y)
        nodes = gpuforest.tree_nodes(stump)
        below = sum(n.n_samples * n.impurity for n in nodes.values() if n.is_leaf)
        gains[name] = round(nodes[0].impurity - below / 14, 3)
    assert gains == {"outlook": 0.247, "temperature": 0.029, "humidity": 0.152, "windy": 0.048}


@needs_play_tennis
@pytest.mark.parametrize("criterion", ["entropy", "gain_ratio"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_the_tree_of_play_tennis_is_the_textbooks(criterion, backend):
    X, y = play_tennis()
    tree = gpuforest.DecisionTreeClassifier(
        criterion=criterion, categorical_split="multiway", backend=backend
    ).fit(X, y)
    assert gpuforest.export_rules(tree, plain=True).splitlines() == [
        "if outlook is overcast then yes",
        "if outlook is rainy and windy is FALSE then yes",
        "if outlook is rainy and windy is TRUE then no",
        "if outlook is sunny and humidity is high then no",
        "if outlook is sunny and humidity is normal then yes",
    ]
    assert gpuforest.export_rules(tree, plain=True, per="class").splitlines()[0] == (
        "if (outlook is rainy and windy is TRUE) or (outlook is sunny and humidity is high) then no"
    )
    assert (tree.get_depth(), tree.get_n_leaves()) == (2, 5)
    assert "entropy = 0.94" in gpuforest.export_graphviz(tree)
    assert tree.score(X, y) == 1.0


def test_c45_does_not_fall_for_a_key():
    """A column that names each row gains most, but by far more information than it gives.

    The noise lowers the mean gain: C4.5 looks at no ratio of features that gain less than it.
    """
    rng = np.random.default_rng(0)
    n = 64
    good, *noise = rng.integers(0, 2, (4, n)).astype(str)
    y = np.where(rng.random(n) < 0.9, good, "0")
    X = pd.DataFrame({"key": [f"row {i}" for i in range(n)], "good": good})
    X = X.assign(**{f"noise {i}": column for i, column in enumerate(noise)})
    for criterion, chosen in (("entropy", "key"), ("gain_ratio", "good")):
        tree = gpuforest.DecisionTreeClassifier(
            criterion=criterion,
            categorical_split="multiway",
            min_category_frequency=1,
            max_depth=1,
            backend="numpy",
        )
        with pytest.warns(UserWarning, match="column 'key' has 64 different values"):
            tree.fit(X, y)
        assert gpuforest.tree_nodes(tree)[1].conditions[0].name == chosen


def test_an_attribute_is_used_up_once_split():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, (200, 3)).astype(float)
    y = rng.integers(0, 2, 200)
    tree = gpuforest.DecisionTreeClassifier(
        categorical_features=[0, 1, 2], categorical_split="multiway", backend="numpy"
    ).fit(X, y)
    assert tree.get_depth() == 3
    nodes = gpuforest.tree_nodes(tree)
    for node in nodes.values():
        if node.is_leaf:
            assert len({c.name for c in node.conditions}) == len(node.conditions) <= 3
            assert all(len(c.plain().values) == 1 for c in node.conditions)


def test_a_ratio_needs_branches():
    tree = gpuforest.DecisionTreeClassifier(criterion="gain_ratio", backend="numpy")
    with pytest.raises(ValueError, match="categorical_split='multiway'"):
        tree.fit([[0.0], [1.0]], [0, 1])


def test_compiled_trees_grow_whole_and_not_level_by_level(monkeypatch):
    """A level for each category of a chain took 40 to 400 times as long."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, [4, 30, 300], (2000, 3))
    y = (X.sum(axis=1) + rng.integers(0, 3, 2000)) % 3
    given = {"categorical_features": [0, 1, 2], "categorical_split": "multiway", "random_state": 0}
    given |= {"min_samples_leaf": 2, "max_depth": 2}
    reference = gpuforest.DecisionTreeClassifier(**given, backend="numpy").fit(X, y)
    monkeypatch.setattr(NumbaBackend, "histogram", None)
    tree = gpuforest.DecisionTreeClassifier(**given, backend="numba").fit(X, y)
    assert same_forest(tree.forest_, reference.forest_)
    for n_jobs in (1, 2):
        gpuforest.ExtraTreesClassifier(3, **given, n_jobs=n_jobs, backend="numba").fit(X, y)
