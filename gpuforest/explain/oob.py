"""Out-of-bag prediction: each row by the trees that did not draw it (Breiman 2001)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.rows import draw_rows
from gpuforest.common import elementary
from gpuforest.core import criteria, rules
from gpuforest.core.bins import BinnedMatrix
from gpuforest.core.forest import Forest
from gpuforest.core.training import Training
from gpuforest.growing.bags import was_drawn
from gpuforest.growing.edges import block_rows

Error = Callable[[np.ndarray], float]  # of out-of-bag predictions f64[n, n_values]
Loss = Callable[[np.ndarray, np.ndarray], float]  # of `OutOfBag.on_host`
Curve = list[tuple[int, float]]  # numbers of trees, and the errors of these trees

# Rows on which errors are computed while trees grow: a quarter, within these, which takes some
# percent of the time that the trees take. Errors of fewer rows settle later: they differ by chance.
FEWEST_ROWS, MOST_ROWS = 5_000, 10_000


class OutOfBag:
    """Out-of-bag sums over the trees of a seed, which are added in their order.

    rows : i64[n], ascending, on the host; None: all
    n_values : values of a leaf; None: those of a prediction
    """

    def __init__(
        self, training: Training, backend: Backend, rows: np.ndarray | None = None,
        n_values: int | None = None,
    ) -> None:  # fmt: skip
        n_values = training.target.coding.n_values if n_values is None else n_values
        xp, self.n_trees = backend.xp, 0  # the trees that were added
        self._sampling, self._backend = training.sampling, backend
        self._coding = training.target.coding
        self._rows = None if rows is None else backend.asarray(rows)
        self._matrix = matrix = training.matrix
        if self._rows is not None:
            self._matrix = replace(matrix, codes=matrix.judged_codes(xp, self._rows), judged={})
        n = self._matrix.n_rows
        self.sums = xp.zeros((n, n_values), dtype=xp.float64)
        self.counts = xp.zeros(n, dtype=xp.int64)  # of trees that did not draw a row

    def add(self, forests: list[Forest], last: int, begin: int = 0) -> None:
        """Add the next trees, up to `last` - 1; `forests` hold trees from the number `begin` on.
        Bags are drawn again, as many at once as memory allows; this changes no bit of the sums."""
        backend, xp = self._backend, self._backend.xp
        size = max(1, backend.memory_budget // (5 * self._sampling.n_rows))  # bags, and in them
        while self.n_trees < last:
            first, end = self.n_trees, min(self.n_trees + size, last)
            in_bag = was_drawn(self._sampling, forests[0].seed, first, end, backend)
            if self._rows is not None:
                in_bag = xp.take(in_bag, self._rows, axis=1)
            self.counts += xp.sum(xp.astype(~in_bag, xp.int64), axis=0)
            for forest, trees in _parts(forests, first - begin, end - begin):
                skip, in_bag = in_bag[: len(trees), ...], in_bag[len(trees) :, ...]
                if not self._matrix.judged:
                    codes = self._matrix.codes
                    self.sums = backend.accumulate(forest, codes, trees, skip, self.sums)
                for at, codes in judged_blocks(self._matrix, backend):
                    out, sums = xp.asarray(skip[:, at], copy=True), self.sums[at, :]
                    self.sums[at, :] = backend.accumulate(forest, codes, trees, out, sums)
            self.n_trees = end

    def follow(
        self, forests: list[Forest], points: Iterable[int], error: Error, begin: int = 0,
        rows: np.ndarray | None = None,
    ) -> Iterator[tuple[int, float]]:  # fmt: skip
        """Add trees, and give (n, error of `rows`) at these numbers of trees; rows None: all."""
        for n_trees in points:
            self.add(forests, n_trees, begin)
            yield n_trees, error(self.means(rows))

    def on_host(self, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Sums f64[n, n_values] and counts i64[n, 1] on the host, of all rows or of some."""
        backend, parts = self._backend, (self.sums, self.counts[:, None])
        if rows is not None:
            at = backend.asarray(rows)
            parts = tuple(backend.xp.take(a, at, axis=0) for a in parts)
        sums, counts = (backend.asnumpy(a) for a in parts)
        return sums, counts

    def means(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Predictions f64[n, n_values] on the host; NaN for rows that every tree drew."""
        sums, counts = self.on_host(rows)
        means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return np.asarray(self._coding.at_priors(means))


def judged_blocks(matrix: BinnedMatrix, backend: Backend) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows, and copies of their codes as they are judged out of bag. There is no block if
    no feature has other codes than those of the training."""
    size = block_rows(matrix.n_features, backend)
    for begin in range(0, matrix.n_rows if matrix.judged else 0, size):
        at = np.arange(begin, min(begin + size, matrix.n_rows))
        codes = matrix.judged_codes(backend.xp, backend.asarray(at))
        yield slice(begin, begin + len(at)), codes


def judged_leaves(trees: Forest, matrix: BinnedMatrix, backend: Backend) -> np.ndarray:
    """The nodes i64[N, T] that rows reach as they are judged out of bag."""
    if not matrix.judged:
        return np.asarray(backend.asnumpy(backend.apply(trees, matrix.codes)))
    leaves = np.empty((matrix.n_rows, trees.n_trees), np.int64)
    for at, codes in judged_blocks(matrix, backend):
        leaves[at] = backend.asnumpy(backend.apply(trees, codes))
    return leaves


def loss_of(y: np.ndarray, weights: np.ndarray, of: criteria.Criterion | list[int]) -> Loss:
    """A function that returns the weighted mean loss of targets y [n, n_outputs], NaN without rows:
    a criterion's loss, or the log loss, given the number of classes of each output."""

    def losses(y: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if isinstance(of, criteria.Criterion):
            # of counts as if one more tree gave their mean: none makes a count impossible
            more = int(not of.centred)
            return of.loss(y, (sums + more * y.mean(axis=0)) / (counts + more))
        # as if one more tree gave all classes the same share: few trees may give a class no share
        parts = zip(np.split(sums, np.cumsum(of)[:-1], axis=1), y.T, of, strict=True)
        at = np.arange(len(y))
        shares = np.stack([part[at, codes] + 1 / n for part, codes, n in parts], axis=1)
        return -elementary.log(shares / (counts + 1))

    def loss(sums: np.ndarray, counts: np.ndarray) -> float:
        seen = counts[:, 0] > 0
        if not seen.any():
            return np.nan
        of_rows = losses(y[seen], sums[seen], counts[seen]).mean(axis=1)
        return float(np.average(of_rows, weights=weights[seen]))

    return loss


def _parts(forests: list[Forest], first: int, last: int) -> list[tuple[Forest, range]]:
    """The trees first .. last - 1 of all forests together: each forest and a range of its trees."""
    parts, before = [], 0
    for forest in forests:
        begin, end = max(first - before, 0), min(last - before, forest.n_trees)
        if begin < end:
            parts.append((forest, range(begin, end)))
        before += forest.n_trees
    return parts


def sampled_rows(seed: int, sampling: rules.Sampling) -> np.ndarray | None:
    """Rows of positive weight, drawn by hash, whose errors are computed during a fit; None: all."""
    counted, n = sampling.counted, sampling.n_counted
    count = min(max(FEWEST_ROWS, n // 4), MOST_ROWS)
    if n <= count:
        return counted
    drawn = draw_rows(seed, n, count)
    return drawn if counted is None else counted[drawn]


def curve_points(n_trees: int) -> list[int]:
    """Numbers of trees to compute the error at: 1, 2, ... 8, 10, 12, 14, 16, 20, ... `n_trees`.
    Half of a number is in the list too, and the numbers divide well among threads."""
    steps = (m * 2**k for k in range(n_trees.bit_length()) for m in (4, 5, 6, 7))
    return [n for n in (1, 2, 3, *steps) if n < n_trees] + [n_trees]


def change(curve: Curve) -> float:
    """How far the errors lie apart over the last half of the trees; NaN where one is unknown."""
    last = [error for n_trees, error in curve if 2 * n_trees >= curve[-1][0]]
    return float(np.max(last) - np.min(last))
