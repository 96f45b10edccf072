"""Proofs of origin: a record of what a model was made from, and its check by growing it again.

A record has digests of the data (data/digest.py), the parameters and the forest.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest import loading
from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.common import hashing
from gpuforest.common.progress import stage
from gpuforest.core.forest import Forest, joined
from gpuforest.core.model import is_public
from gpuforest.data import arrays
from gpuforest.data.binned import FitInput
from gpuforest.data.digest import data_digest
from gpuforest.estimators import by_ids
from gpuforest.estimators.prepare import prepare
from gpuforest.explain.model_facts import forest_digest
from gpuforest.explain.node_values import own_rows
from gpuforest.explain.paths import one_tree
from gpuforest.export import model_file

ALGORITHM = 1  # rises when the forests of the same data, parameters and seed change
FAMILIES = ("trees", "forests", "boosting")  # that grow again from data, parameters and seed


def prove(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None,
    blocks: Any = None, row_ids: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Give a fitted model the record that `verify` checks; `save` then writes it into the file.

    Parameters
    ----------
    model : a fitted decision tree, random forest, extra trees or histogram gradient boosting
    X, y, sample_weight, groups, blocks : the data that it was fitted on
    row_ids : as of `data_digest`

    Returns
    -------
    dict
        What is kept as `model.proof_`: digests of "data", "parameters" and "forest", the number of
        "rows", the number of the "algorithm" that grows trees, and gpuforest's "version".

    Raises
    ------
    ValueError
        A model that cannot be grown again from its data and parameters, or another number of rows.
    """
    check_is_fitted(model)
    require_regrowable(model)
    n, trained = arrays.count_rows(X), model._training_["rows"]
    if n != trained:
        raise ValueError(f"the model was fitted on {trained} rows, and X has {n}: pass all of them")
    with stage("hashing"):
        digest = data_digest(X, y, sample_weight, groups=groups, blocks=blocks, row_ids=row_ids)
    model.proof_ = {
        "version": version("gpuforest"), "algorithm": ALGORITHM, "rows": n, "data": digest,
        "parameters": model_file.parameters_digest(model._model()),
        "forest": forest_digest(model.forest_),
    }  # fmt: skip
    return dict(model.proof_)


def require_regrowable(model: Any) -> None:
    """Raise a ValueError if data, parameters and seed do not say what a model is, or will be."""
    kind, why, known = type(model), None, vars(model)
    given = {n: v for n, v in model.get_params(deep=False).items() if not isinstance(v, str)}
    objects = [n for n, value in given.items() if callable(value) or hasattr(value, "split")]
    if getattr(kind, "_family", "") not in FAMILIES or not is_public(kind):
        kinds = "decision trees, random forests, extra trees and histogram gradient boosting"
        why = f"it is a {kind.__name__}, and proofs are of {kinds}"
    elif given.get("warm_start"):
        why = "with warm_start=True its trees may come from several data sets"
    elif objects:
        why = f"{objects[0]} is an object of Python, which no record holds"
    elif "forest_" in known and "_training_" not in known:
        why = "no fit of gpuforest made it as it is"
    elif "forest_" in known and getattr(model.forest_.coding, "has_offset", False):
        why = "it was fitted with init_score, which is no part of the record"
    if why is not None:
        raise ValueError(f"this model cannot be grown again: {why}")


