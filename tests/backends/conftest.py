"""Fixtures of the tests of backends."""

from collections.abc import Iterator

import pytest


@pytest.fixture(params=range(3), ids="order{}".format)
def order(request: pytest.FixtureRequest) -> Iterator[int]:
    """Some order of the threads of CUDA kernels that run on the CPU."""
    from cuda_on_cpu.module import thread_order

    with thread_order(request.param):
        yield request.param
