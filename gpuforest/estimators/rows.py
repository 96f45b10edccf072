"""The checked rows of a fit: table, weights, groups, blocks of time, and target."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any, Self

import numpy as np

from gpuforest.backends.base import Backend, take_rows
from gpuforest.common.dtypes import ROW
from gpuforest.core.bins import BinEdges, Categories, Statistics
from gpuforest.data.binned import BinnedData, edges_of
from gpuforest.data.target_statistics import OrderedTarget, has_statistics, replace_categories
from gpuforest.estimators.settings import RowWeights
from gpuforest.estimators.task import host_target, n_outputs
from gpuforest.growing.targets import integer_weights


@dataclass(frozen=True, eq=False)
class Rows:
    """The checked rows of a fit.

    X : table [N, F], or BinnedData; None: it is no longer needed
    categories : of features, as `BinEdges` has them
    names : of the columns, or None
    weight : f64[N], or None: all are one
    groups, blocks : i32[N], the numbers of the rows' groups and of their blocks of time, or None
    statistics : of the features whose values have become target statistics
    target : before it was encoded; None: not checked yet
    """

    X: Any
    categories: Categories
    names: list[Any] | None
    weight: np.ndarray | None
    groups: np.ndarray | None
    blocks: np.ndarray | None
    statistics: Statistics
    target: Any = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def integers(self) -> np.ndarray | None:
        """The weights as integers i32[N]."""
        return None if self.weight is None else integer_weights(self.weight)

    @property
    def weights(self) -> RowWeights:
        """The weights as they are, and as integers."""
        integers = self.integers
        return None if self.weight is None or integers is None else (self.weight, integers)

    @cached_property
    def y(self) -> np.ndarray:
        """The target of one output on the host: numbers f64[N], or class codes i64[N]."""
        return host_target(self.target)[:, 0]

    @property
    def group_numbers(self) -> np.ndarray | None:
        """Group numbers 0, 1, ... of the groups that occur in these rows, i32[N]."""
        groups = self.groups
        return None if groups is None else np.unique(groups, return_inverse=True)[1].astype(ROW)

    @property
    def classes(self) -> np.ndarray | None:
        """The labels of the classes of one output; None: numbers."""
        known: Any = self.target.classes
        return None if known is None else known[0]

    def take(self, rows: np.ndarray, backend: Backend) -> Self:
        """Rows of these numbers; X may lie on the backend's device."""
        binned = isinstance(self.X, BinnedData)
        names, target = ("weight", "groups", "blocks"), self.target
        taken = {n: a[rows] for n in names if (a := getattr(self, n)) is not None}
        if target is not None:
            y = self.y[rows]
            taken["target"] = replace(target, values=y if target.classes is None else [y])
        X = self.X.take(rows) if binned else take_rows(self.X, rows, backend)
        return replace(self, X=X, **taken)

    def with_statistics(self, split: str, weights: np.ndarray | None, seed: int) -> Self:
        """The rows whose categories are target statistics where `categorical_split` says so;
        weights : i32[N], or None."""
        if not self.categories:
            return self
        make = partial(OrderedTarget.of, self.target, weights, seed, self.groups)
        categories, statistics = replace_categories(self.X, self.categories, split, make)
        return replace(self, categories=categories, statistics=statistics)

    def edges(
        self, max_bins: int | str, weights: np.ndarray | None, seed: int, backend: Backend
    ) -> BinEdges:
        """The bins of the features; weights : i32[N], or None."""
        learned = self.categories, self.statistics
        return edges_of(self.X, max_bins, weights, seed, backend, *learned)

    def uses(self, split: str) -> set[str]:
        """The capabilities that the rows and their target ask for."""
        binned = isinstance(self.X, BinnedData)
        asked = {
            "groups": self.groups is not None, "blocks": self.blocks is not None,
            "outputs": n_outputs(self.target) > 1, "binned": binned,
            "ordered": binned and self.X.edges.statistics,
        }  # fmt: skip
        uses = set(compress(asked, asked.values()))
        for known in self.categories.values():
            other = "multiway" if split == "multiway" else "subset"
            uses.add("ordered" if has_statistics(split, len(known)) else other)
        return uses
