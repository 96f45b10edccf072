"""Models as C: compiled, they predict the same to the last bit."""

import ctypes
import shutil
import subprocess
from functools import cache, partial
from importlib.util import find_spec

import exported
import numpy as np
import pytest

import gpuforest as gf
from gpuforest.core.nodes import combined, has_set
from gpuforest.export.c import KEYWORDS, LIBRARY, MATH, is_free

CC = shutil.which("cc")
compiled = pytest.mark.skipif(CC is None, reason="there is no C compiler, cc")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
POINTER = {"float64": ctypes.c_double, "float32": ctypes.c_float}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A function that compiles a source; each once."""
    folder = tmp_path_factory.mktemp("c")

    @cache
    def library(source, *options):
        file = folder / f"{abs(hash((source, options)))}.c"
        file.write_text(source)
        out = file.with_suffix(".so")
        command = [CC, *STRICT, *options, "-shared", "-fPIC", "-o", out, file]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return ctypes.CDLL(str(out))

    return library


def predictions(library, rows, n_out, n_labels):
    """Numbers f64[N, n_out] and labels i32[N, n_labels] by the compiled function."""
    pointer = ctypes.POINTER(POINTER[rows.dtype.name])
    out, labels = np.zeros((len(rows), n_out)), np.zeros((len(rows), n_labels), np.intc)
    for row, own, label in zip(np.ascontiguousarray(rows), out, labels, strict=True):
        more = [label.ctypes.data_as(ctypes.POINTER(ctypes.c_int))] if n_labels else []
        given = row.ctypes.data_as(pointer), own.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        library.predict(*given, *more)
    return out, labels


def check(build, fitted, table, rows, by_exponentials=False):
    """The compiled model of rows as it takes them, beside ours of the table."""
    labels, parts = exported.answers(fitted, table)
    library, wanted = build(gf.export_c(fitted, dtype=rows.dtype.name)), np.hstack(parts)
    n_labels = 0 if labels is None else len(parts)
    found, numbers = predictions(library, rows, wanted.shape[1], n_labels)
    if n_labels:
        classes = fitted.classes_ if n_labels > 1 else [fitted.classes_]
        for own, known, label in zip(numbers.T, classes, labels.T, strict=True):
            assert known[own].tolist() == label.tolist()
    # exponentials are NumPy's there, which our C does not use
    bound = by_exponentials * (1e-14 if n_labels else 1e-15)
    assert np.allclose(found, wanted, rtol=bound, atol=bound / 10)


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [*exported.KINDS, *exported.SUMS])
def test_predictions_are_equal_at_every_edge(build, kind, dtype):
    fitted, rows = exported.model(kind), exported.edge_rows(exported.model(kind), dtype)
    if kind in exported.SUMS:
        rng = np.random.default_rng(0)
        mixed = rng.permuted(rows, axis=0)[:400]
        mixed[rng.random(mixed.shape) < 0.1] = np.nan
        rows = np.concatenate([rows, mixed])
        assert combined(fitted.forest_.nodes).max() > 1 or kind == "no sums"
    check(build, fitted, rows, rows, kind in exported.IN_C)


@compiled
@pytest.mark.parametrize("kind", ["forest", "chains", "boosted"])
def test_categories_are_codes(build, kind):
    fitted, far = exported.categorical(kind), exported.unseen_frame()
    far["x"] = np.resize(exported.FAR.ravel(), len(far))
    for frame in (exported.category_frame()[0], exported.unseen_frame(), far):
        check(build, fitted, frame, gf.category_codes(fitted, frame).astype(np.float64))


@compiled
def test_sums_beside_categories_and_codes_that_no_category_has(build):
    frame, y = exported.category_frame()
    frame["z"] = np.arange(len(frame)) % 13.0
    fitted = gf.RandomForestClassifier(
        5,
        feature_combinations=2.0,
        categorical_features=["colour", "size", "letter"],
        **exported.HERE,
    ).fit(frame, y > 1.5)
    assert combined(fitted.forest_.nodes).any()
    assert has_set(fitted.forest_.nodes).any()
    rows = exported.unseen_frame().assign(z=frame["z"])
    check(build, fitted, rows, gf.category_codes(fitted, rows).astype(np.float64))
    fitted = exported.categorical("forest")
    rows = gf.category_codes(fitted, exported.category_frame()[0]).astype(np.float64)
    rows[:, 0] = len(fitted.forest_.edges.categories[0])
    library = build(gf.export_c(fitted))
    other, _ = predictions(library, rows, 2, 1)
    for code in (-1.0, 1e9, 7e300):
        rows[:, 0] = code
        assert np.array_equal(predictions(library, rows, 2, 1)[0], other)


@compiled
def test_names_of_any_kind_and_tables_of_labels(build):
    names = ["*/ int x;", 'a "b" \\', "???/", "größe\n"]
    fitted = gf.RandomForestClassifier(2, max_depth=2, random_state=0, backend="numpy")
    labels = np.array(['"', "\\", "é1", "??)", "a\nb"])[np.arange(150) % 5]
    fitted.fit(exported.ROWS[:, :4], labels)
    source = gf.export_c(fitted, name="spam_1", feature_names=names)
    assert source.isascii()
    library = build(source)
    table = (ctypes.c_char_p * 5).in_dll(library, "spam_1_classes")
    assert [text.decode() for text in table] == fitted.classes_.tolist()
    numbers = build(gf.export_c(exported.model("votes")))
    assert [*(ctypes.c_int32 * 3).in_dll(numbers, "predict_classes")] == [-1, 0, 1]


def test_a_file_is_whole_or_not_there(tmp_path):
    fitted = exported.model("tree")
    source = gf.export_c(fitted, tmp_path / "model.c")
    assert (tmp_path / "model.c").read_text() == source
    writes = [partial(gf.export_c, fitted)]
    if find_spec("onnx"):
        graph = fitted.to_onnx(tmp_path / "model.onnx")
        assert (tmp_path / "model.onnx").read_bytes() == graph.SerializeToString()
        assert graph.producer_name == "gpuforest"
        writes.append(fitted.to_onnx)
    before = sorted(tmp_path.iterdir())
    for write in writes:
        with pytest.raises(OSError, match="absent"):
            write(tmp_path / "absent" / "model")
    assert sorted(tmp_path.iterdir()) == before


@compiled
def test_names_beside_those_of_the_language_and_options_that_change_sums(tmp_path, build):
    (tmp_path / "model.c").write_text(gf.export_c(exported.model("tree")))
    command = [CC, "-std=c99", "-ffast-math", "-c", "-o", tmp_path / "o", tmp_path / "model.c"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode
    assert "-ffast-math changes predictions" in done.stderr
    for name in ("x", "sum", "PREDICT", "tomato"):
        assert is_free(name)
        build(gf.export_c(exported.model("tree"), name=name))
    for name in [*KEYWORDS.split()[::6], *MATH.split()[::10], *LIBRARY.split()[::20]]:
        assert not is_free(name)


def test_codes_of_what_has_none_and_labels_that_are_no_text():
    rows = gf.category_codes(exported.model("strings"), exported.X)
    assert np.array_equal(rows, exported.X, equal_nan=True)
    with pytest.raises(TypeError, match="a dict has no categories of gpuforest's"):
        gf.category_codes({}, exported.X)
    with pytest.raises(ValueError, match="X has 2 features, but RandomForestClassifier"):
        gf.category_codes(exported.model("strings"), exported.X[:, :2])
    fitted = gf.DecisionTreeClassifier(backend="numpy").fit([[0.0], [1.0]], ["a", "b\ud800"])
    for export in (gf.export_c, type(fitted).to_onnx):
        with pytest.raises(ValueError, match=r"the class 'b\\ud800' has a lone surrogate"):
            export(fitted)
        pytest.importorskip("onnx", reason="needs pip install 'gpuforest[checks]'")
