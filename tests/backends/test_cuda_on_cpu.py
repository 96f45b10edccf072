"""CUDA C++ run on the CPU notices what a GPU would not forgive. That it does what a GPU would is
what the kernels show, which are run so."""

import functools
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cuda_on_cpu import build
from cuda_on_cpu.build import BuildError
from cuda_on_cpu.module import (
    Accesses,
    EmulatedModule,
    KernelError,
    Traffic,
    asked,
    thread_order,
    traffic,
)
from cuda_on_cpu.sanitizers import EXIT_CODE, available, default_kind, missing, sanitized
from paths import SUPPORT
from traced import aligned, unless_sanitized

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]

EXAMPLES = (Path(build.__file__).parent / "examples.cu").read_text()
Y = np.zeros(64, np.int32)
READ_ONLY = np.zeros(64, np.int32)
READ_ONLY.flags.writeable = False


@functools.cache
def module(kind=None):
    return EmulatedModule(EXAMPLES, kind=kind)


def run(name, grid, block, args, shared_mem=0):
    module().get_function(name)(grid, block, args, shared_mem=shared_mem)


@pytest.fixture(params=range(3), ids="order{}".format)
def order(request):
    """Some order of the threads."""
    with thread_order(request.param):
        yield


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((Y, Y), "2 arguments, not 3"), ((Y, READ_ONLY, 1), "argument 1 is a read-only array"),
        ((Y[::2], Y, 1), "argument 0 is an array that is not C-contiguous"),
        ((Y.astype(np.int64), Y, 1), "argument 0 is an array of int64 for pointer to int32"),
        ((Y, np.frombuffer(bytearray(9), np.int32, 2, 1), 1), "not aligned"),
        ((Y, 5, 1), "int for pointer"), ((Y, Y, np.int64(1)), "argument 2 is int64 for int32"),
        ((Y, Y, 1.0), "float for int32"), ((Y, Y, Y), "ndarray for int32"),
        ((Y, Y, 2**31), "2147483648 does not fit int32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(TypeError, match=f"^scan: .*{message}"):
        run("scan", (1,), (32,), args)
    for grid, block in (((0,), (32,)), ((1, 70000), (1,)), ((1,), (32, 33))):
        with pytest.raises(KernelError, match="scan"):
            run("scan", grid, block, (READ_ONLY, Y, 32))


def test_shared_memory_is_asked_for():
    kernel = EmulatedModule(EXAMPLES).get_function("read_past_shared")
    for limit, most in ((None, 48 << 10), (100 << 10, 100 << 10), (1 << 20, 227 << 10)):
        if limit is not None:
            kernel.max_dynamic_shared_size_bytes = limit
        kernel((1,), (64,), (Y, True), shared_mem=most)
        with pytest.raises(KernelError, match="bytes of shared memory"):
            kernel((1,), (64,), (Y, True), shared_mem=most + 1)


def test_what_cuda_would_not_compile():
    kernel = 'extern "C" __global__ void f(NUMBER* y) '
    with pytest.raises(BuildError, match="no atomicAdd of this type"):
        EmulatedModule(kernel + "{ atomicAdd(y, 1); }", ("-DNUMBER=long long",))
    with pytest.raises(BuildError, match="no min of an integer and a floating-point number"):
        EmulatedModule(kernel + "{ y[0] = min(1, y[1]); }", ("-DNUMBER=double",))
    with pytest.raises(ValueError, match="-use_fast_math"):
        EmulatedModule("", ("-use_fast_math",))
    with pytest.raises(AttributeError, match="no kernel neither in a text with scan"):
        EmulatedModule(EXAMPLES).get_function("neither")


FORBIDDEN = {
    "two_barriers": r"divergent barrier: __syncthreads in line \d+, while others wait in line",
    "left_before_barrier": "leaves the kernel while others wait|but [0-9]+ threads have left",
    "half_a_warp_waits": "deadlock in warp .* wait in __syncwarp for lanes 0000ffff",
    "a_warp_never_comes": "deadlock: 32 threads wait at barrier 1 for 64",
    "not_in_mask": "__shfl_sync: the calling lane is not in its mask 0000ffff",
    "other_calls": "(a vote|__shfl_sync) with mask .* wait in (a vote|__shfl_sync)",
    "lanes_beyond": "a vote: the mask ffffffff names lanes that the block has not",
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_is_forbidden_is_noticed(order, name):
    threads = 50 if name == "lanes_beyond" else 64
    y = np.zeros(128, np.int32)
    for _ in range(2):
        with pytest.raises(KernelError, match=f"^{name}: block .*({FORBIDDEN[name]})"):
            run(name, (2,), (threads,), (y, False))
        run(name, (2,), (threads,), (y, True))  # the engine goes on after errors
    run("scan", (1,), (128,), (np.ones_like(y), y, 128))
    assert np.array_equal(y, np.arange(1, 129))


@pytest.mark.skipif(default_kind() == "tsan", reason="ThreadSanitizer ends the program")
def test_a_missing_barrier_shows_in_some_order():
    wrong = 0
    for seed in range(8):
        with thread_order(seed):
            for careful in (True, False):
                y = np.zeros(64, np.int32)
                run("missing_barrier", (1,), (64,), (y, careful))
                right = np.array_equal(y, np.arange(64)[::-1])
                assert right or not careful
                wrong += not right
    assert wrong >= 4


def test_what_cuda_leaves_undefined_is_garbage(order):
    y = np.zeros((2, 3, 64), np.uint32)
    run("garbage", (3,), (64,), (y,), shared_mem=256)
    assert (y[0] == 0xCDCDCDCD).all()
    assert (y[1] == np.where(np.arange(64) & 16, 1, 0xCDCDCDCD)).all()


def test_a_text_is_built_once_for_each_text_of_its_headers(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "cache", lambda: tmp_path)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: build.build("int x;", build.COMMON, (), ""), range(3)))
    assert len(set(found)) == 1
    assert build.build("int x;", build.COMMON, (), "other headers") != found[0]
    text = '#include "one.cuh"\nextern "C" __global__ void put(TYPE* y) { y[0] = ONE; }'
    for one in (1, 2):
        (tmp_path / "one.cuh").write_text(f"#define ONE {one}")
        options, y = (f"-I{tmp_path}", "-DTYPE=short", "--std=c++17"), np.zeros(1, np.int16)
        EmulatedModule(text, options).get_function("put")((1,), (1,), (y,))
        assert y[0] == one


