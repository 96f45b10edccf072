"""Impurities of nodes, and what splits take off them, as plain functions.

Trees compute the same from integers (`engine/criteria.py`); these are for reading, checking by
hand and splits of any number of branches.

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

    Parameters
    ----------
    p : array-like of shape (..., n_classes)
        Proportions of the classes in each node.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : proportions that are negative or do not add up to 1

    Examples
    --------
    >>> from gpuforest.impurity import gini
    >>> gini([0.5, 0.5])
    0.5
    >>> gini([[1.0, 0.0], [0.25, 0.75]]).tolist()
    [0.0, 0.375]
    """
    p = _proportions(p)
    return _plain(1.0 - (p**2).sum(axis=-1))


def entropy(p: Any, base: float = 2) -> Any:
    """Entropy: by default the bits that the class of a row takes on average.

    Parameters
    ----------
    p : array-like of shape (..., n_classes)
        Proportions of the classes in each node.
    base : float > 0 other than 1, default=2
        Of the logarithm: 2 for bits, `math.e` for nats.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : proportions that are negative or do not add up to 1; a base that is none

    Examples
    --------
    >>> from gpuforest.impurity import entropy
    >>> entropy([0.5, 0.5])
    1.0
    >>> round(entropy([9 / 14, 5 / 14]), 3)  # playing tennis or not
    0.94
    """
    if not (0 < base < np.inf and base != 1):
        raise ValueError(f"base={base} must be positive and not 1: 2 gives bits")
    p = _proportions(p)
    from scipy.special import xlogy  # compiling kernels needs no SciPy

    return _plain(-xlogy(p, p).sum(axis=-1) / np.log(base) + 0.0)  # + 0.0: no minus zero


def misclassification(p: Any) -> Any:
    """Share of a node's rows that the most frequent class misses.

    Parameters
    ----------
    p : array-like of shape (..., n_classes)
        Proportions of the classes in each node.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : proportions that are negative or do not add up to 1

    Examples
    --------
    >>> from gpuforest.impurity import misclassification
    >>> misclassification([0.25, 0.75])
    0.25
    """
    return _plain(1.0 - _proportions(p).max(axis=-1))


def squared_error(y: Any) -> Any:
    """Variance of numbers: the mean squared deviation from their mean.

    Parameters
    ----------
    y : array-like of shape (..., n_samples)
        Targets of the rows of each node.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : no numbers

    Examples
    --------
    >>> from gpuforest.impurity import squared_error
    >>> squared_error([1.0, 2.0, 3.0, 6.0])
    3.5
    """
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 0 or y.size == 0:
        raise ValueError("y must hold at least one number of each node along its last axis")
    return _plain(y.var(axis=-1))


def information_gain(counts: Any, base: float = 2) -> Any:
    """Entropy that a split takes off.

    Parameters
    ----------
    counts : array-like of shape (..., n_branches, n_classes)
        Rows, or their weight, of each class in each branch; a branch may be empty.
    base : float > 0 other than 1, default=2
        Of the logarithm: 2 for bits, `math.e` for nats.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : counts of another shape, negative ones, no rows at all; a base that is none

    Examples
    --------
    Of 14 days nine are for tennis. Of the sunny ones two of five are, of the overcast ones four
    of four, of the rainy ones three of five (Quinlan 1986):

    >>> from gpuforest.impurity import information_gain
    >>> round(information_gain([[2, 3], [4, 0], [3, 2]]), 3)  # outlook
    0.247
    >>> round(information_gain([[3, 4], [6, 1]]), 3)  # humidity
    0.152
    """
    return _gain(_counts(counts), lambda p: entropy(p, base))


def gain_ratio(counts: Any) -> Any:
    """Information gain over the entropy of the branches' sizes, which many branches make large.

    Parameters
    ----------
    counts : array-like of shape (..., n_branches, n_classes)
        Rows, or their weight, of each class in each branch; a branch may be empty.

    Returns
    -------
    float, or float64 ndarray of shape (...)
        0 where all rows are in one branch: nothing was split.

    Raises
    ------
    ValueError : counts of another shape, negative ones, no rows at all

    Examples
    --------
    A split by outlook has three branches, which the gain of 0.247 does not see:

    >>> from gpuforest.impurity import gain_ratio
    >>> round(gain_ratio([[2, 3], [4, 0], [3, 2]]), 3)
    0.156
    """
    counts = _counts(counts)
    sizes = counts.sum(axis=-1)
    split = np.asarray(entropy(sizes / sizes.sum(axis=-1, keepdims=True)))
    gain = np.asarray(_gain(counts, entropy))
    return _plain(np.divide(gain, split, out=np.zeros_like(gain), where=split > 0))


def gini_gain(counts: Any) -> Any:
    """Gini impurity that a split takes off.

    Parameters
    ----------
    counts : array-like of shape (..., n_branches, n_classes)
        Rows, or their weight, of each class in each branch; a branch may be empty.

    Returns
    -------
    float, or float64 ndarray of shape (...)

    Raises
    ------
    ValueError : counts of another shape, negative ones, no rows at all

    Examples
    --------
    >>> from gpuforest.impurity import gini_gain
    >>> gini_gain([[4, 0], [0, 4]])  # of two pure branches: all that was there
    0.5
    """
    return _gain(_counts(counts), gini)


def _gain(counts: np.ndarray, impurity: Callable[[np.ndarray], Any]) -> Any:
    """Impurity before a split minus the mean of the branches, weighted by their sizes."""
    sizes, whole = counts.sum(axis=-1, keepdims=True), counts.sum(axis=-2, keepdims=True)
    total = sizes.sum(axis=-2, keepdims=True)
    # an empty branch weighs nothing, so that any proportions do
    p = np.where(sizes > 0, counts / np.where(sizes > 0, sizes, 1.0), whole / total)
    after = (np.asarray(impurity(p)) * (sizes / total)[..., 0]).sum(axis=-1)
    before = np.asarray(impurity((whole / total)[..., 0, :]))
    return _plain(np.maximum(before - after, 0.0))  # never negative but by rounding


def _proportions(given: Any) -> np.ndarray:
    p: np.ndarray = np.asarray(given, dtype=np.float64)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ValueError("p must hold the proportions of one class at least along its last axis")
    if not (p >= 0).all():
        raise ValueError(f"proportions must be 0 or more, but the least is {p.min()}")
    off = np.abs(p.sum(axis=-1) - 1.0)
    if (off > SUM_TOLERANCE).any():
        raise ValueError(
            f"proportions must add up to 1, but a sum is {p.sum(axis=-1).flat[off.argmax()]}: "
            "divide counts by their sum"
        )
    return p


def _counts(given: Any) -> np.ndarray:
    counts: np.ndarray = np.asarray(given, dtype=np.float64)
    if counts.ndim < 2:
        raise ValueError(
            f"counts must have the shape (n_branches, n_classes), but theirs is {counts.shape}"
        )
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError("counts must be finite and 0 or more")
    if not counts.sum(axis=(-2, -1)).all():
        raise ValueError("counts of a split are all 0: it needs at least one row")
    return counts


def _plain(found: Any) -> Any:
    """A Python float where there is one number only, so that it prints as one."""
    return float(found) if np.ndim(found) == 0 else found
