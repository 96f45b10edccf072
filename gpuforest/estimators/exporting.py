"""The methods that turn fitted estimators into models of other packages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any


class Exports:
    """Adds `to_sklearn`, `to_onnx` and `to_treelite`."""

    def to_sklearn(self) -> Any:
        """The same trees as a fitted estimator of scikit-learn, see `gpuforest.export.sklearn`."""
        from gpuforest.export.sklearn import to_sklearn

        return to_sklearn(self)

    def to_onnx(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        dtype: str = "float32",
        ml_version: int | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Any:
        """An ONNX model that predicts the same, which is also written to `path` if that is given.

        Parameters, results and errors are those of `gpuforest.export.onnx.to_onnx`.
        """
        from gpuforest.export.onnx import to_onnx

        return to_onnx(self, path, dtype=dtype, ml_version=ml_version, feature_names=feature_names)

    def to_treelite(self) -> Any:
        """A model of treelite that predicts the same, see `gpuforest.export.treelite`."""
        from gpuforest.export.treelite import to_treelite

        return to_treelite(self)
