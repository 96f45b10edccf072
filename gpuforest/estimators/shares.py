"""A share of a forest's trees, which one of several processes grows."""

from __future__ import annotations

from typing import Any

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import run_on_backend
from gpuforest.common.arguments import draw_seed
from gpuforest.data.binned import BinnedData, target_and_weight
from gpuforest.estimators.base import FitData, growth_of
from gpuforest.forest import Forest
from gpuforest.grow import grow_waves, merged


def grow_share(estimator: Any, data: BinnedData, begin: int, end: int) -> Forest:
    """The trees begin .. end - 1 of the forest that the estimator would grow of these data, not
    finished: what `FitData.grown` holds. `random_state` is a number."""
    estimator._validate_params()

    def work(backend: Backend) -> Forest:
        y, weight = target_and_weight(data, None, None)
        given = FitData(data, y, weight, draw_seed(estimator.random_state), None)
        training, settings, checked = estimator._prepared(given, backend)
        growth = growth_of(training, settings, checked, estimator._combine())
        waves = grow_waves(growth.training, begin, end, growth.prune)
        return merged(waves, growth.training)

    forest: Forest = run_on_backend(work, **estimator._chosen(data))
    return forest
