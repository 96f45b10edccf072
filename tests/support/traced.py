"""The emulated device, counting what its kernels ask of memory (see cuda_on_cpu.module.traffic)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda_on_cpu.sanitizers import default_kind
from emulated import EmulatedBackend

unless_sanitized = pytest.mark.skipif(default_kind() != "plain", reason="starts other programs")
ALIGNED = 512  # bytes: memory of CuPy's pool begins at multiples of it


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins where memory of a device would."""
    room = np.empty(array.nbytes + ALIGNED, np.uint8)
    room = room[-room.ctypes.data % ALIGNED :][: array.nbytes]
    copy = room.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


class TracedBackend(EmulatedBackend):
    """Its kernels are builds of the kind "traced".

    rows, slots : of each level, those that are split there
    """

    name = "traced"
    kind = "traced"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rows: list[int] = []
        self.slots: list[int] = []
        self.deep_slots = self.deep_rows_grown = 0

    def empty(self, shape: Any, dtype: Any) -> np.ndarray:
        return aligned(super().empty(shape, dtype))

    def zeros(self, shape: Any, dtype: Any) -> np.ndarray:
        return aligned(super().zeros(shape, dtype))

    def level(self, training: Any, slots: Any) -> Any:
        self.rows.append(int((slots.end - slots.begin).sum()))
        self.slots.append(slots.n_slots)
        return super().level(training, slots)

    def grow_subtrees(self, training: Any, slots: Any, kind: Any) -> Any:
        self.deep_slots += slots.n_slots
        self.deep_rows_grown += int((slots.end - slots.begin).sum())
        return super().grow_subtrees(training, slots, kind)
