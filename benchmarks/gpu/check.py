"""Is it correct here? The parity tests on the device, and small fits under a sanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path

from benchmarks.gpu.run import Run
from benchmarks.record import ROOT

NAMES = (
    "backends/test_cuda", "backends/test_cuda_boosters", "backends/test_cuda_targets",
    "backends/test_gpu", "kernels/test_edges", "kernels/test_gradients_cuda",
    "kernels/test_sort_columns", "data/test_device_arrays",
)  # fmt: skip
TESTS = [f"tests/{name}.py" for name in NAMES]
TOOLS = {
    # CuPy expects some calls to fail, which are no faults of a kernel
    "memcheck": ["--report-api-errors", "no"],
    "racecheck": [],
    "synccheck": [],
}
TOOL_SECONDS = 240.0
FOUND = 9  # exit status of a sanitizer that found something


def tests_pass(run: Run) -> bool:
    """Whether all tests that need a GPU pass on it, and there are some."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", *TESTS, "-k", "gpu", "-rs", "--maxfail=10",
            f"--junitxml={report}", "-p", "no:cacheprovider", "-p", "no:benchmark",
            # other versions of libraries may warn of what does not matter here
            "-W", "default",
        ]  # fmt: skip
        if find_spec("xdist") is not None and (os.cpu_count() or 1) >= 4:
            command += ["-n", "4"]
        print("parity tests: " + " ".join(TESTS), flush=True)
        start = time.perf_counter()
        try:
            status = subprocess.run(command, cwd=ROOT, timeout=max(run.left(), 1)).returncode
        except subprocess.TimeoutExpired:
            run.add("parity", error=f"not finished after {time.perf_counter() - start:.0f} s")
            return False
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        if report.exists():
            for suite in ET.parse(report).getroot().iter("testsuite"):
                counts = {name: n + int(suite.get(name, 0)) for name, n in counts.items()}
    passed = status == 0 and counts["tests"] > counts["skipped"]
    run.add("parity", same=passed, took=time.perf_counter() - start, status=status, **counts)
    return passed


def sanitizer() -> str | None:
    """The path of compute-sanitizer."""
    return shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )


def sanitize(run: Run) -> None:
    """Small fits and predictions under each tool."""
    program = sanitizer()
    if program is None:
        run.skip("sanitize", None, "compute-sanitizer is not on the PATH")
        return
    for tool in TOOLS:
        run.attempt("sanitize", None, lambda tool=tool: under(run, program, tool))


def under(run: Run, program: str, tool: str) -> None:
    """Run the small fits under a tool, and record the end of its output."""
    command = [
        program, "--tool", tool, *TOOLS[tool], "--target-processes", "all",
        "--error-exitcode", str(FOUND),
        sys.executable, "-m", "benchmarks.gpu.small", run.device.name,
    ]  # fmt: skip
    start = time.perf_counter()
    limit = min(TOOL_SECONDS, max(run.left(), 5))
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", timeout=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        said = (error.output or b"")[-2000:].decode(errors="replace")
        raise TimeoutError(f"{tool} was not finished after {limit:.0f} s: {said}") from None
    took = time.perf_counter() - start
    run.add("sanitize", tool=tool, same=done.returncode == 0, took=took, said=done.stdout[-4000:])
    print(f"{tool}: {'silent' if done.returncode == 0 else done.stdout[-4000:]} ({took:.0f} s)")
