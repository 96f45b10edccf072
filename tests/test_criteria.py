"""Scores against their definitions in exact fractions and library logarithms."""

import math
from fractions import Fraction

import array_api_compat.numpy as xp
import numpy as np
import pytest
from engine import Task
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from gpuforest.backends.numpy import NumpyBackend
from gpuforest.criteria import (
    CRITERIA,
    ENTROPY,
    GINI,
    MISCLASSIFICATION,
    POISSON,
    SQUARED_ERROR,
    XLOGX_SCALE,
    log_int,
    side_score,
    side_weight,
    xlogx,
)
from gpuforest.kernels.compile import kernel
from gpuforest.kernels.scoring import numba as scoring
from gpuforest.nodes import unpack

SETTINGS = settings(derandomize=True, deadline=None, max_examples=100)
CLASSES = (GINI, ENTROPY, MISCLASSIFICATION)


@kernel
def logarithms(n, out):
    for i in range(len(n)):
        out[i] = scoring.log_int(n[i])


@kernel
def products(n, out):
    for i in range(len(n)):
        out[i] = scoring.xlogx(n[i])


@kernel
def node_scores(sums, criterion, out):
    for i in range(len(sums)):
        n = sums[i, 0]
        if criterion < SQUARED_ERROR:
            n = sums[i].sum()
        out[i] = scoring.node_score(criterion, sums[i], n, sums.shape[1])


def compiled(function, n, dtype):
    out = np.zeros(len(n), dtype)
    function(n, out)
    return out


def exact(sums: list[int], criterion: int) -> Fraction:
    """A side's score by definition, rational criteria only."""
    if criterion == GINI:
        return Fraction(sum(s * s for s in sums), sum(sums))
    if criterion == MISCLASSIFICATION:
        return Fraction(max(sums))
    return Fraction(sum(s * s for s in sums[1:]), sums[0])


def plain(sums: list[int], criterion: int) -> float:
    """A side's score by definition, with the library's logarithm."""
    if criterion == ENTROPY:
        terms = [s * math.log(s) for s in sums if s] + [-sum(sums) * math.log(sum(sums))]
        return math.fsum(terms)
    return math.fsum(s * math.log(s / sums[0]) for s in sums[1:])


whole = st.integers(1, 2**62) | st.integers(0, 61).flatmap(
    lambda e: st.sampled_from([2**e, 2**e + 1, max(1, 2**e - 1)])
)


@SETTINGS
@given(st.lists(whole, min_size=1, max_size=50))
def test_logarithm(numbers):
    n = np.array(numbers, np.int64)
    found = log_int(xp, n)
    for i, number in enumerate(numbers):
        assert abs(found[i] - math.log(number)) <= 1e-15 * max(math.log(number), 1e-300)
    assert np.array_equal(compiled(logarithms, n, np.float64), found)


def test_logarithm_of_small_numbers():
    n = np.arange(1, 200_000)
    found = log_int(xp, n)
    reference = np.array([math.log(i) for i in n.tolist()])
    assert found[0] == 0
    assert np.all(np.abs(found - reference) <= 1e-15 * reference)
    assert np.all(np.diff(found) > 0)
    assert np.array_equal(compiled(logarithms, n, np.float64), found)


def test_fixed_point_of_the_entropy():
    n = np.concatenate([np.arange(10_000), 2 ** np.arange(31), 2**31 - 1 - np.arange(1000)])
    found = xlogx(xp, n)
    assert found.dtype == np.int64
    assert found[:2].tolist() == [0, 0]
    reference = np.array([i * math.log(i) if i else 0.0 for i in n.tolist()])
    # half a unit of rounding, and the float64's own relative error
    assert np.all(np.abs(found / XLOGX_SCALE - reference) <= 0.51 / XLOGX_SCALE + 4e-16 * reference)
    assert found.max() < 2**62
    assert np.array_equal(compiled(products, n, np.int64), found)


channel_sums = st.lists(
    st.lists(st.integers(0, 2**29) | st.integers(0, 20), min_size=3, max_size=3), min_size=1
)


@SETTINGS
@given(channel_sums, st.sampled_from(range(5)))
def test_scores_are_their_definitions(rows, criterion):
    sums = np.array(rows, np.int64)
    found = side_score(xp, sums, criterion)
    assert found.dtype == np.float64
    for row, score, weight in zip(rows, found, side_weight(xp, sums, criterion), strict=True):
        n = row[0] if criterion >= SQUARED_ERROR else sum(row)
        assert weight == n
        if n == 0 or (criterion == POISSON and not all(row[1:])):
            assert score == -np.inf
        elif criterion in (ENTROPY, POISSON):
            # the terms cancel: their size sets the error
            size = sum(abs(s * math.log(s)) for s in [*row, n] if s) + n
            unit = XLOGX_SCALE if criterion == ENTROPY else 1.0
            rounding = 2.1 / XLOGX_SCALE if criterion == ENTROPY else 0.0
            assert abs(score / unit - plain(row, criterion)) <= 1e-14 * size + rounding
        else:
            reference = exact(row, criterion)
            assert abs(Fraction(float(score)) - reference) <= reference * Fraction(1, 2**51)


@SETTINGS
@given(channel_sums, st.sampled_from(range(5)))
def test_compiled_scores_are_equal(rows, criterion):
    sums = np.array(rows, np.int64)
    weight = side_weight(xp, sums, criterion)
    sums = sums[weight > 0]  # a node holds rows
    out = np.zeros(len(sums))
    node_scores(sums, criterion, out)
    assert np.array_equal(out, side_score(xp, sums, criterion))
    if criterion in CLASSES:  # two classes have a short way
        pairs, out = np.ascontiguousarray(sums[:, :2]), np.zeros(len(sums))
        pairs = pairs[pairs.sum(axis=1) > 0]
        for i, (a, b) in enumerate(pairs):
            out[i] = pair_scores(criterion, a + b, b)
        assert np.array_equal(out[: len(pairs)], side_score(xp, pairs, criterion))


@kernel
def pair_scores(criterion, n, a):
    return scoring.pair_side(criterion, n, a)


def test_sums_of_squares_do_not_overflow():
    half = 2**30
    sums = np.array([[half, half - 1], [2**31 - 1, 0]])
    for row, score in zip(sums, side_score(xp, sums, GINI), strict=True):
        reference = exact(row.tolist(), GINI)
        assert abs(Fraction(float(score)) - reference) < reference / 2**50


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_gains_are_in_scikit_learns_unit(criterion):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (300, 4)).astype(np.float64)
    y = rng.integers(0, 3, 300)
    reference = DecisionTreeClassifier(criterion=criterion, max_depth=1, random_state=0)
    if CRITERIA[criterion].task == "regression":
        y = X[:, 0] * 3 + rng.poisson(5, 300)
        reference = DecisionTreeRegressor(criterion=criterion, max_depth=1, random_state=0)
    task = Task(X, y, criterion, max_depth=1)
    forest = task.grow(NumpyBackend())
    tree = reference.fit(X, y).tree_
    feature, _, _, _ = unpack(np, forest.nodes)
    assert feature.tolist() == [tree.feature[0], -1, -1]
    score = side_score(xp, forest.node_sums(0, 1), CRITERIA[criterion].id)
    weighted = tree.impurity * tree.weighted_n_node_samples
    decrease = weighted[0] - weighted[1] - weighted[2]
    gain = forest.coding.score_gain(decrease, CRITERIA[criterion])
    assert score[1] + score[2] - score[0] == pytest.approx(gain, rel=1e-6)
