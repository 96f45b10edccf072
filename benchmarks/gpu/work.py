"""The work that is timed: shapes of known sets and of published figures, made on the device.

Every number is a hash of seed, row and column, so that the first rows are the same however
many are asked for and wherever they are made (to the last bits of the device's own
functions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from gpuforest.common.hashing import hash_at, tree_keys

Array = Any
Block = Callable[["Draws"], tuple[Array, Array]]  # X f32 [n, F], y

TEST_ROWS = 100_000
TEST = 2**33  # the first row of those held out
BLOCK_VALUES = 2**25


@dataclass(frozen=True)
class Work:
    """A forest to grow from rows that a block makes."""

    name: str
    block: Block
    rows: int
    features: int
    trees: int = 100
    depth: int | None = 16
    max_features: str | float = "sqrt"
    is_classes: bool = True
    test_rows: int = TEST_ROWS

    def shrunk(self, factor: int) -> Work:
        """Fewer rows."""
        return replace(self, rows=max(self.rows // factor, 500))


class Draws:
    """Random numbers [n, columns] of the rows `first` and on, as float32."""

    def __init__(self, xp: Any, seed: int, first: int, n: int) -> None:
        self.xp, self.seed, self.first, self.n, self.stream = xp, seed, first, n, 0

    def hashes(self, columns: int) -> Array:
        xp, self.stream = self.xp, self.stream + 1
        key = xp.asarray(tree_keys(np, self.seed, self.stream, self.stream + 1))
        begin = self.first * columns
        position = xp.arange(begin, begin + self.n * columns, dtype=np.uint64)
        return hash_at(key, position).reshape(self.n, columns)

    def uniform(self, columns: int) -> Array:
        """In (0, 1]."""
        return _unit(self.hashes(columns) >> 40)

    def normal(self, columns: int) -> Array:
        """By Box and Muller, from the two ends of a hash."""
        xp, h = self.xp, self.hashes(columns)
        angle = _unit(h & 0xFFFFFF) * np.float32(2 * np.pi)
        return xp.sqrt(-2 * xp.log(_unit(h >> 40))) * xp.cos(angle)

    def gumbel(self, columns: int) -> Array:
        xp = self.xp
        return -xp.log(np.float32(1e-7) - xp.log(self.uniform(columns)))


def _unit(bits: Array) -> Array:
    return (bits.astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-24)


def make(work: Work, xp: Any, n: int, first: int = 0, seed: int = 1) -> tuple[Array, Array]:
    """Rows first .. first + n - 1, in X f32 [n, F] and y."""
    X = xp.empty((n, work.features), dtype=np.float32)
    y = xp.empty(n, dtype=np.int32 if work.is_classes else np.float32)
    size = max(1, BLOCK_VALUES // work.features)
    for begin in range(0, n, size):
        end = min(begin + size, n)
        X[begin:end], y[begin:end] = work.block(Draws(xp, seed, first + begin, end - begin))
    return X, y


def of_chance(draws: Draws, z: Array, steepness: float) -> Array:
    """One class or the other, by a logistic curve over z."""
    p = 1 / (1 + draws.xp.exp(np.float32(-steepness) * z))
    return (draws.uniform(1)[:, 0] <= p).astype(np.int32)


def plain(n_features: int) -> Block:
    """Normal numbers, and two classes that six of them predict in some 85 % of the rows."""

    def block(draws: Draws) -> tuple[Array, Array]:
        xp, X = draws.xp, draws.normal(n_features)
        z = X[:, 0] + X[:, 1] * X[:, 2] + xp.sin(2 * X[:, 3]) + X[:, 4] * (X[:, 5] > 0)
        return X, of_chance(draws, z, 2.5)

    return block


def higgs_like(draws: Draws) -> tuple[Array, Array]:
    """21 measured numbers (momenta, angles, tags) and 7 masses made of them; hard to learn."""
    xp = draws.xp
    pt, eta = xp.exp(0.55 * draws.normal(6)), draws.normal(5)
    phi, u = np.float32(2 * np.pi) * draws.uniform(6), draws.uniform(4)
    tag = np.float32(1.085) * ((u > 0.5).astype(np.float32) + (u > 0.75))

    def mass(i: int, j: int) -> Array:
        along = xp.cosh(xp.clip(eta[:, i - 1] - eta[:, j - 1], -4, 4))
        gap = xp.maximum(along - xp.cos(phi[:, i] - phi[:, j]), 0)
        return xp.sqrt(2 * pt[:, i] * pt[:, j] * gap)

    masses = [mass(*pair) for pair in ((1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (4, 5), (1, 5))]
    z = (
        2.2 * xp.exp(-(((masses[5] - 1.6) / 0.7) ** 2))
        + 1.6 * xp.exp(-(((masses[2] - 1.3) / 0.6) ** 2))
        - 0.8 * (tag[:, 1] < 0.5) * xp.tanh(eta[:, 1] * eta[:, 2])
        + 0.7 * (tag[:, 2] > 1.5) * (pt[:, 4] > 1.2)
        + 0.6 * xp.cos(phi[:, 0] - phi[:, 1]) * xp.log(pt[:, 1])
        - 1.4
    )
    measured = xp.stack(masses, axis=1) * xp.exp(0.06 * draws.normal(7))
    X = xp.concatenate([pt, eta, phi, tag, measured], axis=1)
    return X.astype(np.float32), of_chance(draws, z, 2.0)


SHARES = np.array([0.365, 0.4876, 0.0615, 0.0047, 0.0163, 0.0299, 0.035])  # of covtype's classes


def covtype_like(draws: Draws) -> tuple[Array, Array]:
    """10 whole numbers, 4 areas and 40 soils one-hot, 7 classes in covtype's shares."""
    xp = draws.xp
    X, score = _terrain(draws)
    return X, (score + xp.asarray(_class_biases())).argmax(axis=1).astype(np.int32)


