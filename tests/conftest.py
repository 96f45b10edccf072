"""Fixtures shared by all tests."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gpuforest.backends import get_backend
from gpuforest.backends.base import Backend

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"

has_numba = find_spec("numba") is not None and find_spec("gpuforest.backends.numba") is not None


@pytest.fixture(
    params=[
        "numpy",
        pytest.param("numba", marks=pytest.mark.skipif(not has_numba, reason="no numba here")),
    ]
)
def backend(request: pytest.FixtureRequest) -> str:
    """The name of each backend that runs on a CPU."""
    return str(request.param)


@pytest.fixture
def engine(backend: str) -> Backend:
    """The backend itself, on one thread."""
    return get_backend(backend)


@pytest.fixture(scope="module", params=["emulated", "GPU"])
def cuda(request: pytest.FixtureRequest) -> Any:
    """Each device of devices.py that is here; asked late, because the question initialises
    CUDA, and of a module, because Hypothesis takes no narrower ones."""
    from devices import DEVICES

    device = DEVICES[request.param]
    if (reason := device.why_not()) is not None:
        pytest.skip(reason)
    return device


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data sets beside the checkout."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the data sets are not in {SHARED_DATA}")
    return SHARED_DATA
