"""CUDA C++ run on the CPU does what a GPU would, and notices what a GPU would not forgive."""

import ctypes
import functools
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cuda_on_cpu import build
from cuda_on_cpu.module import (
    BuildError,
    EmulatedModule,
    KernelError,
    available,
    launches,
    thread_order,
)
from cuda_on_cpu.sanitizers import EXIT_CODE, default_kind, missing, sanitized

EXAMPLES = (Path(build.__file__).parent / "examples.cu").read_text()
# each way to shuffle, in segments of `width` lanes: y[4, threads]
SHUFFLES = """
#define ALL 0xffffffffu
extern "C" __global__ void shuffles(const NUMBER* x, NUMBER* y, int by, int width) {
    const unsigned t = threadIdx.x, n = blockDim.x;
    y[t] = __shfl_sync(ALL, x[t], by, width);
    y[n + t] = __shfl_up_sync(ALL, x[t], by, width);
    y[2 * n + t] = __shfl_down_sync(ALL, x[t], by, width);
    y[3 * n + t] = __shfl_xor_sync(ALL, x[t], by, width);
}
"""
TYPES = {
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}
SEEDS = range(3)

pytestmark = pytest.mark.skipif(available() is not None, reason=str(available()))
unless_sanitized = pytest.mark.skipif(default_kind() != "plain", reason="starts other programs")


@functools.cache
def module() -> EmulatedModule:
    return EmulatedModule(EXAMPLES)


def run(name, grid, block, args, shared_mem=0):
    module().get_function(name)(grid, block, args, shared_mem=shared_mem)


@pytest.fixture(params=SEEDS, ids="order{}".format)
def order(request):
    """Some order of the threads."""
    with thread_order(request.param):
        yield request.param


