"""What pictures of SHAP values are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier

from gpuforest.data.arrays import to_host
from gpuforest.data.frames import listed
from gpuforest.data.tables import is_frame, open_frame
from gpuforest.export.walker import opened
from gpuforest.tools.plot.grid import Columns
from gpuforest.tools.plot.style import plain

MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Explained:
    """The SHAP values of rows for one output.

    values : f64[N, F]
    columns : of the features
    is_category : bool[F]
    base : what the values add up to predictions with
    what : what they are added to, such as "the prediction"
    output : the number of the output; None: there is one
    """

    values: np.ndarray
    columns: Columns
    is_category: np.ndarray
    base: float
    what: str
    output: int | None

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        output: Any,
        background: Any,
        values: Any,
        feature_names: Sequence[str] | None,
        row: int | None = None,
    ) -> Explained:
        """
        Parameters
        ----------
        output : a class or the number of an output; None: the only one, or the second of two
            classes
        values : SHAP values of X for all outputs, if they are known already; or None
        row : the number of the only row to explain; None: all rows

        Raises
        ------
        ValueError : no such row or output, or no output is given of several; values of another
            shape
        """
        forest, _ = opened(estimator, 0, None)
        columns = Columns.of(estimator, X, feature_names)
        N, F, K = len(columns.values[0]), len(columns.names), forest.coding.n_values
        k = _number_of(estimator, output, K)
        if values is not None and np.shape(values) != ((N, F) if K == 1 else (N, F, K)):
            raise ValueError(
                f"values has the shape {np.shape(values)}: pass shap_values(X) of the same X"
            )
        if row is not None:
            if not 0 <= row < N:
                raise ValueError(f"row={row}: X has the rows 0 to {N - 1}")
            X, values = some_rows(X, [row]), None if values is None else values[[row]]
            columns = replace(columns, values=[own[[row]] for own in columns.values])
        if values is None:
            values = estimator.shap_values(X, background=background)
        known = background is not None
        base = estimator.expected_value(background) if known else estimator.expected_value_
        is_category = np.isin(np.arange(F), [*forest.edges.categories])
        own = values if k is None else values[:, :, k]
        base = float(np.atleast_1d(base)[k or 0])
        return cls(own, columns, is_category, base, _what(estimator, k, K), k)

    @property
    def adds(self) -> str:
        """What SHAP values say, on one line if it is short."""
        return f"what a feature adds to{chr(10) if len(self.what) > 16 else ' '}{self.what}"

    def strongest(self, top: int | None) -> tuple[np.ndarray, np.ndarray]:
        """The features of the largest mean sizes of values, and these.

        Raises
        ------
        ValueError : top below 1
        """
        if top is not None and top < 1:
            raise ValueError(f"top={top} features are none: pass 1 or more")
        size = np.abs(self.values).mean(axis=0)
        order = np.argsort(-size, kind="stable")[:top]
        return order, size[order]

    def numbers(self, f: int) -> np.ndarray | None:
        """The values of a feature as f64[N], NaN where they are missing; None: categories."""
        if self.is_category[f]:
            return None
        return np.asarray(self.columns.values[f].astype(np.float64))

    def categories(self, f: int) -> np.ndarray:
        """The values of a feature as texts, object[N]."""
        return np.array([text_of(value) for value in self.columns.values[f].tolist()], object)


def some_rows(X: Any, rows: Any) -> Any:
    """Some rows of a table, which a list of numbers or a slice names."""
    if is_frame(X):
        return open_frame(X)[rows].to_native()
    return X.tocsr()[rows] if issparse(X) else np.asarray(to_host(X))[rows]


def text_of(value: Any) -> str:
    """A feature's value as a short text."""
    if value is None or value != value:
        return MISSING
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    return plain(value, 24)


def labels_of(estimator: Any, n_outputs: int) -> list[Any]:
    """What the outputs are called: the classes, or numbers."""
    classes = getattr(estimator, "classes_", None)
    if isinstance(classes, np.ndarray) and len(classes) == n_outputs:
        return list(classes.tolist())
    return list(range(n_outputs))


def _number_of(estimator: Any, output: Any, n_outputs: int) -> int | None:
    """The number of an output; None: there is one."""
    if n_outputs == 1:
        if output is not None:
            raise ValueError(f"output={output!r}: the prediction is one number, so leave it out")
        return None
    labels = labels_of(estimator, n_outputs)
    if output is None and len(labels) == 2 and is_classifier(estimator):
        return 1
    if output is None or output not in labels:
        raise ValueError(
            f"output={output!r} is none of the {n_outputs} outputs: choose one of {listed(labels)}"
        )
    return labels.index(output)


def _what(estimator: Any, k: int | None, n_outputs: int) -> str:
    """What the values are added to."""
    boosted = estimator.forest_.baseline is not None
    if not is_classifier(estimator):
        name = "raw prediction" if boosted else "prediction"
        return f"the {name}" if k is None else f"{name} {k}"
    if boosted:
        label = estimator.classes_[1] if k is None else estimator.classes_[k]
        return f"the raw prediction of {plain(label, 24)}"
    share = "probability" if estimator.forest_.combine == "mean" else "share of the votes"
    assert k is not None  # classes of a forest have several numbers
    return f"the {share} of {plain(labels_of(estimator, n_outputs)[k], 24)}"
