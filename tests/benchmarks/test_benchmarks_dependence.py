"""The script behind the table of docs/partial_dependence.md: a tiny run, its lines and table."""

import json

import numpy as np
import pytest

from benchmarks import dependence

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[5, 1] = np.nan
    monkeypatch.setattr(dependence.real, "load", lambda name, folder: (X, rng.normal(size=60)))
    path = tmp_path / "lines.jsonl"
    dependence.main(["--rows", "50", "--trees", "3", "--runs", "2", "--results", str(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["way"], line["model"]) for line in lines] == [
        (way, model)
        for way in ("recursion", "brute", "individual")
        for model in ("gpuforest", "scikit-learn")
    ]
    assert all(line["rows"] == 50 and line["later_s"] > 0 for line in lines)
    assert lines[-1]["all_at_once_mb"] == 50 * 3 * 4 * 50 / 1e6
    assert "| recursion, gpuforest |" in capsys.readouterr().out


def test_without_the_data_there_is_no_run(tmp_path, capsys):
    dependence.main(["--data", str(tmp_path), "--results", str(tmp_path / "lines")])
    assert "california: skipped" in capsys.readouterr().out
    assert not (tmp_path / "lines").exists()
