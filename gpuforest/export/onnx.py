"""A fitted model as an ONNX graph that predicts what the model does.

Runtimes add up the leaves of trees in any order, and some in 32 bits. So the trees here give no
values but the row of a table that each leaf has, a whole number, and plain additions follow, tree
after tree:

    X -> TreeEnsemble -> rows [N, T] -> Split -> Gather(values) -> Add, Add, ... -> Div -> ArgMax
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpuforest.export.container import replaced
from gpuforest.export.model_tables import Tables, is_text, tables_of

ML = "ai.onnx.ml"
OPSETS = {3: {"": 13, ML: 3}, 5: {"": 13, ML: 5}}
IR_VERSION = 8  # of files, which all of these runtimes read
PREFIX = "gpuforest_"
LEQ, MEMBER = 0, 6  # of nodes_modes, in version 5
MOST_WHOLE = 2**24  # whole numbers up to here are float32 numbers
SKL2ONNX_VERSION = 3  # of ai.onnx.ml: skl2onnx has no newer one
NOT_OURS = ("decision_leaf", "decision_path", "nocl", "output_class_labels", "raw_scores")


def require_onnx() -> Any:
    """The package onnx."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX needs the package onnx: pip install 'gpuforest[onnx]'") from error
    return onnx


@dataclass(frozen=True, eq=False)
class Tensor:
    """An attribute that is a tensor, where an array would be a list."""

    values: np.ndarray


