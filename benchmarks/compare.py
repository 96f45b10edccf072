"""Tables from the lines that rivals.py writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES
from benchmarks.record import spread, table

Line = dict[str, Any]
Runs = dict[str, list[Line]]  # of a work, by library

OURS = "gpuforest"
FIT, PREDICT, ROW = "fit_s", "predict_s", "one_row_one_thread_ms"
# of the table of one work: column, measure, digits (None: three that count)
COLUMNS = [
    ("fit s", FIT, None),
    ("fit, CPU s", "fit_cpu_s", None),
    ("predict s", PREDICT, None),
    ("one row ms", ROW, None),
    ("peak MB", "peak_mb", None),
    ("model MB", "model_mb", None),
    ("accuracy", "accuracy", 4),
    ("log loss", "log_loss", 4),
    ("R2", "r2", 4),
]


def by_work(lines: Sequence[Line]) -> dict[str, Runs]:
    """The runs of each work, in the order of their first measurement, including unfinished ones."""
    found: dict[str, Runs] = {}
    for line in lines:
        found.setdefault(line["work"], {}).setdefault(line["library"], []).append(line)
    return found


def values(runs: Runs, library: str, key: str) -> list[float]:
    return [line[key] for line in runs.get(library, []) if key in line]


def middle(runs: Runs, library: str, key: str) -> float:
    return float(np.median(values(runs, library, key)))


def least(runs: Runs, key: str) -> str | None:
    """The rival that needs the least."""
    rivals = [name for name in runs if name != OURS and values(runs, name, key)]
    return min(rivals, key=lambda name: middle(runs, name, key), default=None)


def times_ours(runs: Runs, rival: str | None, key: str) -> float | None:
    """How many times as much the rival needs: the median of pairs of neighbouring runs."""
    ours = {(x["date"], x["seed"]): x[key] for x in runs.get(OURS, []) if key in x}
    pairs = [
        line[key] / ours[line["date"], line["seed"]]
        for line in runs.get(rival or "", [])
        if key in line and (line["date"], line["seed"]) in ours
    ]
    return float(np.median(pairs)) if pairs else None


def cell(runs: Runs, library: str, key: str, digits: int | None = None) -> str:
    """Median and spread, or the reason why there is none."""
    if found := values(runs, library, key):
        return spread(found, three_digits(float(np.median(found))) if digits is None else digits)
    for line in runs.get(library, []) if key == FIT else []:
        return f"> {line['over']:g}" if "over" in line else "failed"
    return ""


def three_digits(x: float) -> int:
    """Decimals for three digits that count."""
    return max(0, 2 - math.floor(math.log10(x))) if x > 0 else 0


def theirs(runs: Runs, rival: str | None, key: str, named: bool = False) -> str:
    """A rival's median with its ratio to ours."""
    if rival is None or not (text := cell(runs, rival, key).split(" (")[0]):
        return ""
    said = times(runs, rival, key)
    said += "x" if said else ""
    if named:
        said += f", {title(rival)}" if said else title(rival)
    return f"{text} ({said})" if said else text


def times(runs: Runs, rival: str, key: str) -> str:
    """`times_ours` as text."""
    ratio = times_ours(runs, rival, key)
    return "" if ratio is None else f"{ratio:.{three_digits(ratio)}f}"


def title(library: str) -> str:
    return LIBRARIES[library].title if library in LIBRARIES else library


def about(runs: Runs) -> Line:
    """A line of a fit that ended, where there is one."""
    lines = [line for each in runs.values() for line in each]
    return next((line for line in lines if "rows" in line), lines[0])


def shape(runs: Runs) -> str:
    line = about(runs)
    if "rows" not in line:
        return "no fit ended"
    kind = f"{line['classes']} classes" if line["classes"] else "regression"
    depth = "unlimited depth" if line["depth"] is None else f"depth {line['depth']}"
    return f"{line['rows']:,} x {line['features']}, {kind}, {depth}"


def summary(lines: Sequence[Line]) -> str:
    """A row for each work: how fast; then how large and how good."""
    fast, good = [], []
    for name, runs in by_work(lines).items():
        score = "accuracy" if about(runs).get("classes") else "r2"

        def best(key: str, runs: Runs = runs) -> str:
            return theirs(runs, least(runs, key), key, named=True)

        row = [f"{name}: {shape(runs)}"]
        for key in (FIT, PREDICT):
            row += [cell(runs, OURS, key), theirs(runs, "sklearn", key), best(key)]
        fast.append([*row, cell(runs, OURS, ROW), best(ROW)])
        sizes = [cell(runs, OURS, "peak_mb"), best("peak_mb"), cell(runs, OURS, "model_mb")]
        good.append([name, *sizes, theirs(runs, "sklearn", "model_mb")]
                    + [f"{middle(runs, library, key):.4f}" if values(runs, library, key) else ""
                       for key in (score, "log_loss") for library in (OURS, "sklearn", "sklearnex")
                       ])  # fmt: skip
    times = ["fit s", "scikit-learn", "fastest rival", "predict s", "scikit-learn"]
    times += ["fastest rival", "one row ms", "fastest rival"]
    sizes = ["peak MB", "leanest rival", "model MB", "scikit-learn"]
    both = ["scikit-learn", "scikit-learn-intelex"]
    scores = [x for score in ("accuracy or R2", "log loss") for x in (score, *both)]
    return f"{table(['work', *times], fast)}\n\n{table(['work', *sizes, *scores], good)}"


def details(lines: Sequence[Line]) -> str:
    return "\n\n".join(detail(name, runs) for name, runs in by_work(lines).items())


def detail(name: str, runs: Runs) -> str:
    columns = [c for c in COLUMNS if c[1] == FIT or any(values(runs, x, c[1]) for x in runs)]
    rows, notes = [], []
    for library, own in runs.items():
        ratios = ["" if library == OURS else times(runs, library, key) for key in (FIT, PREDICT)]
        rows.append(
            [
                f"{title(library)} {own[0]['version']}",
                *(cell(runs, library, key, digits) for _, key, digits in columns),
                *ratios,
            ]
        )
        if library in LIBRARIES and LIBRARIES[library].note:
            notes.append(f"- {title(library)}: {LIBRARIES[library].note}")
    header = ["", *(c[0] for c in columns), "fit, times ours", "predict, times ours"]
    line = next(iter(runs.values()))[0]
    head = f"**{name}**: {shape(runs)}, {line['trees']} trees, {line['threads']} threads"
    return "\n\n".join([head, table(header, rows), *(["\n".join(notes)] if notes else [])])
