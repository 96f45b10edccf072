"""`gpuforest export` and `explain`: they write what Python's functions return, whole or nothing."""

import pickle
import sys
from pathlib import Path

import exported
import numpy as np
import pandas as pd
import pytest
from commands import refused

import gpuforest as gf
from gpuforest.tools.cli import main

NAMES = {"forest": "strings", "boosted": "boosted two", "numbers": "numbers"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, kind in NAMES.items():
        exported.model(kind).save(name)
    exported.categorical("forest").save("categories")
    return tmp_path


def written_by(capsys, kind, name, *options):
    """The model and what the command writes of it, in a file."""
    assert main(["export", kind, name, "--out", "written", *options]) == 0
    assert capsys.readouterr().out == f"{kind} written to written\n"
    return gf.load(name), Path("written").read_bytes()


@pytest.mark.parametrize("options", [[], ["--dtype", "float64", "--ml-version", "5"]])
def test_onnx(here, capsys, options):
    pytest.importorskip("onnx", reason="needs pip install 'gpuforest[checks]'")
    fitted, written = written_by(capsys, "onnx", "forest", *options)
    more = {"dtype": "float64", "ml_version": 5} if options else {}
    assert written == fitted.to_onnx(**more).SerializeToString()


def test_treelite(here, capsys):
    treelite = pytest.importorskip("treelite", reason="needs pip install 'gpuforest[checks]'")
    fitted, _ = written_by(capsys, "treelite", "numbers")
    found = treelite.gtil.predict(treelite.Model.deserialize("written"), exported.ROWS)
    assert np.array_equal(found.ravel(), fitted.predict(exported.ROWS))


@pytest.mark.parametrize(("kind", "function"), [
    ("text", gf.export_text),
    ("rules", gf.export_rules),
    ("python", gf.export_python),
    ("dot", gf.export_graphviz),
])  # fmt: skip
@pytest.mark.parametrize("name", ["forest", "boosted"])
def test_one_tree(here, capsys, kind, function, name):
    fitted, written = written_by(capsys, kind, name, "--tree", "2")
    assert written.decode() == str(function(fitted, 2))
    assert main(["inspect", name, "--tree", "2", "--as", kind]) == 0
    assert capsys.readouterr().out == written.decode()
    first = None if (kind, name) == ("python", "boosted") else 0
    assert written_by(capsys, kind, name)[1].decode() == str(function(fitted, first))
    if kind in ("text", "dot"):
        _, written = written_by(capsys, kind, name, "--max-depth", "1")
        assert written.decode() == str(function(fitted, 0, max_depth=1))


def test_sklearn_and_c(here, capsys):
    fitted, written = written_by(capsys, "sklearn", "forest")
    found = pickle.loads(written)
    assert type(found).__module__.startswith("sklearn.")
    rows = exported.X.astype(np.float32)
    assert np.array_equal(found.predict_proba(rows), fitted.predict_proba(rows))
    fitted, written = written_by(capsys, "c", "forest", "--dtype", "float32", "--name", "iris")
    assert written.decode() == gf.export_c(fitted, dtype="float32", name="iris")


@pytest.mark.parametrize(("arguments", "words"), [
    (["c", "forest", "--out", "new", "--name", "int"], "is no name of a function in C"),
    (["dot", "forest", "--out", "new", "--max-depth", "-1"], "max_depth"),
    (["sklearn", "categories", "--out", "new"], "no categorical features"),
    (["pmml", "forest", "--out", "new"], "invalid choice: 'pmml'"),
])  # fmt: skip
def test_errors_are_one_line_and_leave_nothing(here, capsys, arguments, words):
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    assert words in refused(capsys, "export", *arguments)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_failing_export_keeps_the_file_that_was_there(here, capsys, monkeypatch):
    (here / "old").write_text("kept")
    monkeypatch.setitem(sys.modules, "treelite.model_builder", None)
    assert main(["export", "treelite", "forest", "--out", "old"]) == 2
    assert "pip install 'gpuforest[treelite]'" in capsys.readouterr().err

    monkeypatch.setattr("gpuforest.tools.cli.inspect.pickle.dumps", lambda _: 1 / "no")
    assert main(["export", "sklearn", "forest", "--out", "old"]) == 2
    assert (here / "old").read_text() == "kept"
    assert not list(here.glob(".gpuforest-*"))


FOREST = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "backend": "numpy", "n_jobs": 1}


@pytest.fixture
def X(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(id=np.arange(40)).to_csv("data.csv", index=False)
    return frame


def explain(*arguments):
    return main(["explain", "model", "data.csv", "--backend", "numpy", *arguments])


@pytest.mark.parametrize("beside", [False, True])
def test_a_regression(X, capsys, beside):
    model = gf.RandomForestRegressor(**FOREST).fit(X, X["a"])
    model.save("model")
    X.iloc[:7].assign(c="other").to_csv("typical.csv", index=False)
    assert explain("--out", "why.csv", *(["--background", "typical.csv"] if beside else [])) == 0
    out, error = capsys.readouterr()
    assert "40 explanations written to why.csv" in out
    assert "columns ignored: 'id'" in error
    found, background = pd.read_csv("why.csv"), X.iloc[:7] if beside else None
    assert [*found] == ["a", "b", "expected_value"]
    assert np.array_equal(found[["a", "b"]], model.shap_values(X, background=background))
    expected = model.expected_value(background) if beside else model.expected_value_
    assert (found["expected_value"] == expected).all()


def test_classes_to_standard_output(X, capsys):
    model = gf.RandomForestClassifier(**FOREST).fit(X, np.where(X["a"] > 0, "yes", "no"))
    model.save("model")
    assert explain() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a_no,b_no,expected_value_no,a_yes,b_yes,expected_value_yes"
    found = np.array([line.split(",") for line in lines[1:]], float)
    assert np.array_equal(found[:, 3:5], model.shap_values(X)[:, :, 1])
    total = found[:, 3:].sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(X)[:, 1], atol=1e-12)


def test_backgrounds_and_names_that_are_refused(X, capsys):
    gf.RandomForestRegressor(**FOREST).fit(X, X["a"]).save("model")
    X[["a"]].to_csv("narrow.csv", index=False)
    X[:0].to_csv("empty.csv", index=False)
    X.assign(b="text").to_csv("text.csv", index=False)
    for given, error in (
        (["narrow.csv"],
         "--background: the model needs a column that is absent from the data: 'b'"),
        (["empty.csv"], "--background: empty.csv has no rows"),
        (["text.csv"], "--background: column 'b' held numbers in training"),
        (["none.csv"], "none.csv: no such file"),
        ([], "--background: expected one argument"),
    ):  # fmt: skip
        assert error in refused(capsys, "explain", "model", "data.csv", "--background", *given)
    X = X.rename(columns={"b": "expected_value"})
    X.to_csv("data.csv", index=False)
    gf.RandomForestRegressor(**FOREST).fit(X, X["a"]).save("model")
    error = "a feature has the name expected_value: rename it"
    assert error in refused(capsys, "explain", "model", "data.csv")
