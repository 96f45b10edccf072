"""The registry of backends. A third party adds one with `register_backend`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

from gpuforest.backends import gpu
from gpuforest.backends.base import Backend, SplitKind, has
from gpuforest.common import errors, progress
from gpuforest.compiler import code, families, objects
from gpuforest.core.criteria import Criterion

R = TypeVar("R")

# (n_threads, memory_budget in bytes) -> backend
Factory = Callable[[int, int], Backend]

# Bytes of working memory. On a CPU they hold the bags and rows of two trees of 200,000 rows;
# more memory was no faster, and other libraries take little
CPU_MEMORY, GPU_MEMORY = 8 * 2**20, 64 * 2**20
BUDGETS = {"numpy": CPU_MEMORY, "numba": CPU_MEMORY}  # other backends get GPU_MEMORY
ENVIRONMENT = "GPUFOREST_BACKEND"
GPU = "cupy"  # the backend that "auto" takes if there is a GPU
ALL_GPUS = "cupy:all"  # trees grow on all devices at the same time
NO_KERNELS = f"there are no kernels compiled for this machine, nor Numba to do so: {code.EXTRA}"
# "auto" takes a GPU for data on the host from this number of rows on, where it is faster
GPU_ROWS = 50_000
# "auto" takes NumPy for at most this number of rows while Numba's kernels are being compiled
SMALL_ROWS = 2_000


def _numpy(n_threads: int, memory_budget: int) -> Backend:
    from gpuforest.backends.numpy import NumpyBackend

    return NumpyBackend(n_threads, memory_budget)


def _numba(n_threads: int, memory_budget: int) -> Backend:
    if not code.can_run():
        raise errors.BackendError(f"backend 'numba': {NO_KERNELS}")
    from gpuforest.backends.numba import NumbaBackend

    return NumbaBackend(n_threads, memory_budget)


def _compiled_or_numpy() -> str:
    """The better backend of the CPU; a log record, once, says that it is NumPy."""
    if code.can_run():
        return "numba"
    objects.log_once("no kernels", f"NumPy does all work, which is slow: {NO_KERNELS}")
    return "numpy"


def _cupy(n_threads: int, memory_budget: int, every: bool = False) -> Backend:
    gpu.require()
    from gpuforest.backends.cuda.device import AllGpus, CupyBackend

    return (AllGpus if every else CupyBackend)(n_threads, memory_budget)


def _numba_cuda(n_threads: int, memory_budget: int) -> Backend:
    if find_spec("numba_cuda") is None:
        raise errors.BackendError(
            "backend 'numba-cuda' needs the package numba-cuda: pip install 'gpuforest[numba-cuda]'"
        )
    try:
        from gpuforest.backends.numba_cuda import NumbaCudaBackend
    except (ImportError, AttributeError) as error:  # each release fits some releases of numba
        raise errors.BackendError(
            "backend 'numba-cuda' cannot run here: the installed numba-cuda does not work with "
            f"the installed numba ({error}): pip install 'gpuforest[numba-cuda]'"
        ) from error

    return NumbaCudaBackend(n_threads, memory_budget)


_factories: dict[str, Factory] = {
    "numpy": _numpy,
    "numba": _numba,
    GPU: _cupy,
    ALL_GPUS: partial(_cupy, every=True),
    "numba-cuda": _numba_cuda,
}


def register_backend(name: str, factory: Factory) -> None:
    """Add a backend, or replace one, under `name`.

    Parameters
    ----------
    name : str, what users pass as `backend=`
    factory : function of the number of threads (int) and a memory budget in bytes (int) that
        returns a `gpuforest.backends.base.Backend`. It is called at each use, so heavy imports
        belong inside it
    """
    if name == "auto":
        raise ValueError("'auto' is no backend's name: it chooses one")
    _factories[name] = factory


def available_backends() -> list[str]:
    """The names that `backend=` takes besides "auto"; some of them may not run here."""
    return sorted(_factories)


def get_backend(
    name: str = "auto", n_threads: int = 1, memory_budget: int | None = None, *, n_rows: int = 0,
    on_device: bool = False,
) -> Backend:  # fmt: skip
    """The backend of that name.

    Parameters
    ----------
    name : str. "auto" means the name in the environment variable GPUFOREST_BACKEND if it is set;
        otherwise cupy, if a GPU is usable and the data are on one or have at least `GPU_ROWS`
        rows; otherwise numba, or numpy where it cannot be used
    n_threads : int >= 1, threads on the CPU
    memory_budget : int, approximate bytes of working memory besides data and model
    n_rows : int, number of rows of the data
    on_device : bool, whether the data are on a GPU

    Raises
    ------
    ValueError : the name is unknown
    BackendError : the backend cannot run here
    """
    chosen = (os.environ.get(ENVIRONMENT) or name) if name == "auto" else name
    if chosen == "auto":
        # gpu.usable() initialises CUDA, so the cheap conditions come first
        on_gpu = (on_device or n_rows >= GPU_ROWS) and gpu.usable()
        chosen = GPU if on_gpu else _compiled_or_numpy()
    if chosen not in _factories:
        origin = "" if chosen == name else f" (from the environment variable {ENVIRONMENT})"
        raise ValueError(
            f"backend={chosen!r}{origin} is unknown; there are 'auto', "
            + ", ".join(repr(n) for n in available_backends())
        )
    if memory_budget is None:
        memory_budget = BUDGETS.get(chosen, GPU_MEMORY)
    return _factories[chosen](n_threads, memory_budget)


def get_host_backend(n_threads: int = 1) -> Backend:
    """The best backend of the CPU."""
    return get_backend(_compiled_or_numpy(), n_threads)


def for_splits(backend: Backend, criterion: Criterion, kind: SplitKind) -> Backend:
    """The backend; or the CPU's, logged, if this one lacks the kind of split or the criterion."""
    backend = _or_cpu(backend, kind.runs_on, kind.title)
    family = kind.name if kind.name in families.TITLES else "forests"
    if backend.name == "numba" and family not in code.complete:
        code.expect(family, "int32" if criterion.of_classes else "int64")
    if criterion.number is not None:
        return backend
    from gpuforest.backends.numpy import NumpyBackend

    # its search calls the criterion's own score, which compiled kernels do not know
    search, what = NumpyBackend.best_split, f"criterion={criterion.name!r}"
    return _or_cpu(backend, lambda b: type(b).best_split is search, what)


