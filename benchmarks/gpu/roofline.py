"""python -m benchmarks.gpu.roofline: how long the works would take on a GPU, by arithmetic.

Nothing here is measured. `counts.py` counts what each kernel asks of a GPU, by running it on the
CPU. `loops.py` counts the instructions that come with each access, in the machine code that
NVIDIA's compiler makes. A kernel takes the longest of three times:

    memory  Each line of 64 bytes that is read or written, over the bandwidth. What is gathered from
            a table of codes that fits the L2 cache: each sector of 32 bytes, over the cache's.
    shared  A clock of a multiprocessor for each pass over the banks of its shared memory. A pass of
            an atomic takes two, for it reads and writes.
    issue   Four instructions in a clock of a multiprocessor, if all warps are busy. Those of double
            precision take longer, where a multiprocessor has few units for them.

Each launch and each operation of arrays adds LAUNCH seconds of the host. The model leaves out that
warps wait for each other's results and for memory, and that small launches leave multiprocessors
idle. So the truth is longer, except where `issue` counts warps as idle that others stand in for.
Below each work stands the latest measurement in `results/gpu.jsonl`, of the commit that it names.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.gpu.counts import Asked, Counts, Macros, count, runner
from benchmarks.gpu.loops import Spacing, spacing
from benchmarks.gpu.work import WORKS, Work
from benchmarks.record import RESULTS, Log, table
from gpuforest.compiler.source import cuda_source

import nvrtc  # isort: skip  # of tests/support, see counts.py


@dataclass(frozen=True)
class Device:
    """Figures that are published; rates are of a second, or of a clock and multiprocessor.

    doubles : instructions of double precision that a multiprocessor takes as long for as for one
        of another kind
    copy : bytes a second to the host
    shared : bytes of shared memory of a block at the most
    """

    name: str
    architecture: str
    processors: int
    clock: float
    bandwidth: float
    l2_bytes: float
    l2_bandwidth: float
    doubles: float
    copy: float
    memory: float
    shared: int


DEVICES = [
    # NVIDIA's data sheet of the H100 SXM: 3.35 TB/s, 80 GB, 67 TFLOPS in float32 (of 132 x 256 a
    # clock, so 1.98 GHz), 34 TFLOPS in float64, PCIe of 128 GB/s in both directions; white paper:
    # 132 multiprocessors, 50 MB of L2 cache. L2 cache: 5.5 to 6 TB/s measured by Chips and Cheese
    # ("Nvidia's H100: Funny L2, and Tons of Bandwidth", 2023). Programming guide: 227 KiB a block.
    Device("H100", "sm_90", 132, 1.98e9, 3.35e12, 50e6, 5.5e12, 2, 64e9, 80e9, 227 << 10),
    # NVIDIA's data sheet of the T4: 320 GB/s, 16 GB, 8.1 TFLOPS in float32 (of 40 x 128 a clock, so
    # 1.59 GHz), PCIe of 32 GB/s; white paper of Turing: 40 multiprocessors, 4 MB of L2 cache, a
    # 32nd of the rate in float64. L2 cache: 1.27 TB/s by Jia, Maggioni, Smith and Scarpazza
    # ("Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking", 2019). Guide: 64 KiB a block.
    Device("T4", "sm_75", 40, 1.59e9, 0.32e12, 4e6, 1.27e12, 32, 16e9, 16e9, 64 << 10),
]
# No public figure: the package's Python and CuPy's take some microseconds for a launch, and NVIDIA
# ("Getting Started with CUDA Graphs", 2019) names some for CUDA's part.
LAUNCH = 10e-6
LINE, SECTOR = 64, 32
ISSUED = 4  # warps' instructions of a clock and multiprocessor, from sm_70 on

STAGES = {
    "edges": ["sort_columns", "find_gaps", "share_gaps", "edges"],
    "codes": ["encode"],
    "bags": ["bag", "count_in_bag", "in_bag", "totals"],
    "features": ["compare_samples", "compare_rows", "draw_features"],
    "histogram": ["histogram", "histogram_direct"],
    "cuts": ["best_cut", "best_split"],
    "mark": ["mark"],
    "move": ["move"],
    "deep phase": ["grow_subtrees", "collect"],
}
CACHED = {"encode"}  # gathers from the edges of all columns, which stay in the cache
REST, HOST, COPY = "nodes", "host", "copy back"
SHOWN = [*STAGES, REST, HOST, COPY]

# milliseconds by the first arithmetic, when the changes since were planned
GOALS = {"covtype-like": 140, "3.3M x 16": 130, "800k x 128": 105, "HIGGS-like": 480}


@cache
def kernels_of(operation: str, macros: Macros, architecture: str) -> dict[str, Spacing]:
    module = nvrtc.compiled(cuda_source(operation), architecture, dict(macros))
    return {kernel.name: spacing(kernel.sass) for kernel in module.kernels}


def limits(asked: Asked, own: Spacing, device: Device, table_bytes: float) -> dict[str, float]:
    """Seconds that each resource takes for a kernel."""
    gathered = LINE * asked.gathered_lines / device.bandwidth
    if table_bytes <= device.l2_bytes:
        gathered = SECTOR * asked.gathered_sectors / device.l2_bandwidth
    clocks = device.processors * device.clock
    instructions = asked.events * (own.instructions + own.doubles * (device.doubles - 1))
    return {
        "memory": LINE * asked.lines / device.bandwidth
        + gathered
        + SECTOR * asked.atomic_sectors / device.l2_bandwidth,
        "shared": (asked.passes + 2 * asked.atomic_passes) / clocks,
        "issue": instructions / ISSUED / clocks / asked.utilisation,
    }


def stage_of(kernel: str) -> str:
    return next((stage for stage, names in STAGES.items() if kernel in names), REST)


def times(counts: Counts, device: Device) -> dict[str, dict[str, float]]:
    """Seconds of each kernel, by what limits it."""
    found = {}
    for kernel, asked in counts.kernels.items():
        operation, macros = counts.macros_of[kernel]
        own = kernels_of(operation, macros, device.architecture)[kernel]
        table_bytes = 0 if kernel in CACHED else counts.table_bytes
        found[kernel] = limits(asked, own, device, table_bytes)
    return found


def stages(counts: Counts, device: Device) -> dict[str, float]:
    """Seconds of each stage."""
    found = dict.fromkeys(SHOWN, 0.0)
    for kernel, by_limit in times(counts, device).items():
        found[stage_of(kernel)] += max(by_limit.values())
    launches = sum(asked.launches for asked in counts.kernels.values())
    found[HOST] = LAUNCH * (launches + counts.operations)
    found[COPY] = counts.forest_bytes / device.copy
    return found


def measured(path: Path) -> dict[str, dict[str, Any]]:
    """The latest watched fit of each work: seconds by stage, their sum, and the commit."""
    found: dict[str, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else []:
        line = json.loads(text)
        if line["benchmark"] != "gpu":
            continue
        if line.get("what") == "fit" and line.get("source") == "device" and "median" in line:
            found.setdefault(line["work"], {})["sum"] = line["median"]
        if "lines" not in line:
            continue
        own = found.setdefault(line["work"], {})
        own.update(dict.fromkeys([*STAGES, REST], 0.0), commit=line["commit"])
        for span in line["lines"]:
            name = span["path"].split("/")[-1]
            if "." in name:  # a kernel
                own[stage_of(name.split(".")[1])] += span["seconds"]
    return found


def ms(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.0f}" if seconds > 0.01 else f"{1e3 * seconds:.1f}"


def rows_of(work: Work, found: dict[str, float], known: dict[str, Any] | None) -> list[list[str]]:
    """Of a work: the arithmetic, and what was measured."""
    shown = [*SHOWN, "sum"]
    rows = [[work.name, *(ms(found[stage]) for stage in shown), ""]]
    if known is not None:
        own = [f"measured at {known['commit']}", *(ms(known.get(stage)) for stage in shown)]
        rows.append([*own, f"{known['sum'] / found['sum']:.1f}"])
    return rows


def why(work: Work, counts: Counts, device: Device, total: float) -> str:
    """What takes longest, and how that compares with what was planned."""
    found = times(counts, device)
    kernel = max(found, key=lambda k: max(found[k].values()))
    limit = max(found[kernel], key=lambda what: found[kernel][what])
    asked, longest = counts.kernels[kernel], found[kernel][limit]
    text = f"- {work.name}: {kernel} takes {ms(longest)} ms, limited by {limit}"
    if limit == "issue":
        operation, macros = counts.macros_of[kernel]
        own = kernels_of(operation, macros, device.architecture)[kernel]
        text += (
            f": {asked.events:.2g} accesses and meetings of warps, with {own.instructions:.1f} "
            f"instructions each, and {asked.utilisation:.2f} of the warps busy"
        )
    elif limit == "memory":
        text += f": {asked.gathered_lines:.2g} lines at random, {asked.lines:.2g} others"
    if device.name == "H100" and (goal := GOALS.get(work.name)):
        text += f"; the sum is {1e3 * total / goal:.2f} times the {goal} ms that were planned"
    return text


def report(works: list[Work], device: Device, n_rows: int, log: Log | None) -> str:
    """A table, and a line for each work."""
    known = measured(RESULTS / "gpu.jsonl") if device.name == "H100" else {}
    rows, lines = [], []
    for work in works:
        counts = count(work, device.shared, device.memory, n_rows)
        found = stages(counts, device)
        total = found["sum"] = sum(found.values())
        rows += rows_of(work, found, known.get(work.name))
        lines.append(why(work, counts, device, total))
        if log is not None:
            by_limit = {k: t for k, t in times(counts, device).items() if max(t.values()) > 1e-3}
            log.add(
                what="roofline", work=work.name, device=device.name, small_rows=n_rows,
                seconds=found, limits=by_limit,
                counts={kernel: vars(counts.kernels[kernel]) for kernel in by_limit},
            )  # fmt: skip
    head = f"**{device.name}: milliseconds of a fit by arithmetic, not measured**"
    header = ["", *SHOWN, "sum", "measured / arithmetic"]
    return "\n\n".join([head, table(header, rows), "\n".join(lines)])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.roofline")
    add = parser.add_argument
    names = ", ".join(w.name for w in WORKS)
    add("--works", default="", help=f"names, or how they begin, with commas between: {names}")
    add("--devices", default="H100,T4")
    add("--rows", type=int, default=4096, help="of the small trees, at the least")
    add("--results", type=Path, help=f"where lines are added; {RESULTS.name}/roofline.jsonl")
    options = parser.parse_args(arguments)
    for reason in (runner.available("traced"), nvrtc.why_not()):
        if reason is not None:
            print(f"benchmarks.gpu.roofline: {reason}", file=sys.stderr)
            return 2
    asked = tuple(name for name in options.works.split(",") if name)
    works = [work for work in WORKS if not asked or work.name.startswith(asked)]
    log = Log("roofline", options.results)
    for device in DEVICES:
        if device.name in options.devices.split(","):
            print(report(works, device, options.rows, log), end="\n\n")
    print(f"results: {log.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
