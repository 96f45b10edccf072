"""What gradients are computed from, and how they become integers."""

from __future__ import annotations

from typing import NamedTuple

from gpuforest.compiler.types import F64, I64

# the numbers of the losses, see boosting/losses.py
SQUARED, ABSOLUTE, QUANTILE, HUBER, COUNTS, GAMMA, BINARY, MULTICLASS = range(8)

MOST_STEP, MOST_GRADIENT = 1e304, 1e307  # beyond these a fit diverges; sums of some stay finite

REST_BITS = 62  # of sums of what rounding leaves of gradients, see numpy.py


class LossNumbers(NamedTuple):
    """A loss as kernels take it.

    number : int, see boosting/losses.py
    quantile : float, of the loss "quantile"
    delta : float, the largest residual that "huber" does not clip
    """

    number: I64
    quantile: F64
    delta: F64


class Units(NamedTuple):
    """How numbers become integers.

    g, h : float, powers of two by which gradients and hessians are multiplied
    n_bits : int, the bits of a word that count rows
    """

    g: F64
    h: F64
    n_bits: I64
