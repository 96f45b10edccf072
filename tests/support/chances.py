"""Draws held against chance: hashes in Python's own whole numbers, and a test of fairness."""

import numpy as np
from hypothesis import strategies as st
from scipy.stats import chi2

# a fair draw fails one such test in a million; the keys are fixed, so it never flickers
SURPRISE = 1e-6
keys64 = st.integers(0, 2**64 - 1)


def assert_uniform(counts: np.ndarray, expected: np.ndarray | float) -> None:
    """Pearson's test of independent counts."""
    counts = np.asarray(counts, float).ravel()
    expected = np.broadcast_to(expected, counts.shape)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    assert chi2.sf(statistic, len(counts) - 1) > SURPRISE


def splitmix(key: int, position: int) -> int:
    """SplitMix64's output at a position of the sequence that a key begins."""
    z = (key + (position + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)