# ---- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 33, 64, 1000, 1024])
def test_scan(order, n):
    x = np.random.default_rng(n).integers(-9, 9, n, dtype=np.int32)
    y = np.full_like(x, 77)
    run("scan", (1,), (-(-max(n, 1) // 32) * 32,), (x, y, n))
    assert np.array_equal(y, np.cumsum(x))


@pytest.mark.parametrize("number", TYPES)
def test_shuffles(order, number):
    threads = 64
    bits = np.random.default_rng(0).integers(0, 2**64, threads, dtype=np.uint64)
    x = np.ascontiguousarray(bits.view(TYPES[number])[:threads])
    lanes = np.arange(threads)
    kernel = EmulatedModule(SHUFFLES, (f"-DNUMBER={number}",)).get_function("shuffles")
    for by, width in [(1, 32), (5, 8), (16, 16), (31, 32), (3, 1), (0, 4)]:
        first = lanes // width * width
        sources = [
            first + by % width,
            np.where(lanes - by >= first, lanes - by, lanes),
            np.where(lanes + by < first + width, lanes + by, lanes),
            np.where((lanes ^ by) < first + width, lanes ^ by, lanes),
        ]
        y = np.zeros((4, threads), x.dtype)
        kernel((1,), (threads,), (x, y, by, width))
        word = f"u{x.itemsize}"  # numbers may be NaN
        assert np.array_equal(y.view(word), x.view(word)[np.stack(sources)])


def test_votes(order):
    threads = 96
    x = np.random.default_rng(1).integers(-9, 10, threads, dtype=np.int32)
    y = np.zeros((10, threads), np.uint32)
    run("votes", (1,), (threads,), (x, y))
    for w, lanes in enumerate(np.split(x, threads // 32)):
        mask = [int(sum(1 << i for i in np.flatnonzero(lanes == lane))) for lane in lanes]
        unsigned = lanes.view(np.uint32)
        expected = [
            sum(1 << int(i) for i in np.flatnonzero(lanes > 0)),
            int(lanes.max() > 8),
            int(lanes.min() > -9),
            mask,
            lanes.sum().astype(np.uint32),
            lanes.min().view(np.uint32),
            lanes.max().view(np.uint32),
            unsigned.min(),
            np.bitwise_or.reduce(unsigned),
            np.bitwise_xor.reduce(unsigned),
        ]
        for row, value in zip(y[:, 32 * w : 32 * w + 32], expected, strict=True):
            assert np.array_equal(row, np.broadcast_to(np.array(value, np.uint32), 32))


def test_groups_within_a_warp_keep_their_own_pace(order):
    rng = np.random.default_rng(2)
    keys, x = rng.integers(0, 6, (2, 128), dtype=np.int32)
    y = np.zeros_like(x)
    run("groups", (1,), (128,), (keys, x, y))
    warps = np.arange(128) // 32
    same = (warps[:, None] == warps) & (keys[:, None] == keys)
    assert np.array_equal(y, same @ x)


def test_barriers_that_count(order):
    x = np.random.default_rng(3).integers(1, 4, 80, dtype=np.int32)
    y = np.zeros((3, 3, 80), np.int32)
    run("barriers", (1,), (80,), (x, y))
    for level in range(3):
        above = x > level
        expected = np.array([above.sum(), above.any(), above.all()])
        assert np.array_equal(y[level], np.broadcast_to(expected[:, None], (3, 80)))


@pytest.mark.parametrize("n_blocks", [1, 5])
def test_histogram(order, n_blocks):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 50, 1000, dtype=np.uint8)
    values = rng.integers(0, 2**40, 1000, dtype=np.uint64)
    out = np.zeros(50, np.uint64)
    run("histogram", (n_blocks,), (128,), (codes, values, out, 1000, 50), shared_mem=8 * 50)
    expected = np.zeros(50, np.uint64)
    np.add.at(expected, codes, values)
    assert np.array_equal(out, expected)


def test_grids_and_blocks_of_three_dimensions(order):
    y = np.zeros((4 * 3 * 2, 5 * 2 * 3), np.int32)
    run("places", (4, 3, 2), (5, 2, 3), (y,))
    assert np.array_equal(y, 1000 * np.arange(24)[:, None] + np.arange(30))


def test_whole_warps_may_leave(order):
    y = np.zeros((2, 128), np.int32)
    run("early_exit", (2,), (128,), (y, 3))
    sums = np.arange(128).reshape(4, 32).sum(1).repeat(32)
    assert (y == np.where(np.arange(128) < 96, sums, 0)).all()


def test_atomics(order):
    x = np.random.default_rng(5).integers(-20, 20, 4 * 64, dtype=np.int32)
    x[17] = 7
    y, z = np.zeros(5, np.int32), np.array([0, 0, 2**32 - 1, 0], np.uint32)
    w, d = np.array([0, 2**63, 0, 0], np.uint64), np.zeros(1)
    run("atomics", (4,), (64,), (x, y, z, w, d))
    assert y.tolist() == [x.sum(), x.min(), x.max(), -x.sum(), 7]
    bits = np.uint32(1) << (x & 31).astype(np.uint32)
    seen = np.bitwise_or.reduce(bits)
    assert z.tolist() == [int(x.sum()) % 2**32, seen, ~seen, np.bitwise_xor.reduce(bits)]
    wide = x.astype(np.int64)
    least = (wide + 1000).min()
    assert w.tolist() == [wide.view(np.uint64).max(), least, wide.sum().view("u8"), (x**2).max()]
    assert d[0] == x.sum()


def test_arithmetic():
    x = np.array([1 + 2**-30, 1 - 2**-30, -1.0, np.nan])
    y, z = np.zeros(7), np.zeros(6, np.uint64)
    a, b = 0x0123456789ABCDE0, 0x00F0F000
    run("arithmetic", (1,), (1,), (x, y, z, a, b, 0))
    rounded, fused = 0.0, -(2.0**-60)
    assert y.tolist() == [rounded, fused, -1.0, 1.0, x[0], 2.0, np.nextafter(x[0], 2)]
    ones = b.bit_count() + 100 * a.bit_count()
    leading = 10**4 * (32 - b.bit_length()) + 10**6 * (64 - a.bit_length())
    first = (b & -b).bit_length() + 100 * (a & -a).bit_length() + 10**6 * 32
    assert z.tolist() == [a * a >> 64, ones + leading, first, b, b, 5]


def test_vectors_and_null():
    x = np.arange(4 * 32, dtype=np.uint32).reshape(32, 4)
    y = np.zeros((32, 2), np.uint32)
    run("vectors", (1,), (32,), (x, y, None))
    assert np.array_equal(y, x.reshape(32, 2, 2).sum(2))


def test_values_of_each_type_arrive():
    y = np.zeros(8)
    values = (True, np.uint8(200), np.int16(-5), -7, -(2**60), 2**63, np.float32(0.1), 0.1)
    run("constants", (1,), (1,), (*values, y))
    assert y.tolist() == [1, 200, -5, -7, -(2**60), 2**63, np.float32(0.1), 0.1]


def test_what_cuda_leaves_undefined_is_garbage(order):
    y = np.zeros((2, 3, 64), np.uint32)
    run("garbage", (3,), (64,), (y,), shared_mem=256)
    assert (y[0] == 0xCDCDCDCD).all()
    assert (y[1] == np.where(np.arange(64) & 16, 1, 0xCDCDCDCD)).all()


# ---- order --------------------------------------------------------------------------------------


def turns(n_blocks=4, threads=64):
    line, taken = np.zeros(2 * n_blocks * threads, np.int32), np.zeros(1, np.uint32)
    run("turns", (n_blocks,), (threads,), (line, taken, 2))
    return line.tolist()


def test_threads_take_turns_in_order_unless_shuffled():
    expected = [2 * (32 * w + lane) + i for w in range(8) for i in range(2) for lane in range(32)]
    assert turns() == expected
    with thread_order(0):
        assert turns() == expected


def test_a_seed_gives_the_same_order_again_and_others_each_launch():
    told = []
    for seed in (1, 1, 2):
        with thread_order(seed):
            told.append([turns() for _ in range(3)])
    assert told[0] == told[1]
    distinct = {tuple(line) for lines in told for line in lines}
    assert len(distinct) == 6
    for line in distinct:
        assert sorted(line) == list(range(2 * 4 * 64))
    blocks = {tuple(dict.fromkeys(i // 128 for i in line)) for line in distinct}
    assert len(blocks) > 2


def test_launches_are_counted():
    before = launches["places"], launches["scan"]
    for _ in range(3):
        run("places", (1,), (1,), (np.zeros(1, np.int32),))
    assert (launches["places"], launches["scan"]) == (before[0] + 3, before[1])
    assert isinstance(launches, Counter)


def test_threads_of_the_host_take_turns():
    x = np.arange(256, dtype=np.int32)

    def job(seed):
        y = np.zeros_like(x)
        run("scan", (1,), (256,), (x, y, 256))
        return np.array_equal(y, np.cumsum(x))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(job, range(20)))


# ---- arguments ----------------------------------------------------------------------------------

Y = np.zeros(64, np.int32)
READ_ONLY = np.zeros(64, np.int32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((Y, Y), "2 arguments, not 3"),
        ((Y, Y, 1, 1), "4 arguments, not 3"),
        ((Y[::2], Y, 1), "argument 0 is an array that is not C-contiguous"),
        ((Y.astype(np.int64), Y, 1), "argument 0 is an array of int64 for pointer to int32"),
        ((Y.astype(np.float32), Y, 1), "an array of float32"),
        ((Y, READ_ONLY, 1), "argument 1 is a read-only array"),
        ((Y, 5, 1), "int for pointer"),
        ((Y, [1], 1), "list for pointer"),
        ((Y, np.frombuffer(bytearray(9), np.int32, 2, 1), 1), "not aligned"),
        ((Y, Y, np.int64(1)), "argument 2 is int64 for int32"),
        ((Y, Y, np.float32(1)), "float32 for int32"),
        ((Y, Y, 1.0), "float for int32"),
        ((Y, Y, True), "bool for int32"),
        ((Y, Y, Y), "ndarray for int32"),
        ((Y, Y, None), "NoneType for int32"),
        ((Y, Y, 2**31), "2147483648 does not fit int32"),
        ((Y, Y, np.uint32(2**31)), "does not fit int32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_that_do_not_fit(args, told):
    with pytest.raises(TypeError, match=f"^scan: .*{told}"):
        run("scan", (1,), (32,), args)


@pytest.mark.parametrize(
    ("index", "value"),
    [(0, 1), (0, np.uint8(1)), (1, -1), (1, 256), (5, -1), (6, 0.5), (6, np.float64(1)), (7, 1)],
)
def test_values_that_do_not_fit(index, value):
    values = [True, 1, 1, 1, 1, 1, np.float32(1), 1.0, np.zeros(8)]
    values[index] = value
    with pytest.raises(TypeError, match=f"argument {index} "):
        run("constants", (1,), (1,), tuple(values))


def test_arguments_that_fit():
    run("scan", (1,), (32,), (READ_ONLY, Y.view(np.uint32), np.uint32(32)))
    run("scan", (1,), (32,), (None, None, np.int32(0)))
    run("scan", (1,), (32,), (Y[:0], Y[:0], 0))


# ---- what is not allowed ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((0,), (32,)),
        ((-1,), (1,)),
        ((1, 70000), (1,)),
        ((1, 1, 1, 1), (1,)),
        ((1,), (0,)),
        ((1,), (1025,)),
        ((1,), (32, 33)),
        ((1,), (1, 1, 65)),
    ],
)
def test_shapes_that_no_launch_has(grid, block):
    with pytest.raises(KernelError, match="places"):
        run("places", grid, block, (np.zeros(1, np.int32),))


def test_shared_memory_is_asked_for():
    kernel = module().get_function("write_past_shared")
    args = (Y, True)
    kernel((1,), (64,), args, shared_mem=48 << 10)
    with pytest.raises(KernelError, match="49153 bytes of shared memory, of 49152"):
        kernel((1,), (64,), args, shared_mem=(48 << 10) + 1)
    kernel.max_dynamic_shared_size_bytes = 100 << 10
    kernel((1,), (64,), args, shared_mem=100 << 10)
    kernel.max_dynamic_shared_size_bytes = 1 << 20
    with pytest.raises(KernelError, match="shared memory"):
        kernel((1,), (64,), args, shared_mem=(227 << 10) + 1)


FORBIDDEN = {
    "two_barriers": r"divergent barrier: __syncthreads in line \d+, while others wait in line",
    "left_before_barrier": "leaves the kernel while others wait|but [0-9]+ threads have left",
    "half_a_warp_waits": "deadlock in warp .* wait in __syncwarp for lanes 0000ffff",
    "not_in_mask": "__shfl_sync: the calling lane is not in its mask 0000ffff",
    "other_masks": "a vote with mask f.* while other lanes of the warp wait in a vote with mask f"
    "|the calling lane is not in its mask",
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


# ---- builds -------------------------------------------------------------------------------------


def test_a_text_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "cache", lambda: tmp_path)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: build.build("int x;", build.COMMON, (), ""), range(3)))
    assert len(set(found)) == 1
    assert ctypes.c_int.in_dll(ctypes.CDLL(str(found[0])), "x").value == 0
    made = found[0].stat().st_mtime_ns
    assert build.build("int x;", build.COMMON, (), "").stat().st_mtime_ns == made
    assert build.build("int x;", build.COMMON, (), "other headers") != found[0]


def test_headers_and_macros(tmp_path):
    text = '#include "one.cuh"\nextern "C" __global__ void put(TYPE* y) { y[0] = ONE; }'
    for one in (1, 2):  # an edited header is noticed
        (tmp_path / "one.cuh").write_text(f"#define ONE {one}")
        options = (f"-I{tmp_path}", "-DTYPE=short", "--std=c++17")
        y = np.zeros(1, np.int16)
        EmulatedModule(text, options).get_function("put")((1,), (1,), (y,))
        assert y[0] == one


def test_kernels_are_found():
    text = """
    // extern "C" __global__ void no() {}
    extern "C" __global__ void __launch_bounds__(32 * (4 + 4), 2) bind(int* y) { y[0] = 3; }
    /* extern "C" __global__ void neither() {} */
    extern "C"
    __global__ void nothing () {}
    """
    found = EmulatedModule(text)
    assert found.names == ["bind", "nothing"]
    y = np.zeros(1, np.int32)
    found.get_function("bind")((1,), (1,), (y,))  # not the C library's
    found.get_function("nothing")((1,), (1,), ())
    assert y[0] == 3
    with pytest.raises(AttributeError, match="no kernel neither in a text with bind, nothing"):
        found.get_function("neither")


def test_what_cuda_would_not_compile():
    with pytest.raises(BuildError, match="no atomicAdd of this type"):
        EmulatedModule('extern "C" __global__ void f(long long* y) { atomicAdd(y, 1); }')
    with pytest.raises(BuildError, match="no min of an integer and a floating-point number"):
        EmulatedModule('extern "C" __global__ void f(double* y) { y[0] = min(1, y[1]); }')
    with pytest.raises(ValueError, match="-use_fast_math"):
        EmulatedModule("", ("-use_fast_math",))


@unless_sanitized
def test_the_examples_are_cuda():
    core = pytest.importorskip("cuda.core", reason="no compiler of CUDA here")
    options = core.ProgramOptions(arch="sm_90", std="c++17")
    core.Program(EXAMPLES, "c++", options).compile("cubin")


# ---- sanitizers ---------------------------------------------------------------------------------

MISTAKES = {
    "missing_barrier": ("tsan", "data race"),
    "plain_add": ("tsan", "data race"),
    "blocks_add": ("tsan", "data race"),
    "shuffle_as_barrier": ("tsan", "data race"),
    "read_past_global": ("asan", "heap-buffer-overflow.*READ of size 4"),
    "write_past_global": ("asan", "heap-buffer-overflow.*WRITE of size 4"),
    "read_past_shared": ("asan", "heap-buffer-overflow.*READ of size 4"),
    "write_past_shared": ("asan", "heap-buffer-overflow.*WRITE of size 4"),
    "write_past_static": ("asan", "index 64 out of bounds"),
}


def make(mistake):
    """First the kernel without the mistake, then with it."""
    threads = 32 if mistake == "shuffle_as_barrier" else 64
    y = np.zeros(threads, np.int32)
    for careful in (True, False):
        with thread_order(1):
            grid = (5,) if mistake == "blocks_add" else (1,)
            run(mistake, grid, (threads,), (y, careful), shared_mem=4 * threads)
        print("careful" if careful else "careless", flush=True)


@unless_sanitized
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_sanitizer_names_the_line(mistake):
    kind, told = MISTAKES[mistake]
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    here = Path(__file__)
    script = f"import sys; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as tests"
    done = sanitized(kind, ["-c", f"{script}; tests.make({mistake!r})"], timeout=120)
    assert (done.returncode, done.stdout) == (EXIT_CODE, "careful\n"), done.stderr
    assert re.search(told, done.stderr, re.DOTALL), done.stderr
    kernel = re.search(rf'extern "C" __global__ void {mistake}.*?\n}}\n', EXAMPLES, re.DOTALL)
    lines = [EXAMPLES[: at(0)].count("\n") + 1 for at in (kernel.start, kernel.end)]
    line = int(re.search(rf" {mistake} .*kernels.cu:(\d+)", done.stderr)[1])
    assert lines[0] < line < lines[1]


@unless_sanitized
@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_sanitizers_are_silent_about_the_rest(kind):
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    done = sanitized(kind, ["-m", "pytest", "-p", "no:cacheprovider", __file__], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d\d\d passed", done.stdout)
