"""Impurities of nodes, and the decrease of impurity by splits, as plain functions.

Trees compute the same from integers (`core/criteria.py`); these are for reading, checking by
hand and splits of any number of branches. Proportions `p` have the shape (..., n_classes) and add
up to 1. Counts of a split (rows of each class in each branch, or their weight; a branch may be
empty) have the shape (..., n_branches, n_classes). All functions return a float, or a float64
ndarray of shape (...), and raise ValueError for input of another kind.

==================  ==========================================  =============================
function            of proportions p, or of numbers y           source
==================  ==========================================  =============================
gini                1 - sum_c p_c^2                             Breiman et al. 1984, 4.3
entropy             - sum_c p_c log p_c                         Quinlan 1986
misclassification   1 - max_c p_c                               Breiman et al. 1984, 4.2
squared_error       mean (y - mean y)^2                         Breiman et al. 1984, 8.3
information_gain    entropy before a split minus after it       Quinlan 1986
gain_ratio          the same over the entropy of branch sizes   Quinlan 1993, 2.2
gini_gain           Gini impurity before a split minus after    Breiman et al. 1984, 4.3
==================  ==========================================  =============================

Examples
--------
Of 14 days nine are for tennis. Of the sunny ones two of five are, of the overcast ones four of
four, of the rainy ones three of five (Quinlan 1986):

>>> from gpuforest.impurity import *
>>> round(entropy([9 / 14, 5 / 14]), 3)
0.94
>>> outlook, humidity = [[2, 3], [4, 0], [3, 2]], [[3, 4], [6, 1]]
>>> round(information_gain(outlook), 3), round(information_gain(humidity), 3)
(0.247, 0.152)
>>> round(gain_ratio(outlook), 3)  # it has three branches, which the gain does not see
0.156
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SUM_TOLERANCE = 1e-6  # of proportions, which may have been rounded to float32

__all__ = [
    "entropy",
    "gain_ratio",
    "gini",
    "gini_gain",
    "information_gain",
    "misclassification",
    "squared_error",
]


def gini(p: Any) -> Any:
    """Gini impurity: how likely two rows, drawn with replacement, are of different classes.

    >>> gini([0.5, 0.5])
    0.5
    >>> gini([[1.0, 0.0], [0.25, 0.75]]).tolist()
    [0.0, 0.375]
    """
    return _plain(1.0 - (_proportions(p) ** 2).sum(axis=-1))


def entropy(p: Any, base: float = 2) -> Any:
    """Entropy: the information that the class of a row holds on average, in bits by default.

    `base`, of the logarithm, is positive and not 1: 2 for bits, `math.e` for nats.

    >>> entropy([0.5, 0.5])
    1.0
    """
    if not (0 < base < np.inf and base != 1):
        raise ValueError(f"base={base} must be positive and not 1: 2 gives bits")
    p = _proportions(p)
    from scipy.special import xlogy  # compiling kernels needs no SciPy

    return _plain(-xlogy(p, p).sum(axis=-1) / np.log(base) + 0.0)  # + 0.0: no minus zero


def misclassification(p: Any) -> Any:
    """Share of a node's rows that are not of the most frequent class.

    >>> misclassification([0.25, 0.75])
    0.25
    """
    return _plain(1.0 - _proportions(p).max(axis=-1))


def squared_error(y: Any) -> Any:
    """Variance of numbers (..., n_samples): the mean squared deviation from their mean.

    >>> squared_error([1.0, 2.0, 3.0, 6.0])
    3.5
    """
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 0 or y.size == 0:
        raise ValueError("y must hold at least one number of each node along its last axis")
    return _plain(y.var(axis=-1))


def information_gain(counts: Any, base: float = 2) -> Any:
    """Decrease of entropy by a split, from its counts; for `base` see `entropy`."""
    return _gain(_counts(counts), lambda p: entropy(p, base))


def gain_ratio(counts: Any) -> Any:
    """Information gain over the entropy of the branches' sizes, which many branches make large.

    It is 0 where all rows are in one branch: nothing was split.
    """
    counts = _counts(counts)
    sizes = counts.sum(axis=-1)
    split = np.asarray(entropy(sizes / sizes.sum(axis=-1, keepdims=True)))
    gain = np.asarray(_gain(counts, entropy))
    return _plain(np.divide(gain, split, out=np.zeros_like(gain), where=split > 0))


def gini_gain(counts: Any) -> Any:
    """Decrease of Gini impurity by a split, from its counts.

    >>> gini_gain([[4, 0], [0, 4]])  # two pure branches leave no impurity
    0.5
    """
    return _gain(_counts(counts), gini)


def _gain(counts: np.ndarray, impurity: Callable[[np.ndarray], Any]) -> Any:
    """Impurity before a split minus the mean of the branches, weighted by their sizes."""
    sizes, whole = counts.sum(axis=-1, keepdims=True), counts.sum(axis=-2, keepdims=True)
    total = sizes.sum(axis=-2, keepdims=True)
    # an empty branch has no weight, so that any proportions do
    p = np.where(sizes > 0, counts / np.where(sizes > 0, sizes, 1.0), whole / total)
    after = (np.asarray(impurity(p)) * (sizes / total)[..., 0]).sum(axis=-1)
    before = np.asarray(impurity((whole / total)[..., 0, :]))
    return _plain(np.maximum(before - after, 0.0))  # rounding alone makes it negative


def _proportions(p: Any) -> np.ndarray:
    p = np.asarray(p, dtype=np.float64)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ValueError("p must hold the proportions of one class at least along its last axis")
    if not (p >= 0).all():
        raise ValueError(f"proportions must be 0 or more, but the least is {p.min()}")
    total = p.sum(axis=-1)
    worst = np.abs(total - 1.0).argmax()
    if abs(total.flat[worst] - 1.0) > SUM_TOLERANCE:
        raise ValueError(
            f"proportions must add up to 1, but a sum is {total.flat[worst]}: "
            "divide counts by their sum"
        )
    return p  # type: ignore[no-any-return]


def _counts(counts: Any) -> np.ndarray:
    counts = np.asarray(counts, dtype=np.float64)
    if counts.ndim < 2:
        raise ValueError(
            f"counts must have the shape (n_branches, n_classes), but theirs is {counts.shape}"
        )
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError("counts must be finite and 0 or more")
    if not counts.sum(axis=(-2, -1)).all():
        raise ValueError("counts of a split are all 0: it needs at least one row")
    return counts  # type: ignore[no-any-return]


def _plain(values: Any) -> Any:
    """A Python float where there is one number only, so that it prints as one."""
    return float(values) if np.ndim(values) == 0 else values
