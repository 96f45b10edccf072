"""Stateless randomness: known answers, compiled hashes that equal them, and fair orders."""

import itertools
import math

import array_api_compat.numpy as xp
import numpy as np
import pytest
from chances import assert_uniform, keys64, splitmix
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel

from gpuforest.common.hashing import hash_at, permute, positions_of, tree_keys
from gpuforest.kernels.shared.numba import domain, order_of
from gpuforest.kernels.shared.numba import hash_at as compiled_hash_at
from gpuforest.kernels.shared.numba import permute as compiled_permute


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


def keys_of(n: int, seed: int = 0) -> np.ndarray:
    return tree_keys(xp, seed, 0, n)


def orders(keys: np.ndarray, n: int) -> np.ndarray:
    """The whole order of range(n) of each key, [S, n]."""
    return permute(xp, keys[:, None], np.arange(n, dtype=np.uint64)[None], n)


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


@given(st.lists(st.tuples(keys64, st.integers(0, 2**62)), min_size=1, max_size=20))
def test_implementations_of_the_hash_agree(pairs):
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
    # what docs/design.md says; rounded to the fourth decimal
    assert relative_differences(n, 1) == pytest.approx(0, abs=1e-12)
    assert root_mean_square(relative_differences(n, 2)) == pytest.approx(pairs, abs=5e-5)
    assert root_mean_square(relative_differences(n, 3)) == pytest.approx(triples, abs=5e-5)


def test_orders_of_related_nodes_are_independent():
    # a node's order, its left and right child's, and the next tree's
    keys = keys_of(30_000, seed=2)
    order = orders(keys, 28)[:, 0].astype(np.int64)
    for other in (hash_at(keys, 0), hash_at(keys, 1), np.roll(keys, 1)):
        pairs = order * 28 + orders(other, 28)[:, 0].astype(np.int64)
        assert_uniform(np.bincount(pairs, minlength=28 * 28), 30_000 / 28**2)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 1000])
def test_positions_are_the_inverse_of_orders(n):
    keys = keys_of(20)
    expected = np.broadcast_to(np.arange(n, dtype=np.uint64), (20, n))
    assert np.array_equal(positions_of(xp, keys[:, None], orders(keys, n), n), expected)