def for_categories(backend: Backend, n_channels: int, random: bool) -> Backend:
    """The backend; or the CPU's, logged, if this one cannot put categories in the order of several
    classes or outputs. Random cuts need no order."""
    in_order = n_channels > 2 and not random
    what = "sets of categories for several classes or outputs"
    return _or_cpu(backend, lambda b: b.on_host or not in_order, what)


def for_boosting(backend: Backend, on_host: Iterable[str] = ()) -> Backend:
    """The backend; or the CPU's, logged, if this one has no boosting, or the fit needs what only
    backends on the host have."""
    for what in on_host:
        backend = _or_cpu(backend, lambda b: b.on_host, what)
    backend = _or_cpu(backend, lambda b: has(b, "booster"), "gradient boosting")
    if backend.name == "numba" and "boosting" not in code.complete:
        code.expect("boosting")
    return backend


def _or_cpu(backend: Backend, supports: Callable[[Backend], bool], what: str) -> Backend:
    if supports(backend):
        return backend
    others = (get_backend(name, backend.n_threads) for name in (_compiled_or_numpy(), "numpy"))
    chosen = next((other for other in others if supports(other)), None)
    if chosen is None:
        raise errors.BackendError(f"{what}: {NO_KERNELS}")
    if backend.name != "numpy":  # which leaves compiled code to the other backend of the CPU
        gpu.logger.warning(
            "backend %r has no %s: the trees grow on the CPU, on backend %r",
            backend.name, what, chosen.name,
        )  # fmt: skip
    return chosen


def run_on_backend(
    work: Callable[[Backend], R], name: str = "auto", n_threads: int = 1, *, n_rows: int = 0,
    on_device: bool = False,
) -> R:  # fmt: skip
    """The result of `work` on the backend of that name; parameters as of `get_backend`. If "auto"
    chose a GPU and it fails, the work starts again on the CPU, logged; if kernels cannot be
    compiled, or little work would wait for them, it starts again on NumPy. A backend that the user
    named raises its error."""
    with progress.stage("starting"):
        backend = get_backend(name, n_threads, n_rows=n_rows, on_device=on_device)
    may_choose = name == "auto" and not os.environ.get(ENVIRONMENT) and backend.name != "numpy"
    is_small = may_choose and 0 < n_rows <= SMALL_ROWS
    try:
        with gpu.device_errors():
            if not is_small:
                return work(backend)
            with code.not_waiting():
                return work(backend)
    except errors.BackendError as error:
        if not may_choose:
            raise
        if isinstance(error, code.Later):
            pass  # NumPy gives the same result, at once, while kernels are compiled
        elif backend.on_host:
            gpu.logger.warning("working without compiled code, which is slow: %s", error)
        else:
            gpu.logger.warning("starting again on the CPU, because the GPU gave up: %s", error)
        again = "numpy" if backend.on_host else "auto"
    # outside the except clause, where the error no longer keeps arrays on the GPU alive
    return work(get_backend(again, n_threads))
