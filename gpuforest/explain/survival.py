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

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuforest.backends.base import Array, Backend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.parallel import parallel_map
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import is_leaf, leaf_rows
from gpuforest.engine.sampling import draw_bags
from gpuforest.explain.paths import leaf_blocks
from gpuforest.explain.quantile_forest import TrainingRows, leaves_of

STEPS_AT_ONCE = 2**20  # about so many steps of leaves are added up together


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
    """The times at which events of each leaf's rows come, node after node.

    times : f64[E], the times of events of all training rows, ascending
    begin : i64[M + 1], where the steps of each node begin; inner nodes have none
    time : i32[...], the number of each step's time
    hazard, fall : f64[..., K], by how much the cumulative hazard of each of K causes rises there,
        and survival falls by it
    """

    times: np.ndarray
    begin: np.ndarray
    time: np.ndarray
    hazard: np.ndarray
    fall: np.ndarray

    @property
    def risk(self) -> np.ndarray:
        """The mortality f64[M, K] of each node: the sum of its cumulative hazard over all times of
        events; more where they come sooner."""
        n = len(self.begin) - 1
        node, left = np.repeat(np.arange(n), np.diff(self.begin)), len(self.times) - self.time
        return np.stack([np.bincount(node, rises * left, n) for rises in self.hazard.T], axis=1)


def steps_of(forest: Forest, rows: TrainingRows, backend: Backend) -> Steps:
    """The steps of all leaves, from training rows whose targets are [time, cause or 0]."""
    time, event = rows.y.T
    n_causes = forest.coding.n_outputs
    times = time_grid(rows, len(time))
    number = np.searchsorted(times, time, side="right") - 1  # of the last event until then
    leaves = leaves_of(forest, rows.codes, backend)
    order = np.lexsort((event == 0, time))  # at equal times events come first

    def of_tree(t: int) -> tuple[np.ndarray, ...]:
        bag = draw_bags(rows.sampling, forest.seed, t, t + 1, NumpyBackend())[0][order]
        row = order[bag > 0]
        by_leaf = np.argsort(leaves[row, t], kind="stable")
        row, count = row[by_leaf], bag[bag > 0][by_leaf].astype(np.int64)
        size = int(forest.tree_offsets[t + 1] - forest.tree_offsets[t])
        by_cause = count[:, None] * (event[row, None] == np.arange(1, n_causes + 1))
        return _steps_of_tree(leaves[row, t], number[row], by_cause, time[row], count, size)

    parts = parallel_map(of_tree, range(forest.n_trees), backend.n_threads)
    sizes, at, hazard, fall = (np.concatenate(part) for part in zip(*parts, strict=True))
    begin = np.concatenate([[0], np.cumsum(sizes)])
    return Steps(times, begin, at.astype(np.int32), hazard, fall)


