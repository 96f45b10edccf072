"""Categories: which columns they are, how they are learned, found again and kept."""

import pickle
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from engine import same_forest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.estimator_checks import check_estimator

import gpuforest
from gpuforest import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomTreesEmbedding,
    categories,
)
from gpuforest.backends import get_backend
from gpuforest.binning import CATEGORICAL, bin_matrix
from gpuforest.estimators.validation import check_table, learn_table

N = 24
Y = np.arange(N) % 3
COLOURS = [("red", "green", None, "")[i % 4] for i in range(N)]
SORTED = ("", "green", "red")
OWN_ORDER = ("red", "", "green")
DTYPE = pd.CategoricalDtype(["red", "blue", "", "green"])  # no row is blue
NUMBERS = [(3, 1, None, 2)[i % 4] for i in range(N)]
ARROW_DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))

BY_DTYPE = {
    "str": (pd.Series(COLOURS), SORTED),
    "string": (pd.Series(COLOURS, dtype="string"), SORTED),
    "objects": (pd.Series(COLOURS, dtype=object), SORTED),
    "category": (pd.Series(COLOURS, dtype=DTYPE), OWN_ORDER),
    "ordered category": (pd.Series(pd.Categorical(COLOURS, DTYPE.categories, True)), OWN_ORDER),
    "category of numbers": (pd.Series(NUMBERS, dtype="Int64").astype("category"), (1, 2, 3)),
    "Arrow string in pandas": (pd.Series(COLOURS, dtype=pd.ArrowDtype(pa.string())), SORTED),
    "Arrow dictionary in pandas": (pd.Series(COLOURS, dtype=ARROW_DICTIONARY), SORTED),
    "polars String": (pl.Series(COLOURS), SORTED),
    "polars Categorical": (pl.Series(COLOURS, dtype=pl.Categorical), SORTED),
    "polars Enum": (pl.Series(COLOURS, dtype=pl.Enum(list(DTYPE.categories))), OWN_ORDER),
    "Arrow string": (pa.array(COLOURS), SORTED),
    "Arrow large_string": (pa.array(COLOURS, pa.large_string()), SORTED),
    "Arrow dictionary": (pa.array(COLOURS).dictionary_encode(), SORTED),
    "Arrow dictionaries": (
        pa.chunked_array([pa.array(c).dictionary_encode() for c in (COLOURS[:5], COLOURS[5:])]),
        SORTED,
    ),
}
BY_NAME = {
    "floats": (pd.Series(NUMBERS, dtype=float), (1.0, 2.0, 3.0)),
    "Int64": (pd.Series(NUMBERS, dtype="Int64"), (1, 2, 3)),
    "Arrow in pandas": (pd.Series(NUMBERS, dtype="int64[pyarrow]"), (1, 2, 3)),
    "objects": (pd.Series(NUMBERS, dtype=object), (1, 2, 3)),
    "polars": (pl.Series(NUMBERS), (1, 2, 3)),
    "polars objects": (pl.Series(NUMBERS, dtype=pl.Object), (1, 2, 3)),
    "Arrow": (pa.array(NUMBERS), (1, 2, 3)),
    "far integers": (
        pl.Series([n and 2**60 + n for n in NUMBERS]),
        (2**60 + 1, 2**60 + 2, 2**60 + 3),
    ),
    "sparse": (pd.Series(pd.arrays.SparseArray([n or 0 for n in NUMBERS])), (0, 1, 2, 3)),
    "booleans": (pd.Series([n == 1 for n in NUMBERS]), (False, True)),
    "booleans, some missing": (pl.Series([n and n == 1 for n in NUMBERS]), (False, True)),
    "none but missing": (pd.Series([None] * N, dtype=object), ()),
    "nulls": (pa.nulls(N), ()),
}


def frame_of(column):
    """A frame of the column's own library, with a column of numbers behind it."""
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    return library[type(column).__module__.split(".")[0]]({"a": column, "b": np.arange(N)})


def places_of(values, known):
    """What a column must become, told with Python's own objects."""
    place = {value: float(i) for i, value in enumerate(known)}
    return [np.nan if v is None or v != v else place.get(v, float(len(known))) for v in values]


def read(X, backend="numpy", **params):
    """Learned places and categories, and the places that a fitted model reads of the same X."""
    model, engine = DecisionTreeClassifier(backend=backend, **params), get_backend(backend)
    found, known = learn_table(model, X, engine)
    model.fit(X, Y)
    assert model.forest_.edges.categories == known
    assert np.array_equal(check_table(model, X, engine), found, equal_nan=True)
    return found, known


