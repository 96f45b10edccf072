"""The registry of backends. A third party adds one with `register_backend`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from gpuforest.backends import gpu
from gpuforest.backends.base import Backend
from gpuforest.common.errors import BackendError
from gpuforest.common.progress import stage
from gpuforest.criteria import Criterion

R = TypeVar("R")

# (n_threads, memory_budget in bytes) -> backend
Factory = Callable[[int, int], Backend]

# Bytes of working memory. On a CPU: bags and moving rows of two trees of 200,000 rows,
# because rivals take little; more were no faster
CPU_MEMORY, GPU_MEMORY = 8 * 2**20, 64 * 2**20
BUDGETS = {"numpy": CPU_MEMORY, "numba": CPU_MEMORY}  # of other backends GPU_MEMORY
ENVIRONMENT = "GPUFOREST_BACKEND"
GPU = "cupy"  # what "auto" takes where a GPU is
# Rows on the host from which "auto" takes a GPU. Above them it shall never be slower than
# the CPU: a goal that no measurement on a device has confirmed yet.
GPU_ROWS = 50_000


def _numpy(n_threads: int, memory_budget: int) -> Backend:
    from gpuforest.backends.numpy import NumpyBackend

    return NumpyBackend(n_threads, memory_budget)


def _numba(n_threads: int, memory_budget: int) -> Backend:
    if find_spec("numba") is None:
        raise BackendError("backend 'numba' needs the package numba: pip install numba")
    collects = gc.isenabled()
    gc.disable()  # Numba makes so many objects as it loads that half of its time was this
    try:
        from gpuforest.backends.numba import NumbaBackend
    finally:
        if collects:
            gc.enable()
    return NumbaBackend(n_threads, memory_budget)


def _cupy(n_threads: int, memory_budget: int) -> Backend:
    gpu.require()
    from gpuforest.backends.cupy import CupyBackend

    return CupyBackend(n_threads, memory_budget)


def _numba_cuda(n_threads: int, memory_budget: int) -> Backend:
    if find_spec("numba_cuda") is None:
        raise BackendError(
            "backend 'numba-cuda' needs the package numba-cuda: pip install 'gpuforest[numba-cuda]'"
        )
    try:
        from gpuforest.backends.numba_cuda import NumbaCudaBackend
    except (ImportError, AttributeError) as error:  # each release fits some releases of numba
        raise BackendError(
            "backend 'numba-cuda' cannot run here: the installed numba-cuda does not work with "
            f"the installed numba ({error}): pip install 'gpuforest[numba-cuda]'"
        ) from error

    return NumbaCudaBackend(n_threads, memory_budget)


_factories: dict[str, Factory] = {
    "numpy": _numpy,
    "numba": _numba,
    GPU: _cupy,
    "numba-cuda": _numba_cuda,
}


def register_backend(name: str, factory: Factory) -> None:
    """Add a backend, or replace one, under `name`.

    Parameters
    ----------
    name : str, what users pass as `backend=`
    factory : called with the number of threads (int) and a memory budget in bytes
        (int); returns a `gpuforest.backends.base.Backend`. Called at each use, so that
        heavy imports belong inside it.
    """
    if name == "auto":
        raise ValueError("'auto' is no backend's name: it chooses one")
    _factories[name] = factory


def available_backends() -> list[str]:
    """Names that `backend=` takes beside "auto"; not all of them need run here."""
    return sorted(_factories)


def get_backend(
    name: str = "auto",
    n_threads: int = 1,
    memory_budget: int | None = None,
    *,
    n_rows: int = 0,
    on_device: bool = False,
) -> Backend:
    """The backend of that name.

    Parameters
    ----------
    name : "auto" takes the environment variable GPUFOREST_BACKEND; or else cupy, where
        a GPU is usable and the data are on one already or have at least `GPU_ROWS` rows;
        or else numba; or else numpy
    n_threads : int >= 1, threads on the CPU
    memory_budget : int, bytes of working memory beside data and model, about
    n_rows : int, rows of the data
    on_device : bool, whether the data lie on a GPU

    Raises
    ------
    ValueError : an unknown name
    BackendError : a backend that cannot run here
    """
    chosen = _asked(name)
    if chosen == "auto":
        # the question whether a GPU is usable initialises CUDA, so the cheap ones come first
        if (on_device or n_rows >= GPU_ROWS) and gpu.usable():
            chosen = GPU
        else:
            chosen = "numba" if find_spec("numba") is not None else "numpy"
    if chosen not in _factories:
        origin = "" if chosen == name else f" (from the environment variable {ENVIRONMENT})"
        raise ValueError(
            f"backend={chosen!r}{origin} is unknown; there are 'auto', "
            + ", ".join(repr(n) for n in available_backends())
        )
    if memory_budget is None:
        memory_budget = BUDGETS.get(chosen, GPU_MEMORY)
    return _factories[chosen](n_threads, memory_budget)


def for_criterion(backend: Backend, criterion: Criterion) -> Backend:
    """The backend; or the CPU's, which the log says, where it lacks the criterion."""
    if backend.supports(criterion):
        return backend
    names = [name for name in ("numba", "numpy") if find_spec(name) is not None]
    others = (get_backend(name, backend.n_threads) for name in names)
    found = next(other for other in others if other.supports(criterion))
    gpu.logger.warning(
        "backend %r has no criterion=%r: the trees grow on the CPU, on backend %r",
        backend.name,
        criterion.name,
        found.name,
    )
    return found


def run_on_backend(
    work: Callable[[Backend], R],
    name: str = "auto",
    n_threads: int = 1,
    *,
    n_rows: int = 0,
    on_device: bool = False,
) -> R:
    """`work` on the backend of that name.

    Where "auto" chose a GPU that gives up (it has too little memory), the log says so
    and the work starts again on the CPU. A backend that was named fails with its error.

    Parameters
    ----------
    work : takes the backend; may be called twice
    name, n_threads, n_rows, on_device
        As for `get_backend`.
    """
    with stage("checking"):
        backend = get_backend(name, n_threads, n_rows=n_rows, on_device=on_device)
    try:
        with gpu.memory_errors():
            return work(backend)
    except BackendError as error:
        if _asked(name) != "auto" or backend.on_host:
            raise
        gpu.logger.warning("starting again on the CPU, because the GPU gave up: %s", error)
    # here, where the error no longer holds what lies on the GPU
    return work(get_backend("auto", n_threads))


def _asked(name: str) -> str:
    """The name that was asked for, by the environment where `name` leaves it open."""
    if name != "auto":
        return name
    return os.environ.get(ENVIRONMENT, "") or "auto"
