"""The script behind docs/understanding.md: a tiny run, its lines and tables."""

import json
from itertools import islice

import pytest

from benchmarks import record, understanding

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    first = list(islice(understanding.learning_sets(), 1))
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(understanding, "learning_sets", lambda: first)
    monkeypatch.setattr(understanding, "LEAST_ROWS", (20,))
    monkeypatch.setattr(understanding, "VOTING_SETS", ("digits",))
    monkeypatch.setattr("sys.argv", ["understanding", "--rounds", "2", "--seeds", "2"])
    understanding.main()
    lines = [
        json.loads(line) for line in (tmp_path / "understanding.jsonl").read_text().splitlines()
    ]
    assert [line["part"] for line in lines] == ["bias and variance"] * 6 + ["voting"] * 4
    for line in lines[:6]:
        # both are rounded to six digits when they are written
        assert abs(line["bias"] + line["variance"] - line["error"]) < 1e-4 * line["error"]
    assert [(line["seed"], line["voting"]) for line in lines[6:]] == [
        (1, "soft"),
        (1, "hard"),
        (2, "soft"),
        (2, "hard"),
    ]
    printed = capsys.readouterr().out
    assert f"| Friedman 1: tree | {lines[1]['error']:.2f} |" in printed
    soft = (lines[6]["accuracy"] + lines[8]["accuracy"]) / 2
    assert f"| digits, leaves of 20 or more | {100 * soft:.2f} |" in printed
