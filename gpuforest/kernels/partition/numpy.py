"""Partition: the rows of each split slot, left side first."""

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.kernels.best_split.categories import has_code
from gpuforest.kernels.totals.numpy import slots_and_rows
from gpuforest.nodes import SET_BIN


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
    sets: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and weights i32[2 R] with the slots' rows moved, and rows that went left i64[S].

        half 0  | slot 0: 3 5 8 9 | 0 7 | slot 1: 1 4 |
        goes    |         R L R L |     |         L R |
        half 1  |  left 5 9 | 3 8 |     | left 1 | 4  |

    Each slot's rows move to the same place of the other half, those that go left first.
    The order of rows within a side is kept, so rows stay ascending and reads ordered.

    Parameters
    ----------
    codes : u8 or u16 [N, F]
    rows, weights : i32[2 R], two halves; a faster telling may change them in place
    begin, end : i64[S]
    feature, bin : i32[S]; of feature -1 nothing moves and nothing goes left
    missing_left : bool[S]
    missing : int, the code of a missing value
    sets : u64[S, W], of slots whose bin is SET_BIN the codes that go left, see nodes.py
    """
    half = len(rows) // 2
    slot, place = slots_and_rows(rows, begin, np.where(feature < 0, begin, end))
    # 1. which way each row goes
    code = codes[rows[place], feature[slot]]
    left = code <= bin[slot]
    if sets.size:
        code = np.minimum(code, 64 * sets.shape[1] - 1).astype(np.int64)  # a missing one may exceed
        in_set = has_code(xp, sets.reshape(-1), slot * sets.shape[1], code)
        left = np.where(bin[slot] == SET_BIN, in_set, left)
    left = np.where(codes[rows[place], feature[slot]] == missing, missing_left[slot], left)
    # 2. stable: by slot, left before right
    order = np.argsort(slot * 2 + ~left, kind="stable")
    new_place = np.where(place < half, place + half, place - half)
    new_rows, new_weights = rows.copy(), weights.copy()
    new_rows[new_place] = rows[place[order]]
    new_weights[new_place] = weights[place[order]]
    n_left = np.bincount(slot[left], minlength=len(begin)).astype(np.int64)
    return new_rows, new_weights, n_left
