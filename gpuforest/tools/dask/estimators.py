"""Estimators of gpuforest whose `fit` and predictions also take dask's collections."""

from __future__ import annotations

import inspect
from copy import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from gpuforest.common.arguments import draw_seed
from gpuforest.data import arrays, survival
from gpuforest.data.blocks import Block, named
from gpuforest.estimators.fit_scope import replacing
from gpuforest.explain.model_facts import is_survival
from gpuforest.tools.dask import partitions, training

OWN: dict[str, Any] = {"client": None, "strategy": "auto"}  # parameters beside the local ones
CURVES = ("survival", "cumulative_hazard", "cumulative_incidence")
METHODS = (
    "predict", "predict_proba", "apply", *(f"predict_{what}_function" for what in CURVES),
    "effect", "_effect_and_std",
)  # fmt: skip
TAKEN = ("self", "X", "return_array", "cause")  # by these methods
LAZY = """As the local estimator; of a dask collection a dask array, not yet computed, of curves
        with their values at `unique_times_`."""


class OnDask:
    """Adds dask to an estimator; `_local` is its class."""

    _local: ClassVar[Any]
    client: Any
    strategy: str

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None,
        blocks: Any = None,
    ) -> Any:  # fmt: skip
        """Train on a cluster, or here if X is no dask collection.

        Parameters
        ----------
        X : dask array or DataFrame, or list of delayed blocks, of shape (n_samples, n_features)
            Cut by rows into partitions of any sizes; or what the local estimator takes.
        y, sample_weight, groups, blocks : the same of shape (n_samples,), cut in the same way

        Raises
        ------
        ValueError
            As the local estimator, with the name of the partition; partitions that do not fit
            together; no client, no workers.
        RuntimeError
            Workers died, or fell silent, again and again while they ran a task of this fit.
        """
        self._validate_params()  # type: ignore[attr-defined]
        local = self.to_local()
        if not partitions.is_collection(X):
            trained = local.fit(X, y, sample_weight, groups=groups, blocks=blocks)
        else:
            continues, seed = training.continues(local), local.random_state
            local.set_params(random_state=local.forest_.seed if continues else draw_seed(seed))
            parts = partitions.delayed_blocks(X, y, sample_weight, groups, blocks)
            verbose = getattr(local, "verbose", 0)
            trained = training.fit(self._client(), local, parts, self.strategy, verbose)
        return self._take(trained)

    def _take(self, trained: Any) -> Any:
        """Become as fitted as the local estimator."""
        with replacing(self) as fitted:
            fitted.__dict__.update({n: v for n, v in vars(trained).items() if n.endswith("_")})
        return self

    def _client(self) -> Any:
        """The client given, or the current one."""
        from distributed import get_client

        if self.client is not None:
            return self.client
        try:
            return get_client()
        except ValueError as error:
            raise ValueError(
                "there is no dask client: make one, such as dask.distributed.Client(), or pass "
                "client"
            ) from error

    def to_local(self) -> Any:
        """The ordinary estimator, with the same parameters, and fitted if this one is."""
        params = self.get_params(deep=False)  # type: ignore[attr-defined]
        local = self._local(**{k: v for k, v in params.items() if k not in OWN})
        local.__dict__.update({n: v for n, v in vars(self).items() if n.endswith("_")})
        return local

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Accuracy, R2 or concordance; of dask collections a delayed float: `compute()` it."""
        if not partitions.is_collection(X):
            return self.to_local().score(X, y, sample_weight)
        from dask.delayed import delayed

        blocks, local = partitions.delayed_blocks(X, y, sample_weight), delayed(self.to_local())
        parts = [delayed(scored)(local, block) for block in blocks]
        return delayed(score_of)(local, parts)


def of_partitions(local: type, method: str) -> Any:
    """The method for dask of a local class."""
    theirs = inspect.signature(getattr(local, method))
    taken = {name: p for name, p in theirs.parameters.items() if name in TAKEN}
    signature = theirs.replace(parameters=[*taken.values()])

    def lazy(*args: Any, **params: Any) -> Any:
        options = signature.bind(*args, **params).arguments
        local, X = options.pop("self").to_local(), options.pop("X")
        if not partitions.is_collection(X):
            return getattr(local, method)(X, **options)
        import dask.array as da
        from dask.delayed import delayed

        if "return_array" in taken:
            options["return_array"] = True
        blocks, model, shown = partitions.delayed_blocks(X), delayed(local), empty(local, method)
        sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
        shapes = [(n, *shown.shape[1:]) for n in sizes]
        found = [delayed(walked)(model, block, method, **options) for block in blocks]
        parts = [da.from_delayed(*pair, meta=shown) for pair in zip(found, shapes, strict=True)]
        return da.concatenate(parts, axis=0, allow_unknown_chunksizes=True)

    lazy.__name__, lazy.__doc__ = method, LAZY
    lazy.__signature__ = signature  # type: ignore[attr-defined]
    return lazy


def empty(local: Any, method: str) -> np.ndarray:
    """What a method returns for no rows."""
    if method == "apply":
        return np.zeros((0, local.forest_.n_trees), np.int64)
    if method == "predict_proba":
        return np.zeros((0, len(local.classes_)))
    if method == "_effect_and_std":
        return np.zeros((0, 2))
    if method.endswith("_function"):
        return np.zeros((0, len(local.unique_times_)))
    dtype = local.classes_.dtype if hasattr(local, "classes_") else np.float64
    several = getattr(local, "n_outputs_", 1)
    return np.zeros((0,) if several == 1 else (0, several), dtype)


def walked(local: Any, block: Block, method: str, **options: Any) -> Any:
    """A method's result for a partition, which may have no rows."""
    with named(block.name):
        n = len(block.X)
        return getattr(local, method)(block.X, **options) if n else empty(local, method)


