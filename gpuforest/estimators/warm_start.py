"""Whether trees can be added to those of an earlier fit."""

from __future__ import annotations

import numpy as np

from gpuforest.engine.binning import BinEdges
from gpuforest.engine.forest import Forest
from gpuforest.engine.target import TargetCoding


def check_same(earlier: Forest, edges: BinEdges, coding: TargetCoding) -> None:
    """Check that new trees can join those of an earlier fit: all trees of a forest share its
    bins, classes and fixed point.

    Raises
    ------
    ValueError : they cannot
    """
    same = earlier.edges.categories == edges.categories
    same &= earlier.coding.scale == coding.scale and all(
        np.array_equal(a, b)
        for a, b in (
            (earlier.edges.values, edges.values),
            (earlier.edges.offsets, edges.offsets),
            (earlier.edges.kinds, edges.kinds),
            (earlier.coding.centre, coding.centre),
        )
    )
    before, now = ([k.classes, *k.several] for k in (earlier.coding, coding))
    same &= len(before) == len(now)
    same = same and all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))  # type: ignore[arg-type]
    if not same:
        raise ValueError(
            "warm_start=True adds trees from the same data, weights and parameters: X or y has "
            "other values now. Fit anew with warm_start=False"
        )
