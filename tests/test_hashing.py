"""Stateless randomness: known answers, equal tellings, and draws that are uniform."""

import itertools
import math

import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from gpuforest.backends.base import Backend
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.hashing import hash_at, permute, tree_keys
from gpuforest.kernels.bag.numba import mulhi as compiled_mulhi
from gpuforest.kernels.bag.numpy import mulhi
from gpuforest.kernels.compile import kernel
from gpuforest.kernels.hashing.numba import domain, order_of
from gpuforest.kernels.hashing.numba import hash_at as compiled_hash_at
from gpuforest.kernels.hashing.numba import permute as compiled_permute
from gpuforest.sampling import Sampling, draw_bags

# a fair draw fails one such test in a million; the keys are fixed, so it never flickers
SURPRISE = 1e-6
ENGINES = [NumpyBackend(), NumbaBackend()]
keys64 = st.integers(0, 2**64 - 1)


@kernel
def hashes(keys, positions, out):
    for i in range(len(keys)):
        out[i] = compiled_hash_at(keys[i], positions[i])


@kernel
def permutations(keys, n, out):
    mask, shift = domain(n)
    for s in range(len(keys)):
        order = order_of(keys[s])
        for p in range(n):
            out[s, p] = compiled_permute(order, p, n, mask, shift)


@kernel
def products(a, b, out):
    for i in range(len(a)):
        out[i] = compiled_mulhi(a[i], b)


def keys_of(n: int, seed: int = 0) -> np.ndarray:
    return tree_keys(xp, seed, 0, n)


def orders(keys: np.ndarray, n: int) -> np.ndarray:
    """The whole order of range(n) of each key, [S, n]."""
    return permute(xp, keys[:, None], np.arange(n, dtype=np.uint64)[None], n)


def assert_uniform(counts: np.ndarray, expected: np.ndarray | float) -> None:
    """Pearson's test of independent counts."""
    counts = np.asarray(counts, float).ravel()
    expected = np.broadcast_to(expected, counts.shape)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(counts) - 1) > SURPRISE


# known answers

SPLITMIX_1234567 = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_hash_is_splitmix64():
    positions = np.arange(5, dtype=np.uint64)
    key = np.full(5, 1234567, np.uint64)
    assert hash_at(key, positions).tolist() == SPLITMIX_1234567
    assert [int(hash_at(key[:1], i)[0]) for i in range(5)] == SPLITMIX_1234567
    out = np.zeros(5, np.uint64)
    hashes(key, positions, out)
    assert out.tolist() == SPLITMIX_1234567


def splitmix(key: int, position: int) -> int:
    """The same in Python's whole numbers."""
    z = (key + (position + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


@settings(derandomize=True, deadline=None)
@given(st.lists(st.tuples(keys64, st.integers(0, 2**62)), min_size=1, max_size=20))
def test_tellings_of_the_hash_agree(pairs):
    keys, positions = (np.array(v, np.uint64) for v in zip(*pairs, strict=True))
    expected = [splitmix(k, p) for k, p in pairs]
    assert hash_at(keys, positions).tolist() == expected
    out = np.zeros(len(pairs), np.uint64)
    hashes(keys, positions, out)
    assert out.tolist() == expected
    assert int(hash_at(keys[:1], pairs[0][1])[0]) == expected[0]


def test_tree_keys_do_not_depend_on_where_they_begin():
    assert np.array_equal(tree_keys(xp, 7, 0, 10)[4:], tree_keys(xp, 7, 4, 10))
    assert len(np.unique(np.stack([tree_keys(xp, s, 0, 1000) for s in range(100)]))) == 10**5


# permutations


def python_permute(key: int, position: int, n: int) -> int:
    bits = (n - 1).bit_length()
    if bits == 0:
        return 0
    x, shift = position, (bits + 1) // 2
    while True:
        for r in range(4):
            h = splitmix(key, 2 + r)
            x = ((x + h % 2**32) * (h >> 32 | 1)) % 2**bits
            x ^= x >> shift
            x = ((x + (h >> 16) % 2**32) * (h >> 48 | 1)) % 2**bits
            x ^= x >> shift
        if x < n:
            return x


@settings(derandomize=True, deadline=None)
@given(
    keys64, st.integers(1, 2**32).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))
)
def test_permutation_is_what_it_says(key, n_and_position):
    n, position = n_and_position
    found = permute(xp, np.full((1, 1), key, np.uint64), np.full((1, 1), position, np.uint64), n)
    assert int(found[0, 0]) == python_permute(key, position, n)


def test_permutation_is_a_bijection():
    keys = keys_of(40)
    keys[:2] = 0, 2**64 - 1
    for n in range(1, 301):
        drawn = orders(keys, n)
        assert np.array_equal(np.sort(drawn, axis=1), np.tile(np.arange(n), (len(keys), 1)))
        out = np.zeros(drawn.shape, np.uint64)
        permutations(keys, n, out)
        assert np.array_equal(out, drawn)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 9, 16, 28, 54, 100])
