"""Stateless randomness: every draw is a hash of (seed, tree, node or draw, position).

Nothing random is stored: a bag, a node's feature order or a tie break is recomputed
wherever it is needed, and is the same on every backend. The hash is the finalizer of
SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
OOPSLA 2014) over a counter; all arithmetic is modulo 2**64.

    seed -> tree key -> bag key -> draw 0, 1, 2, ...
                    `-> root key -> left key, right key -> ...
                           `-> feature order, random cuts

The functions take any array-API namespace's uint64 arrays; compiled kernels implement the
same formulas.
"""

from __future__ import annotations

from typing import Any

Array = Any

GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB

# What a key is hashed with, by purpose. A node's sides are 0 (left) and 1 (right).
BAG, ROOT, FEATURES, OUT_OF_BAG, KEPT, PARTS = 0, 1, 2, 3, 4, 5
PERMUTATION = 2
ROWS = 2**40  # with the seed, beyond all trees: the key of the rows that bin edges come from
SKETCH = 2**42  # the same: that of sums of outputs that trees for several outputs grow from
ORDERED = 2**41  # the same: that of the order of rows for target statistics
OF_LOSS = 2**43  # the same: that of the draws of the loss "rank_xendcg"
CUT = 2**32  # and the feature: a random cut of it
HASHES = 4  # of the permutation; each drives two rounds


def mix(z: Array) -> Array:
    """SplitMix64's finalizer, a bijection of uint64 with full avalanche."""
    z = (z ^ (z >> 30)) * MIX_1
    z = (z ^ (z >> 27)) * MIX_2
    return z ^ (z >> 31)


def hash_at(key: Array, position: Array | int) -> Array:
    """Hash of `key` u64[...] at `position` (u64[...] or an int >= 0): u64[...]."""
    if isinstance(position, int):
        return mix(key + ((position + 1) * GOLDEN) % 2**64)
    return mix(key + (position + 1) * GOLDEN)


def tree_keys(xp: Any, seed: int, first: int, last: int, device: Any = None) -> Array:
    """Keys u64[last - first] of the trees `first` .. `last` - 1 under `seed`."""
    position = xp.arange(first, last, dtype=xp.uint64, device=device)
    return hash_at(xp.full((last - first,), seed, dtype=xp.uint64, device=device), position)


def permute(xp: Any, keys: Array, positions: Array, n: int) -> Array:
    """The elements u64[S, P] at `positions` (u64[1, P] or u64[S, P]) of the random orders of
    range(n), n <= 2**32, that `keys` u64[S, 1] name: distinct for distinct positions of a key. It
    is a keyed bijection of [0, 2**w) (add, multiply by an odd number, fold the high bits into the
    low ones, eight times), walked along its cycle until it lands below n; docs/design.md says how
    uniform the orders are."""

    bits = (n - 1).bit_length()
    if bits == 0:
        return (positions + keys) & 0
    mask, shift, rounds = 2**bits - 1, (bits + 1) // 2, _rounds(keys)

    def walk(x: Array, rounds: list[Any]) -> Array:
        for add, multiply in rounds:
            x = ((x + add) * multiply) & mask
            x = x ^ (x >> shift)
        return x

    x = walk(positions, rounds)
    while bool(xp.any(outside := x >= n)):
        row = xp.nonzero(outside)[0]
        of_rows = [tuple(xp.take(part[:, 0], row, axis=0) for part in pair) for pair in rounds]
        x[outside] = walk(x[outside], of_rows)
    return x


def _rounds(keys: Array) -> list[tuple[Array, Array]]:
    """What each round of the permutations of `keys` u64[S, 1] adds, and the odd factor."""
    hashes = [hash_at(keys, PERMUTATION + r) for r in range(HASHES)]
    pairs = [pair for h in hashes for pair in ((h, h >> 32), (h >> 16, h >> 48))]
    return [(add & 0xFFFFFFFF, multiply | 1) for add, multiply in pairs]
