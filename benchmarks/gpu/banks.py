"""python -m benchmarks.gpu.banks: how many lanes of a warp meet in one bank of shared memory when
they add rows to histograms, counted on the CPU from the codes and the layouts of the kernels.

An atomic of a warp takes about as long as its fullest bank has lanes. Lanes at one address count
as well, because they wait for each other. Then: of the steps in which warps of the deep phase look
for cuts, the share that is left if they begin and end with the node's least and greatest code. A
machine without a GPU can run this.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import gpuforest
from benchmarks.gpu.work import WORKS, Work, make
from benchmarks.record import Log, table
from gpuforest.backends import registry
from gpuforest.growing import edges
from gpuforest.kernels.shared.constants import FILL_FEATURES, GROUP_FEATURES

BANKS = LANES = 32
ROWS = 40_000
PADS = range(9)
LEAVES = {"boosting": (1, 8, 31), "histogram": (1, 32), "deep": (ROWS // 300,)}  # of trees
SCAN = 128  # bins that a warp of the deep phase takes in a step, for Gini or squared error
MOST_NODES = 2000
TRIED = 8  # features whose histograms a block of the deep phase holds at once


def nodes(codes: np.ndarray, y: np.ndarray, work: Work, n_leaves: int) -> Iterator[np.ndarray]:
    """The rows of each leaf of a tree, in their order."""
    kind = getattr(gpuforest, f"DecisionTree{'Classifier' if work.is_classes else 'Regressor'}")
    if n_leaves == 1:
        yield np.arange(len(y))
        return
    leaf = kind(max_leaf_nodes=n_leaves, random_state=1).fit(codes, y).apply(codes)
    for number in np.unique(leaf):
        yield np.flatnonzero(leaf == number)


def meeting(address: np.ndarray) -> np.ndarray:
    """Lanes in the fullest bank of each warp, of the words i64[warps, LANES] that they add to."""
    counts = np.zeros((len(address), BANKS), np.int32)
    np.add.at(counts, (np.arange(len(address))[:, None], address % BANKS), 1)
    return counts.max(axis=1)


def steps(codes: np.ndarray, features: np.ndarray, rotated: bool) -> Iterator[tuple]:
    """What the lanes of all warps add at the same time: the places of features in a block's
    memory and codes, [warps, LANES] each. Lanes begin with different features if `rotated`."""
    n, warps = len(features), len(codes) // LANES
    rows = codes[: warps * LANES].reshape(warps, LANES, codes.shape[1])
    lane = np.arange(LANES)
    for step in range(n):
        place = (lane % n + step) % n if rotated else np.full(LANES, step)
        yield place, rows[:, lane, features[place]].astype(np.int64)


def words_of_bin(work: Work, kernel: str, n_classes: int) -> int:
    """Words of 32 bits of a bin."""
    if kernel == "boosting":
        return 4 if work.is_classes else 2  # the hessians of squared error are constant
    return n_classes if work.is_classes else 3


def lanes_of(work: Work, kernel: str, pad: int, rotated: bool = True) -> float:
    """Mean over the atomics of a work of the lanes in the fullest bank."""
    X, y = make(work, np, ROWS)
    backend = registry.get_backend("numba")
    found = edges.fit_edges(X, backend=backend)
    codes, B = edges.bin_matrix(X, found, backend).codes, found.n_codes
    words = words_of_bin(work, kernel, int(y.max()) + 1 if work.is_classes else 0)
    rng, total, count = np.random.default_rng(1), 0, 0
    for n_leaves in LEAVES[kernel]:
        for rows in nodes(codes, y, work, n_leaves):
            n = {"boosting": FILL_FEATURES, "histogram": GROUP_FEATURES, "deep": TRIED}[kernel]
            draws = kernel != "boosting" and work.max_features == "sqrt"
            tried = int(work.features**0.5) if draws else work.features
            features = rng.permutation(work.features)[: min(n, tried)]
            channel = y[rows] if work.is_classes and kernel != "boosting" else 0 * rows
            warps = len(rows) // LANES
            channel = channel[: warps * LANES].reshape(warps, LANES).astype(np.int64)
            for place, code in steps(codes[rows], features, rotated):
                if kernel == "deep":  # u32[words][size], with bins that a lane scans apart
                    size = B + 127 & ~127
                    cell = (code & ~127 | (code & 3) << 5 | code >> 2 & 31) + channel * size
                    address = place * (words * size + pad) + cell
                else:  # u32[B][words]
                    address = place * (B * words + pad) + code * words + channel
                lanes = meeting(address)
                total, count = total + int(lanes.sum()), count + len(lanes)
    return total / count


def scans_left(work: Work) -> float:
    """The share of steps of scans that bounds leave, in a tree's nodes of 33 to 1,000 rows."""
    X, y = make(work, np, ROWS)
    backend = registry.get_backend("numba")
    binned = edges.bin_matrix(X, edges.fit_edges(X, backend=backend), backend)
    codes, n_bins = binned.codes[:, : work.features], np.asarray(binned.n_bins)
    kind = getattr(gpuforest, f"DecisionTree{'Classifier' if work.is_classes else 'Regressor'}")
    tree = kind(max_features=work.max_features, random_state=1).fit(codes, y)
    paths = tree.decision_path(codes).tocsc()
    sizes, rng, steps = np.diff(paths.indptr), np.random.default_rng(1), np.zeros(2)
    tried = int(work.features**0.5) if work.max_features == "sqrt" else work.features
    for node in np.flatnonzero((sizes > LANES) & (sizes <= 1000))[:MOST_NODES]:
        own = codes[paths.indices[paths.indptr[node] : paths.indptr[node + 1]]]
        least, greatest = own.min(axis=0), own.max(axis=0)
        drawn = rng.permutation(np.flatnonzero(least < greatest))[:tried]
        bounded = greatest[drawn] // SCAN - least[drawn] // SCAN + 1
        steps += bounded.sum(), (-(-n_bins[drawn] // SCAN)).sum()
    return float(steps[0] / steps[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.banks", description=__doc__)
    parser.add_argument("--results", type=Path, help="where lines are added")
    log = Log("gpu_banks", parser.parse_args().results)
    rows = []
    for name in ("covtype-like", "HIGGS-like", "year-like"):
        work = replace(next(w for w in WORKS if w.name == name), rows=ROWS)
        for kernel in LEAVES:
            for rotated in (False, True) if kernel == "deep" else (True,):
                lanes = [lanes_of(work, kernel, pad, rotated) for pad in PADS]
                log.add(work=name, kernel=kernel, rotated=rotated, lanes=lanes, rows=ROWS)
                said = f"{name}, {kernel}{'' if rotated else ', one feature at a time'}"
                rows.append([said, *(f"{x:.1f}" for x in lanes)])
                print(rows[-1], flush=True)
        left = scans_left(work)
        log.add(work=name, kernel="deep", scans_left=left, rows=ROWS)
        print(f"{name}: {left:.3f} of the steps of scans are left with bounds", flush=True)
    print(table(["words between histograms, beside their own", *map(str, PADS)], rows))


if __name__ == "__main__":
    main()
