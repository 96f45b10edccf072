"""Boruta (Kursa and Rudnicki 2010): shadows of features, and which features beat them."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom, false_discovery_control

from gpuforest.common import hashing
from gpuforest.engine.binning import BinEdges

SHADOWS = 2**41  # with the seed, beyond all trees and hashing.ROWS: the keys of rounds
FEWEST_SHADOWS = 5  # so that few features left do not face a best shadow that is poor by chance
HASHES_AT_ONCE = 2**20


def round_key(seed: int, number: int) -> np.ndarray:
    """The key u64[1] of a round: position 0 under it is the forest's seed, 1, 2, ... the shadows'
    keys."""
    key = hashing.hash_at(np.full(1, seed, np.uint64), SHADOWS)
    return np.asarray(hashing.hash_at(key, number))


def shadows_of(codes: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The same codes [F, N], where the rows of each feature are in a random order of its own."""
    F, n = codes.shape
    found, position = np.empty_like(codes), np.arange(n, dtype=np.uint64)[None]
    keys = hashing.hash_at(key, np.arange(1, F + 1, dtype=np.uint64))[:, None]
    step = max(1, HASHES_AT_ONCE // n)
    for f in range(0, F, step):
        order = hashing.permute(np, keys[f : f + step], position, n).astype(np.int64)
        found[f : f + step] = np.take_along_axis(codes[f : f + step], order, axis=1)
    return found


def with_shadows(
    codes: np.ndarray, edges: BinEdges, features: np.ndarray, key: np.ndarray
) -> tuple[np.ndarray, BinEdges, np.ndarray]:
    """Codes and edges of some features and, after them, of their shadows.

    Parameters
    ----------
    codes : u8 or u16 [F, N]
    features : i64[n], the numbers of the features
    key : u64[1], see `round_key`

    Returns
    -------
    codes : [n + m, N], where m >= n and m >= FEWEST_SHADOWS: features come again and again
    edges : of these
    sources : i64[n + m], the feature that each is, or is a shadow of
    """
    again = np.resize(features, max(len(features), FEWEST_SHADOWS))
    sources = np.concatenate([features, again])
    taken = edges_of_features(edges, sources)
    own = codes[features]
    if taken.missing_code != edges.missing_code:
        own = np.where(own == edges.missing_code, taken.missing_code, own)
    own = own.astype(taken.code_dtype, copy=False)
    shuffled = shadows_of(np.resize(own, (len(again), own.shape[1])), key)
    return np.concatenate([own, shuffled]), taken, sources


def edges_of_features(edges: BinEdges, features: np.ndarray) -> BinEdges:
    """The edges of some features, which may come more than once."""
    each = [edges.values[edges.offsets[f] : edges.offsets[f + 1]] for f in features]
    offsets = np.cumsum([0, *map(len, each)], dtype=edges.offsets.dtype)
    kinds = edges.kinds[features] if len(edges.kinds) else edges.kinds
    known = edges.categories
    categories = {i: known[f] for i, f in enumerate(features.tolist()) if f in known}
    return BinEdges(np.concatenate(each), offsets, kinds, categories)


def decided(hits: np.ndarray, n_rounds: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Which features beat the best shadow more often than a fair coin, and which less often,
    bool[F] each.

    A binomial test of each feature, corrected twice: for the number of features, so that of those
    found a share of `alpha` is wrong on average (Benjamini and Hochberg 1995), and for the number
    of rounds, after each of which they are tested again (Bonferroni).

    Parameters
    ----------
    hits : i64[F], rounds in which a feature was more important than all shadows
    """

    def found(chances: np.ndarray) -> np.ndarray:
        few_wrong = false_discovery_control(chances) <= alpha
        return np.asarray(few_wrong & (chances <= alpha / n_rounds))

    more = found(binom.sf(hits - 1, n_rounds, 0.5))
    less = found(binom.cdf(hits, n_rounds, 0.5))
    return more, less
