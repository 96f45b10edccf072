"""What the device counts inside kernels, by Nsight Compute: sectors of memory, hits in the cache,
conflicts of shared memory, busy warps."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import defaultdict
from functools import partial
from typing import Any

from benchmarks.gpu import boosting
from benchmarks.gpu.run import Run, tool_of_cuda
from benchmarks.gpu.work import Work
from benchmarks.record import ROOT

WORKS = ("year", "covtype-like", "3.3M")  # how the names of works begin that are counted
KERNELS = "histogram|mark|move|compare_rows|best_cut|grow_subtrees"
BOOSTED = "fill|search|divide"  # kernels of boosting, counted where a work is boosted
METRICS = {
    "dram_sectors": "dram__sectors_read.sum",
    "l2_sectors": "lts__t_sectors_op_read.sum",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "shared_conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "shared_atomics": "smsp__inst_executed_op_shared_atom.sum",
    "warps_active": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "waits_for_memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "nanoseconds": "gpu__time_duration.sum",
}
MOST = 150  # launches, each of which is run several times
SECONDS = 150.0


def count(run: Run, work: Work) -> None:
    """The counts of each launch of the first fit of a process, of a forest and of boosting."""
    program = tool_of_cuda("ncu")
    if program is None:
        run.skip("counters", work, "ncu is not on the PATH")
        return
    run.attempt("counters", work, partial(counted, run, work, program, KERNELS, few=10))
    if work.name.startswith(boosting.WORKS):
        run.attempt("counters", work, partial(counted, run, work, program, BOOSTED, rounds=2))


def counted(run: Run, work: Work, program: str, kernels: str, **few: int) -> None:
    """The counts of a fit of few trees, or of few rounds of boosting."""
    own = {"max_iter": few["rounds"]} if "rounds" in few else {"n_estimators": few["few"]}
    task = {"device": run.device.name, "work": work.name, "rows": work.rows, "parameters": own}
    command = [
        program, "--csv", "--page", "raw", "--print-units", "base", "--target-processes", "all",
        "--kernel-name", f"regex:^({kernels})$", "--launch-count", str(MOST),
        "--metrics", ",".join(METRICS.values()),
        sys.executable, "-m", "benchmarks.gpu.first", json.dumps(task),
    ]  # fmt: skip
    limit = min(SECONDS, max(run.left(), 5))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    launches = launches_of(done.stdout)
    if not launches:
        raise RuntimeError(f"ncu counted nothing: {(done.stdout + done.stderr)[-1000:]}")
    run.add("counters", work, launches=launches, **few)


def launches_of(text: str) -> dict[str, list[dict[str, Any]]]:
    """Of each kernel the counts of its launches, one after another."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in csv.DictReader(lines[begin:]):
        values = {name: number(row.get(metric)) for name, metric in METRICS.items()}
        if row["ID"] and any(value is not None for value in values.values()):  # not that of units
            found[row["Kernel Name"]].append(values)
    return dict(found)


def number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:  # n/a, where a device has no such counter
        return None
