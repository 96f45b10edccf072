"""How often each value of a categorical column occurs, and which values become categories.

A table that comes in blocks has a tally for each block, and their sum is that of the whole column.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuforest.engine.binning import MAX_CATEGORIES

ALWAYS_KEPT = 10  # so many categories of a feature, or fewer, are all listed
IDENTIFIER = 0.9  # a column of more different values a row is taken for an identifier


@dataclass(frozen=True, eq=False)
class Tally:
    """The values of a column.

    values : the distinct ones, as plain Python values
    rows : f64[n], the rows of positive weight that hold each
    weights : f64[n], their total weight
    whole : whether all weights are whole numbers
    order : all values that the column's dtype lists, in its order; None: there is no such list, or
        blocks have different ones
    """

    values: list[Any]
    rows: np.ndarray
    weights: np.ndarray
    whole: bool
    order: tuple[Any, ...] | None

    @classmethod
    def of(
        cls,
        codes: np.ndarray,
        values: list[Any],
        order: tuple[Any, ...] | None,
        weights: np.ndarray | None,
    ) -> Tally:
        """That of codes int[N], positions in `values`, where -1 means missing; and of the rows'
        weights f64[N], or None: all are one."""

        def each(of_rows: np.ndarray | None) -> np.ndarray:
            found = np.bincount(codes + 1, of_rows, len(values) + 1)[1:]
            return found.astype(np.float64)

        if weights is None:
            return cls(values, rows := each(None), rows, True, order)
        whole = bool((weights == np.floor(weights)).all())
        return cls(values, each((weights != 0) * 1.0), each(weights), whole, order)

    def __add__(self, other: Tally) -> Tally:
        """That of both columns, one below the other."""
        position = {value: i for i, value in enumerate(self.values)}
        moved = [position.setdefault(value, len(position)) for value in other.values]

        def both(own: np.ndarray, others: np.ndarray) -> np.ndarray:
            total = np.zeros(len(position))
            total[: len(own)] = own
            total[moved] += others
            return total

        return Tally(
            list(position),
            both(self.rows, other.rows),
            both(self.weights, other.weights),
            self.whole and other.whole,
            self.order if self.order == other.order else None,
        )

    def categories(self, name: str, fewest: int) -> tuple[Any, ...]:
        """The categories of the feature: sorted, or in the order of the dtype.

        Parameters
        ----------
        name : what the column is called in messages
        fewest : rows of a category, where there are more than `ALWAYS_KEPT`; those of fewer rows
            are not listed, and never those whose rows all have the weight zero. A row counts as
            often as its weight says, if all weights are whole numbers, else once

        Raises
        ------
        ValueError : too many, or strings among numbers

        Warns
        -----
        UserWarning : the column looks like one of identifiers
        """
        if len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError(
                f"{name} mixes strings and numbers as categories: make all of them strings"
            )
        counts = self.weights if self.whole else self.rows
        different = int(np.count_nonzero(counts))
        least = max(fewest, 1) if different > ALWAYS_KEPT else 1
        values = [value for value, n in zip(self.values, counts, strict=True) if n >= least]
        if len(values) > MAX_CATEGORIES:
            raise ValueError(
                f"{name} has {len(values)} categories; at most {MAX_CATEGORIES} are supported: "
                "raise min_category_frequency, or drop it"
            )
        _warn_of_identifiers(different, int(self.rows.sum()), name)
        return tuple(sorted(values, key=self._place))

    @property
    def _place(self) -> Any:
        """The key by which values are sorted."""
        if self.order is None:
            return None
        return {value: i for i, value in enumerate(self.order)}.__getitem__


def total(tallies: Sequence[Tally]) -> Tally:
    """That of all columns, one below the other; a column without values says nothing about the
    order."""
    some = [tally for tally in tallies if tally.values] or tallies[:1]
    return sum(some[1:], some[0])


def _warn_of_identifiers(different: int, n: int, name: str) -> None:
    if different > max(ALWAYS_KEPT, IDENTIFIER * n):
        warnings.warn(
            f"{name} has {different:,} different values in {n:,} rows: as categories, identifiers "
            "and dates teach nothing. Drop the column, or make numbers of it (of a date the "
            "year, month or weekday)",
            UserWarning,
            stacklevel=2,
        )