def scored(local: Any, block: Block) -> tuple[Any, ...]:
    """What a score is made of: targets, predictions and weights of a partition."""
    y, predicted, weight = block.y, walked(local, block, "predict"), block.weight
    if is_survival(local):
        y = survival.pairs_of(y, survival.HOW)
    return tuple(p if p is None else np.asarray(arrays.to_host(p)) for p in (y, predicted, weight))


def score_of(local: Any, parts: list[Any]) -> Any:
    """The score of the predictions of all partitions."""
    columns: list[Any] = [
        None if values[0] is None else np.concatenate(values) for values in zip(*parts, strict=True)
    ]
    y, predicted, weight = columns
    local, risks = copy(local), predicted.reshape(len(predicted), -1)
    # it predicts what is predicted already; survival forests score what their trees add up
    vars(local).update(predict=lambda X: predicted, _walk=lambda X, stage: risks)
    return local.score(predicted, y, weight)


def on_dask(local: Any, kind: type = OnDask) -> Any:
    """The class for dask of a local one, with two parameters more; kind : `OnDask`, or from it"""
    theirs, named = inspect.signature(local.__init__), inspect.Parameter.KEYWORD_ONLY
    ours = [inspect.Parameter(name, named, default=value) for name, value in OWN.items()]
    signature = theirs.replace(parameters=[*theirs.parameters.values(), *ours])

    def __init__(self: Any, *args: Any, **params: Any) -> None:
        bound = signature.bind(self, *args, **params)
        bound.apply_defaults()
        self.__dict__.update({name: v for name, v in bound.arguments.items() if name != "self"})

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    constraints = {"client": "no_validation", "strategy": [StrOptions({"auto", "trees", "rows"})]}
    doc = f"""`gpuforest.{local.__name__}` on a dask cluster: the same forest, bit for bit.

    `fit` takes dask arrays, DataFrames and lists of delayed blocks; predictions of these are dask
    arrays, not yet computed. What is no dask collection is trained on and predicted here.

    Parameters
    ----------
    client : distributed.Client, default=None
        None: the current one.
    strategy : {{"auto", "trees", "rows"}}, default="auto"
        "trees": the codes of all rows (a byte or two for each value) are copied to every worker,
        and each grows its share of the trees. Models whose trees depend on each other (boosting,
        `n_estimators="auto"`, `max_features="oob"`, `min_samples_leaf="oob"`) grow on one worker.
        "rows": codes stay where they are, and the workers' CPUs grow all trees together; not for
        these models, survival forests, absolute error, `class_weight="balanced_subsample"`, draws
        of each class, splits into a branch for each category or by combinations of features, and
        out-of-bag scores.
        "auto": "trees" if all codes fit into the memory of each worker.
    **others
        As of `gpuforest.{local.__name__}`; each worker uses all its threads.

    Attributes
    ----------
    As of `gpuforest.{local.__name__}`.
    """
    members: dict[str, Any] = {"__init__": __init__, "__doc__": doc, "__module__": "gpuforest.dask"}
    members |= {"_local": local}
    members["_parameter_constraints"] = local._parameter_constraints | constraints
    members |= {name: of_partitions(local, name) for name in METHODS if hasattr(local, name)}
    return type(local.__name__, (kind, local), members)
