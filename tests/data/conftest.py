"""Fixtures of the tests of data."""

from types import ModuleType

import fake_cupy
import pytest


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Stands in for CuPy; where another library, or how often something is copied, matters."""
    fake_cupy.install(monkeypatch)
    return fake_cupy
