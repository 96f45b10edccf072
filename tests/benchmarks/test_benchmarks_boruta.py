"""The script behind the table of docs/selection.md: a tiny run, its lines and table."""

import json

import pytest

from benchmarks import boruta

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, capsys):
    path = tmp_path / "lines.jsonl"
    size = ["--rows", "120", "--features", "24", "--trees", "5", "--rounds", "3"]
    boruta.main([*size, "--seeds", "2", "--rivals", "0", "--results", str(path)])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["seed"], line["selector"]) for line in lines] == [
        (seed, f"gpuforest, {kind}") for seed in range(2) for kind in ("oob_impurity", "impurity")
    ]
    # three rounds decide nothing
    assert {(x["relevant"], x["others"], x["tentative"], x["rounds"]) for x in lines} == {
        (0, 0, 24, 3)
    }
    assert "| gpuforest, impurity | 2 | 0 (0-0) | 0 (0-0) | 24 (24-24) |" in capsys.readouterr().out


def test_the_data_say_what_they_should():
    X, y = boruta.like_madelon(400, 30, 0)
    other, same = boruta.like_madelon(400, 30, 0)
    assert (other == X).all()
    assert (y == same).all()
    assert X.shape == (400, 30)
    assert set(y) == {0, 1}