class Graph:
    """Nodes and constants, each with a name of its own.

    prefix : what names begin with
    """

    def __init__(self, prefix: str) -> None:
        self.onnx, self.prefix = require_onnx(), prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a new constant; strings are those of an array of objects."""
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node; the name of what it gives. Attributes are numbers, lists of strings,
        `Tensor`s, or arrays for lists of numbers."""
        return self.split(1, kind, *inputs, domain=domain, **attributes)[0]

    def split(
        self, n: int, kind: str, *inputs: str, domain: str = "", **attributes: Any
    ) -> list[str]:
        """`node`, of one that gives n results."""
        name = f"{self.prefix}{kind}_{len(self.nodes)}"
        results = [f"{name}_{i}" for i in range(n)]
        node = self.onnx.NodeProto(
            op_type=kind, input=inputs, output=results, name=name, domain=domain
        )
        node.attribute.extend(self._attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return results

    def _attribute(self, name: str, value: Any) -> Any:
        """onnx's own helper looks at each number of a list, which takes long for a forest."""
        kinds = self.onnx.AttributeProto
        if isinstance(value, Tensor):
            tensor = self.onnx.numpy_helper.from_array(value.values, name)
            return kinds(name=name, type=kinds.TENSOR, t=tensor)
        if not isinstance(value, np.ndarray):
            return self.onnx.helper.make_attribute(name, value)
        if value.dtype.kind == "f":
            return kinds(name=name, type=kinds.FLOATS, floats=value.tolist())
        return kinds(name=name, type=kinds.INTS, ints=value.tolist())


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
    index = _add_trees(graph, tables, x, dtype, ml_version)
    sums = _sums(graph, tables, index)
    predictions = _linked(graph, tables, sums)
    if not tables.classes and tables.n_values == 1:
        flat = graph.node("Reshape", predictions, graph.constant(np.array([-1])))
        name = "score_samples" if tables.link == "isolation" else "prediction"
        return [Result(name, _cast(graph, flat, dtype), dtype, ("rows",))]
    if not tables.classes:
        shape = "rows", tables.n_values
        return [Result("prediction", _cast(graph, predictions, dtype), dtype, shape)]
    outputs: list[Result] = []
    parts, n = [(sums, predictions)], len(tables.classes)
    if n > 1:
        sizes = graph.constant(np.array([len(c) for c in tables.classes], np.int64))
        parts = [(part,) * 2 for part in graph.split(n, "Split", predictions, sizes, axis=1)]
    for i, (classes, (decided, shares)) in enumerate(zip(tables.classes, parts, strict=True)):
        ending = f"_{i}" if n > 1 else ""
        label, kind = _labels(graph, tables, decided, classes)
        outputs.append(Result("label" + ending, label, kind, ("rows",)))
        shape = "rows", max(len(classes), 2 if tables.link == "logistic" else 1)
        shares = _cast(graph, shares, dtype)
        outputs.append(Result("probabilities" + ending, shares, dtype, shape))
    return outputs


def _add_trees(graph: Graph, tables: Tables, x: str, dtype: np.dtype[Any], ml_version: int) -> str:
    """Add the trees to a graph, which look at the codes and numbers x [N, F]: the row of `values`
    that each leads to, i64[N, T]."""
    if ml_version == 3 and tables.categories:
        raise ValueError(
            "categories need version 5 of ai.onnx.ml: pass ml_version=5, or train on numbers in "
            "their place (OneHotEncoder)"
        )
    if len(tables.values) > MOST_WHOLE and (dtype == np.float32 or ml_version == 3):
        raise ValueError(
            f"the model has {len(tables.values):,} different leaves, more than float32 can count "
            '(16,777,216): pass dtype="float64" and ml_version=5'
        )
    attributes = _version_5(tables, dtype) if ml_version == 5 else _version_3(tables, dtype)
    kind = "TreeEnsemble" if ml_version == 5 else "TreeEnsembleRegressor"
    rows = graph.node(kind, x, domain=ML, n_targets=tables.n_trees, **attributes)
    return graph.node("Cast", rows, to=graph.onnx.TensorProto.INT64)


def _version_5(tables: Tables, dtype: np.dtype[Any]) -> dict[str, Any]:
    """The attributes of TreeEnsemble, in which splits and leaves have numbers of their own. A tree
    of one leaf is a split with that leaf on both sides."""
    leaf = tables.feature < 0
    alone = np.zeros(len(leaf), bool)
    roots = tables.offsets[:-1]
    alone[roots[leaf[roots]]] = True
    split = np.flatnonzero(~leaf | alone)
    number = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf | alone)) - 1
    root = np.cumsum(~leaf | alone)[roots] - 1
    left = np.where(alone, np.arange(len(leaf)), tables.left)[split]
    right = np.where(alone[split], left, left + 1)
    modes, members = np.zeros(len(split), np.uint8), []
    for at, node in enumerate(split.tolist()) if tables.sets else ():
        if node in tables.sets:
            modes[at] = MEMBER
            members += [*tables.sets[node].tolist(), np.nan]
    more = {"membership_values": Tensor(np.array(members, dtype))} if members else {}
    threshold = np.where(np.isin(split, [*tables.sets]), 0.0, tables.rounded(dtype.type)[split])
    tree = np.repeat(np.arange(tables.n_trees), np.diff(tables.offsets))
    return {
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": root,
        "nodes_modes": Tensor(modes),
        "nodes_featureids": np.maximum(tables.feature[split], 0),
        "nodes_splits": Tensor(threshold.astype(dtype)),
        "nodes_truenodeids": number[left],
        "nodes_trueleafs": leaf[left].astype(np.int64),
        "nodes_falsenodeids": number[right],
        "nodes_falseleafs": leaf[right].astype(np.int64),
        "nodes_missing_value_tracks_true": tables.missing_left[split].astype(np.int64),
        "leaf_targetids": tree[leaf],
        "leaf_weights": Tensor(tables.leaf[leaf].astype(dtype)),
        **more,
    }


