"""The scripts behind the tables of docs/: a tiny run of each, its lines and its table."""

import argparse
import json
import time
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    accuracy,
    categories,
    cluster,
    first_contact,
    forgetting,
    public_data,
    record,
    turns,
)
from benchmarks import versions as of_versions
from benchmarks.presets import __main__ as presets
from benchmarks.presets.methods import Encoded, sklearn_forest

pytestmark = pytest.mark.deep


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a script with these options; returns its lines and what it prints."""

    def run(script, *options, to_file=False):
        monkeypatch.setattr(record, "RESULTS", tmp_path)
        name = script.__name__.removesuffix(".__main__").rpartition(".")[2]
        path = tmp_path / f"{name}.jsonl"
        arguments = [*map(str, options), *(["--results", str(path)] if to_file else [])]
        monkeypatch.setattr("sys.argv", ["script", *arguments])
        script.main(arguments) if to_file else script.main()
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines], capsys.readouterr().out

    return run


def test_accuracy(run):
    lines, printed = run(accuracy, "--sets", "digits", "--seeds", 2, "--trees", 2)
    methods = ["scikit-learn", "gpuforest", "gpuforest, 65535 bins"]
    assert [(x["split"], x["method"]) for x in lines] == [(i, m) for i in (1, 2) for m in methods]
    theirs, ours = (np.array([x["accuracy"] for x in lines[i::3]]) for i in range(2))
    difference, error = (ours - theirs).mean(), abs(np.diff(ours - theirs)[0]) / 2
    assert f"| digits | +0.0000 ± 0.0000 | {difference:+.4f} ± {error:.4f} |" in printed


def test_categories(run):
    lines, printed = run(categories, "--parts", "cost", "--rows", 200, "--turns", 1)
    assert len(lines) == 4 * 4 * 3 * 2
    assert all(x["nodes"] >= 3 and x["part"] == "cost" for x in lines)
    assert "| fit cpu s, ratio to numbers |" in printed


def fit(name, split, method, options):
    """What happens in place of a fit is said by the name of the method."""
    if method == "absent":
        raise ModuleNotFoundError("no such library")
    if method == "fails":
        raise ValueError("no such number")
    if name == "no data":
        return None
    wait = (lambda X, y: time.sleep(9)) if method == "slow" else (lambda X, y: None)
    model = SimpleNamespace(fit=wait, predict=lambda X: X[:, 0])
    X = np.arange(6.0).reshape(3, 2)
    return turns.measured(model, (X, X, X[:, 0], X[:, 0]), 0.2)


def test_turns(tmp_path):
    jobs = product(["no data", "set"], range(2), ["quick", "absent", "fails", "slow"])
    log = record.Log("turns", tmp_path / "turns.jsonl")
    lines = turns.take_turns(log, jobs, fit, SimpleNamespace(limit=0.2))
    found = [(x["set"], x["split"], x["method"], x.get("r2")) for x in lines]
    # data, libraries and fits that failed once are not asked for again
    assert found == [("set", 0, "quick", 1), ("set", 0, "fails", None), ("set", 0, "slow", None),
                     ("set", 1, "quick", 1)]  # fmt: skip
    assert lines[1]["error"] == "ValueError: no such number"
    assert lines[2]["over"] == 0.2
    assert 0 <= lines[0]["fit_s"] < 0.2


def test_first_contact(run, monkeypatch):
    def measure(commits, options, found):
        assert (commits, options.parts) == ({"before": "a", "after": "b"}, ["install"])
        found["install", "`pip install .` alone"] = {"before": [4, 2, 3], "after": [1, 2, 1]}

    monkeypatch.setattr(first_contact, "commit_of", str)
    monkeypatch.setattr(first_contact, "measure_all", measure)
    lines, printed = run(first_contact, "--before", "a", "--after", "b", "--parts", "install")
    assert [(line["part"], line["median_ratio"]) for line in lines] == [("install", 0.333333)]
    assert "alone | 3 (2-4) | 1 (1-2) | 0.333 |" in printed


def test_versions(run):
    lines, printed = run(of_versions, record.ROOT, "--repeats", 1, "--work", "depth 8", "boosting")
    assert [line["work"] for line in lines] == ["depth 8", "boosting"]
    assert all(line["before"] > 0 and line["median_ratio"] > 0 for line in lines)
    assert "| depth 8 |" in printed


def test_forgetting(run):
    options = "--trees", 2, "--ways", "data passed", "--splits", 1
    [line], printed = run(forgetting, "--rows", 400, *options)
    assert line["same"]
    assert line["row_count"] + line["row_anew_count"] == 7
    assert "| fit s, median | data passed |" in printed
    options = "--part", "rivals", "--sets", "cancer", "--methods", "gpuforest", "--deletions", 3
    line = run(forgetting, *options, "--trees", 2)[0][-1]
    assert line["same"]
    assert line["rows"] == 455
    assert line["deletions_share"] > 0


def test_presets(run, monkeypatch):
    methods = "sklearn-forest,gpuforest-forest-default"
    options = ["--sets", "digits", "--splits", 2, "--methods", methods]
    lines, printed = run(presets, *options)
    assert [(x["split"], x["method"]) for x in lines] == [
        (split, method)
        for split in range(2)
        for method in ("gpuforest-forest-default", "sklearn-forest")
    ]
    assert all(x["rows"] == 1347 and 0.9 < x["accuracy"] < x["fit_s"] + 1 for x in lines)
    assert lines[0]["log_loss"] != lines[2]["log_loss"]
    assert len(run(presets, *options)[0]) == 4  # what is there is not done again
    assert len(run(presets, *options, "--label", "b")[0]) == 6  # but with another label
    pair = methods.replace(",", ":")
    _, printed = run(presets, *options, "--summary", "--pairs", pair)
    assert "| sklearn-forest beside gpuforest-forest-default | 1 |" in printed


def test_presets_seal_sets_and_encode_categories_by_the_training_rows(run):
    assert len(public_data.SEALED) == 16
    for name in public_data.SEALED:
        with pytest.raises(SystemExit, match=f"unknown: {name}"):
            run(presets, "--sets", name)
    train = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 4]})
    test = pd.DataFrame({"a": ["z", None, "y"], "b": [1, 2, 3]})
    model = Encoded(sklearn_forest("Classifier", 0).model, 0).fit(train, [0, 1] * 2)
    np.testing.assert_array_equal(model.encoded(test)["a"], [-1, np.nan, 1])
    model.most_values = 2
    assert model.encoded(test)["a"].isna().tolist() == [True, True, False]


pytestmark = pytest.mark.deep


def test_traffic_of_clusters_by_hand_and_counted():
    # of 100 rows and 3 features four workers hold 25 rows each, and receive those of three others
    assert cluster.received(100, 3, 4) == 225
    assert cluster.received(100, 3, 1) == 0
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    options = argparse.Namespace(
        rows=20_000, trees=4, depth=8, partitions=4, turns=1, strategy="rows"
    )
    found = cluster.measured(options)
    # the formula leaves out the sums of roots, and what is agreed on before a wave
    beside = found["sent_by_rows_mb"] - found["formula_by_rows_mb"]
    assert 0 < beside < 0.01
    assert found["formula_by_rows_mb"] > 1
