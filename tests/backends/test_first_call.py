"""A process's first fit where kernels are not on disk, and what it says meanwhile."""

import os
import signal
import subprocess
import sys
import time

import pytest

WORD = "compiling its kernels"
ONE_KERNEL = """
import logging, sys
import numpy as np
from gpuforest.backends.numba import NumbaBackend

if "silent" in sys.argv:
    logging.getLogger("gpuforest").setLevel(logging.ERROR)
X, backend = np.arange(12.0).reshape(4, 3), NumbaBackend()
print(len(backend.sampling.column_edges(backend, X, None, None, 2)))
assert "numba" not in sys.modules
loaded = "llvmlite" in sys.modules
from gpuforest.compiler.compile import linker
assert linker() is None or not loaded
"""
SMALL = """
import sys
import numpy as np
from gpuforest import RandomForestClassifier
from gpuforest.compiler import code

code.build_process = lambda *arguments, **named: print("begun")  # some minutes of work
X = np.random.default_rng(0).normal(size=(300, 5))
y = X[:, 0] > 0
forest = RandomForestClassifier(5, random_state=0)
print(forest.fit(X, y).backend_)
assert "numba" not in sys.modules
"""


def start(cache, *arguments, script=ONE_KERNEL, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child):
    out, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    return out, errors


def test_a_word_while_a_kernel_is_compiled(tmp_path):
    for said in (True, False):  # the second process finds it on disk
        out, errors = finish(start(tmp_path))
        assert out == "3\n"
        assert (WORD in errors) == said
        assert len(errors.splitlines()) == said


def test_two_processes_at_once(tmp_path):
    children = [start(tmp_path, "silent") for _ in range(2)]
    assert [finish(child) for child in children] == [("3\n", "")] * 2
    folder = next(tmp_path.iterdir())
    assert len([*folder.iterdir()]) == 1  # nobody left a part of a file


def test_an_environment_without_numbas_compiler(tmp_path):
    assert finish(start(tmp_path, "silent", NUMBA_DISABLE_JIT="1")) == ("3\n", "")


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_compilation(tmp_path):
    child = start(tmp_path)
    try:
        assert WORD in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = child.communicate(timeout=60)
        assert time.monotonic() - begin < 6  # one or two, where nothing else runs
        assert errors.endswith("KeyboardInterrupt\n")
    finally:
        child.kill()
        child.communicate()


def test_small_work_does_not_wait(tmp_path):
    out, errors = finish(start(tmp_path, script=SMALL, GPUFOREST_BACKEND=""))
    assert out == "begun\nnumpy\n"
    assert WORD in errors


def test_a_release_of_numba_that_was_not_tested_compiles_the_plain_way(tmp_path):
    script = """
import numba
numba.version_info = (0, 99, 0, 0, 99)
from pathlib import Path
from gpuforest.compiler import build, code, compile, objects, processors
assert compile.HELPERS is compile.Compiler
(name,) = (name for name in build.variants() if name.startswith("kernels.totals.numba.differs"))
(found,) = build.compile_one(name, [processors.native()])
path = Path(objects.file_of(name, processors.native(), found))
path.write_bytes(objects.packed(name, found))
objects.PACKAGED = Path()
code.compiled = None
from gpuforest.kernels.totals.numba import differs
import numpy as np
i32, i64 = np.int32, np.int64
found = np.zeros(2, np.bool_)
y = np.array([[3], [3], [4]])
differs(y, np.arange(3, dtype=i32), np.array([0, 1]), np.array([2, 3]), np.full((2, 1), 3), found)
print(found.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout == "[False, True]\n"
