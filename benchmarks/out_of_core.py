"""A forest of more rows than fit into memory.  python -m benchmarks.out_of_core

Set A is written to Parquet files of a million rows. A process of its own bins them in two passes
into a folder, grows a forest and predicts the rows by blocks; the greatest resident memory of each
step is measured, the mapped file included. With --check the forest is compared with that of the
same rows as one array, in another process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.record import Log
from gpuforest import BinnedData, RandomForestClassifier, predict_blocks

FILE_ROWS = 1_000_000


def write(folder: Path, rows: int) -> None:
    """Set A in files of FILE_ROWS rows."""
    import pyarrow as pa
    from pyarrow import parquet

    writer, written = None, 0
    for X, y in data.blocks("A", rows):
        columns = {f"x{f}": X[:, f] for f in range(X.shape[1])}
        table = pa.table(columns | {"y": y})
        if written % FILE_ROWS == 0:
            if writer is not None:
                writer.close()
            file = folder / f"part-{written // FILE_ROWS:04}.parquet"
            writer = parquet.ParquetWriter(file, table.schema)
        assert writer is not None
        writer.write_table(table)
        written += len(table)
    assert writer is not None
    writer.close()


def megabytes() -> float:
    """The greatest resident memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def forest(options: argparse.Namespace) -> RandomForestClassifier:
    return RandomForestClassifier(
        options.trees,
        max_depth=options.depth,
        random_state=0,
        n_jobs=options.threads,
        memory_limit=options.memory_limit,
    )


def work(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Bin, fit and predict in blocks, and measure each."""
    found: dict[str, Any] = {"start_mb": megabytes()}

    def took(step: str, began: float) -> None:
        found[f"{step}_seconds"], found[f"{step}_mb"] = time.perf_counter() - began, megabytes()

    began = time.perf_counter()
    binned = BinnedData.from_blocks(
        str(folder / "*.parquet"), target="y", random_state=0, path=folder / "binned",
        n_jobs=options.threads,
    )  # fmt: skip
    took("bin", began)
    began = time.perf_counter()
    model = forest(options).fit(binned)
    took("fit", began)
    began, right, rows = time.perf_counter(), 0, 0
    labels = np.asarray(binned.y)
    for part in predict_blocks(model, str(folder / "*.parquet")):
        right += int((part == labels[rows : rows + len(part)]).sum())
        rows += len(part)
    took("predict", began)
    return found | {"accuracy": right / rows, "nodes": int(model.forest_.tree_offsets[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory-limit", type=int, help="bytes, of the fit")
    parser.add_argument("--check", action="store_true", help="compare with the rows in one array")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        print(json.dumps(work(options.worker, options)))
        return
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), options.rows)
        size = sum(p.stat().st_size for p in Path(name).iterdir())
        command = [sys.executable, "-m", "benchmarks.out_of_core", *sys.argv[1:], "--worker", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        if options.check:
            found["same_forest"] = same(Path(name), options)
    facts = {k: v for k, v in vars(options).items() if k not in ("worker", "check")}
    line = Log("out_of_core").add(**facts, parquet_mb=size / 1e6, **found)
    print(json.dumps({k: line[k] for k in (*facts, "parquet_mb", *found)}, indent=1))


def same(folder: Path, options: argparse.Namespace) -> bool:
    """Whether the rows as one array give the forest of the binned data."""
    made = data.make("A", options.rows, 1)
    here = forest(options).fit(made.X_train, made.y_train).forest_
    there = forest(options).fit(BinnedData.load(folder / "binned")).forest_
    arrays = ("nodes", "tree_offsets", "leaf_sums")
    return all(np.array_equal(getattr(here, a), getattr(there, a)) for a in arrays)


if __name__ == "__main__":
    main()
