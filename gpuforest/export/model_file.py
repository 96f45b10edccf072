"""Model files: a fitted estimator as plain arrays (safetensors) and a JSON header.

    is_leaf        u8[M / 8]    bits: which of all nodes are leaves
    splits         u64[...]     the packed nodes that are none
    leaves         int[...]     each leaf's row of the leaf table; absent: one after another
    tree_offsets   i64[T + 1]
    leaf_weights   int[V]       of regression; as these all in the smallest integers that
    leaf_sums      int[V, C]    hold them: class sums, or moments
    leaf_impurity  f64[V]       of a regression tree
    leaf_values    f64[V, ...]  see `Forest`; or leaf_means f64[V]: see `_with_means`
    node_values    f64[M, K]    node_errors f64[M]: of trees grown by absolute error
    tree_weights   f64[T]       tree_errors f64[T]: of boosted trees, what each counts, and its
                                error in training
    unbiased_importances  f64[F], where a fit was asked for them
    edge_values    f64[E]       edge_offsets i64[F + 1], edge_kinds u8[F]
    centre         f64[K]       of regression
    classes        [C]          where they are numbers; strings are in the header

What is kept of training rows is in rows_file.py. The categories of features are in the header:
{"3": ["a", "b"]}.

Nothing in a file is ever executed, and nothing is believed: a file is checked as a whole
before an estimator is made of it, so that prediction cannot read out of bounds.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from gpuforest import estimators
from gpuforest.binning import BinEdges
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.criteria import CRITERIA, CriterionNames
from gpuforest.export import boosted_file, rows_file
from gpuforest.export.container import Layout, parse_object, read, write
from gpuforest.export.header import KEPT, kept_of, read_kept
from gpuforest.export.labels import kind_of, read_classes, read_outputs
from gpuforest.export.packing import packed, unpacked
from gpuforest.forest import Forest
from gpuforest.forest_check import check_forest, check_offsets
from gpuforest.inspection.model_facts import WHERE_IT_RUNS
from gpuforest.target import TargetCoding

INTEGERS = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
OPTIONAL = ("leaf_impurity", "leaf_values", "node_values", "node_errors", "tree_weights")
ARRAYS: Layout = {
    "is_leaf": (("U8",), 1),
    "splits": (("U64",), 1),
    "leaves": (INTEGERS, 1),
    "tree_offsets": (("I64",), 1),
    "leaf_weights": (INTEGERS, 1),
    "leaf_sums": (INTEGERS, 2),
    **dict.fromkeys(("edge_values", "centre", "node_errors"), (("F64",), 1)),
    **dict.fromkeys(("leaf_impurity", "leaf_means"), (("F64",), 1)),
    **dict.fromkeys(("tree_weights", "tree_errors", "unbiased_importances"), (("F64",), 1)),
    **dict.fromkeys(("leaf_values", "node_values"), (("F64",), 2)),
    "sets": (("U64",), 1),
    "edge_offsets": (("I64",), 1),
    "edge_kinds": (("U8",), 1),
    "classes": (("BOOL", *INTEGERS, "F16", "F32", "F64"), 1),
    **boosted_file.ARRAYS,
    **rows_file.ARRAYS,
}
HEADER = {
    "estimator": str,
    "parameters": dict,
    "seed": int,
    "criterion": str,
    "scale": float,
    "feature_names": list,
    "oob_score": float,
    "ccp_alpha": float,
    "offset": float,
    **dict.fromkeys(KEPT, dict),
    "classes": list,
    "classes_dtype": str,
    "votes": bool,
    "combine": str,
    "outputs": list,
    "categories": dict,
    "oblique": bool,
    "boosting": dict,
    **rows_file.HEADER,
}
NAMES = {"feature_names", "classes", "classes_dtype", "outputs", "categories"}
OF_LEAVES = {"leaves", "leaf_weights", "leaf_means"}
OF_SOME = {"oob_score", "sets", "votes", "combine", "ccp_alpha", "tree_errors", "oblique", "offset"}
OF_SOME |= {"unbiased_importances"}
OF_BOOSTING = {"boosting", *boosted_file.ARRAYS}
OF_ROWS = {*rows_file.HEADER, *rows_file.ARRAYS}
SOMETIMES = {*OPTIONAL, *OF_SOME, *KEPT, *OF_LEAVES, *NAMES, *OF_BOOSTING, *OF_ROWS}
NESTED = ("DecisionTreeClassifier", "DecisionTreeRegressor")  # as parameters of others


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
    draws, rows = rows_file.kept_rows(estimator)
    header |= draws
    arrays = {
        **rows,
        **packed(forest),
        "tree_offsets": forest.tree_offsets,
        "edge_values": forest.edges.values,
        "edge_offsets": forest.edges.offsets,
        "edge_kinds": forest.edges.kinds,
        "centre": forest.coding.centre,
    }
    if "classes" not in header and forest.coding.classes is not None:
        arrays["classes"] = forest.coding.classes
    if forest.baseline is not None:
        arrays |= boosted_file.arrays_of(estimator)
    for name in OPTIONAL:
        if (found := getattr(forest, name)) is not None:
            arrays[name] = found
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
        boosted_file.set_rounds(estimator, forest, arrays.get("tree_errors"))
        rows_file.set_rows(estimator, header, arrays, forest)
        return estimator
    except (OSError, MemoryError):
        raise
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from error
    except Exception as error:  # whatever damage does to code that trusts its data
        raise ModelFormatError(f"{path}: {damaged(f'{error!r:.200}')}") from error


def _check_names(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check that a file has all that it must have, nothing unknown, and the right types."""
    for kind, known, found in (("array", ARRAYS, arrays), ("header key", HEADER, header)):
        for name in known.keys() - SOMETIMES:
            need(name in found, f"no {kind} {name!r}")
        for name in found:
            need(name in known, f"an unknown {kind} {name!r:.80}")
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
    found = dict(pairs)
    need(len(found) == len(pairs), "a key that comes twice in a parameter")
    return found


