"""Columns of categories in every library, and what they must become."""

import numpy as np
import pandas as pd
import pyarrow as pa
from optional import polars as pl

from gpuforest import DecisionTreeClassifier
from gpuforest.backends.registry import get_backend
from gpuforest.data.validation import check_table, learn_table

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
    library = {"pandas": pd, "polars": pl, "pyarrow": pa}[type(column).__module__.split(".")[0]]
    kind = pa.table if library is pa else library.DataFrame
    return kind({"a": column, "b": np.arange(N)})


def codes_of(values, known):
    """The category codes that a column must become, computed with Python objects."""
    code = {value: float(i) for i, value in enumerate(known)}
    return [np.nan if v is None or v != v else code.get(v, float(len(known))) for v in values]


def read(X, backend="numpy", **params):
    """The category codes and the categories that `fit` learns of X."""
    model, engine = DecisionTreeClassifier(backend=backend, **params), get_backend(backend)
    found, known, _ = learn_table(model, X, engine)
    model.fit(X, Y)
    assert model.forest_.edges.categories == known
    assert np.array_equal(check_table(model, X, engine), found, equal_nan=True)
    return found, known
