"""The CUDA backend without a GPU: its own host code on NumPy arrays, its kernels' own text
built for the CPU (see cuda_on_cpu)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import array_api_compat.numpy
import numpy as np
from cuda_on_cpu.module import EmulatedModule
from cuda_variants import SWITCHES, most_threads, variants

from gpuforest.backends.cuda.forest import CudaBackend, DeepPlan
from gpuforest.backends.cuda.source import cuda_source


@cache
def module(
    operation: str, macros: tuple[tuple[str, str], ...], kind: str | None = None
) -> EmulatedModule:
    return EmulatedModule(cuda_source(operation), tuple(f"-D{n}={v}" for n, v in macros), kind)


class EmulatedBackend(CudaBackend):
    """A small device: two processors, the shared memory of a large GPU or less.

    deep : rows of a slot that is grown whole at the most; 0: every level is wide
    """

    name = "emulated"
    xp = array_api_compat.numpy
    n_processors = 2
    cache_bytes = 4096  # the codes of most tasks are more
    device_number = 0
    kind: str | None = None  # of the builds of kernels, see EmulatedModule

    def __init__(
        self,
        memory_budget: int = 2**26,
        *,
        deep: int | None = None,
        shared_limit: int = 227 << 10,
        free: int = 2**40,
    ) -> None:
        super().__init__(1, memory_budget)
        self.deep, self.shared_limit, self.free = deep, shared_limit, free

    def asnumpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def empty(self, shape: Any, dtype: Any) -> Any:
        found = super().empty(shape, dtype)
        memory = getattr(found, "host", found)  # also of arrays of picky.py
        memory.reshape(-1).view(np.uint8)[...] = 171  # a device's has been in use before
        return found

    def copied(self, array: Any) -> np.ndarray:
        return array.copy()

    def address(self, array: Any) -> int:
        assert array.flags.aligned
        return int(array.ctypes.data)

    def synchronise(self) -> None:
        """Kernels have run when they return."""

    def free_bytes(self) -> int:
        return self.free

    def kernel(self, operation: str, name: str, macros: dict[str, str], shared: int) -> Any:
        # what is run here is what test_cuda_compile.py compiles for GPUs
        own = {name: value for name, value in macros.items() if name not in SWITCHES}
        assert own in variants(operation), f"tests/support/cuda_variants.py lacks {own}"
        found = module(operation, tuple(macros.items()), self.kind).get_function(name)
        found.max_dynamic_shared_size_bytes = self.shared_limit

        def launch(
            grid: tuple[int, ...], block: tuple[int, ...], values: Any, shared_mem: int
        ) -> None:
            assert block[0] <= most_threads(operation)[name], "more than __launch_bounds__"
            found(grid, block, values, shared_mem)

        return launch

    def deep_plan(self, training: Any) -> DeepPlan:
        plan = super().deep_plan(training)
        return plan if self.deep is None else limited(plan, self.deep)


def limited(plan: DeepPlan, most: int) -> DeepPlan:
    """The plan for slots of at most so many rows."""
    rows = min(most, plan.rows)
    return replace(plan, rows=rows, bytes=plan.bytes if rows else 0)
