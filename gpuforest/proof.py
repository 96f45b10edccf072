"""Proofs of origin: a record of what a model was made from, and its check by growing it again.

A record has digests of the data, the parameters and the forest. That of the data is the sum,
modulo 2**2048, of a hash of each row (SHAKE-128, 2048 bits), so the order of the rows does not
matter and a row is taken away by subtracting its hash (Bellare and Micciancio, "A new paradigm for
collision-free hashing", EUROCRYPT 1997). With 256 bits the generalised birthday attack (Wagner,
CRYPTO 2002) would find other rows of the same sum in some 2**32 steps; with 2048 bits and at most
2**32 rows it takes more than 2**90.
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
from scipy.sparse import issparse
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from gpuforest import loading
from gpuforest.backends import registry
from gpuforest.backends.base import Backend
from gpuforest.common import hashing
from gpuforest.common.progress import stage
from gpuforest.core.forest import Forest, joined
from gpuforest.core.model import is_public
from gpuforest.data import arrays, validation
from gpuforest.data.binned import BinnedData, FitInput
from gpuforest.data.categories import factorize
from gpuforest.estimators import by_ids
from gpuforest.estimators.prepare import prepare
from gpuforest.explain.model_facts import forest_digest
from gpuforest.explain.node_values import own_rows
from gpuforest.explain.paths import one_tree
from gpuforest.export import model_file

ALGORITHM = 1  # rises when the forests of the same data, parameters and seed change
BITS = 2048  # of a row's hash, and of their sum
BLOCK = 2**14  # rows whose bytes are in memory at once
FAMILIES = ("trees", "forests", "boosting")  # that grow again from data, parameters and seed


def data_digest(
    X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, blocks: Any = None,
    row_ids: Any = None,
) -> str:  # fmt: skip
    """A digest of training rows, which does not depend on their order.

    The hash of a row is that of its id and its values: numbers as float64 (all missing values are
    the same, and -0.0 is 0.0), categories and labels by their text. The digest is the sum of the
    hashes modulo 2**2048. Without some rows it is the difference of two digests.

    Parameters
    ----------
    X, y, sample_weight, groups, blocks : the data, as of `fit`; without weights each is one
    row_ids : array-like of shape (n_samples,) of different integers, default=None
        None: the positions of the rows.

    Returns
    -------
    str
        512 hexadecimal digits.

    Raises
    ------
    TypeError
        Binned data, whose values are not known, or values other than numbers and categories.
    ValueError
        Ids that repeat or are no integers, or arrays of other lengths.
    """
    if isinstance(X, BinnedData):
        raise TypeError("BinnedData have codes, not the values of rows: pass the table itself")
    n = arrays.count_rows(X)
    ids: Any = validation.check_ids(np.arange(n) if row_ids is None else row_ids, n)
    weight = np.ones(n) if sample_weight is None else sample_weight
    parts = {"X": X, "y": y, "sample_weight": weight, "groups": groups, "blocks": blocks}
    kinds, columns = "", [ids.astype(np.uint64)[:, None]]
    for name, part in parts.items():
        found = [] if part is None else _columns(part, name)
        kinds += name + "".join(str(words.shape[1]) for words in found)
        if wrong := [len(words) for words in found if len(words) != n]:
            raise ValueError(f"{name} has {wrong[0]} rows, and X has {n}")
        columns += found
    head = np.frombuffer(hashlib.sha256(kinds.encode()).digest(), "<u8")
    shake, total = hashlib.shake_128, 0
    for begin in range(0, n, BLOCK):
        block = [words[begin : begin + BLOCK] for words in columns]
        table = np.concatenate([np.broadcast_to(head, (len(block[0]), 4)), *block], axis=1)
        data, width = table.astype("<u8").tobytes(), 8 * table.shape[1]
        rows = (data[at : at + width] for at in range(0, len(data), width))
        total += sum(int.from_bytes(shake(row).digest(BITS // 8), "little") for row in rows)
    return f"{total % 2**BITS:0{BITS // 4}x}"


def _columns(part: Any, name: str) -> list[np.ndarray]:
    """Words u64[N, 1] of each column of numbers, u64[N, 4] of each one of text."""
    part = arrays.to_host(part, name)
    if arrays.is_frame(part):
        return [_words(c.to_numpy(), name) for c in arrays.open_frame(part, name).iter_columns()]
    table = part.toarray() if issparse(part) else np.asarray(part)
    return [_words(column, name) for column in table.reshape(len(table), -1).T]


def _words(column: np.ndarray, name: str) -> np.ndarray:
    """Hashes of texts, zero where one is missing, or bits of numbers, also of those among objects:
    with one pattern of missing values and one zero."""
    if column.dtype.kind not in "biuf":
        codes, known, _ = factorize(column, name)
        codes = np.asarray(codes)
        if any(isinstance(value, str) for value in known):
            digests = [hashlib.sha256(str(value).encode()).digest() for value in known]
            words = np.frombuffer(b"".join([*digests, bytes(32)]), "<u8").reshape(-1, 4)
            return np.asarray(words[codes])
        column = np.array([*known, np.nan], np.float64)[codes]
    values = np.asarray(column, np.float64).reshape(-1, 1) + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return np.ascontiguousarray(values).view(np.uint64)


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
