"""The script behind the table of docs/differences.md: a tiny run, its lines and table."""

import json

import pytest

from benchmarks import outliers

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, capsys):
    path = tmp_path / "lines.jsonl"
    size = ["--rows", "60", "--trees", "2", "--seeds", "2"]
    outliers.main([*size, "--results", str(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    models = ["gpuforest, max_bins=auto", "gpuforest, max_bins=65535", "scikit-learn"]
    assert [(x["far"], x["model"]) for x in lines] == [
        (far, model) for far in outliers.FAR for model in models
    ]
    assert all(0 < x["median_error"] < 2 for x in lines)
    assert "| 1e+09 |" in capsys.readouterr().out
