"""Data sets made from a seed: A to D and F, of the kinds that forests are used on.

Rows come in blocks, each from its own generator: the first rows are the same for any number
of rows, and test rows come from other blocks.

| set | kind | after |
|---|---|---|
| A | 28 features, two classes, noisy | HIGGS: momenta, angles, tags, derived masses |
| B | 54 features, seven unequal classes | covtype: 10 numbers, two one-hot groups |
| C | 90 features, regression | YearPrediction: heavy tails, skewed target |
| D | 500 features, two classes | wide: 30 that matter, 70 mixtures of them, noise |
| F | 30 features, a hundred classes | three clouds for each class, which 20 features distinguish |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray
Rng = np.random.Generator
Block = Callable[[Rng, int], tuple[Array, Array]]  # (generator, rows) -> X f32, y

BLOCK_ROWS = 50_000
CALIBRATION_ROWS = 50_000


@dataclass(frozen=True)
class Dataset:
    """Training and test rows, X f32 row-major, y class codes or numbers."""

    name: str
    is_classes: bool
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


def make(name: str, n_train: int, n_test: int = 100_000, seed: int = 1) -> Dataset:
    """The set `name`, one of SETS."""
    block = SETS[name](np.random.default_rng([seed, 0]))

    def rows(stream: int, n: int) -> tuple[Array, Array]:
        parts = []
        for i, begin in enumerate(range(0, n, BLOCK_ROWS)):
            X, y = block(np.random.default_rng([seed, stream, i]), BLOCK_ROWS)
            parts.append((X[: n - begin], y[: n - begin]))
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])

    return Dataset(name, name != "C", *rows(1, n_train), *rows(2, n_test))


def higgs_like(world: Rng) -> Block:
    """A set that the best possible classifier classifies with an accuracy of 78.5 %."""
    z = _collisions(world, CALIBRATION_ROWS)[1]
    centre, scale = np.median(z), z.std()
    steepness = _steepness((z - centre) / scale, accuracy=0.785)

    def block(rng: Rng, n: int) -> tuple[Array, Array]:
        X, z = _collisions(rng, n)
        y = rng.random(n) < _sigmoid(steepness * (z - centre) / scale)
        return X, y.astype(np.int32)

    return block


def _collisions(rng: Rng, n: int) -> tuple[Array, Array]:
    """Features f32[n, 28] and the score f64[n] that the class depends on."""
    # columns of pt: lepton, missing energy, four jets; eta has no missing energy
    pt = np.exp(rng.normal(0, 0.55, (n, 6)))
    eta = rng.normal(0, 1, (n, 5))
    phi = rng.uniform(-np.pi, np.pi, (n, 6))
    tag = rng.choice([0.0, 1.09, 2.17], (n, 4), p=[0.5, 0.25, 0.25])

    def mass(i: int, j: int, along: Array) -> Array:
        """Invariant mass of two momenta; `along`: of the beam's direction."""
        across = np.cos(phi[:, i] - phi[:, j])
        return np.sqrt(np.maximum(2 * pt[:, i] * pt[:, j] * (along - across), 0))

    def along(i: int, j: int) -> Array:
        return np.cosh(np.clip(eta[:, i] - eta[:, j], -4, 4))

    jj, bb = mass(2, 3, along(1, 2)), mass(4, 5, along(3, 4))
    jl, lv = mass(0, 2, along(0, 1)), mass(0, 1, np.ones(n))
    jjj = np.sqrt(jj**2 + mass(2, 4, along(1, 3)) ** 2 + mass(3, 4, along(2, 3)) ** 2)
    wbb = np.sqrt(jj**2 + bb**2 + 0.5 * jl**2)
    wwbb = np.sqrt(wbb**2 + lv**2)
    z = (
        2.2 * np.exp(-(((bb - 1.6) / 0.7) ** 2))
        + 1.6 * np.exp(-(((jj - 1.3) / 0.6) ** 2))
        - 1.4 * np.exp(-(((wwbb - 3.0) / 0.9) ** 2))
        + 0.9 * np.sin(1.7 * wbb) * (tag[:, 0] > 0.5)
        + 0.7 * (tag[:, 2] > 1.5) * (pt[:, 4] > 1.2)
        - 0.8 * (tag[:, 1] < 0.5) * np.tanh(eta[:, 1] * eta[:, 2])
        + 0.6 * np.cos(phi[:, 0] - phi[:, 1]) * np.log(pt[:, 1])
        + 0.5 * np.tanh(jl - lv)
    )
    masses = np.stack([jj, jjj, lv, jl, bb, wbb, wwbb], axis=1)
    masses *= np.exp(rng.normal(0, 0.06, masses.shape))  # measured with an error
    return np.concatenate([pt, eta, phi, tag, masses], axis=1).astype(np.float32), z


