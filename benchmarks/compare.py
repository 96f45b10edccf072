"""Tables from the lines that rivals.py writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES
from benchmarks.record import spread, table
from benchmarks.works import WORKS, Goals

Line = dict[str, Any]
Runs = dict[str, list[Line]]  # of a work, by library

OURS = "gpuforest"
FIT, PREDICT, ROW = "fit_seconds", "predict_seconds", "one_row_one_thread_ms"
# of the table of one work: column, measure, digits (None: three that count)
COLUMNS = [
    ("fit s", FIT, None),
    ("fit, CPU s", "fit_cpu_seconds", None),
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
    """`times_ours`; for a fit that was killed, a lower bound."""
    ratio = times_ours(runs, rival, key)
    if ratio is not None:
        return f"{ratio:.{three_digits(ratio)}f}"
    least = at_least(runs, rival, key)
    return "" if least is None else f"> {least:.{three_digits(least)}f}"


def at_least(runs: Runs, rival: str, key: str) -> float | None:
    over = [line["over"] for line in runs.get(rival, []) if "over" in line]
    if key != FIT or not over or not values(runs, OURS, key):
        return None
    return over[0] / middle(runs, OURS, key)


def title(library: str) -> str:
    return LIBRARIES[library].title if library in LIBRARIES else library


def shape(runs: Runs) -> str:
    line = next(iter(runs.values()))[0]
    kind = f"{line['classes']} classes" if line["classes"] else "regression"
    depth = "unlimited depth" if line["depth"] is None else f"depth {line['depth']}"
    return f"{line['rows']:,} x {line['features']}, {kind}, {depth}"


# ------------------------------------------------------------------ a row for each work


def summary(lines: Sequence[Line]) -> str:
    """How fast; then how large and how good."""
    fast, good = [], []
    for name, runs in by_work(lines).items():
        score = "accuracy" if next(iter(runs.values()))[0]["classes"] else "r2"
        fast.append(
            [
                f"{name}: {shape(runs)}",
                cell(runs, OURS, FIT),
                theirs(runs, "sklearn", FIT),
                theirs(runs, least(runs, FIT), FIT, named=True),
                cell(runs, OURS, PREDICT),
                theirs(runs, "sklearn", PREDICT),
                theirs(runs, least(runs, PREDICT), PREDICT, named=True),
                cell(runs, OURS, ROW),
                theirs(runs, least(runs, ROW), ROW, named=True),
            ]
        )
        good.append(
            [
                name,
                cell(runs, OURS, "peak_mb"),
                theirs(runs, least(runs, "peak_mb"), "peak_mb", named=True),
                cell(runs, OURS, "model_mb"),
                theirs(runs, "sklearn", "model_mb"),
            ]
            + [
                f"{middle(runs, library, key):.4f}" if values(runs, library, key) else ""
                for key in (score, "log_loss")
                for library in (OURS, "sklearn", "sklearnex")
            ]
        )
    times = ["fit s", "scikit-learn", "fastest rival", "predict s", "scikit-learn"]
    times += ["fastest rival", "one row ms", "fastest rival"]
    sizes = ["peak MB", "leanest rival", "model MB", "scikit-learn"]
    both = ["scikit-learn", "scikit-learn-intelex"]
    scores = [x for score in ("accuracy or R2", "log loss") for x in (score, *both)]
    return f"{table(['work', *times], fast)}\n\n{table(['work', *sizes, *scores], good)}"


# --------------------------------------------------------------- a row for each library


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


# ------------------------------------------------------------------------------- goals


def goals(lines: Sequence[Line]) -> str:
    """Ratios beside their goals; the goals of the last four are 1 or 0."""
    wanted = {work.name: work.goals for work in WORKS}
    rows = []
    for name, runs in by_work(lines).items():
        own = wanted.get(name, Goals())
        leanest = times_ours(runs, least(runs, "peak_mb"), "peak_mb")
        size = times_ours(runs, "sklearn", "model_mb")
        rows.append(
            [
                name,
                reached(runs, "sklearn", FIT, own.fit_sklearn),
                reached(runs, least(runs, FIT), FIT, own.fit_fastest),
                reached(runs, least(runs, PREDICT), PREDICT, own.predict_fastest),
                "" if leanest is None else f"{1 / leanest:.2f}",
                "" if size is None else f"{1 / size:.2f}",
                ahead(runs, "r2" if values(runs, OURS, "r2") else "accuracy", max),
                ahead(runs, "log_loss", min),
            ]
        )
    header = [
        "work",
        "fit: scikit-learn / ours",
        "fit: fastest / ours",
        "predict: fastest / ours",
        "peak: ours / leanest",
        "model: ours / scikit-learn's",
        "accuracy or R2: ours - better",
        "log loss: ours - better",
    ]
    return table(header, rows)


def reached(runs: Runs, rival: str | None, key: str, goal: float | None) -> str:
    said = "" if rival is None else times(runs, rival, key)
    if rival is None or not said or goal is None:
        return said
    ratio = times_ours(runs, rival, key) or at_least(runs, rival, key) or 0
    if said.startswith(">") and ratio < goal:
        return f"{said} ? {goal:g}"  # not known
    return f"{said} {'≥' if ratio >= goal else '<'} {goal:g}"


def ahead(runs: Runs, key: str, better: Any) -> str:
    """Ours less the better of scikit-learn and scikit-learn-intelex."""
    others = [middle(runs, x, key) for x in ("sklearn", "sklearnex") if values(runs, x, key)]
    if not others or not values(runs, OURS, key):
        return ""
    return f"{middle(runs, OURS, key) - better(others):+.4f}"


# ----------------------------------------------------------------------------- scaling


def scaling(lines: Sequence[Line], along: str) -> str:
    """Fit seconds beside those of half the rows or trees, and beside n log n or n."""
    found: dict[str, dict[int, list[float]]] = {}
    for line in lines:
        if FIT in line:
            sizes = found.setdefault(line["library"], {})
            sizes.setdefault(line[along], []).append(line[FIT])
    rows = []
    for library, sizes in found.items():
        before: tuple[int, float] | None = None
        for n, times in sorted(sizes.items()):
            now = n, float(np.median(times))
            grown = expected = ""
            if before:
                work = (lambda n: n * math.log(n)) if along == "rows" else float
                grown = f"{now[1] / before[1]:.2f}"
                expected = f"{work(n) / work(before[0]):.2f}"
            rows.append(
                [title(library), f"{n:,}", spread(times, three_digits(now[1])), grown, expected]
            )
            before = now
    law = "n log n" if along == "rows" else "linear"
    return table(["", along, "fit s", "times the one before", law], rows)
