"""CUDA C++ run on the CPU: what is built, from which text, and what sanitizers say of it."""

import ctypes
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cuda_examples import EXAMPLES, unless_sanitized
from cuda_on_cpu import build
from cuda_on_cpu.module import (
    BuildError,
    EmulatedModule,
    available,
)
from cuda_on_cpu.sanitizers import EXIT_CODE, missing, sanitized
from paths import SUPPORT

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(available() is not None, reason=str(available())),
]


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


# what the kernels of examples.cu compute, and what their mistakes do
TESTS = Path(__file__).with_name("test_cuda_on_cpu.py")
MISTAKES = {
    "missing_barrier": ("tsan", "data race"),
    "missing_team_barrier": ("tsan", "data race"),
    "plain_add": ("tsan", "data race"),
    "blocks_add": ("tsan", "data race"),
    "shuffle_as_barrier": ("tsan", "data race"),
    "read_past_global": ("asan", "heap-buffer-overflow.*READ of size 4"),
    "write_past_global": ("asan", "heap-buffer-overflow.*WRITE of size 4"),
    "read_past_shared": ("asan", "heap-buffer-overflow.*READ of size 4"),
    "write_past_shared": ("asan", "heap-buffer-overflow.*WRITE of size 4"),
    "write_past_static": ("asan", "index 64 out of bounds"),
}


@unless_sanitized
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_sanitizer_names_the_line(mistake):
    kind, message = MISTAKES[mistake]
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    folders = [str(TESTS.parent), str(SUPPORT)]
    script = f"import sys; sys.path[:0] = {folders}; import {TESTS.stem} as tests"
    done = sanitized(kind, ["-c", f"{script}; tests.make({mistake!r})"], timeout=120)
    assert (done.returncode, done.stdout) == (EXIT_CODE, "careful\n"), done.stderr
    assert re.search(message, done.stderr, re.DOTALL), done.stderr
    kernel = re.search(rf'extern "C" __global__ void {mistake}.*?\n}}\n', EXAMPLES, re.DOTALL)
    lines = [EXAMPLES[: at(0)].count("\n") + 1 for at in (kernel.start, kernel.end)]
    line = int(re.search(rf" {mistake} .*kernels.cu:(\d+)", done.stderr)[1])
    assert lines[0] < line < lines[1]


@unless_sanitized
@pytest.mark.parametrize("kind", ["asan", "tsan"])
def test_sanitizers_are_silent_about_the_rest(kind):
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    files = [str(TESTS), str(TESTS.with_name("test_cuda_on_cpu_refusals.py"))]
    done = sanitized(kind, ["-m", "pytest", "-p", "no:cacheprovider", *files], timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b\d\d\d passed", done.stdout)
