"""A process's first fit: with kernels from disk, and without."""

import os
import signal
import subprocess
import sys
import time

import pytest

WORD = "compiling its kernels"
SCRIPT = """
import logging, sys, time
import numpy as np
from gpuforest import RandomForestClassifier

if "silent" in sys.argv:
    logging.getLogger("gpuforest").setLevel(logging.ERROR)
X = np.random.default_rng(0).normal(size=(3000, 5))
y = X[:, 0] > 0
for _ in range(2):
    start = time.perf_counter()
    RandomForestClassifier(5, random_state=0, n_jobs=2, backend="numba").fit(X, y).predict(X)
    print(time.perf_counter() - start)
"""


EDGES = """
import logging, sys
import numpy as np
from gpuforest.backends.numba import NumbaBackend

if "silent" in sys.argv:
    logging.getLogger("gpuforest").setLevel(logging.ERROR)
NumbaBackend().column_edges(np.arange(12.0).reshape(4, 3), None, None, 2)
"""


def start(cache, *arguments, script=SCRIPT):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_word_while_kernels_are_compiled(tmp_path):
    # generous: 15 and 0.6 s were measured on two busy cores
    for patience, said in (120, True), (20, False):
        child = start(tmp_path)
        out, errors = child.communicate(timeout=240)
        assert child.returncode == 0, errors
        first, second = map(float, out.split())
        assert first - second < patience
        assert (WORD in errors) == said
        assert len(errors.splitlines()) == said


def test_the_word_is_a_log_record_and_can_be_silenced(tmp_path):
    for arguments in (), ("silent",):
        child = start(tmp_path / "-".join(("cache", *arguments)), *arguments, script=EDGES)
        _, errors = child.communicate(timeout=240)
        assert child.returncode == 0
        assert (WORD in errors) == (not arguments)
        assert len(errors.splitlines()) == (not arguments)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_compilation(tmp_path):
    child = start(tmp_path)
    try:
        assert WORD in child.stderr.readline()
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, errors = child.communicate(timeout=60)
        assert time.monotonic() - begin < 6  # one or two, where nothing else runs
        assert errors.endswith("KeyboardInterrupt\n")
    finally:
        child.kill()
        child.communicate()


def test_a_release_of_numba_that_was_not_tested_compiles_the_plain_way(tmp_path):
    script = """
import numba
numba.version_info = (0, 99, 0, 0, 99)
import numpy as np
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.kernels import compile
assert "pipeline_class" not in compile._HELPER
keys = np.arange(3, dtype=np.uint64)
for backend in (NumbaBackend(), NumpyBackend()):
    print(backend.bag(keys, 50, 50, None).tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    ours, reference = done.stdout.splitlines()
    assert ours == reference
