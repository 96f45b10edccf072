"""A measurement in a process of its own, on a machine that is idle, within a time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Event, Timer
from typing import Any

from benchmarks.one_fit import BEGIN, END, busy_seconds
from benchmarks.record import ROOT

LEAD = 60  # seconds


def wait_until_calm(limit: float) -> None:
    """Wait until less than a tenth of a core is busy for two seconds, or until the limit."""
    calm, end = 0, time.monotonic() + limit
    while calm < 2 and time.monotonic() < end:
        before = busy_seconds()
        time.sleep(1)
        calm = calm + 1 if busy_seconds() - before < 0.1 else 0


def one_fit(task: dict[str, Any], limit: float | None = None) -> dict[str, Any]:
    """The results of one_fit.py, or {"over": limit} if the fit took longer, or an "error".

    The work before the fit, including small forests, may take LEAD seconds more.
    """
    pools = ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")
    threads = {f"{name}_NUM_THREADS": str(task["threads"]) for name in pools}
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.one_fit", json.dumps(task)],
            cwd=ROOT,
            env={**os.environ, **threads},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # its children end with it
        ) as process,
    ):
        assert process.stdout is not None
        with contextlib.suppress(OSError):  # where memory runs out, it is to end, not we
            Path(f"/proc/{process.pid}/oom_score_adj").write_text("1000")
        line, over = "", Event()

        def stop() -> None:
            over.set()
            os.killpg(process.pid, signal.SIGKILL)

        def clock(seconds: float) -> Timer:
            timer = Timer(seconds, stop)
            if limit is not None:
                timer.start()
            return timer

        timer = clock(LEAD + (limit or 0))
        try:
            for line in process.stdout:
                if line.strip() in (BEGIN, END):
                    timer.cancel()
                if line.strip() == BEGIN:
                    timer = clock(limit or 0)
            process.wait()
        finally:
            timer.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if over.is_set():
            return {"over": limit}
        if process.returncode == -signal.SIGKILL:
            return {"error": "ended by the system, for want of memory perhaps"}
        if process.returncode:
            said.seek(0)
            words = said.read().strip().splitlines() or [f"status {process.returncode}"]
            return {"error": words[-1][:200]}
        return json.loads(line)
