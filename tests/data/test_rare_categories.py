"""Rare categories, which are not listed; and columns of identifiers, which are warned of."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from engine import same_forest

import gpuforest
from gpuforest import DecisionTreeClassifier, ExtraTreesClassifier


def some_rare(rng, n_rows=300):
    """Strings, of which four are rare: a has 4 rows, b 4, c 1, d 1."""
    names = [*"aaaabbbbcd", *rng.choice(list("ABCDEFGH"), n_rows - 10)]
    return pd.DataFrame({"x": names}), rng.integers(0, 2, n_rows)


@pytest.mark.parametrize(
    ("fewest", "kept"),
    [(1, "ABCDEFGHabcd"), (2, "ABCDEFGHab"), (4, "ABCDEFGHab"), (5, "ABCDEFGH"), (10**6, "")],
)
def test_categories_of_few_rows_are_not_listed(fewest, kept):
    X, y = some_rare(np.random.default_rng(0))
    for column in (X["x"], X["x"].astype("category"), pl.Series("x", X["x"].to_list())):
        frame = column.to_frame()
        model = DecisionTreeClassifier(min_category_frequency=fewest).fit(frame, y)
        assert model.forest_.edges.categories == {0: tuple(kept)}
    codes = np.array([[ord(name)] for name in X["x"]])
    numbers = {"categorical_features": [0], "min_category_frequency": fewest}
    model = DecisionTreeClassifier(**numbers).fit(codes, y)
    assert model.forest_.edges.categories == {0: tuple(map(ord, kept))}


def test_whole_weights_count_as_rows_and_no_weight_as_none():
    X, y = some_rare(np.random.default_rng(0))
    rows_of_weight = {"a": (0.0, 1.0, "b"), "b": (0.0, 0.5, "a"), "c": (4.0, 1.0, "abc")}
    for name, (weight, others, rare) in rows_of_weight.items():
        weights = np.where(X["x"] == name, weight, others)
        model = DecisionTreeClassifier(min_category_frequency=4).fit(X, y, weights)
        assert model.forest_.edges.categories == {0: tuple("ABCDEFGH" + rare)}


@pytest.mark.parametrize("n", [6, 14])
def test_rows_of_weight_zero_add_no_category(n):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"x": rng.choice([*"bcdefghijklmno"][:n], 200)}), rng.integers(0, 2, 202)
    more = pd.concat([X, pd.DataFrame({"x": ["a", "z"]})], ignore_index=True)
    params = {"random_state": 0, "min_category_frequency": 1}
    without = ExtraTreesClassifier(5, **params).fit(X, y[:200])
    with_them = ExtraTreesClassifier(5, **params).fit(more, y, np.repeat([1, 0], [200, 2]))
    assert with_them.forest_.edges.categories == without.forest_.edges.categories
    assert same_forest(with_them.forest_, without.forest_)


@pytest.mark.parametrize("weight", [2.0, 1e19, 1e300])
def test_weights_of_any_size_keep_categories_and_warn_of_identifiers(weight):
    X, weights = np.arange(300)[:, None], np.full(300, weight)
    model = DecisionTreeClassifier(categorical_features=[0])
    model.fit(X % 15, X[:, 0] % 2, weights)
    assert model.forest_.edges.categories == {0: tuple(range(15))}
    with pytest.warns(UserWarning, match="column 0 has 300 different values in 300 rows") as seen:
        model.fit(X, X[:, 0] % 2, weights)
    assert len(seen) == 1


def test_ten_categories_are_kept_however_rare():
    names = [*"abcdefghij"]
    model = DecisionTreeClassifier().fit(pd.DataFrame({"x": names}), np.arange(10))
    assert model.forest_.edges.categories == {0: tuple(names)}


def test_the_rest_is_called_other():
    names = ["red", "blue"] * 20 + [f"rare {i}" for i in range(20)]
    X, y = pd.DataFrame({"x": names}), np.repeat([0, 1], [40, 20])
    for split in ("subset", "multiway"):
        tree = DecisionTreeClassifier(categorical_split=split, max_depth=1).fit(X, y)
        assert tree.score(X, y) == 1.0
        rules = gpuforest.export_rules(tree).splitlines()
        assert any("other" in rule and rule.endswith("then 1") for rule in rules)
        assert tree.predict(pd.DataFrame({"x": ["new", "red"]})).tolist() == [1, 0]
        made: dict = {}
        exec(gpuforest.export_python(tree), made)
        assert [made["predict"]({"x": x}) for x in ("new", "rare 3", "red")] == [1, 1, 0]


def test_one_warning_of_identifiers_a_fit():
    X = np.arange(200)[:, None]
    with pytest.warns(UserWarning, match="200 different values in 200 rows") as seen:
        DecisionTreeClassifier(categorical_features=[0], ccp_alpha="cv").fit(X, X[:, 0] % 2)
    assert len(seen) == 1
