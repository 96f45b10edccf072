"""polars or, where it is not installed, a stand-in: tests that use it are skipped."""

import os
from typing import Any

import pytest


class Absent:
    """Has every attribute, and each is the object itself; a running test that asks is skipped."""

    __module__ = "polars"

    def __getattr__(self, name: str) -> "Absent":
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip("needs pip install 'gpuforest[checks]'")
        return self

    def __call__(self, *arguments: Any, **more: Any) -> "Absent":
        return self


try:
    import polars
except ImportError:
    polars: Any = Absent()