def test_orders_are_uniform(n):
    drawn = orders(keys_of(40_000, seed=n), n).astype(np.int64)
    S = len(drawn)
    # 1. what lies at each of some positions, each element alike
    for position in {0, 1, n // 2, n - 1}:
        assert_uniform(np.bincount(drawn[:, position], minlength=n), S / n)
    # 2. ordered pairs: the first and the second
    first, second = drawn[:, 0], drawn[:, 1]
    pairs = np.bincount(first * n + second, minlength=n * n).reshape(n, n)
    assert np.all(np.diag(pairs) == 0)
    assert_uniform(pairs[~np.eye(n, dtype=bool)], S / (n * (n - 1)))
    # 3. every pair is among the first k as often as any other
    k = max(2, math.isqrt(n))
    inside = np.zeros((S, n))
    np.put_along_axis(inside, drawn[:, :k], 1.0, axis=1)
    both = (inside.T @ inside)[np.triu_indices(n, 1)]
    expected = S * k * (k - 1) / (n * (n - 1))
    if n == 2:
        assert both == S
    elif k == 2:  # then the pairs exclude each other, and the counts are a multinomial's
        assert_uniform(both, expected)
    else:
        z = (both - expected) / np.sqrt(expected * (1 - expected / S))
        assert np.abs(z).max() < 6.5  # of 4,950 pairs, less than one in 10**6
        assert abs(z.var() - 1) < 8 * math.sqrt(2 / len(z)) + 0.2


@pytest.mark.parametrize("n", [3, 4, 5])
def test_every_order_is_as_likely(n):
    drawn = orders(keys_of(30_000, seed=1), n).astype(np.int64)
    number = (drawn * n ** np.arange(n)).sum(axis=1)
    counts = np.unique(number, return_counts=True)[1]
    assert len(counts) == math.factorial(n)
    assert_uniform(counts, 30_000 / len(counts))


def relative_differences(n: int, k: int) -> np.ndarray:
    """How much more often than all others each order of the first k of n = 2**w elements comes,
    where all hashes are alike: exact, by going through the eight rounds with all their numbers."""
    states = np.array(list(itertools.permutations(range(n), k)))
    number = np.full((n,) * k, -1)
    number[tuple(states.T)] = np.arange(len(states))
    chance = np.zeros(len(states))
    chance[number[tuple(range(k))]] = 1
    steps = []
    for add, times in itertools.product(range(n), range(1, n, 2)):
        x = (states + add) * times % n
        x ^= x >> ((n.bit_length() - 1 + 1) // 2)
        steps.append(number[tuple(x.T)])
    for _ in range(8):
        after = np.zeros(len(states))
        for step in steps:
            after[step] += chance
        chance = after / len(steps)
    return chance * len(states) - 1


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize(
    ("n", "pairs", "triples"), [(4, 0.0055, 0.0110), (8, 0.0006, 0.0013), (16, 0.0062, 0.0474)]
)
def test_how_uneven_orders_of_few_are(n, pairs, triples):
    # what docs/design.md and `permute` say; rounded to the fourth decimal
    assert relative_differences(n, 1) == pytest.approx(0, abs=1e-12)
    assert root_mean_square(relative_differences(n, 2)) == pytest.approx(pairs, abs=5e-5)
    assert root_mean_square(relative_differences(n, 3)) == pytest.approx(triples, abs=5e-5)


def test_sets_of_four_of_sixteen():
    states = np.array(list(itertools.permutations(range(16), 4)))
    sets = np.unique(np.sort(states, axis=1), axis=0, return_inverse=True)[1]
    found = np.bincount(sets.ravel(), relative_differences(16, 4)) / math.factorial(4)
    assert np.mean(np.abs(found)) / 2 == pytest.approx(0.018, abs=5e-4)  # nodes to be changed


@pytest.mark.parametrize(("n", "most"), [(6, 0.02), (9, 0.02), (13, 0.035), (15, 0.05), (20, 0.01)])
def test_how_uneven_other_orders_are(n, most):
    S = 400_000
    drawn = permute(xp, keys_of(S)[:, None], np.arange(3, dtype=np.uint64)[None], n)
    drawn = drawn.astype(np.int64)
    for k, bound in ((1, 0.005), (2, 0.008), (3, most)):
        number = drawn[:, :k] @ n ** np.arange(k)
        counts = np.unique(number, return_counts=True)[1]
        m = math.perm(n, k)
        assert len(counts) == m
        statistic = float(((counts - S / m) ** 2 / (S / m)).sum())
        # of draws that are uneven by `bound` it is m - 1 + S bound^2 in the mean
        assert statistic < m - 1 + S * bound**2 + 5 * math.sqrt(2 * m)


def test_orders_of_related_nodes_are_independent():
    # a node's order, its left and right child's, and the next tree's
    keys = keys_of(30_000, seed=2)
    order = orders(keys, 28)[:, 0].astype(np.int64)
    for other in (hash_at(keys, 0), hash_at(keys, 1), np.roll(keys, 1)):
        pairs = order * 28 + orders(other, 28)[:, 0].astype(np.int64)
        assert_uniform(np.bincount(pairs, minlength=28 * 28), 30_000 / 28**2)


# bags


@settings(derandomize=True, deadline=None)
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


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
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


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
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


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_weighted_bags_follow_the_weights(engine: Backend):
    weights = np.random.default_rng(0).integers(0, 2**20, 200).astype(np.int32)
    weights[::3] = 0
    bags = draw_bags(Sampling(200, 1000, weights), 5, 0, 500, engine)
    assert np.all(bags.sum(axis=1) == 1000)
    assert not bags[:, weights == 0].any()
    some = weights > 0
    expected = weights[some] / weights.sum() * bags.sum()
    assert_uniform(bags[:, some].sum(axis=0)[expected > 5], expected[expected > 5])


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_without_draws_every_row_counts_once(engine: Backend):
    assert np.array_equal(draw_bags(Sampling(4, 0, None), 0, 0, 2, engine), np.ones((2, 4)))
    weights = np.array([3, 0, 1, 2], np.int32)
    bags = draw_bags(Sampling(4, 0, weights), 0, 0, 2, engine)
    assert np.array_equal(bags, [weights, weights])
    rows, count, offsets = engine.in_bag(bags)
    assert rows.tolist() == [0, 2, 3, 0, 2, 3]
    assert count.tolist() == [3, 1, 2, 3, 1, 2]
    assert offsets.tolist() == [0, 3, 6]