def verify(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None,
    blocks: Any = None, row_ids: Any = None, sample: int | None = None, salt: int = 0,
) -> Bunch:  # fmt: skip
    """Check that a model comes from its data and parameters, by growing it again.

    First the digests of its record are compared with the parameters, the forest and the data (and
    by `load` with the file). Where all are equal, trees grow again, and all that predictions depend
    on is compared.

    Parameters
    ----------
    model : path of a model file, or an estimator to which `prove` or `load` gave `proof_`
    X, y, sample_weight, groups, blocks : the data that it was fitted on
    row_ids : as `prove` was given
    sample : int, default=None
        The number of trees that grow again; None: all of them. Trees that depend on each other
        (boosting, and forests whose parameters out-of-bag errors chose) all grow again.
    salt : int, default=0
        A number that you choose: `sample` trees are drawn by a hash of it and of the forest's
        digest. Nobody who does not know it can change just the trees that are not drawn.

    Returns
    -------
    Bunch
        ok : bool, compared : list of what was compared, differs : list of what differs, trees : the
        numbers of the trees that grew again, other_trees : the numbers of trees that differ

    Raises
    ------
    ModelFormatError
        A file that is damaged, or was changed after it was written.
    ValueError
        A model without a proof, one that cannot be grown again or that another version of the
        algorithm has grown, or a sample that is not a number of trees.
    """
    if isinstance(model, str | os.PathLike):
        model = loading.load(model)
    check_is_fitted(model)
    if not (record := getattr(model, "proof_", None)):
        raise ValueError("the model has no proof: gpuforest train --proof or prove() gives it one")
    require_regrowable(model)
    if record["algorithm"] != ALGORITHM:
        raise ValueError(
            f"the model was grown by algorithm {record['algorithm']} of gpuforest "
            f"{record['version']}, and this one has algorithm {ALGORITHM}: verify it with that"
        )
    if not isinstance(sample, Integral | None) or sample == 0:
        raise ValueError(f"sample={sample!r} must be a number of trees, at least 1")
    of_rows = {"sample_weight": sample_weight, "groups": groups, "blocks": blocks}
    equal = {
        "parameters": record["parameters"] == model_file.parameters_digest(model._model()),
        "forest": record["forest"] == forest_digest(model.forest_),
        "rows": record["rows"] == model._training_["rows"] == arrays.count_rows(X),
    }
    if equal["rows"]:
        with stage("hashing"):
            equal["data"] = record["data"] == data_digest(X, y, **of_rows, row_ids=row_ids)
    trees, others = list[int](), list[int]()
    if all(equal.values()):
        n_trees = n_sample = model.forest_.n_trees
        fresh = type(model)(**model.get_params(deep=False) | {"random_state": model.seed_})
        if sample is not None and _stand_alone(fresh):
            n_sample = min(sample, n_trees)
        trees = drawn_trees(record["forest"], salt, n_trees, n_sample)
        of_rows["row_ids"] = row_ids if getattr(fresh, "bootstrap", "") == by_ids.BY_IDS else None
        given = {name: labels for name, labels in of_rows.items() if labels is not None}
        if n_sample == n_trees:
            grown = fresh.fit(X, y, **given).forest_
            score = vars(model).get("oob_score_", np.nan)  # NaN: no claim
            same = np.isnan(score) or score == vars(fresh).get("oob_score_")
            equal["out-of-bag score"] = bool(same)
            equal["number of trees"] = grown.n_trees == n_trees
        else:
            work = partial(_grown, fresh, FitInput.of(X, y, **given), model.seed_, trees)
            grown = registry.run_on_backend(work, **fresh._chosen(X))
            equal["number of trees"] = n_trees == model.n_estimators
        pairs = zip(trees, range(grown.n_trees), strict=False)
        others = [t for t, i in pairs if _digest(model.forest_, t) != _digest(grown, i)]
        equal["trees"] = not others
    differs = [name for name, is_equal in equal.items() if not is_equal]
    return Bunch(
        ok=not differs, compared=[*equal], differs=differs, trees=trees, other_trees=others
    )


def _stand_alone(model: Any) -> bool:
    """Whether each tree can grow without the others."""
    asked = model._settings()
    return (
        model._family == "forests"
        and not asked.by_error
        and asked.shrinkage != "oob"
        and model.n_estimators != "auto"
    )


def drawn_trees(digest: str, salt: int, n_trees: int, sample: int) -> list[int]:
    """The numbers of different trees, ascending, by a hash of the digest and a salt."""
    key = hashlib.sha256(f"{digest} {int(salt)}".encode()).digest()[:8]
    keys = np.array([[int.from_bytes(key, "little")]], np.uint64)
    positions = np.arange(sample, dtype=np.uint64)[None]
    return sorted(hashing.permute(np, keys, positions, n_trees)[0].tolist())


def _grown(fresh: Any, given: FitInput, seed: int, trees: list[int], backend: Backend) -> Forest:
    """Some trees of a fit, each grown alone."""
    plan = prepare(fresh, given, seed, backend)
    with stage("growing"):
        return joined([plan.finish(plan.grow(tree, tree + 1), tree) for tree in trees])


def _digest(forest: Forest, tree: int) -> str:
    """The digest of a tree and of what all trees share: bins, classes, how trees are combined."""
    one = own_rows(one_tree(forest, tree))
    # a tree that grew alone may lack what others have: limited values, and kinds of splits
    kinds: dict[str, Any] = {name: False for name, value in vars(one).items() if value is True}
    return forest_digest(replace(one, leaf_values=one.values, **kinds))
