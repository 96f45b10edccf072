"""The rules for growing trees and drawing bags; compiler/types.py and structs.py pass them on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpuforest.compiler.types import F64, I64, Bool
from gpuforest.core.criteria import Criterion


@dataclass(frozen=True, eq=False)
class Rules:
    """The rules for growing trees."""

    criterion: Criterion  # chooses splits
    n_tried: I64  # k, the number of features that vary in a node and are tried for its split
    max_depth: I64  # the most levels below the root
    min_rows_split: int  # the fewest rows of a node that may be split
    min_rows_leaf: I64  # the fewest rows of either side of a split
    min_gain: F64  # the least score difference of a split; -inf: any
    min_weight_leaf: I64 = 1  # the least weight of either side of a split
    random: Bool = False  # whether each feature has one cut only, drawn at random
    # 1 (or -1) where predictions must not fall (or rise) with the feature; without elements if
    # there are no such constraints
    signs: Annotated[np.ndarray, "i8[F]"] = field(default_factory=lambda: np.zeros(0, np.int8))
    n_features_tree: int = 0  # number of features drawn for each tree; 0: a tree has all
    features_again: bool = False  # whether these are drawn with replacement
    multiway: bool = False  # whether categorical features have a branch for each category
    # mean number of features in the combinations that are tried; 0: features are tried alone
    combined: float = 0.0
    # sets of features that may meet on a path; empty: all may
    interactions: tuple[tuple[int, ...], ...] = ()
    heaviest: int = 1  # the greatest weight of a feature in a combination
    least_share: float = 0.0  # of a node's rows that splits by effects leave on each side

    @property
    def fewest_rows(self) -> I64:
        """The fewest rows of a node that a split may divide."""
        return max(self.min_rows_split, 2 * self.min_rows_leaf)

    @property
    def limited(self) -> bool:
        """True if cuts have a least weight or monotonic constraints; few deep phases keep them."""
        return self.min_weight_leaf > 1 or len(self.signs) > 0

    @property
    def count_rows(self) -> Bool:
        """Whether histograms have a channel that counts rows, because weights are no counts."""
        return self.min_rows_leaf > 1


class ByClass(NamedTuple):
    """The rows of a training, class by class, for draws of each class."""

    rows: np.ndarray  # i64[N]
    cumulative: np.ndarray | None  # i64[N], running total of their weights; None: all are one
    first: np.ndarray  # i64[C], the weight of the rows of earlier classes
    total: np.ndarray  # u64[C], the weight of the rows of each class


def poisson_steps(rate: float) -> np.ndarray:
    """The cumulative distribution of Poisson's law at 0, 1, ... in units of 1 / 2**64, u64[n], up
    to the last below one. Hashes are compared with these integers, which decimals of 60 digits
    make equal on all machines."""
    with localcontext(Context(prec=60)):
        mean, steps = Decimal(rate), list[int]()
        chance = total = (-mean).exp()
        while (step := int(total * 2**64)) < 2**64 and step not in steps[-1:]:
            steps.append(step)
            chance *= mean / len(steps)
            total += chance
    return np.array(steps, np.uint64)


@dataclass(frozen=True, eq=False)
class Sampling:
    """The rules for drawing bags."""

    n_rows: int  # of the training data
    n_draws: int  # rows or groups drawn for each tree; 0: a bag holds every row once
    # i32[N] or None. If rows are drawn, they are proportional to the chances of rows to be drawn,
    # as in scikit-learn >= 1.9 and ranger; if not, or if groups are, they multiply the statistics
    weights: np.ndarray | None
    factors: np.ndarray | None = None  # i32[N], the weight that a draw of each row adds to the bag
    # instead of factors, the classes of each bag are balanced: a draw of class c adds about
    # n_draws * balance / (classes in the bag * draws of c), and with several outputs `balance`
    # times the product of these ratios; 0: a draw adds one
    balance: int = 0
    draw_weight: float = 1.0  # the mean weight that a draw adds
    # rows of positive weight are drawn without replacement; then weights multiply the statistics
    distinct: bool = False
    # i32[N], the number of each row's group, or None. Groups with a row of positive weight have
    # equal chances to be drawn, and all rows of a group are drawn with it
    groups: np.ndarray | None = None
    # i32[N], the number of blocks of time before that of each row, or None. A tree then draws from
    # the blocks up to its cutoff, and rows of later ones are out of its bag; see `sampling.cutoff`
    blocks: np.ndarray | None = None
    # of effects: two trees in a row draw the same bag, and each grows from the rows (or groups) of
    # it whose hash is below the first number, and fills its leaves with those from there to below
    # the second. Both in 1 / 2**32; equal numbers: the rows that grow a tree also fill its leaves
    parts: tuple[int, int] | None = None
    # i32[N], the class of each row, and the number of rows drawn of each class, which add up to
    # n_draws; None and (): rows are drawn whatever their class
    classes: np.ndarray | None = None
    draws: tuple[int, ...] = ()
    # the mean of a Poisson distribution, by which a hash of its id says how often a row counts in a
    # bag; 0: rows are drawn. Then weights multiply the statistics, and n_draws is the mean of a bag
    rate: float = 0.0
    ids: np.ndarray | None = None  # i64[N] or u64[N], all different; None: the rows' numbers

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is derived from them is not pickled."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def by_class(self) -> ByClass:
        """The rows in the order of their classes, where rows of each class are drawn."""
        assert self.classes is not None
        small = self.classes.astype(np.min_scalar_type(len(self.draws)))  # sorted by radix
        rows = np.argsort(small, kind="stable")
        weights = None if self.weights is None else self.weights[rows].astype(np.int64)
        total = np.bincount(self.classes, self.weights, len(self.draws)).astype(np.int64)
        cumulative = None if weights is None else np.cumsum(weights)
        return ByClass(rows, cumulative, np.cumsum(total) - total, total.astype(np.uint64))

    @property
    def chances(self) -> np.ndarray:
        """How often each row is expected in a bag, up to a factor of all rows, f64[N]."""
        weights = np.ones(self.n_rows) if self.weights is None else self.weights.astype(np.float64)
        if self.classes is None:
            return weights
        share = np.array(self.draws) / np.maximum(self.by_class.total, 1)
        return np.asarray(weights * share[self.classes])

    @property
    def units(self) -> Sampling:
        """How rows are drawn, or the groups in their place."""
        if self.groups is None:
            return self
        rows = np.bincount(self.groups, None if self.weights is None else self.weights > 0)
        weights = None if rows.all() else (rows > 0).astype(np.int32)
        return Sampling(len(rows), self.n_draws, weights, distinct=self.distinct, parts=self.parts)

    @cached_property
    def steps(self) -> np.ndarray:
        """What the hash of a row must reach to count once, twice, ... in a bag, u64[n]."""
        return poisson_steps(self.rate)

    @property
    def row_keys(self) -> np.ndarray:
        """What is hashed of each row, u64[N]."""
        ids = np.arange(self.n_rows) if self.ids is None else self.ids
        return ids.view(np.uint64)

    @property
    def multiplies(self) -> bool:
        """Whether there are weights, and they multiply the statistics."""
        of_draws = self.n_draws and not (self.distinct or self.rate) and self.groups is None
        return self.weights is not None and not of_draws

    @property
    def mean_weight(self) -> float:
        """The mean weight that a row of some weight adds to a bag each time it is drawn."""
        if self.weights is None or not self.multiplies:
            return float(self.draw_weight)
        return float(self.draw_weight * (self.weights.sum(dtype=np.int64) / self.n_counted))

    @property
    def most_drawn(self) -> int:
        """Limit of a group's draws in a bag, so that sums do not overflow. More draws have a chance
        below 10**-30 (Chernoff's bound). With a rate, the most that a row counts."""
        if self.distinct:
            return 1
        if self.rate:
            return len(self.steps)
        return min(self.n_draws, 32 + 4 * -(-self.n_draws // self.units.n_counted))

    @property
    def counted(self) -> np.ndarray | None:
        """The rows of positive weight, i64[n], ascending; None: all rows. Trees ignore the rest."""
        if self.weights is None or self.weights.all():
            return None
        return np.flatnonzero(self.weights)

    @property
    def n_counted(self) -> int:
        """Number of rows of positive weight."""
        return self.n_rows if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def bag_weight(self) -> int:
        """Total weight of a bag: the same for every tree, or the mean over trees."""
        if self.groups is not None:
            total = self.n_rows if self.weights is None else int(self.weights.sum(dtype=np.int64))
            return round(total * self.n_draws / self.units.n_counted * self.draw_weight)
        if self.rate:
            return round(self.most_weight / self.most_drawn * self.rate)
        if not self.distinct or self.weights is None:
            return round(self.most_weight * self.draw_weight)
        return round(self.most_weight * min(1.0, self.n_draws / self.n_counted))

    @property
    def most_weight(self) -> int:
        """The greatest total weight of a bag, if a draw adds one."""
        if self.groups is not None:
            of_groups = np.bincount(self.groups, self.weights)
            return int(min(self.n_draws * of_groups.max(), self.most_drawn * of_groups.sum()))
        if self.rate:
            total = self.n_rows if self.weights is None else int(self.weights.sum(dtype=np.int64))
            return total * self.most_drawn
        if self.weights is None or (self.n_draws and not self.distinct):
            return self.n_draws or self.n_rows
        return int(self.weights.sum(dtype=np.int64))

    @property
    def max_bag_rows(self) -> int:
        """The greatest number of rows that a bag can hold."""
        if self.groups is not None:
            return int(np.sort(np.bincount(self.groups))[-self.n_draws :].sum())
        if self.rate:
            return self.n_rows
        return min(self.n_rows, self.n_draws) if self.n_draws else self.n_rows

    @property
    def likely_bag_rows(self) -> int:
        """Number of rows that a bag exceeds with a chance below 10**-15, by Hoeffding's bound. The
        number of rows hit has a variance below n / 4, or a quarter of the squared sizes of groups;
        draws of unequal weights hit fewer."""
        n, draws, squares = self.units.n_counted, self.n_draws, self.n_rows
        if not draws or self.distinct or n < 2:
            return self.max_bag_rows
        if self.groups is not None:
            squares = int((np.bincount(self.groups) ** 2).sum())
        expected = -self.n_counted * math.expm1(draws * math.log1p(-1 / n))
        return min(self.max_bag_rows, math.ceil(expected + 4.5 * math.sqrt(squares)))
