"""A tree for K outputs: it grows from a few sums of gradients, and its leaves have K values.

    stats i64[K, N, 2] of all outputs  ->  joint i64[N, r + 1]  ->  one tree  ->  sums i64[L, K, 2]

Where K is large, the structure follows r sums of the outputs' gradients, with factors -1, 0 or 1
that a hash draws for each round; with K <= r outputs, each has its own. A row's last word has the
sum of its hessians over all outputs, and a 1 that counts the row:

    joint[i] = sum_k S[0, k] g[k, i], ..., sum_k S[r - 1, k] g[k, i], sum_k h[k, i] << n_bits | 1

Values of leaves come from the gradients and hessians of all outputs. All are integers, so no order
of rows changes a bit.

Source: Iosipoi and Vakhrushev, "SketchBoost: fast gradient boosted decision tree for multioutput
problems", NeurIPS 2022, section 3.
"""

from __future__ import annotations

import numpy as np

from gpuforest.common import hashing
from gpuforest.common.dtypes import Array

MOST_SUMS = 5  # of gradients that a tree grows from


def n_sums(n_outputs: int) -> int:
    """r, the number of sums of gradients from which a tree for n_outputs outputs grows."""
    return min(n_outputs, MOST_SUMS)


def factors(seed: int, number: int, n_outputs: int) -> np.ndarray:
    """The factors i64[r, K] of round `number`: one of -1, 0, 0, 1 by chance; with few outputs each
    sum is that of one output."""
    r = n_sums(n_outputs)
    if r == n_outputs:
        return np.eye(r, dtype=np.int64)
    key = hashing.hash_at(hashing.tree_keys(np, seed, number, number + 1), hashing.SKETCH)
    drawn = hashing.hash_at(key, np.arange(r * n_outputs, dtype=np.uint64)) >> np.uint64(62)
    signs = np.array([-1, 0, 0, 1], np.int64)
    return np.asarray(signs[drawn.astype(np.int64)].reshape(r, n_outputs))


def join(stats: np.ndarray, factors: np.ndarray, n_bits: int, joint: np.ndarray) -> None:
    """Fill joint i64[N, r + 1]."""
    joint[:, :-1] = np.einsum("rk,kn->nr", factors, stats[:, :, 0])
    joint[:, -1] = ((stats[:, :, 1] >> n_bits).sum(axis=0) << n_bits) + 1


def leaf_numbers(rows: np.ndarray, leaves: Array) -> np.ndarray:
    """The leaf i32[N] of each row that the tree grew from, and the leaf plus L of each other row;
    rows i32[N] are in the order of the leaves."""
    L, numbers = len(leaves), np.empty(len(rows), np.int32)
    sizes = [leaves["end"] - leaves["begin"], leaves["other_end"] - leaves["other_begin"]]
    numbers[rows] = np.repeat(np.arange(2 * L, dtype=np.int32), np.concatenate(sizes))
    return numbers


def leaf_sums(stats: np.ndarray, numbers: np.ndarray, n_bits: int, sums: np.ndarray) -> None:
    """Add the gradients and hessians of one output, from stats i64[N, 2], to sums i64[2 L, 2]."""
    np.add.at(sums[:, 0], numbers, stats[:, 0])
    np.add.at(sums[:, 1], numbers, stats[:, 1] >> n_bits)
