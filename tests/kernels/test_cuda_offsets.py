"""Offsets of elements are 64-bit on the device: more cells than an int can count."""

import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from far_rows import check_levels_and_partitions, check_subtrees, far_rows, far_training

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(scope="module")
def far():
    return far_rows("C")


def test_levels_and_partitions(far):
    check_levels_and_partitions(far, EmulatedBackend(), 8)


@pytest.mark.parametrize("deep", ["codes in shared memory", "codes where they are"])
def test_subtrees(far, deep):
    limit = 227 << 10 if deep == "codes in shared memory" else 16 << 10
    backend = EmulatedBackend(shared_limit=limit)
    plan = backend.deep_plan(far_training(*far[:2], 8))
    assert (plan.layout.stride > 0) == (deep == "codes in shared memory")
    assert plan.rows >= 130
    check_subtrees(far, backend, 8)
