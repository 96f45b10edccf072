"""The benchmark of clusters, on few rows."""

import argparse

import pytest

from benchmarks import cluster

pytestmark = pytest.mark.deep


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
