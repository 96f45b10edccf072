"""Model files: a fitted estimator as plain arrays (safetensors, see `ARRAYS`) and a JSON header.

The header has the categories of features, {"3": ["a", "b"]}, curves of errors, {column: [...]},
the command line's facts about the training data, {"target": "price", "decimal": ","}, and those of
every fit, {"rows": 100, "version": "0.1.0"}; see `HEADER`.

Nothing in a file is ever executed, and nothing is believed: a file is checked as a whole
before an estimator is made of it, so that prediction cannot read out of bounds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from math import inf
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from gpuforest.common.errors import need
from gpuforest.core import bins, rules, target
from gpuforest.core.forest import Forest, check_forest, check_offsets
from gpuforest.core.model import Model, is_public
from gpuforest.core.nodes import LEAF_MASK, LEAF_WORD, is_leaf
from gpuforest.explain.effects import EffectRows
from gpuforest.explain.model_facts import WHERE_IT_RUNS, scorer_name
from gpuforest.export.container import Arrays, Layout, parse_object, pieces, read, write
from gpuforest.growing.boosted import BoostedCoding
from gpuforest.kernels.gradients import host_losses, losses, ranking

Header = dict[str, Any]
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
    # of boosting of survival, see kernels/gradients/host_losses.py
    "event_times": (("F64",), ".", lambda times: _ascend(times)),
    "baseline_hazard": (("F64",), ".", lambda rises: (rises >= 0).all()),
    "train_score": (("F64",), ".", None),  # infinite: a loss beyond float64; NaN: a user's score
    "validation_score": (("F64",), ".", None),
    # the weights that training rows were drawn with, if they had any
    "draw_weights": (("I32",), "N", lambda weights: (weights >= 0).all()),
    "draw_groups": (("I32",), "N", lambda numbers: (numbers >= 0).all()),  # whole groups are drawn
    "draw_classes": (INTEGERS, "N", lambda numbers: (numbers >= 0).all()),  # rows of each class are
    "draw_ids": (("I64", "U64"), "N", lambda ids: len(np.unique(ids)) == len(ids)),
    "priors": (("F64",), ".", None),  # see `TargetCoding`
    "row_codes": (("U8", "U16"), "N.", None),  # of quantile and survival forests
    "row_judged": (("U8", "U16"), ".N", None),  # a row for each feature with target statistics
    "row_targets": (("F64",), "N.", lambda targets: np.isfinite(targets).all()),  # of effects, too
    # see `conformal.Calibration`
    "scores": (("F64",), "K.", lambda a: a.size and (a >= 0).all() and (np.sort(a) == a).all()),
    "score_offsets": (("F64",), "K", lambda at: (at >= 0).all() and np.isfinite(at).all()),
}
EXPECTED = ("model_y", "model_t", "model_z")  # of effects
OPTIONAL = ("leaf_impurity", "leaf_values", "node_values", "node_errors", "tree_weights")
EDGES = ("values", "offsets", "kinds")
OF_EVENTS = ("event_times", "baseline_hazard")
DRAWN_BY = ("draw_weights", "draw_groups", "draw_classes", "draw_ids")
SCORES = ("train_score", "validation_score")
# curves of errors are attributes, without the "_" at their end; their first column ascends
CURVES: dict[str, dict[str, list[type]]] = {
    "oob_curve": {"n_estimators": [int], "error": [float]},
    "oob_max_features": {"max_features": [int], "error": [float]},
    "oob_parameters": {"max_features": [int], "min_samples_leaf": [int], "error": [float]},
    "oob_shrinkage": {"shrinkage": [float], "error": [float]},
    "pruning_curve": {
        "ccp_alphas": [float], "n_leaves": [int], "errors": [float], "std_errors": [float]
    },
}  # fmt: skip
ERRORS = ("error", "errors", "std_errors")  # NaN where there are no rows, as out of few trees' bags
TRAINING = {"rows": int, "version": str}  # facts about every fit
PROOF = {
    **dict.fromkeys(("version", "data", "parameters", "forest", "content"), str),
    **dict.fromkeys(("algorithm", "rows"), int),
}  # see `gpuforest.proof`
# the forms of what a header holds: a type, a list of one form, or a dict, in which names that end
# with "?" may be absent
HEADER: dict[str, Any] = {
    **dict.fromkeys(("estimator", "criterion", "classes_dtype?", "combine?", "altered?"), str),
    **dict.fromkeys(("scale", "oob_score?", "ccp_alpha?", "offset?", "shrinkage?"), float),
    **{name: [str] for name in ("feature_names?", "classes?")},
    **dict.fromkeys(("votes?", "oblique?"), bool),
    **{f"{name}?": columns for name, columns in CURVES.items()},
    "seed": int,
    "parameters": dict,
    "outputs?": list,
    "categories?": dict,
    "statistics?": dict,  # the categories, and the numbers that stand for them
    "draws?": {
        "n_rows": int,
        "n_draws": int,
        "of_classes?": [int],
        "parts?": [int],
        "rate?": float,
    },
    "by_blocks?": bool,  # rows were judged by trees that no file holds
    "training?": TRAINING,
    "proof?": PROOF,
    # facts about the training data that the command line knows
    "source?": {
        **dict.fromkeys(("treatment?", "instrument?", "weight?", "groups?", "time?"), str),
        **dict.fromkeys(
            ("target?", "event?", "decimal?", "thousands?", "units?", "date_format?"), str
        ),
        **{name: [str] for name in ("missing?", "dates?")},
        "row_hashes?": [int],  # by which rows are known again, see `tools.report.rows`
    },
    # "stops" says whether rounds end early. Where the scores are those of a function, which no
    # file holds, its name is there as well
    # A function as loss is not there either; its link is
    "boosting?": {
        "loss": str,
        "quantile": float,
        "l2": float,
        "stops": bool,
        "scored_by?": str,
        "power?": float,
        "quantiles?": [float],
        "link?": str,
        "outputs?": int,
        "offset?": bool,
        "vector?": bool,
        "spread?": float,
    },
}
# attributes of estimators by their name in the header
KEPT = {**{name: f"{name}_" for name in (*CURVES, "source", "proof")}, "training": "_training_"}
NUMBERS_KEPT = {"oob_score", "offset", "ccp_alpha"}
NEEDED = ("is_leaf", "splits", "tree_offsets", "leaf_sums", "centre", *(f"edge_{p}" for p in EDGES))
TEXT = ("object", "str")  # dtypes of labels that are strings
MOST_OUTPUTS = 2**20  # of boosting
MAX_LABELS = 2**28  # letters: an array of strings has room for the longest in each item


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to `path`, which is replaced as a whole or not at all.

    About single training rows the file has the weights, groups and ids that forests drew rows by,
    what quantile and survival forests predict from, and 64 hashes of rows of `gpuforest train`. It
    does not say where the estimator ran (`backend`, `n_jobs`, `memory_limit`). A splitter as
    `ccp_cv`, a function as `scoring` or `loss`, and an estimator or array as `model_y`, are the
    default when the file is read. Of effects the file has each row's outcome and treatment.

    Raises
    ------
    ValueError : labels that are neither numbers nor strings, too many names, or a subclass
    OSError : the file cannot be written; what was there before is still there
    """
    forest, facts = model.forest, model.facts
    coding: Any = forest.coding
    sampling: rules.Sampling | None = facts.get("_sampling_") if model.keeps_draws else None
    if sampling is not None and sampling.distinct and sampling.parts is None:
        sampling = None
    header = _header(model, sampling)
    arrays = {
        **_packed(forest),
        "tree_offsets": forest.tree_offsets,
        "sets": forest.sets if len(forest.sets) else None,
        **{f"edge_{part}": getattr(forest.edges, part) for part in EDGES},
        "centre": coding.centre,
        "classes": None if "classes" in header else coding.classes,
        "priors": coding.priors,
        **{name: getattr(forest, name) for name in OPTIONAL},
        "unbiased_importances": facts.get("_unbiased_importances_"),
    }
    if forest.baseline is not None:
        arrays |= {name: facts[f"{name}_"] for name in SCORES if len(facts[f"{name}_"])}
        arrays |= {"baseline": forest.baseline, "units": coding.units}
        arrays |= {name: facts.get(f"{name}_") for name in OF_EVENTS}
    if forest.tree_weights is not None:
        arrays["tree_errors"] = facts["estimator_errors_"][: forest.n_trees]
    if sampling is not None:
        arrays |= {"draw_weights": sampling.weights, "draw_groups": sampling.groups}
        arrays["draw_ids"] = sampling.ids
        if sampling.classes is not None:
            arrays["draw_classes"] = _smallest(sampling.classes)
    if (rows := facts.get("_rows_")) is not None:
        if isinstance(rows, EffectRows):
            arrays["row_targets"] = rows.values
        else:
            arrays |= {"row_codes": np.ascontiguousarray(rows.codes), "row_targets": rows.y}
            arrays["row_judged"] = np.stack([*rows.judged.values()]) if rows.judged else None
    if (calibration := facts.get("_calibration_")) is not None:
        arrays |= {"scores": calibration.scores, "score_offsets": calibration.offset}
    present = {name: array for name, array in arrays.items() if array is not None}
    if "proof" in header:
        header["proof"] = header["proof"] | {"content": content_digest(header, present)}
    write(Path(path), json.dumps(header), present)


