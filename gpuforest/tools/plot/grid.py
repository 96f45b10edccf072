"""The data that a surface is drawn over: one or two columns vary, the others are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gpuforest.data.arrays import to_host
from gpuforest.data.tables import is_frame, open_frame
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import has_set, unpack

MOST_CELLS = 300  # along an axis
MARGIN = 0.05  # of the data's range, on both sides of it


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of X.

    values : of each feature an array [N]
    names : what the features are called
    frame : X as narwhals has it where it is a frame, or None
    """

    values: list[np.ndarray]
    names: list[str]
    frame: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, feature_names: Sequence[str] | None) -> Columns:
        """The columns of what a fitted estimator's `predict` takes.

        Raises
        ------
        ValueError : X or feature_names of another number of features
        """
        X = to_host(X.toarray() if issparse(X) else X)
        frame = open_frame(X) if is_frame(X) else None
        if frame is not None:
            values = [_host_values(column) for column in frame.iter_columns()]
        else:
            values = list(np.asarray(X).reshape(len(X), -1).T)
        names = feature_names
        if names is None and frame is not None:
            names = frame.columns
        if names is None:
            names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"feature_{i}" for i in range(len(values))]
        for what, n in (("X", len(values)), ("feature_names", len(names))):
            if n != estimator.n_features_in_:
                raise ValueError(
                    f"{what} has {n} features, the estimator was fitted to "
                    f"{estimator.n_features_in_}: pass them all"
                )
        return cls(values, [str(name) for name in names], frame)

    def index(self, feature: int | str) -> int:
        """The number of a feature that is given by number or by name.

        Raises
        ------
        ValueError : there is none
        """
        if isinstance(feature, str) and feature in self.names:
            return self.names.index(feature)
        if isinstance(feature, str) or not 0 <= feature < len(self.names):
            known = ", ".join(self.names[:10]) + ", ..." * (len(self.names) > 10)
            raise ValueError(f"no feature {feature!r}: choose one of {known}, or its number")
        return int(feature)

    def numbers(self, feature: int) -> np.ndarray:
        """A column as f64[N].

        Raises
        ------
        ValueError : it holds no numbers, or none that are finite
        """
        try:
            found = self.values[feature].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"feature {self.names[feature]!r} holds no numbers: choose another one to draw over"
            ) from error
        if not np.isfinite(found).any():
            raise ValueError(f"feature {self.names[feature]!r} holds no finite number to draw over")
        return found

    def table(self, given: dict[int, np.ndarray]) -> Any:
        """Rows to predict: some columns as given, the others held at the median, or at the most
        frequent category."""
        n = len(next(iter(given.values())))
        columns = [
            given[i] if i in given else np.full(n, _middle(values))
            for i, values in enumerate(self.values)
        ]
        if self.frame is None:
            return np.column_stack(columns)
        table = dict(zip(self.frame.columns, columns, strict=True))
        if self.frame.implementation.is_pandas():  # names may be numbers
            return import_module("pandas").DataFrame(table)
        import narwhals.stable.v2 as nw

        return nw.from_dict(table, backend=self.frame.implementation).to_native()


def edges(forest: Forest, feature: int, values: np.ndarray) -> np.ndarray:
    """Ends of the cells, ascending, that a forest predicts one value in along a feature.

    They are its thresholds, so that a picture is exact; even steps where there are too many, or
    splits by combinations of features, whose boundaries are slanted.

    values : f64[N], whose range is drawn
    """
    finite = values[np.isfinite(values)]
    low, high = finite.min(), finite.max()
    margin = MARGIN * (high - low) or 1.0
    low, high = low - margin, high + margin
    split, bin, _, _ = unpack(np, forest.nodes)
    own = (split == feature) & ~has_set(forest.nodes)
    cuts = np.unique(forest.edges.threshold(split[own], bin[own]))
    cuts = cuts[(cuts > low) & (cuts < high)]
    if len(cuts) >= MOST_CELLS or forest.oblique:
        return np.linspace(low, high, MOST_CELLS + 1)
    return np.concatenate([[low], cuts, [high]])


def middles(ends: np.ndarray) -> np.ndarray:
    """A value within each cell."""
    return np.asarray(ends[:-1] + (ends[1:] - ends[:-1]) / 2)


def _host_values(column: Any) -> np.ndarray:
    """A series of narwhals as an array; what is missing as NaN among numbers, else as None."""
    import narwhals.stable.v2 as nw

    missing = column.is_null()
    if column.dtype.is_numeric() and missing.any():
        column = column.cast(nw.Float64())
    values = np.asarray(column.to_native() if isinstance(column.dtype, nw.Unknown) else column)
    if values.dtype.kind != "f" and missing.any():
        values = values.astype(object)
        values[missing.to_numpy()] = None
    return values


def _middle(values: np.ndarray) -> Any:
    """The value that a column is held at: the median, or the most frequent category."""
    if values.dtype.kind in "fiu":
        known = values[~np.isnan(values)]
        return np.median(known) if len(known) else np.nan
    listed = [value for value in values.tolist() if value is not None and value == value]
    if not listed:
        return np.nan
    found, counts = np.unique(np.array(listed, values.dtype), return_counts=True)
    return found[counts.argmax()]
