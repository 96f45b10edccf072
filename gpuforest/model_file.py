"""Model files: a fitted estimator as plain arrays (safetensors) and a JSON header.

    is_leaf        u8[M / 8]    bits: which of all nodes are leaves
    splits         u64[...]     the packed nodes that are none
    leaves         int[...]     each leaf's row of the leaf table; absent: one after another
    tree_offsets   i64[T + 1]
    leaf_weights   int[V]       of regression; as these all in the smallest integers that
    leaf_sums      int[V, C]    hold them: class sums, or moments
    edge_values    f64[E]       edge_offsets i64[F + 1], edge_kinds u8[F]
    centre         f64[K]       of regression
    classes        [C]          where they are numbers; strings are in the header

Nothing in a file is ever executed, and nothing is believed: a file is checked as a whole
before an estimator is made of it, so that prediction cannot read out of bounds.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import array_api_compat.numpy as xp
import numpy as np

from gpuforest import estimators
from gpuforest.binning import NUMERIC, BinEdges
from gpuforest.criteria import CRITERIA, criterion_names
from gpuforest.dtypes import MAX_BINS, MAX_FEATURES, MAX_TOTAL_WEIGHT
from gpuforest.errors import ModelFormatError
from gpuforest.forest import Forest
from gpuforest.nodes import LEAF_MASK, LEAF_WORD, is_leaf, unpack
from gpuforest.target import SUM_BITS, TargetCoding

FORMAT = "gpuforest"
VERSION = 1
WHERE_IT_RUNS = ("backend", "n_jobs")  # parameters that are the reader's own matter


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`, which is replaced as a whole or not at all.

    What describes the training rows one by one (out-of-bag predictions), and where the
    estimator ran (`backend`, `n_jobs`), is left out.

    Raises
    ------
    ValueError : class labels that are neither numbers nor strings
    """
    from safetensors.numpy import save_file

    forest, header = estimator.forest_, _header(estimator)
    arrays = {
        **_packed(forest),
        "tree_offsets": forest.tree_offsets,
        "edge_values": forest.edges.values,
        "edge_offsets": forest.edges.offsets,
        "edge_kinds": forest.edges.kinds,
        "centre": forest.coding.centre,
    }
    if "classes" not in header and forest.coding.is_classes:
        arrays["classes"] = forest.coding.classes
    # safetensors holds little-endian, contiguous arrays
    arrays = {n: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for n, a in arrays.items()}
    text = json.dumps(header)
    # one entry, because safetensors writes several in any order
    metadata = {FORMAT: f"{VERSION} {_checksum(text, arrays)} {text}"}
    path = Path(path)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        unfinished = file.name
    try:
        save_file(arrays, unfinished, metadata)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(unfinished, 0o666 & ~umask)  # a temporary file is its owner's alone
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote; it predicts the same, to the last bit.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    The fitted estimator, with the default `backend` and `n_jobs`.

    Raises
    ------
    ModelFormatError
        A cut, damaged or foreign file, or one of a newer format version.
    OSError
        The file cannot be read.
    """
    text, arrays = _read(Path(path))
    try:
        header = json.loads(text)
        forest = _forest(header, arrays)
        check_forest(forest)
        return _estimator(header, forest)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise ModelFormatError(f"{path} is no valid model: {error!r}") from error


def check_forest(forest: Forest) -> None:
    """Raise ModelFormatError unless the forest is one that could have been grown.

    After this, walking any codes down any tree ends at a row of the leaf table.
    """
    _check_edges(forest.edges)
    _check_leaves(forest.leaf_sums, forest.coding)
    nodes, offsets = forest.nodes, forest.tree_offsets
    _need(nodes.dtype == np.uint64 and nodes.ndim == 1, "nodes are no list of 64-bit words")
    _check_offsets(offsets, len(nodes), "tree_offsets")
    sizes = np.diff(offsets)
    _need(len(sizes) >= 1 and bool((sizes >= 1).all()), "a tree has no nodes")
    feature, bin, _, child = unpack(xp, nodes)
    split = feature >= 0
    # 1. leaves point into the leaf table, splits at bins of features
    _need(bool((child[~split] < len(forest.leaf_sums)).all()), "a leaf outside the leaf table")
    _need(bool((feature[split] < forest.edges.n_features).all()), "a split on no feature")
    _need(bool((bin[split] < forest.edges.n_bins[feature[split]]).all()), "a split on no bin")
    # 2. children lie after their parent, inside its tree
    base = np.repeat(offsets[:-1], sizes)
    place = np.arange(len(nodes)) - base
    inside = (child > place) & (child + 1 < np.repeat(sizes, sizes))
    _need(bool(inside[split].all()), "a child outside its tree or before its parent")
    # 3. every node but a root is the child of exactly one
    left = (base + child)[split]
    parents = np.bincount(np.concatenate([left, left + 1]), minlength=len(nodes))
    _need(np.array_equal(parents, place > 0), "a node without its one parent")


def _check_edges(edges: BinEdges) -> None:
    values, offsets, kinds = edges.values, edges.offsets, edges.kinds
    _need(values.dtype == np.float64 and values.ndim == 1, "edges are no list of numbers")
    _check_offsets(offsets, len(values), "edge_offsets")
    _need(1 <= edges.n_features <= MAX_FEATURES, "no features, or too many")
    _need(kinds.shape == (edges.n_features,), "kinds of features are missing")
    _need(kinds.dtype == np.uint8 and bool((kinds == NUMERIC).all()), "an unknown kind of feature")
    _need(int(np.diff(offsets).max()) < MAX_BINS, "a feature with too many bins")
    _need(bool(np.isfinite(values).all()), "an edge that is no finite number")
    inner = np.ones(len(values) + 1, bool)
    inner[offsets] = False  # where one feature's edges end and the next one's begin
    _need(bool((values[1:] > values[:-1])[inner[1:-1]].all()), "edges that do not ascend")


def _check_leaves(sums: np.ndarray, coding: TargetCoding) -> None:
    _need(sums.dtype == np.int64 and sums.ndim == 2 and len(sums) > 0, "no leaf table")
    _need(coding.n_channels == sums.shape[1] > 0, "a leaf table of the wrong width")
    if coding.classes is not None:
        classes = coding.classes
        _need(bool((classes[1:] > classes[:-1]).all()), "classes that do not ascend")
        _need(bool((sums >= 0).all()), "a negative number of rows")
        weight = sums.sum(axis=1)
        _need(bool((sums <= MAX_TOTAL_WEIGHT).all()), "a leaf that is too heavy")
    else:
        weight = sums[:, 0]
        limit = 2**SUM_BITS
        _need(bool(((sums > -limit) & (sums < limit)).all()), "a target sum out of range")
        _need(bool(np.isfinite(coding.centre).all()), "a centre that is no finite number")
        _need(0 < coding.scale < np.inf, "a scale that is not positive")
    _need(bool(((weight > 0) & (weight <= MAX_TOTAL_WEIGHT)).all()), "a leaf without weight")


def _check_offsets(offsets: np.ndarray, n: int, name: str) -> None:
    _need(offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 1, f"no {name}")
    _need(bool((offsets[1:] >= offsets[:-1]).all()), f"{name} that do not ascend")
    _need(int(offsets[0]) == 0 and int(offsets[-1]) == n, f"{name} that do not fit")


def _need(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ModelFormatError(f"damaged model: {otherwise}")


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a dict, whose keys may be numbers, as a list of pairs."""
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if callable(value):
        return True  # a way to score, which no file can hold
    return value.item() if isinstance(value, np.generic) else value