def _terrain(draws: Draws) -> tuple[Array, Array]:
    xp, world = draws.xp, np.random.default_rng(7)

    def fixed(*shape: int, scale: float = 1.0) -> Array:
        return xp.asarray(world.normal(0, scale, shape).astype(np.float32))

    z = draws.normal(10)
    numbers = xp.round(z * xp.asarray(np.float32([280, 110, 7, 200, 60, 900, 27, 20, 38, 800])))
    area = (z[:, :1] * fixed(1, 4) + z[:, 5:6] * fixed(1, 4) + draws.gumbel(4)).argmax(axis=1)
    soil = fixed(4, 40, scale=1.2)[area] - 1.5 * (z[:, :1] - fixed(1, 40, scale=1.3)) ** 2
    soil = (soil + draws.gumbel(40)).argmax(axis=1)
    score = fixed(40, 7, scale=0.7)[soil] + fixed(4, 7, scale=0.7)[area]
    score -= 1.6 * (z[:, :1] - fixed(1, 7, scale=1.3)) ** 2
    for pair in ([0, 5], [0, 9], [5, 9], [0, 3], [1, 2], [3, 4]):
        score += xp.sin(z[:, pair] @ fixed(2, 7, scale=1.3) + fixed(1, 7, scale=2.0))
    hot = [(xp.arange(n)[None, :] == of[:, None]) for n, of in ((4, area), (40, soil))]
    X = xp.concatenate([numbers, *hot], axis=1).astype(np.float32)
    return X, 3 * score + 0.45 * draws.gumbel(7)


@cache
def _class_biases() -> np.ndarray:
    """The biases with which classes have their shares, computed on the host."""
    score, bias = _terrain(Draws(np, 1, 2 * TEST, 20_000))[1], np.zeros(7)
    for _ in range(300):
        found = np.bincount((score + bias).argmax(axis=1), minlength=7) / len(score)
        bias += 0.5 * np.log(SHARES / np.maximum(found, 1e-4))
    return bias.astype(np.float32)


def year_like(draws: Draws) -> tuple[Array, Array]:
    """90 correlated features, 78 of them with heavy tails; a skewed target of years."""
    xp, world = draws.xp, np.random.default_rng(8)
    mix = xp.asarray((0.35 * world.normal(0, 1, (20, 90))).astype(np.float32))
    X = draws.normal(20) @ mix + draws.normal(90)
    X[:, 12:] = xp.sinh(np.float32(0.7) * X[:, 12:])
    u = xp.tanh(X[:, 12:] / 3)
    weights = xp.asarray(world.normal(0, 1, 10).astype(np.float32))
    signal = (
        1.5 * xp.tanh(X[:, 0])
        - 1.2 * xp.abs(X[:, 1])
        + 0.6 * X[:, 2] * X[:, 3]
        + 1.1 * xp.sin(1.5 * X[:, 4]) * (X[:, 5] > 0)
        + 0.8 * u[:, :10] @ weights
    )
    y = -xp.log1p(xp.exp(-0.4 * (signal + 2 * draws.normal(1)[:, 0])))
    return X.astype(np.float32), (2005 + 10 * y).astype(np.float32)


WORKS = [
    Work("covtype-like", covtype_like, 465_000, 54, depth=None),
    Work("3.3M x 16", plain(16), 3_300_000, 16),
    Work("800k x 128", plain(128), 800_000, 128),
    Work("200k x 512", plain(512), 200_000, 512),
    Work("500 trees", plain(64), 160_000, 64, trees=500, depth=7),
    Work("HIGGS-like", higgs_like, 11_000_000, 28),
    Work("year-like", year_like, 465_000, 90, max_features=1.0, is_classes=False),
]
SWEEP = Work("sweep", higgs_like, 0, 28)
SWEEP_ROWS = [10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000]
