"""A fitted model as an ONNX graph that predicts what the model does.

Runtimes add up the leaves of trees in any order, and some in 32 bits. So the trees here give no
values but the row of a table that each leaf has, a whole number, and plain additions follow, tree
after tree:

    X -> TreeEnsemble -> rows [N, T] -> Split -> Gather(values) -> Add, Add, ... -> Div -> ArgMax
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpuforest.export.container import replaced
from gpuforest.export.model_tables import Tables, is_text, tables_of
from gpuforest.export.onnx_graph import ML, Graph, Tensor
from gpuforest.export.onnx_trees import add_trees

OPSETS = {3: {"": 13, ML: 3}, 5: {"": 13, ML: 5}}
IR_VERSION = 8  # of files, which all of these runtimes read
PREFIX = "gpuforest_"


class Result(NamedTuple):
    """What a graph gives: its name in the model, and in the graph."""

    name: str
    value: str
    dtype: np.dtype[Any]
    shape: tuple[str | int, ...]


def to_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    ml_version: int | None = None,
    feature_names: Sequence[str] | None = None,
) -> Any:
    """A fitted estimator of ours as an ONNX model that predicts the same.

    Labels are equal for each row. Probabilities and means are equal to the last bit with
    dtype="float64", and the same numbers rounded to float32 with "float32"; those that an
    exponential is needed for (boosting's probabilities, poisson and gamma, AdaBoost) are equal but
    for rounding. Missing values and categories that training did not see go where they go here.
    Infinities are not refused: they go the way of the largest numbers.

    The model takes "X", a tensor [rows, features] of numbers. If a feature has strings as
    categories, each feature is an input [rows, 1] of its own, by its name, of strings where
    categories are; "" is a missing value, unless it is a category. The outputs are "label" [rows]
    of the type of the classes and "probabilities" [rows, classes]; of several outputs "label_0",
    "probabilities_0", "label_1", ...; or "prediction", of the shape that `predict` gives; or
    "score_samples" [rows] of an isolation forest.

    Parameters
    ----------
    estimator : fitted classifier, regressor or isolation forest of gpuforest
    path : str or path, default=None
        A file to write as well, whole or not at all.
    dtype : {"float32", "float64"}, default="float32"
        Of the numbers in and out. With "float32", thresholds are the largest numbers of it that
        are not above the model's, so each row goes the way that it goes here.
    ml_version : {3, 5} or None, default=None
        Of the operators of ai.onnx.ml. Version 5 makes smaller models, and has splits by
        categories; ONNX Runtime reads it rightly from its release 1.24 on. None: 3, and 5 for
        splits by categories.
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ImportError : the package onnx is absent
    ValueError : not fitted; splits by sums of features, a median of trees, classes of mixed types,
        categories with ml_version=3, or names that meet
    TypeError : an estimator of another kind
    OSError : the file cannot be written
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype={dtype!r} is unknown: pass "float32" or "float64"')
    if ml_version not in (None, *OPSETS):
        raise ValueError(f"ml_version={ml_version!r} is unknown: pass 3, 5 or None")
    tables = tables_of(estimator, "ONNX", feature_names)
    if ml_version is None:
        ml_version = 5 if tables.categories else 3
    graph = Graph(PREFIX)
    inputs, x = _inputs(graph, tables, np.dtype(dtype))
    results = add_model(graph, tables, x, np.dtype(dtype), ml_version)
    outputs = [_described(graph, result) for result in results]
    taken = {info.name for info in inputs} & {info.name for info in outputs}
    if taken:
        raise ValueError(
            f"a feature has the name of the output {taken.pop()!r}: pass other feature_names"
        )
    model = _model(graph, inputs, outputs, type(estimator).__name__, ml_version)
    if path is not None:
        with replaced(Path(path)) as file:
            file.write_bytes(model.SerializeToString())
    return model


def add_model(
    graph: Graph, tables: Tables, x: str, dtype: np.dtype[Any], ml_version: int
) -> list[Result]:
    """Add the nodes of a model to a graph; what it gives.

    x : the name of the codes and numbers [N, F], of the dtype
    """
    index = add_trees(graph, tables, x, dtype, ml_version)
    sums = _sums(graph, tables, index)
    found = _linked(graph, tables, sums)
    if not tables.classes and tables.n_values == 1:
        flat = graph.node("Reshape", found, graph.constant(np.array([-1])))
        name = "score_samples" if tables.link == "isolation" else "prediction"
        return [Result(name, _cast(graph, flat, dtype), dtype, ("rows",))]
    if not tables.classes:
        shape = "rows", tables.n_values
        return [Result("prediction", _cast(graph, found, dtype), dtype, shape)]
    outputs: list[Result] = []
    parts, n = [(sums, found)], len(tables.classes)
    if n > 1:
        sizes = graph.constant(np.array([len(c) for c in tables.classes], np.int64))
        parts = [(part,) * 2 for part in graph.split(n, "Split", found, sizes, axis=1)]
    for i, (classes, (decided, shares)) in enumerate(zip(tables.classes, parts, strict=True)):
        ending = f"_{i}" if n > 1 else ""
        label, kind = _labels(graph, tables, decided, classes)
        outputs.append(Result("label" + ending, label, kind, ("rows",)))
        shape = "rows", max(len(classes), 2 if tables.link == "logistic" else 1)
        shares = _cast(graph, shares, dtype)
        outputs.append(Result("probabilities" + ending, shares, dtype, shape))
    return outputs


def _sums(graph: Graph, tables: Tables, index: str) -> str:
    """The sums f64[N, K] of what the leaves at rows i64[N, T] add, in the order of the trees."""
    step = tables.n_sums if tables.each_adds_one else 1
    n = tables.n_trees // step
    values = tables.values[:, 0] if tables.each_adds_one else tables.values
    table, parts, total = graph.constant(values), [index], None
    if tables.baseline is not None:
        total = graph.constant(tables.baseline)
    if n > 1:
        sizes = graph.constant(np.full(n, step, np.int64))
        parts = graph.split(n, "Split", index, sizes, axis=1)
    for part in parts:
        added = graph.node("Gather", table, part, axis=0)
        total = added if total is None else graph.node("Add", total, added)
    assert total is not None
    if not tables.each_adds_one:
        total = graph.node("Squeeze", total, graph.constant(np.array([1])))
    if tables.divisor is None:
        return total
    return graph.node("Div", total, graph.constant(np.float64(tables.divisor)))


def _linked(graph: Graph, tables: Tables, sums: str) -> str:
    """Predictions or probabilities f64[N, ...] of sums."""

    def number(value: float) -> str:
        return graph.constant(np.float64(value))

    match tables.link:
        case "exp":
            return graph.node("Exp", sums)
        case "isolation":
            shares = graph.node("Div", sums, number(tables.length))
            return graph.node("Neg", graph.node("Pow", number(2), graph.node("Neg", shares)))
        case "softmax":
            return graph.node("Softmax", sums, axis=1)
        case "logistic":
            power = graph.node("Exp", graph.node("Neg", sums))
            second = graph.node("Div", number(1), graph.node("Add", number(1), power))
            return graph.node("Concat", graph.node("Sub", number(1), second), second, axis=1)
        case "votes":  # the probabilities of AdaBoost, see `AdaBoostClassifier.predict_proba`
            K = tables.n_sums
            if K == 2:
                ones = graph.constant(np.ones(2, np.int64))
                first, second = graph.split(2, "Split", sums, ones, axis=1)
                less = graph.node("Sub", second, first)
                decisions = graph.node("Concat", graph.node("Neg", less), less, axis=1)
            else:
                decisions = graph.node("Sub", graph.node("Mul", sums, number(K)), number(1))
                decisions = graph.node("Div", decisions, number(max(K - 1, 1) ** 2))
            return graph.node("Softmax", decisions, axis=1)
    return sums


def _labels(
    graph: Graph, tables: Tables, decided: str, classes: np.ndarray
) -> tuple[str, np.dtype[Any]]:
    """The labels [N] that sums decide, and their dtype."""
    known = _classes(classes)
    if tables.link == "logistic":
        above = graph.node("Greater", decided, graph.constant(np.float64(0)))
        flat = graph.node("Reshape", above, graph.constant(np.array([-1])))
        best = graph.node("Cast", flat, to=graph.onnx.TensorProto.INT64)
    else:
        best = graph.node("ArgMax", decided, axis=1, keepdims=0)  # the first among equals
    return graph.node("Gather", graph.constant(known), best, axis=0), known.dtype


def _classes(classes: np.ndarray) -> np.ndarray:
    """Labels in a dtype that ONNX has.

    Raises
    ------
    ValueError : there is none
    """
    kind = classes.dtype.kind
    if kind in "US" or (kind == "O" and all(isinstance(c, str) for c in classes.tolist())):
        return classes.astype(str).astype(object)
    for kinds, dtype in (("b", np.bool_), ("iu", np.int64), ("f", np.float64)):
        if kind in kinds and np.array_equal(classes.astype(dtype), classes):
            return classes.astype(dtype)
    raise ValueError(
        f"classes of dtype {classes.dtype} have no type in ONNX: train on strings, 64-bit "
        "integers or booleans"
    )


def _inputs(graph: Graph, tables: Tables, dtype: np.dtype[Any]) -> tuple[list[Any], str]:
    """What a model takes, as onnx's descriptions, and the codes and numbers [N, F] of it."""
    info = graph.onnx.helper.make_tensor_value_info
    kind = graph.onnx.helper.np_dtype_to_tensor_dtype(dtype)
    if not tables.has_strings:
        inputs, parts = [info("X", kind, ["rows", tables.n_features])], ["X"]
        if not tables.categories:
            return inputs, "X"
        if tables.n_features > 1:
            ones = graph.constant(np.ones(tables.n_features, np.int64))
            parts = graph.split(tables.n_features, "Split", "X", ones, axis=1)
        return inputs, _joined(graph, tables, parts, dtype)
    names = tables.names
    if twice := {name for i, name in enumerate(names) if name in names[:i]}:
        raise ValueError(
            f"two features are called {twice.pop()!r}, and each is an input: pass "
            "feature_names that differ"
        )
    inputs = []
    for f, name in enumerate(names):
        own = graph.onnx.TensorProto.STRING if is_text(tables.categories.get(f, ())) else kind
        inputs.append(info(name, own, ["rows", 1]))
    return inputs, _joined(graph, tables, names, dtype)


def _joined(graph: Graph, tables: Tables, columns: list[str], dtype: np.dtype[Any]) -> str:
    """The codes and numbers [N, F] of columns [N, 1]."""
    known = tables.categories
    parts = [
        _codes(graph, column, known[f], dtype) if f in known else column
        for f, column in enumerate(columns)
    ]
    return graph.node("Concat", *parts, axis=1)


def _codes(graph: Graph, column: str, categories: tuple[Any, ...], dtype: np.dtype[Any]) -> str:
    """The codes [N, 1] of a column of categories: NaN is missing, and others have their number."""
    text = is_text(categories)
    known, values = list(categories), [float(code) for code in range(len(categories))]
    missing = "" if text else np.nan
    if missing not in known:
        known.append(missing)
        values.append(np.nan)
    if not text:  # categories are numbers of 64 bits
        column = graph.node("Cast", column, to=graph.onnx.TensorProto.DOUBLE)
    found = graph.node(
        "LabelEncoder",
        column,
        domain=ML,
        keys_tensor=Tensor(np.array(known, object if text else np.float64)),
        values_tensor=Tensor(np.array(values)),
        default_tensor=Tensor(np.array([float(len(categories))])),
    )
    return _cast(graph, found, dtype)


def _cast(graph: Graph, value: str, dtype: np.dtype[Any]) -> str:
    """Numbers f64 in a dtype."""
    if dtype == np.float64:
        return value
    return graph.node("Cast", value, to=graph.onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _described(graph: Graph, result: Result) -> Any:
    """A result as an output of the model."""
    helper, kinds = graph.onnx.helper, graph.onnx.TensorProto
    name = f"{graph.prefix}{result.name}"
    graph.nodes.append(helper.make_node("Identity", [result.value], [result.name], name))
    kind = (
        kinds.STRING if result.dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(result.dtype)
    )
    return helper.make_tensor_value_info(result.name, kind, list(result.shape))


def _model(graph: Graph, inputs: list[Any], outputs: list[Any], name: str, ml_version: int) -> Any:
    """The whole model."""
    helper = graph.onnx.helper
    made = graph.onnx.GraphProto(name=name)
    made.node.extend(graph.nodes)
    made.initializer.extend(graph.constants)
    made.input.extend(inputs)
    made.output.extend(outputs)
    opsets = [helper.make_opsetid(d, v) for d, v in OPSETS[ml_version].items()]
    return helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="gpuforest",
        producer_version=version("gpuforest"),
    )
