"""A run's lines as tables."""

from __future__ import annotations

from typing import Any

from benchmarks.gpu.run import Run
from benchmarks.record import spread, table

DASH = "-"
SHOWN = 0.005  # of a fit; spans of less are in the results alone
MANY = 3  # digits of seconds


def report(run: Run) -> str:
    parts = [stages(line) for line in run.lines if "lines" in line]
    parts += [first(run), sweep(run), works(run), failures(run)]
    return "\n\n".join(part for part in parts if part)


def works(run: Run) -> str:
    """A row for each work."""
    header = [
        "", "rows", "fit s", "goal", "published", "from host", "cpu s", "cuml s", "predict ms",
        "peak GB", "model MB", "score", "same",
    ]  # fmt: skip
    names = list(dict.fromkeys(x["work"] for x in run.lines if x.get("work") and "goal" in x))
    rows = []
    for name in names:
        fit, predict = (of(run, what, name, source="device") for what in ("fit", "predict"))
        host = of(run, "fit", name, source="host")
        cpu, cuml = (of(run, what, name) for what in ("cpu", "cuml"))
        score = predict.get("accuracy", predict.get("r2"))
        same = [x["same"] for x in run.lines if x.get("work") == name and "same" in x]
        sizes = number(fit["peak_bytes"], 1e-9, 2), number(fit["model_bytes"], 1e-6, 0)
        fits = number(fit["goal"]), number(fit["rival"]), *map(seconds, (host, cpu, cuml))
        row = [name, f"{fit['rows']:,}", seconds(fit), *fits, seconds(predict, 1e3, 1), *sizes]
        verdict = DASH if not same else "yes" if all(same) else "NO"
        rows.append([*row, number(score, 1, 4), verdict])
    return table(header, rows) if rows else ""


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


def sweep(run: Run) -> str:
    """The GPU beside the CPU, by rows."""
    found: dict[int, dict[str, Any]] = {}
    for line in run.lines:
        if line["what"] == "sweep" and "rows" in line:
            row = found.setdefault(line["rows"], {})
            row[line["source"] if "seconds" in line else "same"] = line.get("same", line)
    rows = []
    for n, row in found.items():
        host, cpu = row.get("host", {}), row.get("cpu", {})
        ratio = cpu["median"] / host["median"] if host and cpu else None
        cells = [seconds(row.get(source, {})) for source in ("device", "host", "cpu")]
        same = {True: "yes", False: "NO"}.get(row.get("same"), DASH)
        rows.append([f"{n:,}", *cells, number(ratio, 1, 1), same])
    header = ["rows x 28", "device s", "host s", "cpu s", "cpu / host", "same"]
    return table(header, rows) if rows else ""


def first(run: Run) -> str:
    names = [
        "import_seconds", "start_seconds", "first_fit_seconds", "second_fit_seconds",
        "first_predict_seconds", "second_predict_seconds",
    ]  # fmt: skip
    rows = [
        [
            f"{line['work']}, {line['piece']:,} rows{', no cache' if line['cold'] else ''}",
            *(number(line[name]) for name in names),
        ]
        for line in run.lines
        if line["what"] == "first" and "cold" in line
    ]
    shown = [name.removesuffix("_seconds").replace("_", " ") + " s" for name in names]
    return table(["a fresh process", *shown], rows) if rows else ""


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


def of(run: Run, what: str, work: str, **more: Any) -> dict[str, Any]:
    """The line of that kind, with seconds; {} if there is none."""
    for line in reversed(run.lines):
        asked = {"what": what, "work": work, **more}
        if "seconds" in line and all(line.get(k) == v for k, v in asked.items()):
            return line
    return {}


def seconds(line: dict[str, Any], unit: float = 1, digits: int = MANY) -> str:
    return spread([unit * s for s in line["seconds"]], digits) if line else DASH


def number(value: float | None, unit: float = 1, digits: int = MANY) -> str:
    return DASH if value is None else f"{unit * value:.{digits}f}"
