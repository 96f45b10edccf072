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
    version : str, that of gpuforest
    seconds : float, of this fit, unless it is one of several that grew the trees; a model file
        leaves them out, so that equal models are equal files
    """
    in_part, start = (
        getattr(estimator, "warm_start", False) or estimator._grown,
        time.perf_counter(),
    )
    yield
    estimator._training_ = {"rows": count_rows(X), "version": version("gpuforest")}
    if not in_part:
        estimator._training_["seconds"] = time.perf_counter() - start
