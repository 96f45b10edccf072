"""Ranking: NDCG@10 on held-out queries, and processor time of fits, beside LightGBM.

    python -m benchmarks.ranking [--methods LightGBM,...]

Simulated queries of 5 to 100 rows with 20 features and grades 0 to 4: about 1,000 to fit and 1,000
to test. 100 rounds, 31 leaves, learning rate 0.1, no early stopping. A fit of each method goes
before those that count. NDCG has the gains 2^y - 1.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from typing import Any

import numpy as np

from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, take_turns

SETS = ["linear", "interactions", "heavy tails"]
METHODS = {
    "gpuforest": "lambdarank", "LightGBM": "lambdarank",
    "gpuforest (xendcg)": "rank_xendcg", "LightGBM (xendcg)": "rank_xendcg",
}  # fmt: skip
SHARES = [0.5, 0.75, 0.9, 0.97]  # of rows, by quantiles: where grades begin


def queries(name: str, rng: Any, n: int = 1000) -> tuple[Any, Any, Any]:
    """X, grades and sizes of n queries, each with an offset that no order depends on."""
    sizes = rng.integers(5, 101, n)
    if name == "heavy tails":  # most are short
        sizes = np.minimum(5 + rng.pareto(1.2, n) * 8, 100).astype(int)
    X = rng.normal(size=(sizes.sum(), 20))
    u = X[:, :10] @ np.linspace(1, 0.1, 10)
    if name != "linear":
        u = 2 * X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) * X[:, 3] + np.abs(X[:, 4]) + X[:, 5]
    noise = {"linear": 1.0, "interactions": 2.0, "heavy tails": 1.0}[name]
    u = u + noise * rng.normal(size=len(u)) + np.repeat(rng.normal(size=n), sizes)
    return X, np.digitize(u, np.quantile(u, SHARES)), sizes


def ndcg(y: Any, raw: Any, sizes: Any, k: int = 10) -> float:
    """The mean NDCG of queries with some relevance."""
    found, discount = [], 1 / np.log2(np.arange(2, k + 2))
    ends = np.cumsum(sizes)[:-1]
    for gain, score in zip(np.split(2.0**y - 1, ends), np.split(raw, ends), strict=True):
        if gain.any():
            each = (gain[np.argsort(-score, kind="stable")][:k], np.sort(gain)[::-1][:k])
            top, best = (part @ discount[: len(part)] for part in each)
            found.append(top / best)
    return float(np.mean(found))


def model_of(method: str, threads: int, seed: int) -> Any:
    if method.startswith("gpuforest"):
        from gpuforest import HistGradientBoostingRanker

        given = {"early_stopping": False, "random_state": seed, "n_jobs": threads}
        return HistGradientBoostingRanker(METHODS[method], **given)
    from lightgbm import LGBMRanker

    return LGBMRanker(
        objective=METHODS[method], n_estimators=100, num_leaves=31, learning_rate=0.1,
        n_jobs=threads, random_state=seed, verbose=-1,
    )  # fmt: skip


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    rng = np.random.default_rng([SETS.index(name), split])
    X, y, sizes = queries(name, rng)
    X_test, y_test, sizes_test = queries(name, rng)
    if split == 0:  # a library's first fit takes longer
        model_of(method, options.threads, split).fit(X, y, group=sizes)
    model = model_of(method, options.threads, split)
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(X, y, group=sizes)
    found = {"fit_cpu_s": time.process_time() - cpu, "fit_s": time.perf_counter() - wall}
    found |= {"rows": len(y), "test_rows": len(y_test), "features": X.shape[1]}
    return found | {"ndcg": ndcg(y_test, np.asarray(model.predict(X_test)), sizes_test)}


def main() -> None:
    numbers: dict[str, Any] = {"repetitions": 5, "threads": 1}
    options = options_of(__doc__, sets=SETS, methods=[*METHODS], **numbers)
    jobs = product(options.sets, range(options.repetitions), options.methods)
    lines = take_turns(Log("ranking", threads=options.threads), jobs, fit, options)
    show(lines, {"ndcg": ("mean", "difference"), "fit_cpu_s": ("median", "ratio")})


if __name__ == "__main__":
    main()
