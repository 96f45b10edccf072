"""Partition: the rows of each split slot, left side first."""

import numpy as np

from gpuforest.kernels.totals.numpy import slots_and_rows


def partition(
    codes: np.ndarray,
    rows: np.ndarray,
    weights: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    feature: np.ndarray,
    bin: np.ndarray,
    missing_left: np.ndarray,
    missing: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and weights i32[R'] of all children in turn, and rows that went left i64[S].

        rows    | slot 0: 3 5 8 9 | dropped leaf | slot 1: 1 4 |
        goes    |         R L R L |              |         L R |
        result  | 5 9 | 3 8 | 1 | 4 |                left 2, 1

    The order of rows within a side is kept, so rows stay ascending and reads ordered.

    Parameters
    ----------
    codes : u8 or u16 [N, F]
    rows, weights : i32[R]
    begin, end : i64[S]
    feature, bin : i32[S]
    missing_left : bool[S]
    missing : int, the code of a missing value
    """
    slot, place = slots_and_rows(rows, begin, end)
    # 1. which way each row goes
    code = codes[rows[place], feature[slot]]
    left = np.where(code == missing, missing_left[slot], code <= bin[slot])
    # 2. stable: by slot, left before right
    place = place[np.argsort(slot * 2 + ~left, kind="stable")]
    n_left = np.bincount(slot[left], minlength=len(begin)).astype(np.int64)
    return rows[place], weights[place], n_left
