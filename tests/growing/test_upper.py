"""Upper nodes: what compiled growth writes of them is what a second pass over the rows finds."""

import numpy as np
import pytest
from engine import same_forest
from laws import some_task
from paths import has_numba

from gpuforest.backends import numba, numpy
from gpuforest.core.frontier import Splits
from gpuforest.growing.grow import roots
from gpuforest.growing.upper import Histogram, best, follow, grown_slots, stacked
from gpuforest.splits.kept import kind
from gpuforest.splits.kinds import kind_in

needs_numba = pytest.mark.skipif(not has_numba, reason="no Numba")


def some_upper(seed):
    """A training, its forest, and its upper nodes twice: as written, and as found afterwards."""
    rng = np.random.default_rng([1, seed])
    task = some_task(
        seed, n_tried=int(rng.integers(1, 7)), max_depth=int(rng.choice([0, 1, 3, 99])),
        categorical=(0,) if seed % 3 == 0 else (), random=bool(rng.random() < 0.3),
        min_rows_leaf=int(rng.choice([1, 4])), max_bins=int(rng.choice([3, 255])),
    )  # fmt: skip
    task = task.but(
        n_trees=3, n_draws=len(task.X), n_features_tree=int(rng.integers(0, 3)),
        min_gain=float(rng.choice([-np.inf, 0.5])), min_weight_leaf=int(rng.choice([1, 1, 5])),
    )  # fmt: skip
    backend, most_rows = numba.NumbaBackend(), int(rng.choice([1, 8, 30]))
    training = task.training(backend)
    forest, written = grown_slots(training, backend, roots(training, backend, 0, 3), most_rows)
    assert same_forest(forest, task.grow(numpy.NumpyBackend()))
    slots = roots(training, backend, 0, 3)
    return training, written, follow(training, backend, forest, slots, most_rows)


@needs_numba
@pytest.mark.parametrize("seed", range(60))
def test_written_nodes_are_those_of_a_second_pass(seed):
    training, written, again = some_upper(seed)
    for name in ("tree", "key", "depth", "n_rows", "sums"):
        assert np.array_equal(getattr(written.slots, name), getattr(again.slots, name)), name
    for name in ("node", "below", "root"):
        assert np.array_equal(getattr(written, name), getattr(again, name)), name
    for own, other in zip(written.kept, again.kept, strict=True):
        if isinstance(own, Histogram):  # a pass over the rows may look at more features
            drawn = np.flatnonzero(own.features >= 0)
            at = np.flatnonzero(other.features >= 0)[: len(drawn)]
            assert np.array_equal(own.features[drawn], other.features[at])
            assert np.array_equal(own.sums[drawn], other.sums[at])
        else:
            order = np.argsort(own.rows)
            assert np.array_equal(own.rows[order], np.sort(other.rows))
            assert np.array_equal(own.weights[order], other.weights[np.argsort(other.rows)])
    # a search by what is kept finds the splits
    on = np.flatnonzero(written.below)
    if len(on):
        slots = written.slots.take(np, on, 0)
        hist = stacked([written.kept[i] for i in on])
        found = best(training, numba.NumbaBackend(), kind_in(training), slots, hist)
        known: Splits = written.splits.take(np, on)
        assert np.array_equal(found.feature, known.feature)
        assert np.array_equal(found.bin, known.bin)


@needs_numba
def test_nodes_without_room_for_histograms_are_blocks(monkeypatch):
    monkeypatch.setattr(kind, "UPPER", 0)
    monkeypatch.setattr(kind, "SPARE", 2)
    fewer = 0
    for seed in range(12):
        _, written, again = some_upper(seed)
        for tree, root in enumerate(written.root.tolist()):  # each holds the same rows all the same
            held, whole = written.rows_below(root), again.rows_below(again.root[tree])
            order, other = np.argsort(held.rows), np.argsort(whole.rows)
            assert np.array_equal(held.rows[order], whole.rows[other])
            assert np.array_equal(held.weights[order], whole.weights[other])
        fewer += (written.below > 0).sum() < (again.below > 0).sum()
    assert fewer > 2
