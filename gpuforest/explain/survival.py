"""What survival forests know of time: hazards of leaves, curves of rows, and concordance.

A leaf holds training rows, each with a time and whether its event came then or later (censored).
Of d events among n rows at risk at a time, the Nelson-Aalen estimate of the cumulative hazard
rises by d / n, and the Kaplan-Meier estimate of survival falls by d / n of what it was. Both of a
forest are means over its trees (Ishwaran, Kogalur, Blackstone and Lauer, "Random survival
forests", Annals of Applied Statistics 2, 2008).

Where events have several causes (competing risks), the hazard of each rises by its own d / n, and
its incidence, the probability that the event has come by it, by d / n of the survival so far
(Aalen and Johansen, "An empirical transition matrix", Scandinavian Journal of Statistics 5, 1978).

The forest keeps codes, times and events of its training rows. Who is in which leaf follows from
these: bags are drawn again from the seed, and one walk down the trees finds the leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.common.parallel import blocks, parallel_map
from gpuforest.core.forest import Forest
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.explain import paths, quantile_forest

R = TypeVar("R")

CELLS_AT_ONCE, DRAWN_AT_ONCE = 2**21, 2**18  # of bags of trees that are looked at together
PATH_NODES = 16  # about the nodes on a path; where leaves are shrunk, each has a row's draws
STEPS_AT_ONCE = 2**20  # about this number of steps of leaves are added up together


def person_time(event: np.ndarray, time: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The cumulative hazard f64[N] of all rows together at each row's time, if between two times of
    events the hazard is constant: events over the time that rows were at risk there. On this scale
    the hazard of all rows is one, so that splits see how rows differ from all, whatever the scale
    of time (LeBlanc and Crowley, "Relative risk trees for censored survival data", 1992).
    """
    time = np.minimum(time, time[weight > 0].max())  # rows of no weight lengthen no interval
    ends = np.unique(time[event & (weight > 0)])
    ends[-1] = time.max()
    begins = np.concatenate([[0.0], ends[:-1]])
    place = np.searchsorted(ends, time)  # the interval in which each row's time ends
    # each interval has its own unit, a power of two: no product is too large or small for float64
    length, exponent = np.frexp(ends - begins)
    passed = np.ldexp(time - begins[place], -exponent[place])
    events = np.bincount(place[event], weight[event], len(ends))
    here = np.bincount(place, weight, len(ends))
    later = here.sum() - np.cumsum(here)
    at_risk = later * length + np.bincount(place, weight * passed, len(ends))
    rate = np.divide(events, at_risk, out=np.zeros(len(ends)), where=at_risk > 0)
    before = np.concatenate([[0.0], np.cumsum(rate * length)])
    return np.asarray(before[place] + rate[place] * passed)


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of each leaf's curves, node after node; of all nodes where leaves are shrunk."""

    times: np.ndarray  # f64[E], times of events of all training rows, ascending
    begin: np.ndarray  # i64[M + 1], first step of each node
    time: np.ndarray  # i32[n], index into `times` of each step
    hazard: np.ndarray  # f64[n, K], rise of the cumulative hazard by each cause
    fall: np.ndarray  # f64[n, K], fall of survival by each cause

    def fit(self, forest: Forest) -> bool:
        """Whether the risks of the leaves are equal to the risks of `with_risks`."""
        M, leaf = forest.n_nodes, is_leaf(forest.nodes)
        node, later = np.repeat(np.arange(M), np.diff(self.begin)), len(self.times) - self.time
        risks = np.stack([np.bincount(node, rises * later, M) for rises in self.hazard.T], axis=1)
        found = _of_leaves(forest, risks)
        return np.array_equal(found, forest.values[leaf_rows(forest.nodes[leaf])])


def _of_leaves(forest: Forest, values: np.ndarray) -> np.ndarray:
    """Values f64[n, K] of leaves, shrunk if the forest is, from those of nodes f64[M, K]."""
    values = forest.shrunk(values, 0, forest.n_trees) if forest.shrinkage else values
    return np.asarray(values[is_leaf(forest.nodes)])


