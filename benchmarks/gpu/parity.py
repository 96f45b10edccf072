"""A plugin for pytest: the tests of a GPU alone, within a time.

The tests are those that take a fixture with a GPU, wherever they are. In environment variables:
PARITY_PART (`first`: the first case of each test; `rest`: all others), PARITY_LOG (a file that gets
a line of JSON for each test, as soon as it ends) and PARITY_SECONDS (no test begins later).
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

DEVICE = "GPU"  # the fixture's parameter, as in tests/conftest.py
ASKS = re.compile(r"^def test\w*\([^)]*\b(?:cuda|cupy)\b|\"GPU\"", re.MULTILINE)
BEGIN = time.monotonic()


def files(root: Path) -> list[str]:
    """The files in which there are such tests."""
    found = sorted((root / "tests").rglob("test_*.py"))
    return [p.relative_to(root).as_posix() for p in found if ASKS.search(p.read_text())]


def is_of_gpu(item: Any) -> bool:
    """Whether a fixture has a GPU for it, or brings CuPy itself."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return DEVICE in list(map(str, parameters)) or "cupy" in item.fixturenames


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    chosen, names = [], set()
    for item in filter(is_of_gpu, items):
        name = item.nodeid.split("[")[0]
        if (name not in names) == (os.environ.get("PARITY_PART", "first") == "first"):
            chosen.append(item)
        names.add(name)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def pytest_runtest_setup(item: Any) -> None:
    if time.monotonic() - BEGIN > float(os.environ.get("PARITY_SECONDS", "inf")):
        pytest.skip("the time is up")


def pytest_runtest_logreport(report: Any) -> None:
    ends = report.when == "call" or report.outcome != "passed"
    if not ends or "PARITY_LOG" not in os.environ or "PYTEST_XDIST_WORKER" in os.environ:
        return
    up = report.skipped and "the time is up" in str(report.longrepr)
    outcome = "not_run" if up else "error" if report.when == "teardown" else report.outcome
    line = {"test": report.nodeid, "outcome": outcome, "seconds": round(report.duration, 3)}
    with open(os.environ["PARITY_LOG"], "a") as log:
        log.write(json.dumps(line) + "\n")
