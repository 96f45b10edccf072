"""Splits by combinations of features in texts, rules, Python, nodes and Graphviz."""

import numpy as np
import pytest

import gpuforest
from gpuforest.export.conditions import SumRange

rng = np.random.default_rng(0)
NAMES = ["width", "height", "it's", "d\n"]
X = rng.normal(size=(500, 4))
X[rng.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X) @ [1, 1, -1, 0.5] > 0).astype(int)
MORE = rng.normal(size=(800, 4))
MORE[rng.random(MORE.shape) < 0.1] = np.nan


def fitted(**parameters):
    given = {"feature_combinations": 2.5, "max_features": 8, "random_state": 0} | parameters
    return gpuforest.DecisionTreeClassifier(**given).fit(X, Y)


def test_text_and_rules():
    points = np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 1.0], [3.0, 4.0]])
    tree = gpuforest.DecisionTreeClassifier(feature_combinations=2, max_features=4, random_state=2)
    tree.fit(points, [0, 1, 0, 1])
    text = gpuforest.export_text(tree, feature_names=["a", "b"])
    assert text.splitlines()[0].startswith(("a ", "b "))
    rules = gpuforest.export_rules(tree, feature_names=["a", "b"], decimals=2)
    assert len(rules.splitlines()) == tree.get_n_leaves()


@pytest.mark.parametrize("weights", ["binary", "integer"])
def test_python_predicts_the_same(weights):
    tree, names = fitted(combination_weights=weights), {}
    exec(gpuforest.export_python(tree, feature_names=NAMES), names)
    for rows in (X, MORE):
        own = [names["predict"](dict(zip(NAMES, row, strict=True))) for row in rows.tolist()]
        assert own == tree.predict(rows).tolist()
    none = dict.fromkeys(NAMES)
    assert names["predict"](none) == tree.predict(np.full((1, 4), np.nan))[0]


def test_nodes_have_one_way_for_each_row():
    tree = fitted()
    nodes, sums = gpuforest.tree_nodes(tree, feature_names=NAMES), 0
    for row, leaf in zip(MORE, tree.apply(MORE), strict=True):
        node = nodes[0]
        while node.branches:
            conditions = [b.condition for b in node.branches]
            sums += isinstance(conditions[0], SumRange)
            ways = [c.holds(row if isinstance(c, SumRange) else row[c.feature]) for c in conditions]
            assert sum(ways) == 1
            node = nodes[node.branches[ways.index(True)].child]
        assert node.number == leaf
        for condition in node.conditions:
            assert condition.holds(
                row if isinstance(condition, SumRange) else row[condition.feature]
            )
    assert sums > 100


def test_words_hold_away_from_the_border():
    """The words are rounded to bins; a row that is far from the border lies where they say."""
    data = rng.normal(size=(3000, 2))
    tree = gpuforest.DecisionTreeClassifier(
        max_depth=1, feature_combinations=2, max_features=10, random_state=0
    ).fit(data, data.sum(axis=1) > 0.5)
    words = gpuforest.export_text(tree, feature_names=["a", "b"]).splitlines()[0]
    left, right = words.split(" <= ")
    terms = left.replace("- ", "-").replace("+ ", "").split()
    assert len(terms) == 3
    second = float(terms[1])
    value = data[:, "ab".index(terms[0])] + second * data[:, "ab".index(terms[2])]
    limit = float(right.removesuffix(" or missing"))
    far = abs(value - limit) > 0.15
    goes_left = tree.apply(data) == 1
    assert np.array_equal(goes_left[far], value[far] <= limit)
    assert far.mean() > 0.8


def test_graphviz_and_importances_of_the_view():
    tree = fitted(max_depth=3)
    assert " + " in gpuforest.export_graphviz(tree, feature_names=NAMES)
    assert tree.feature_importances_.sum() == pytest.approx(1)
    assert gpuforest.export_rules(tree, feature_names=NAMES).count("\n") == tree.get_n_leaves()
