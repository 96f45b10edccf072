"""Fits of gradient boosting straight through the rounds, on any backend, to compare bit by bit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpuforest.backends.base import Backend
from gpuforest.backends.booster import Boosting, Round
from gpuforest.backends.cuda.launch import padded
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.compiler.types import dtype_of
from gpuforest.core.bins import BinEdges, BinnedMatrix
from gpuforest.growing.rounds import rounds
from gpuforest.kernels.boosted_tree.records import Scales, TreeRules
from gpuforest.kernels.gradients.losses import Loss

UNLIMITED = 10**9
NUMBERS = [
    "squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie",
    "cross_entropy",
]  # fmt: skip
LOSSES = [*NUMBERS, "binary", "3 classes", "12 classes"]


@dataclass(frozen=True, eq=False)
class Fit:
    """Binned rows and all that decides what grows from them.

    codes : u8 or u16 [N, F]
    n_rounds : int
    rest : what `Boosting` takes besides
    """

    codes: np.ndarray
    edges: BinEdges
    y: np.ndarray
    n_rounds: int
    rest: dict[str, Any]

    def but(self, **changes: Any) -> Fit:
        return replace(self, rest=self.rest | changes)

    def boosting(self, backend: Backend) -> Boosting:
        codes, size = self.codes, self.codes.itemsize
        if not backend.on_host:  # rows of codes are padded there
            wide = np.full((len(codes), padded(codes.shape[1] * size) // size), 250, codes.dtype)
            wide[:, : codes.shape[1]] = codes
            codes = backend.asarray(wide)
        matrix = BinnedMatrix(codes, backend.asarray(self.edges.n_bins), self.edges)
        return Boosting(matrix=matrix, y=self.y, **self.rest)

    def run(self, backend: Backend) -> tuple[list[Round], np.ndarray]:
        """The rounds, and the raw predictions f64[K, N] after them."""
        b = self.boosting(backend)
        raw = np.empty((b.loss.n_raw, b.n_rows))
        raw[:] = b.loss.baseline(b.y, b.weight)[:, None]
        found = [
            grown for _, grown in zip(range(self.n_rounds), rounds(b, backend, raw), strict=False)
        ]
        return found, raw


def rules_of(F: int, n_bits: int, g: float = 1.0, h: float = 1.0, **other: Any) -> TreeRules:
    """Rules without limits, and scales of g and h, for NumPy's kernels."""
    rules = TreeRules(
        kinds=np.zeros(F, np.uint8), signs=np.zeros(F, np.int8), groups=np.zeros((0, F), np.bool_),
        scale=Scales(g, h, g, h, 0.0, 1.0, 1.0), n_groups=0, n_bits=n_bits, n_drawn=0, min_rows=1,
        max_depth=UNLIMITED, max_leaves=31, limited=1, min_hessian=1e-3, l2=0.0, most=np.inf,
        share=1.0, rate=1.0,
    )  # fmt: skip
    return rules._replace(**other)


def in_array(rules: TreeRules) -> TreeRules:
    """Rules as compiled kernels take them."""
    return rules._replace(scale=np.array([rules.scale], dtype_of(Scales)))


def edges_of(n_bins: list[int], kinds: list[int]) -> BinEdges:
    categories = {f: tuple(range(n_bins[f] - 1)) for f, kind in enumerate(kinds) if kind}
    return BinEdges.of([np.arange(n - 1.0) for n in n_bins], categories)


def target_of(rng: np.random.Generator, name: str, signal: np.ndarray) -> tuple[np.ndarray, Loss]:
    """The target f64[N] of a loss, in part from a signal, and the loss."""
    if name in NUMBERS:
        y = signal + rng.normal(size=len(signal))
        if name == "poisson":
            y = rng.poisson(np.abs(y)).astype(float)
            y[0] += 1.0  # not all are zero
        if name == "gamma":
            y = np.abs(y) + 0.01
        if name == "tweedie":
            y = np.maximum(y, 0.0)
            y[0] += 1.0
        if name == "cross_entropy":
            y = np.clip(y, 0.0, 1.0)
        return y, Loss.of(name, 0.3 if name == "quantile" else None, 0)
    n = 2 if name == "binary" else int(name.split()[0])
    y = (signal * 7 + rng.integers(0, 3, len(signal))).astype(int) % n
    return y.astype(float), Loss.of("log_loss", None, n)


def weights_of(rng: np.random.Generator, kind: str, n_rows: int) -> np.ndarray | None:
    match kind:
        case "none":
            return None
        case "whole":
            return rng.integers(1, 4, n_rows).astype(float)
        case "real":
            return rng.random(n_rows) + 1e-3
    return 10.0 ** rng.integers(-6, 6, n_rows)


