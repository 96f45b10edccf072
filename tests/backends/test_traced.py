"""What kernels ask of memory is counted as a warp of a GPU would ask it: worked by hand."""

import functools

import numpy as np
import pytest
from cuda_examples import EXAMPLES, unless_sanitized
from cuda_on_cpu.module import Accesses, EmulatedModule, Traffic, asked, available, traffic
from traced import aligned

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available("traced") is not None, reason=str(available("traced"))),
    unless_sanitized,
]


@functools.cache
def module() -> EmulatedModule:
    return EmulatedModule(EXAMPLES, kind="traced")


def run(name, threads, *args, blocks=1, shared=0) -> Traffic:
    asked.pop(name, None)
    module().get_function(name)((blocks,), (threads,), args, shared_mem=shared)
    return traffic(name)


def zeros(n: int, dtype=np.int32) -> np.ndarray:
    return aligned(np.zeros(n, dtype))


# four warps; lanes that read the same, neighbours, and what lies further and further apart
@pytest.mark.parametrize(
    ("stride", "sectors", "lines"), [(0, 1, 1), (1, 4, 2), (2, 8, 4), (8, 32, 16), (16, 32, 32)]
)
def test_sectors_of_global_memory(stride, sectors, lines):
    found = run("strided", 64, zeros(128 * 16), zeros(128), np.int32(stride), blocks=2)
    reads, others = found.reads, found.gathers
    if sectors > 16:  # more than half as many as there are lanes
        reads, others = others, reads
    assert others == Accesses()
    same = 32 if stride == 0 else 1
    assert reads == Accesses(
        128, 4, 4 * sectors, 16, sectors, 4 * same, same, 4 * sectors, 4 * lines
    )
    assert found.writes == Accesses(128, 4, 16, 16, 4, 4, 1, 16, 8)
    assert found.warps == 8


@pytest.mark.parametrize("meets", [False, True])
def test_a_sector_is_read_once_between_meetings(meets):
    gathers = run("read_twice", 32, zeros(1024), zeros(32), meets).gathers
    assert (gathers.warps, gathers.parts) == (2, 64)
    assert gathers.sectors == gathers.lines == (64 if meets else 32)


@pytest.mark.parametrize("stride", [1, 2, 3, 32])
def test_bank_conflicts(stride):
    degree = np.gcd(stride, 32)
    found = run("shared_stride", 32, zeros(32), np.int32(stride), shared=4096)
    assert found.shared_writes == Accesses(32, 1, degree, 1, degree, 1, 1)
    assert found.writes.lanes == 32


@pytest.mark.parametrize("equal", [1, 4, 32])
def test_atomics_on_one_address(equal):
    found = run("add_cells", 32, zeros(256, np.uint32), np.int32(equal))
    assert found.shared_atomics == Accesses(32, 1, equal, 1, equal, equal, equal)
    cells = 32 // equal
    assert found.atomics == Accesses(32, 1, cells, 4, cells, equal, equal, cells, -(-cells // 2))
    assert found.shared_reads == Accesses(32, 1, 1, 1, 1, equal, equal)
