"""Walking rows down trees of every shape, and adding up their leaves, is the reference's: ==."""

from dataclasses import replace

import array_api_compat.numpy as xp
import numpy as np
import pytest

from gpuforest.backends import numba, numpy
from gpuforest.backends import numba as numba_backend
from gpuforest.core import nodes
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest
from gpuforest.core.target import TargetCoding

N_FEATURES = 6


@pytest.fixture(autouse=True)
def few_rows_are_shared_out(monkeypatch):
    monkeypatch.setattr(numba_backend, "MIN_WORK", 1)


def random_tree(rng: np.random.Generator, n_splits: int, n_bins: int, n_leaf_rows: int):
    """Packed nodes u64[2 n_splits + 1]; any node without children may become the next split."""
    feature, bin = rng.integers(0, N_FEATURES, n_splits), rng.integers(0, n_bins, n_splits)
    word = nodes.pack_splits(xp, feature, bin, rng.random(n_splits) < 0.5)
    tree = nodes.LEAF_WORD + rng.integers(0, n_leaf_rows, 2 * n_splits + 1).astype(np.uint64)
    leaves = [0]
    for s in range(n_splits):
        # mostly a young leaf, so that trees are deep and uneven
        at = leaves.pop(int(len(leaves) * rng.random() ** 0.3))
        tree[at] = word[s] + (np.uint64(2 * s + 1) << np.uint64(nodes.CHILD_SHIFT))
        leaves += [2 * s + 1, 2 * s + 2]
    return tree


def random_forest(
    rng: np.random.Generator, splits: list[int], n_bins: int, leaf_sums: np.ndarray, classes: bool
) -> Forest:
    trees = [random_tree(rng, n, n_bins, len(leaf_sums)) for n in splits]
    C = leaf_sums.shape[1]
    if classes:
        coding = TargetCoding(np.arange(C), np.zeros(0), 1.0)
    else:
        coding = TargetCoding(None, rng.normal(size=C - 1), 0.37)
    edges = BinEdges.of([np.arange(n_bins - 1.0)] * N_FEATURES)
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in trees])])
    return Forest(np.concatenate(trees), offsets, leaf_sums, edges, coding, 0)


def sparse_counts(rng: np.random.Generator, n_classes: int) -> np.ndarray:
    counts = rng.integers(0, 9, (300, n_classes)) * (rng.random((300, n_classes)) < 0.1)
    counts[np.arange(300), rng.integers(0, n_classes, 300)] += 1
    return counts


@pytest.mark.parametrize(
    ("classes", "n"), [*((True, n) for n in (1, 2, 3, 7, 10, 100, 300)), (False, 1), (False, 20)]
)
def test_every_number_of_classes_and_outputs(classes, n):
    rng = np.random.default_rng(n)
    sums = sparse_counts(rng, n) if classes else rng.integers(-(10**9), 10**9, (300, 1 + n))
    if not classes:
        sums[:, 0] = rng.integers(1, 99, 300)
    forest = random_forest(rng, [50, 9, 0], 30, sums, classes)
    check(forest, rng.integers(0, 31, (700, N_FEATURES)).astype(np.uint8), rng)


def with_sets(rng: np.random.Generator, forest: Forest, n_categories: list[int]) -> Forest:
    """The forest with random sets at the splits by its first features, which are categorical."""
    columns = [np.arange(float(n)) for n in np.diff(forest.edges.offsets)]
    edges = BinEdges.of(columns, {f: tuple(range(n)) for f, n in enumerate(n_categories)})
    words, feature = forest.nodes.copy(), (forest.nodes >> nodes.FEATURE_SHIFT).astype(np.int64)
    by_set = ~nodes.is_leaf(words) & (feature < len(n_categories))
    words[by_set] |= np.uint64(nodes.SET_BIN)
    n_words = int(edges.set_words[feature[by_set]].sum())
    sets = rng.integers(0, 2**64, n_words, np.uint64)
    return replace(forest, nodes=words, edges=edges, sets=sets)


@pytest.mark.parametrize(
    ("n_bins", "n_categories"),
    [
        *((n, []) for n in (2, 30, 255, 256, 3000)),
        (30, [1, 31, 32, 62]), (3000, [1, 31, 32, 62]), (30, [63, 64, 250, 5]),
        (30, [64, 128, 191, 192]), (30, [300, 256, 4000, 20]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n_rows", [0, 1, 31, 32, 255, 256, 257, 1500])
def test_every_size_of_tree_batch_and_set(n_rows, n_bins, n_categories):
    rng = np.random.default_rng(n_rows + n_bins)
    splits = [0, 1, 2, 5, 126, 127, 128, 1000, 0, 3000 if n_categories else 40_000]
    forest = random_forest(rng, splits, n_bins, sparse_counts(rng, 3), True)
    if n_categories:
        forest = with_sets(rng, forest, n_categories)
    codes = rng.integers(0, forest.edges.n_bins, (n_rows, N_FEATURES))
    codes[rng.random(codes.shape) < 0.2] = forest.edges.missing_code
    check(forest, codes.astype(forest.edges.code_dtype), rng)


def check(forest: Forest, codes: np.ndarray, rng: np.random.Generator) -> None:
    N, T, K = len(codes), forest.n_trees, forest.coding.n_values
    padded = np.zeros((N, N_FEATURES + 5), codes.dtype)  # as rows of training data may be
    padded[:, :N_FEATURES] = codes
    reference = numpy.NumpyBackend()
    for n_threads in (1, 3):
        backend = numba.NumbaBackend(n_threads)
        assert np.array_equal(backend.apply(forest, padded), reference.apply(forest, codes))
        for trees in (range(T), range(1, T - 1)):
            skipped = rng.random((len(trees), N)) < 0.6
            for skip in (None, skipped, np.ones_like(skipped)):
                begun = rng.random((N, K))
                expected = reference.accumulate(forest, codes, trees, skip, begun.copy())
                found = backend.accumulate(forest, padded, trees, skip, begun.copy())
                assert np.array_equal(found, expected)
