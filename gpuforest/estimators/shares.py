"""Parts of a fit that several processes do: a share of the trees, or all trees of some rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Backend
from gpuforest.backends.registry import get_host_backend, run_on_backend
from gpuforest.cluster.communicator import Communicator
from gpuforest.cluster.rows import grow_rows
from gpuforest.common.arguments import draw_seed, thread_count
from gpuforest.data.binned import BinnedData, target_and_weight
from gpuforest.engine.assembly import merged
from gpuforest.engine.binning import new_codes
from gpuforest.engine.forest import Forest
from gpuforest.engine.grow import grow
from gpuforest.engine.target import Target
from gpuforest.estimators.base import FitData
from gpuforest.estimators.growing import plan_of


def grow_share(estimator: Any, data: BinnedData, begin: int, end: int) -> Forest:
    """The trees begin .. end - 1 of the forest that the estimator would grow of these data, not
    finished: what `FitData.grown` holds. `random_state` is a number."""
    estimator._validate_params()

    def work(backend: Backend) -> Forest:
        y, weight = target_and_weight(data, None, None)
        given = FitData(data, y, weight, draw_seed(estimator.random_state), None)
        training, settings, checked = estimator._prepared(given, backend)
        plan = plan_of(training, settings, checked, estimator._combine())
        waves = grow(plan.training, begin, end, plan.prune)
        return merged(waves, plan.training)

    forest: Forest = run_on_backend(work, **estimator._chosen(data))
    return forest


def grow_of_rows(
    estimator: Any,
    data: BinnedData,
    begin: int,
    codes: np.ndarray,
    own: np.ndarray,
    communicator: Communicator,
) -> Forest:
    """The trees from `begin` on of the estimator's forest, not finished, grown by several processes
    that hold some of the rows each; all of them return it.

    Parameters
    ----------
    data : without codes, but with y and weights of all rows
    codes : u8 or u16 [F, n], of the own rows
    own : i64[n], their numbers
    """
    estimator._validate_params()
    y, weight = target_and_weight(data, None, None)
    # the checks of a fit look at the shape of all rows, and at no codes
    none = np.broadcast_to(np.zeros((), codes.dtype), (len(codes), len(y)))

    backend = get_host_backend(thread_count(getattr(estimator, "n_jobs", 1)))
    given = FitData(data.with_codes(none), y, weight, draw_seed(estimator.random_state), None)
    training, settings, checked = estimator._prepared(given, backend)
    plan = plan_of(training, settings, checked, estimator._combine())
    inside = new_codes(len(own), len(codes), codes.dtype, backend)
    inside[...] = codes.T
    local = replace(
        training,
        matrix=replace(training.matrix, codes=inside),
        target=Target(training.target.coding, np.ascontiguousarray(training.target.y[own])),
    )
    waves = grow_rows(local, begin, settings.n_trees, communicator, own, plan.prune)
    return merged(waves, training)
