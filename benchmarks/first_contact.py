"""What does first contact cost? README's commands with two commits in turn, in fresh clones.

    python -m benchmarks.first_contact --before b54ca7ae --after HEAD --rounds 3

Each round clones both commits and makes new environments. Folders for caches are new and empty in
each: for kernels, for the tests' builds, for matplotlib. pip's cache of downloads is the user's in
all of them, and stays as it is. --parts chooses from these parts, by default all but the last:

example  README's first command: seconds of the clock, and of processors by all its processes
install  `pip install .` alone, in an environment that is there
forest   after it, in a new process, a fit of 100 trees to 200,000 x 28; and the same once more
starts   after it and `gpuforest warmup`, new processes of both in turn: `import gpuforest`, and the
         first prediction of a saved model
tests    README's second command with empty caches, then its tests again with what was compiled

The tests find the data sets beside this checkout. `results/first_contact.jsonl` gets a line for
each part with the seconds of all rounds, and ratios of medians, the second commit's to the first's.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import ROOT, Log, options_of, spread, table

DATA = """
import time
import numpy as np
import gpuforest
rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 28)).astype(np.float32)
y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + X[:, 3] + rng.normal(size=len(X)) > 0
"""
FOREST = f"""{DATA}
begin = time.perf_counter()
gpuforest.RandomForestClassifier(100, random_state=0).fit(X, y)
print(time.perf_counter() - begin)
"""
SAVED = f"""{DATA}
forest = gpuforest.RandomForestClassifier(100, random_state=0).fit(X[:20_000], y[:20_000])
forest.save("saved.model")
np.save("rows.npy", X[-10_000:])
"""
PREDICT = """
import numpy as np
import gpuforest
gpuforest.load("saved.model").predict(np.load("rows.npy"))
"""
STARTS = {"import": "import gpuforest", "first prediction": PREDICT}
PARTS = ("example", "install", "forest", "starts", "tests")
SIDES = ("before", "after")
SUBREAPER = 36  # Linux's number of PR_SET_CHILD_SUBREAPER: orphans come to this process
Found = dict[tuple[str, str], dict[str, list[float]]]  # seconds by part and name, and by side


class Clone:
    """A fresh clone of a commit, beside folders for caches that are empty."""

    def __init__(self, folder: Path, commit: str, pip_cache: str) -> None:
        self.folder, self.tree = folder, folder / "tree"
        unset = ("PYTHONPATH", "GPUFOREST_TARGETS", "GPUFOREST_BACKEND", "VIRTUAL_ENV")
        caches = {"XDG_CACHE_HOME": folder / "cache", "NUMBA_CACHE_DIR": folder / "cache" / "numba"}
        self.env = {k: v for k, v in os.environ.items() if k not in unset}
        self.env |= {k: str(v) for k, v in caches.items()} | {"PIP_CACHE_DIR": pip_cache}
        for path in (self.tree, folder / "elsewhere"):
            path.mkdir(parents=True)
        if (ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to(ROOT.parent / "shared")
        self.seconds(f"git clone --quiet '{ROOT}' . && git checkout --quiet {commit}")

    def run(self, *command: str, where: str = "tree", check: bool = True) -> str:
        """What a command prints."""
        done = subprocess.run(
            command, cwd=self.folder / where, env=self.env, stdout=subprocess.PIPE, text=True
        )
        if check and done.returncode:
            raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def seconds(self, command: str, check: bool = True) -> tuple[float, float]:
        """Seconds of a shell's command: by the clock, and of processors, by what it leaves in the
        background, too."""
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        printed = self.run("bash", "-euo", "pipefail", "-c", command, check=check)
        wall = time.perf_counter() - begin
        wait_for_orphans()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if printed:
            print(printed.strip().splitlines()[-1], flush=True)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return wall, spent

    def python(self, program: str) -> str:
        """What a program prints, with the installed package and not with the sources."""
        return self.run(str(self.tree / ".venv/bin/python"), "-P", "-c", program, where="elsewhere")


def wait_for_orphans() -> None:
    """Wait for the processes that commands have left behind, which belong to this one."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def examples(clone: Clone, side: str, found: Found) -> None:
    wall, processor = clone.seconds(clone.run("bash", ".ci/readme-command", "example").strip())
    found["example", "README's first command"][side].append(wall)
    found["example", "processor time of it"][side].append(processor)


