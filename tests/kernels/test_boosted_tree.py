"""Trees of boosting: cases by hand, and the compiled kernel equals the reference; features that
exclude each other share a column."""

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from boosted import Fit, differences, edges_of, fits, in_array, rules_of
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.backends import boosters
from gpuforest.backends.boosters import NumbaBooster, NumpyBooster, columns_of
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.core import nodes
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.kernels.boosted_tree.records import GrownTree, TreeRules


def stats_of(g: np.ndarray, h: np.ndarray | None, n_bits: int) -> np.ndarray:
    """What kernels add up: one word if every hessian is one."""
    if h is None:
        return ((g << n_bits) + 1)[:, None]
    return np.stack([g, (h << n_bits) + 1], axis=1)


def booster_of(
    kind: type[NumpyBooster], codes: np.ndarray, edges: BinEdges, stats: np.ndarray,
    rules: TreeRules, n_threads: int = 1, memory: int = 2**24, held_out: int = 0,
) -> NumpyBooster:  # fmt: skip
    """One whose only tree grows from these stats."""
    N, n_words = stats.shape
    groups = len(rules.groups)
    rules = rules._replace(kinds=edges.kinds, n_groups=groups, n_drawn=N - held_out)
    boosting: Any = SimpleNamespace(
        matrix=BinnedMatrix(codes, edges.n_bins, edges), n_rows=N,
        loss=SimpleNamespace(n_raw=1), is_vector=False,
        n_words=n_words, n_leaves=min(rules.max_leaves, N), groups=rules.groups, memory=memory,
        rules=lambda scale: rules if kind is NumpyBooster else in_array(rules),
    )  # fmt: skip
    threads = () if kind is NumpyBooster else (n_threads,)
    booster = kind(boosting, *threads)
    booster.stats[0] = stats
    booster.rows[0] = np.roll(np.arange(N), -held_out)
    return booster


def grow(kind: type[NumpyBooster], *problem: Any, key: int = 7) -> tuple[GrownTree, np.ndarray]:
    """The tree, and the rows in the order of its leaves."""
    booster = booster_of(kind, *problem)
    booster.grow_trees([key])
    booster.close()
    return booster.trees[0], booster.rows[0]


def test_more_categories_than_a_block_has_rows() -> None:
    """The first half of 2,400 categories has negative gradients, so these go left."""
    codes = np.repeat(np.arange(2400), 10).astype(np.uint16)[:, None]
    g = np.where(codes[:, 0] < 1200, -1, 1)
    edges, rules = edges_of([2401], [CATEGORICAL]), rules_of(1, 16, max_leaves=2)
    problem = codes, edges, stats_of(g, np.ones_like(g), 16), rules
    for kind in (NumpyBooster, NumbaBooster):
        tree, rows = grow(kind, *problem)
        assert tree.leaves["value"].tolist() == [1.0, -1.0]
        assert rows.tolist() == list(range(24_000))


@pytest.mark.parametrize("kind", [NumpyBooster, NumbaBooster])
def test_each_side_has_the_least_hessian(kind: type[NumpyBooster]) -> None:
    """Six rows, gradients 3 3 -1 -1 -4 -4 and hessians of 1, 1, 4, 4, 4, 4 in units of 1 / 1024.

    codes 0 0 1 1 2 2
    G and H of the left side: after code 0: 6, 2 (0.00195); after code 1: 4, 10; of all: -4, 18
    gain after code 0: 36 / 2 + 100 / 16 - 16 / 18 = 23.36
               code 1: 16 / 10 + 64 / 8 - 16 / 18 = 8.71
    """
    codes = np.array([[0], [0], [1], [1], [2], [2]], np.uint8)
    g, least = np.array([3, 3, -1, -1, -4, -4]), sys.float_info.min

    def first_cut(h: list[int], min_hessian: float) -> int | None:
        rules = rules_of(1, 3, h=2.0**-10, max_leaves=2, min_hessian=min_hessian)
        tree, _ = grow(kind, codes, edges_of([3], [0]), stats_of(g, np.array(h), 3), rules)
        feature, bin, _, _ = nodes.unpack(np, tree.nodes)
        return int(bin[0]) if feature[0] == 0 else None

    usual = [1, 1, 4, 4, 4, 4]
    for min_hessian, cut in ((1e-3, 0), (2 / 1024, 0), (3 / 1024, 1), (8 / 1024, 1)):
        assert first_cut(usual, min_hessian) == cut
    assert first_cut(usual, 9 / 1024) is None
    # a side whose hessians are all zero is none, however little is asked for
    assert first_cut([0, 0, 4, 4, 4, 4], least) == 1
    assert first_cut([0, 0, 0, 0, 4, 4], least) is None
    assert first_cut([0] * 6, least) is None