def made(
    rows_seed: int, n_rows: int, kinds: list[int], n_bins: list[int], name: str, weight: str,
    missing: float, **rest: Any,
) -> Fit:  # fmt: skip
    rng, F = np.random.default_rng(rows_seed), len(kinds)
    edges = edges_of(n_bins, kinds)
    codes = np.column_stack([rng.integers(0, n, n_rows) for n in n_bins])
    signal = codes[:, 0] / n_bins[0] + (codes[:, -1] % 3)
    codes[rng.random((n_rows, F)) < missing] = edges.missing_code
    y, loss = target_of(rng, name, signal)
    common = {
        "loss": loss, "weight": weights_of(rng, weight, n_rows), "learning_rate": 0.3, "l2": 0.0,
        "min_rows": 1, "min_hessian": 1e-3, "max_depth": UNLIMITED, "max_leaves": 31, "share": 1.0,
        "subsample": 1.0, "signs": np.zeros(F, np.int8), "groups": np.zeros((0, F), np.bool_),
        "memory": 2**24, "seed": 7,
    }  # fmt: skip
    return Fit(codes.astype(edges.code_dtype), edges, y, 3, common | rest)


@st.composite
def fits(draw: st.DrawFn) -> Fit:
    """Fits of all losses and rules, of up to 200 rows and 5 features."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    N, F = draw(st.integers(1, 30) | st.integers(30, 200)), draw(st.integers(1, 5))
    kinds = [draw(st.sampled_from([0, 0, CATEGORICAL])) for _ in range(F)]
    most = draw(st.sampled_from([4, 20, 80, 300]))
    n_bins = [draw(st.integers(2, most)) for _ in range(F)]
    name = draw(st.sampled_from(LOSSES))
    groups = rng.random((draw(st.integers(1, 3)), F)) < 0.7
    signs = rng.integers(-1, 2, F) * (np.array(kinds) == 0) * draw(st.booleans())
    rules = {
        "learning_rate": [0.1, 1.0], "l2": [0.0, 0.5], "min_hessian": [1e-3, 1e-3, 0.0, 2.0],
        "max_depth": [1, 3, UNLIMITED, UNLIMITED], "max_leaves": [2, 8, 31, UNLIMITED],
        "share": [1.0, 1.0, 0.4], "subsample": [1.0, 1.0, 0.5, 0.01], "memory": [1, 2**24],
        "seed": [0, 5, 2**64 - 1], "groups": [groups, *[np.zeros((0, F), np.bool_)] * 2],
    }  # fmt: skip
    weight = draw(st.sampled_from(["none", "none", "whole", "real", "far apart"]))
    missing, rows_seed = draw(st.sampled_from([0.0, 0.2])), draw(st.integers(0, 2**32))
    fit = made(rows_seed, N, kinds, n_bins, name, weight, missing)
    fit = fit.but(signs=signs.astype(np.int8), min_rows=draw(st.integers(1, 10)))
    fit = fit.but(**{name: draw(st.sampled_from(values)) for name, values in rules.items()})
    if draw(st.integers(0, 2)) == 0:  # one feature of a row has another code than the usual one
        other = rng.integers(0, F + 1, N)[:, None] == np.arange(F)
        usual = fit.codes.dtype.type(draw(st.integers(0, 1)))
        fit = replace(fit, codes=np.where(other, fit.codes, usual))
    if fit.rest["loss"].n_raw > 1:  # refused
        return fit.but(signs=np.zeros(F, np.int8))
    return fit


def differences(expected: list[Round], found: list[Round]) -> list[str]:
    """What differs between two lists of rounds; ranges up to the order of rows in a leaf."""
    lacking = [] if len(expected) == len(found) else ["the number of rounds"]
    for i, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a.units != b.units:
            lacking.append(f"units of round {i}: {a.units}, {b.units}")
        for k, (tree, other) in enumerate(zip(a.trees, b.trees, strict=True)):
            parts = {"nodes": (tree.nodes, other.nodes), "sets": (tree.sets, other.sets)}
            fields = "g", "h", "n", "begin", "end", "other_begin", "other_end", "value", "added"
            parts |= {name: (tree.leaves[name], other.leaves[name]) for name in fields}
            lacking += [
                f"{name} of tree {k} of round {i}"
                for name, (x, y) in parts.items()
                if x.dtype != y.dtype or not np.array_equal(x, y)
            ]
    return lacking
