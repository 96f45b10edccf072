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
from sweeps import swept

SECONDS = 240  # some 10 are usual; first calls compile

METHODS = multiprocessing.get_all_start_methods()
WAYS = ["threading", "loky", "fork-while-threads-fit" if "fork" in METHODS else "spawn"]
DEEP = [*(m for m in METHODS if m not in WAYS), "multiprocessing", "search", "pipelines"]


@pytest.mark.parametrize("way", swept(len(WAYS), WAYS + DEEP))
def test_callers(way: str, tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+") as output:  # a pipe would wait for grandchildren
        command, to = [sys.executable, SUPPORT / "callers.py", way], {"stdout": output}
        to |= {"stderr": subprocess.STDOUT, "start_new_session": True}
        process = subprocess.Popen(command, **to)
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
