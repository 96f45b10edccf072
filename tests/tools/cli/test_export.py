"""`gpuforest export`: each kind is the file that Python writes, whole or not there."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import refused
from exported import ROWS, X, categorical, model

import gpuforest as gf
from gpuforest.tools.cli.main import main

NAMES = {"forest": "strings", "boosted": "boosted two", "numbers": "numbers"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with model files."""
    monkeypatch.chdir(tmp_path)
    for name, kind in NAMES.items():
        model(kind).save(name)
    categorical("forest").save("categories")
    return tmp_path


def exported(capsys, kind, name, *options):
    """The model and what the command writes of it, in a file."""
    assert main(["export", kind, name, "--out", "written", *options]) == 0
    assert capsys.readouterr().out == f"{kind} written to written\n"
    return gf.load(name), Path("written").read_bytes()


@pytest.mark.parametrize("options", [[], ["--dtype", "float64", "--ml-version", "5"]])
def test_onnx(here, capsys, options):
    pytest.importorskip("onnx", reason="needs pip install 'gpuforest[checks]'")
    fitted, written = exported(capsys, "onnx", "forest", *options)
    more = {"dtype": "float64", "ml_version": 5} if options else {}
    assert written == fitted.to_onnx(**more).SerializeToString()


def test_treelite(here, capsys):
    treelite = pytest.importorskip("treelite", reason="needs pip install 'gpuforest[checks]'")
    fitted, _ = exported(capsys, "treelite", "numbers")
    found = treelite.gtil.predict(treelite.Model.deserialize("written"), ROWS)
    assert np.array_equal(found.ravel(), fitted.predict(ROWS))


def test_sklearn(here, capsys):
    fitted, written = exported(capsys, "sklearn", "forest")
    found = pickle.loads(written)
    assert type(found).__module__.startswith("sklearn.")
    rows = X.astype(np.float32)
    assert np.array_equal(found.predict_proba(rows), fitted.predict_proba(rows))


@pytest.mark.parametrize(
    ("kind", "function"),
    [
        ("text", gf.export_text),
        ("rules", gf.export_rules),
        ("python", gf.export_python),
        ("dot", gf.export_graphviz),
    ],
)
@pytest.mark.parametrize("name", ["forest", "boosted"])
def test_one_tree(here, capsys, kind, function, name):
    fitted, written = exported(capsys, kind, name, "--tree", "2")
    assert written.decode() == str(function(fitted, 2))
    assert main(["inspect", name, "--tree", "2", "--as", kind]) == 0
    assert capsys.readouterr().out == written.decode()
    first = None if (kind, name) == ("python", "boosted") else 0
    assert exported(capsys, kind, name)[1].decode() == str(function(fitted, first))
    if kind in ("text", "dot"):
        _, written = exported(capsys, kind, name, "--max-depth", "1")
        assert written.decode() == str(function(fitted, 0, max_depth=1))


def test_c(here, capsys):
    fitted, written = exported(capsys, "c", "forest", "--dtype", "float32", "--name", "iris")
    assert written.decode() == gf.export_c(fitted, dtype="float32", name="iris")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["c", "forest", "--out", "new", "--name", "int"], "is no name of a function in C"),
        (["dot", "forest", "--out", "new", "--max-depth", "-1"], "max_depth"),
        (["sklearn", "categories", "--out", "new"], "no categorical features"),
        (["pmml", "forest", "--out", "new"], "invalid choice: 'pmml'"),
    ],
)
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
