"""CUDA C++ run on the CPU refuses arguments, launches and code that a GPU would not forgive."""

import numpy as np
import pytest
from cuda_examples import module, run
from cuda_on_cpu.module import (
    KernelError,
    available,
    thread_order,
)
from cuda_on_cpu.sanitizers import default_kind

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]


Y = np.zeros(64, np.int32)


READ_ONLY = np.zeros(64, np.int32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    ("args", "message"),
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
def test_arguments_that_do_not_fit(args, message):
    with pytest.raises(TypeError, match=f"^scan: .*{message}"):
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
    with pytest.raises(KernelError, match="thread_numbers"):
        run("thread_numbers", grid, block, (np.zeros(1, np.int32),))


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
    "barrier_zero": "barrier 0 is that of __syncthreads",
    "barrier_sixteen": "barrier 16 of 16",
    "half_a_warp_counts": "48 threads at a barrier are no whole warps",
    "two_counts": "(96|64) threads at barrier 1, where others wait for (64|96)",
    "a_warp_never_comes": "deadlock: 32 threads wait at barrier 1 for 64",
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
