"""Unusual X: the rows of docs/robustness.md, each with its test, on both CPU backends."""

import ast
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from optional import polars
from paths import TESTS
from robust import (
    KINDS,
    PAGE,
    X,
    Y,
    assert_plain,
    assert_refused,
    assert_same_trees,
    both_kinds,
    fitted,
    plain,
    predicted,
)


def documented() -> Iterator[tuple[set[str], str]]:
    """The tests of the files that a section links, and the test that each of its rows names."""
    for section in PAGE.split("\n## ")[1:]:
        files = re.findall(r"\]\(\.\./tests/(\S+\.py)\)", section)
        tests = set().union(*(names_in(TESTS / file) for file in files))
        for line in section.splitlines():
            if line.startswith("|") and not re.match(r"\| (input|use) \||\|--", line):
                yield tests, re.findall(r"`(test_\w+)`", line)[-1]


def names_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_row_of_the_page_has_a_test_and_every_test_a_row():
    rows = list(documented())
    assert len(rows) > 150
    for tests, name in rows:
        assert name in tests
    own = "test_every_row_of_the_page_has_a_test_and_every_test_a_row"
    files = (TESTS / "robustness").glob("test_robustness*.py")
    assert set().union(*map(names_in, files)) - {own} <= {name for _, name in rows}


@both_kinds
def test_one_row(backend, kind):
    with pytest.warns(UserWarning, match="do not have OOB scores"):  # every tree drew it
        model = fitted(kind, backend, X[:1], [2], oob_score=True)
    assert model.forest_.n_nodes == 3  # a leaf a tree
    assert model.predict(X).tolist() == [2] * len(X)
    assert np.isnan(model.oob_score_)
    assert same_forest(model.forest_, fitted(kind, "numpy", X[:1], [2]).forest_)


@both_kinds
def test_duplicate_rows(backend, kind):
    times = np.arange(len(X)) % 4
    twice = np.repeat(np.arange(len(X)), times)
    model = fitted(kind, backend, X[twice], Y[twice], bootstrap=False)
    weighted = fitted(kind, "numpy", X, Y, times, bootstrap=False)
    assert same_forest(model.forest_, weighted.forest_)
    # equal rows with other targets share a leaf
    tied = fitted(kind, backend, np.ones((4, 2)), [0, 1, 1, 1], bootstrap=False)
    share = [[0.25, 0.75]] if tied.__class__ is KINDS[0] else [0.75]
    assert predicted(tied, [[1, 1]]).tolist() == share


@both_kinds
@pytest.mark.parametrize("value", [3.5, np.nan])
def test_constant_and_all_missing_columns(backend, kind, value):
    wider = np.column_stack([X, np.full((len(X), 2), value)])
    # all features are tried: then a column that cannot split changes no draw
    model = fitted(kind, backend, wider, max_features=None)
    assert_same_trees(model, fitted(kind, "numpy", X, max_features=None))
    assert model.feature_importances_[5:].tolist() == [0, 0]


@both_kinds
@pytest.mark.parametrize("value", [3.5, np.nan])
def test_no_column_that_varies(backend, kind, value):
    same = np.full((len(X), 3), value)
    model = fitted(kind, backend, same)
    assert model.forest_.n_nodes == 3  # a leaf a tree
    assert model.feature_importances_.tolist() == [0, 0, 0]
    assert_same_trees(model, fitted(kind, "numpy", same))


@both_kinds
@pytest.mark.parametrize("unit", [1e300, 5e-324], ids=["huge", "denormal"])
def test_huge_and_denormal_numbers(backend, kind, unit):
    scaled = X * unit  # exact: whole numbers of the unit, in the same order
    model = fitted(kind, backend, scaled)
    assert_same_trees(model, plain(kind))
    assert np.array_equal(predicted(model, scaled), predicted(plain(kind), X))


@both_kinds
def test_whole_numbers_beyond_float64(backend, kind):
    far = 2**62 + np.arange(len(X))[:, None]  # all are the float64 2**62
    assert fitted(kind, backend, far).forest_.n_nodes == 3
    apart = 2**62 + 2**20 * np.arange(len(X))[:, None]
    reference = fitted(kind, "numpy", np.arange(len(X))[:, None])
    assert_same_trees(fitted(kind, backend, apart), reference)
    unsigned = apart.astype(np.uint64) * 2
    assert np.array_equal(
        predicted(fitted(kind, backend, unsigned), unsigned),
        predicted(reference, np.arange(len(X))[:, None]),
    )
    pa = pytest.importorskip("pyarrow")
    for numbers in (apart, unsigned):
        frame = pa.table({"id": numbers[:, 0]})
        assert_same_trees(fitted(kind, backend, frame), reference)


