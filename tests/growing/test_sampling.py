"""Bags, features and weights of trees: recomputed from the seed, worked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from chances import keys64, splitmix
from engine import Task
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel
from laws import column

from gpuforest.core.rules import Sampling
from gpuforest.core.target import Target, TargetCoding
from gpuforest.core.training import Training
from gpuforest.growing.bags import cutoff, draw_bags, drawn_rows, held, tree_weights, was_drawn
from gpuforest.kernels.bag.numba import mulhi as compiled_mulhi
from gpuforest.kernels.bag.numpy import mulhi
from gpuforest.splits.base import draw_features

W, ONCE = np.array([3, 0, 1, 2], np.int32), {"distinct": True}
G = np.array([2, 1, 2, 0, 1, 2], np.int32)  # groups of 1, 2 and 3 rows


@pytest.mark.parametrize(
    ("sampling", "counted", "most", "max_bag_rows", "weight"),
    [
        (Sampling(10, 0, None), 10, 10, 10, 10),
        (Sampling(10, 4, None), 10, 4, 4, 4),
        (Sampling(10, 25, None), 10, 25, 10, 25),
        (Sampling(4, 0, W), 3, 6, 4, 6),
        (Sampling(4, 5, W), 3, 5, 4, 5),
        (Sampling(4, 2, W, **ONCE), 3, 6, 2, 4),
        (Sampling(10, 4, None, draw_weight=2.5), 10, 4, 4, 10),
        (Sampling(6, 2, None, groups=G), 6, 6, 5, 4),  # the heaviest may be all of the draws
        # groups weigh 0, 3 and 6: the first is not drawn, and the mean of two draws is 9
        (Sampling(6, 2, np.array([1, 2, 2, 0, 1, 3], np.int32), groups=G), 5, 12, 5, 9),
        # once at the most: both
        (Sampling(3, 2, None, groups=np.array([0, 1, 1], np.int32), **ONCE), 3, 3, 3, 3),
    ],
)
def test_sizes_and_weights_of_bags(sampling, counted, most, max_bag_rows, weight):
    assert sampling.n_counted == counted
    assert sampling.most_weight == most
    assert sampling.max_bag_rows == max_bag_rows
    assert sampling.bag_weight == weight
    rows = sampling.counted
    assert rows is None or len(rows) == counted


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("n_draws", [0, 1, 300, 3000])
def test_bags_hold_no_more_rows_than_are_planned(n_draws, distinct, weighted, engine):
    weights = np.arange(1, 3001, dtype=np.int32) if weighted else None
    sampling = Sampling(3000, n_draws, weights, distinct=distinct)
    rows = (draw_bags(sampling, 0, 0, 20, engine) > 0).sum(axis=1)
    assert rows.max() <= sampling.likely_bag_rows <= sampling.max_bag_rows
    if n_draws == 3000 and not distinct:  # 1 - 1/e of them, and 4.5 roots
        assert sampling.likely_bag_rows == math.ceil(3000 * (1 - (1 - 1 / 3000) ** 3000) + 246.4752)


def weights_of(sampling, classes, n_trees, engine):
    """What the rows of these classes add to the statistics of the first trees of seed 2."""
    coding = TargetCoding(np.arange(max(classes) + 1), np.zeros(1), 1.0)
    target = Target(coding, np.array(classes, np.int32)[:, None])
    rules = Task(column(0), np.zeros(1, int)).rules
    return tree_weights(Training(None, target, sampling, rules, 2), 0, n_trees, engine)


@pytest.mark.parametrize("weights", [None, np.array([2, 0, 1, 3, 1, 1, 0, 2], np.int32)])
def test_rows_of_each_class_are_drawn_by_points_in_their_weights(engine, weights):
    """An oracle that lists each row as often as it weighs. Class 2 has no rows."""
    classes, numbers = np.array([0, 1, 0, 0, 1, 3, 1, 0], np.int32), (4, 9, 0, 2)
    sampling = Sampling(8, sum(numbers), weights, classes=classes, draws=numbers)
    rows = np.repeat(np.arange(8), 1 if weights is None else weights)
    bags = np.zeros((5, 8), np.int64)
    for t in range(5):
        labels = np.repeat(np.arange(4), numbers)
        for j, label in enumerate(labels):  # the bag key of tree t of seed 7, and its draw j
            of_class = rows[classes[rows] == label]
            point = splitmix(splitmix(splitmix(7, t), 0), j) * len(of_class) >> 64
            bags[t, of_class[point]] += 1
    assert np.array_equal(engine.asnumpy(draw_bags(sampling, 7, 0, 5, engine)), bags)
    assert np.array_equal(engine.asnumpy(was_drawn(sampling, 7, 0, 5, engine)), bags > 0)
    assert np.array_equal(drawn_rows(sampling, 7, 3, engine), np.repeat(np.arange(8), bags[3]))
    target = Target(TargetCoding(np.arange(4), np.zeros(1), 1.0), classes[:, None])
    factors = np.array([3, 1, 2, 5, 1, 1, 4, 1], np.int32)
    for rule in (sampling, replace(sampling, factors=factors)):
        training = Training(None, target, rule, Task(column(0), np.zeros(1, int)).rules, 7)
        dense = engine.nodes.in_bag(engine, tree_weights(training, 0, 5, engine))
        for one, other in zip(held(training, 0, 5, engine), dense, strict=True):
            assert np.array_equal(engine.asnumpy(one), engine.asnumpy(other))
    # from blocks up to a tree's cutoff, of each class as large a part of the draws as of its rows
    blocks = np.array([0, 1, 2, 0, 1, 2, 2, 1], np.int32)
    for t, bag in enumerate(draw_bags(replace(sampling, blocks=blocks), 7, 0, 5, engine)):
        counted = np.ones(8, bool) if weights is None else weights > 0
        past = counted & (blocks <= cutoff(blocks, t))
        of = [(np.sum(past[classes == c]), np.sum(counted[classes == c])) for c in range(4)]
        want = [math.ceil(n * a / max(b, 1)) for n, (a, b) in zip(numbers, of, strict=True)]
        bag = engine.asnumpy(bag)
        assert np.bincount(classes, bag, 4).tolist() == want
        assert not bag[~past].any()


def test_groups_are_drawn_whole(engine):
    """Seed 0 draws group 0 twice and group 2 twice for tree 0, and (1, 2, 1) for tree 1."""
    assert draw_bags(Sampling(3, 4, None), 0, 0, 2, engine).tolist() == [[2, 0, 2], [1, 2, 1]]
    weights, groups = np.array([1, 5, 0, 3, 1], np.int32), np.array([1, 0, 2, 2, 0], np.int32)
    sampling = Sampling(5, 4, None, groups=groups)
    assert draw_bags(sampling, 0, 0, 2, engine).tolist() == [[0, 2, 2, 2, 2], [2, 1, 1, 1, 1]]
    assert was_drawn(sampling, 0, 0, 2, engine).tolist() == [[False, *[True] * 4], [True] * 5]
    assert drawn_rows(sampling, 0, 0, engine).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]
    weighed = replace(sampling, weights=weights)
    assert draw_bags(weighed, 0, 0, 2, engine).tolist() == [[0, 10, 0, 6, 2], [2, 5, 0, 3, 1]]
    # a row without weight is not drawn, but it is out of bag only with its group
    assert was_drawn(weighed, 0, 0, 1, engine).tolist() == [[False, *[True] * 4]]
    assert drawn_rows(weighed, 0, 0, engine).tolist() == [1, 1, 3, 3, 4, 4]
    once = replace(weighed, n_draws=2, distinct=True)
    for bag in draw_bags(once, 0, 0, 20, engine):
        assert len(set(groups[np.asarray(bag) > 0])) == 2
        assert np.array_equal(bag, weights * np.isin(groups, groups[np.asarray(bag) > 0]))


def test_likely_rows_of_groups_are_not_exceeded(engine):
    rng = np.random.default_rng(2)
    for n_groups, n_draws in ((50, 50), (2000, 700), (2000, 4000)):
        sizes = rng.geometric(0.2, n_groups)
        groups = np.repeat(np.arange(n_groups, dtype=np.int32), sizes)
        sampling = Sampling(len(groups), n_draws, None, groups=groups)
        held = (draw_bags(sampling, 0, 0, 30, engine) > 0).sum(axis=1)
        assert held.max() <= sampling.likely_bag_rows <= sampling.max_bag_rows
        assert sampling.likely_bag_rows < held.mean() + 5 * math.sqrt((sizes**2).sum())
        totals = draw_bags(sampling, 0, 0, 30, engine).sum(axis=1)
        assert totals.max() <= sampling.most_weight
        assert abs(totals.mean() - sampling.bag_weight) < 0.1 * sampling.bag_weight


def test_more_draws_of_a_group_than_a_bag_counts_never_happen():
    """Chernoff: the chance of k draws or more, where the mean is m, is below (e m / k)**k e**-m."""
    for n_draws, n_groups in [(10**6, 10**6), (10**6, 3 * 10**5), (10**5, 10**4), (10**6, 100)]:
        groups = np.arange(n_groups, dtype=np.int32)
        most = Sampling(n_groups, n_draws, None, groups=groups).most_drawn + 1
        mean = n_draws / n_groups
        assert most * math.log(math.e * mean / most) - mean < -30 * math.log(10)


def test_classes_of_groups_are_balanced_in_each_bag(engine):
    """Groups of four rows: a bag weighs what it weighs, and its classes have equal shares."""
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(20, dtype=np.int32), 4)
    classes = (rng.random(80) < 0.1).astype(np.int32)
    sampling = Sampling(80, 20, None, balance=2**10, groups=groups)
    found = weights_of(sampling, classes, 5, engine)
    bags = draw_bags(sampling, 2, 0, 5, engine)
    assert np.array_equal(found > 0, bags > 0)
    shares = np.stack([found[:, classes == c].sum(axis=1) for c in (0, 1)])
    assert np.abs(shares - 2**10 * bags.sum(axis=1) / 2).max() < bags.sum(axis=1).max()


@pytest.mark.parametrize("weights", [None, np.array([2, 0, 1, 3, 1, 1, 0, 2], np.int32)])
@pytest.mark.parametrize(("n_draws", "distinct"), [(8, False), (4, True), (0, False)])
def test_trees_draw_from_blocks_up_to_their_cutoff(engine, weights, n_draws, distinct):
    blocks = np.array([0, 3, 1, 0, 2, 1, 3, 2], np.int32)
    sampling = Sampling(8, n_draws, weights, distinct=distinct, blocks=blocks)
    cutoffs = np.array([cutoff(blocks, t) for t in range(9)])
    assert cutoffs.tolist() == [1, 0, 2, 1, 0, 2, 0, 2, 1]
    bags = np.asarray(engine.asnumpy(draw_bags(sampling, 5, 0, 9, engine)))
    rows = np.ones(8, np.int32) if weights is None else weights
    for bag, last in zip(bags, cutoffs, strict=True):
        counted = (blocks <= last) & (rows > 0)
        share = counted.sum() / (rows > 0).sum()
        assert not bag[~counted].any()
        if not n_draws:
            assert np.array_equal(bag, np.where(counted, rows, 0))
        elif distinct:
            assert (bag > 0).sum() == math.ceil(4 * share)
            assert np.isin(bag, [0, *rows]).all()
        else:
            assert bag.sum() == math.ceil(8 * share)
    assert np.array_equal(bags[4:7], engine.asnumpy(draw_bags(sampling, 5, 4, 7, engine)))
    drawn = np.asarray(engine.asnumpy(was_drawn(sampling, 5, 0, 9, engine)))
    known = cutoffs[:, None] + 1
    assert np.array_equal(~drawn, (known <= blocks) & (4 * known >= 3 * blocks))


def test_blocks_of_trees_are_weighed_alike(engine, monkeypatch):
    sampling = Sampling(6, 8, None, balance=1000)
    whole = weights_of(sampling, [0, 1, 0, 1, 1, 1], 9, engine)
    monkeypatch.setattr("gpuforest.growing.bags.WEIGHED_AT_ONCE", 12)
    assert np.array_equal(weights_of(sampling, [0, 1, 0, 1, 1, 1], 9, engine), whole)


@kernel
def products(a, b, out):
    for i in range(len(a)):
        out[i] = compiled_mulhi(a[i], b)


@given(st.lists(keys64, min_size=1, max_size=20), st.integers(1, 2**31) | st.integers(1, 2**63 - 1))
def test_upper_halves_of_products(a, b):
    expected = [x * b >> 64 for x in a]
    numbers = np.array(a, np.uint64)
    found, out = mulhi(numbers, b), np.zeros(len(a), np.int64)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    products(numbers, np.uint64(b), out)
    assert out.tolist() == expected


def test_bags_are_what_they_say(engine):
    weights = np.array([2, 0, 1, 5, 0], np.int32)
    owner = np.repeat(np.arange(5), weights)
    for shares, total in ((None, 5), (weights, 8)):
        bags = engine.asnumpy(draw_bags(Sampling(5, 300, shares), 42, 3, 6, engine))
        assert bags.dtype == np.int32
        for t in range(3):
            key = splitmix(splitmix(42, 3 + t), 0)
            points = [splitmix(key, j) * total >> 64 for j in range(300)]
            rows = points if shares is None else owner[points]
            assert np.array_equal(bags[t], np.bincount(rows, minlength=5))


@given(st.lists(keys64, min_size=1, max_size=8), st.integers(1, 40), st.data())
def test_features_come_in_a_random_order_each_once(keys, n_features, data):
    k = data.draw(st.integers(1, n_features))
    keys = np.array(keys, np.uint64)
    rounds = [draw_features(np, keys, first, k, n_features) for first in range(0, n_features, k)]
    assert all(r.shape == (len(keys), k) and r.dtype == np.int32 for r in rounds)
    order = np.concatenate(rounds, axis=1)
    for row in order:
        assert sorted(row[:n_features].tolist()) == list(range(n_features))
    assert np.all(order[:, n_features:] == -1)  # past the end of the order
    if k < n_features:  # the order does not depend on how many are drawn at once
        ones = [draw_features(np, keys, j, 1, n_features) for j in range(n_features)]
        assert np.array_equal(order[:, :n_features], np.concatenate(ones, axis=1))
    else:
        assert np.array_equal(order, np.broadcast_to(np.arange(k), order.shape))
