"""Kernels over rows: worked examples, what they are by definition, and every backend alike."""

import math

import numpy as np
import pytest
from chances import assert_uniform, keys64, splitmix
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import Task, table
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel
from laws import column, frontier_of, one_slot, seeds, some_task, splits_of

from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.grow import roots
from gpuforest.engine.records import Data, Frontier
from gpuforest.engine.sampling import Sampling, draw_bags
from gpuforest.engine.target import encode_classes
from gpuforest.kernels.bag.numba import mulhi as compiled_mulhi
from gpuforest.kernels.bag.numpy import mulhi
from gpuforest.splits.oblique.numpy import project


def test_example_of_encode(engine):
    edges = BinEdges(np.array([1.5, 2.5]), np.array([0, 2]))
    codes = engine.encode(column(1.0, 1.5, 2.0, 9.0, np.nan), edges)
    assert codes[:, 0].tolist() == [0, 0, 1, 2, edges.missing_code]


@pytest.mark.parametrize("n_edges", [0, 1, 2, 14, 15, 16, 17, 30, 31, 32, 254, 255, 1000, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_codes_are_the_reference_at_every_edge(n_edges, dtype):
    rng = np.random.default_rng(n_edges)
    limits = [-1e300, -1e-50, 0.0, 1e-50, 1e-44, 3.4028235677973366e38, 1e300]
    columns = [
        np.unique(rng.normal(size=n_edges) * 10.0 ** rng.integers(-48, 45, n_edges)),
        np.unique(np.concatenate([limits, rng.normal(size=n_edges)])[:n_edges]),
        np.unique(rng.normal(size=n_edges).astype(np.float32).astype(np.float64)),
        np.zeros(0),
    ]
    values = np.concatenate(columns)
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in columns])])
    edges = BinEdges(values, offsets)
    with np.errstate(over="ignore"):
        near = values.astype(dtype)
    extremes = np.array([0, -0.0, np.nan, np.inf, -np.inf], dtype)
    x = np.concatenate(
        [extremes, near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, -near)]
    )
    x = np.concatenate([x, rng.normal(size=200).astype(dtype)])
    X = np.stack([rng.permutation(x) for _ in columns], axis=1)
    found = NumbaBackend(2).encode(X, edges)
    expected = NumpyBackend().encode(X, edges)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(NumbaBackend().encode(X[:1], edges), expected[:1])


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


def test_example_of_totals(engine):
    coding, y = encode_classes(np.array([0, 1, 1]), np.arange(2))
    task = Task(column(0, 0, 0), np.array([0, 1, 1]))
    training = task.training(engine)
    target = training.target
    assert target.coding.n_channels == coding.n_channels
    assert np.array_equal(target.y, y)
    rows, weights = np.arange(3, dtype=np.int32), np.array([1, 1, 2], np.int32)
    begin, end = np.array([0, 1]), np.array([3, 3])
    sums, constant = engine.totals(training, rows, weights, begin, end)
    assert sums.tolist() == [[1, 3], [0, 3]]
    assert constant.tolist() == [False, True]


def test_equal_moments_are_their_mean(engine):
    # 0 and 2 have the mean of 1 and 1, a whole number, and (0, 1) has none
    task = Task(column(*range(6)), np.array([1.0, 1, 0, 2, 0, 1]), "squared_error")
    training, begin = task.training(engine), np.array([0, 2, 4])
    rows, ones = np.arange(6, dtype=np.int32), np.ones(6, np.int32)
    sums, constant = engine.totals(training, rows, ones, begin, begin + 2)
    assert constant.tolist() == [True, False, False]
    again = engine.totals(training, rows, ones, begin, begin + 2, sums)
    assert again[0] is sums
    assert again[1].tolist() == [True, False, False]


