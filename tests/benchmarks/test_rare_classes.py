"""The script behind the limit of leaves of docs/boosting.md: a tiny run, its lines and table."""

import json

import numpy as np
import pytest

from benchmarks import rare_classes, record
from gpuforest.boosting import losses

pytestmark = pytest.mark.deep


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    arguments = ["--sets", "spambase", "--seeds", "2", "--rounds", "2"]
    monkeypatch.setattr("sys.argv", ["rare_classes", *arguments])
    rare_classes.main()
    text = (tmp_path / "rare_classes.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["limit"] for line in lines] == [None, 60, 30, 10]
    assert [line["same"] for line in lines] == [2, 2, 2, 2]
    mean, worst = (f"{f(lines[0]['log_loss']):.4f}" for f in (np.mean, np.max))
    assert f"| {mean} | {worst} | 2 |" in capsys.readouterr().out
    assert losses.MOST_VALUE_OF_CLASSES == 30  # as it was


def test_the_rarest_class(monkeypatch):
    X, y = np.zeros((6, 1)), np.array([0, 0, 1, 2, 2, 2])
    monkeypatch.setattr(rare_classes, "load", lambda name, rows, folder: (X, y))
    assert rare_classes.data_of("covtype, one class", None)[1].tolist() == [0, 0, 1, 0, 0, 0]
    assert rare_classes.data_of("covtype", None)[1] is y
