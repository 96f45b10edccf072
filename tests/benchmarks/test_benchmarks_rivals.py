"""The comparison with other libraries: a tiny run, its lines and tables, every adapter."""

import json
import subprocess
import sys

import pytest

from benchmarks import rivals
from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.forest import Forest
from benchmarks.record import ROOT, by_method

pytestmark = pytest.mark.deep


class Nowhere(Forest):
    title, module, packages = "Nowhere's forests", "nowhere", ("nowhere-at-all",)


def test_a_whole_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(LIBRARIES, "nowhere", Nowhere)
    results = tmp_path / "rivals.jsonl"
    tiny = ["--works", "A8", "--part", "0.005", "--trees", "5", "--repeat", "1", "--calm", "0"]
    rivals.main([*tiny, "--rivals", "sklearn,nowhere", "--results", str(results)])
    said = capsys.readouterr()
    assert "Nowhere's forests: skipped, it is not installed" in said.err
    ours, theirs = (json.loads(line) for line in results.read_text().splitlines())
    assert (ours["library"], theirs["library"]) == ("gpuforest", "sklearn")
    for line in (ours, theirs):
        assert line["benchmark"] == "rivals"
        assert (line["work"], line["rows"], line["features"], line["tried"]) == ("A8", 1000, 28, 5)
        assert line["fit_s"] > 0
        assert line["model_mb"] > 0
        assert 0.5 < line["accuracy"] < 0.8
        assert 0.5 < line["log_loss"] < 1
    tables = said.out[said.out.index("A8: 1,000 x 28, 2 classes, depth 8\n") :]
    assert "| fit s, ratio to gpuforest | gpuforest | sklearn |" in tables

    rivals.main([*tiny, "--table", "--results", str(results)])
    assert capsys.readouterr().out.strip() == tables.strip()

    rivals.main([*tiny, "--rivals", "", "--limit", "0.0001", "--results", str(results)])
    assert "A8, gpuforest: more than 0.0001 s" in capsys.readouterr().out
    assert json.loads(results.read_text().splitlines()[-1])["over"] == 0.0001


ADAPTERS = """
import sys
import numpy as np
from dataclasses import replace
from benchmarks.libraries import LIBRARIES
from benchmarks.libraries.forest import Wanted

Library, rng = LIBRARIES[sys.argv[1]], np.random.default_rng(0)
X = rng.normal(size=(300, 6)).astype(np.float32)
code = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
for classes, y in ((2, X[:, 0] > 0), (3, code), (0, X[:, 0])):
    wanted = Wanted(10, None, 5, 6, classes, 1, 1)
    for depth in (None, 4):
        forest = Library(replace(wanted, depth=depth))
        forest.fit(X, y.astype(np.int32 if classes else np.float32))
        found = forest.predict(X)
        forest.use_threads(1)
        np.testing.assert_allclose(forest.predict(X[:1]), found[:1], rtol=1e-5)
        assert forest.size() > 0
        if classes:
            assert found.shape == (300, classes)
            np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)
            assert (found.argmax(axis=1) == y).mean() > 0.9
        else:
            assert found.shape == (300,)
            assert np.corrcoef(found, y)[0, 1] > 0.9
"""


@pytest.mark.parametrize("name", [x for x in LIBRARIES if x != "ranger"])
def test_every_library_that_is_installed_answers(name):
    if LIBRARIES[name].version() is None:
        pytest.skip(f"{LIBRARIES[name].title} is not installed")
    subprocess.run([sys.executable, "-c", ADAPTERS, name], cwd=ROOT, check=True)


def test_ranger_where_it_is_installed():
    if LIBRARIES["ranger"].version() is None:
        pytest.skip("ranger is not installed")
    options = rivals.parse(["--part", "0.005", "--trees", "5"])
    for name, score in (("A16", "accuracy"), ("diabetes", "r2")):
        found = rivals.fit(name, 1, "ranger", options)
        assert found["fit_s"] > 0
        assert found[score] > 0


def test_ratios_are_of_neighbouring_runs():
    def line(method, split, fit_s, date="1"):
        return {"set": "A8", "method": method, "split": split, "date": date, "fit_s": fit_s}

    alone = line("sklearn", 1, 99.0, date="2")  # in its run
    lines = [line("ours", 1, 1.0), line("sklearn", 1, 10.0), line("ours", 2, 2.0), alone]
    lines += [line("sklearn", 2, 40.0), line("ydf", 1, 4.0), {"set": "A8", "method": "ranger"}]
    assert by_method(lines, "fit_s", "ratio").splitlines() == [
        "| fit s, ratio to ours | ours | sklearn | ydf |",
        "| --- | ---: | ---: | ---: |",
        "| A8 | 1.00 | 15.00 | 4.00 |",
    ]
    medians = by_method(lines, "fit_s", "median").splitlines()[-1]
    assert medians == "| A8 | 1.5 (1-2) | 40 (10-99) | 4 |"
    mean = by_method(lines[:3], "fit_s", "mean", 1).splitlines()[-1]
    assert mean == "| A8 | 1.5 ± 0.5 | 10.0 |"
    difference = by_method(lines[:2], "fit_s", "difference", 1).splitlines()[-1]
    assert difference == "| A8 | +0.0 | +9.0 |"
    assert by_method(lines, "predict_s") == ""


def test_an_unknown_name_is_one_line(capsys):
    with pytest.raises(SystemExit):
        rivals.parse(["--works", "A9"])
    assert "no A9: there are A8, A16" in capsys.readouterr().err
