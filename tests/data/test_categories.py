"""Categories: which columns they are, how they are learned and found again."""

import pickle
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from category_columns import (
    BY_DTYPE,
    BY_NAME,
    COLOURS,
    NUMBERS,
    SORTED,
    N,
    Y,
    codes_of,
    frame_of,
    read,
)
from optional import polars as pl
from sklearn.base import clone

import gpuforest as gf
from gpuforest.backends.registry import get_backend
from gpuforest.data import categories, validation


@pytest.mark.parametrize("form", BY_DTYPE)
def test_columns_that_are_categories_by_their_dtype(form):
    column, expected = BY_DTYPE[form]
    found, known = read(frame_of(column))
    assert known == {0: expected}
    values = NUMBERS if expected == (1, 2, 3) else COLOURS
    assert np.array_equal(found[:, 0], codes_of(values, expected), equal_nan=True)
    assert found[:, 1].tolist() == list(range(N))


@pytest.mark.parametrize("form", BY_NAME)
def test_columns_that_are_categories_by_name(form):
    column, expected = BY_NAME[form]
    found, known = read(frame_of(column), categorical_features=["a"])
    assert known == {0: expected}
    assert [type(v) for v in known[0]] == [type(v) for v in expected]
    values = column.to_pylist() if isinstance(column, pa.Array) else column.to_list()
    values = [None if v is pd.NA else v for v in values]
    assert np.array_equal(found[:, 0], codes_of(values, expected), equal_nan=True)
    if form != "nulls":
        assert read(frame_of(column))[1] == {}  # numbers are numbers unless they are named


MASKED = np.ma.masked_array([[c or "empty"] for c in COLOURS], mask=[[c is None] for c in COLOURS])
ARRAYS = {
    "objects": (np.column_stack([np.array(COLOURS, object), Y]), SORTED),
    "list": ([[c, i] for i, c in enumerate(COLOURS)], SORTED),
    "list, none missing": (
        [[c or "z", float(i)] for i, c in enumerate(COLOURS)],
        ("green", "red", "z"),
    ),
    "strings": (np.array([[c or "z"] for c in COLOURS]), ("green", "red", "z")),
    "masked strings": (MASKED, ("empty", "green", "red")),
    "floats": (np.column_stack([np.array(NUMBERS, float), Y]), (1.0, 2.0, 3.0)),
    "big-endian": (np.column_stack([Y * 2, Y]).astype(">i2"), (0, 2, 4)),
    "half": (np.column_stack([Y * 2, Y]).astype("f2"), (0.0, 2.0, 4.0)),
    "long double": (np.column_stack([Y / 2, Y]).astype("g"), (0.0, 0.5, 1.0)),
    "booleans": (np.column_stack([Y > 1, Y > 0]), (False, True)),
}


@pytest.mark.parametrize("form", ARRAYS)
def test_columns_of_arrays(form):
    X, expected = ARRAYS[form]
    found, known = read(X, categorical_features=[0])
    assert known == {0: expected}
    column = X[:, 0].tolist() if isinstance(X, np.ndarray) else [row[0] for row in X]
    assert np.array_equal(found[:, 0], codes_of(column, expected), equal_nan=True)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "chosen",
    [["s", "n"], np.array(["n", "s"]), [0, 2], (2, 0), [True, False, True], pd.Index(["s", "n"])],
    ids=repr,
)
def test_names_indices_and_masks_mean_the_same(form, chosen):
    table = pd.DataFrame({"s": ["u", "v"] * 12, "x": np.arange(N), "n": Y})
    convert = {"polars": lambda t: pl.from_pandas(t), "pyarrow": pa.Table.from_pandas}
    known = read(convert.get(form, pd.DataFrame)(table), categorical_features=chosen)[1]
    assert known == {0: ("u", "v"), 2: (0, 1, 2)}


@pytest.mark.parametrize(("chosen", "message"), [
    ([-1], r"must be in \[0, n_features - 1\]"),
    ([0.5], "must be an array-like of bool, int or str, got: float"),
    ([0, "x"], "item value '0' which is not a valid feature name"),
    ([None], "must be an array-like of bool, int or str, got: NoneType"),
    ([[0]], "must be one-dimensional"),
    ("dtype", "The 'categorical_features' parameter of .* must be"),
])  # fmt: skip
def test_choices_that_do_not_fit(chosen, message):
    X = pd.DataFrame({"x": Y, "y": Y, "s": Y})
    with pytest.raises(ValueError, match=message):
        gf.DecisionTreeClassifier(categorical_features=chosen).fit(X, Y)


