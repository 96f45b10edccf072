"""What every benchmark shares: scores, the machine's description, JSON lines, tables."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "numba", "scikit-learn", "scikit-learn-intelex")
LEAST = 1e-3  # probabilities are kept this far from 0 and 1, where a log would be infinite


def scores(found: np.ndarray, y: np.ndarray, least: float = LEAST) -> dict[str, float]:
    """Accuracy and log loss of probabilities f[n, C], for codes y; R2 and RMSE of numbers f[n].

    least : the log loss keeps probabilities at least this far from 0 and 1
    """
    if found.ndim == 1:
        rmse = ((found - y.astype(np.float64)) ** 2).mean() ** 0.5
        return {"r2": r2(found, y), "rmse": float(rmse)}
    found = found.astype(np.float64)
    found = found / found.sum(axis=1, keepdims=True)  # float32 sums to nearly 1
    of_truth = np.clip(found[np.arange(len(y)), y], least, 1 - least)
    accuracy = float((found.argmax(axis=1) == y).mean())
    return {"accuracy": accuracy, "log_loss": float(-np.log(of_truth).mean())}


def r2(predicted: np.ndarray, y: np.ndarray) -> float:
    y = y.astype(np.float64)
    return float(1 - ((predicted - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def commit() -> str:
    """The commit measured; "+" where the package differs from it; "" without a repository."""
    return _git("rev-parse", "--short", "HEAD") + ("+" if _git("diff", "HEAD", "gpuforest") else "")


def source() -> str:
    """A hash of the package's files, which identifies what was measured if there is no git."""
    package = ROOT / "gpuforest"
    files = sorted(p for kind in ("py", "cu", "cuh") for p in package.rglob(f"*.{kind}"))
    parts = [(p.relative_to(ROOT).as_posix().encode(), p.read_bytes()) for p in files]
    return hashlib.sha256(b"\0".join(sum(parts, ()))).hexdigest()[:12]


def machine() -> dict[str, Any]:
    """Processor, cores, system and versions; no names, no paths."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    where = {"cpu": model, "cores": os.cpu_count(), "system": platform.system()}
    return {**where, "versions": versions}


def options_of(
    doc: str | None, given: Sequence[str] | None = None,
    choices: Mapping[str, Collection[str]] = MappingProxyType({}), **defaults: Any,
) -> argparse.Namespace:  # fmt: skip
    """Options of a command, of the types of their defaults; names are given with commas.

    choices : names that may be given where these are not the default's; `data` is the folder of
        the real data sets
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--data", type=Path, help="folder of the real data sets")

    def some_of(known: Collection[str]) -> Callable[[str], list[str]]:
        def chosen(text: str) -> list[str]:
            names = [name for name in text.split(",") if name]
            if unknown := [name for name in names if name not in known]:
                raise argparse.ArgumentTypeError(f"no {unknown[0]}: there are {', '.join(known)}")
            return names

        return chosen

    for name, default in defaults.items():
        flag, shown = f"--{name.replace('_', '-')}", "default: %(default)s"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, list):
            known = some_of(choices.get(name, default))
            parser.add_argument(flag, type=known, default=default, help=shown)
        else:
            parser.add_argument(flag, type=type(default), default=default, help=shown)
    return parser.parse_args(given)


class Log:
    """Appends one JSON line a measurement, each with where and when it was made."""

    def __init__(self, benchmark: str, path: Path | None = None, **more: Any) -> None:
        self.path = path or RESULTS / f"{benchmark}.jsonl"
        date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.common = {"benchmark": benchmark, "date": date, "commit": commit()}
        self.common |= {"source": source(), "machine": machine(), **_rounded(more)}

    def add(self, **measured: Any) -> dict[str, Any]:
        """The line as it was written."""
        line = {**self.common, **_rounded(measured)}
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return line


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all but the first column to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def mean_error(each: np.ndarray, digits: int = 4, sign: str = "") -> str:
    """The mean, and its standard error where there are several."""
    if not len(each):
        return ""
    error = f" ± {each.std(ddof=1) / len(each) ** 0.5:.{digits}f}" if len(each) > 1 else ""
    return f"{each.mean():{sign}.{digits}f}{error}"


def show(lines: Sequence[Any], wanted: Mapping[str, Sequence[str]], digits: int = 4) -> None:
    """Print tables of figures, each in the ways that are wanted; see `by_method`."""
    found = [by_method(lines, key, how, digits) for key, ways in wanted.items() for how in ways]
    print("", *filter(None, found), sep="\n\n")


def spread(values: Sequence[float] | np.ndarray) -> str:
    """The median with three digits, and in brackets the least and the greatest of several."""
    if not len(values):
        return ""
    middle, low, high = (f"{q:.3g}" for q in np.quantile(values, (0.5, 0, 1)))
    return f"{middle} ({low}-{high})" if len(values) > 1 else middle


def by_method(lines: Sequence[Any], key: str, how: str = "mean", digits: int = 4) -> str:
    """A table with a row for each set and a column for each method.

    how : "mean" with its standard error, "median" with its range; "difference" (mean) or "ratio"
    (median) of a method to the first one, by pairs of splits in one run
    """
    found: dict[str, dict[str, dict[Any, float]]] = {}
    for i, line in enumerate(lines):
        if key in line:
            own = found.setdefault(line["set"], {}).setdefault(line["method"], {})
            own[line.get("date"), line.get("split", i)] = line[key]
    methods = list(dict.fromkeys(method for by in found.values() for method in by))
    rows = []
    for name, by in found.items():
        first, cells = by.get(methods[0], {}), []
        for each in (by.get(method, {}) for method in methods):
            pairs = np.array([(x, first[k]) for k, x in each.items() if k in first]).reshape(-1, 2)
            if how == "difference":
                cells.append(mean_error(pairs[:, 0] - pairs[:, 1], digits, "+"))
            elif how == "ratio":
                cells.append(f"{np.median(pairs[:, 0] / pairs[:, 1]):.2f}" if len(pairs) else "")
            else:
                text = spread if how == "median" else partial(mean_error, digits=digits)
                cells.append(text(np.array([*each.values()])))
        rows.append([name, *cells])
    if not rows:
        return ""
    beside = f" to {methods[0]}" if how in ("difference", "ratio") else ""
    return table([f"{key.replace('_', ' ')}, {how}{beside}", *methods], rows)
