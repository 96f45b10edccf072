"""Model files: a fitted estimator as plain arrays (safetensors, see `ARRAYS`) and a JSON header.

The header has the categories of features, {"3": ["a", "b"]}, curves of errors, {column: [...]},
the command line's facts about the training data, {"target": "price", "decimal": ","}, and those of
every fit, {"rows": 100, "version": "0.1.0"}; see `HEADER`.

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
from gpuforest.backends.registry import get_host_backend
from gpuforest.common.dtypes import MAX_ROWS, MAX_TOTAL_WEIGHT
from gpuforest.common.errors import ModelFormatError, damaged, need
from gpuforest.core import criteria
from gpuforest.core.bins import BinEdges, TargetStatistic
from gpuforest.core.forest import Forest, check_forest, check_offsets
from gpuforest.core.nodes import LEAF_MASK, LEAF_WORD, is_leaf
from gpuforest.core.rules import Sampling
from gpuforest.core.target import TargetCoding
from gpuforest.estimators.bagging import Bagging
from gpuforest.estimators.ensembles import ForestClassifier, ForestRegressor
from gpuforest.estimators.quantile_forests import QuantileForest
from gpuforest.estimators.survival import SurvivalForest, are_survival
from gpuforest.explain import paths, quantile_forest, uncertainty
from gpuforest.explain.model_facts import WHERE_IT_RUNS, scorer_name
from gpuforest.explain.survival import steps_of
from gpuforest.export.container import Arrays, Layout, parse_object, read, write
from gpuforest.growing.boosted import BoostedCoding
from gpuforest.kernels.gradients import losses

Header = dict[str, Any]
KEEP_ROWS = (QuantileForest, SurvivalForest)  # what predicts from its training rows
INTEGERS = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")
# every array that a file may hold: its dtypes; its dimensions (T trees, V rows of the leaf table,
# F features, K outputs, N training rows, "." others); and which values are right, where the checks
# of a forest do not say so. Leaves, weights and sums are in the smallest integers
ARRAYS: Layout = {
    "is_leaf": (("U8",), ".", None),  # bits: which of all nodes are leaves
    "splits": (("U64",), ".", None),  # the packed nodes that are splits
    "leaves": (INTEGERS, ".", None),  # each leaf's row of the leaf table; absent: one by one
    "tree_offsets": (("I64",), ".", None),
    "sets": (("U64",), ".", None),
    "leaf_weights": (INTEGERS, ".", None),  # of regression
    "leaf_sums": (INTEGERS, "..", None),  # class sums, or moments
    "leaf_impurity": (("F64",), ".", None),  # of a regression tree
    "leaf_values": (("F64",), "..", None),  # see `Forest`
    "leaf_means": (("F64",), "V", lambda means: np.isfinite(means).all()),  # see `_with_means`
    "node_values": (("F64",), "..", None),  # of trees grown by absolute error
    "node_errors": (("F64",), ".", None),
    "tree_weights": (("F64",), ".", None),  # of AdaBoost, what each tree counts
    "tree_errors": (("F64",), "T", lambda errors: ((errors >= 0) & (errors <= 1)).all()),
    "unbiased_importances": (("F64",), "F", lambda values: not np.isinf(values).any()),
    "edge_values": (("F64",), ".", None),
    "edge_offsets": (("I64",), ".", None),
    "edge_kinds": (("U8",), ".", None),
    "centre": (("F64",), ".", None),  # of regression
    "classes": (("BOOL", *INTEGERS, "F16", "F32", "F64"), ".", None),  # strings: in the header
    "baseline": (("F64",), ".", None),  # of gradient boosting, see growing/boosted.py
    "units": (("F64",), "..", None),
    "train_score": (("F64",), ".", None),  # infinite: a loss beyond float64; NaN: a user's score
    "validation_score": (("F64",), ".", None),
    # the weights that training rows were drawn with, if they had any
    "draw_weights": (("I32",), "N", lambda weights: (weights >= 0).all()),
    "draw_groups": (("I32",), "N", lambda numbers: (numbers >= 0).all()),  # whole groups are drawn
    "row_codes": (("U8", "U16"), "N.", None),  # of quantile and survival forests
    "row_targets": (("F64",), "N.", lambda targets: np.isfinite(targets).all()),
    # see `conformal.Calibration`
    "scores": (("F64",), "K.", lambda a: a.size and (a >= 0).all() and (np.sort(a) == a).all()),
    "score_offsets": (("F64",), "K", lambda at: (at >= 0).all() and np.isfinite(at).all()),
}
OPTIONAL = ("leaf_impurity", "leaf_values", "node_values", "node_errors", "tree_weights")
DRAWN_BY = ("draw_weights", "draw_groups")
SCORES = ("train_score", "validation_score")
# curves of errors are attributes, without the "_" at their end; their first column ascends
CURVES: dict[str, dict[str, list[type]]] = {
    "oob_curve": {"n_estimators": [int], "error": [float]},
    "oob_max_features": {"max_features": [int], "error": [float]},
    "oob_parameters": {"max_features": [int], "min_samples_leaf": [int], "error": [float]},
    "pruning_curve": {
        "ccp_alphas": [float], "n_leaves": [int], "errors": [float], "std_errors": [float]
    },
}  # fmt: skip
ERRORS = ("error", "errors", "std_errors")  # NaN where there are no rows, as out of few trees' bags
TRAINING = {"rows": int, "version": str}  # facts about every fit
# the forms of what a header holds: a type, a list of one form, or a dict, in which names that end
# with "?" may be absent
HEADER: dict[str, Any] = {
    **dict.fromkeys(("estimator", "criterion", "classes_dtype?", "combine?"), str),
    **dict.fromkeys(("scale", "oob_score?", "ccp_alpha?", "offset?"), float),
    **{name: [str] for name in ("feature_names?", "classes?")},
    **dict.fromkeys(("votes?", "oblique?"), bool),
    **{f"{name}?": columns for name, columns in CURVES.items()},
    "seed": int,
    "parameters": dict,
    "outputs?": list,
    "categories?": dict,
    "statistics?": dict,  # the categories, and the numbers that stand for them
    "draws?": {"n_rows": int, "n_draws": int},
    "by_blocks?": bool,  # rows were judged by trees that no file holds
    "training?": TRAINING,
    # facts about the training data that the command line knows
    "source?": {
        **dict.fromkeys(
            ("target?", "event?", "decimal?", "thousands?", "units?", "date_format?"), str
        ),
        **{name: [str] for name in ("missing?", "dates?")},
        "row_hashes?": [int],  # by which rows are known again, see `tools.report.rows`
    },
    # "stops" says whether rounds end early. Where the scores are those of a function, which no
    # file holds, its name is there as well
    "boosting?": {"loss": str, "quantile": float, "l2": float, "stops": bool, "scored_by?": str},
}
# attributes of estimators by their name in the header
KEPT = {**{name: f"{name}_" for name in (*CURVES, "source")}, "training": "_training_"}
NUMBERS_KEPT = {"oob_score", "offset", "ccp_alpha"}
NEEDED = (
    *("is_leaf", "splits", "tree_offsets", "leaf_sums", "centre"),
    *("edge_values", "edge_offsets", "edge_kinds"),
)
NESTED = ("DecisionTreeClassifier", "DecisionTreeRegressor")  # as parameters of others
CHECKED = 2**19  # training rows and trees of a survival forest whose risks are checked at once
MAX_LABELS = 2**28  # letters: an array of strings has room for the longest in each item


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`, which is replaced as a whole or not at all.

    The file has no facts about single training rows (out-of-bag predictions), except the weights
    and groups that forests drew rows by, what quantile forests predict from, and 64 hashes of rows
    that `gpuforest train` puts in. Nor does it say
    where the estimator ran (`backend`, `n_jobs`, `memory_limit`). A splitter as `ccp_cv`, and a
    function as `scoring`, are the default when the file is read.

    Raises
    ------
    ValueError : labels that are neither numbers nor strings, too many names, or a subclass
    OSError : the file cannot be written; what was there before is still there
    """
    forest, header = estimator.forest_, _header(estimator)
    coding, calibration = forest.coding, getattr(estimator, "_calibration_", None)
    arrays = {
        **_packed(forest),
        "tree_offsets": forest.tree_offsets,
        "sets": forest.sets if len(forest.sets) else None,
        "edge_values": forest.edges.values,
        "edge_offsets": forest.edges.offsets,
        "edge_kinds": forest.edges.kinds,
        "centre": coding.centre,
        "classes": None if "classes" in header else coding.classes,
        **{name: getattr(forest, name) for name in OPTIONAL},
        "unbiased_importances": getattr(estimator, "_unbiased_importances_", None),
    }
    if forest.baseline is not None:
        scores = {name: getattr(estimator, f"{name}_") for name in SCORES}
        arrays |= {name: values for name, values in scores.items() if len(values)}
        arrays |= {"baseline": forest.baseline, "units": coding.units}
    if forest.tree_weights is not None:
        arrays["tree_errors"] = estimator.estimator_errors_[: forest.n_trees]
    if (sampling := _kept_sampling(estimator)) is not None:
        arrays |= {"draw_weights": sampling.weights, "draw_groups": sampling.groups}
    if isinstance(estimator, KEEP_ROWS):
        rows = estimator._rows_
        arrays |= {"row_codes": np.ascontiguousarray(rows.codes), "row_targets": rows.y}
    if calibration is not None:
        arrays |= {"scores": calibration.scores, "score_offsets": calibration.offset}
    present = {name: array for name, array in arrays.items() if array is not None}
    write(Path(path), json.dumps(header), present)


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
        for name in NEEDED:
            need(name in arrays, f"no array {name!r}")
        _check_form("header", header, HEADER)
        forest = _forest(header, arrays)
        check_forest(forest)
        _check_arrays(header, arrays, forest)
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