def steps_of(forest: Forest, rows: quantile_forest.TrainingRows, backend: Backend) -> Steps:
    """The steps of leaves (or nodes), from training rows whose targets are [time, cause or 0]."""
    time, cause = rows.y[:, 0], rows.y[:, 1].astype(np.int64)
    times = time_grid(rows, len(time))
    number = np.searchsorted(times, time).astype(np.int32)

    def of_trees(part: Forest, node: Array, row: Array, count: Array, at_risk: Array) -> Any:
        new = _changes(node) | _changes(number[row])
        events = np.zeros((int(new.sum()), forest.coding.n_outputs), np.int64)
        events[np.cumsum(new) - 1, cause[row] - 1] = count
        node, at, at_risk = node[new], number[row][new], at_risk[new]
        # survival before a step: the product of what is left after the earlier ones of the leaf
        left = (at_risk - events.sum(axis=1)) / at_risk
        fall = np.append(1.0, _products_within(left, node))[:-1]
        fall[_changes(node)] = 1.0
        sizes = np.bincount(node, minlength=part.n_nodes)
        return sizes, at, events / at_risk[:, None], fall[:, None] * events / at_risk[:, None]

    parts = list(zip(*_of_events(forest, rows, of_trees, backend), strict=True))
    # the parts of each array are free before the next one is put together
    sizes, at, hazard, fall = (np.concatenate(parts.pop(0)) for _ in range(4))
    return Steps(times, np.append(0, np.cumsum(sizes)), at, hazard, fall)


def with_risks(forest: Forest, rows: quantile_forest.TrainingRows, backend: Backend) -> Forest:
    """The forest whose leaves predict mortality: summed cumulative hazards of each of K causes."""
    time, cause = rows.y[:, 0], rows.y[:, 1].astype(np.int32)
    times, K = time_grid(rows, len(time)), forest.coding.n_outputs
    # times of events from a row's own on
    later = (len(times) - np.searchsorted(times, time)).astype(np.int32)
    values = np.zeros((len(forest.leaf_sums), K))

    def of_trees(part: Forest, node: Array, row: Array, count: Array, at_risk: Array) -> None:
        at, rises = node * K + cause[row] - 1, count / at_risk * later[row]
        risk = np.bincount(at, rises, part.n_nodes * K).reshape(-1, K)
        values[leaf_rows(part.nodes[is_leaf(part.nodes)])] = _of_leaves(part, risk)

    _of_events(forest, rows, of_trees, backend)
    return replace(forest, leaf_values=values)


