"""Categories of unusual columns: the rows of docs/robustness.md, on both CPU backends."""

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from robust import X, Y, assert_refused, assert_same_trees, both_kinds, fitted, predicted
from scipy.sparse import csr_matrix

COLOURS = np.array(["red", "green", "blue", "violet"], object)[Y]


def frame(colours):
    return pd.DataFrame({"colour": colours, "size": X[:, 0]})


@both_kinds
def test_strings_and_unseen_and_missing_categories(backend, kind):
    model, reference = (fitted(kind, b, frame(COLOURS)) for b in (backend, "numpy"))
    assert same_forest(model.forest_, reference.forest_)
    assert model.forest_.edges.categories == {0: tuple(sorted({*COLOURS}))}
    for colours in (COLOURS, ["grey"] * 80, [None] * 80, ["grey", "red", None, ""] * 20):
        found = [predicted(m, frame(colours)) for m in (model, reference)]
        assert np.array_equal(*found)
        assert np.isfinite(found[0]).all()


@both_kinds
@pytest.mark.parametrize("value", [None, np.nan, pd.NA])
def test_no_category_at_all(backend, kind, value):
    some = {"categorical_features": ["colour"], "max_features": None}
    model = fitted(kind, backend, frame(pd.Series([value] * len(X), dtype=object)), **some)
    assert model.forest_.edges.categories == {0: ()}
    assert model.feature_importances_.tolist() == [0, 1]
    for colours in (COLOURS, [1] * 80):
        assert np.array_equal(
            predicted(model, frame(colours)), predicted(model, frame([None] * 80))
        )


@both_kinds
def test_one_category(backend, kind):
    model = fitted(kind, backend, frame(["red"] * len(X)), max_features=None)
    constant = np.column_stack([np.zeros(len(X)), X[:, 0]])
    reference = fitted(kind, "numpy", constant, max_features=None)
    assert_same_trees(model, reference)
    assert model.feature_importances_.tolist() == [0, 1]
    assert np.array_equal(predicted(model, frame(["red"] * 80)), predicted(reference, constant))


@both_kinds
def test_numbers_where_strings_were(backend, kind):
    model = fitted(kind, backend, frame(COLOURS))
    message = (
        "column 'colour' holds numbers, but its categories in training were strings: convert it "
        "to these"
    )
    assert_refused(kind, message, lambda: model.predict(frame(Y)))
    assert_refused(kind, message, lambda: model.apply(frame(Y)))


@both_kinds
@pytest.mark.parametrize("n", [253, 254, 300])
def test_many_categories(backend, kind, n):
    rows = np.arange(2 * n) % n
    table = pd.DataFrame({"colour": rows.astype(str), "size": rows})
    some = {"min_category_frequency": 1, "max_depth": 4}
    model, reference = (fitted(kind, b, table, rows % 3, **some) for b in (backend, "numpy"))
    assert same_forest(model.forest_, reference.forest_)
    assert model.forest_.edges.code_dtype is (np.uint8 if n == 253 else np.uint16)
    assert np.array_equal(predicted(model, table), predicted(reference, table))


@both_kinds
def test_rare_categories(backend, kind):
    rows = np.r_[np.arange(60) % 10, 10, 10, 11, 12]
    colour = np.array([*"abcdefghij", "x", "y", "z"])[rows]
    model = fitted(kind, backend, pd.DataFrame({"colour": colour}), rows % 3)
    assert model.forest_.edges.categories == {0: tuple("abcdefghij")}
    joined = np.where(rows < 10, colour, "rest")
    plain = fitted(
        kind, backend, pd.DataFrame({"colour": joined}), rows % 3, min_category_frequency=1
    )
    later = pd.DataFrame({"colour": [*"abcdefghij", "x", "never seen"]})
    as_rest = later.replace({"x": "rest", "never seen": "rest"})
    assert np.array_equal(predicted(model, later), predicted(plain, as_rest))


@both_kinds
def test_a_column_of_identifiers(backend, kind):
    table = pd.DataFrame({"id": [f"row {i}" for i in range(80)], "size": np.arange(80.0)})
    with pytest.warns(UserWarning, match="column 'id' has 80 different values in 80 rows"):
        model = fitted(kind, backend, table, Y)
    assert model.forest_.edges.categories == {0: ()}
    without = fitted(kind, backend, table.assign(id="one"), Y)
    assert np.array_equal(predicted(model, table), predicted(without, table))


def objects(values):
    return frame(pd.Series(values, dtype=object))


DAYS = [pd.Timestamp("2020-01-01")] * 80
MANY = np.arange(65_534)
COLOUR, ANY = {"categorical_features": ["colour"]}, {"min_category_frequency": 1}
REFUSED = [
    ("column 'colour' holds String: list it in categorical_features at fit, encode it as numbers "
     "or drop it", frame(COLOURS), {"categorical_features": None}),
    ("column 'colour' mixes strings and numbers as categories: make all of them strings",
     objects(["red", 1] * 40), COLOUR),
    ("column 'colour' holds Timestamp('2020-01-01 00:00:00') of type Timestamp: categories are "
     "strings, numbers or booleans; convert it to strings, or drop it", objects(DAYS), COLOUR),
    ("Input X contains infinity: column 'colour'; NaN means missing, infinities must be replaced",
     objects([1.0, np.inf] * 40), COLOUR),
    ("column 'colour' has 65534 categories; at most 65533 are supported: raise "
     "min_category_frequency, pass categorical_split='ordered_target', or drop it",
     pd.DataFrame({"colour": MANY, "size": MANY}), COLOUR | ANY),
    ("categorical_features set as a boolean mask must have shape (n_features,), got: (3,) for 2 "
     "features", frame(Y), {"categorical_features": [True, False, False]}),
    ("categorical_features set as integer indices must be in [0, n_features - 1], got: [2] for 2 "
     "features", frame(Y), {"categorical_features": [2]}),
    ("categorical_features has an item value 'color' which is not a valid feature name of the "
     "training data. Observed feature names: ['colour', 'size']",
     frame(Y), {"categorical_features": ["color"]}),
    ("categorical_features should be passed as an array of integers or as a boolean mask when the "
     "model is fitted on data without feature names.", X, COLOUR),
    ("Categorical features cannot have monotonic constraints: set that of column 'colour' in "
     "monotonic_cst to 0", frame(COLOURS), {"monotonic_cst": [1, 0]}),
    ("categorical features of sparse X are not supported: pass X.toarray(), or a frame",
     csr_matrix(X), {"categorical_features": [0]}),
]  # fmt: skip


@both_kinds
@pytest.mark.parametrize(("message", "table", "params"), REFUSED, ids=range(len(REFUSED)))
def test_refused_categories(backend, kind, message, table, params):
    y = np.resize([0, 1], table.shape[0])
    assert_refused(kind, message, lambda: fitted(kind, backend, table, y, **params))
