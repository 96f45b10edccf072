"""Causal forests on a cluster. Forests there say what X lets expect; what is known of each row are
eight numbers, which the client holds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from dask.delayed import delayed

import gpuforest
from gpuforest.common.arguments import draw_seed
from gpuforest.data import arrays
from gpuforest.data.binned import FitInput
from gpuforest.estimators import capabilities
from gpuforest.tools.dask import partitions, training
from gpuforest.tools.dask.estimators import OnDask, on_dask
from gpuforest.tools.dask.waiting import done_all

Forest = on_dask(gpuforest.RandomForestRegressor)


class Table(NamedTuple):
    """A collection, and what is known of its partitions."""

    X: Any
    lengths: list[int]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.lengths), self.n_columns

    def cut(self, client: Any, values: np.ndarray | None) -> list[Any] | None:
        """Rows of an array as the partitions have them."""
        if values is None:
            return None
        parts = np.split(values, np.cumsum(self.lengths)[:-1])
        return [delayed(part) for part in partitions.sent(client, parts)]


class Effects(OnDask):
    """Adds dask to `CausalForest`."""

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, treatment: Any = None, *, instrument: Any = None,
        sample_weight: Any = None, groups: Any = None, blocks: Any = None,
    ) -> Any:  # fmt: skip
        """Train on a cluster, or here if X is no dask collection.

        Parameters
        ----------
        X : dask array or DataFrame, or list of delayed blocks, of shape (n_samples, n_features)
            Cut by rows into partitions of any sizes; or what the local estimator takes. It is read
            once for the effects and once for each number that it lets expect: persist it if the
            workers have room.
        y, treatment, instrument, sample_weight, groups : the same of shape (n_samples,), cut in the
            same way

        Raises
        ------
        ValueError, RuntimeError
            As other estimators on a cluster.
        """
        self._validate_params()  # type: ignore[attr-defined]
        of_rows = {"sample_weight": sample_weight, "groups": groups, "blocks": blocks}
        local = self.to_local()
        if not partitions.is_collection(X):
            return self._take(local.fit(X, y, treatment, instrument=instrument, **of_rows))
        if self.strategy == "rows":
            raise ValueError(capabilities.ROWS.format(training.why_not_rows(local)))
        client = self._client()
        table = table_of(client, X)
        arms = {"treatment": treatment, "instrument": instrument}
        given = {"y": y} | arms | of_rows
        found = {name: column(client, table, values, name) for name, values in given.items()}
        treatment, instrument = (found.pop(name) for name in arms)
        expected: Any = self
        rows = expected._expected(FitInput(table, **found), treatment, instrument)
        local.set_params(random_state=draw_seed(local.random_state))
        columns = [rows.values, found["sample_weight"], found["groups"]]
        parts = partitions.delayed_blocks(X, *(table.cut(client, values) for values in columns))
        return self._take(training.fit(client, local, parts, self.strategy, local.verbose))

    def _expect(self, model: Any, given: FitInput, *how: Any) -> Any:
        if hasattr(model, "fit"):
            raise ValueError(
                "on a cluster, what X lets expect is None (a forest), a number or an array: fit "
                f"the {type(model).__name__}, and pass predictions by cross-validation instead"
            )
        return super()._expect(model, given, *how)  # type: ignore[misc]

    def _judged(self, forest: Any, X: Table, *of_rows: Any) -> Any:
        client = self._client()
        there = Forest(**forest.get_params(deep=False), client=client)
        y, weight, groups = (X.cut(client, values) for values in of_rows)
        return there.fit(X.X, y, weight, groups=groups).oob_prediction_


def table_of(client: Any, X: Any) -> Table:
    """What a collection is cut into."""
    blocks = client.compute(partitions.parts_of(X, "X"))
    shapes = client.gather(done_all(client, client.map(shape_of, blocks, pure=False)))
    return Table(X, [n for n, _ in shapes], max(columns for _, columns in shapes))


def shape_of(block: Any) -> tuple[int, int]:
    return len(block), arrays.count_columns(block)


def column(client: Any, table: Table, values: Any, name: str) -> Any:
    """A number or a label of each row, on the client."""
    if values is None:
        return None
    parts = done_all(client, client.compute(partitions.parts_of(values, name)))
    found = [np.asarray(arrays.to_host(part, name)).reshape(-1) for part in client.gather(parts)]
    lengths = [len(part) for part in found]
    if lengths != table.lengths:
        raise ValueError(
            f"X has partitions of {table.lengths} rows, {name} has {lengths}: cut both in the same "
            "way"
        )
    return np.concatenate(found)