def _check_form(name: str, value: Any, form: Any) -> None:
    """Check that a value of a header has its form, see `HEADER`."""
    kind = form if isinstance(form, type) else type(form)
    need(type(value) is kind, f"{name} of another type")
    if isinstance(form, list):
        for item in value:
            _check_form(name, item, form[0])
    elif isinstance(form, dict):
        for key in form:
            need(key.endswith("?") or key in value, f"no header key {key!r}")
        forms = {key.removesuffix("?"): item for key, item in form.items()}
        for key, item in value.items():
            need(key in forms, f"an unknown header key {key!r:.80}")
            _check_form(key, item, forms[key])


def _check_arrays(header: Header, arrays: Arrays, forest: Forest) -> None:
    """Check shapes and values of the arrays that are no part of the forest."""
    sizes = {
        "T": forest.n_trees, "V": len(forest.leaf_sums), "F": forest.edges.n_features,
        "K": forest.coding.n_outputs, "N": header.get("draws", {"n_rows": -1})["n_rows"],
    }  # fmt: skip
    for name, array in arrays.items():
        _, letters, is_right = ARRAYS[name]
        for letter, n in zip(letters, array.shape, strict=True):
            need(sizes.get(letter, n) == n, f"{name} that does not fit")
        need(is_right is None or bool(is_right(array)), f"{name} out of range")