def _version_3(tables: Tables, dtype: np.dtype[Any]) -> dict[str, Any]:
    """The attributes of TreeEnsembleRegressor. Its results are float32 numbers always."""
    leaf, sizes = tables.feature < 0, np.diff(tables.offsets)
    tree = np.repeat(np.arange(tables.n_trees), sizes)
    first = np.repeat(tables.offsets[:-1], sizes)
    node = np.arange(len(leaf)) - first
    left = np.where(leaf, 0, tables.left - first)
    attributes = {
        "nodes_treeids": tree,
        "nodes_nodeids": node,
        "nodes_featureids": np.maximum(tables.feature, 0),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_truenodeids": left,
        "nodes_falsenodeids": np.where(leaf, 0, left + 1),
        "nodes_missing_value_tracks_true": tables.missing_left.astype(np.int64),
        "target_treeids": tree[leaf],
        "target_nodeids": node[leaf],
        "target_ids": tree[leaf],
    }
    threshold = tables.rounded(dtype.type).astype(dtype)
    numbers = {"nodes_values": threshold, "target_weights": tables.leaf[leaf].astype(dtype)}
    if dtype == np.float32:
        return attributes | numbers
    return attributes | {f"{key}_as_tensor": Tensor(array) for key, array in numbers.items()}


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
    labels = _classes(classes)
    if tables.link == "logistic":
        above = graph.node("Greater", decided, graph.constant(np.float64(0)))
        flat = graph.node("Reshape", above, graph.constant(np.array([-1])))
        best = graph.node("Cast", flat, to=graph.onnx.TensorProto.INT64)
    else:
        best = graph.node("ArgMax", decided, axis=1, keepdims=0)  # the first among equals
    return graph.node("Gather", graph.constant(labels), best, axis=0), labels.dtype


def _classes(classes: np.ndarray) -> np.ndarray:
    """Labels in a dtype that ONNX has."""
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


def convert_in_pipeline(scope: Any, operator: Any, container: Any) -> None:
    """Add an estimator to a graph of skl2onnx: a converter as that package wants it."""
    estimator = operator.raw_operator
    options = container.get_options(estimator, {}, fail=False)
    if unknown := [name for name in NOT_OURS if options.get(name)]:
        raise ValueError(
            f"the option {unknown[0]!r} is not for gpuforest's estimators: convert "
            "estimator.to_sklearn()"
        )
    tables = tables_of(estimator, "ONNX")
    if len(tables.classes) > 1 or tables.categories:
        what = "categories" if tables.categories else "several outputs"
        raise ValueError(
            f"skl2onnx does not convert {what} of gpuforest's estimators: use estimator.to_onnx()"
        )
    graph = Graph(scope.get_unique_operator_name("gpuforest") + "_")
    results = add_model(graph, tables, *_numbers(graph, operator.inputs[0]), SKL2ONNX_VERSION)
    for result, output in zip(results, operator.outputs, strict=True):
        _give(graph, result, output)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= set(OPSETS[SKL2ONNX_VERSION].items())


def _numbers(graph: Graph, variable: Any) -> tuple[str, np.dtype[Any]]:
    """What a pipeline gives, as float32 numbers or float64 ones, which whole numbers become."""
    kinds, name = graph.onnx.TensorProto, variable.full_name
    match type(variable.type).__name__:
        case "FloatTensorType":
            return name, np.dtype(np.float32)
        case "DoubleTensorType":
            return name, np.dtype(np.float64)
    return graph.node("Cast", name, to=kinds.DOUBLE), np.dtype(np.float64)


def _give(graph: Graph, result: Result, output: Any) -> None:
    """Give a result under the name, of the type and shape, that a pipeline has for it."""
    kinds, value = graph.onnx.TensorProto, result.value
    wanted = {
        "FloatTensorType": kinds.FLOAT,
        "DoubleTensorType": kinds.DOUBLE,
        "Int64TensorType": kinds.INT64,
        "BooleanTensorType": kinds.BOOL,
    }.get(type(output.type).__name__)
    if wanted is not None:
        value = graph.node("Cast", value, to=wanted)
    if result.name == "prediction" and len(result.shape) == 1:
        value = graph.node("Reshape", value, graph.constant(np.array([-1, 1])))
    named = graph.onnx.helper.make_node("Identity", [value], [output.full_name])
    graph.nodes.append(named)
