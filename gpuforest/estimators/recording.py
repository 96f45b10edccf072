"""What a fit remembers about itself, for reports: rows, seconds, the version."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from gpuforest.data.arrays import count_rows


@contextmanager
def recorded(estimator: Any, X: Any) -> Iterator[None]:
    """Keep facts about the fit inside: the number of X's rows and gpuforest's version as the
    estimator's `_training_`, and as `_seconds_` how long it took, unless it is one of several that
    grew the trees. No model file or pickle has the seconds, so that those of equal fits are
    equal."""
    in_part = getattr(estimator, "warm_start", False) or estimator._grown
    start = time.perf_counter()
    yield
    estimator._training_ = {"rows": count_rows(X), "version": version("gpuforest")}
    if not in_part:
        estimator._seconds_ = time.perf_counter() - start
