"""The sets: public tables, and simulated columns of thousands of values."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import public_data

Array = Any
SIMULATED = ("sim-ids-classes", "sim-ids-numbers", "sim-zips-classes", "sim-zips-numbers",
             "sim-honest", "sim-noise-values", "sim-noise-unique")  # fmt: skip


def simulated(name: str, n_rows: int = 20_000) -> tuple[pd.DataFrame, Array]:
    """Numbers and a column of many values: what it adds to the target is random (ids), smooth in
    the plane but for noise (zips, of Zipf's frequencies), or nothing (noise)."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(n_rows, 5))
    signal = numbers[:, 0] + 0.5 * numbers[:, 1] * numbers[:, 2]
    X = pd.DataFrame(numbers).add_prefix("x")
    if "zips" in name:
        share = 1 / np.arange(1, 5001)
        codes = rng.choice(5000, n_rows, p=share / share.sum())
        place = 2 * np.pi * rng.random((5000, 2))
        added = np.sin(place[:, 0]) + np.cos(place[:, 1]) + rng.normal(0, 0.5, 5000)
        signal = signal + added[codes]
    elif "unique" in name:
        codes = rng.permutation(n_rows)
    else:
        codes = rng.integers(2000, size=n_rows)
    if "-ids-" in name:
        signal = signal + rng.normal(size=2000)[codes]
    rng = np.random.default_rng(1)
    y = signal + rng.normal(size=n_rows)
    if not name.endswith("numbers"):
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-signal))).astype(int)
    names = rng.permutation(100_000)[codes].astype(str)
    return (X if name == "sim-honest" else X.assign(name=pd.Series(names, dtype="str"))), y


@lru_cache(2)
def data_of(name: str, folder: Path | None) -> tuple[pd.DataFrame, Array] | None:
    """Plain names of columns, since some libraries refuse others."""
    found = simulated(name) if name in SIMULATED else public_data.load(name, folder)
    return found and (found[0].set_axis([f"f{i}" for i in range(found[0].shape[1])], axis=1),
                      found[1])  # fmt: skip


def task_of(name: str) -> str:
    numbers = name.endswith("-numbers") if name in SIMULATED else public_data.BY_NAME[name].numbers
    return "Regressor" if numbers else "Classifier"
