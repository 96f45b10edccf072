"""The conditions that send rows from a node to its children, in words and as code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from gpuforest.common.text import one_line

ENDLESS = 2**31 - 1  # no sum of coordinates is above it
Number = Callable[[float], str]  # how a number is written


@dataclass(frozen=True, kw_only=True)
class Range:
    """The condition low < value <= high; of a sum of several features if there are `terms`.

    No number lies in it where low = high: the condition is then that the value is missing. A sum
    adds coordinates of bins, so that a row within a bin's width of `low` or `high`, which are in
    the units of the data, may lie on the other side. `source` is exact.

    feature : int, of a sum the first one; name : of a sum its words, such as "a + b - 2 c"
    missing : whether a missing value, None or NaN, meets the condition
    terms : of each feature of a sum its number, name, weight, edges and coordinates of bins
    least, most : the limits of the sum of coordinates
    """

    feature: int
    name: str
    missing: bool = False
    low: float = -inf
    high: float = inf
    terms: tuple[tuple[int, str, int, tuple[float, ...], tuple[int, ...]], ...] = ()
    least: int = -ENDLESS
    most: int = ENDLESS

    @property
    def key(self) -> Any:
        """What conditions that merge have in common."""
        return tuple(term[:3] for term in self.terms) or self.feature

    def holds(self, value: Any) -> bool:
        """Whether a value of the feature meets the condition; of a sum, the values of all features
        by number."""
        if not self.terms:
            return self.missing if is_missing(value) else bool(self.low < value <= self.high)
        if any(is_missing(value[term[0]]) for term in self.terms):
            return self.missing
        total = sum(
            weight * coordinates[bisect_left(edges, value[f])]
            for f, _, weight, edges, coordinates in self.terms
        )
        return self.least < total <= self.most

    def plain(self) -> Range:
        """Without a word on missing values, where any other is left."""
        empty = self.low >= self.high or (self.low == -inf and self.high == inf)
        return self if empty else replace(self, missing=False)

    def __and__(self, other: Range) -> Range:
        """Both conditions in one."""
        return replace(
            self,
            low=max(self.low, other.low),
            high=min(self.high, other.high),
            missing=self.missing and other.missing,
            least=max(self.least, other.least),
            most=min(self.most, other.most),
        )

    def words(self, number: Number = repr) -> str:
        """The condition in words, on one line."""
        return " or ".join(self.alternatives(number))

    def alternatives(self, number: Number = repr) -> list[str]:
        """The words, at each "or" apart."""
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

    def source(self) -> str:
        """The condition as a Python expression of a row, the dict x, in which missing values are
        NaN; `is_missing` is a known function."""
        if self.terms:
            terms = tuple(term[1:3] for term in self.terms)
            return f"total_within(x, {terms!r}, {self.least}, {self.most}, {self.missing})"
        value = f"x[{self.name!r}]"
        if self.low >= self.high:
            return f"is_missing({value})" if self.missing else "False"
        if self.low == -inf and self.high == inf:
            return "True" if self.missing else f"not is_missing({value})"
        low = "" if self.low == -inf else f"{self.low!r} < "
        text = f"{value} > {self.low!r}" if self.high == inf else f"{low}{value} <= {self.high!r}"
        return f"{text} or is_missing({value})" if self.missing else text


@dataclass(frozen=True, kw_only=True)
class OneOf:
    """The condition that the value is one of some categories; methods are those of `Range`.

    values : the categories that meet the condition
    known : all categories of the feature
    others : whether a category that is not known meets it
    """

    feature: int
    name: str
    missing: bool = False
    values: tuple[Any, ...]
    known: tuple[Any, ...]
    others: bool = False

    @property
    def key(self) -> Any:
        return self.feature

    def holds(self, value: Any) -> bool:
        if is_missing(value):
            return self.missing
        return value in self.values or (self.others and value not in self.known)

    def plain(self) -> OneOf:
        return replace(self, missing=False, others=False) if self.values else self

    def __invert__(self) -> OneOf:
        values = tuple(v for v in self.known if v not in self.values)
        return replace(self, values=values, others=not self.others, missing=not self.missing)

    def __and__(self, other: OneOf) -> OneOf:
        return replace(
            self,
            values=tuple(v for v in self.values if v in other.values),
            others=self.others and other.others,
            missing=self.missing and other.missing,
        )

    def words(self, number: Number = repr) -> str:
        return " or ".join(self.alternatives(number))

    def alternatives(self, number: Number = repr) -> list[str]:
        names = [one_line(v) for v in self.values]
        words = [f"in {{{', '.join(names)}}}" if len(names) > 1 else f"is {n}" for n in names[:1]]
        for flag, word in ((self.others, "other"), (self.missing, "missing")):
            words += [word if words else f"is {word}"] if flag else []
        return [f"{one_line(self.name)} {words[0] if words else 'is nothing'}", *words[1:]]

    def source(self) -> str:
        value = f"x[{self.name!r}]"
        if not self.others:
            text = f"{value} in {self.values!r}"
            return f"{text} or is_missing({value})" if self.missing else text
        refused = tuple(v for v in self.known if v not in self.values)
        text = f"{value} not in {refused!r}"  # which NaN, a missing value, is not either
        return text if self.missing else f"{text} and not is_missing({value})"


Condition = Range | OneOf


def narrowed(path: tuple[Condition, ...], condition: Condition) -> tuple[Condition, ...]:
    """A path's conditions, one a feature or combination, and one more: merged with its own."""
    by_key = {c.key: c for c in path}
    before: Any = by_key.get(condition.key)
    by_key[condition.key] = condition if before is None else before & condition
    return tuple(by_key.values())


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
