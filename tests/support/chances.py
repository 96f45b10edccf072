"""Hashes in Python's own whole numbers."""

from hypothesis import strategies as st

keys64 = st.integers(0, 2**64 - 1)


def splitmix(key: int, position: int) -> int:
    """SplitMix64's output at a position of the sequence that a key begins."""
    z = (key + (position + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)
