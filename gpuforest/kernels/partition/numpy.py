"""Partition: the rows of each split slot, left side first."""

from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest.core.frontier import Data, Frontier, Splits
from gpuforest.kernels.shared.numpy import goes_left
from gpuforest.kernels.shared.records import Split
from gpuforest.kernels.totals.numpy import slots_and_rows


def partition(
    data: Data, slots: Frontier, splits: Splits
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and weights i32[2 R] with the slots' rows moved, and how many went left i64[S].

        half 0  | slot 0: 3 5 8 9 | 0 7 | slot 1: 1 4 |
        goes    |         R L R L |     |         L R |
        half 1  |  left 5 9 | 3 8 |     | left 1 | 4  |

    Each slot's rows move to the same positions of the other half, left ones first. The rows of a
    slot with the feature -1 do not move. Rows keep their order within a side, so they stay
    ascending. A faster implementation may change rows and weights in place.
    """
    rows, begin, half, n_words = slots.rows, slots.begin, len(slots.rows) // 2, splits.sets.shape[1]
    end: Any = np.where(splits.feature < 0, begin, slots.end)
    slot, position = slots_and_rows(begin, end)
    # 1. which side each row goes to
    code = data.codes[rows[position], splits.feature[slot]]
    split = Split(None, None, splits.bin[slot], splits.missing_left[slot], None)
    left = goes_left(xp, code, split, data.n_codes - 1, splits.sets.reshape(-1), slot * n_words)
    # 2. stable: by slot, left before right
    order = np.argsort(slot * 2 + ~left, kind="stable")
    other = np.where(position < half, position + half, position - half)
    new_rows, new_weights = rows.copy(), slots.weights.copy()
    new_rows[other] = rows[position[order]]
    new_weights[other] = slots.weights[position[order]]
    n_left = np.bincount(slot[left], minlength=len(begin)).astype(np.int64)
    return new_rows, new_weights, n_left