def content_digest(header: Header, arrays: Arrays) -> str:
    """SHA-256 of all that a file holds, except this digest itself in the record of its proof."""
    text = json.dumps(header | {"proof": header["proof"] | {"content": ""}}, sort_keys=True)
    digest = hashlib.sha256()
    for piece in pieces(text, arrays):
        digest.update(piece)
    return digest.hexdigest()


def parameters_digest(model: Model) -> str:
    """SHA-256 of the estimator's class, its seed, and the parameters that a file holds."""
    seed = model.facts["seed_"]
    facts = {"estimator": model.kind, "seed": seed, **_parameters(model.parameters, seed)}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def read_model(path: Path) -> tuple[Header, Arrays, Forest]:
    """The header, the arrays and the checked forest of a file."""
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
    return header, arrays, forest


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
        kind = type(value)
        _check_class(kind.__name__, is_public(kind))
        parameters = _parameters(value.get_params(deep=False), getattr(value, "seed_", None))
        return {"tree": kind.__name__, "parameters": parameters}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple) or (hasattr(value, "ndim") and value.ndim > 0):
        return [_plain(item) for item in (value.tolist() if hasattr(value, "tolist") else value)]
    if isinstance(value, dict):
        return {"pairs": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if callable(value):
        return True  # a way to score, which no file can hold
    return value.item() if isinstance(value, np.generic) else value


def _parameters(parameters: dict[str, Any], seed: int | None = None) -> dict[str, Any]:
    params = {k: v for k, v in parameters.items() if k not in WHERE_IT_RUNS}
    if not isinstance(params.get("ccp_cv", 0), Integral):
        del params["ccp_cv"]  # a splitter, which no file can hold
    for name in ("scoring", "loss"):
        if callable(params.get(name)):
            del params[name]  # nor a function
    for name in EXPECTED:
        if not isinstance(params.get(name), Real | None):
            del params[name]  # nor a model of what X lets expect, or its predictions
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = seed  # grows the same trees
    return {name: _plain(value) for name, value in params.items()}


def _check_class(name: str, is_public: bool) -> None:
    """A file names a class, and cannot say what a user's subclass does otherwise."""
    if not is_public:
        why = f"{name} is not a class of gpuforest, and a model file holds no others"
        raise ValueError(f"{why}: pickle the estimator instead")


def _header(model: Model, sampling: rules.Sampling | None) -> Header:
    _check_class(model.kind, model.is_public)
    forest, facts = model.forest, model.facts
    coding: Any = forest.coding
    parameters, names = _parameters(model.parameters, facts["seed_"]), model.feature_names
    kind = "" if coding.classes is None else _kind_of(coding.classes)
    boosting = None
    if forest.baseline is not None:
        boosting = {**_loss_facts(coding.loss), "l2": coding.l2}
        boosting |= {"offset": True} if coding.has_offset else {}
        boosting |= {"vector": True} if coding.is_vector else {}
        boosting["stops"] = bool(facts["do_early_stopping_"])
        scorer = scorer_name(model.parameters["scoring"], facts.get("scored_by_"))
        boosting |= {} if scorer is None else {"scored_by": scorer}
    # a file without it means votes where this parameter says so, which may be newer than the trees
    is_usual = forest.combine == "mean" and parameters.get("voting") != "hard"
    header: Header = {
        "estimator": model.kind,
        "parameters": parameters,
        "seed": facts["seed_"],
        "criterion": facts["criterion_"],
        "scale": coding.scale,
        "feature_names": None if names is None else names.tolist(),
        "oob_score": facts.get("oob_score_"),
        "offset": facts.get("offset_"),
        "categories": {str(f): [*c] for f, c in forest.edges.categories.items()} or None,
        "statistics": {str(f): [*map(list, s)] for f, s in forest.edges.statistics.items()} or None,
        "ccp_alpha": facts["ccp_alpha_"] if "pruning_curve_" in facts else None,
        **{name: _facts(name, facts.get(kept)) for name, kept in KEPT.items()},
        "combine": None if is_usual else forest.combine,
        "oblique": forest.oblique or None,
        "shrinkage": forest.shrinkage or None,
        "outputs": [[_kind_of(labels), labels.tolist()] for labels in coding.several] or None,
        **({"classes": coding.classes.tolist(), "classes_dtype": kind} if kind in TEXT else {}),
        "boosting": boosting,
        "draws": sampling and _draws(sampling),
        "by_blocks": "_judges_" in facts or None,
        "altered": facts.get("_altered_"),
    }
    return {name: value for name, value in header.items() if value is not None}


def _draws(sampling: rules.Sampling) -> Header:
    """How many rows are drawn, as headers have it."""
    draws: Header = {"n_rows": sampling.n_rows, "n_draws": sampling.n_draws}
    draws |= {"of_classes": [*sampling.draws]} if sampling.draws else {}
    draws |= {"rate": sampling.rate} if sampling.rate else {}
    return draws | ({} if sampling.parts is None else {"parts": [*sampling.parts]})


def _facts(name: str, facts: Any) -> dict[str, Any] | None:
    """An attribute of `KEPT` as the header has it; old pickles have more facts about training."""
    names: Any = {**CURVES, "training": TRAINING}.get(name, facts)
    return None if facts is None else {fact: _plain(facts[fact]) for fact in names}


def read_curve(name: str, columns: dict[str, list[Any]]) -> Bunch:
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
    need("classes" not in arrays and kind in TEXT, "classes in two places")
    fits = "boosting" in header or len(labels) == arrays["leaf_sums"].shape[1]
    need(fits, "classes that do not fit the leaf table")
    return _labels(kind, labels)


def _labels(kind: Any, labels: Any) -> np.ndarray:
    """Class labels of one output, from the name of their dtype and a list."""
    need(type(kind) is str and type(labels) is list, "outputs of no kind")
    if kind not in TEXT:
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
    need(((rows >= 0) & (rows < len(sums))).all(), "a leaf outside the leaf table")
    leaf = np.unpackbits(bits, count=n_nodes).astype(bool)
    nodes = np.empty(n_nodes, np.uint64)
    nodes[~leaf], nodes[leaf] = splits, rows.astype(np.uint64) + np.uint64(LEAF_WORD)
    if "leaf_weights" in arrays:
        return nodes, np.column_stack([_as_int64(arrays["leaf_weights"]), _as_int64(sums)])
    return nodes, _as_int64(sums)


def _as_int64(sums: np.ndarray) -> np.ndarray:
    need(sums.dtype != np.uint64 or int(sums.max()) < 2**63, "a sum out of range")
    return sums.astype(np.int64)


def _edges(header: Header, arrays: Arrays) -> bins.BinEdges:
    """The bins of a file; that its categories fit them is not checked yet."""
    known: dict[str, Any] = {"categories": {}, "statistics": {}}
    for name, of_features in known.items():
        for key, values in header.get(name, {}).items():
            is_number = re.fullmatch(r"0|[1-9]\d{0,8}", key, re.ASCII) is not None
            need(is_number, f"{name} of no feature")
            need(type(values) is list, f"{name} that are no list")
            of_features[int(key)] = tuple(values)
    statistics = {f: bins.TargetStatistic(*map(tuple, s)) for f, s in known["statistics"].items()}
    known |= {"statistics": statistics, **{part: arrays[f"edge_{part}"] for part in EDGES}}
    return bins.BinEdges(**known)


def _forest(header: Header, arrays: Arrays) -> Forest:
    """The forest of a file; only what its making needs has been checked."""
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
        shrinkage=header.get("shrinkage", 0.0),
        combine=header.get("combine", "votes" if votes else "mean"),
    )


