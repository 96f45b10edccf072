"""Labels of rows beside the classes that a model knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpuforest.data.frames import listed


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of rows among all that occur or are known.

    names : [L], sorted: the classes of the model, and those of rows that it does not know
    known : i64[C], where among these the classes of the model are
    codes : i64[N], where the label of each row is
    """

    names: np.ndarray
    known: np.ndarray
    codes: np.ndarray

    def take(self, rows: np.ndarray) -> Labels:
        """Those of some rows."""
        return replace(self, codes=self.codes[rows])

    @property
    def unknown(self) -> np.ndarray:
        """Labels that the model does not know, i64[...]."""
        return np.setdiff1d(np.arange(len(self.names)), self.known)


def aligned(known: np.ndarray, y: Any) -> Labels:
    """Labels y [N] beside the classes of a model [C]. Only equal ones are the same class.

    Raises
    ------
    ValueError : no class that the model knows
    """
    y = np.asarray(y)
    if (known.dtype.kind in "OU") != (y.dtype.kind in "OU") or not np.isin(y, known).any():
        raise ValueError(
            f"the target holds {listed([str(v) for v in np.unique(y)])}, "
            f"and the model's classes are {listed([str(c) for c in known])}"
        )
    if known.dtype.kind in "OU":  # objects, because labels may be longer than the model's
        known, y = known.astype(object), y.astype(object)
    else:  # 1.0 is the class 1, and 1.5 is another
        same = y.astype(known.dtype)
        y = same if (same == y).all() else y
        known = known.astype(np.result_type(known, y))
    names, codes = np.unique(np.concatenate([known, y]), return_inverse=True)
    return Labels(names, codes[: len(known)], codes[len(known) :])