SHARES = np.array([0.365, 0.4876, 0.0615, 0.0047, 0.0163, 0.0299, 0.035])  # of covtype's classes


def covtype_like(world: Rng) -> Block:
    """10 whole numbers, 4 areas and 40 soils one-hot, 7 classes in covtype's shares."""
    numbers = _terrain(world, CALIBRATION_ROWS)
    centre, scale = numbers.mean(axis=0), numbers.std(axis=0)
    optimum, of_area = world.normal(0, 1.3, 40), world.normal(0, 1.2, (4, 40))
    best_height = np.array([0.55, -0.05, -2.0, -2.6, -0.6, -1.8, 1.9])
    columns = [(0, 5), (0, 9), (5, 9), (0, 3), (1, 2), (3, 4)]
    waves = [  # (class, columns, slopes, height, phase)
        (k, pair, world.normal(0, 1.3, 2), world.uniform(0.5, 1.3), world.uniform(0, 2 * np.pi))
        for k in range(7)
        for pair in columns
    ]
    soil_effect, area_effect = world.normal(0, 0.7, (40, 7)), world.normal(0, 0.7, (4, 7))

    def groups(rng: Rng, z: Array) -> tuple[Array, Array]:
        level = z[:, :1] * [0.8, 1.0, 0.2, -1.6] + [1.2, -0.8, 1.1, -0.9]
        level += 0.8 * np.sin(z[:, 5:6] * [1, 2, 1.5, 0.7] + np.arange(4))
        area = (level + 0.5 * rng.gumbel(size=level.shape)).argmax(axis=1)
        level = of_area[area] - 1.5 * (z[:, :1] - optimum) ** 2
        return area, (level + rng.gumbel(size=level.shape)).argmax(axis=1)

    def scores(z: Array, area: Array, soil: Array) -> Array:
        score = soil_effect[soil] + area_effect[area] - 1.6 * (z[:, :1] - best_height) ** 2
        for k, (i, j), slope, height, phase in waves:
            score[:, k] += height * np.sin(slope[0] * z[:, i] + slope[1] * z[:, j] + phase)
        return 3 * score

    def noisy(rng: Rng, score: Array) -> Array:
        return score + 0.45 * rng.gumbel(size=score.shape)

    z = (numbers - centre) / scale
    score, bias = noisy(world, scores(z, *groups(world, z))), np.zeros(7)
    for _ in range(300):  # until the classes have their shares
        found = np.bincount((score + bias)[::5].argmax(axis=1), minlength=7) / len(score[::5])
        bias += 0.5 * np.log(SHARES / np.maximum(found, 1e-4))

    def block(rng: Rng, n: int) -> tuple[Array, Array]:
        numbers = _terrain(rng, n)
        z = (numbers - centre) / scale
        area, soil = groups(rng, z)
        y = noisy(rng, scores(z, area, soil) + bias).argmax(axis=1)
        X = np.concatenate([numbers, np.eye(4)[area], np.eye(40)[soil]], axis=1)
        return X.astype(np.float32), y.astype(np.int32)

    return block


def _terrain(rng: Rng, n: int) -> Array:
    elevation = np.clip(rng.normal(2960, 280, n), 1850, 3860)
    aspect = rng.integers(0, 360, n)
    slope = np.clip(rng.gamma(3.5, 4, n), 0, 66)
    water = np.round(rng.gamma(1.6, 170, n) / 30) * 30
    above_water = 0.17 * water + rng.normal(0, 40, n)
    road = np.clip(rng.gamma(2.3, 1020, n), 0, 7117)
    morning = 212 + 0.8 * slope * np.sin(np.deg2rad(aspect)) - 0.6 * slope
    morning = np.clip(morning + rng.normal(0, 12, n), 0, 254)
    noon = np.clip(223 - 0.9 * slope + rng.normal(0, 12, n), 0, 254)
    afternoon = np.clip(70 - 0.6 * morning + 0.9 * noon + rng.normal(0, 14, n), 0, 254)
    fire = np.clip(rng.gamma(2.2, 900, n), 0, 7173)
    columns = [elevation, aspect, slope, water, above_water, road, morning, noon, afternoon, fire]
    return np.round(np.stack(columns, axis=1))