def _parameters(estimator: Any) -> dict[str, Any]:
    given = estimator.get_params(deep=False).items()
    params = {name: value for name, value in given if name not in WHERE_IT_RUNS}
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
    known = set(kind._get_param_names()).difference(WHERE_IT_RUNS)
    need(parameters.keys() <= known, "an unknown parameter")
    made = kind(**{name: _parameter(value) for name, value in parameters.items()})
    made._validate_params()
    return made


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
    header |= kept_of(estimator)
    coding, combine = estimator.forest_.coding, estimator.forest_.combine
    # a file without it means votes where this parameter says so, which may be newer than the trees
    votes = header["parameters"].get("voting") == "hard"
    header |= {} if combine == "mean" and not votes else {"combine": combine}
    if estimator.forest_.oblique:
        header["oblique"] = True
    if coding.several:
        header["outputs"] = [[kind_of(labels), labels.tolist()] for labels in coding.several]
    elif coding.classes is not None and (kind := kind_of(coding.classes)) in ("object", "str"):
        header["classes"], header["classes_dtype"] = coding.classes.tolist(), kind
    if estimator.forest_.baseline is not None:
        header["boosting"] = boosted_file.header_of(estimator)
    return header


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
    offsets, classes = arrays["tree_offsets"], read_classes(header, arrays)
    check_offsets(offsets, int(offsets[-1]), "tree_offsets")
    counts = classes is not None and "boosting" not in header
    need(("leaf_weights" in arrays) != counts, "leaf weights beside classes")
    nodes, sums = unpacked(arrays, int(offsets[-1]))
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
        return boosted_file.read_coding(header, arrays, classes)
    need(not any(name in arrays for name in boosted_file.ARRAYS), "boosting without its header")
    outputs = read_outputs(header.get("outputs", []))
    return TargetCoding(classes, arrays["centre"], header["scale"], outputs)


def _with_means(forest: Forest, means: np.ndarray) -> Forest:
    """The forest with its leaf values as earlier files hold them: means of the second channel."""
    need(forest.leaf_values is None, "values and means of leaves")
    need(forest.leaf_sums.shape[1] == 2, "means of leaves beside several outputs or classes")
    need(means.shape == (len(forest.leaf_sums),), "means of leaves that do not fit")
    need(bool(np.isfinite(means).all()), "a mean of a leaf that is no finite number")
    return replace(forest, leaf_values=forest.coding.with_means(forest.leaf_sums, means))


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
        boosted_file.set_scores(estimator, header, arrays)
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
    if (found := arrays.get("unbiased_importances")) is not None:
        need("unbiased_importances" in header["parameters"], "importances of no forest")
        need(found.shape == (forest.edges.n_features,), "importances that do not fit")
        need(not np.isinf(found).any(), "an importance that is no number")
        estimator._unbiased_importances_ = found
    need(("offset" in header) == (name == "IsolationForest"), "an offset amiss")
    if "offset" in header:
        estimator.offset_ = header["offset"]
    for name in header.keys() & KEPT.keys():
        setattr(estimator, KEPT[name], read_kept(name, header[name]))
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
