"""Is it correct here? The parity tests on the device, and small fits under a sanitizer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu import parity
from benchmarks.gpu.run import Run, tool_of_cuda
from benchmarks.record import ROOT

TOOLS = {
    "none": [],  # which also leaves compiled kernels for the others
    # CuPy expects some calls to fail, which are no faults of a kernel
    "memcheck": ["--report-api-errors", "no"],
    "racecheck": [],
    "synccheck": [],
}
FIRST_SECONDS = 90.0  # no parity test begins later, so that measurements have most of a run
LAST_TEST = 60.0  # seconds for those that have begun
FOUND = 9  # exit status of a sanitizer that found something


def parity_holds(run: Run, part: str = "first", seconds: float = FIRST_SECONDS) -> bool:
    """Whether no test of a GPU fails on it, and some pass; see parity.py.

    Tests that would begin after these seconds are not run, which is no failure: the line has their
    number.
    """
    tests = parity.files(ROOT)
    command = [
        sys.executable, "-m", "pytest", *tests, "-q", "--maxfail=10",
        "--continue-on-collection-errors",
        "-p", "benchmarks.gpu.parity", "-p", "no:cacheprovider", "-p", "no:benchmark",
        # other versions of libraries may warn of what does not matter here
        "-W", "default",
    ]  # fmt: skip
    if find_spec("xdist") is not None and (os.cpu_count() or 1) >= 4:
        command += ["-n", str(min(8, (os.cpu_count() or 1) // 2))]
    print(f"parity tests, {part}: " + " ".join(tests), flush=True)
    start, status = time.perf_counter(), None
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        own = {"PARITY_PART": part, "PARITY_LOG": str(log), "PARITY_SECONDS": str(seconds)}
        limit = max(min(seconds + LAST_TEST, run.left()), 1)
        with suppress(subprocess.TimeoutExpired):  # what has ended by then is in the log
            environment = {**os.environ, **own}
            environment.pop("PYTEST_XDIST_WORKER", None)  # where a worker of pytest runs this
            status = subprocess.run(command, cwd=ROOT, env=environment, timeout=limit).returncode
        lines = [json.loads(x) for x in log.read_text().splitlines()] if log.exists() else []
    counts = Counter(line["outcome"] for line in lines)
    wrong = [line["test"] for line in lines if line["outcome"] in ("failed", "error")]
    same = bool(counts["passed"]) and not wrong
    names = ("passed", "failed", "error", "skipped", "not_run")
    run.add(
        "parity", part=part, same=same, took=time.perf_counter() - start, status=status,
        counts={name: counts[name] for name in names}, wrong=wrong,
        slowest=sorted(lines, key=lambda line: -line["seconds"])[:10],
    )  # fmt: skip
    print("parity: " + ", ".join(f"{counts[name]} {name}" for name in names), flush=True)
    return same


def sanitize(run: Run) -> None:
    """Small fits and predictions under each tool."""
    program = tool_of_cuda("compute-sanitizer")
    for tool in run.options.tools:
        if program is None and tool != "none":
            run.skip("sanitize", None, f"compute-sanitizer is not on the PATH: no {tool}")
        else:
            run.attempt("sanitize", None, lambda tool=tool: under(run, program, tool))


def under(run: Run, program: str | None, tool: str) -> None:
    """Run the small fits under a tool, and record the end of its output."""
    cases = run.options.cases
    command = [sys.executable, "-m", "benchmarks.gpu.small", run.device.name, cases]
    if tool != "none":
        options = ["--tool", tool, *TOOLS[tool], "--target-processes", "all"]
        command = [str(program), *options, "--error-exitcode", str(FOUND), *command]
    start = time.perf_counter()
    limit = max(run.left(), 5)
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = (error.output or b"")[-2000:].decode(errors="replace")
        raise TimeoutError(f"{tool} was not finished after {limit:.0f} s: {said}") from None
    took = time.perf_counter() - start
    same, said = done.returncode == 0, done.stdout[-4000:]
    run.add("sanitize", tool=tool, cases=cases, same=same, took=took, said=said)
    print(f"{tool}: {'silent' if same else said} ({took:.0f} s)")