# which features are categorical, and what their categories are


@pytest.mark.parametrize("form", BY_DTYPE)
def test_columns_that_are_categories_by_their_dtype(form):
    column, expected = BY_DTYPE[form]
    found, known = read(frame_of(column))
    assert known == {0: expected}
    values = NUMBERS if expected == (1, 2, 3) else COLOURS
    assert np.array_equal(found[:, 0], places_of(values, expected), equal_nan=True)
    assert found[:, 1].tolist() == list(range(N))


@pytest.mark.parametrize("form", BY_NAME)
def test_columns_that_are_categories_by_name(form):
    column, expected = BY_NAME[form]
    found, known = read(frame_of(column), categorical_features=["a"])
    assert known == {0: expected}
    assert [type(v) for v in known[0]] == [type(v) for v in expected]
    values = column.to_pylist() if isinstance(column, pa.Array) else column.to_list()
    values = [None if v is pd.NA else v for v in values]
    assert np.array_equal(found[:, 0], places_of(values, expected), equal_nan=True)
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
    places = places_of([None if v is None else v for v in column], expected)
    assert np.array_equal(found[:, 0], places, equal_nan=True)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "chosen",
    [["s", "n"], np.array(["n", "s"]), [0, 2], (2, 0), [True, False, True], pd.Index(["s", "n"])],
    ids=repr,
)
def test_names_indices_and_masks_mean_the_same(form, chosen):
    table = pd.DataFrame({"s": ["u", "v"] * 12, "x": np.arange(N), "n": Y})
    convert = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    known = read(convert[form](table), categorical_features=chosen)[1]
    assert known == {0: ("u", "v"), 2: (0, 1, 2)}


@pytest.mark.parametrize("chosen", ["from_dtype", [0, 2], ["c", "n"], [True, False, False]])
def test_same_features_as_scikit_learn(chosen):
    X = pd.DataFrame({"c": pd.Categorical(["u", "v"] * 12), "x": np.arange(N), "n": Y})
    own, other = (
        kind(categorical_features=chosen).fit(X, Y).is_categorical_
        for kind in (DecisionTreeClassifier, HistGradientBoostingClassifier)
    )
    assert own.tolist() == other.tolist()
    assert own.dtype == other.dtype == bool


@pytest.mark.parametrize("chosen", ["from_dtype", None, [], [False, False]])
def test_without_categories_there_is_no_mask(chosen):
    X = frame_of(pd.Series(NUMBERS))
    assert DecisionTreeClassifier(categorical_features=chosen).fit(X, Y).is_categorical_ is None


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([True, False], r"boolean mask must have shape \(n_features,\), got: \(2,\) for 3"),
        ([0, 3], r"must be in \[0, n_features - 1\], got: \[0, 3\] for 3 features"),
        ([-1], r"must be in \[0, n_features - 1\]"),
        (["x", "z"], "item value 'z' which is not a valid feature name of the training data"),
        ([0.5], "must be an array-like of bool, int or str, got: float"),
        ([0, "x"], "item value '0' which is not a valid feature name"),
        ([None], "must be an array-like of bool, int or str, got: NoneType"),
        ([[0]], "must be one-dimensional"),
        ("dtype", "The 'categorical_features' parameter of .* must be"),
    ],
)
def test_choices_that_do_not_fit(chosen, message):
    X = pd.DataFrame({"x": Y, "y": Y, "s": Y})
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(categorical_features=chosen).fit(X, Y)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="fitted on data without feature names"):
        DecisionTreeClassifier(categorical_features=["x"]).fit(Y[:, None], Y)


@pytest.mark.parametrize("column", [BY_DTYPE[n][0] for n in ("str", "category", "polars Enum")])
def test_none_refuses_strings(column):
    with pytest.raises(ValueError, match=r"column 'a' .*: list it in categorical_features at fit"):
        DecisionTreeClassifier(categorical_features=None).fit(frame_of(column), Y)