@pytest.mark.parametrize(("column", "message"), [
    (pd.Series([Decimal(1), 2, None] * 8, dtype=object),
     "column 'a' holds Decimal.* of type Decimal: categories are strings, numbers or"),
    (pd.Series([b"x", 2, None] * 8, dtype=object), "of type bytes: categories are strings"),
    (pl.Series([pd.Timestamp("2020")] * N), "column 'a' holds Datetime.*: categories are"),
    (pa.array([pd.Timestamp("2020")] * N), "column 'a' holds Datetime.*: categories are"),
    (pl.Series([[1]] * N), r"column 'a' holds List.*: categories are strings"),
    (pd.Series([[1]] * N), r"column 'a' holds no categories \(unhashable .*: each argument"),
    (pd.Series([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
     "column 'a' holds no categories"),
    (pd.Series([{}] * N), "argument must be a string, a number or a boolean; convert it"),
    (pd.Series(pd.date_range("2020", periods=N)), "of type Timestamp: categories are strings"),
    (pd.Series(pd.cut(np.arange(N), 3)), "of type Interval: .* convert it to strings"),
])  # fmt: skip
def test_columns_that_are_no_categories(column, message):
    with pytest.raises((ValueError, TypeError), match=message):
        gf.DecisionTreeClassifier(categorical_features=["a"]).fit(frame_of(column), Y)


def test_as_many_categories_as_there_may_be(backend):
    rows = np.repeat(np.arange(categories.MAX_CATEGORIES), 2)
    given = {"categorical_features": [0], "min_category_frequency": 2}
    model = gf.DecisionTreeRegressor(max_depth=2, backend=backend, **given)
    model.fit(rows[:, None], rows % 7)
    assert model.forest_.edges.code_dtype is np.uint16
    assert len(model.forest_.edges.categories[0]) == 65_533
    model.predict(rows[:5, None])


@pytest.mark.parametrize("values", [
    ["blue", "red", None, "greenish"],
    pd.Categorical(["blue", "red", None, "red"], ["red", "blue"]),
    pd.Series(["red", 1, None, 2.5], dtype=object),
    [None] * 4,
], ids=["strings", "category", "objects", "missing"])  # fmt: skip
def test_unseen_and_missing_values(backend, values):
    model = gf.DecisionTreeClassifier(backend=backend).fit(frame_of(pd.Series(COLOURS)), Y)
    X = pd.DataFrame({"a": values, "b": [0, 1, 2, 3]})
    found = validation.check_table(model, X, get_backend(backend))
    assert np.array_equal(found[:, 0], codes_of(list(values), SORTED), equal_nan=True)
    assert model.predict_proba(X).shape == (4, 3)


def test_numbers_are_found_by_their_value_and_other_types_are_refused():
    model = gf.DecisionTreeClassifier(categorical_features=[0]).fit([[0], [1], [2]] * 8, Y)
    for same in ([[1.0], [0.0]], [[True], [False]], [[np.int8(1)], [0]]):
        assert validation.check_table(model, same, get_backend("numpy")).tolist() == [[1], [0]]
    assert validation.check_table(model, [[1.5], [np.nan]], get_backend("numpy"))[0, 0] == 3
    model = gf.DecisionTreeClassifier(categorical_features=["a"])
    model.fit(frame_of(pd.Series(NUMBERS)), Y)
    words = "column 'a' holds strings, but its categories in training were"
    with pytest.raises(ValueError, match=words):
        model.predict_proba(pd.DataFrame({"a": ["1", None], "b": [0, 1]}))


WORDS = ["b", "a", None, "b", "a", "c"]
TWICE = pa.DictionaryArray.from_arrays([0, 1, None, 2, 1, 3], ["b", "a", "b", "c"])
WITH_NULL = pa.DictionaryArray.from_arrays(
    pa.array([0, 1, 2, 0, 1, 3], "uint8"), ["b", "a", None, "c"]
)


@pytest.mark.parametrize("column", [
    pl.Series(WORDS),
    pl.Series(WORDS, dtype=pl.Categorical),
    pl.Series(WORDS, dtype=pl.Enum(["z", "c", "b", "a"])),
    pl.concat([pl.Series(WORDS[:2]), pl.Series(WORDS[2:])], rechunk=False),
    pa.chunked_array([WORDS]),
    pa.chunked_array([WORDS], pa.large_string()),
    pa.chunked_array([WORDS], pa.string_view()),
    pa.chunked_array([pa.array(each).dictionary_encode() for each in (WORDS[:4], WORDS[4:])]),
    pa.chunked_array([pa.array(["z", *WORDS]).dictionary_encode()[1:]]),
    pa.chunked_array([TWICE]),
    pa.chunked_array([WITH_NULL]),
    pa.chunked_array([WITH_NULL[:2], WITH_NULL[2:]]),
])  # fmt: skip
def test_values_and_where_they_are(column):
    column = nw.from_native(column.slice(0), series_only=True)  # a method, which polars may lack
    codes, values, _ = categories.factorize(column, "a")
    assert [None if code < 0 else values[code] for code in codes] == WORDS
    assert sorted(values) == ["a", "b", "c"]  # each once, and none that does not occur


def test_a_dictionary_without_a_value():
    column = pa.chunked_array([pa.array([None, None], pa.string()).dictionary_encode()])
    codes, values, _ = categories.factorize(nw.from_native(column, series_only=True), "a")
    assert (codes.tolist(), values) == ([-1, -1], [])


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
        model = gf.DecisionTreeClassifier(min_category_frequency=fewest).fit(frame, y)
        assert model.forest_.edges.categories == {0: tuple(kept)}
    codes = np.array([[ord(name)] for name in X["x"]])
    numbers = {"categorical_features": [0], "min_category_frequency": fewest}
    model = gf.DecisionTreeClassifier(**numbers).fit(codes, y)
    assert model.forest_.edges.categories == {0: tuple(map(ord, kept))}


def test_whole_weights_count_as_rows_and_no_weight_as_none():
    X, y = some_rare(np.random.default_rng(0))
    rows_of_weight = {"a": (0.0, 1.0, "b"), "b": (0.0, 0.5, "a"), "c": (4.0, 1.0, "abc")}
    for name, (weight, others, rare) in rows_of_weight.items():
        weights = np.where(X["x"] == name, weight, others)
        model = gf.DecisionTreeClassifier(min_category_frequency=4).fit(X, y, weights)
        assert model.forest_.edges.categories == {0: tuple("ABCDEFGH" + rare)}


@pytest.mark.parametrize("weight", [2.0, 1e19, 1e300])
def test_weights_of_any_size_keep_categories_and_warn_of_identifiers(weight):
    X, weights = np.arange(300)[:, None], np.full(300, weight)
    model = gf.DecisionTreeClassifier(categorical_features=[0])
    model.fit(X % 15, X[:, 0] % 2, weights)
    assert model.forest_.edges.categories == {0: tuple(range(15))}
    for tree, w in ((model, weights), (clone(model).set_params(ccp_alpha="cv"), None)):
        words = "column 0 has 300 different values in 300 rows"
        with pytest.warns(UserWarning, match=words) as seen:
            tree.fit(X, X[:, 0] % 2, w)
        assert len(seen) == 1


def test_the_rest_is_called_other():
    names = ["red", "blue"] * 20 + [f"rare {i}" for i in range(20)]
    X, y = pd.DataFrame({"x": names}), np.repeat([0, 1], [40, 20])
    for split in ("subset", "multiway"):
        tree = gf.DecisionTreeClassifier(categorical_split=split, max_depth=1).fit(X, y)
        assert tree.score(X, y) == 1.0
        rules = gf.export_rules(tree).splitlines()
        assert any("other" in rule and rule.endswith("then 1") for rule in rules)
        assert tree.predict(pd.DataFrame({"x": ["new", "red"]})).tolist() == [1, 0]
        made: dict = {}
        exec(gf.export_python(tree), made)
        assert [made["predict"]({"x": x}) for x in ("new", "rare 3", "red")] == [1, 1, 0]


@pytest.mark.parametrize("make", [
    lambda **p: gf.DecisionTreeRegressor(**p),
    lambda **p: gf.ExtraTreesRegressor(3, **p),
    lambda **p: gf.RandomForestClassifier(3, oob_score=True, **p),
    lambda **p: gf.BaggingClassifier(gf.DecisionTreeClassifier(**p), 3),
    lambda **p: gf.RandomTreesEmbedding(3, **p),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_all_estimators_take_categories(make, tmp_path):
    X = frame_of(pd.Series(NUMBERS))
    model = make(categorical_features=["a"])
    assert not hasattr(model, "is_categorical_")
    model = clone(model).fit(X, Y)
    assert model.is_categorical_.tolist() == [True, False]
    model.save(tmp_path / "model")
    other = gf.load(tmp_path / "model")
    assert other.is_categorical_.tolist() == [True, False]
    assert other.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for copied in (other, pickle.loads(pickle.dumps(model))):
        assert copied.forest_.edges.categories == {0: (1.0, 2.0, 3.0)}
        assert np.array_equal(copied.apply(X), model.apply(X))
    assert all(
        t.is_categorical_.tolist() == [True, False] for t in getattr(model, "estimators_", [])
    )
    for none in ("from_dtype", None, [], [False, False]):
        assert make(categorical_features=none).fit(X, Y).is_categorical_ is None


def test_warm_start_needs_the_same_categories():
    X = frame_of(pd.Series(COLOURS))
    forest = gf.RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, Y)
    forest.set_params(n_estimators=5)
    for other in (X.replace("red", "rot"), X.assign(a=[SORTED.index(c or "") for c in COLOURS])):
        with pytest.raises(ValueError, match="X or y has other values now"):
            forest.fit(other, Y)


def test_memory_knows_of_many_categories():
    X = (np.arange(2000) % 1000)[:, None]
    said = set()
    for given in ({"max_bins": 1001}, {"categorical_features": [0], "min_category_frequency": 1}):
        with pytest.raises(ValueError, match="memory_limit") as caught:
            gf.DecisionTreeRegressor(memory_limit=1, **given).fit(X, X[:, 0])
        said.add(str(caught.value))
    assert len(said) == 1
