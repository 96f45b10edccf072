"""Breiman's synthetic tasks, from a seed: waveform, twonorm, threenorm, ringnorm.

Each function takes a generator and a number of rows, and gives X f64[n, F] and classes
y i64[n], drawn with equal chances.

| task | features, classes | definition |
|---|---|---|
| waveform | 21, 3 | Breiman et al. 1984, 2.6.2: two of three triangles mixed at random, noise |
| twonorm | 20, 2 | Breiman 1996: unit normals about (a, ..., a) and (-a, ..., -a) |
| threenorm | 20, 2 | Breiman 1996: about these two, and about (a, -a, a, ..., -a) |
| ringnorm | 20, 2 | Breiman 1996: about 0 with covariance 4 I, and about (a/2, ..., a/2) |

a = 2 / sqrt(20). These are the definitions of R's package mlbench. Of ringnorm DELVE has the
mean (a, ..., a) instead: `ringnorm(..., mean=2)`.

Breiman 1996: "Bias, variance, and arcing classifiers", report 460, Statistics, Berkeley.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Rng = np.random.Generator

N_NORMAL = 20  # features of the tasks of normals


def waveform(rng: Rng, n: int) -> tuple[Array, Array]:
    """Rows u h_i + (1 - u) h_j + noise of two of the three triangles."""
    t = np.arange(1, 22)
    triangles = np.maximum(6 - np.abs(t - np.array([[11], [15], [7]])), 0)
    y, u = rng.integers(3, size=n), rng.random((n, 1))
    first, second = np.array([0, 0, 1])[y], np.array([1, 2, 2])[y]
    X = u * triangles[first] + (1 - u) * triangles[second]
    return X + rng.standard_normal(X.shape), y


def twonorm(rng: Rng, n: int) -> tuple[Array, Array]:
    y = rng.integers(2, size=n)
    return _about((1 - 2 * y)[:, None] * _corner(2), rng), y


def threenorm(rng: Rng, n: int) -> tuple[Array, Array]:
    y, side = rng.integers(2, size=n), rng.choice([-1, 1], size=n)
    turns = (-1.0) ** np.arange(N_NORMAL)
    return _about(np.where(y[:, None] == 0, side[:, None], turns) * _corner(2), rng), y


def ringnorm(rng: Rng, n: int, mean: float = 1) -> tuple[Array, Array]:
    """`mean` is the distance of the second class's mean from the origin."""
    y = rng.integers(2, size=n)
    X = rng.standard_normal((n, N_NORMAL))
    return np.where(y[:, None] == 0, 2 * X, X + _corner(mean)), y


def _corner(distance: float) -> Array:
    """The point (a, ..., a) so far from the origin."""
    return np.full(N_NORMAL, distance / np.sqrt(N_NORMAL))


def _about(centres: Array, rng: Rng) -> Array:
    return centres + rng.standard_normal(centres.shape)


TASKS = {"waveform": waveform, "twonorm": twonorm, "threenorm": threenorm, "ringnorm": ringnorm}