def year_like(world: Rng) -> Block:
    """90 correlated features, 78 of them with heavy tails; a skewed target of years."""
    mix = 0.35 * world.normal(0, 1, (20, 90))
    weights = world.normal(0, 1, 10)

    def features(rng: Rng, n: int) -> tuple[Array, Array]:
        X = rng.normal(0, 1, (n, 20)) @ mix + rng.normal(0, 1, (n, 90))
        X[:, 12:] = np.sinh(0.7 * X[:, 12:])
        t, u = X[:, :12], np.tanh(X[:, 12:] / 3)
        signal = (
            1.5 * np.tanh(t[:, 0])
            - 1.2 * np.abs(t[:, 1])
            + 0.6 * t[:, 2] * t[:, 3]
            + 1.1 * np.sin(1.5 * t[:, 4]) * (t[:, 5] > 0)
            + 0.8 * u[:, :10] @ weights
            + 0.7 * u[:, 20] * t[:, 0]
            + 0.9 * (u[:, 30] > 0.2) * (t[:, 6] > -0.3)
        )
        return X.astype(np.float32), signal

    def skewed(rng: Rng, signal: Array) -> Array:
        return -np.log1p(np.exp(-1.1 * (signal + rng.normal(0, 1.1, len(signal)))))

    signal = features(world, CALIBRATION_ROWS)[1]
    centre, scale = signal.mean(), signal.std()
    target = skewed(world, (signal - centre) / scale)
    mean, deviation = target.mean(), target.std()

    def block(rng: Rng, n: int) -> tuple[Array, Array]:
        X, signal = features(rng, n)
        y = (skewed(rng, (signal - centre) / scale) - mean) / deviation
        return X, (1998.4 + 10.9 * y).astype(np.float32)

    return block


def wide(world: Rng) -> Block:
    """500 features in random order: 30 that count, 70 mixtures of them, 400 of noise."""
    mix, weights = world.normal(0, 0.35, (30, 70)), world.normal(0, 1, 10)
    order = world.permutation(500)

    def features(rng: Rng, n: int) -> tuple[Array, Array]:
        X = rng.normal(0, 1, (n, 500)).astype(np.float32)
        a = X[:, :30].astype(np.float64)
        X[:, 30:100] = a @ mix + 0.6 * X[:, 30:100]
        z = (
            a[:, :10] @ weights
            + 1.5 * a[:, 10] * a[:, 11]
            + 2 * np.sin(2 * a[:, 12]) * (a[:, 13] > 0)
            + 1.5 * np.abs(a[:, 14])
            + a[:, 15:20] @ [0.7, -0.7, 0.5, 0.9, -0.4]
        )
        return np.ascontiguousarray(X[:, order]), z

    z = features(world, 10_000)[1]
    centre, scale = np.median(z), z.std()

    def block(rng: Rng, n: int) -> tuple[Array, Array]:
        X, z = features(rng, n)
        return X, (rng.random(n) < _sigmoid(4 * (z - centre) / scale)).astype(np.int32)

    return block


def clouds(world: Rng) -> Block:
    """100 classes of three overlapping clouds each; ten of the 30 features are noise."""
    centres = world.normal(0, 1, (100, 3, 30))
    centres[:, :, 20:] = 0

    def block(rng: Rng, n: int) -> tuple[Array, Array]:
        y = rng.integers(0, 100, n)
        X = centres[y, rng.integers(0, 3, n)] + rng.normal(0, 0.85, (n, 30))
        return X.astype(np.float32), y.astype(np.int32)

    return block


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def _steepness(z: Array, accuracy: float) -> float:
    """The steepness of a logistic curve over the scores z for which the best classifier has this
    accuracy."""
    low, high = 0.1, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        p = _sigmoid(middle * z)
        low, high = (middle, high) if np.maximum(p, 1 - p).mean() < accuracy else (low, middle)
    return middle


SETS: dict[str, Callable[[Rng], Block]] = {"A": higgs_like, "B": covtype_like, "C": year_like}
SETS |= {"D": wide, "F": clouds}
