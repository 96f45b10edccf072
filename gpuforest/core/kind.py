"""What backends ask a kind of split; splits/base.py has the base class."""

from __future__ import annotations

from typing import Any, Protocol


class SplitKind(Protocol):
    """A kind of split, chosen once for a fit."""

    name: str
    title: str
    cpu_only: bool
    has_sets: bool
    columns: int

    def runs_on(self, backend: Any) -> bool: ...

    def cpu_kernel(self, training: Any) -> Any: ...

    def cpu_scratch(self, training: Any, scratch: Any, data: Any) -> tuple[Any, ...]: ...
