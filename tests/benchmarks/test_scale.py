"""The benchmarks of data beyond memory and of clusters, on few rows."""

import argparse

import pytest

from benchmarks import cluster, out_of_core

pytestmark = pytest.mark.deep


def test_out_of_core(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    monkeypatch.setattr(out_of_core, "FILE_ROWS", 100_000)
    out_of_core.write(tmp_path, 110_000)
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    options = argparse.Namespace(rows=110_000, trees=1, depth=4, threads=1, memory_limit=None)
    found = out_of_core.work(tmp_path, options)
    assert found["accuracy"] > 0.6
    assert 7 <= found["nodes"] <= 31
    assert found["predict_mb"] >= found["bin_mb"] > 0
    assert out_of_core.same(tmp_path, options)


def test_received_codes_by_hand():
    # of 100 rows and 3 features four workers hold 25 rows each, and receive those of three others
    assert cluster.received(100, 3, 4) == 225
    assert cluster.received(100, 3, 1) == 0


def test_counted_traffic_of_rows():
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    options = argparse.Namespace(
        rows=20_000, trees=4, depth=8, partitions=4, turns=1, strategy="rows"
    )
    found = cluster.measured(options)
    # the formula leaves out the sums of roots, and what is agreed on before a wave
    beside = found["sent_by_rows_mb"] - found["formula_by_rows_mb"]
    assert 0 < beside < 0.01
    assert found["formula_by_rows_mb"] > 1


def test_simulated(monkeypatch):
    monkeypatch.setattr(cluster, "_seconds", lambda made, trees, options: 1.0 + trees)
    options = argparse.Namespace(
        rows=1000, trees=2, depth=4, turns=1, simulated_trees=10, bandwidth=1e6
    )
    found = {(x["size"], x["workers"]): x for x in cluster.simulated(options)}
    # 0.001 s of binning a row, 0.001 s for each tree; codes and targets over the network
    rows = 11_000_000
    network = (rows * 28 * 3 / 4 + 8 * rows) / 1e6
    assert found["HIGGS 11M", 4]["network"] == pytest.approx(network)  # sums of floats
    assert found["HIGGS 11M", 4]["seconds"] == pytest.approx(rows * 0.011 / 4 + network)
