"""A run's lines as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu.run import Run
from benchmarks.record import by_method, table

SHOWN = 0.005  # of a fit; spans of less are in the results alone
# tables of works: a figure in the lines, and its unit
FIGURES = {"score": ("score", 1), "peak GB": ("peak_bytes", 1e9), "model MB": ("model_bytes", 1e6)}


def report(run: Run) -> str:
    parts = [stages(line) for line in run.lines if "lines" in line]
    lines = [cell(line) for line in run.lines if "work" in line]
    seconds = [{**x, "seconds": s} for x in lines for s in x.get("seconds", ())]
    parts.append(by_method(seconds, "seconds", "median"))
    for name, (key, unit) in FIGURES.items():
        own = [{**x, name: x[key] / unit} for x in lines if x.get(key) is not None]
        parts.append(by_method(own, name, "median"))
    return "\n\n".join(part for part in [*parts, first(run), failures(run)] if part)


def cell(line: dict[str, Any]) -> dict[str, Any]:
    """A line with its place in a table, and its accuracy or R2."""
    source = line.get("source", "")
    score = line.get("accuracy", line.get("r2"))
    method = f"{line['what']} from {source}" if source in ("device", "host") else source
    set_ = f"{line['work']}, {line['rows']:,} rows"
    return {**line, "set": set_, "method": method or line["what"], "score": score}


def stages(line: dict[str, Any]) -> str:
    """Where the time of a fit goes, each line below the one that it is in."""
    rows = []
    whole = line["lines"][0]["seconds"]
    for span in line["lines"]:
        if span["seconds"] < SHOWN * whole:
            continue
        *above, name = span["path"].split("/")
        times = [f"{1e3 * span[key]:.2f}" for key in ("seconds", "own_seconds")]
        share = f"{100 * span['seconds'] / whole:.0f}"
        counts = [str(span["calls"]), str(span["launches"])]
        rows.append(["· " * len(above) + name, *times, share, *counts])
    header = ["", "ms", "own ms", "%", "calls", "launches"]
    return f"**{line['work']}**, a watched fit\n\n{table(header, rows)}"


def first(run: Run) -> str:
    """The first calls of fresh processes."""
    rows: dict[str, list[str]] = {}
    header = ["a fresh process"]
    for line in run.lines:
        if line["what"] == "first" and "cold" in line:
            name = f"{line['work']}, {line['piece']:,} rows{', no cache' * line['cold']}"
            found = {k: v for k, v in line.items() if k.endswith("_seconds")}
            rows[name] = [f"{v:.3f}" for v in found.values()]
            header[1:] = [k.removesuffix("_seconds").replace("_", " ") + " s" for k in found]
    return table(header, [[name, *each] for name, each in rows.items()]) if rows else ""


def failures(run: Run) -> str:
    """What was left out, and what went wrong."""
    said = []
    for line in run.lines:
        where = f"{line['what']} of {line['work']}" if "work" in line else line["what"]
        if "error" in line:
            said.append(f"FAILED: {where}: {line['error'][:300]}")
        elif line.get("same") is False:
            said.append(f"FAILED: {where}: not the same as the reference")
        elif "skipped" in line:
            said.append(f"left out: {where}: {line['skipped']}")
    return "\n".join(said)
