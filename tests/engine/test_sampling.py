"""Bags, features and weights of trees: recomputed from the seed, worked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from engine import Task
from laws import column

from gpuforest.backends.base import Backend
from gpuforest.engine.records import Sampling, Training
from gpuforest.engine.sampling import draw_bags, tree_weights
from gpuforest.engine.target import Target, TargetCoding


def test_without_draws_every_row_counts_once(engine: Backend):
    assert np.array_equal(draw_bags(Sampling(4, 0, None), 0, 0, 2, engine), np.ones((2, 4)))
    weights = np.array([3, 0, 1, 2], np.int32)
    bags = draw_bags(Sampling(4, 0, weights), 0, 0, 2, engine)
    assert np.array_equal(bags, [weights, weights])
    rows, count, offsets = engine.nodes.in_bag(engine, bags)
    assert rows.tolist() == [0, 2, 3, 0, 2, 3]
    assert count.tolist() == [3, 1, 2, 3, 1, 2]
    assert offsets.tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("sampling", "counted", "most", "bag_rows", "weight"),
    [
        (Sampling(10, 0, None), 10, 10, 10, 10),
        (Sampling(10, 4, None), 10, 4, 4, 4),
        (Sampling(10, 25, None), 10, 25, 10, 25),
        (Sampling(4, 0, np.array([3, 0, 1, 2], np.int32)), 3, 6, 4, 6),
        (Sampling(4, 5, np.array([3, 0, 1, 2], np.int32)), 3, 5, 4, 5),
        (Sampling(4, 2, np.array([3, 0, 1, 2], np.int32), distinct=True), 3, 6, 2, 4),
        (Sampling(10, 4, None, draw_weight=2.5), 10, 4, 4, 10),
    ],
)
def test_sizes_and_weights_of_bags(sampling, counted, most, bag_rows, weight):
    assert sampling.n_counted == counted
    assert sampling.most_weight == most
    assert sampling.bag_rows == bag_rows
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
    assert rows.max() <= sampling.likely_rows <= sampling.bag_rows
    if n_draws == 3000 and not distinct:  # 1 - 1/e of them, and 4.5 roots
        assert sampling.likely_rows == math.ceil(3000 * (1 - (1 - 1 / 3000) ** 3000) + 246.4752)


def weights_of(sampling, classes, n_trees, engine):
    """What the rows of these classes add to the statistics of the first trees of seed 2."""
    coding = TargetCoding(np.arange(max(classes) + 1), np.zeros(1), 1.0)
    target = Target(coding, np.array(classes, np.int32)[:, None])
    rules = Task(column(0), np.zeros(1, int)).rules
    return tree_weights(Training(None, target, sampling, rules, 2, engine), 0, n_trees)


def test_factors_multiply_draws(engine):
    sampling = Sampling(4, 6, None)
    factors = np.array([1, 5, 0, 2], np.int32)
    bags = draw_bags(sampling, 2, 0, 3, engine)
    found = weights_of(replace(sampling, factors=factors), [0, 1, 0, 1], 3, engine)
    assert np.array_equal(found, bags * factors)


def test_blocks_of_trees_are_weighed_alike(engine, monkeypatch):
    sampling = Sampling(6, 8, None, balance=1000)
    whole = weights_of(sampling, [0, 1, 0, 1, 1, 1], 9, engine)
    monkeypatch.setattr("gpuforest.engine.sampling.WEIGHED_AT_ONCE", 12)
    assert np.array_equal(weights_of(sampling, [0, 1, 0, 1, 1, 1], 9, engine), whole)