# what cannot be a category


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            Decimal(1),
            "column 'a' holds Decimal.* of type Decimal: categories are strings, numbers or",
        ),
        (pd.Timestamp("2020"), "of type Timestamp: categories are strings"),
        (b"x", "of type bytes: categories are strings"),
        (np.inf, "Input X contains infinity: column 'a'; NaN means missing"),
        ("x", "column 'a' mixes strings and numbers as categories: make all of them strings"),
    ],
)
def test_values_that_are_no_categories(value, message):
    X = frame_of(pd.Series([value, 2, None] * 8, dtype=object))
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(categorical_features=["a"]).fit(X, Y)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.Series([pd.Timestamp("2020")] * N), "column 'a' holds Datetime.*: categories are"),
        (pa.array([pd.Timestamp("2020")] * N), "column 'a' holds Datetime.*: categories are"),
        (pl.Series([[1]] * N), r"column 'a' holds List.*: categories are strings"),
        (pd.Series([[1]] * N), r"column 'a' holds no categories \(unhashable .*: each argument"),
        (
            pd.Series([[1]] * N, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
            "column 'a' holds no categories",
        ),
        (pd.Series([{}] * N), "argument must be a string, a number or a boolean; convert it"),
        (pd.Series(pd.date_range("2020", periods=N)), "of type Timestamp: categories are strings"),
    ],
)
def test_columns_that_are_no_categories(column, message):
    with pytest.raises((ValueError, TypeError), match=message):
        DecisionTreeClassifier(categorical_features=["a"]).fit(frame_of(column), Y)


def test_intervals_are_told_apart_from_numbers():
    with pytest.raises(ValueError, match=r"of type Interval: .* convert it to strings"):
        DecisionTreeClassifier().fit(pd.DataFrame({"a": pd.cut(np.arange(N), 3)}), Y)


def test_too_many_categories_are_named(monkeypatch):
    monkeypatch.setattr(categories, "MAX_CATEGORIES", 3)
    assert read(frame_of(pd.Series(COLOURS)))[1] == {0: SORTED}
    tree = DecisionTreeClassifier(categorical_features=["a", "b"], min_category_frequency=1)
    with pytest.raises(ValueError, match="column 'b' has 24 categories; at most 3 are supported"):
        tree.fit(frame_of(pd.Series(COLOURS)), Y)


def test_as_many_categories_as_there_may_be(backend):
    rows = np.repeat(np.arange(categories.MAX_CATEGORIES), 2)
    given = {"categorical_features": [0], "min_category_frequency": 2}
    model = DecisionTreeRegressor(max_depth=2, backend=backend, **given)
    model.fit(rows[:, None], rows % 7)
    assert model.forest_.edges.code_dtype is np.uint16
    assert len(model.forest_.edges.categories[0]) == 65_533
    model.predict(rows[:5, None])


# rare ones


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


def test_rows_of_weight_zero_do_not_make_a_category_frequent():
    X, y = some_rare(np.random.default_rng(0))
    for weight in (1.0, 0.5):
        weights = np.where(X["x"] == "a", 0.0, weight)
        model = DecisionTreeClassifier(min_category_frequency=4).fit(X, y, weights)
        assert model.forest_.edges.categories == {0: tuple("ABCDEFGHb")}


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
    with pytest.warns(UserWarning, match="column 0 has 300 different values in 300 rows"):
        model.fit(X, X[:, 0] % 2, weights)


def test_one_warning_of_identifiers_a_fit():
    X = np.arange(200)[:, None]
    with pytest.warns(UserWarning, match="200 different values in 200 rows") as seen:
        DecisionTreeClassifier(categorical_features=[0], ccp_alpha="cv").fit(X, X[:, 0] % 2)
    assert len(seen) == 1


def test_a_row_of_weight_four_makes_a_category_as_frequent_as_four_rows():
    X, y = some_rare(np.random.default_rng(0))
    weights = np.where(X["x"] == "c", 4, 1)
    model = DecisionTreeClassifier(min_category_frequency=4).fit(X, y, weights)
    assert model.forest_.edges.categories == {0: tuple("ABCDEFGHabc")}


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


@pytest.mark.parametrize("fewest", [1, 5])
def test_a_column_of_identifiers_is_named(fewest):
    X = pd.DataFrame({"size": np.arange(100.0), "id": [f"{i}" for i in range(95)] + [None] * 5})
    model = RandomForestClassifier(2, min_category_frequency=fewest)
    with pytest.warns(UserWarning, match="column 'id' has 95 different values in 95 rows: as cat"):
        model.fit(X, np.arange(100) % 2)


# prediction


