"""The registry of backends. A third party adds one with `register_backend`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec

from gpuforest.backends.base import Backend
from gpuforest.errors import BackendError

# (n_threads, memory_budget in bytes) -> backend
Factory = Callable[[int, int], Backend]

MEMORY_BUDGET = 64 * 2**20  # bags and moving rows of eleven trees of 200,000 rows
ENVIRONMENT = "GPUFOREST_BACKEND"


def _numpy(n_threads: int, memory_budget: int) -> Backend:
    from gpuforest.backends.numpy import NumpyBackend

    return NumpyBackend(n_threads, memory_budget)


def _numba(n_threads: int, memory_budget: int) -> Backend:
    if find_spec("numba") is None:
        raise BackendError("backend 'numba' needs the package numba: pip install numba")
    from gpuforest.backends.numba import NumbaBackend

    return NumbaBackend(n_threads, memory_budget)


_factories: dict[str, Factory] = {"numpy": _numpy, "numba": _numba}


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
    """Names that `backend=` takes beside "auto"."""
    return sorted(_factories)


def get_backend(
    name: str = "auto", n_threads: int = 1, memory_budget: int = MEMORY_BUDGET
) -> Backend:
    """The backend of that name.

    Parameters
    ----------
    name : "auto" takes the environment variable GPUFOREST_BACKEND, or else numba, or
        else numpy
    n_threads : int >= 1, threads on the CPU
    memory_budget : int, bytes of working memory beside data and model, about

    Raises
    ------
    ValueError : an unknown name
    BackendError : a backend that cannot run here
    """
    chosen = name
    if name == "auto":
        chosen = os.environ.get(ENVIRONMENT, "") or "auto"
    if chosen == "auto":
        chosen = "numba" if find_spec("numba") is not None else "numpy"
    if chosen not in _factories:
        origin = "" if chosen == name else f" (from the environment variable {ENVIRONMENT})"
        raise ValueError(
            f"backend={chosen!r}{origin} is unknown; there are 'auto', "
            + ", ".join(repr(n) for n in available_backends())
        )
    return _factories[chosen](n_threads, memory_budget)
