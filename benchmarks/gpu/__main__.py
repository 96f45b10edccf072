"""python -m benchmarks.gpu: parity on the GPU, then times. See benchmarks/README.md."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.gpu import boosting, check, counters, measure
from benchmarks.gpu.device import open_device
from benchmarks.gpu.report import report
from benchmarks.gpu.run import LostDevice, Run
from benchmarks.gpu.work import SWEEP, SWEEP_ROWS, WORKS, Work
from benchmarks.record import RESULTS, ROOT, Log
from gpuforest.backends import gpu

PARTS = ["works", "stages", "boosting", "first", "sweep", "cpu"]
MORE_PARTS = ["turns", "extras", "counters", "rest", "sanitize"]
# an examination of a device: commands that each end within PART_SECONDS, in this order
PLAN = {
    "correct": "--minutes 7 --works 3.3M,year --parts cpu",
    "boosting": "--minutes 7 --no-check --repeat 3 --parts boosting",
    "turns": "--minutes 7 --no-check --repeat 3 --parts turns --works covtype,HIGGS,3.3M,year",
    "works": "--minutes 7 --no-check --repeat 5 --parts works,stages",
    "memcheck": "--minutes 7 --no-check --parts sanitize --works none --tools memcheck",
    "racecheck": "--minutes 7 --no-check --parts sanitize --works none --tools racecheck",
    "counters": "--minutes 7 --no-check --parts counters",
    "first": "--minutes 7 --no-check --parts first --cold",
    "extras": "--minutes 7 --no-check --works 3.3M,year,covtype-like --parts extras,sweep",
    "rest": "--minutes 7 --no-check --parts rest --works none",
}
# parts, how the names of their works begin, and what is done with each; None: with all together
STEPS: list[tuple[str, Any, Callable[..., None]]] = [
    ("works", "", measure.one_work),
    ("boosting", boosting.WORKS, boosting.one_work),
    ("turns", boosting.WORKS, boosting.turns),
    ("turns", "", measure.turns),
    ("extras", "", measure.extras),
    ("counters", counters.WORKS, counters.count),
    ("sweep", None, measure.sweep),
    ("first", None, measure.first_calls),
    ("cpu", "", measure.on_cpu),
]
PART_SECONDS = 470
QUICK = 20  # times fewer rows
NO_GPU = 2  # exit status


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.plan:
        return planned(options)
    if not options.emulated and (reason := gpu.why_not()) is not None:
        print(f"benchmarks.gpu: no GPU can be used: {reason}", file=sys.stderr)
        return NO_GPU
    device = open_device("emulated" if options.emulated else "cupy")
    log = Log("gpu", options.results, device=device.describe())
    if options.commit:
        log.common["commit"] = options.commit
    run = Run(device, log, options)
    print("device: " + ", ".join(f"{k} {v}" for k, v in log.common["device"].items()), flush=True)
    if options.check and not check.parity_holds(run):
        print("the parity tests fail on this device, so nothing is timed")
        return 1
    works = chosen(options)
    if "sanitize" in options.parts:
        check.sanitize(run)
    status = 0
    try:
        everything(run, works)
    except LostDevice as error:
        print(f"CUDA is lost in this process: {error}", flush=True)
        status = go_on(run, works)
    print(f"\n{report(run)}\n\nresults: {log.path}", flush=True)
    return 1 if run.failed else status


def everything(run: Run, works: list[Work]) -> None:
    """Run all parts, the most important ones first."""
    parts = run.options.parts
    if "rest" in parts:
        limit = run.left() - check.LAST_TEST
        run.attempt("parity", None, lambda: check.parity_holds(run, "rest", limit))
    run.attempt("copy", None, lambda: measure.copies(run))
    for part, names, function in STEPS:
        if part in parts and names is None:
            run.attempt(part, None, partial(function, run, works))
        for work in works if part in parts and names is not None else []:
            if work.name.startswith(names):
                run.attempt(part, work, partial(function, run, work))


def planned(options: argparse.Namespace) -> int:
    """Run a part of PLAN, with the other arguments after its own. If it is stopped, what it has
    measured stays in the results."""
    name, others = options.plan, list(options.arguments)
    at = next(i for i, argument in enumerate(others) if argument.startswith("--plan"))
    del others[at : at + 1 + (others[at] == "--plan")]
    command = [sys.executable, "-m", "benchmarks.gpu", *PLAN[name].split(), *others]
    print(f"{name}: {' '.join(command[1:])}", flush=True)
    try:
        return subprocess.run(command, cwd=ROOT, timeout=PART_SECONDS).returncode
    except subprocess.TimeoutExpired:
        print(f"{name} was stopped after {PART_SECONDS} s", flush=True)
        return 1


def go_on(run: Run, works: list[Work]) -> int:
    """Run the works that have no line yet in a new process; other parts wait."""
    begun = {line.get("work") for line in run.lines}
    left = [work.name for work in works if work.name not in begun]
    if left and run.left() >= 30:
        again = ["--no-check", "--works", ",".join(left), "--minutes", str(run.left() / 60)]
        again += ["--results", str(run.log.path)]  # what comes last counts
        command = [sys.executable, "-m", "benchmarks.gpu", *run.options.arguments, *again]
        subprocess.run(command, cwd=ROOT)
    return 1


def chosen(options: argparse.Namespace) -> list[Work]:
    """The works asked for."""
    names = options.works or [""]
    works = [w for w in WORKS if any(w.name.startswith(n) for n in names)]
    if options.quick:
        works = [work.shrunk(QUICK) for work in works]
    if options.emulated:
        works = [replace(w, rows=200, test_rows=100, trees=2, depth=3) for w in works]
    return works


def parse(arguments: list[str] | None) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name.strip() for name in text.split(",") if name.strip()]

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--minutes", type=float, default=8, help="parts that would begin later are left out")
    add("--works", type=names, help="names, or how they begin: " + ", ".join(w.name for w in WORKS))
    add("--parts", type=names, default=PARTS, help=",".join(PARTS + MORE_PARTS))
    add("--repeat", type=int, default=7, help="timed fits of each work, after one")
    add("--quick", action="store_true", help=f"1/{QUICK} of the rows")
    add("--cold", action="store_true", help="the first call without a cache of kernels, too")
    add("--no-check", dest="check", action="store_false", help="do not run the parity tests")
    add("--results", type=Path, help=f"where lines are added; {RESULTS.name}/gpu.jsonl")
    plan = "a part of an examination that ends within eight minutes: one after the other, "
    add("--plan", choices=PLAN, metavar="PART", help=plan + ", ".join(PLAN))
    tools = "sanitizers, with --parts sanitize: " + ", ".join(check.TOOLS)
    add("--tools", type=names, default=[*check.TOOLS], help=tools)
    add("--cases", default="", help="small fits for a sanitizer, as benchmarks.gpu.small has them")
    add("--commit", help="what was measured, where git does not say")
    add("--emulated", action="store_true", help="try this script without a GPU")
    options = parser.parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    for what, known in (("parts", [*PARTS, *MORE_PARTS]), ("tools", [*check.TOOLS])):
        if unknown := set(getattr(options, what)) - set(known):
            parser.error(f"--{what}: unknown: {', '.join(sorted(unknown))}")
    options.sweep, options.sweep_trees = SWEEP_ROWS, SWEEP.trees
    if options.quick:
        options.sweep = [n // QUICK for n in SWEEP_ROWS]
    if options.emulated:
        options.check, options.sweep, options.sweep_trees, options.repeat = False, [100, 200], 2, 1
        folder = tempfile.mkdtemp()
        options.results = options.results or Path(folder) / "gpu.jsonl"
    return options


if __name__ == "__main__":
    sys.exit(main())