@pytest.mark.parametrize("form", BY_DTYPE)
def test_values_are_found_whatever_their_dtype(form):
    column, known = BY_DTYPE[form]
    if known != (1, 2, 3):
        model = DecisionTreeClassifier().fit(frame_of(pd.Series(COLOURS)), Y)
        found = check_table(model, frame_of(column), get_backend("numpy"))
        assert np.array_equal(found[:, 0], places_of(COLOURS, SORTED), equal_nan=True)


@pytest.mark.parametrize(
    "values",
    [
        ["blue", "red", None, "greenish"],
        pd.Categorical(["blue", "red", None, "red"], ["red", "blue"]),
        pd.Series(["red", 1, None, 2.5], dtype=object),
        [None] * 4,
    ],
    ids=["strings", "category", "objects", "missing"],
)
def test_unseen_and_missing_values(backend, values):
    model = DecisionTreeClassifier(backend=backend).fit(frame_of(pd.Series(COLOURS)), Y)
    X = pd.DataFrame({"a": values, "b": [0, 1, 2, 3]})
    found = check_table(model, X, get_backend(backend))
    assert np.array_equal(found[:, 0], places_of(list(values), SORTED), equal_nan=True)
    assert model.predict_proba(X).shape == (4, 3)


def test_numbers_are_found_by_their_value():
    model = DecisionTreeClassifier(categorical_features=[0]).fit([[0], [1], [2]] * 8, Y)
    for same in ([[1.0], [0.0]], [[True], [False]], [[np.int8(1)], [0]]):
        assert check_table(model, same, get_backend("numpy")).tolist() == [[1], [0]]
    assert check_table(model, [[1.5], [np.nan]], get_backend("numpy"))[0, 0] == 3


@pytest.mark.parametrize(
    ("trained", "given", "words"),
    [
        (COLOURS, [1, 2], "column 'a' holds numbers, but its categories in training were strings"),
        (NUMBERS, ["1", None], "column 'a' holds strings, but its categories in training were"),
    ],
)
def test_a_column_of_another_type_is_refused(trained, given, words):
    model = DecisionTreeClassifier(categorical_features=["a"])
    model.fit(frame_of(pd.Series(trained)), Y)
    X = pd.DataFrame({"a": given, "b": [0, 1]})
    for method in (model.predict, model.predict_proba, model.apply, model.decision_path):
        with pytest.raises(ValueError, match=words):
            method(X)


def test_strings_where_numbers_were():
    model = DecisionTreeClassifier().fit(frame_of(pd.Series(NUMBERS)), Y)
    with pytest.raises(ValueError, match="column 'a' holds String: list it"):
        model.predict(frame_of(pd.Series(COLOURS)))


# estimators


@pytest.mark.parametrize(
    "make",
    [
        lambda **p: DecisionTreeRegressor(**p),
        lambda **p: ExtraTreesRegressor(3, **p),
        lambda **p: RandomForestClassifier(3, oob_score=True, **p),
        lambda **p: BaggingClassifier(DecisionTreeClassifier(**p), 3),
        lambda **p: RandomTreesEmbedding(3, **p),
    ],
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_all_estimators_take_them(make, tmp_path):
    X = frame_of(pd.Series(NUMBERS))
    model = make(categorical_features=["a"])
    assert not hasattr(model, "is_categorical_")
    model = clone(model).fit(X, Y)
    assert model.is_categorical_.tolist() == [True, False]
    model.save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    assert other.is_categorical_.tolist() == [True, False]
    assert other.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for copied in (other, pickle.loads(pickle.dumps(model))):
        assert copied.forest_.edges.categories == {0: (1.0, 2.0, 3.0)}
        assert np.array_equal(copied.apply(X), model.apply(X))
    assert all(
        t.is_categorical_.tolist() == [True, False] for t in getattr(model, "estimators_", [])
    )
    assert make().fit(X, Y).is_categorical_ is None


def test_set_output_and_scores():
    X = frame_of(pd.Series(COLOURS))
    trees = RandomTreesEmbedding(2, sparse_output=False).set_output(transform="pandas")
    assert list(trees.fit_transform(X)) == trees.get_feature_names_out().tolist()
    tree = DecisionTreeClassifier().fit(X, Y)
    assert tree.score(X, Y) == 1
    assert len(tree.cost_complexity_pruning_path(X, Y).ccp_alphas) > 1


def test_warm_start_needs_the_same_categories():
    X = frame_of(pd.Series(COLOURS))
    forest = RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, Y)
    whole = RandomForestClassifier(4, random_state=0).fit(X, Y)
    forest.set_params(n_estimators=4).fit(X, Y)
    assert np.array_equal(forest.forest_.nodes, whole.forest_.nodes)
    forest.set_params(n_estimators=5)
    for other in (X.replace("red", "rot"), X.assign(a=[SORTED.index(c or "") for c in COLOURS])):
        with pytest.raises(ValueError, match="X or y has other values now"):
            forest.fit(other, Y)


