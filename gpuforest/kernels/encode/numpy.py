"""Encode: real values to bin codes."""

import numpy as np

from gpuforest.common.dtypes import CODE8, CODE16


def encode(X: np.ndarray, edges: np.ndarray, offsets: np.ndarray, missing: int) -> np.ndarray:
    """Bin codes u8[N, F], or u16[N, F] where `missing` > 255.

    Parameters
    ----------
    X : f32 or f64 [N, F]
    edges : f64[E], ascending within a feature
    offsets : i64[F + 1] into `edges`
    missing : int, the code of NaN

    Example
    -------
    Edges (1.5, 2.5): 1.0 -> 0, 1.5 -> 0, 2.0 -> 1, 9.0 -> 2, NaN -> `missing`.
    """
    N, F = X.shape
    codes = np.empty((N, F), CODE8 if missing < 256 else CODE16)
    for f in range(F):
        # 1. the edges below the value (compared as float64, which holds any float32)
        x = X[:, f].astype(np.float64)
        code = np.searchsorted(edges[offsets[f] : offsets[f + 1]], x, side="left")
        # 2. missing values
        codes[:, f] = np.where(np.isnan(x), missing, code)
    return codes
