"""The script behind "Forest or boosting" of docs/boosting.md: a tiny run, its lines and table."""

import json

import numpy as np
import pytest

from benchmarks import forest_or_boosting, record

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    arguments = ["--sets", "cancer", "diabetes", "--seeds", "2"]
    monkeypatch.setattr("sys.argv", ["forest_or_boosting", *arguments])
    forest_or_boosting.main()
    text = (tmp_path / "forest_or_boosting.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == 2 * 3 * 2
    assert {line["rows"] for line in lines if line["part"] == "300 rows"} == {300}
    printed = capsys.readouterr().out
    forest, boosting = (np.mean(line["accuracy"]) for line in lines[:2])
    assert (
        f"| cancer, all rows | {forest:.4f} | {boosting:.4f} | {boosting - forest:+.4f} ±"
        in printed
    )
    assert printed.count("± ") == 3 * 2 + 3


def test_wrong_targets_are_a_fifth_at_most():
    X, y = np.arange(1000.0)[:, None], np.arange(1000)
    X_new, y_new = forest_or_boosting.training("a fifth wrong", X, y, 0)
    assert np.array_equal(X, X_new)
    assert 150 < (y_new != y).sum() <= 200
    assert set(y_new) <= set(y)
    assert y.tolist() == [*range(1000)]
