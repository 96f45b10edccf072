"""Histograms on a CUDA device: their cells, and the memory that they take."""

from __future__ import annotations

from typing import Any

from gpuforest.engine.training import Training
from gpuforest.kernels.shared import structs
from gpuforest.kernels.shared.constants import GROUP_FEATURES

Array = Any


def cell_type(xp: Any, training: Training) -> Any:
    """The dtype of a cell, SUM in kernels. The weights of classes add up to less than 2**31."""
    return xp.int32 if training.target.coding.is_classes else xp.int64


def histograms_of(training: Training, hist: Array) -> structs.Histograms:
    S, k, B, channels = hist.shape
    return structs.Histograms(hist, S, k, B, training.n_channels, channels)


def slot_bytes(training: Training) -> int:
    """Bytes of a slot's histograms, and of what else its search takes."""
    k, cell = training.rules.n_tried, 4 if training.target.coding.is_classes else 8
    cells = training.n_codes * training.hist_channels
    # a score, a cut and a feature's number; and whether each feature varies
    return k * (cell * cells + 16) + 4 * training.n_features


def histogram_group(training: Training, k: int, share: int, most: int) -> tuple[int, int, int]:
    """How many of k histograms a block holds, 0: not even one; 32-bit words of a bin; bytes of a
    histogram.

    share, most : bytes of a block's memory of which two fit a multiprocessor, and of a block at
        the most
    """
    C, is_classes = training.n_channels, training.target.coding.is_classes
    # a word for a class, the weight or the count, two for a moment
    words = (C if is_classes else 2 * C - 1) + training.rules.count_rows
    size = 4 * training.n_codes * words
    # two blocks on a multiprocessor at once, if one feature fits half of its memory
    group = min(k, GROUP_FEATURES, (share if size <= share else most) // size)
    return -(-k // -(-k // group)) if group else 0, words, size  # groups of about one size
