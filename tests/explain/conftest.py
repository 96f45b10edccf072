"""Behaviour is tested on one backend; tests of parity and the record compare backends."""

import pytest


@pytest.fixture
def backend() -> str:
    """The backend that is compiled for the CPU."""
    return "numba"
