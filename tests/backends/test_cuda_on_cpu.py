"""CUDA C++ run on the CPU does what a GPU would, and notices what a GPU would not forgive."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cuda_examples import run
from cuda_on_cpu.module import (
    EmulatedModule,
    available,
    busy_turns,
    launches,
    thread_order,
    utilisation,
)

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]

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


# of four warps the first few take six turns before the barrier, and one alone a turn after it
WARPS = """
extern "C" __global__ void busy_warps(int* y, int n_busy) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int* own = y + blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < (warp < n_busy ? 6 : 2); i++) *own = __shfl_sync(~0u, lane, i);
    __syncthreads();
    if (warp == 3) *own = __shfl_sync(~0u, lane, 0);
}
"""


# ---- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 33, 64, 1000, 1024])
def test_scan(order, n):
    x = np.random.default_rng(n).integers(-9, 9, n, dtype=np.int32)
    y = np.full_like(x, 77)
    run("scan", (1,), (-(-max(n, 1) // 32) * 32,), (x, y, n))
    assert np.array_equal(y, np.cumsum(x))


@pytest.mark.parametrize(("n_busy", "taken"), [(0, 9), (1, 13), (4, 25)])
def test_busy_warps_are_counted(order, n_busy, taken):
    kernel = EmulatedModule(WARPS).get_function("busy_warps")
    busy_turns.pop("busy_warps", None)
    for _ in range(2):
        kernel((3,), (128,), (np.zeros(3 * 128, np.int32), np.int32(n_busy)))
    longest = 6 if n_busy else 2
    assert busy_turns["busy_warps"] == (2 * 3 * taken, 2 * 3 * 4 * (longest + 1))
    assert utilisation("busy_warps") == taken / (4 * (longest + 1))


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


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_teams_of_warps_wait_for_their_own(order, warps):
    x = np.random.default_rng(7).integers(-99, 99, 256, dtype=np.int32)
    y = np.zeros_like(x)
    for _ in range(2):
        run("teams", (1,), (256,), (x, y, warps))
    expected = x.reshape(-1, 32 * warps).copy()
    for team, values in enumerate(expected):
        for n in range(2 + team):
            values += values[::-1] + n
    assert np.array_equal(y, expected.ravel())


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
    run("thread_numbers", (4, 3, 2), (5, 2, 3), (y,))
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
    # block by block; in a block warp by warp, until the lanes of each meet
    blocks, steps, warps, lanes = range(4), range(2), range(2), range(32)
    expected = [
        2 * (64 * b + 32 * w + lane) + i
        for b in blocks
        for i in steps
        for w in warps
        for lane in lanes
    ]
    assert turns() == expected
    with thread_order(0):
        assert turns() == expected


def test_a_seed_gives_the_same_order_again_and_others_each_launch():
    recorded = []
    for seed in (1, 1, 2):
        with thread_order(seed):
            recorded.append([turns() for _ in range(3)])
    assert recorded[0] == recorded[1]
    distinct = {tuple(line) for lines in recorded for line in lines}
    assert len(distinct) == 6
    for line in distinct:
        assert sorted(line) == list(range(2 * 4 * 64))
    blocks = {tuple(dict.fromkeys(i // 128 for i in line)) for line in distinct}
    assert len(blocks) > 2


def test_launches_are_counted():
    before = launches["thread_numbers"], launches["scan"]
    for _ in range(3):
        run("thread_numbers", (1,), (1,), (np.zeros(1, np.int32),))
    assert (launches["thread_numbers"], launches["scan"]) == (before[0] + 3, before[1])
    assert isinstance(launches, Counter)


def test_threads_of_the_host_take_turns():
    x = np.arange(256, dtype=np.int32)

    def job(seed):
        y = np.zeros_like(x)
        run("scan", (1,), (256,), (x, y, 256))
        return np.array_equal(y, np.cumsum(x))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(job, range(20)))


def make(mistake):
    """First the kernel without the mistake, then with it."""
    threads = 32 if mistake == "shuffle_as_barrier" else 64
    y = np.zeros(threads, np.int32)
    for careful in (True, False):
        with thread_order(1):
            grid = (5,) if mistake == "blocks_add" else (1,)
            run(mistake, grid, (threads,), (y, careful), shared_mem=4 * threads)
        print("careful" if careful else "careless", flush=True)