def tests(clone: Clone, side: str, found: Found) -> None:
    *install, run = clone.run("bash", ".ci/readme-command", "tests").strip().split(" && ")
    wall, _ = clone.seconds(" && ".join(install))
    cold, _ = clone.seconds(run, check=False)
    compiled, _ = clone.seconds(run, check=False)
    found["tests", "README's second command, kernels compiled"][side].append(compiled)
    found["tests", "more with a cold cache"][side].append(cold - compiled)
    found["tests", "its installation"][side].append(wall)


def installed(clone: Clone, side: str, found: Found, parts: list[str]) -> None:
    clone.seconds("python3 -m venv .venv")
    wall, _ = clone.seconds(".venv/bin/pip install --quiet .")
    found["install", "`pip install .` alone"][side].append(wall)
    if "forest" in parts:
        first = float(clone.python(FOREST))
        wait_for_orphans()
        second = float(clone.python(FOREST))
        found["forest", "first forest less the second"][side].append(first - second)
        found["forest", "second forest"][side].append(second)


def starts(clones: dict[str, Clone], pairs: int, found: Found) -> None:
    for clone in clones.values():
        clone.seconds(".venv/bin/gpuforest warmup")
        clone.python(SAVED)
    for name, program in STARTS.items():
        for i in range(-1, pairs):
            for side in SIDES[:: 1 if i % 2 else -1]:
                begin = time.perf_counter()
                clones[side].python(program)
                if i >= 0:  # the first reads files from the disk
                    found["starts", name][side].append(time.perf_counter() - begin)


def measure_all(commits: dict[str, str], options: argparse.Namespace, found: Found) -> None:
    """All seconds; each round begins with the other commit than the round before it."""
    command = ["python3", "-m", "pip", "cache", "dir"]
    cache = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for turn in range(options.rounds):
        order = SIDES[:: -1 if turn % 2 else 1]
        with tempfile.TemporaryDirectory() as folder:
            for part, measure in (("example", examples), ("tests", tests)):
                for side in order if part in options.parts else ():
                    own = Path(folder) / part / side
                    measure(Clone(own, commits[side], cache), side, found)
                    shutil.rmtree(own)
            clones: dict[str, Clone] = {}
            for side in order if {"install", "forest", "starts"} & {*options.parts} else ():
                clones[side] = Clone(Path(folder) / side, commits[side], cache)
                installed(clones[side], side, found, options.parts)
            if "starts" in options.parts:
                starts(clones, options.pairs, found)
        print(f"round {turn + 1} of {options.rounds} is done", flush=True)


def commit_of(name: str) -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    kinds = {"before": "b54ca7ae", "after": "HEAD", "rounds": 3}
    # pairs: of starts, in each round
    options = options_of(__doc__, choices={"parts": PARTS}, parts=[*PARTS[:-1]], pairs=11, **kinds)
    commits: dict[str, Any] = {side: commit_of(getattr(options, side)) for side in SIDES}
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    log, rows = Log("first_contact", **commits), []
    found: Found = defaultdict(lambda: {side: [] for side in SIDES})
    try:
        measure_all(commits, options, found)
    finally:  # also what was measured before an interruption
        for (part, name), sides in found.items():
            if all(sides.values()):
                ratio = float(np.median(sides["after"]) / np.median(sides["before"]))
                log.add(part=part, what=name, seconds=sides, median_ratio=ratio)
                rows.append([name, *map(spread, sides.values()), f"{ratio:.3f}"])
        print(table(["seconds", *commits.values(), "ratio"], rows))


if __name__ == "__main__":
    main()
