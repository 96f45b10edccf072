"""What the arguments n_jobs, random_state and memory_limit of users mean."""

from __future__ import annotations

import os
import re
from functools import cache
from numbers import Integral
from threading import current_thread, main_thread
from typing import Any

import joblib
import numpy as np
from joblib.parallel import get_active_backend
from sklearn.utils import check_random_state
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

MOST_THREADS = 4  # on a processor: more would only wait, and take memory
# The least work of a thread, in values of X and steps of its rows down trees: some 40 ms of a fit,
# where a second thread costs 5 to 8, and 5 ms of a prediction (benchmarks/results/n_jobs.jsonl)
LEAST_WORK = 100_000
ENVIRONMENT = "GPUFOREST_NUM_THREADS"


def thread_count(n_jobs: int | None, work: int | None = None) -> int:
    """Number of threads for n_jobs in this process or joblib's worker. None: joblib's context, else
    `processors`, fewer for little work. Other numbers count as in joblib, but bounded: joblib
    itself warns in child processes."""
    if n_jobs is None:
        if work is not None and work < 2 * LEAST_WORK:
            return 1
        backend, n_jobs = get_active_backend()
        in_worker = bool(backend.nesting_level)
        if n_jobs is None or (in_worker and n_jobs < 0):
            n = processors(in_worker)
            return n if work is None else min(n, work // LEAST_WORK)
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means nothing; None and -1 are all processors")
    if n_jobs > MOST_THREADS:
        return min(int(n_jobs), MOST_THREADS * cpu_count())
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def processors(in_worker: bool = False) -> int:
    """How many processors this process may use; in a worker of joblib, its share of them.
    scikit-learn asks OpenMP, which knows the affinity, OMP_NUM_THREADS and threadpoolctl's limits,
    and asks joblib about control groups. In processes that joblib starts (loky), OMP_NUM_THREADS is
    the share. A thread of joblib, or a process without this variable, has one."""
    n = 1
    if not in_worker or (os.getenv("OMP_NUM_THREADS") and current_thread() is main_thread()):
        n = int(_openmp_effective_n_threads(only_physical_cores=False))
    limit = os.getenv(ENVIRONMENT) or n
    if not str(limit).isdecimal() or int(limit) < 1:
        raise ValueError(f"{ENVIRONMENT}={limit!r} must be a whole number from 1 on")
    return min(n, int(limit), MOST_THREADS * cpu_count())


@cache
def cpu_count() -> int:
    """joblib's count, which takes longer than a prediction of one row."""
    return int(joblib.cpu_count())


def draw_seed(random_state: Any) -> int:
    """The seed: an int as it is, or one drawn from the RandomState or from NumPy's global one."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def byte_count(limit: int | str | None) -> int | None:
    """Bytes of a memory limit: a number, or text: "2GB" is 2e9, "2GiB" 2**31; None: no limit."""
    if not isinstance(limit, str):
        return None if limit is None else int(limit)
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT])(I?)B", limit.strip().upper())
    unit = 1024.0 if match and match[3] else 1000.0
    n = round(float(match[1]) * unit ** (1 + "KMGT".index(match[2]))) if match else 0
    if n < 1:
        raise ValueError(f"{limit!r} is no number with a unit, such as 500MB or 2GiB")
    return n
