"""Forests on a cluster.  python -m benchmarks.cluster

Two workers of one thread each on this machine against one process of two threads, in turn, on set
A; the rows lie on the workers before the fit begins, as in a cluster's memory. The bytes that
workers receive (by "trees") or send (--strategy rows) are counted and compared with the formula.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.record import Log, options_of, spread, table
from gpuforest import RandomForestClassifier
from gpuforest.common import progress


def received(n_rows: int, n_features: int, n_workers: int, code_bytes: int = 1) -> float:
    """Bytes of codes that each worker receives: those of the other workers' rows."""
    return n_rows * n_features * code_bytes * (n_workers - 1) / n_workers


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of both, pair by pair, and the bytes that the workers received and sent."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from gpuforest import dask as on_dask

    made = data.make("A", options.rows, 1)
    X, y = made.X_train, made.y_train
    here, there, counted = [], [], []
    rows = -(-options.rows // options.partitions)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        parts = [da.from_array(a, chunks=(rows, *a.shape[1:])).persist() for a in (X, y)]
        wait(parts)
        client.run(_watched)
        for turn in range(options.turns + 1):  # the first one loads what later ones find
            began = time.perf_counter()
            local = RandomForestClassifier(
                options.trees, max_depth=options.depth, random_state=0, max_bins=255, n_jobs=2
            ).fit(X, y)
            middle = time.perf_counter()
            before = sum(client.run(_counts).values(), Counter())
            given = local.get_params() | {"n_jobs": None, "strategy": options.strategy}
            with progress.listening() as stages:
                found = on_dask.RandomForestClassifier(**given).fit(*parts)
            end = time.perf_counter()
            assert np.array_equal(found.forest_.nodes, local.forest_.nodes)
            if turn:
                here.append(middle - began)
                there.append(end - middle)
                counted.append(sum(client.run(_counts).values(), Counter()) - before)
    return {
        "one_process_seconds": here, "two_workers_seconds": there,
        "speed": [a / b for a, b in zip(here, there, strict=True)],
        "stages_of_the_last": stages, "received_mb": [c["received"] / 1e6 for c in counted],
        "formula_mb": 2 * received(options.rows, X.shape[1], 2) / 1e6,
        "sent_by_rows_mb": counted[-1]["sent"] / 1e6,
        "formula_by_rows_mb": counted[-1]["formula"] / 1e6,
        "forest_mb": local.forest_.nodes.nbytes / 1e6 + local.forest_.leaf_sums.nbytes / 1e6,
    }  # fmt: skip


def _counts(dask_worker: Any) -> Counter[str]:
    """Bytes of codes that a worker has received so far (not those of y's partitions, which may lie
    on another worker than X's), and of what it has sent by "rows"."""
    from gpuforest.tools.dask import rows

    every = (item for e in dask_worker.transfer_incoming_log for item in e["keys"].items())
    codes = sum(size for key, size in every if str(key).startswith("encoded"))
    return Counter(rows.counts, received=codes)  # type: ignore[attr-defined]


def _watched() -> None:
    """Have a worker count what it sends by "rows", and what the formula says of the same nodes."""
    from gpuforest.tools.dask import links, rows

    counts = {"sent": 0, "formula": 0}
    inner, put = rows.SharedRows, links.Communicator._counted
    histogram, taken = inner.histogram, inner._handed_over
    gathered = inner._all_subtrees

    def sent(self: Any, other: int, array: Any) -> Any:
        counts["sent"] += array.nbytes
        return put(self, other, array)

    def summed(self: Any, training: Any, slots: Any, features: Any) -> Any:
        """Integers of 8 bytes: histograms, and the numbers of rows of two children. A ring sends
        2 (W - 1) / W times as many."""
        found = histogram(self, training, slots, features)
        n_slots, n_tried, n_bins, n_channels = found.shape
        n, size = 8 * n_slots * (n_tried * n_bins * n_channels + 2), self.communicator.size
        counts["formula"] += 2 * n * (size - 1) // size
        return found

    def handed(self: Any, training: Any, slots: Any, owned: Any, own: Any) -> Any:
        """For the subtrees of some nodes: of each row its codes of a byte, weight and label, of
        each node the number of rows."""
        for rank, some in enumerate(owned):
            if rank != self.communicator.rank:
                part = slots.part(some)
                n = int((part.end - part.begin).sum())
                counts["formula"] += n * (training.n_features + 8) + 8 * part.n_slots
        return taken(self, training, slots, owned, own)

    def shared(self: Any, found: Any) -> Any:
        """Grown subtrees: nodes, sums of leaves, and of each the number of nodes and first leaf."""
        n = 8 * (len(found.nodes) + found.leaf_sums.size + 2 * len(found.first_leaf))
        counts["formula"] += n * (self.communicator.size - 1)
        return gathered(self, found)

    links.Communicator._counted = sent  # type: ignore[method-assign]
    inner.histogram, inner._handed_over = summed, handed  # type: ignore[method-assign]
    inner._all_subtrees = shared  # type: ignore[method-assign]
    rows.counts = counts  # type: ignore[attr-defined]


def main() -> None:
    sizes = {"rows": 1_000_000, "trees": 100, "depth": 16, "partitions": 10, "turns": 3}
    options = options_of(__doc__, strategy="trees", **sizes)
    line = Log("cluster", **vars(options)).add(what="measured", **measured(options))
    names = ["one_process_seconds", "two_workers_seconds", "speed", "received_mb", "formula_mb"]
    names += ["sent_by_rows_mb", "formula_by_rows_mb", "forest_mb"]
    rows = [[name, spread(np.atleast_1d(line[name]))] for name in names]
    print(table([f"set A, {options.rows:,} rows", "median (least-greatest)"], rows))


if __name__ == "__main__":
    main()
