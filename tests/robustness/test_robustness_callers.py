"""Many callers: threads, children, joblib and scikit-learn's searches, each right and in time.

Every way runs in a process of its own, callers.py, which is ended where it hangs.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from paths import SUPPORT

SECONDS = 240  # some 10 are usual; first calls compile

needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)


def assert_right_in_time(way: str, tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+") as output:  # a pipe would wait for grandchildren
        process = subprocess.Popen(
            [sys.executable, SUPPORT / "callers.py", way],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = None
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)  # its children too
            process.kill()
            process.wait()
        output.seek(0)
        assert code == 0, output.read()[-3000:]


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_joblib(backend, tmp_path):
    assert_right_in_time(backend, tmp_path)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_children(method, tmp_path):
    assert_right_in_time(method, tmp_path)


@needs_fork
def test_children_forked_while_threads_fit(tmp_path):
    assert_right_in_time("fork-while-threads-fit", tmp_path)


def test_grid_search(tmp_path):
    assert_right_in_time("search", tmp_path)


def test_cross_validation(tmp_path):
    assert_right_in_time("scores", tmp_path)


def test_pipelines_in_parallel(tmp_path):
    assert_right_in_time("pipelines", tmp_path)
