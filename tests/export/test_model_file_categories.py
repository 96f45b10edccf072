"""Model files with categories: values and types are kept, and what cannot be is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tampered import change, refuses, save_tampered

import gpuforest
from gpuforest import DecisionTreeClassifier, DecisionTreeRegressor, ModelFormatError


@pytest.mark.parametrize(
    "values",
    [
        ("", '"', "a", "\u00fc", "\ud800", "\U0001f332"),
        (-(2**70), 0, 2**53 + 1),
        (-0.5, 0.1, 1e300),
        (False, True),
        (0, 0.5, True),
        (),
    ],
)
def test_categories_keep_their_values_and_types(values, tmp_path):
    column = np.array([*values, None] * 3, dtype=object)[:, None]
    model = DecisionTreeClassifier(categorical_features=[0], backend="numpy")
    model.fit(column, np.arange(len(column)) % 2).save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    found = other.forest_.edges.categories
    assert found == model.forest_.edges.categories == {0: values}
    assert [type(v) for v in found[0]] == [type(v) for v in values]
    assert other.categorical_features == [0]
    assert np.array_equal(other.predict(column), model.predict(column))


COLOURS = ["blue", "green", "red"]


def with_categories():
    X = np.array([[COLOURS[i % 3], i] for i in range(12)], dtype=object)
    model = DecisionTreeClassifier(categorical_features=[0], random_state=0, backend="numpy")
    return model.fit(X, np.arange(12) % 3)


@pytest.mark.parametrize(
    "categories",
    [
        {},
        [],
        None,
        {"0": COLOURS[:2]},
        {"0": [*COLOURS, "violet"]},
        {"1": COLOURS},
        {"0": COLOURS, "1": list(range(11))},
        {"0": COLOURS, "2": []},
        {"00": COLOURS},
        {"-0": COLOURS},
        {"": COLOURS},
        {"9" * 5000: COLOURS},
        {"0": "red"},
        {"0": {"blue": 0, "green": 1, "red": 2}},
        {"0": ["red", "green", "red"]},
        {"0": ["blue", "green", 3]},
        {"0": ["blue", "green", None]},
        {"0": ["blue", "green", ["red"]]},
        {"0": [0, 1, 1.0]},
        {"0": [0, 1, True]},
        {"0": [0.0, 1.0, float("nan")]},
        {"0": [0.0, 1.0, float("inf")]},
    ],
)
def test_categories_that_cannot_have_been_written(categories, tmp_path):
    model = with_categories()
    model.save(tmp_path / "model")
    assert gpuforest.load(tmp_path / "model").forest_.edges.categories == {0: tuple(COLOURS)}
    save_tampered(model, tmp_path / "model", categories=categories)
    with pytest.raises(ModelFormatError, match="model"):
        gpuforest.load(tmp_path / "model")


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": np.array([0, 0], np.uint8)},
        {"kinds": np.array([1, 1], np.uint8)},
        {"kinds": np.array([2, 0], np.uint8)},
        {"categories": {0: COLOURS}},
        {"categories": {0: ("blue", "green")}},
        {"categories": {0: ("blue", "green", np.str_("red"))}},
        {"categories": [tuple(COLOURS)]},
    ],
)
def test_pickled_categories_that_cannot_have_been_learned(wrong):
    forest = with_categories().forest_
    assert pickle.loads(pickle.dumps(forest)).edges.categories == {0: tuple(COLOURS)}
    bad = replace(forest, edges=replace(forest.edges, **wrong))
    assert refuses(pickle.loads, pickle.dumps(bad))


def test_edges_of_categories_are_their_codes():
    forest = with_categories().forest_
    bad = replace(forest.edges, values=change(forest.edges.values, 2, 2.5))
    assert refuses(pickle.loads, pickle.dumps(replace(forest, edges=bad)))


@pytest.mark.parametrize("chosen", [["a"], np.array([0]), (True, False), pd.Index(["a"])])
def test_choices_of_categories_are_kept(chosen, tmp_path):
    X = pd.DataFrame({"a": np.arange(6) % 3, "b": np.arange(6)})
    model = DecisionTreeRegressor(categorical_features=chosen).fit(X, X["b"])
    model.save(tmp_path / "model")
    assert gpuforest.load(tmp_path / "model").categorical_features == list(chosen)
