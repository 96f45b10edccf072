"""Two 64-bit integers at once."""

from __future__ import annotations

from typing import Any


def add_pair(cells: Any, at: Any, stats: Any, i: Any) -> None:
    """Add stats[i] and stats[i + 1] to cells[at] and cells[at + 1]; both are i64[...].

    In compiled kernels it is one vector operation, which LLVM does not find by itself.
    """
    cells[at] += stats[i]
    cells[int(at) + 1] += stats[int(i) + 1]
