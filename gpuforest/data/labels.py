"""What rows have besides X."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OF_ROWS = ("y", "sample_weight", "groups", "blocks")  # what rows have besides X


@dataclass(frozen=True, eq=False)
class Labels:
    """Class labels of rows."""

    codes: np.ndarray  # i32[N], positions in `classes`
    classes: np.ndarray  # the sorted labels

    def __len__(self) -> int:
        return len(self.codes)
