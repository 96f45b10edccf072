"""Interaction constraints: which features may meet on a path of a boosted tree."""

from __future__ import annotations

from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np


def groups_of(wanted: Any, n_features: int) -> np.ndarray:
    """The sets of features that may meet on a path, bool[n, F]; bool[0, F]: all may.

    wanted : what a user passes as `interaction_cst`

    Raises
    ------
    ValueError : sets of something else than features
    """
    if wanted is None:
        return np.zeros((0, n_features), np.bool_)
    if isinstance(wanted, str):
        size = 1 if wanted == "no_interactions" else 2
        wanted = list(combinations(range(n_features), min(size, n_features)))
    try:
        groups = [set(group) for group in wanted]
    except TypeError:
        raise ValueError(
            f"Interaction constraints must be a sequence of tuples or lists, got: {wanted!r}."
        ) from None
    for group in groups:
        for x in group:
            if not (isinstance(x, Integral) and 0 <= int(x) < n_features):
                raise ValueError(
                    "Interaction constraints must consist of integer indices in"
                    f" [0, n_features - 1] = [0, {n_features - 1}], specifying the"
                    " position of features, got invalid indices:"
                    f" {group!r}"
                )
    if rest := set(range(n_features)).difference(*groups):
        groups.append(rest)
    found = np.zeros((len(groups), n_features), np.bool_)
    for row, group in zip(found, groups, strict=True):
        row[[int(x) for x in group]] = True
    return found
