"""Operations on grown forests that run on the CPU, whatever the backend's device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gpuforest.forest import Forest
    from gpuforest.inspection.shap import Explainer
    from gpuforest.inspection.shap_background import BackgroundExplainer
    from gpuforest.kernels.quantiles.members import Members

Array = Any


class OnCpu:
    """By default the best backend of the CPU does them; NumPy's and Numba's have their own."""

    n_threads: int
    asnumpy: Any

    @property
    def _cpu(self) -> Any:
        from gpuforest.backends.registry import get_host_backend

        return get_host_backend(self.n_threads)

    def covers(self, forest: Forest, leaf_cover: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cover of each node f64[M], and the most features on a path of each tree and its depth
        i64[T, 2], on the host; see `kernels/shap`."""
        found: tuple[np.ndarray, np.ndarray] = self._cpu.covers(forest, leaf_cover)
        return found

    def shap_values(self, explainer: Explainer, codes: Array) -> np.ndarray:
        """The sums over trees of their SHAP values, f64[N, F, K], on the host."""
        return np.asarray(self._cpu.shap_values(explainer, self.asnumpy(codes)))

    def shap_interactions(self, explainer: Explainer, codes: Array) -> np.ndarray:
        """The same of pairs of features, f64[N, F * F, K], see `kernels/shap`."""
        return np.asarray(self._cpu.shap_interactions(explainer, self.asnumpy(codes)))

    def background_values(self, explainer: BackgroundExplainer, codes: Array) -> np.ndarray:
        """The sums over trees and the rows of a background of SHAP values, f64[N, F, K], see
        `kernels/shap_background`."""
        return np.asarray(self._cpu.background_values(explainer, self.asnumpy(codes)))

    def quantiles(
        self, members: Members, leaves: np.ndarray, y: np.ndarray, q: np.ndarray, how: int
    ) -> np.ndarray:
        """Weighted quantiles f64[n, K, Q] of the targets of the rows in leaves i64[n, T]."""
        return np.asarray(self._cpu.quantiles(members, leaves, y, q, how))

    def weights_below(
        self, members: Members, leaves: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """The weights of the rows in leaves whose ranks are below low i64[n, K], and below high
        i64[n, K]; of all; and the number of draws: i64[n, K, 4]."""
        return np.asarray(self._cpu.weights_below(members, leaves, low, high))
