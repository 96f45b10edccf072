"""Nodes of a wave: pieces in their positions, leaves in their canonical order; and the CUDA kernels
beside the array-API code."""

from dataclasses import replace

import numpy as np
import pytest
from cuda_on_cpu.module import available, thread_order
from emulated import EmulatedBackend
from grown_levels import some_levels
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import seeds

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.frontier import Subtrees
from gpuforest.engine.levels import Level
from gpuforest.engine.nodes import CHILD_SHIFT, LEAF_WORD, is_leaf
from gpuforest.engine.slots import NONE
from gpuforest.engine.target import TargetCoding
from gpuforest.engine.wave_nodes import leaf_table

SETTINGS = settings(derandomize=True, deadline=None, max_examples=50)

needs_kernels = pytest.mark.skipif(available() is not None, reason=str(available()))

CLASSES = TargetCoding(np.arange(2), np.zeros(1), 1.0)
NUMBERS = TargetCoding(None, np.zeros(1), 1.0)


def test_leaves_of_classes_share_rows_and_those_of_numbers_do_not():
    nodes = np.array([5, LEAF_WORD + 2, LEAF_WORD + 0, LEAF_WORD + 1], np.uint64)
    sums = np.array([[3, 1], [0, 2], [3, 1]])
    numbered, table = leaf_table(NumpyBackend(), nodes, sums, CLASSES)
    assert len(table) == 2
    assert numbered[1] == numbered[2] != numbered[3]
    at = (numbered[1:] - np.uint64(LEAF_WORD)).astype(int)
    assert table[at].tolist() == [[3, 1], [3, 1], [0, 2]]
    numbered, table = leaf_table(NumpyBackend(), nodes, sums, NUMBERS)
    assert numbered.tolist() == [5, LEAF_WORD, LEAF_WORD + 1, LEAF_WORD + 2]  # as the nodes come
    assert table.tolist() == [[3, 1], [3, 1], [0, 2]]


def some_parts(rng: np.random.Generator, n_trees: int, C: int) -> tuple[list[Level], Subtrees]:
    """Levels of random slots, splits and sums, and subtrees of nodes that are any."""
    levels, blocks = some_levels(rng, n_trees)
    tree, found = np.arange(n_trees, dtype=np.int32), []
    for level in levels:
        S, W = len(level.kind), len(level.wide)
        own = {
            "tree": tree,
            "sums": rng.integers(0, 3, (S, C)),
            "bin": rng.integers(0, 2**16, W).astype(np.int32),
            "missing_left": rng.random(W) < 0.5,
            "sets": np.zeros((W, 0), np.uint64),
        }
        found.append(replace(level, **own))
        tree = np.repeat(tree[level.wide], 2)
    offsets = np.append(0, np.cumsum(blocks))
    leaf = rng.random(offsets[-1]) < 0.5
    split = (rng.integers(1, 50, len(leaf)) << CHILD_SHIFT).astype(np.uint64)
    first_leaf = rng.integers(0, 100, len(blocks))
    word = LEAF_WORD + rng.integers(0, 30, len(leaf)).astype(np.uint64)
    nodes = np.where(leaf, word, split)
    return found, Subtrees(offsets, nodes, first_leaf, rng.integers(0, 3, (130, C)))


@needs_kernels
@SETTINGS
@given(seeds, st.sampled_from([1, 3, 300, 5000]), st.integers(1, 5))
def test_kernels_place_the_same_nodes(seed, n_trees, C):
    levels, trees = some_parts(np.random.default_rng(seed), n_trees, C)
    expected = NumpyBackend().wave_nodes(levels, [trees])
    with thread_order(seed):
        found = EmulatedBackend().wave_nodes(levels, [trees])
    for a, b in zip(expected[:3], found[:3], strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    assert expected[3] is found[3] is None
    assert expected[0].sum() == len(expected[1])  # each position once
    n_slots = sum(int((level.kind != NONE).sum()) for level in levels)
    assert len(expected[1]) == n_slots + len(trees.nodes) - len(trees.first_leaf)


@needs_kernels
@SETTINGS
@given(seeds, st.sampled_from([1, 2, 300, 2048, 2049, 9000]), st.booleans())
def test_kernels_put_leaves_in_the_same_order(seed, M, of_classes):
    rng = np.random.default_rng(seed)
    leaf = rng.random(M) < 0.5
    leaf[rng.integers(M)] = True
    V, nodes = int(leaf.sum()), rng.integers(0, 2**63, M).astype(np.uint64) & (LEAF_WORD - 1)
    nodes[leaf] = LEAF_WORD + rng.permutation(V).astype(np.uint64)
    sums, coding = rng.integers(0, 3, (V, 3)), CLASSES if of_classes else NUMBERS
    expected = NumpyBackend().leaf_table(nodes.copy(), sums, coding)
    with thread_order(seed):
        found = EmulatedBackend().leaf_table(nodes.copy(), sums, coding)
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    assert np.array_equal(is_leaf(found[0]), leaf)
