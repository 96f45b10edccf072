"""Encode, compiled. The specification is numpy.py in this folder."""

import numpy as np

from gpuforest.compiler.decorators import kernel
from gpuforest.compiler.types import I64, Codes2, I32s, I64s, Values, Values2
from gpuforest.kernels.shared.numba import U

ROWS = 128  # rows of a block; their values stay in cache while each feature in turn reads them
COARSE = 15  # edges that every value is compared with


@kernel
def encode(
    X: Values2, edges: Values, offsets: I64s, missing: I64, columns: Codes2, first: I64,
    x: Values, coarse: Values, code: I32s,
):  # fmt: skip
    """Write the codes of the rows of X to `columns` [F, N], from row `first` on.

    edges : in the dtype of X, see `BinEdges.rounded`
    x, coarse, code : scratch of ROWS, COARSE and ROWS numbers
    """
    (N, F), absent = X.shape, np.int32(missing)
    for begin in range(0, N, ROWS):
        n_rows = min(ROWS, N - begin)
        for f in range(F):
            ends = edges[offsets[f] : offsets[f + 1]]
            n, step = np.int32(len(ends)), np.int32(1)
            while (COARSE + 1) * step <= n:
                step *= np.int32(2)
            # 1. the number of edges below the value: first among every step-th edge, ...
            for j in range(COARSE):
                at = (j + 1) * step - 1
                coarse[j] = ends[at] if at < n else np.inf
            for i in range(n_rows):
                x[i] = X[begin + i, f]
            for i in range(n_rows):
                below = np.int32(0)
                for j in range(COARSE):
                    below += np.int32(coarse[j] < x[i])
                code[i] = below * step
            # ... then by halving; all rows take each step together, so that there is no
            # branch to mispredict
            step >>= np.int32(1)
            while step > 0:
                for i in range(n_rows):
                    probe = min(np.int32(code[i] + step), n)
                    code[i] = probe if ends[U(probe - np.int32(1))] < x[i] else code[i]
                step >>= np.int32(1)
            # 2. missing values
            for i in range(n_rows):
                columns[f, first + begin + i] = absent if x[i] != x[i] else code[i]