def _parameter(value: Any) -> Any:
    """The other way round."""
    if not isinstance(value, dict):
        return value
    pairs: list[Any] = value["pairs"]
    _need(
        all(
            isinstance(p, list) and len(p) == 2 and not isinstance(p[0], list | dict) for p in pairs
        ),
        "a pair that is none",
    )
    return dict(pairs)


def _header(estimator: Any) -> dict[str, Any]:
    params = {
        name: _plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in WHERE_IT_RUNS
    }
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = estimator.seed_  # grows the same trees
    header = {
        "estimator": type(estimator).__name__,
        "parameters": params,
        "seed": estimator.seed_,
        "criterion": estimator.criterion_,
        "scale": estimator.forest_.coding.scale,
    }
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names"] = estimator.feature_names_in_.tolist()
    if hasattr(estimator, "oob_score_"):
        header["oob_score"] = estimator.oob_score_
    classes = getattr(estimator, "classes_", None)
    if classes is not None and (classes.dtype.kind not in "biuf" or classes.itemsize > 8):
        if not all(isinstance(label, str) for label in classes.tolist()):
            raise ValueError(
                f"classes of dtype {classes.dtype} cannot be saved: only numbers and "
                "strings; pickle the estimator instead"
            )
        header["classes"] = classes.tolist()
        header["classes_dtype"] = "object" if classes.dtype.kind != "U" else "str"
    return header


def _smallest(sums: np.ndarray) -> np.ndarray:
    """The same integers in as few bytes each as hold them all."""
    low, high = int(sums.min()), int(sums.max())
    dtype = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    return sums.astype(dtype if dtype.kind in "iu" else np.int64)


def _packed(forest: Forest) -> dict[str, np.ndarray]:
    """Nodes and leaf table in few bytes; `_unpacked` takes them back."""
    leaf, sums = is_leaf(forest.nodes), forest.leaf_sums
    arrays = {"is_leaf": np.packbits(leaf), "splits": forest.nodes[~leaf]}
    rows = forest.nodes[leaf] & np.uint64(LEAF_MASK)
    if not np.array_equal(rows, np.arange(len(sums))):
        arrays["leaves"] = _smallest(rows)
    if forest.coding.is_classes:
        return {**arrays, "leaf_sums": _smallest(sums)}
    weights, moments = _smallest(sums[:, 0]), _smallest(sums[:, 1:])
    return {**arrays, "leaf_weights": weights, "leaf_sums": moments}


