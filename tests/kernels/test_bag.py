"""Bags: what they are by definition, how often rows are drawn, and the worked example."""

import math

import numpy as np
from chances import assert_uniform, keys64, splitmix
from engine import Task
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel
from laws import column

from gpuforest.backends.base import Backend
from gpuforest.engine.sampling import Sampling, draw_bags
from gpuforest.kernels.bag.numba import mulhi as compiled_mulhi
from gpuforest.kernels.bag.numpy import mulhi


def test_example_of_bag(engine):
    weights = np.array([2, 0, 1], np.int32)
    task = Task(column(0, 0, 0), np.zeros(3, int), weights=weights, n_draws=3000)
    bags = draw_bags(task.sampling, 0, 0, 1, engine)[0]
    assert bags[1] == 0
    assert abs(bags[0] - 2000) < 150


@kernel
def products(a, b, out):
    for i in range(len(a)):
        out[i] = compiled_mulhi(a[i], b)


@given(
    st.lists(keys64, min_size=1, max_size=20),
    st.integers(1, 2**31) | st.integers(1, 2**63 - 1),
)
def test_upper_halves_of_products(a, b):
    expected = [x * b >> 64 for x in a]
    numbers = np.array(a, np.uint64)
    found, out = mulhi(numbers, b), np.zeros(len(a), np.int64)
    assert found.dtype == np.int64
    assert found.tolist() == expected
    products(numbers, np.uint64(b), out)
    assert out.tolist() == expected


def test_bags_are_what_they_say(engine: Backend):
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


def test_bags_are_uniform(engine: Backend):
    bags = draw_bags(Sampling(200, 200, None), 1, 0, 2000, engine)
    assert np.all(bags.sum(axis=1) == 200)
    assert_uniform(bags.sum(axis=0), 2000)
    # how often a row is drawn: binomial, 200 draws of chance 1 / 200
    times = np.bincount(bags.ravel().clip(max=5), minlength=6)
    chance = np.array([math.comb(200, i) * 0.005**i * 0.995 ** (200 - i) for i in range(5)])
    assert_uniform(times, bags.size * np.append(chance, 1 - chance.sum()))
    # neighbouring draws of neighbouring trees
    assert abs(np.corrcoef(bags[1:].ravel(), bags[:-1].ravel())[0, 1]) < 0.01


def test_weighted_bags_follow_the_weights(engine: Backend):
    weights = np.random.default_rng(0).integers(0, 2**20, 200).astype(np.int32)
    weights[::3] = 0
    bags = draw_bags(Sampling(200, 1000, weights), 5, 0, 500, engine)
    assert np.all(bags.sum(axis=1) == 1000)
    assert not bags[:, weights == 0].any()
    some = weights > 0
    expected = weights[some] / weights.sum() * bags.sum()
    assert_uniform(bags[:, some].sum(axis=0)[expected > 5], expected[expected > 5])
