"""The rule by which rows go left, one row at a time. The specification is numpy.py beside this
file."""

from gpuforest.compiler.decorators import device
from gpuforest.engine.nodes import SET_BIN
from gpuforest.kernels.shared.hashing.numba import U


@device
def has_code(sets, first, code):
    """Whether the set that begins at word `first` of `sets` has the code."""
    return (sets[U(first + (code >> 6))] >> U(code & 63)) & U(1) == U(1)


@device
def goes_left(code, split, missing, sets, first):
    """Whether a row goes left; `sets` is None if no feature is categorical."""
    if sets is not None and split.bin == SET_BIN and code != missing:
        return has_code(sets, first, code)
    return split.missing_left if code == missing else code <= split.bin