@given(
    fit=fits(), n_threads=st.sampled_from([1, 2, 3]), shared=st.sampled_from([(1, 1), (4096, 2048)])
)
def test_compiled_rounds_equal_the_reference(
    fit: Fit, n_threads: int, shared: tuple[int, int]
) -> None:
    wanted, raw = fit.run(NumpyBackend())
    with patch.object(boosters, "SHARED", shared):
        found, there = fit.run(NumbaBackend(n_threads))
    assert differences(wanted, found) == []
    assert np.array_equal(raw, there)
    for tree in [tree for grown in found for tree in grown.trees]:
        n, least = len(tree.leaves), fit.rest["min_rows"]
        assert np.count_nonzero(nodes.is_leaf(tree.nodes)) == n <= fit.rest["max_leaves"]
        assert np.array_equal(tree.leaves["n"], tree.leaves["end"] - tree.leaves["begin"])
        assert n == 1 or tree.leaves["n"].min() >= least
        assert sum(tree.leaves["n"]) <= len(fit.codes)


@pytest.mark.parametrize(
    ("N", "F", "n_threads", "shared", "max_leaves", "repetitions"),
    [(2000, 6, 2, (64, 64), 31, 500), (30_000, 12, 7, (4096, 2048), 200, 5)],
)
def test_threads_never_meet_wrongly(
    monkeypatch: pytest.MonkeyPatch, N: int, F: int, n_threads: int, shared: tuple[int, int],
    max_leaves: int, repetitions: int,
) -> None:  # fmt: skip
    """Thousands of nodes, whose work two threads share however little it is; and more threads than
    processors, which are interrupted while they have a part of the work."""
    monkeypatch.setattr(boosters, "SHARED", shared)
    rng, n_bits = np.random.default_rng(1), N.bit_length()
    edges = edges_of([200] * F, [0] * F)
    codes = rng.integers(0, 200, (N, F)).astype(np.uint8)
    stats = stats_of(rng.integers(-(2**20), 2**20, N), rng.integers(0, 2**18, N), n_bits)
    rules = rules_of(F, n_bits, g=2.0**-20, h=2.0**-20, max_leaves=max_leaves)
    one, some = (
        booster_of(NumbaBooster, codes, edges, stats, rules, n, held_out=N // 6)
        for n in (1, n_threads)
    )
    one.grow_trees([7])
    assert len(one.trees[0].leaves) == max_leaves
    for repetition in range(repetitions):
        some.rows[0] = np.roll(np.arange(N), -(N // 6))
        some.grow_trees([7])
        for a, b in zip((*one.trees[0], one.rows), (*some.trees[0], some.rows), strict=True):
            assert np.array_equal(a, b), repetition
    one.close()
    some.close()


def test_a_one_hot_encoding_by_hand() -> None:
    """A number, and three features of which one is 1; the last row lacks the second of these.

    rest     0       0       0
    codes    a = 1   b = 1   c = 1   none
             0       2       4       6        and one more each where it is missing
    """
    missing = 4
    codes = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [2, 0, 0, 1], [3, 0, 0, 0], [0, 0, missing, 0]])
    edges = edges_of([4, 2, 2, 2], [0] * 4)
    matrix = BinnedMatrix(codes.astype(edges.code_dtype), edges.n_bins, edges)
    data = columns_of(matrix, np.zeros((len(codes), 1), np.int64))
    assert data.starts.tolist() == [0, 1, 4]
    assert data.codes.tolist() == [[0, 1, 2, 3, 0], [0, 2, 4, 6, 3]]
    assert data.first.tolist() == [0, 0, 2, 4]
    assert data.rest[1:].tolist() == [0, 0, 0]
    assert data.cells.tolist() == [0, 5, 8, 11, 14]
