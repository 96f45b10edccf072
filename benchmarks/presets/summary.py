"""Tables of results: losses, seconds, pairs of methods, and shares of the gain of a search."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.presets.methods import ours_is

PAIRS = (
    ("gpuforest-forest-accurate", "sklearn-forest"),
    ("gpuforest-forest-accurate", "ydf-forest"),
    ("gpuforest-forest-accurate", "gpuforest-forest-search"),
    ("gpuforest-forest-fast", "sklearn-forest"),
    ("gpuforest-boosting-accurate", "lightgbm"),
    ("gpuforest-boosting-accurate", "lightgbm-tuned"),
    ("gpuforest-boosting-accurate", "catboost"),
    ("gpuforest-boosting-accurate", "ydf-boosting"),
    ("gpuforest-boosting-fast", "lightgbm"),
)
Results = dict[tuple[str, str], dict[int, dict[str, Any]]]  # of set and method, by split


def summary(lines: Iterable[dict[str, Any]], options: argparse.Namespace) -> str:
    """Tables of the last results of each method, ours of --label only if it is given."""
    of: Results = defaultdict(dict)
    failed = set()
    for line in lines:
        wanted = not ours_is(line["method"]) or options.label in (None, line["label"])
        if not wanted or line["set"] not in options.sets:
            continue
        if "error" in line:
            failed.add(f"{line['method']} on {line['set']}: {line['error'][:100]}")
        else:
            of[line["set"], line["method"]][line["split"]] = line
    sets = [name for name in options.sets if any(name == key[0] for key in of)]
    methods = [name for name in options.methods if any(name == key[1] for key in of)]
    parts = []
    for title, keys in {"Log loss, or R2": None, "Accuracy": ["accuracy"],
                        "Seconds of fit": ["fit_s"], "CPU seconds of fit": ["fit_cpu_s"],
                        "Seconds of predict": ["predict_s"]}.items():  # fmt: skip
        rows = []
        for name in sets:
            cells = [mean_of(of.get((name, m)), keys or ["log_loss", "r2"]) for m in methods]
            rows.append([name, *cells])
        parts.append(f"{title}\n\n{record.table(['set', *methods], rows)}")
    rows = [row for pair in options.pairs if (row := row_of_pair(of, sets, *pair))]
    header = ["A beside B", "sets", "A better", "level", "B better", "fit A/B", "CPU A/B",
              "predict A/B"]  # fmt: skip
    parts += [record.table(header, rows), *gains(of, sets, methods), *sorted(failed)]
    return "\n\n".join(parts)


def mean_of(runs: dict[int, dict[str, Any]] | None, keys: list[str]) -> str:
    found = [run[key] for run in (runs or {}).values() for key in keys if key in run]
    return f"{np.mean(found):.4f}" if found else ""


def loss(line: dict[str, Any]) -> float:
    return line["log_loss"] if "log_loss" in line else 1 - line["r2"]


def row_of_pair(of: Results, sets: list[str], a: str, b: str) -> list[str] | None:
    """Sets on which a method is better by more than a standard error of the differences."""
    counts, ratios = [0, 0, 0], []
    for name in sets:
        first, second = of.get((name, a), {}), of.get((name, b), {})
        splits = sorted(first.keys() & second.keys())
        if not splits:
            continue
        each = np.array([loss(first[s]) - loss(second[s]) for s in splits])
        error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
        counts[1 if abs(each.mean()) <= error else 0 if each.mean() < 0 else 2] += 1
        ratios.append([np.mean([first[s][key] for s in splits])
                       / np.mean([second[s][key] for s in splits])
                       for key in ("fit_s", "fit_cpu_s", "predict_s")])  # fmt: skip
    if not ratios:
        return None
    shares = [f"{100 * n / len(ratios):.0f} %" for n in counts]
    times = [f"{r:.2f}" for r in np.exp(np.log(ratios).mean(axis=0))]
    return [f"{a} beside {b}", str(len(ratios)), *shares, *times]


def gains(of: Results, sets: list[str], methods: list[str]) -> list[str]:
    """What share of the search's gain a forest has: of log(loss of defaults / loss), over sets."""
    default, search, lines = "gpuforest-forest-default", "gpuforest-forest-search", []
    for method in methods:
        each = []
        for name in sets:
            three = [of.get((name, m), {}) for m in (default, search, method)]
            splits = sorted(set.intersection(*map(set, three)))
            if splits:
                losses = [np.mean([loss(runs[s]) for s in splits]) for runs in three]
                times = [np.mean([runs[s]["fit_s"] for s in splits]) for runs in three[1:]]
                each.append([np.log(losses[0] / losses[1]), np.log(losses[0] / losses[2]),
                             np.log(times[1] / times[0])])  # fmt: skip
        if each and method.startswith("gpuforest-forest-") and method not in (default, search):
            searched, own, time = np.mean(each, axis=0)
            lines.append(f"{method}: {100 * own / searched:.0f} % of the search's gain in "
                         f"{100 * np.exp(time):.1f} % of its time ({len(each)} sets)")  # fmt: skip
    return lines