def make(mistake):
    """First the kernel without the mistake, then with it."""
    y = np.zeros(64, np.int32)
    for careful in (True, False):
        with thread_order(1):
            run(mistake, (1 + 4 * (mistake == "blocks_add"),), (64,), (y, careful), shared_mem=256)
        print("careful" if careful else "careless", flush=True)


MISTAKES = {
    "missing_barrier": ("tsan", "data race"),
    "blocks_add": ("tsan", "data race"),
    "write_past_global": ("asan", "heap-buffer-overflow.*WRITE of size 4"),
    "read_past_shared": ("asan", "heap-buffer-overflow.*READ of size 4"),
    "write_past_static": ("asan", "index 64 out of bounds"),
}


@unless_sanitized
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_sanitizer_names_the_line(mistake):
    kind, message = MISTAKES[mistake]
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    folders = [str(Path(__file__).parent), str(SUPPORT)]
    script = f"import sys; sys.path[:0] = {folders}; import {Path(__file__).stem} as tests"
    argv, how = ["-c", f"{script}; tests.make({mistake!r})"], {"capture_output": True, "text": True}
    done, reports = sanitized(kind, argv, timeout=120, **how)
    said = done.stderr + reports
    assert (done.returncode, done.stdout) == (EXIT_CODE, "careful\n"), said
    assert re.search(message, said, re.DOTALL), said
    kernel = re.search(rf'extern "C" __global__ void {mistake}.*?\n}}\n', EXAMPLES, re.DOTALL)
    lines = [EXAMPLES[: at(0)].count("\n") + 1 for at in (kernel.start, kernel.end)]
    line = int(re.search(rf" {mistake} .*kernels.cu:(\d+)", said)[1])
    assert lines[0] < line < lines[1]


# what kernels ask of memory, counted as a warp of a GPU would ask it: worked by hand

traced = pytest.mark.skipif(
    default_kind() != "plain" or available("traced") is not None, reason=str(available("traced"))
)


def asked_by(name, threads, *args, blocks=1, shared=0) -> Traffic:
    asked.pop(name, None)
    module("traced").get_function(name)((blocks,), (threads,), args, shared_mem=shared)
    return traffic(name)


def zeros(n: int, dtype=np.int32) -> np.ndarray:
    return aligned(np.zeros(n, dtype))


# four warps; lanes that read the same, neighbours, and what lies further and further apart
@traced
@pytest.mark.parametrize(
    ("stride", "sectors", "lines"), [(0, 1, 1), (1, 4, 2), (2, 8, 4), (8, 32, 16), (16, 32, 32)]
)
def test_sectors_of_global_memory(stride, sectors, lines):
    found = asked_by("strided", 64, zeros(128 * 16), zeros(128), np.int32(stride), blocks=2)
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


@traced
@pytest.mark.parametrize("meets", [False, True])
def test_a_sector_is_read_once_between_meetings(meets):
    gathers = asked_by("read_twice", 32, zeros(1024), zeros(32), meets).gathers
    assert (gathers.warps, gathers.parts) == (2, 64)
    assert gathers.sectors == gathers.lines == (64 if meets else 32)


@traced
@pytest.mark.parametrize("stride", [1, 2, 3, 32])
def test_bank_conflicts(stride):
    degree = np.gcd(stride, 32)
    found = asked_by("shared_stride", 32, zeros(32), np.int32(stride), shared=4096)
    assert found.shared_writes == Accesses(32, 1, degree, 1, degree, 1, 1)
    assert found.writes.lanes == 32


@traced
@pytest.mark.parametrize("equal", [1, 4, 32])
def test_atomics_on_one_address(equal):
    found = asked_by("add_cells", 32, zeros(256, np.uint32), np.int32(equal))
    assert found.shared_atomics == Accesses(32, 1, equal, 1, equal, equal, equal)
    cells = 32 // equal
    assert found.atomics == Accesses(32, 1, cells, 4, cells, equal, equal, cells, -(-cells // 2))
    assert found.shared_reads == Accesses(32, 1, 1, 1, 1, equal, equal)