def _plain(value: Any) -> Any:
    """A parameter as JSON has it; a dict, whose keys may be numbers, as a list of pairs."""
    if hasattr(value, "get_params"):
        _check_class(value)
        return {"tree": type(value).__name__, "parameters": _parameters(value)}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple) or (hasattr(value, "ndim") and value.ndim > 0):
        return [_plain(item) for item in (value.tolist() if hasattr(value, "tolist") else value)]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if callable(value):
        return True  # a way to score, which no file can hold
    return value.item() if isinstance(value, np.generic) else value


def _parameter(value: Any) -> Any:
    """The inverse of `_plain`."""
    if isinstance(value, list):
        return [_parameter(item) for item in value]
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


def _header(estimator: Any) -> Header:
    _check_class(estimator)
    forest, coding, parameters = estimator.forest_, estimator.forest_.coding, _parameters(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    categories = {str(f): list(values) for f, values in forest.edges.categories.items()}
    statistics = {str(f): [*map(list, s)] for f, s in forest.edges.statistics.items()}
    # a file without it means votes where this parameter says so, which may be newer than the trees
    is_usual = forest.combine == "mean" and parameters.get("voting") != "hard"
    header = {
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "seed": estimator.seed_,
        "criterion": estimator.criterion_,
        "scale": coding.scale,
        "feature_names": None if names is None else names.tolist(),
        "oob_score": getattr(estimator, "oob_score_", None),
        "offset": getattr(estimator, "offset_", None),
        "categories": categories or None,
        "statistics": statistics or None,
        "ccp_alpha": estimator.ccp_alpha_ if hasattr(estimator, "pruning_curve_") else None,
        **{name: _facts(name, getattr(estimator, kept, None)) for name, kept in KEPT.items()},
        "combine": None if is_usual else forest.combine,
        "oblique": forest.oblique or None,
    }
    if coding.several:
        header["outputs"] = [[_kind_of(labels), labels.tolist()] for labels in coding.several]
    elif coding.classes is not None and (kind := _kind_of(coding.classes)) in ("object", "str"):
        header |= {"classes": coding.classes.tolist(), "classes_dtype": kind}
    if forest.baseline is not None:
        boosting = {"loss": coding.loss.name, "quantile": coding.loss.quantile, "l2": coding.l2}
        header["boosting"] = boosting | {"stops": bool(estimator.do_early_stopping_)}
        if (scorer := scorer_name(estimator)) is not None:
            header["boosting"]["scored_by"] = scorer
    if (sampling := _kept_sampling(estimator)) is not None:
        header["draws"] = {"n_rows": sampling.n_rows, "n_draws": sampling.n_draws}
    if hasattr(estimator, "_judges_"):
        header["by_blocks"] = True
    return {name: value for name, value in header.items() if value is not None}


def _facts(name: str, facts: Any) -> dict[str, Any] | None:
    """An attribute of `KEPT` as the header has it; old pickles have more facts about training."""
    names: Any = {**CURVES, "training": TRAINING}.get(name, facts)
    return None if facts is None else {fact: _plain(facts[fact]) for fact in names}


def _read_curve(name: str, columns: dict[str, list[Any]]) -> Bunch:
    """A curve of a header as its attribute."""
    lengths = {len(values) for values in columns.values()}
    need(len(lengths) == 1 and 0 not in lengths, "a curve of uneven columns, or without points")
    arrays = {}
    for column, (kind,) in CURVES[name].items():
        values = columns[column]
        numbers = [value for value in values if value == value or column not in ERRORS]
        most = 2**31 if kind is int else inf
        least = -inf if (name, column) == ("oob_parameters", "error") else 0  # extrapolated
        need(all(least <= value < most for value in numbers), "a number out of range")
        arrays[column] = np.array(values, np.int64 if kind is int else np.float64)
    first = columns[next(iter(arrays))]
    need(all(a <= b for a, b in pairwise(first)), "a curve that goes back")
    return Bunch(**arrays)


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


def _read_classes(header: Header, arrays: Arrays) -> np.ndarray | None:
    """Class labels [C], from the header or an array; None of a regression."""
    if "classes" not in header:
        return arrays.get("classes")
    labels, kind = header["classes"], header["classes_dtype"]
    need("classes" not in arrays and kind in ("object", "str"), "classes in two places")
    fits = "boosting" in header or len(labels) == arrays["leaf_sums"].shape[1]
    need(fits, "classes that do not fit the leaf table")
    return _labels(kind, labels)


def _labels(kind: Any, labels: Any) -> np.ndarray:
    """Class labels of one output, from the name of their dtype and a list."""
    need(type(kind) is str and type(labels) is list, "outputs of no kind")
    if kind not in ("object", "str"):
        need(np.dtype(kind).kind in "biuf", "outputs of no kind")
        need(all(type(label) in (bool, int, float) for label in labels), "no labels")
        return np.array(labels, dtype=kind)
    need(all(isinstance(label, str) for label in labels), "classes of no strings")
    longest = max(map(len, labels), default=0)
    need(kind == "object" or len(labels) * longest <= MAX_LABELS, "a label too long")
    return np.array(labels, dtype=kind)


def _smallest(sums: np.ndarray) -> np.ndarray:
    """The same integers in as few bytes each as hold them all."""
    low, high = int(sums.min()), int(sums.max())
    dtype = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    return sums.astype(dtype if dtype.kind in "iu" else np.int64)


def _packed(forest: Forest) -> Arrays:
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


def _unpacked(arrays: Arrays, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
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
        return nodes, np.column_stack([_as_int64(arrays["leaf_weights"]), _as_int64(sums)])
    return nodes, _as_int64(sums)


def _as_int64(sums: np.ndarray) -> np.ndarray:
    need(sums.dtype != np.uint64 or int(sums.max()) < 2**63, "a sum out of range")
    return sums.astype(np.int64)


def _edges(header: Header, arrays: Arrays) -> BinEdges:
    """The bins of a file; that its categories fit them is not checked yet."""
    categories, statistics = {}, {}
    for name in ("categories", "statistics"):
        for key, values in header.get(name, {}).items():
            is_number = re.fullmatch(r"0|[1-9]\d{0,8}", key, re.ASCII) is not None
            need(is_number, f"{name} of no feature")
            need(type(values) is list, f"{name} that are no list")
            if name == "categories":
                categories[int(key)] = tuple(values)
            else:
                statistics[int(key)] = TargetStatistic(*map(tuple, values))
    edges = arrays["edge_values"], arrays["edge_offsets"], arrays["edge_kinds"]
    return BinEdges(*edges, categories, statistics)


def _forest(header: Header, arrays: Arrays) -> Forest:
    """The forest of a file, not yet checked but for what making it needs."""
    offsets, classes = arrays["tree_offsets"], _read_classes(header, arrays)
    check_offsets(offsets, int(offsets[-1]), "tree_offsets")
    counts = classes is not None and "boosting" not in header
    need(("leaf_weights" in arrays) != counts, "leaf weights that do not fit the target")
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


def _coding(header: Header, arrays: Arrays, classes: np.ndarray | None) -> TargetCoding:
    """The coding of a file; that the arrays of boosting fit the trees is not checked yet."""
    if "boosting" not in header:
        need(not {"baseline", "units", *SCORES} & arrays.keys(), "boosting without its header")
        outputs = tuple(_labels(*described) for described in header.get("outputs", []))
        return TargetCoding(classes, arrays["centre"], header["scale"], outputs)
    name, quantile = header["boosting"]["loss"], header["boosting"]["quantile"]
    need(("baseline" in arrays) and ("units" in arrays), "boosting without its arrays")
    need(name in losses.NUMBERS or name == "log_loss", f"an unknown loss {name!r:.80}")
    need((name == "log_loss") == (classes is not None), "classes and loss disagree")
    need(0 <= quantile <= 1, "a quantile out of range")
    loss = losses.Loss.of(name, quantile, 0 if classes is None else len(classes))
    return BoostedCoding(
        classes, np.zeros(1), 1.0, loss=loss, baseline=arrays["baseline"], units=arrays["units"],
        l2=header["boosting"]["l2"],
    )  # fmt: skip


def _with_means(forest: Forest, means: np.ndarray) -> Forest:
    """The forest with its leaf values as earlier files hold them: means of the second channel."""
    need(forest.leaf_values is None, "values and means of leaves")
    need(forest.leaf_sums.shape[1] == 2, "means of leaves with several outputs or classes")
    return replace(forest, leaf_values=forest.coding.with_means(forest.leaf_sums, means))


def _estimator(header: Header, arrays: Arrays, forest: Forest) -> Any:
    """A fitted estimator of a checked forest."""
    name, coding = header["estimator"], forest.coding
    need(name in estimators.__all__, f"an unknown estimator {name!r:.80}")
    estimator = _made(name, header["parameters"])
    task = "classification" if name.endswith("Classifier") else "regression"
    is_classes = coding.classes is not None or len(coding.several) > 0
    need(is_classes == (task == "classification"), "classes and estimator disagree")
    need(("boosting" in header) == hasattr(estimator, "max_iter"), "boosting amiss")
    if "boosting" in header:
        for score in SCORES:
            setattr(estimator, f"{score}_", arrays.get(score, np.zeros(0)))
        if "scored_by" in header["boosting"]:
            estimator.scored_by_ = header["boosting"]["scored_by"]
        estimator.do_early_stopping_ = header["boosting"]["stops"]
    else:
        split = estimator._settings().categorical_split
        forest = replace(forest, multiway=split == "multiway" and len(forest.sets) > 0)
    chosen_for = "survival" if isinstance(estimator, SurvivalForest) else task
    need(header["criterion"] in criteria.CriterionNames(chosen_for), "an unknown criterion")
    single = name.startswith("DecisionTree")
    need(forest.n_trees == 1 or not single, "a tree of many trees")
    estimator.n_features_in_ = forest.edges.n_features
    if (names := header.get("feature_names")) is not None:
        need(len(names) == forest.edges.n_features, "feature names that do not fit")
        need(len({*names}) == len(names), "a feature name that comes twice")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if (importances := arrays.get("unbiased_importances")) is not None:
        need("unbiased_importances" in header["parameters"], "importances of no forest")
        estimator._unbiased_importances_ = importances
    need(("offset" in header) == (name == "IsolationForest"), "an offset amiss")
    for kept in header.keys() & KEPT.keys():
        facts = header[kept]
        setattr(estimator, KEPT[kept], _read_curve(kept, facts) if kept in CURVES else facts)
    need(0 <= header.get("training", {"rows": 0})["rows"] < 2**63, "a number out of range")
    criterion = criteria.CRITERIA[header["criterion"]]
    need(criterion.medians == (forest.node_values is not None), "medians of nodes amiss")
    estimator._keep(forest)
    estimator.criterion_ = criterion.name
    need(("pruning_curve" in header) == ("ccp_alpha" in header), "an alpha without its curve")
    if "ccp_alpha" in header:
        need(single, "a pruning curve of many trees")
        on_curve = header["ccp_alpha"] in estimator.pruning_curve_.ccp_alphas
        need(on_curve, "an alpha not on its curve")
    for number in header.keys() & NUMBERS_KEPT:
        setattr(estimator, f"{number}_", header[number])
    return estimator


def _set_rounds(estimator: Any, forest: Forest, errors: np.ndarray | None) -> None:
    """Set the weights and errors of the trees of AdaBoost."""
    boosted = hasattr(estimator, "_keep_rounds")
    need(boosted == (forest.tree_weights is not None), "weights of trees amiss")
    need(boosted == (errors is not None), "errors of trees amiss")
    if errors is None or forest.tree_weights is None:
        return
    need(forest.combine == estimator._combine(), "trees that combine in another way")
    need(forest.n_trees <= estimator.n_estimators, "more trees than rounds")
    estimator._keep_rounds(forest.tree_weights, errors)


def _keeps_draws(estimator: Any) -> bool:
    """Whether the file keeps how rows were drawn, which standard errors, quantiles and importances
    by rows out of bag need. Files of bags do not keep it."""
    forests = ForestClassifier | ForestRegressor | SurvivalForest
    return isinstance(estimator, forests) and not isinstance(estimator, Bagging)


def _kept_sampling(estimator: Any) -> Sampling | None:
    """How rows were drawn, where the file keeps it."""
    sampling: Sampling | None = getattr(estimator, "_sampling_", None)
    is_kept = sampling is not None and not sampling.distinct and _keeps_draws(estimator)
    return sampling if is_kept else None


def _set_rows(estimator: Any, header: Header, arrays: Arrays, forest: Forest) -> None:
    """Give an estimator what a file keeps of training rows, which must fit the forest."""
    of_draws = {*DRAWN_BY} & arrays.keys()
    need(_keeps_draws(estimator) or not ("draws" in header or of_draws), "draws amiss")
    need("draws" in header or not of_draws, "weights or groups without draws")
    if "draws" in header:
        estimator._sampling_ = _sampling(header["draws"], *map(arrays.get, DRAWN_BY))
    if header.get("by_blocks", False):
        need(isinstance(estimator, ForestClassifier | ForestRegressor), "blocks amiss")
        estimator._judges_ = None
    of_rows = {"row_codes", "row_targets"} & arrays.keys()
    need(len(of_rows) == 2 * isinstance(estimator, KEEP_ROWS), "training rows amiss")
    if of_rows:
        need("draws" in header, "training rows without draws")
        codes, edges = arrays["row_codes"], forest.edges
        need(codes.dtype == edges.code_dtype, "codes of another type")
        need(bool((codes <= edges.missing_code).all()), "a code out of range")
        targets, is_survival = arrays["row_targets"], isinstance(estimator, SurvivalForest)
        is_low = is_survival and not codes.shape[1]  # without codes there are risks, but no curves
        need(is_low or codes.shape[1] == edges.n_features, "row_codes that do not fit")
        n_targets = 2 if is_survival else forest.coding.n_outputs
        need(targets.shape[1] == n_targets, "row_targets that do not fit")
        fit = not is_survival or are_survival(targets, forest.coding.n_outputs)
        need(fit, "row_targets out of range")
        estimator._rows_ = quantile_forest.TrainingRows(codes, targets, estimator._sampling_)
        if is_survival and not is_low:
            # more trees would take seconds; they are checked before the first curves
            part = paths.some_trees(forest, 0, max(1, min(forest.n_trees, CHECKED // len(codes))))
            found = steps_of(part, estimator._rows_, get_host_backend())
            need(found.fit(part), "leaf_values that do not follow from the training rows")
    need(("scores" in arrays) == ("score_offsets" in arrays), "scores amiss")
    if "scores" in arrays:
        estimator._calibration_ = uncertainty.Calibration(arrays["scores"], arrays["score_offsets"])


def _sampling(
    draws: dict[str, int], weights: np.ndarray | None, groups: np.ndarray | None
) -> Sampling:
    need(0 < draws["n_rows"] <= MAX_ROWS, "a number of rows out of range")
    need(0 <= draws["n_draws"] <= MAX_TOTAL_WEIGHT, "a number of draws out of range")
    if weights is not None:
        need(0 < weights.sum(dtype=np.int64) <= MAX_TOTAL_WEIGHT, "weights out of range")
    sampling = Sampling(draws["n_rows"], draws["n_draws"], weights, groups=groups)
    if groups is not None:
        need(sampling.n_draws > 0 and groups.max() < sampling.n_rows, "groups out of range")
        need(bool(np.bincount(groups).all()), "a group without rows")
        need(sampling.most_weight <= MAX_TOTAL_WEIGHT, "groups too heavy")
    return sampling