def _coding(header: Header, arrays: Arrays, classes: np.ndarray | None) -> target.TargetCoding:
    """The coding of a file; that the arrays of boosting fit the trees is not checked yet."""
    if "boosting" not in header:
        need(not {"baseline", "units", *SCORES} & arrays.keys(), "boosting without its header")
        outputs = tuple(_labels(*described) for described in header.get("outputs", []))
        if (priors := arrays.get("priors")) is not None:
            fit = classes is not None and priors.shape == classes.shape
            need(fit and np.isfinite(priors).all() and (priors >= 0).all(), "priors out of range")
        is_effect = header["criterion"] == "effect"
        kind = target.EffectCoding if is_effect else target.TargetCoding
        return kind(classes, arrays["centre"], header["scale"], outputs, priors)
    boosting = header["boosting"]
    need(("baseline" in arrays) and ("units" in arrays), "boosting without its arrays")
    loss = _loss_of(boosting, 0 if classes is None else len(classes))
    return BoostedCoding(
        classes, np.zeros(1), 1.0, loss=loss, baseline=arrays["baseline"], units=arrays["units"],
        l2=boosting["l2"], has_offset=boosting.get("offset", False),
        is_vector=boosting.get("vector", False),
    )  # fmt: skip


def _loss_facts(loss: Any) -> Header:
    """A loss as headers have it."""
    facts: Header = {"loss": loss.name, "quantile": loss.quantile}
    if isinstance(loss, host_losses.GivenLoss):
        facts["link"] = loss.link
    if isinstance(loss, host_losses.Several):
        facts |= {"quantile": loss.parts[0].quantile, "outputs": loss.n_raw}
    if loss.name == "quantiles":
        facts["quantiles"] = [part.quantile for part in loss.parts]
    if loss.name in host_losses.AFT:
        facts["spread"] = loss.spread
    if loss.name == "tweedie":
        facts["power"] = loss.parts[0].power if "outputs" in facts else loss.power
    return facts


