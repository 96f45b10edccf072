"""The hash and the permutation of gpuforest/common/hashing.py, one number at a time."""

import numpy as np

from gpuforest.common import hashing
from gpuforest.compiler.decorators import device

U = np.uint64
GOLDEN, MIX_1, MIX_2 = U(hashing.GOLDEN), U(hashing.MIX_1), U(hashing.MIX_2)
LOW_32 = U(0xFFFFFFFF)
U1, U16, U27, U30, U31, U32, U48 = U(1), U(16), U(27), U(30), U(31), U(32), U(48)
PERMUTATION, CUT = hashing.PERMUTATION, hashing.CUT


@device
def mix(z):
    z = (z ^ (z >> U30)) * MIX_1
    z = (z ^ (z >> U27)) * MIX_2
    return z ^ (z >> U31)


@device
def hash_at(key, position):
    return mix(key + (U(position) + U1) * GOLDEN)


@device
def order_of(key):
    """The four round keys that `permute` needs, from a node's key."""
    return (
        hash_at(key, PERMUTATION),
        hash_at(key, PERMUTATION + 1),
        hash_at(key, PERMUTATION + 2),
        hash_at(key, PERMUTATION + 3),
    )


@device
def permute(order, position, n, mask, shift):
    """The element at `position` of an order of range(n); `domain` returns mask and shift."""
    x = U(position)
    while True:
        for h in order:
            x = ((x + (h & LOW_32)) * ((h >> U32) | U1)) & mask
            x = x ^ (x >> shift)
            x = ((x + ((h >> U16) & LOW_32)) * ((h >> U48) | U1)) & mask
            x = x ^ (x >> shift)
        if x < U(n):
            return np.int64(x)


@device
def domain(n):
    """The mask of the smallest power of two that holds range(n), and the fold's shift."""
    bits = 0
    while (1 << bits) < n:
        bits += 1
    return U((1 << bits) - 1), U((bits + 1) // 2)
