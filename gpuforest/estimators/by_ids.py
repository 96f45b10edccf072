"""Poisson bags: a hash of its id says how often a row counts, whatever other rows there are."""

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from gpuforest.common.dtypes import MAX_TOTAL_WEIGHT
from gpuforest.core.rules import Sampling
from gpuforest.core.target import CheckedTarget
from gpuforest.estimators.settings import RowWeights, Settings, check_some_weight, class_factors
from gpuforest.growing.targets import integer_weights

BY_IDS = "poisson"
MOST_RATE = 16


def check(params: Mapping[str, Any]) -> None:
    """Raise a ValueError if parameters let the count of a row in a bag depend on other rows."""
    drawn = params["max_samples"]
    if isinstance(drawn, Real) and (float(drawn) > MOST_RATE or not isinstance(drawn, float)):
        raise ValueError(
            f"max_samples={drawn!r} with bootstrap='poisson': pass how often a row counts in the "
            f"mean, a float up to {MOST_RATE}, or None for once"
        )
    if params.get("class_weight") == "balanced_subsample":
        raise ValueError(
            "class_weight='balanced_subsample' counts all rows of a bag, and with "
            "bootstrap='poisson' a row counts by its id alone: pass 'balanced' or {label: weight}"
        )


def sampling_of(
    settings: Settings, n_rows: int, weights: RowWeights, labels: CheckedTarget,
    ids: np.ndarray | None,
) -> Sampling:  # fmt: skip
    """How often rows count in Poisson bags; weights of rows and classes multiply that."""
    rate = 1.0 if settings.max_samples is None else float(settings.max_samples)
    user = None if weights is None else weights[0]
    sampling = Sampling(n_rows, max(1, round(rate * n_rows)), None, rate=rate, ids=ids)
    if settings.weighs_classes:
        user = check_some_weight(class_factors(settings, labels, user), user)
    if user is not None:
        most = MAX_TOTAL_WEIGHT // sampling.most_drawn
        sampling = replace(sampling, weights=integer_weights(user, most))
    if sampling.most_weight > MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"Poisson bags of {n_rows} rows may weigh up to {sampling.most_weight}; at most "
            f"{MAX_TOTAL_WEIGHT} are supported: lower max_samples, or set bootstrap=True"
        )
    return sampling