def _unpacked(arrays: dict[str, np.ndarray], n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u64[M] and leaf sums i64[V, C]; that they make trees is not checked yet."""
    bits, splits, sums = (arrays[name] for name in ("is_leaf", "splits", "leaf_sums"))
    _need(bits.dtype == np.uint8 and bits.shape == (-(-n_nodes // 8),), "bits that do not fit")
    _need(splits.dtype == np.uint64 and splits.ndim == 1, "splits are no list of 64-bit words")
    _need(not is_leaf(splits).any(), "a split that is a leaf")
    leaf = np.unpackbits(bits, count=n_nodes).astype(bool)
    n_leaves = int(leaf.sum())
    _need(len(splits) == n_nodes - n_leaves, "splits that do not fit")
    rows = arrays.get("leaves", np.arange(n_leaves))
    _need(rows.dtype.kind in "iu" and rows.shape == (n_leaves,), "leaves that do not fit")
    _need(bool(((rows >= 0) & (rows < len(sums))).all()), "a leaf outside the leaf table")
    nodes = np.empty(n_nodes, np.uint64)
    nodes[~leaf], nodes[leaf] = splits, rows.astype(np.uint64) + np.uint64(LEAF_WORD)
    if "leaf_weights" in arrays:
        weights = arrays["leaf_weights"]
        _need(weights.dtype.kind in "iu" and weights.shape == sums.shape[:1], "no leaf weights")
        _need(sums.dtype.kind in "iu" and sums.ndim == 2, "no leaf table")
        sums = np.column_stack([weights.astype(np.int64), sums.astype(np.int64)])
    _need(sums.dtype.kind in "iu", "leaf sums are no integers")
    return nodes, sums.astype(np.int64)


def _checksum(text: str, arrays: dict[str, np.ndarray]) -> int:
    crc = zlib.crc32(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        crc = zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), crc)
        crc = zlib.crc32(array.data, crc)
    return crc


def _read(path: Path) -> tuple[str, dict[str, np.ndarray]]:
    """The header's text and the arrays of a whole, undamaged file of a known version."""
    from safetensors import SafetensorError, safe_open

    with path.open("rb"):
        pass  # an OSError of the usual kind where there is no file to read
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if FORMAT not in metadata:
                raise ModelFormatError(f"{path} was not written by gpuforest")
            version, checksum, text = metadata[FORMAT].split(" ", 2)
            if int(version) > VERSION:
                raise ModelFormatError(
                    f"{path} was written by a newer gpuforest (format version {version}, "
                    f"this one reads up to {VERSION}): upgrade gpuforest"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if _checksum(text, arrays) != int(checksum):
                raise ModelFormatError(f"{path} is damaged: its checksum does not match")
    except ModelFormatError:
        raise
    except (SafetensorError, TypeError, ValueError) as error:
        raise ModelFormatError(f"{path} is no whole model file: {error}") from error
    return text, arrays


def _forest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Forest:
    """The forest of a file, not yet checked but for what checking needs."""
    offsets, classes = arrays["tree_offsets"], arrays.get("classes")
    _check_offsets(offsets, int(offsets[-1]), "tree_offsets")
    nodes, sums = _unpacked(arrays, int(offsets[-1]))
    if "classes" in header:
        kind = object if header["classes_dtype"] == "object" else np.str_
        _need(all(isinstance(label, str) for label in header["classes"]), "classes of no strings")
        classes = np.array(header["classes"], dtype=kind)
    _need(classes is None or classes.ndim == 1, "classes are no list")
    centre, scale, seed = arrays["centre"], header["scale"], header["seed"]
    _need(centre.dtype == np.float64 and centre.shape == (1,), "no centre")
    _need(isinstance(scale, float), "no scale")
    _need(isinstance(seed, int) and 0 <= seed < 2**64, "no seed")
    return Forest(
        nodes=nodes,
        tree_offsets=offsets,
        leaf_sums=sums,
        edges=BinEdges(arrays["edge_values"], arrays["edge_offsets"], arrays["edge_kinds"]),
        coding=TargetCoding(classes, centre, scale),
        seed=seed,
    )


def _estimator(header: dict[str, Any], forest: Forest) -> Any:
    """A fitted estimator of a checked forest."""
    name, coding = header["estimator"], forest.coding
    _need(name in estimators.__all__, f"an unknown estimator {name!r}")
    parameters = {name: _parameter(value) for name, value in header["parameters"].items()}
    estimator = getattr(estimators, name)(**parameters)
    estimator._validate_params()
    task = "classification" if name.endswith("Classifier") else "regression"
    _need(coding.is_classes == (task == "classification"), "classes and estimator disagree")
    _need(header["criterion"] in criterion_names(task), "an unknown criterion")
    single = name.startswith("DecisionTree")
    _need(forest.n_trees == 1 or not single, "a tree of many trees")
    estimator.n_features_in_ = forest.edges.n_features
    if (names := header.get("feature_names")) is not None:
        _need(len(names) == forest.edges.n_features, "feature names that do not fit")
        _need(all(isinstance(n, str) for n in names), "feature names that are no strings")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if "oob_score" in header:
        estimator.oob_score_ = float(header["oob_score"])
    estimator._keep(forest, (None, coding.classes))
    estimator.criterion_ = CRITERIA[header["criterion"]].name
    return estimator
