"""A product that no sum is fused with."""

from __future__ import annotations

from typing import Any


def times(a: Any, b: Any) -> Any:
    """A product that is rounded before something is added to it, as the reference's is.

    Numba fuses no products and sums on a CPU. It would on a GPU, so this is replaced there.
    """
    return a * b
