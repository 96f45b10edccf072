"""A record of grown forests: what must not change unless a commit says why.

    python tests/support/record.py            # what differs from the record on Numba
    python tests/support/record.py --all      # on every backend that a case names
    python tests/support/record.py --write    # writes it anew

The exit status is 1 where something differs, or nothing can be compared. record_cases.py has the
cases, which are fits with explicit `max_bins` of data made from whole numbers. Of each there is a
SHA-256 of its forest, its predictions and what else it asks for, the same on every machine and
backend.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from record_cases import EMULATED, Case, cases, data

import gpuforest
from gpuforest.compiler.code import can_run

FILE = Path(__file__).parents[1] / "golden" / "forests.json"


def why_not(backend: str) -> str | None:
    """Why a backend cannot be used here, or None. Registers the emulated ones."""
    if backend == "numba":
        return None if can_run() else "no compiled kernels here"
    if backend in EMULATED:
        from cuda_on_cpu.module import available
        from emulated import EmulatedBackend

        deep = 0 if backend.endswith("wide") else None
        gpuforest.register_backend(backend, lambda *_: EmulatedBackend(deep=deep))
        return available()
    return None


def estimator(case: Case, backend: str) -> Any:
    own: dict[str, Any] = {"backend": backend}
    if case.estimator.startswith("Bagging"):
        tree = getattr(gpuforest, case.estimator.replace("Bagging", "DecisionTree"))
        own = {"estimator": tree(**{"max_bins": 255, **case.params.get("estimator", {})} | own)}
    elif "estimator" in case.params:
        tree = getattr(gpuforest, case.estimator.replace("AdaBoost", "DecisionTree"))
        own["estimator"] = tree(**case.params["estimator"])
    return getattr(gpuforest, case.estimator)(**case.params | own)


def fitted(case: Case, backend: str) -> Any:
    """The estimator, grown in two steps where the case says "again"."""
    model, (X, y, weights) = estimator(case, backend), data(case)
    if "again" in case.words.split():
        n_trees = case.params["n_estimators"]
        model.set_params(n_estimators=n_trees // 2).fit(X, y, weights)
        model.set_params(n_estimators=n_trees)
    more = {"qid": np.arange(len(y)) // 20} if case.estimator.endswith("Ranker") else {}
    if case.estimator == "CausalForest":
        more = {"treatment": np.arange(len(y)) % 3 > 0}
    return model.fit(X, y, sample_weight=weights, **more)


def answers(model: Any, case: Case) -> Iterator[Any]:
    """Arrays of what the case asks for beside the predictions."""
    X, y, _ = data(case)
    for name in case.asks:
        if name == "permutation":
            yield gpuforest.oob_permutation_importance(model, X, y).importances
            continue
        found = getattr(model, name)
        found = found(X) if callable(found) else found
        if name == "effect_and_std":  # a library's exp decides on the last digits of errors
            yield from (found[0], np.asarray(found[1], np.float32))
        elif name in ("decision_path", "transform"):
            found = found[0] if isinstance(found, tuple) else found
            yield from (a.astype(np.int64) for a in (found.indices, found.indptr))
        elif isinstance(found, dict):  # a Bunch
            yield from (found[key] for key in sorted(found))
        else:
            yield found


def grown(case: Case, backend: str) -> str:
    """SHA-256 of a forest, its predictions and what the case asks for."""
    with warnings.catch_warnings():  # of few trees out of bag, of names that are old
        warnings.simplefilter("ignore")
        model = fitted(case, backend)
        X, found, values = data(case)[0], hashlib.sha256(), []
        if hasattr(model, "staged_predict"):  # its probabilities come from a library's exp
            values = model.predict(X)
        elif hasattr(model, "predict_proba"):
            values = model.predict_proba(X)
        elif hasattr(model, "predict"):
            values = model.predict(X)
        forest = model.forest_
        arrays = (forest.nodes, forest.leaf_sums, *np.atleast_3d(values), forest.sets)
        for array in (*arrays, *answers(model, case)):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def chosen(arguments: list[str]) -> list[tuple[Case, str]]:
    """Cases and where they are to be grown."""
    found = [(case, backend) for case in cases() for backend in case.backends]
    return [pair for pair in found if "--all" in arguments or pair[1] == "numba"]


def write() -> None:
    found = {case.title: grown(case, case.backends[0]) for case in cases()}
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    logging.getLogger("gpuforest").setLevel(logging.ERROR)  # that kernels are compiled
    if "--write" in sys.argv:
        write()
    known = json.loads(FILE.read_text())
    compared = [pair for pair in chosen(sys.argv) if why_not(pair[1]) is None]
    differs = [
        f"{case.title} on {backend}"
        for case, backend in compared
        if grown(case, backend) != known.get(case.title)
    ]
    print(*differs, f"{len(differs)} of {len(compared)} differ", sep="\n")
    sys.exit(bool(differs) or not compared)
