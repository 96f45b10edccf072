"""How combinations of features are drawn and stored, and what they add up."""

import array_api_compat.numpy as xp
import numpy as np
import pytest

from gpuforest.common.dtypes import MOST_COORDINATE
from gpuforest.core.bins import BinEdges
from gpuforest.core.criteria import CRITERIA
from gpuforest.core.rules import Rules
from gpuforest.core.terms import ALL_LEFT, Combining, chances, pack, unpack, words_for
from gpuforest.export.views import in_units
from gpuforest.growing.edges import fit_edges
from gpuforest.splits.oblique.kind import draw


def combined(mean, heaviest=1):
    gini = CRITERIA["gini"]
    return Rules(gini, 1, 1, 2, 1, 0.0, combined=mean, heaviest=heaviest)


def test_coordinates_are_where_bins_lie():
    edges = BinEdges.of([[1.0, 3.0, 4.0], [5.0], [], []], {3: ("a", "b")})
    found = edges.coordinates  # bins at 0, 2, 3.5 and 4.5 of the first
    assert found[0, :4].tolist() == [0, 29126, 50971, MOST_COORDINATE]
    assert found[1, :2].tolist() == [0, MOST_COORDINATE]
    assert found[2].tolist() == [0] * edges.n_codes
    assert found[3, :3].tolist() == [0, 1, 2]  # category codes


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_coordinates_ascend(scale):
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=6, size=(5000, 3)) * (scale / 1e12)
    edges = fit_edges(X, max_bins=3000)
    for f, n in enumerate(edges.n_bins):
        steps = np.diff(edges.coordinates[f, :n])
        assert steps.min() >= 1
        assert edges.coordinates[f, n - 1] <= MOST_COORDINATE


@pytest.mark.parametrize(("mean", "n"), [(1.5, 20), (2.0, 20), (3.0, 4), (8.0, 20), (2.0, 2)])
def test_combinations_have_so_many_features_on_average(mean, n):
    above = chances(mean, n).astype(float) / 2.0**64
    assert 1 + above.sum() == pytest.approx(mean)
    assert (np.diff(above) <= 0).all()
    assert len(chances(mean, 1)) == 0


def drawn(combining, n_features, k, n_slots=4000, first=0):
    keys = np.random.default_rng(1).integers(0, 2**64, n_slots, dtype=np.uint64)
    return draw(xp, keys, first, k, n_features, combining, k)


@pytest.mark.parametrize("heaviest", [1, 5])
def test_features_and_weights_are_drawn_evenly(heaviest):
    rng = np.random.default_rng(0)
    edges = fit_edges(rng.normal(size=(300, 6)))
    combining = Combining.of(edges, combined(2.5, heaviest), np.asarray)
    features, weights = drawn(combining, 6, 3)
    some = features >= 0
    n = some.sum(axis=2)
    # 12,000 combinations: five standard errors of the mean and of each share
    assert abs(n.mean() - 2.5) < 5 * n.std() / np.sqrt(n.size)
    counts = np.bincount(features[some], minlength=6) / some.sum()
    assert abs(counts - 1 / 6).max() < 5 * np.sqrt(5 / 36 / some.sum())
    for row in features.reshape(-1, features.shape[2])[:500]:
        own = row[row >= 0].tolist()
        assert len({*own}) == len(own) > 0
        assert (row[len(own) :] == -1).all()
    values, times = np.unique(weights[..., 1:][some[..., 1:]], return_counts=True)
    assert {*values.tolist()} == {w for w in range(-heaviest, heaviest + 1) if w}
    assert times.min() / times.max() > 0.8
    assert (weights[..., 0] > 0).all()  # the sign of a whole sum says nothing


def test_categories_stay_alone():
    X = np.column_stack([np.arange(60) % 3, np.random.default_rng(0).normal(size=(60, 3))])
    edges = fit_edges(X, categories={0: (0, 1, 2)})
    combining = Combining.of(edges, combined(3.0), np.asarray)
    features, _ = drawn(combining, 4, 4, n_slots=300)
    first = features[:, :, 0] == 0
    assert (features[first][:, 1:] == -1).all()
    assert not (features[:, :, 1:] == 0).any()


def test_words_are_read_as_they_were_packed():
    rng = np.random.default_rng(0)
    n = np.arange(2, 9)
    features = np.where(np.arange(8) < n[:, None], rng.integers(0, 2**17 - 1, (7, 8)), -1)
    weights = rng.choice([-5, -1, 1, 4], (7, 8))
    threshold = np.array([0, -1, -2621360, ALL_LEFT, 7, -(2**31), 2621360])
    words = pack(xp, features.astype(np.int32), weights.astype(np.int32), threshold, words_for(8))
    assert words.shape == (7, 5)
    found = unpack(xp, words, n, 8)
    assert np.array_equal(found[0], features)
    assert np.array_equal(np.where(features >= 0, found[1], 0), np.where(features >= 0, weights, 0))
    assert np.array_equal(found[2], threshold)


def test_sums_in_units_of_the_data():
    edges = BinEdges.of([[1.0, 3.0, 4.0], [10.0, 30.0, 40.0], []])
    # the bins of both lie at 0 .. 4.5 and at 0 .. 45
    half = MOST_COORDINATE // 2
    words, limit = in_units(edges, [0, 1], [1, -2], half, ["a", "b"])
    assert words == "a - 0.2 b"
    assert limit == pytest.approx(2.25, abs=1e-3)
    words, _ = in_units(edges, [2, 1, 0], [1, 1, 1], half, ["c", "b", "a"])
    assert words == "b + 10 a"  # a constant adds nothing


def test_too_many_bins():
    with pytest.raises(ValueError, match="at most 65520 bins"):
        Combining.of(BinEdges.of([np.arange(65_530.0)]), combined(2.0), np.asarray)