@given(seeds)
def test_histograms_add_up_to_their_slots(seed):
    task = some_task(seed, min_rows_leaf=2, n_draws=40)
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        training = task.but(seed=0).training(engine)
        frontier, F, C = roots(training, 0, 3), training.n_features, training.n_channels
        features = np.broadcast_to(np.arange(F, dtype=np.int32), (3, F)).copy()
        features[1, F // 2] = -1
        hist = engine.histogram(training, frontier, features)
        assert hist.shape == (3, F, training.n_codes, C + 1)
        sums = hist.sum(axis=2)
        assert not sums[1, F // 2].any()
        sums[1, F // 2] = sums[1, 0]
        assert np.array_equal(sums[..., :C], np.repeat(frontier.sums[:, None], F, axis=1))
        assert np.array_equal(sums[..., C], np.repeat(frontier.n_rows[:, None], F, axis=1))


def test_example_of_histogram(engine):
    task = Task(column(0, 2, 2, 1), np.array([0, 0, 1, 1]))
    training = task.training(engine)
    frontier = one_slot([0, 1, 2], [1, 1, 3], [2, 3])
    features = np.array([[0]], np.int32)
    hist = engine.histogram(training, frontier, features)
    assert hist[0, 0, :3].tolist() == [[1, 0], [0, 0], [1, 3]]


@given(seeds, st.integers(1, 6))
def test_partitions_are_stable(seed, n_slots):
    rng = np.random.default_rng(seed)
    X = table(rng, 80, list("cfnNA"))
    found = []
    for engine in (NumpyBackend(), NumbaBackend(), NumbaBackend(4)):
        rng = np.random.default_rng(seed)
        task = Task(X, rng.integers(0, 2, 80))
        training = task.training(engine)
        matrix = training.matrix
        end = np.sort(rng.integers(1, 60, n_slots))
        begin = np.concatenate([[0], end[:-1]])
        begin, end = begin[end > begin], end[end > begin]
        begin, end = begin + 60 * (seed % 2), end + 60 * (seed % 2)
        S = len(begin)
        rows = rng.integers(0, 80, 120).astype(np.int32)
        weights = rng.integers(1, 9, 120).astype(np.int32)
        frontier = frontier_of(begin, end, rows, weights, np.zeros((S, 2), np.int64))
        feature = rng.integers(-1, 5, S).astype(np.int32)
        bin = rng.integers(0, 40, S).astype(np.int32)
        side = rng.random(S) < 0.5
        old_rows, old_weights = rows.copy(), weights.copy()
        splits = splits_of(feature, bin, side)
        new_rows, new_weights, n_left = engine.partition(training, frontier, splits)
        for s in range(S):
            own, weight = old_rows[begin[s] : end[s]], old_weights[begin[s] : end[s]]
            code = matrix.codes[own, feature[s]].astype(int)
            left = np.where(code == matrix.edges.missing_code, side[s], code <= bin[s])
            other = begin[s] + 60 if begin[s] < 60 else begin[s] - 60
            part = slice(other, other + len(own))
            if feature[s] < 0:
                assert n_left[s] == 0
                continue
            assert n_left[s] == left.sum()
            assert np.array_equal(new_rows[part], np.append(own[left], own[~left]))
            assert np.array_equal(new_weights[part], np.append(weight[left], weight[~left]))
            old_rows[part], old_weights[part] = new_rows[part], new_weights[part]
        # nothing else has moved
        assert np.array_equal(old_rows, new_rows)
        assert np.array_equal(old_weights, new_weights)
        found.append((new_rows, new_weights, n_left))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_example_of_partition(engine):
    # rows 5 and 9 go left in slot 0, row 1 in slot 1; row 0 belonged to a leaf
    goes_left = np.ones(10)
    goes_left[[5, 9, 1]] = 0
    task = Task(goes_left[:, None], np.arange(10) % 2)
    training = task.training(engine)
    held = [3, 5, 8, 9, 0, 7, 1, 4]
    rows = np.array(held + [0] * 8, np.int32)
    frontier = frontier_of(
        np.array([0, 6]), np.array([4, 8]), rows, rows + 1, np.zeros((2, 2), np.int64)
    )
    zeros = np.zeros(2, np.int32)
    splits = splits_of(zeros, zeros, zeros > 0)
    rows, weights, n_left = engine.partition(training, frontier, splits)
    assert rows.tolist() == [*held, 5, 9, 3, 8, 0, 0, 1, 4]
    assert n_left.tolist() == [2, 1]
    assert weights[8:12].tolist() == [6, 10, 4, 9]


def test_the_worked_example():
    codes = np.array([[0, 1], [2, 1], [2, 0], [0, 3]], np.uint8)
    coordinates = np.array([[0, 100, 1000, 0], [0, 100, 1000, 0]], np.int32)
    data = Data(codes, None, np.array([3, 3]), 4, 2)
    rows = np.arange(4, dtype=np.int32)
    slots = Frontier.of_rows(rows, rows, np.array([0]), np.array([4]))
    features, weights = np.array([[[0, 1], [0, -1]]]), np.array([[[1, -1], [1, 1]]])
    found, low, shift = project(data, slots, features, weights, coordinates, 4)
    assert (low[0].tolist(), shift[0].tolist()) == ([-100, 0], [9, 0])
    assert found[:, 0].tolist() == [0, 1, 2, 4]  # the last row's second value is missing
    assert found[:, 1].tolist() == [0, 2, 2, 0]  # a feature alone


@given(seeds, st.integers(1, 5), st.sampled_from([7, 255, 600]))
def test_all_backends_give_the_same(seed, n_slots, max_bins):
    rng = np.random.default_rng(seed)
    X, rows = table(rng, 80, list("cfnNAtm")), rng.integers(0, 80, 120).astype(np.int32)
    task = Task(X, rng.integers(0, 2, 80), combined=3.0, max_bins=max_bins)
    cuts = np.sort(rng.integers(0, 60, n_slots))
    begin, end = np.concatenate([[0], cuts[:-1]]), cuts  # some slots hold no rows
    k, L = 4, task.training(NumpyBackend()).combining.most_features
    features = np.array([rng.permutation(7)[:L] for _ in range(n_slots * k)]).reshape(-1, k, L)
    features[np.arange(L) >= rng.integers(0, L + 1, (n_slots, k, 1))] = -1
    weights = rng.choice([-5, -2, -1, 1, 3], features.shape)
    found = []
    backends = [NumpyBackend(), NumbaBackend(), NumbaBackend(3)]
    if available() is None:
        backends.append(EmulatedBackend())
    for backend in backends:
        frontier = frontier_of(begin, end, rows, rows * 0 + 1, np.zeros((n_slots, 2), np.int64))
        chosen = features.astype(np.int32), weights.astype(np.int32)
        found.append(backend.project(task.training(backend), frontier, *chosen))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            assert np.array_equal(mine, theirs)


def test_a_backend_without_it_says_so():
    bare = type("Bare", (NumpyBackend,), {"project": NumpyBackend.__mro__[1].project})
    assert registry.has(NumpyBackend(), "project")
    assert not registry.has(bare(), "project")
    with pytest.raises(NotImplementedError):
        NumpyBackend.__mro__[1].project(NumpyBackend(), None, None, None, None)
