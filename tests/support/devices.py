"""Where tests run the CUDA backend: emulated on the CPU, and on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from cuda_on_cpu.module import available, thread_order
from emulated import EmulatedBackend, limited

from gpuforest.backends import gpu
from gpuforest.backends.cuda.forest import CudaBackend


@dataclass(frozen=True)
class Device:
    """
    why_not : why it cannot be used here, or None
    backend : takes memory_budget, deep, shared_limit and free, see EmulatedBackend; what
        is not given is the device's own
    order : takes a seed; threads run in another order inside, if their order can be set
    """

    why_not: Callable[[], str | None]
    backend: Callable[..., CudaBackend]
    order: Callable[[int], AbstractContextManager[Any]]


def gpu_backend(
    memory_budget: int | None = None,
    *,
    deep: int | None = None,
    shared_limit: int | None = None,
    free: int | None = None,
) -> CudaBackend:
    """The backend of the GPU, with less than the GPU has."""
    from gpuforest.backends.cuda.device import CupyBackend

    backend: Any = CupyBackend()
    if memory_budget is not None:
        backend.memory_budget = memory_budget
    if shared_limit is not None:
        backend.shared_limit = min(shared_limit, backend.shared_limit)
    if free is not None:
        backend.free_bytes = lambda: free
    if deep is not None:
        own_plan = backend.deep_plan
        backend.deep_plan = lambda *arguments: limited(own_plan(*arguments), deep)
    return backend


DEVICES = {
    "emulated": Device(available, EmulatedBackend, thread_order),
    "GPU": Device(gpu.why_not, gpu_backend, lambda seed: nullcontext()),
}
