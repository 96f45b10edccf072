"""Long lists of parameters, of which most wait for deep runs."""

from collections.abc import Sequence
from typing import Any

import pytest


def swept(n: int, values: Sequence[Any]) -> list[Any]:
    """Parameters of a test, or tuples of several: the first n always, the others in deep runs."""
    several = [value if isinstance(value, tuple) else (value,) for value in values[n:]]
    return [*values[:n], *(pytest.param(*these, marks=pytest.mark.deep) for these in several)]
