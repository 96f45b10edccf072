"""The script behind the table of docs/anomalies.md: a tiny run, its lines, its tasks."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import isolation

pytestmark = pytest.mark.deep


def tiny(folder):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(8, 1, size=(3, 2))])
    yield "numbers", X.astype(np.float32), np.arange(63) >= 60
    kinds = pd.Series(["usual", "common"] * 30 + ["odd", None, "odd"]).astype("category")
    yield "categories", pd.DataFrame({"kind": kinds, "size": X[:, 0]}), np.arange(63) >= 60
    yield "others", X, np.arange(63) >= 60


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(isolation, "tasks", tiny)
    path = tmp_path / "lines.jsonl"
    options = ["--seeds", "2", "--tasks", "num", "categories", "--results", str(path)]
    isolation.main(options)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["set"], line["model"]) for line in lines] == [
        (name, model)
        for name in ("numbers", "categories")
        for model in ("scikit-learn", "gpuforest, max_bins=auto")
    ]
    assert all(line["rows"] == 63 and line["auc"] > 0.9 for line in lines)
    assert lines[0]["fit_ratio"] == 1
    assert f"| numbers: scikit-learn | {lines[0]['auc']:.4f} ±" in capsys.readouterr().out


def test_rare_rows_are_hidden_among_others():
    X = np.arange(1300.0)[:, None]
    y = np.repeat([0, 1, 2], [1000, 200, 100])
    shown, odd = isolation._rare(np.random.default_rng(0), X, y, [1], [0])
    assert odd.sum() == 20
    assert len(shown) == 1020
    assert ((shown[:, 0] >= 1000) == odd).all()
    assert shown.max() < 1200  # none of the third class


def test_tasks_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation.real, "load", lambda name, folder: None)
    frame = pd.DataFrame({"label": ["p", "e"] * 40, "cap": ["a", "?", "b", "c"] * 20, "n": 1.5})
    frame.to_csv(tmp_path / "mushroom.csv.gz", index=False)
    found = {name: (X, odd) for name, X, odd in isolation.tasks(tmp_path)}
    assert [*found] == ["mushroom, poisonous in others", "heavy tails", "amounts"]
    X, odd = found["mushroom, poisonous in others"]
    assert odd.sum() == 1
    assert X["cap"].dtype == "category"
    assert X["cap"].isna().any()
    assert X["n"].dtype == float
