"""What the arguments n_jobs and random_state of users mean, as in scikit-learn."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from joblib import cpu_count, effective_n_jobs
from sklearn.utils import check_random_state

MOST_THREADS = 4  # on a processor: more would only wait, and take memory


def thread_count(n_jobs: int | None) -> int:
    """The number of threads, counted as joblib counts them, but bounded. joblib's own count of them
    warns in a child process, because it takes jobs for processes."""
    if n_jobs is None:
        return int(effective_n_jobs(None))
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means nothing; None is one thread, -1 all processors")
    if n_jobs > MOST_THREADS:
        return min(int(n_jobs), MOST_THREADS * int(cpu_count()))
    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))


def draw_seed(random_state: Any) -> int:
    """The seed: an int as it is, or one drawn from the RandomState or from NumPy's global one."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
