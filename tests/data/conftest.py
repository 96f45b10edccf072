"""Fixtures of the tests of data."""

from collections.abc import Callable
from types import ModuleType

import fake_cupy
import pytest

from gpuforest.data import files


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes an engine the only one that is installed."""

    def hide(name: str) -> None:
        monkeypatch.setattr(files, "find_spec", lambda other: object() if other == name else None)

    return hide


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Stands in for CuPy; where another library, or how often something is copied, matters."""
    fake_cupy.install(monkeypatch)
    return fake_cupy
