"""The conditions that send rows from a node to its children, in words and as code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Self

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.common.text import one_line
from gpuforest.engine.forest import Forest
from gpuforest.engine.nodes import combined, has_set, unpack
from gpuforest.splits.oblique.terms import ALL_LEFT, in_units, terms_of

Number = Callable[[float], str]  # how a number is written


@dataclass(frozen=True, kw_only=True)
class Condition(ABC):
    """A condition on the value of one feature. None and NaN are missing values.

    feature : int, the feature's number
    name : str, what it is called
    missing : whether a missing value meets the condition
    """

    feature: int
    name: str
    missing: bool = False

    @property
    def key(self) -> Any:
        """What conditions that merge have in common."""
        return self.feature

    def python(self) -> str:
        """The condition as a Python expression of a row, the dict x; see `source`."""
        return self.source(f"x[{self.name!r}]")

    def holds(self, value: Any) -> bool:
        """Whether a value of the feature meets the condition."""
        return self.missing if is_missing(value) else self._holds(value)

    def words(self, number: Number = repr) -> str:
        """The condition in words, on one line."""
        return " or ".join(self.alternatives(number))

    @abstractmethod
    def _holds(self, value: Any) -> bool:
        """Whether a value that is not missing meets the condition."""

    @abstractmethod
    def plain(self) -> Self:
        """Without a word on missing values and categories that training did not see, where any
        other is left."""

    @abstractmethod
    def __and__(self, other: Self) -> Self:
        """Both conditions, on the same feature, in one."""

    @abstractmethod
    def alternatives(self, number: Number = repr) -> list[str]:
        """The words, at each "or" apart."""

    @abstractmethod
    def source(self, value: str) -> str:
        """The condition as a Python expression, in which missing values are NaN.

        value : str, an expression for the feature's value; `is_missing` is a known function
        """


@dataclass(frozen=True, kw_only=True)
class Range(Condition):
    """low < value <= high.

    No number lies in it where low = high: the condition is then that the value is missing.
    """

    low: float = -inf
    high: float = inf

    def _holds(self, value: Any) -> bool:
        return bool(self.low < value <= self.high)

    def plain(self) -> Range:
        empty = self.low >= self.high or (self.low == -inf and self.high == inf)
        return self if empty else replace(self, missing=False)

    def __and__(self, other: Range) -> Range:
        low, high = max(self.low, other.low), min(self.high, other.high)
        return replace(self, low=low, high=high, missing=self.missing and other.missing)

    def alternatives(self, number: Number = repr) -> list[str]:
        name, missing = one_line(self.name), ["missing"] if self.missing else []
        if self.low >= self.high:
            return [f"{name} is {'missing' if self.missing else 'nothing'}"]
        if self.low == -inf and self.high == inf:
            return [f"{name} is {'anything' if self.missing else 'not missing'}"]
        if self.low == -inf:
            return [f"{name} <= {number(self.high)}", *missing]
        if self.high == inf:
            return [f"{name} > {number(self.low)}", *missing]
        return [f"{number(self.low)} < {name} <= {number(self.high)}", *missing]

    def source(self, value: str) -> str:
        if self.low >= self.high:
            return f"is_missing({value})" if self.missing else "False"
        if self.low == -inf and self.high == inf:
            return "True" if self.missing else f"not is_missing({value})"
        low = "" if self.low == -inf else f"{self.low!r} < "
        high = "" if self.high == inf else f" <= {self.high!r}"
        found = f"{low}{value}{high}" if high else f"{value} > {self.low!r}"
        return f"{found} or is_missing({value})" if self.missing else found


@dataclass(frozen=True, kw_only=True)
class SumRange(Range):
    """low < a sum of several features <= high, where the numbers are in the units of the data.

    The engine adds coordinates of bins (see combinations.py), so that a row within a bin's width
    of the limit may lie on its other side. `source` is exact.

    feature : int, the first of them; name : the sum in words, such as "a + b - 2 c"
    terms : of each feature its number, name, weight, edges and coordinates of bins
    least, most : the limits of the sum of coordinates, None where there is none
    """

    terms: tuple[tuple[int, str, int, tuple[float, ...], tuple[int, ...]], ...]
    least: int | None = None
    most: int | None = None

    @property
    def key(self) -> Any:
        return tuple(term[:3] for term in self.terms)

    def python(self) -> str:
        return self.source("x")

    def holds(self, value: Any) -> bool:
        """Whether the values of all features, by number, meet the condition."""
        total = 0
        for feature, _, weight, edges, coordinates in self.terms:
            if is_missing(value[feature]):
                return self.missing
            total += weight * coordinates[bisect_left(edges, value[feature])]
        return (self.least is None or total > self.least) and (
            self.most is None or total <= self.most
        )

    def __and__(self, other: Range) -> SumRange:
        assert isinstance(other, SumRange)
        least = [limit for limit in (self.least, other.least) if limit is not None]
        most = [limit for limit in (self.most, other.most) if limit is not None]
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            missing=self.missing and other.missing,
            least=max(least, default=None),
            most=min(most, default=None),
        )

    def source(self, value: str) -> str:
        terms = tuple(term[1:3] for term in self.terms)
        return f"total_within({value}, {terms!r}, {self.least}, {self.most}, {self.missing})"


@dataclass(frozen=True, kw_only=True)
class OneOf(Condition):
    """The value is one of some categories.

    values : the categories that meet the condition
    known : all categories of the feature
    others : whether a category that is not known meets it
    """

    values: tuple[Any, ...]
    known: tuple[Any, ...]
    others: bool = False

    def _holds(self, value: Any) -> bool:
        return value in self.values or (self.others and value not in self.known)

    def plain(self) -> OneOf:
        return replace(self, missing=False, others=False) if self.values else self

    def __invert__(self) -> OneOf:
        return replace(
            self,
            values=tuple(v for v in self.known if v not in self.values),
            others=not self.others,
            missing=not self.missing,
        )

    def __and__(self, other: OneOf) -> OneOf:
        return replace(
            self,
            values=tuple(v for v in self.values if v in other.values),
            others=self.others and other.others,
            missing=self.missing and other.missing,
        )

    def alternatives(self, number: Number = repr) -> list[str]:
        names = [one_line(v) for v in self.values]
        found = [f"in {{{', '.join(names)}}}" if len(names) > 1 else f"is {n}" for n in names[:1]]
        for flag, word in ((self.others, "other"), (self.missing, "missing")):
            found += [word if found else f"is {word}"] if flag else []
        return [f"{one_line(self.name)} {found[0] if found else 'is nothing'}", *found[1:]]

    def source(self, value: str) -> str:
        if not self.others:
            found = f"{value} in {self.values!r}"
            return f"{found} or is_missing({value})" if self.missing else found
        refused = tuple(v for v in self.known if v not in self.values)
        found = f"{value} not in {refused!r}"  # which NaN, a missing value, is not either
        return found if self.missing else f"{found} and not is_missing({value})"


@dataclass(frozen=True)
class Branch:
    """A way out of a split: what rows must meet, and the number of the node it leads to."""

    condition: Condition
    child: int


class TreeSplits:
    """The splits of one tree, by the numbers of their nodes.

    tree : int, the tree's number
    feature_names : names of all features; None: feature_0, feature_1, ...
    """

    def __init__(self, forest: Forest, tree: int, feature_names: Sequence[str] | None = None):
        if not 0 <= tree < forest.n_trees:
            raise ValueError(f"tree {tree} does not exist: choose one of 0 to {forest.n_trees - 1}")
        n_features = forest.edges.n_features
        if feature_names is None:
            feature_names = [f"feature_{i}" for i in range(n_features)]
        if len(feature_names) != n_features:
            raise ValueError(
                f"feature_names has {len(feature_names)} names, the forest {n_features} features: "
                "pass a name for each"
            )
        self.names = [str(name) for name in feature_names]
        nodes = forest.nodes[forest.tree_offsets[tree] : forest.tree_offsets[tree + 1]]
        self._feature, bin, self._missing_left, self._child = unpack(xp, nodes)
        self._threshold = forest.edges.threshold(np.maximum(self._feature, 0), bin)
        self._forest, self._first, self._has_set = forest, forest.tree_offsets[tree], has_set(nodes)
        self._combined = combined(nodes) if forest.oblique else np.zeros(len(nodes), np.int64)

    def leaf_row(self, node: int) -> int:
        """The row of the leaf table that a leaf points at."""
        return int(self._child[node])

    def branches(self, node: int) -> tuple[Branch, ...]:
        """The ways out of a node: every value meets the condition of exactly one.

        A leaf has none. This is where a kind of split is read from its node; what shows trees
        knows only branches, of which a node may have more than two.
        """
        if self._feature[node] < 0:
            return ()
        if self._has_set[node]:
            return self._ways(node)
        feature, left = int(self._feature[node]), int(self._child[node])
        threshold, missing_left = float(self._threshold[node]), bool(self._missing_left[node])
        if self._combined[node]:
            return self._sums(node, left, missing_left)
        side = Range(feature=feature, name=self.names[feature])
        return (
            Branch(replace(side, high=threshold, missing=missing_left), left),
            Branch(replace(side, low=threshold, missing=not missing_left), left + 1),
        )

    def _sums(self, node: int, left: int, missing_left: bool) -> tuple[Branch, ...]:
        """The two ways out of a split by a combination of features."""
        forest, edges = self._forest, self._forest.edges
        features, weights, threshold = terms_of(forest, int(self._first) + node)
        terms = []
        for f, weight in zip(features, weights, strict=True):
            own = edges.values[edges.offsets[f] : edges.offsets[f + 1]]
            coordinates = edges.coordinates[f, : edges.n_bins[f]]
            each = tuple(own.tolist()), tuple(coordinates.tolist())
            terms.append((f, self.names[f], weight, *each))
        words, limit = in_units(
            edges, features, weights, threshold, [one_line(t[1]) for t in terms]
        )
        whole = SumRange(feature=features[0], name=words, terms=tuple(terms))
        if threshold == ALL_LEFT:
            low = replace(whole, missing=missing_left)
            none = replace(whole, low=inf, least=ALL_LEFT, missing=not missing_left)
            return Branch(low, left), Branch(none, left + 1)
        low = replace(whole, high=limit, most=threshold, missing=missing_left)
        high = replace(whole, low=limit, least=threshold, missing=not missing_left)
        return Branch(low, left), Branch(high, left + 1)

    def _ways(self, node: int) -> tuple[Branch, ...]:
        """The ways out of a split by a set, or of a chain of them."""
        feature, found = int(self._feature[node]), []
        rest = ~replace(self._set(node), values=(), others=False, missing=False)
        while True:
            inside, left = self._set(node), int(self._child[node])
            found.append(Branch(rest & inside, left))
            rest, node = rest & ~inside, left + 1
            goes_on = self._forest.multiway and self._has_set[node]
            if not (goes_on and self._feature[node] == feature):
                return (*found, Branch(rest, node))

    def _set(self, node: int) -> OneOf:
        """The condition for rows that go left at a split by a set."""
        feature, forest = int(self._feature[node]), self._forest
        known = forest.edges.categories[feature]
        first = forest.set_at[self._first + node]
        words = forest.sets[first : first + forest.edges.set_words[feature]]
        goes = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(bool)
        return OneOf(
            feature=feature,
            name=self.names[feature],
            missing=bool(self._missing_left[node]),
            values=tuple(v for v, is_in in zip(known, goes, strict=False) if is_in),
            known=known,
            others=bool(goes[len(known)]),
        )


def narrowed(path: tuple[Condition, ...], condition: Condition) -> tuple[Condition, ...]:
    """A path's conditions, one a feature or combination, and one more: merged with its own."""
    found = {c.key: c for c in path}
    known = found.get(condition.key)
    found[condition.key] = condition if known is None else known & condition
    return tuple(found.values())


def all_of(conditions: Sequence[Condition], number: Number = repr) -> str:
    """All conditions in words, joined by "and"; "" if there are none."""
    parts = [c.alternatives(number) for c in conditions]
    joined = [" or ".join(p) for p in parts]
    if len(parts) > 1:
        joined = [f"({j})" if len(p) > 1 else j for p, j in zip(parts, joined, strict=True)]
    return " and ".join(joined)


def is_missing(value: Any) -> bool:
    """Whether a value is None or NaN, which alone is not itself."""
    return value is None or bool(value != value)
