"""Columns of numbers of every shape, whose bins are tried."""

import numpy as np
from hypothesis import strategies as st

any_float = st.floats(allow_infinity=False, allow_nan=True) | st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 1.0, 1.0 + 1e-12, 1.0 - 1e-16, np.nan]
)
any_float32 = st.floats(allow_infinity=False, allow_nan=True, width=32)


def shapes(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    return {
        "normal": rng.normal(size=n),
        "uniform": rng.random(n),
        "log-normal": rng.lognormal(sigma=2, size=n),
        "wilder": rng.lognormal(sigma=6, size=n),
        "cauchy": rng.standard_cauchy(n),
        "whole": rng.integers(0, 3000, n).astype(float),
        "mostly zero": np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
        "zipf": np.minimum(rng.zipf(1.3, n), 10**9).astype(float),
        "outlier": np.append(rng.normal(size=n - 1), 1e300),
    }
