"""Partition, compiled. The specification is numpy.py beside this file."""

from gpuforest.kernels.compile import kernel


@kernel
def partition(
    codes, rows, weights, begin, end, feature, bin, missing_left, missing,
    first, new_rows, new_weights, n_left,
):  # fmt: skip
    """Writes slot s to new_rows[first[s]:...] and its count of left rows to n_left[s]."""
    for s in range(len(begin)):
        f, cut, missing_goes = feature[s], bin[s], missing_left[s]
        # 1. how many go left: where the right side begins
        count = 0
        for i in range(begin[s], end[s]):
            code = codes[rows[i], f]
            count += missing_goes if code == missing else code <= cut
        # 2. each row behind the last of its side
        left, right = first[s], first[s] + count
        for i in range(begin[s], end[s]):
            code = codes[rows[i], f]
            if missing_goes if code == missing else code <= cut:
                new_rows[left], new_weights[left] = rows[i], weights[i]
                left += 1
            else:
                new_rows[right], new_weights[right] = rows[i], weights[i]
                right += 1
        n_left[s] = count