def test_monotonic_constraints_are_for_numbers():
    X = frame_of(pd.Series(COLOURS))
    message = "Categorical features cannot have monotonic constraints: set that of column 'a'"
    with pytest.raises(ValueError, match=message):
        DecisionTreeRegressor(monotonic_cst=[1, 0]).fit(X, Y)
    tree = DecisionTreeRegressor(monotonic_cst=[1, 0])
    with pytest.raises(ValueError, match="constraints: set that of column 0 in"):
        tree.set_params(categorical_features=[0]).fit(np.column_stack([Y, Y]), Y)
    DecisionTreeRegressor(monotonic_cst=[0, 1]).fit(X, Y)


@pytest.mark.parametrize("container", ["csr_matrix", "csc_array"])
def test_sparse_x_has_no_categories(container):
    import scipy.sparse

    X = getattr(scipy.sparse, container)(np.column_stack([Y, Y]).astype(float))
    message = re.escape("categorical features of sparse X are not supported: pass X.toarray()")
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(categorical_features=[0]).fit(X, Y)
    model = DecisionTreeClassifier(categorical_features=[0]).fit(X.toarray(), Y)
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_scikit_learns_trees_have_no_categories():
    model = DecisionTreeClassifier().fit(frame_of(pd.Series(COLOURS)), Y)
    with pytest.raises(ValueError, match="scikit-learn's trees have no categorical features"):
        model.to_sklearn()


def test_memory_knows_of_many_categories():
    X = (np.arange(2000) % 1000)[:, None]
    bins = DecisionTreeRegressor(max_bins=1001, memory_limit=1)
    few = DecisionTreeRegressor(categorical_features=[0], min_category_frequency=1, memory_limit=1)
    with pytest.raises(ValueError, match="memory_limit") as as_bins:
        bins.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="memory_limit") as as_categories:
        few.fit(X, X[:, 0])
    assert str(as_bins.value) == str(as_categories.value)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(categorical_features=[0]),
        ExtraTreesRegressor(3, categorical_features=[0]),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the checks warn on purpose
def test_scikit_learns_own_checks_with_a_category(estimator):
    failing = {
        "check_estimator_sparse_array": "sparse X with categories is refused",
        "check_estimator_sparse_matrix": "sparse X with categories is refused",
        "check_estimator_sparse_tag": "sparse X with categories is refused",
        "check_sample_weight_equivalence_on_sparse_data": "sparse X with categories is refused",
    }
    check_estimator(estimator, expected_failed_checks=failing)


# backends and real data


def test_backends_have_the_same_codes():
    X = frame_of(pd.Series(COLOURS)).assign(c=NUMBERS)
    codes = []
    for name in ("numpy", "numba"):
        model, engine = DecisionTreeClassifier(backend=name).fit(X, Y), get_backend(name)
        edges = model.forest_.edges
        assert edges.kinds.tolist() == [CATEGORICAL, 0, 0]
        found = bin_matrix(check_table(model, X, engine), edges, engine).codes
        codes.append(np.asarray(found)[:, :3])
    assert np.array_equal(*codes)
    assert codes[0][:4, 0].tolist() == [2, 1, edges.missing_code, 0]


@pytest.mark.parametrize(("name", "target"), [("adult_train", "class"), ("mushroom", "label")])
def test_real_data(name, target, tmp_path, shared_data):
    X = pd.read_csv(shared_data / f"{name}.csv.gz", nrows=4000)
    y = X.pop(target)
    train, test = slice(0, None, 2), slice(1, None, 2)
    models = [
        RandomForestClassifier(10, random_state=0, backend=b).fit(X[train], y[train])
        for b in ("numpy", "numba")
    ]
    assert np.array_equal(models[0].forest_.nodes, models[1].forest_.nodes)
    strings = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    assert [X.columns[f] for f in models[0].forest_.edges.categories] == strings
    assert models[0].score(X[test], y[test]) > 0.8
    models[0].save(tmp_path / "model")
    loaded = gpuforest.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(pl.from_pandas(X)), models[0].predict(X))
