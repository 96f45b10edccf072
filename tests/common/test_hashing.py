"""Stateless randomness: known answers, compiled hashes that equal them, and fair orders."""

import array_api_compat.numpy as xp
import numpy as np
from chances import keys64, splitmix
from hypothesis import given
from hypothesis import strategies as st
from in_numba import kernel

from gpuforest.common.hashing import hash_at, permute, tree_keys
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


SPLITMIX_1234567 = [
    6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431,
    16408922859458223821,
]  # fmt: skip


def test_hash_is_splitmix64():
    positions = np.arange(5, dtype=np.uint64)
    key = np.full(5, 1234567, np.uint64)
    assert hash_at(key, positions).tolist() == SPLITMIX_1234567
    assert [int(hash_at(key[:1], i)[0]) for i in range(5)] == SPLITMIX_1234567


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
