"""What workers do with a partition: values on a GPU as those on the host."""

import sys

import fake_cupy
import numpy as np
import pytest

import gpuforest
from gpuforest.data.blocks import Block
from gpuforest.data.passes import Reader

pytest.importorskip("distributed", reason="dask is not installed")
from partitioned import WEIGHTS, X, Y, Z

from gpuforest.tools.dask import partitions
from gpuforest.tools.dask.estimators import score_of, scored


@pytest.fixture
def put(monkeypatch):
    """Brings a host array to the device; without a GPU to a stand-in."""
    fake_cupy.install(monkeypatch)
    return sys.modules["cupy"].asarray


def test_a_summary_of_weights_on_a_device(put):
    def found(place):
        reader = Reader(255, None, 1, 3)
        block = Block("partition 0", place(X), place(Z), place(WEIGHTS))
        reader = partitions.opened(block, reader)
        return partitions.summarised(block, reader, 0, 2**64 - 1)

    here, there = found(np.asarray), found(put)
    assert np.array_equal(there.sample.rows, here.sample.rows)
    assert len(here.sample.rows) < len(X)  # rows without weight are left out


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "RandomForestRegressor"])
def test_a_score_of_values_on_a_device(put, kind):
    y = Z if kind.endswith("Regressor") else (Y == "yes") + 1
    local = getattr(gpuforest, kind)(3, random_state=0).fit(X, y, WEIGHTS)
    cuts = [slice(0, 300), slice(300, None)]
    blocks = [Block("partition", *(put(a[part]) for a in (X, y, WEIGHTS))) for part in cuts]
    parts = [scored(local, block) for block in blocks]
    assert score_of(local, parts) == local.score(X, y, WEIGHTS)
