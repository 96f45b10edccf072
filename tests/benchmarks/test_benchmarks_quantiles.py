"""The script behind the tables of docs/uncertainty.md: a tiny run, its lines and table."""

import json

import numpy as np
import pytest

from benchmarks import quantiles, record

pytestmark = pytest.mark.deep


def tiny(name):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    X[7, 1] = np.nan
    return X, 1e5 * (X[:, 0] + rng.uniform(size=120))


def test_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(quantiles.real, "load", tiny)
    monkeypatch.setattr("sys.argv", ["quantiles", "--splits", "2", "--rivals", "0"])
    quantiles.main()
    text = (tmp_path / "quantiles.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["data"], line["split"]) for line in lines] == [
        (name, split) for name in ("california", "bike") for split in range(2)
    ]
    assert all(len(line["pinball"]) == 3 and 0 <= line["range"][0] <= 1 for line in lines)
    share, width = np.mean([line["interval"] for line in lines[:2]], axis=0)
    assert f"| california | interval | {share:.3f} | {width:.3f} |" in capsys.readouterr().out


def test_a_rival_is_measured_beside_ours(monkeypatch):
    monkeypatch.setattr(quantiles.real, "load", tiny)
    monkeypatch.setitem(quantiles.COMMON, "n_estimators", 60)
    rival = pytest.importorskip("quantile_forest", reason="quantile-forest is not installed")
    row = quantiles.one_split("bike", 0, rival)
    assert len(row["their pinball"]) == 3
    assert min(row["cpu"]) > 0


def test_losses_and_coverage_by_hand():
    y, found = np.array([1.0, 3.0]), np.array([[0.0, 2.0, 3.0], [4.0, 2.0, 3.0]])
    below, middle, above = quantiles.pinball(y, found)
    assert np.isclose(below, (0.05 * 1 + 0.95 * 1) / 2)
    assert np.isclose(middle, (0.5 * 1 + 0.5 * 1) / 2)
    assert np.isclose(above, (0.05 * 2 + 0) / 2)
    assert quantiles.covered(y, np.array([0.0, 4.0]), np.array([1.0, 5.0])) == (0.5, 1.0)


def test_a_split(monkeypatch):
    monkeypatch.setattr(quantiles.real, "load", tiny)
    X, y, X_test, y_test = quantiles.split("california", 0)
    assert (len(X), len(y), len(X_test), len(y_test)) == (90, 90, 30, 30)
    assert np.isfinite(X).all()
    assert y.max() < 2  # in units of 100,000
    assert not np.array_equal(y, quantiles.split("california", 1)[1])