def _loss_of(facts: Header, n_classes: int) -> losses.Loss:
    """The loss of a header."""
    name, quantile, power = facts["loss"], facts["quantile"], facts.get("power", 1.5)
    outputs, levels, link = facts.get("outputs", 1), facts.get("quantiles"), facts.get("link")
    need(0 <= quantile <= 1 and 1 < power < 2, "a quantile or a power out of range")
    need(0 < outputs <= MOST_OUTPUTS, "outputs out of range")
    if name == "given":
        need(link in losses.LINKS, f"an unknown link {link!r:.80}")
        return host_losses.GivenLoss.of_link(None, str(link), n_classes)
    if name in ("coxph", *host_losses.AFT, *ranking.NAMES):
        need(n_classes == 0 and outputs == 1, "a loss of one output")
        return _loss_of_one(name, facts.get("spread", 0.0))
    need((name == "log_loss") == (n_classes > 0), "classes and loss disagree")
    if name == "quantiles":
        is_right = levels and levels == sorted(set(levels)) and 0 <= levels[0] <= levels[-1] <= 1
        need(bool(is_right), "quantiles that do not ascend")
        return host_losses.Several.of_quantiles(levels or ())
    need(name in losses.NUMBERS or name == "log_loss", f"an unknown loss {name!r:.80}")
    loss = losses.Loss.of(name, quantile, n_classes, power)
    need(outputs == 1 or not loss.has_delta, "a loss of one output")
    return loss if outputs == 1 else host_losses.Several.of_outputs(loss, outputs)


def _loss_of_one(name: str, spread: float) -> losses.Loss:
    """A loss of boosting of survival, or of rankers."""
    if name in ranking.NAMES:
        return ranking.RankingLoss(name)
    if name == "coxph":
        return host_losses.ProportionalHazards(name)
    need(0 < spread < inf, "a spread out of range")
    return host_losses.AcceleratedFailure(name, spread=spread)


def _ascend(times: np.ndarray) -> bool:
    """Whether these are finite times >= 0 that ascend, one or more."""
    is_finite = bool(times.size and np.isfinite(times).all() and times[0] >= 0)
    return is_finite and bool((np.diff(times) > 0).all())


def _with_means(forest: Forest, means: np.ndarray) -> Forest:
    """The forest with its leaf values as earlier files hold them: means of the second channel."""
    need(forest.leaf_values is None, "values and means of leaves")
    need(forest.leaf_sums.shape[1] == 2, "means of leaves with several outputs or classes")
    return replace(forest, leaf_values=forest.coding.with_means(forest.leaf_sums, means))
