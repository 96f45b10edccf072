"""How fast, how large, how good, beside other libraries?  python -m benchmarks.rivals

Each fit runs in a fresh process (one_fit.py), the libraries in turn, so that all meet the
same noise. Only ratios within one run mean something on another machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import compare, works
from benchmarks.compare import FIT, OURS, Line
from benchmarks.fresh import one_fit, wait_until_calm
from benchmarks.libraries import LIBRARIES
from benchmarks.record import RESULTS, Log
from benchmarks.works import Work

RIVALS = [
    "sklearn",
    "sklearnex",
    "lightgbm",
    "xgboost",
    "ydf",
    "snapml",
    "snapml-binned",
    "fastforest",
    "ranger",
]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.scaling:
        libraries = installed([OURS, *(options.rivals or [])])
        for along, wanted in zip(("rows", "trees"), works.scaling(options.trees), strict=True):
            print(f"\n{compare.scaling(measured(wanted, libraries, options), along)}", flush=True)
        return
    if options.table:
        lines = written(options)
    else:
        rivals = RIVALS if options.rivals is None else options.rivals
        lines = measured(options.works, installed([OURS, *rivals]), options)
    parts = [compare.summary(lines)]
    if options.details or not options.table:
        parts.append(compare.details(lines))
    if options.goals:
        parts.append(compare.goals(lines))
    print("\n\n".join(parts))


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    by_name = {work.name: work for work in works.WORKS}

    def some_of(known: dict[str, Any]) -> Any:
        def chosen(text: str) -> list[str]:
            names = [name for name in text.split(",") if name]
            if unknown := [name for name in names if name not in known]:
                raise argparse.ArgumentTypeError(f"no {unknown[0]}: there are {', '.join(known)}")
            return names

        return chosen

    parser = argparse.ArgumentParser(prog="benchmarks.rivals", description=__doc__)
    add = parser.add_argument
    add("--works", type=some_of(by_name), default=list(by_name), help="; ".join(by_name))
    add(
        "--rivals",
        type=some_of(LIBRARIES),
        help=f"of {', '.join(x for x in LIBRARIES if x != OURS)}; without: {', '.join(RIVALS)}",
    )
    add("--repeat", type=int, default=3)
    add("--trees", type=int, default=100)
    add("--threads", type=int, default=2)
    add("--limit", type=float, help="seconds, after which a fit is killed")
    add("--calm", type=float, default=60, help="seconds to wait for idleness, before each fit")
    add("--part", type=float, default=1, help="of the rows of made sets, to try it")
    add("--data", type=Path, help="folder of the real data sets")
    add("--results", type=Path, default=RESULTS / "rivals.jsonl", help="where lines are added")
    add("--goals", action="store_true", help="print also the ratios beside what they are to be")
    add("--scaling", action="store_true", help="ever more rows and trees instead; ours only, or")
    add("--table", action="store_true", help="print the tables of --results, measure nothing")
    add("--commit", help="of --table: that commit's lines; without: those of the last line's")
    add("--date", help="of --table: of that day or minute only, such as 2027-01-31")
    add("--details", action="store_true", help="of --table: a table for each work, too")
    options = parser.parse_args(arguments)
    options.works = [by_name[name] for name in options.works]
    return options


def installed(names: Sequence[str]) -> dict[str, str]:
    """The versions of the libraries that are there."""
    found = {}
    for name in dict.fromkeys(names):
        version = LIBRARIES[name].version()
        if version is None:
            say(f"{LIBRARIES[name].title}: skipped, it is not installed")
        else:
            found[name] = version
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measured(
    wanted: Sequence[Work], libraries: dict[str, str], options: argparse.Namespace
) -> list[Line]:
    log, lines = Log("rivals", options.results), []
    for _, group in groupby(wanted, key=lambda work: (work.set, work.rows)):
        alike = list(group)
        with tempfile.TemporaryDirectory() as folder:
            about = write_data(alike[0], Path(folder), options)
            for work in alike if about else []:
                task = {
                    "data": folder,
                    "trees": work.trees or options.trees,
                    "depth": work.depth,
                    "threads": options.threads,
                    "fits": work.fits,
                }
                lines += in_turn(work, {**task, **about}, libraries, options, log)
    return lines


def write_data(work: Work, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The arrays as files; what there is to say of them; nothing where they are absent."""
    made = works.load(work, options.part, options.data)
    if made is None:
        return {}
    for name in ("X_train", "y_train", "X_test", "y_test"):
        np.save(folder / f"{name}.npy", getattr(made, name))
    rows, features = made.X_train.shape
    return {
        "set": work.set,
        "part": options.part,
        "rows": rows,
        "test_rows": len(made.X_test),
        "features": features,
        "classes": int(made.y_train.max()) + 1 if made.is_classes else 0,
        "tried": max(1, int(features**0.5) if made.is_classes else features // 3),
    }


def in_turn(
    work: Work,
    task: dict[str, Any],
    libraries: dict[str, str],
    options: argparse.Namespace,
    log: Log,
) -> list[Line]:
    """A B C A B C ...; who failed or took too long is not asked again."""
    lines, given_up = [], set[str]()
    about = {key: value for key, value in task.items() if key != "data"}
    for seed in range(1, options.repeat + 1):
        for library, version in libraries.items():
            if library in given_up:
                continue
            wait_until_calm(options.calm)
            found = one_fit({**task, "library": library, "seed": seed}, options.limit)
            line = {"work": work.name, "library": library, "version": version, "seed": seed}
            lines.append(log.add(**line, **about, **found))
            if FIT not in found:
                given_up.add(library)
            say(f"{work.name}, {LIBRARIES[library].title}: {outcome(found)}")
    return lines


def outcome(found: dict[str, Any]) -> str:
    if "over" in found:
        return f"killed, its fit took more than {found['over']:g} s"
    return f"failed: {found['error']}" if "error" in found else f"fit {found[FIT]:.3g} s"


def written(options: argparse.Namespace) -> list[Line]:
    """Lines of the results, of one commit; of a work that was measured twice, the last run's."""
    lines = [json.loads(text) for text in options.results.read_text().splitlines()]
    same = {name: getattr(options, name) for name in ("trees", "threads", "part")}
    names = {work.name for work in options.works}
    lines = [x for x in lines if x["work"] in names and same.items() <= x.items()]
    lines = [x for x in lines if x["date"].startswith(options.date or "")]
    commit = options.commit or (lines[-1]["commit"] if lines and not options.date else "")
    lines = [x for x in lines if commit.startswith(x["commit"]) or not commit]
    last = {(x["work"], x["library"]): x["date"] for x in lines}
    runs = {(work, date) for (work, _), date in last.items()}
    return [  # ours of every run with a rival that is shown: ratios are of neighbours
        x
        for x in lines
        if x["date"] == last[x["work"], x["library"]]
        or (x["library"] == OURS and (x["work"], x["date"]) in runs)
    ]


if __name__ == "__main__":
    main()
