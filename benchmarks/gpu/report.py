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
    parts += [profile(line) for line in run.lines if "kernels" in line]
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
        host, cpu, cuml = (
            of(run, what, name, **more)
            for what, more in (("fit", {"source": "host"}), ("cpu", {}), ("cuml", {}))
        )
        score = predict.get("accuracy", predict.get("r2"))
        same = [x["same"] for x in run.lines if x.get("work") == name and "same" in x]
        rows.append(
            [
                name,
                f"{fit['rows']:,}",
                seconds(fit),
                number(fit["goal"]),
                number(fit["rival"]),
                seconds(host),
                seconds(cpu),
                seconds(cuml),
                seconds(predict, 1e3, 1),
                number(fit["peak_bytes"], 1e-9, 2),
                number(fit["model_bytes"], 1e-6, 0),
                number(score, 1, 4),
                DASH if not same else "yes" if all(same) else "NO",
            ]
        )
    return table(header, rows) if rows else ""


def stages(line: dict[str, Any]) -> str:
    """Where the time of a fit goes, each line below the one that it is in."""
    rows, copy = [], line["copy"]
    whole = line["lines"][0]["seconds"]
    for span in line["lines"]:
        if span["seconds"] < SHOWN * whole:
            continue
        *above, name = span["path"].split("/")
        rate = span["bytes"] / span["seconds"] if span["seconds"] else 0
        share = 100 * rate / copy if copy and name not in ("to host", "to device") else 0
        rows.append(
            [
                "· " * len(above) + name,
                f"{1e3 * span['seconds']:.2f}",
                f"{1e3 * span['own_seconds']:.2f}",
                f"{100 * span['seconds'] / whole:.0f}",
                str(span["calls"]),
                str(span["launches"]),
                f"{span['bytes'] / 1e6:,.0f}" if span["bytes"] else "",
                f"{rate / 1e9:,.0f}" if span["bytes"] else "",
                f"{share:.0f}" if span["bytes"] and share else "",
            ]
        )
    header = ["", "ms", "own ms", "%", "calls", "launches", "MB", "GB/s", "% of copy"]
    return f"**{line['work']}**, a watched fit\n\n{table(header, rows)}"


def profile(line: dict[str, Any]) -> str:
    rows = [
        [k["name"][:70], f"{1e3 * k['seconds']:.2f}", str(k["calls"])] for k in line["kernels"][:20]
    ]
    rows.append(["all", f"{1e3 * line['busy_seconds']:.2f}", str(line["launches"])])
    title = f"**{line['work']}**, all kernels of a fit of {1e3 * line['fit_seconds']:.1f} ms"
    return f"{title}\n\n{table(['', 'ms', 'launches'], rows)}"


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
