"""What a fit remembers about itself, for reports: rows, seconds, the version."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from gpuforest.backends.arrays import count_rows


@contextmanager
def recorded(estimator: Any, X: Any) -> Iterator[None]:
    """Keep facts about the fit inside as the estimator's `_training_`.

    rows : int, those of X
    seconds : float, of this fit; a model file leaves them out, so that equal models are equal files
    version : str, that of gpuforest
    """
    start = time.perf_counter()
    yield
    facts = {"rows": count_rows(X), "version": version("gpuforest")}
    estimator._training_ = {**facts, "seconds": time.perf_counter() - start}