def _steps_of_tree(
    leaf: np.ndarray, number: np.ndarray, events: np.ndarray, time: np.ndarray, count: np.ndarray,
    n_nodes: int,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """The number of steps of each node, and the number of the time, hazard and fall of each step,
    of rows in the order of their leaves and times, with events i64[n, K]."""
    new_leaf = np.concatenate([[True], leaf[1:] != leaf[:-1]])
    new_time = new_leaf | np.concatenate([[True], time[1:] != time[:-1]])
    first = np.flatnonzero(new_time)  # row of each leaf and time
    events = np.add.reduceat(events, first)
    upto = np.cumsum(count)
    last_of_leaf = np.append(np.flatnonzero(new_leaf)[1:], len(leaf)) - 1
    all_of_leaf = upto[last_of_leaf][np.cumsum(new_leaf) - 1]
    at_risk = all_of_leaf[first] - upto[first] + count[first]
    some = events.any(axis=1)
    first, events, at_risk = first[some], events[some], at_risk[some]
    # survival before a step: the product of what is left after the earlier ones of the leaf
    left = (at_risk - events.sum(axis=1)) / at_risk
    node = leaf[first]
    survival = _products_within(left, node)
    fall = np.concatenate([[1.0], survival[:-1]])
    begins = np.concatenate([[True], node[1:] != node[:-1]]) if len(node) else np.zeros(0, bool)
    fall[: len(node)][begins] = 1.0
    fall = fall[: len(node), None] * events / at_risk[:, None]
    return np.bincount(node, minlength=n_nodes), number[first], events / at_risk[:, None], fall


def _products_within(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The product of each value f64[n] and those before it of its group, groups one after
    another."""
    products, step = values.copy(), 1
    position = np.arange(len(values))
    place = position - np.searchsorted(group, group) if len(group) else position
    while len(place) and step <= place.max():
        has = np.flatnonzero(place >= step)
        products[has] = products[has] * products[has - step]
        step *= 2
    return products


def with_risks(forest: Forest, steps: Steps) -> Forest:
    """The forest whose leaves predict the mortality of their rows."""
    leaf, risk = is_leaf(forest.nodes), steps.risk
    values = np.zeros((len(forest.leaf_sums), risk.shape[1]))
    values[leaf_rows(forest.nodes[leaf])] = risk[leaf]
    return replace(forest, leaf_values=values)


def time_grid(rows: TrainingRows, most: int) -> np.ndarray:
    """The times of events, or `most` quantiles of them, each once and ascending."""
    time, event = rows.y.T
    weights = rows.sampling.weights
    times = time[event > 0] if weights is None else time[(event > 0) & (weights > 0)]
    grid = np.unique(times)
    if len(grid) <= most:
        return grid
    return np.unique(np.quantile(times, np.linspace(0, 1, most), method="inverted_cdf"))


def curves(
    forest: Forest, steps: Steps, X: Array, grid: np.ndarray, backend: Backend, change: np.ndarray
) -> np.ndarray:
    """The sums at the times of `grid` of what changes by `change` at each step, f64[N, G]."""
    # the first time of the grid that is not before each time of events
    column = np.searchsorted(grid, steps.times)
    G, T = len(grid), forest.n_trees
    parts = []
    for _, leaves in leaf_blocks(forest, X, backend):
        size = max(1, STEPS_AT_ONCE // max(1, T * G // 8))
        for begin in range(0, len(leaves), size):
            node = leaves[begin : begin + size]
            n = len(node)
            first, counts = steps.begin[node], steps.begin[node + 1] - steps.begin[node]
            counts = counts.ravel()
            offset = first.ravel() - (np.cumsum(counts) - counts)
            step = np.repeat(offset, counts) + np.arange(counts.sum())
            row = np.repeat(np.repeat(np.arange(n), T), counts)
            at = row * (G + 1) + column[steps.time[step]]
            rises = np.bincount(at, change[step], n * (G + 1)).reshape(n, G + 1)
            parts.append(np.cumsum(rises[:, :G], axis=1) / T)
    return np.concatenate(parts)


def concordance(event: np.ndarray, time: np.ndarray, risk: np.ndarray) -> float:
    """Harrell's C: of the pairs of rows of which one is known to have its event first, the share
    where it also has the higher risk; equal risks count one half. NaN if there is no such pair.

    Harrell, Lee and Mark, "Multivariable prognostic models", Statistics in Medicine 15, 1996.
    """
    event = np.asarray(event, bool)
    order = np.unique(time, return_inverse=True)[1] * 2 + ~event  # ranks: censored ones come last
    risk = np.unique(risk, return_inverse=True)[1]
    at = np.lexsort((risk, order))  # so no row of equal rank and less risk comes later
    order, risk, event = order[at], risk[at], event[at]
    later = len(order) - np.searchsorted(order, order, side="right")
    n_pairs = int(later[event].sum())
    if not n_pairs:
        return float("nan")
    less, equal = _later_ones(risk, event)
    pairs = np.stack([order[event], risk[event]])
    counts = np.unique(pairs, axis=1, return_counts=True)[1]
    within = int((counts * (counts - 1) // 2).sum())  # equal in both: their order is not known
    return float((less + (equal - within) / 2) / n_pairs)


def _later_ones(rank: np.ndarray, counted: np.ndarray) -> tuple[int, int]:
    """Over the counted elements, how many later ones have a lower rank, and how many the same: by
    halves of blocks of two, four, eight, ... elements."""
    less, equal, n = 0, 0, len(rank)
    top, position = int(rank.max()) + 1, np.arange(n)
    half = 1
    while half < n:
        key = position // (2 * half) * top + rank
        is_right = position // half % 2 == 1
        right = np.sort(key[is_right])
        left = key[~is_right & counted]
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
        first, last = domain
        self.domain = (
            float(x[0] if first is None else first),
            float(x[-1] if last is None else last),
        )

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