def _of_events(
    forest: Forest, rows: quantile_forest.TrainingRows, of_trees: Callable[..., R], backend: Backend
) -> list[R]:
    """Results of `of_trees` for a few trees at a time. It gets them and, for each event (leaf,
    time, cause): node, first row, number of events, draws at risk, i64[n] each. Where leaves are
    shrunk, it gets the events of all nodes."""
    time, cause = rows.y.T
    order = np.lexsort((np.where(cause > 0, cause, np.inf), time))  # at equal times events first
    order = order.astype(np.int32)  # and all that follows stays small
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    bits = len(order).bit_length()

    def of(trees: slice) -> R:
        part = paths.some_trees(forest, trees.start, trees.stop)
        bags, tree, row, key = quantile_forest.drawn_leaves(part, rows, trees.start)
        key += part.tree_offsets[tree]
        if forest.shrinkage:
            key, tree, row = _of_paths(part, key, tree, row)
        key <<= bits
        key += place[row]
        key.sort()  # which leaves the trees where they are
        row = order[key & (2**bits - 1)]
        leaf = np.right_shift(key, bits, out=key)
        upto = np.append(0, np.cumsum(bags[tree, row], dtype=np.int64))
        new_time = _changes(leaf) | _changes(time[row])
        first = np.flatnonzero(new_time | _changes(cause[row]))
        count = np.diff(upto[first], append=upto[-1])
        first, count = (values[cause[row[first]] > 0] for values in (first, count))
        since = np.flatnonzero(new_time)[np.cumsum(new_time)[first] - 1]
        at_risk = upto[np.searchsorted(leaf, leaf[first], side="right")] - upto[since]
        return of_trees(part, leaf[first], row[first], count, at_risk)

    n, drawn = len(order), rows.sampling.n_draws if rows.sampling.groups is None else 0
    at_once = DRAWN_AT_ONCE // (PATH_NODES if forest.shrinkage else 1)
    size = max(1, min(CELLS_AT_ONCE // n, at_once // min(drawn or n, n)))
    trees = blocks(forest.n_trees, backend.n_threads, size)
    return parallel_map(of, trees, backend.n_threads)


def _of_paths(
    part: Forest, node: np.ndarray, tree: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every node on the paths to leaves i64[n], and the tree and the row of each; trees ascend."""
    parent, found = paths.parents_of(part), list[tuple[np.ndarray, ...]]()
    while len(node):
        found.append((node, tree, row))
        node = parent[node]
        below = node >= 0
        node, tree, row = node[below], tree[below], row[below]
    nodes, trees, rows = (np.concatenate(column) for column in zip(*found, strict=True))
    by_tree = np.argsort(trees, kind="stable")
    return nodes[by_tree], trees[by_tree], rows[by_tree]


def _changes(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it, as the first one does; bool[n]."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def _products_within(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Running products of f64[n] within groups, which follow one another."""
    products, step = values.copy(), 1
    position = np.arange(len(values))
    place = position - np.searchsorted(group, group) if len(group) else position
    while len(place) and step <= place.max():
        has = np.flatnonzero(place >= step)
        products[has] = products[has] * products[has - step]
        step *= 2
    return products


def time_grid(rows: quantile_forest.TrainingRows, most: int) -> np.ndarray:
    """The times of events, or `most` quantiles of them, each once and ascending."""
    time, event = rows.y.T
    weights = rows.sampling.weights
    times = time[(event > 0) & (True if weights is None else weights > 0)]
    grid = np.unique(times)
    if len(grid) <= most:
        return grid
    return np.unique(np.quantile(times, np.linspace(0, 1, most), method="inverted_cdf"))


def curves(
    forest: Forest, steps: Steps, X: Array, grid: np.ndarray, backend: Backend, change: np.ndarray
) -> np.ndarray:
    """The sums at the times of `grid` of what changes by `change` at each step, f64[N, G]."""
    if forest.shrinkage:
        return shrunk_curves(forest, steps, X, grid, backend, change)
    # the first time of the grid that is not before each time of events
    column, parts = np.searchsorted(grid, steps.times), []
    G, T = len(grid), forest.n_trees
    for _, leaves in paths.leaf_blocks(forest, X, backend):
        size = max(1, STEPS_AT_ONCE // max(1, T * G // 8))
        for begin in range(0, len(leaves), size):
            node = leaves[begin : begin + size].ravel()
            first, n = steps.begin[node], len(node) // T
            counts = steps.begin[node + 1] - first
            step = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
            row = np.repeat(np.repeat(np.arange(n), T), counts)
            at = row * (G + 1) + column[steps.time[step]]
            rises = np.bincount(at, change[step], n * (G + 1)).reshape(n, G + 1)
            parts.append(np.cumsum(rises[:, :G], axis=1) / T)
    return np.concatenate(parts)


def shrunk_curves(
    forest: Forest, steps: Steps, X: Array, grid: np.ndarray, backend: Backend, change: np.ndarray
) -> np.ndarray:
    """`curves` of shrunk leaves: means of the curves on a leaf's path. `steps` are of all nodes."""
    column, G, parts = np.searchsorted(grid, steps.times), len(grid), []
    for _, leaves in paths.leaf_blocks(forest, X, backend):
        total = np.zeros((len(leaves), G))
        for t, (begin, end) in enumerate(pairwise(forest.tree_offsets.tolist())):
            first, last = steps.begin[[begin, end]]
            node = np.repeat(np.arange(end - begin), np.diff(steps.begin[begin : end + 1]))
            at = node * (G + 1) + column[steps.time[first:last]]
            rises = np.bincount(at, change[first:last], (end - begin) * (G + 1))
            of_nodes = np.cumsum(rises.reshape(-1, G + 1)[:, :G], axis=1)
            total += forest.shrunk(of_nodes, t, t + 1)[leaves[:, t] - begin]
        parts.append(total / forest.n_trees)
    return np.concatenate(parts)


def concordance(event: np.ndarray, time: np.ndarray, risk: np.ndarray) -> float:
    """Harrell's C: share of comparable pairs in which the earlier event has the higher risk. Equal
    risks count one half; NaN without a pair. Harrell, Lee and Mark, "Multivariable prognostic
    models", Statistics in Medicine 15, 1996."""
    event = np.asarray(event, bool)
    order = np.unique(time, return_inverse=True)[1] * 2 + ~event  # ranks: censored ones come last
    risk = np.unique(risk, return_inverse=True)[1]
    at = np.lexsort((risk, order))  # so no row of equal rank and less risk comes later
    order, risk, event = order[at], risk[at], event[at]
    n_pairs = int((len(order) - np.searchsorted(order, order, side="right"))[event].sum())
    if not n_pairs:
        return float("nan")
    less, equal = _later_ones(risk, event)
    counts = np.unique([order[event], risk[event]], axis=1, return_counts=True)[1]
    within = int((counts * (counts - 1) // 2).sum())  # equal in both: their order is not known
    return float((less + (equal - within) / 2) / n_pairs)


def concordance_of(y: np.ndarray, risks: np.ndarray, cause: int) -> float:
    """The concordance of risks f64[N, K] by one of K causes, of targets [time, cause or 0]."""
    return concordance(y[:, 1] == cause, y[:, 0], risks[:, cause - 1])


def _later_ones(rank: np.ndarray, counted: np.ndarray) -> tuple[int, int]:
    """Numbers of (earlier, later) counted pairs in which the later rank is lower, and equal."""
    less, equal, half = 0, 0, 1
    top, position = int(rank.max()) + 1, np.arange(len(rank))
    while half < len(rank):
        key = position // (2 * half) * top + rank
        is_right = position // half % 2 == 1
        right, left = np.sort(key[is_right]), key[~is_right & counted]
        low = np.searchsorted(right, left)
        less += int((low - np.searchsorted(right, left - left % top)).sum())
        equal += int((np.searchsorted(right, left, side="right") - low).sum())
        half *= 2
    return less, equal


class StepFunction:
    """A function of time that is constant from each of its times to the next.

    Parameters
    ----------
    x, y : float64 ndarray of shape (n_times,), ascending times, and values from each on
    before : float, default=None
        What stands for y before x[0]; None: y[0].
    a, b : float, default=1.0 and 0.0
        The function is a * y + b.
    domain : tuple of two floats, default=(0, None)
        The times for which the curve is made; None: x[0] or x[-1].
    """

    def __init__(
        self, x: np.ndarray, y: np.ndarray, before: float | None = None, *, a: float = 1.0,
        b: float = 0.0, domain: tuple[float | None, float | None] = (0, None),
    ) -> None:  # fmt: skip
        self.x, self.y, self.a, self.b = x, y, a, b
        self.before = y[0] if before is None else before
        ends = zip((x[0], x[-1]), domain, strict=True)
        self.domain = tuple(float(known if end is None else end) for known, end in ends)

    def __call__(self, time: Any) -> Any:
        """Its values at these times; after the last time it stays as it was there."""
        if not np.isfinite(time).all():
            raise ValueError("times must be finite")
        at = np.searchsorted(self.x, time, side="right")
        return self.a * np.concatenate([[self.before], self.y])[at] + self.b

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepFunction):
            return False
        names = ("x", "y", "a", "b", "before")
        return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in names)

    def __repr__(self) -> str:
        return f"StepFunction(x={self.x!r}, y={self.y!r}, a={self.a!r}, b={self.b!r})"
