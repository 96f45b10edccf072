"""Model files: a fitted estimator as plain arrays (safetensors) and a JSON header.

    is_leaf        u8[M / 8]    bits: which of all nodes are leaves
    splits         u64[...]     the packed nodes that are splits
    leaves         int[...]     each leaf's row of the leaf table; absent: one after another
    tree_offsets   i64[T + 1]
    leaf_weights   int[V]       of regression; like leaves and leaf_sums in the smallest integers
    leaf_sums      int[V, C]    class sums, or moments
    leaf_impurity  f64[V]       of a regression tree
    leaf_values    f64[V, ...]  see `Forest`; or leaf_means f64[V]: see `_with_means`
    node_values    f64[M, K]    node_errors f64[M]: of trees grown by absolute error
    tree_weights   f64[T]       tree_errors f64[T]: of AdaBoost, what each tree counts, and its
                                error in training
    unbiased_importances  f64[F], where a fit was asked for them
    edge_values    f64[E]       edge_offsets i64[F + 1], edge_kinds u8[F]
    centre         f64[K]       of regression
    classes        [C]          where they are numbers; strings are in the header
    baseline       f64[K]       units f64[T, 2]: of gradient boosting, see boosting/model.py
    train_score    f64[n]       validation_score f64[n]: of gradient boosting
    draw_weights   i32[N]       the weights by which training rows were drawn, if they had any
    row_codes      u8/u16[N, F] row_targets f64[N, K]: of quantile forests
    scores         f64[K, n]    score_offsets f64[K]: see `conformal.Calibration`

The categories of features are in the header: {"3": ["a", "b"]}. So are curves of errors,
{column: [...]}, the command line's facts about the training data, {"target": "price",
"decimal": ","}, and those of every fit, {"rows": 100, "version": "0.1.0"}.

Nothing in a file is ever executed, and nothing is believed: a file is checked as a whole
before an estimator is made of it, so that prediction cannot read out of bounds.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from math import inf
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gpuforest import estimators
from gpuforest.boosting.losses import NUMBERS, Loss
from gpuforest.boosting.model import BoostedCoding
from gpuforest.common.dtypes import MAX_ROWS, MAX_TOTAL_WEIGHT
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.engine.binning import BinEdges
from gpuforest.engine.criteria import CRITERIA, CriterionNames
from gpuforest.engine.forest import Forest
from gpuforest.engine.forest_check import check_forest, check_offsets
from gpuforest.engine.nodes import LEAF_MASK, LEAF_WORD, is_leaf
from gpuforest.engine.sampling import Sampling
from gpuforest.engine.target import TargetCoding
from gpuforest.estimators.bagging import Bagging
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.quantile_forests import QuantileForest
from gpuforest.explain.model_facts import WHERE_IT_RUNS, scorer_name
from gpuforest.explain.quantile_forest import TrainingRows
from gpuforest.explain.uncertainty import Calibration
from gpuforest.export.container import Layout, parse_object, read, write

INTEGERS = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
OPTIONAL = ("leaf_impurity", "leaf_values", "node_values", "node_errors", "tree_weights")
OF_BOOSTING = ("baseline", "units", "train_score", "validation_score")
F64_1 = (
    *("leaf_impurity", "leaf_means", "node_errors", "tree_weights", "tree_errors"),
    *("edge_values", "unbiased_importances", "centre", "score_offsets"),
    *("baseline", "train_score", "validation_score"),
)
F64_2 = ("leaf_values", "node_values", "units", "row_targets", "scores")
ARRAYS: Layout = {
    **dict.fromkeys(F64_1, (("F64",), 1)),
    **dict.fromkeys(F64_2, (("F64",), 2)),
    **dict.fromkeys(("leaves", "leaf_weights"), (INTEGERS, 1)),
    **dict.fromkeys(("tree_offsets", "edge_offsets"), (("I64",), 1)),
    **dict.fromkeys(("is_leaf", "edge_kinds"), (("U8",), 1)),
    **dict.fromkeys(("splits", "sets"), (("U64",), 1)),
    "leaf_sums": (INTEGERS, 2),
    "classes": (("BOOL", *INTEGERS, "F16", "F32", "F64"), 1),
    "draw_weights": (("I32",), 1),
    "row_codes": (("U8", "U16"), 2),
}
# curves of errors are attributes, without the "_" at their end; their first column ascends
CURVES: dict[str, dict[str, type]] = {
    "oob_curve": {"n_estimators": int, "error": float},
    "oob_max_features": {"max_features": int, "error": float},
    "pruning_curve": {"ccp_alphas": float, "n_leaves": int, "errors": float, "std_errors": float},
}
ERRORS = ("error", "errors", "std_errors")  # NaN where there are no rows, as out of few trees' bags
# facts about the training data that the command line knows, and about every fit
SOURCE: dict[str, type] = {
    **dict.fromkeys(("target", "decimal", "thousands", "units", "date_format"), str),
    **dict.fromkeys(("missing", "dates"), list),
}
TRAINING: dict[str, type] = {"rows": int, "version": str}
# attributes of estimators by their name in the header
KEPT = {**{name: f"{name}_" for name in (*CURVES, "source")}, "training": "_training_"}
HEADER = {
    **dict.fromkeys(("estimator", "criterion", "classes_dtype", "combine"), str),
    **dict.fromkeys(("scale", "oob_score", "ccp_alpha", "offset"), float),
    **dict.fromkeys(("feature_names", "classes", "outputs"), list),
    **dict.fromkeys(("parameters", "categories", "boosting", "draws", *KEPT), dict),
    **dict.fromkeys(("votes", "oblique"), bool),
    "seed": int,
}
NEEDED = {
    *("is_leaf", "splits", "tree_offsets", "leaf_sums", "centre"),
    *("edge_values", "edge_offsets", "edge_kinds"),
    *("estimator", "parameters", "seed", "criterion", "scale"),
}
# the boosting of a header: "stops" says whether rounds end early. Where the scores are those of a
# function, which no file holds, its name is there as well
BOOSTING = {"loss": str, "quantile": float, "l2": float, "stops": bool}
SCORED_BY = "scored_by"
NESTED = ("DecisionTreeClassifier", "DecisionTreeRegressor")  # as parameters of others
MAX_LABELS = 2**28  # letters: an array of strings has room for the longest in each item


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`, which is replaced as a whole or not at all.

    What describes the training rows one by one (out-of-bag predictions) is left out, except the
    weights by which forests drew rows, and what quantile forests predict by; and so is where the
    estimator ran (`backend`, `n_jobs`, `memory_limit`). A splitter as `ccp_cv`, and a function as
    `scoring`, are the default when the file is read.

    Raises
    ------
    ValueError : labels that are neither numbers nor strings, too many names, or a subclass
    OSError : the file cannot be written; what was there before is still there
    """
    forest, header = estimator.forest_, _header(estimator)
    arrays = {
        **_rows_of(estimator),
        **_packed(forest),
        "tree_offsets": forest.tree_offsets,
        "edge_values": forest.edges.values,
        "edge_offsets": forest.edges.offsets,
        "edge_kinds": forest.edges.kinds,
        "centre": forest.coding.centre,
    }
    if "classes" not in header and forest.coding.classes is not None:
        arrays["classes"] = forest.coding.classes
    if forest.baseline is not None:
        arrays |= {"baseline": forest.coding.baseline, "units": forest.coding.units}
        scores = {name: getattr(estimator, f"{name}_") for name in OF_BOOSTING[2:]}
        arrays |= {name: values for name, values in scores.items() if len(values)}
    optional = {name: getattr(forest, name) for name in OPTIONAL}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    if hasattr(estimator, "_unbiased_importances_"):
        arrays["unbiased_importances"] = estimator._unbiased_importances_
    if len(forest.sets):
        arrays["sets"] = forest.sets
    if forest.tree_weights is not None:
        arrays["tree_errors"] = estimator.estimator_errors_[: forest.n_trees]
    write(Path(path), json.dumps(header), arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote; it predicts the same, to the last bit.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    The fitted estimator, with the default `backend`, `n_jobs` and `memory_limit`.

    Raises
    ------
    ModelFormatError
        A cut, damaged or foreign file, or one of a newer format version.
    OSError
        The file cannot be read.
    MemoryError
        The model does not fit into memory.
    """
    path = Path(path)
    try:
        text, arrays = read(path, ARRAYS)
        header = parse_object(text)
        _check_names(header, arrays)
        forest = _forest(header, arrays)
        check_forest(forest)
        if "leaf_means" in arrays:
            forest = _with_means(forest, arrays["leaf_means"])
        estimator = _estimator(header, arrays, forest)
        _set_rounds(estimator, forest, arrays.get("tree_errors"))
        _set_rows(estimator, header, arrays, forest)
        return estimator
    except (OSError, MemoryError):
        raise
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error
    except Exception as error:  # whatever damage does to code that trusts its data
        raise ModelFormatError(f"{path}: {damaged(f'{error!r:.200}')}") from error


def _check_names(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check that a file has all that it must have, nothing unknown, and the right types."""
    for kind, names, in_file in (("array", ARRAYS, arrays), ("header key", HEADER, header)):
        for name in names.keys() & NEEDED:
            need(name in in_file, f"no {kind} {name!r}")
        for name in in_file:
            need(name in names, f"an unknown {kind} {name!r:.80}")
    for name, value in header.items():
        need(type(value) is HEADER[name], f"{name} of another type")


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a dict, whose keys may be numbers, as a list of pairs."""
    if hasattr(value, "get_params"):
        _check_class(value)
        return {"tree": type(value).__name__, "parameters": _parameters(value)}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple) or (hasattr(value, "ndim") and value.ndim > 0):
        return [_plain(each) for each in (value.tolist() if hasattr(value, "tolist") else value)]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if callable(value):
        return True  # a way to score, which no file can hold
    return value.item() if isinstance(value, np.generic) else value


def _parameter(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return [_parameter(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "tree" in value:
        need(value.keys() == {"tree", "parameters"} and value["tree"] in NESTED, "no tree")
        return _made(value["tree"], value["parameters"])
    pairs: list[Any] = value["pairs"]
    need(len(value) == 1 and all(type(pair) is list for pair in pairs), "pairs that are none")
    parameter = dict(pairs)
    need(len(parameter) == len(pairs), "a key that comes twice in a parameter")
    return parameter


def _parameters(estimator: Any) -> dict[str, Any]:
    params = {k: v for k, v in estimator.get_params(deep=False).items() if k not in WHERE_IT_RUNS}
    if not isinstance(params.get("ccp_cv", 0), Integral):
        del params["ccp_cv"]  # a splitter, which no file can hold
    if callable(params.get("scoring")):
        del params["scoring"]  # nor a function
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = getattr(estimator, "seed_", None)  # grows the same trees
    return {name: _plain(value) for name, value in params.items()}


def _made(name: str, parameters: Any) -> Any:
    """An estimator that is not fitted."""
    need(type(parameters) is dict, "parameters that are none")
    kind = getattr(estimators, name)
    names = set(kind._get_param_names()).difference(WHERE_IT_RUNS)
    need(parameters.keys() <= names, "an unknown parameter")
    estimator = kind(**{name: _parameter(value) for name, value in parameters.items()})
    estimator._validate_params()
    return estimator


def _check_class(estimator: Any) -> None:
    """A file names a class, and cannot say what a user's subclass does otherwise."""
    name = type(estimator).__name__
    if getattr(estimators, name, None) is not type(estimator):
        why = f"{name} is not a class of gpuforest, and a model file holds no others"
        raise ValueError(f"{why}: pickle the estimator instead")


def _header(estimator: Any) -> dict[str, Any]:
    _check_class(estimator)
    header = {
        "estimator": type(estimator).__name__,
        "parameters": _parameters(estimator),
        "seed": estimator.seed_,
        "criterion": estimator.criterion_,
        "scale": estimator.forest_.coding.scale,
    }
    if hasattr(estimator, "feature_names_in_"):
        header["feature_names"] = estimator.feature_names_in_.tolist()
    if hasattr(estimator, "oob_score_"):
        header["oob_score"] = estimator.oob_score_
    if hasattr(estimator, "offset_"):
        header["offset"] = estimator.offset_
    if categories := estimator.forest_.edges.categories:
        header["categories"] = {str(f): list(values) for f, values in categories.items()}
    if hasattr(estimator, "pruning_curve_"):
        header["ccp_alpha"] = estimator.ccp_alpha_
    header |= _kept_of(estimator)
    coding, combine = estimator.forest_.coding, estimator.forest_.combine
    # a file without it means votes where this parameter says so, which may be newer than the trees
    votes = header["parameters"].get("voting") == "hard"
    header |= {} if combine == "mean" and not votes else {"combine": combine}
    if estimator.forest_.oblique:
        header["oblique"] = True
    if coding.several:
        header["outputs"] = [[_kind_of(labels), labels.tolist()] for labels in coding.several]
    elif coding.classes is not None and (kind := _kind_of(coding.classes)) in ("object", "str"):
        header["classes"], header["classes_dtype"] = coding.classes.tolist(), kind
    if estimator.forest_.baseline is not None:
        boosting = {"loss": coding.loss.name, "quantile": coding.loss.quantile, "l2": coding.l2}
        header["boosting"] = boosting | {"stops": bool(estimator.do_early_stopping_)}
        if (scorer := scorer_name(estimator)) is not None:
            header["boosting"][SCORED_BY] = scorer
    sampling = getattr(estimator, "_sampling_", None)
    if _keeps_draws(estimator) and sampling is not None and not sampling.distinct:
        header["draws"] = {"n_rows": sampling.n_rows, "n_draws": sampling.n_draws}
    return header


def _kept_of(estimator: Any) -> dict[str, dict[str, Any]]:
    """The curves that a fitted estimator has, by name, its source and what is known of its fit."""
    attributes = {name: getattr(estimator, attribute, None) for name, attribute in KEPT.items()}
    kept: dict[str, dict[str, Any]] = {}
    for name, facts in attributes.items():
        if facts is not None and name in CURVES:
            kept[name] = {column: facts[column].tolist() for column in CURVES[name]}
        elif facts is not None:  # old pickles have more facts about the training
            kept[name] = {k: facts[k] for k in (TRAINING if name == "training" else facts)}
    return kept


def _read_kept(name: str, written: dict[str, Any]) -> Any:
    """A curve, the source or the facts of the fit as its attribute."""
    if name in CURVES:
        return _read_curve(name, written)
    if name == "training":
        need(written.keys() == TRAINING.keys(), "other facts of the fit")
        need(all(type(written[fact]) is kind for fact, kind in TRAINING.items()), "odd facts")
        need(0 <= written["rows"] < 2**63, "a number out of range")
        return written
    need(written.keys() <= SOURCE.keys(), "a source of something else")
    for key, value in written.items():
        need(type(value) is SOURCE[key], "a source of another kind")
        need(all(type(word) is str for word in value), "a source that is no text")
    return written


def _read_curve(name: str, written: dict[str, Any]) -> Bunch:
    """A curve as its attribute."""
    columns = CURVES[name]
    need(written.keys() == columns.keys(), "a curve of something else")
    lengths = set()
    for column, kind in columns.items():
        values = written[column]
        need(type(values) is list and len(values) > 0, "a curve without points")
        need(all(type(value) is kind for value in values), "a curve of other numbers")
        most = 2**31 if kind is int else inf
        numbers = [value for value in values if value == value or column not in ERRORS]
        need(all(0 <= value < most for value in numbers), "a number out of range")
        lengths.add(len(values))
    need(len(lengths) == 1, "a curve of uneven columns")
    first = written[next(iter(columns))]
    need(all(a <= b for a, b in pairwise(first)), "a curve that goes back")
    kinds = {int: np.int64, float: np.float64}
    return Bunch(**{c: np.array(written[c], kinds[kind]) for c, kind in columns.items()})


def _kind_of(classes: np.ndarray) -> str:
    """How the header names the dtype of class labels: "str" and "object" hold strings."""
    if classes.dtype.kind in "biuf" and classes.itemsize <= 8:
        return classes.dtype.newbyteorder("=").name
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise ValueError(
            f"classes of dtype {classes.dtype} cannot be saved: only numbers and "
            "strings; pickle the estimator instead"
        )
    return "str" if classes.dtype.kind == "U" else "object"


def _read_classes(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """Class labels [C], from the header or an array; None of a regression."""
    if "classes" not in header:
        return arrays.get("classes")
    labels, kind = header["classes"], header["classes_dtype"]
    need("classes" not in arrays and kind in ("object", "str"), "classes in two places")
    need(all(isinstance(label, str) for label in labels), "classes of no strings")
    fits = "boosting" in header or len(labels) == arrays["leaf_sums"].shape[1]
    need(fits, "classes that do not fit the leaf table")
    need(kind == "object" or len(labels) * max(map(len, labels)) <= MAX_LABELS, "a label too long")
    return np.array(labels, dtype=object if kind == "object" else np.str_)


def _read_outputs(described: list[Any]) -> tuple[np.ndarray, ...]:
    """Class labels of several outputs, each described by its dtype and a list."""
    outputs = []
    for entry in described:
        need(type(entry) is list and len(entry) == 2, "outputs of no kind")
        kind, labels = entry
        need(type(labels) is list, "outputs of no kind")
        need(kind in ("object", "str") or np.dtype(kind).kind in "biuf", "outputs of no kind")
        if kind in ("object", "str"):
            need(all(isinstance(label, str) for label in labels), "classes of no strings")
            need(len(labels) * max(map(len, labels), default=0) <= MAX_LABELS, "a label too long")
        else:
            need(all(type(label) in (bool, int, float) for label in labels), "no labels")
        outputs.append(np.array(labels, dtype=kind))
    return tuple(outputs)


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
    n_leaves = n_nodes - len(splits)
    # counted as they lie: unpacked, a bit takes eight bytes
    need(n_leaves > 0 and len(bits) == -(-n_nodes // 8), "bits that do not fit")
    need(int(np.bitwise_count(bits).sum()) == n_leaves, "splits that do not fit")
    need(sums.size > 0 and n_leaves == len(arrays.get("leaves", sums)), "leaves that do not fit")
    need(not is_leaf(splits).any(), "a split that is a leaf")
    rows = arrays["leaves"] if "leaves" in arrays else np.arange(n_leaves)
    need(bool(((rows >= 0) & (rows < len(sums))).all()), "a leaf outside the leaf table")
    leaf = np.unpackbits(bits, count=n_nodes).astype(bool)
    nodes = np.empty(n_nodes, np.uint64)
    nodes[~leaf], nodes[leaf] = splits, rows.astype(np.uint64) + np.uint64(LEAF_WORD)
    if "leaf_weights" in arrays:
        weights = arrays["leaf_weights"]
        need(weights.shape == sums.shape[:1], "leaf weights that do not fit")
        return nodes, np.column_stack([_as_int64(weights), _as_int64(sums)])
    return nodes, _as_int64(sums)


def _as_int64(sums: np.ndarray) -> np.ndarray:
    need(sums.dtype != np.uint64 or int(sums.max()) < 2**63, "a sum out of range")
    return sums.astype(np.int64)


def _edges(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> BinEdges:
    """The bins of a file; that its categories fit them is not checked yet."""
    categories = {}
    for key, values in header.get("categories", {}).items():
        need(re.fullmatch(r"0|[1-9]\d{0,8}", key, re.ASCII) is not None, "categories of no feature")
        need(type(values) is list, "categories that are no list")
        categories[int(key)] = tuple(values)
    return BinEdges(arrays["edge_values"], arrays["edge_offsets"], arrays["edge_kinds"], categories)


def _forest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Forest:
    """The forest of a file, not yet checked but for what making it needs."""
    offsets, classes = arrays["tree_offsets"], _read_classes(header, arrays)
    check_offsets(offsets, int(offsets[-1]), "tree_offsets")
    counts = classes is not None and "boosting" not in header
    need(("leaf_weights" in arrays) != counts, "leaf weights beside classes")
    nodes, sums = _unpacked(arrays, int(offsets[-1]))
    votes = header.get("votes", header["parameters"].get("voting") == "hard")  # in earlier files
    return Forest(
        nodes=nodes,
        tree_offsets=offsets,
        leaf_sums=sums,
        edges=_edges(header, arrays),
        coding=_coding(header, arrays, classes),
        seed=header["seed"],
        **{name: arrays.get(name) for name in OPTIONAL},  # type: ignore[arg-type]
        sets=arrays.get("sets", np.zeros(0, np.uint64)),
        oblique=header.get("oblique", False),
        combine=header.get("combine", "votes" if votes else "mean"),
    )


def _coding(
    header: dict[str, Any], arrays: dict[str, np.ndarray], classes: np.ndarray | None
) -> TargetCoding:
    if "boosting" in header:
        return _boosted_coding(header["boosting"], arrays, classes)
    need(not any(name in arrays for name in OF_BOOSTING), "boosting without its header")
    outputs = _read_outputs(header.get("outputs", []))
    return TargetCoding(classes, arrays["centre"], header["scale"], outputs)


def _with_means(forest: Forest, means: np.ndarray) -> Forest:
    """The forest with its leaf values as earlier files hold them: means of the second channel."""
    need(forest.leaf_values is None, "values and means of leaves")
    need(forest.leaf_sums.shape[1] == 2, "means of leaves beside several outputs or classes")
    need(means.shape == (len(forest.leaf_sums),), "means of leaves that do not fit")
    need(bool(np.isfinite(means).all()), "a mean of a leaf that is no finite number")
    return replace(forest, leaf_values=forest.coding.with_means(forest.leaf_sums, means))


def _boosted_coding(
    header: dict[str, Any], arrays: dict[str, np.ndarray], classes: np.ndarray | None
) -> BoostedCoding:
    """The coding of a file; that its arrays fit the trees is not checked yet."""
    need(header.keys() - {SCORED_BY} == BOOSTING.keys(), "boosting of something else")
    types = BOOSTING | {SCORED_BY: str}
    need(all(type(v) is types[name] for name, v in header.items()), "boosting of other types")
    need(("baseline" in arrays) and ("units" in arrays), "boosting without its arrays")
    name, quantile = header["loss"], header["quantile"]
    need(name in NUMBERS or name == "log_loss", f"an unknown loss {name!r:.80}")
    need((name == "log_loss") == (classes is not None), "classes and loss disagree")
    need(0 <= quantile <= 1, "a quantile out of range")
    loss = Loss.of(name, quantile, 0 if classes is None else len(classes))
    return BoostedCoding(
        classes, np.zeros(1), 1.0, loss=loss, baseline=arrays["baseline"], units=arrays["units"],
        l2=header["l2"],
    )  # fmt: skip


def _estimator(header: dict[str, Any], arrays: dict[str, np.ndarray], forest: Forest) -> Any:
    """A fitted estimator of a checked forest."""
    name, coding = header["estimator"], forest.coding
    need(name in estimators.__all__, f"an unknown estimator {name!r:.80}")
    estimator = _made(name, header["parameters"])
    task = "classification" if name.endswith("Classifier") else "regression"
    is_classes = coding.classes is not None or len(coding.several) > 0
    need(is_classes == (task == "classification"), "classes and estimator disagree")
    need(("boosting" in header) == hasattr(estimator, "max_iter"), "boosting amiss")
    if "boosting" in header:
        _set_scores(estimator, header, arrays)
    else:
        split = estimator._settings(forest.edges.n_features).categorical_split
        forest = replace(forest, multiway=split == "multiway" and len(forest.sets) > 0)
    need(header["criterion"] in CriterionNames(task), "an unknown criterion")
    single = name.startswith("DecisionTree")
    need(forest.n_trees == 1 or not single, "a tree of many trees")
    estimator.n_features_in_ = forest.edges.n_features
    if (names := header.get("feature_names")) is not None:
        need(len(names) == forest.edges.n_features, "feature names that do not fit")
        need(all(isinstance(n, str) for n in names), "feature names that are no strings")
        need(len({*names}) == len(names), "a feature name that comes twice")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if "oob_score" in header:
        estimator.oob_score_ = header["oob_score"]
    if (importances := arrays.get("unbiased_importances")) is not None:
        need("unbiased_importances" in header["parameters"], "importances of no forest")
        need(importances.shape == (forest.edges.n_features,), "importances that do not fit")
        need(not np.isinf(importances).any(), "an importance that is no number")
        estimator._unbiased_importances_ = importances
    need(("offset" in header) == (name == "IsolationForest"), "an offset amiss")
    if "offset" in header:
        estimator.offset_ = header["offset"]
    for name in header.keys() & KEPT.keys():
        setattr(estimator, KEPT[name], _read_kept(name, header[name]))
    criterion = CRITERIA[header["criterion"]]
    need(criterion.medians == (forest.node_values is not None), "medians of nodes amiss")
    estimator._keep(forest)
    estimator.criterion_ = criterion.name
    need(("pruning_curve" in header) == ("ccp_alpha" in header), "an alpha without its curve")
    if "ccp_alpha" in header:
        need(single, "a pruning curve of many trees")
        on_curve = header["ccp_alpha"] in estimator.pruning_curve_.ccp_alphas
        need(on_curve, "an alpha not on its curve")
        estimator.ccp_alpha_ = header["ccp_alpha"]
    return estimator


def _set_scores(estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Set the attributes of a boosted fit that the trees do not have."""
    for name in ("train_score", "validation_score"):
        # infinite ones are losses beyond float64, and a user's scorer may give NaN
        setattr(estimator, f"{name}_", arrays.get(name, np.zeros(0)))
    if SCORED_BY in header["boosting"]:
        estimator.scored_by_ = header["boosting"][SCORED_BY]
    estimator.do_early_stopping_ = header["boosting"]["stops"]


def _set_rounds(estimator: Any, forest: Forest, errors: np.ndarray | None) -> None:
    """Set the weights and errors of the trees of AdaBoost."""
    boosted = hasattr(estimator, "_keep_rounds")
    need(boosted == (forest.tree_weights is not None), "weights of trees amiss")
    need(boosted == (errors is not None), "errors of trees amiss")
    if errors is None or forest.tree_weights is None:
        return
    need(forest.combine == estimator._combine(), "trees that combine in another way")
    need(forest.n_trees <= estimator.n_estimators, "more trees than rounds")
    need(errors.shape == (forest.n_trees,), "errors of trees that do not fit")
    need(bool(((errors >= 0) & (errors <= 1)).all()), "an error of a tree out of range")
    estimator._keep_rounds(forest.tree_weights, errors)


def _keeps_draws(estimator: Any) -> bool:
    """Whether the file keeps how rows were drawn, which standard errors, quantiles and importances
    by rows out of bag need. Files of bags do not keep it."""
    forests = ForestClassifier | ForestRegressor
    return isinstance(estimator, forests) and not isinstance(estimator, Bagging)


def _rows_of(estimator: Any) -> dict[str, np.ndarray]:
    """The arrays of what is kept of training rows."""
    arrays: dict[str, np.ndarray] = {}
    sampling = getattr(estimator, "_sampling_", None)
    if _keeps_draws(estimator) and sampling is not None and not sampling.distinct:
        arrays |= {} if sampling.weights is None else {"draw_weights": sampling.weights}
    if isinstance(estimator, QuantileForest):
        rows = estimator._rows_
        arrays |= {"row_codes": np.ascontiguousarray(rows.codes), "row_targets": rows.y}
    if (calibration := getattr(estimator, "_calibration_", None)) is not None:
        arrays |= {"scores": calibration.scores, "score_offsets": calibration.offset}
    return arrays


def _set_rows(
    estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray], forest: Forest
) -> None:
    """Give an estimator what a file keeps of training rows, which must fit the forest."""
    wants_rows, draws = isinstance(estimator, QuantileForest), {"draws", "draw_weights"}
    need(_keeps_draws(estimator) or not draws & {*header, *arrays}, "draws amiss")
    need("draws" in header or "draw_weights" not in arrays, "weights without draws")
    if "draws" in header:
        estimator._sampling_ = _sampling(header["draws"], arrays.get("draw_weights"))
    need({"row_codes", "row_targets"} <= arrays.keys() or not wants_rows, "training rows amiss")
    need(wants_rows or not {"row_codes", "row_targets"} & arrays.keys(), "rows of another model")
    if wants_rows:
        need("draws" in header, "training rows without draws")
        estimator._rows_ = _rows(arrays, estimator._sampling_, forest)
    need(("scores" in arrays) == ("score_offsets" in arrays), "scores amiss")
    if "scores" in arrays:
        estimator._calibration_ = _calibration(arrays, forest)


def _sampling(draws: dict[str, Any], weights: np.ndarray | None) -> Sampling:
    need(draws.keys() == {"n_rows", "n_draws"}, "draws of something else")
    need(all(type(n) is int for n in draws.values()), "draws that are no numbers")
    need(0 < draws["n_rows"] <= MAX_ROWS, "a number of rows out of range")
    need(0 <= draws["n_draws"] <= MAX_TOTAL_WEIGHT, "a number of draws out of range")
    if weights is not None:
        need(weights.shape == (draws["n_rows"],), "weights that do not fit")
        need(bool((weights >= 0).all()), "a negative weight")
        need(0 < weights.sum(dtype=np.int64) <= MAX_TOTAL_WEIGHT, "weights out of range")
    return Sampling(draws["n_rows"], draws["n_draws"], weights)


def _rows(arrays: dict[str, np.ndarray], sampling: Sampling, forest: Forest) -> TrainingRows:
    codes, y, edges = arrays["row_codes"], arrays["row_targets"], forest.edges
    need(codes.shape == (sampling.n_rows, edges.n_features), "codes that do not fit")
    need(codes.dtype == edges.code_dtype, "codes of another type")
    need(bool((codes <= edges.missing_code).all()), "a code out of range")
    need(y.shape == (sampling.n_rows, forest.coding.n_outputs), "targets that do not fit")
    need(bool(np.isfinite(y).all()), "a target that is no finite number")
    return TrainingRows(codes, y, sampling)


def _calibration(arrays: dict[str, np.ndarray], forest: Forest) -> Calibration:
    scores, offset = arrays["scores"], arrays["score_offsets"]
    need(len(scores) == forest.coding.n_outputs and scores.shape[1] > 0, "scores that do not fit")
    need(offset.shape == (len(scores),), "offsets that do not fit")
    need(bool((scores >= 0).all() and (scores[:, 1:] >= scores[:, :-1]).all()), "scores amiss")
    need(bool((offset >= 0).all() and np.isfinite(offset).all()), "an offset amiss")
    return Calibration(scores, offset)
