"""Boruta's shadows and tests."""

import numpy as np
import pytest
from scipy.stats import binom

from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.engine.binning import BinEdges
from gpuforest.explain.importances import decided, round_key, shadows_of, with_shadows

CODES = np.random.default_rng(0).integers(0, 9, (6, 50)).astype(np.uint8)
EDGES = BinEdges(np.tile(np.arange(8.0), 6), np.arange(0, 49, 8, dtype=np.int64))


def test_a_shadow_holds_the_same_codes_in_another_order():
    shadows = shadows_of(CODES, round_key(1, 0))
    assert np.array_equal(np.sort(shadows), np.sort(CODES))
    assert all((a != b).any() for a, b in zip(shadows, CODES, strict=True))


def test_orders_differ_by_feature_round_and_seed():
    rows = np.tile(np.arange(50, dtype=np.uint8), (3, 1))
    keys = round_key(1, 0), round_key(1, 1), round_key(2, 0)
    orders = np.concatenate([shadows_of(rows, key) for key in keys])
    assert len(np.unique(orders, axis=0)) == 9
    assert np.array_equal(orders[:3], shadows_of(rows, round_key(1, 0)))


def test_blocks_of_shadows_change_nothing(monkeypatch):
    whole = shadows_of(CODES, round_key(1, 0))
    monkeypatch.setattr("gpuforest.explain.importances.HASHES_AT_ONCE", 60)
    assert np.array_equal(shadows_of(CODES, round_key(1, 0)), whole)


def test_some_features_and_their_shadows():
    features = np.array([1, 4])
    codes, edges, sources = with_shadows(CODES, EDGES, features, round_key(1, 0))
    assert sources.tolist() == [1, 4, 1, 4, 1, 4, 1]  # five shadows at the least
    assert np.array_equal(codes[:2], CODES[features])
    assert np.array_equal(np.sort(codes), np.sort(CODES[sources]))
    assert edges.n_features == 7
    assert np.array_equal(edges.values, np.tile(np.arange(8.0), 7))


def test_missing_values_and_categories_keep_their_meaning():
    values = np.concatenate([np.arange(300.0), np.arange(2.0)])
    kinds = np.array([0, CATEGORICAL], np.uint8)
    edges = BinEdges(values, np.array([0, 300, 302]), kinds, {1: ("a", "b")})
    assert edges.missing_code == 301
    codes = np.array([[0, 300, 301, 7], [0, 1, 301, 2]], np.uint16)
    found, taken, _ = with_shadows(codes, edges, np.array([1]), round_key(1, 0))
    assert taken.categories == dict.fromkeys(range(6), ("a", "b"))
    assert taken.missing_code == 4  # three bins and a spare one
    assert found.dtype == np.uint8  # as few bins need
    assert found[0].tolist() == [0, 1, 4, 2]
    assert np.array_equal(np.sort(found[1]), [0, 1, 2, 4])


@pytest.mark.parametrize("n_rounds", [1, 6, 40])
def test_decisions_by_their_definition(n_rounds):
    """Benjamini and Hochberg: the largest k such that the k-th chance is at most k / F alpha."""
    hits, alpha = np.random.default_rng(n_rounds).integers(0, n_rounds + 1, 30), 0.05
    hits[:6] = n_rounds
    for found, chances in zip(
        decided(hits, n_rounds, alpha),
        (binom.sf(hits - 1, n_rounds, 0.5), binom.cdf(hits, n_rounds, 0.5)),
        strict=True,
    ):
        passes = np.sort(chances) <= np.arange(1, 31) / 30 * alpha
        limit = np.sort(chances)[passes].max(initial=0.0)
        assert np.array_equal(found, (chances <= limit) & (chances <= alpha / n_rounds))


def test_one_feature_needs_about_nine_hits():
    assert not decided(np.array([7]), 7, 0.05)[0].any()
    assert decided(np.array([8]), 8, 0.05)[0].all()  # 2**-8 < 0.05 / 8
