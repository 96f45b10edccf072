"""What every benchmark shares: scores, the machine's description, JSON lines, tables."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "numba", "scikit-learn", "scikit-learn-intelex")
LEAST = 1e-3  # probabilities are kept so far from 0 and 1, where a log would be infinite


def log_loss(proba: np.ndarray, codes: np.ndarray) -> float:
    """Mean -log of the probability of the true class, within LEAST and 1 - LEAST."""
    of_truth = proba[np.arange(len(codes)), codes].astype(np.float64)
    return float(-np.log(np.clip(of_truth, LEAST, 1 - LEAST)).mean())


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy and log loss of a classifier, R2 of a regressor."""
    if not hasattr(model, "predict_proba"):
        return {"r2": r2(model.predict(X), y)}
    proba, codes = model.predict_proba(X), np.searchsorted(model.classes_, y)
    return {"accuracy": accuracy(proba, codes), "log_loss": log_loss(proba, codes)}


def accuracy(proba: np.ndarray, codes: np.ndarray) -> float:
    return float((proba.argmax(axis=1) == codes).mean())


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
    parts = [
        part for p in files for part in (p.relative_to(ROOT).as_posix().encode(), p.read_bytes())
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


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
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "versions": versions,
    }


class Log:
    """Appends one JSON line a measurement, each with where and when it was made."""

    def __init__(self, benchmark: str, path: Path | None = None, **more: Any) -> None:
        self.path = path or RESULTS / f"{benchmark}.jsonl"
        self.common = {
            "benchmark": benchmark,
            "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": commit(),
            "source": source(),
            "machine": machine(),
            **_rounded(more),
        }

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


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and in brackets the least and the greatest."""
    middle, low, high = np.median(values), min(values), max(values)
    if len(values) == 1:
        return f"{middle:.{digits}f}"
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"