@both_kinds
def test_object_numbers_and_booleans(backend, kind):
    mixed, numbers = X.astype(object), X.copy()
    mixed[3, 1], numbers[3, 1] = None, np.nan
    mixed[:, 2] = [int(x) for x in X[:, 2]]
    mixed[4, 0], numbers[4, 0] = True, 1
    for rows, plain_rows in ((mixed, numbers), (X > 25, (X > 25).astype(float))):
        model, reference = (fitted(kind, backend, rows), fitted(kind, "numpy", plain_rows))
        assert same_forest(model.forest_, reference.forest_)
        assert np.array_equal(predicted(model, rows), predicted(reference, plain_rows))


@both_kinds
def test_record_batches(backend, kind):
    pa = pytest.importorskip("pyarrow")
    names = [f"x{i}" for i in range(5)]
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in X.T], names)
    model = fitted(kind, backend, batch)
    assert same_forest(model.forest_, plain(kind).forest_)
    assert list(model.feature_names_in_) == names
    assert np.array_equal(predicted(model, batch), predicted(plain(kind), X))


def forms() -> Iterator[tuple[str, object]]:
    """X in forms that are as its plain one, by name."""
    with TemporaryDirectory() as folder:
        for order in "CF":
            np.save(f"{folder}/{order}.npy", np.asarray(X, order=order))
            yield f"memory-mapped {order}", np.load(f"{folder}/{order}.npy", mmap_mode="r")
    yield "lists", X.tolist()
    for dtype in ("f2", "i1", "u1", "i8", ">f4", ">f8", "g", object):
        yield f"{dtype}", X.astype(dtype)
    for dtype in ("U", "S", object, np.dtypes.StringDType()):
        yield f"strings {dtype}", X.astype(str).astype(dtype)
    yield "lists of strings", X.astype(str).tolist()
    fixed = X.copy()
    fixed.flags.writeable = False
    yield "read-only", fixed
    for dtype in (np.float32, np.float64, np.int16):
        yield f"Fortran {dtype}", np.asfortranarray(X, dtype)
        for step in (1, -1):
            wide = np.full((160, 15), 7, dtype)
            wide[:: 2 * step, :: 3 * step] = X
            yield f"strided {dtype} {step}", wide[:: 2 * step, :: 3 * step]


FORMS = dict(forms())


@both_kinds
@pytest.mark.parametrize("form", FORMS)
def test_as_plain(backend, kind, form):
    assert_plain(kind, backend, FORMS[form])


def with_cell(value, dtype=object):
    rows = X.astype(dtype)
    rows[17, 1] = value
    return rows


DATES = np.arange("2020-01-01", "2020-03-21", dtype="M8[D]")
FEW = "Found array with 0 {} while a minimum of 1 is required by {{}}."
INFINITE = (
    "Input X contains infinity: column 1, row 17; NaN means missing, infinities must be replaced"
)
TEXT = "column 1 of X holds no numbers: {}; list it in categorical_features at fit, encode it as "
TEXT += "numbers or drop it"
REAL = (
    "X has the dtype datetime64[D]: only real numbers are supported; make numbers of it, such as "
)
REAL += "year, month and weekday or days since a date, or drop it"
REFUSED = {
    "no rows": (FEW.format("sample(s) (shape=(0, 5))"), X[:0], ("fit", "predict")),
    "no columns": (FEW.format("feature(s) (shape=(80, 0))"), X[:, :0], ("fit",)),
    "other columns": ("X has 4 features, but {} is expecting 5 features as input.", X[:, :4],
                      ("predict", "apply")),
    "infinity": (INFINITE, with_cell(np.inf, float), ("fit", "predict")),
    "minus infinity": (INFINITE, with_cell(-np.inf, float), ("fit", "predict")),
    "text": (TEXT.format("'red' is a str"), with_cell("red"), ("fit", "predict")),
    "beyond float64": (TEXT.format("int too large to convert to float"), with_cell(10**400),
                       ("fit",)),
    "dates": (REAL, DATES[:, None], ("fit",)),
}  # fmt: skip


@both_kinds
@pytest.mark.parametrize("name", REFUSED)
def test_refused_x(backend, kind, name):
    message, rows, methods = REFUSED[name]
    for method in methods:
        ask = partial(fitted, kind, backend, rows, Y[: len(rows)])
        if method != "fit":
            ask = partial(getattr(plain(kind), method), rows)
        assert_refused(kind, message, ask)


class LaterFrame:
    """A frame as dask has it: the numbers are computed when they are asked for."""

    columns = ("a", "b")

    def compute(self):
        raise AssertionError


def test_refused_frames(backend):
    kind = KINDS[0]
    for library in (pd, polars):
        frame = library.DataFrame({"a": X[:, 0], "d": DATES})
        with pytest.raises(ValueError, match=r"column 'd' holds Date.*; make numbers of it, such"):
            fitted(kind, backend, frame)
    message = (
        "X is a test_robustness.LaterFrame, not a frame in memory: call X.compute() first, or "
        "make it one of pandas, polars or Arrow (pyarrow.Table)"
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        fitted(kind, backend, LaterFrame())
    with pytest.raises(TypeError, match=r"call X\.collect\(\) first"):
        fitted(kind, backend, polars.LazyFrame({"a": X[:, 0]}))
    assert "call X.compute() first" in PAGE
