"""CUDA C++ run on the CPU notices what a GPU would not forgive. That it does what a GPU would is
what the kernels show, which are run so."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cuda_examples import EXAMPLES, run, unless_sanitized
from cuda_on_cpu import build
from cuda_on_cpu.build import BuildError
from cuda_on_cpu.module import EmulatedModule, KernelError, thread_order
from cuda_on_cpu.sanitizers import EXIT_CODE, available, default_kind, missing, sanitized
from paths import SUPPORT

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]

Y = np.zeros(64, np.int32)
READ_ONLY = np.zeros(64, np.int32)
READ_ONLY.flags.writeable = False


@pytest.fixture(params=range(3), ids="order{}".format)
def order(request):
    """Some order of the threads."""
    with thread_order(request.param):
        yield


# what it refuses


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((Y, Y), "2 arguments, not 3"),
        ((Y[::2], Y, 1), "argument 0 is an array that is not C-contiguous"),
        ((Y.astype(np.int64), Y, 1), "argument 0 is an array of int64 for pointer to int32"),
        ((Y, READ_ONLY, 1), "argument 1 is a read-only array"),
        ((Y, 5, 1), "int for pointer"),
        ((Y, np.frombuffer(bytearray(9), np.int32, 2, 1), 1), "not aligned"),
        ((Y, Y, np.int64(1)), "argument 2 is int64 for int32"),
        ((Y, Y, 1.0), "float for int32"),
        ((Y, Y, Y), "ndarray for int32"),
        ((Y, Y, 2**31), "2147483648 does not fit int32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
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


# what it shows


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


# what is built


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


# what sanitizers say


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
