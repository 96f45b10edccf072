"""A fitted model as an ONNX graph that predicts what the model does.

Runtimes add up the leaves of trees in any order, and some in 32 bits. So the trees here give no
values but the row of a table that each leaf has, a whole number, and plain additions follow, tree
after tree:

    X -> TreeEnsemble -> rows [N, T] -> Split -> Gather(values) -> Add, Add, ... -> Div -> ArgMax
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from gpuforest.export.conditions import refuse_twice
from gpuforest.export.container import replaced
from gpuforest.export.model_tables import Tables, is_text

ML = "ai.onnx.ml"
OPSETS = {3: {"": 13, ML: 3}, 5: {"": 13, ML: 5}}
IR_VERSION = 8  # of files, which all of these runtimes read
PREFIX = "gpuforest_"
LEQ, MEMBER = 0, 6  # of nodes_modes, in version 5
MOST_WHOLE = 2**24  # whole numbers up to here are float32 numbers
SKL2ONNX_VERSION = 3  # of ai.onnx.ml: skl2onnx has no newer one
DTYPES_THERE: dict[str, Any] = {  # its types of tensors
    "FloatTensorType": np.float32,
    "DoubleTensorType": np.float64,
    "Int64TensorType": np.int64,
    "BooleanTensorType": np.bool_,
}
NOT_OURS = ("decision_leaf", "decision_path", "nocl", "output_class_labels", "raw_scores")


def require_onnx() -> Any:
    """The package onnx."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("ONNX needs the package onnx: pip install 'gpuforest[onnx]'") from error
    return onnx


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
        tensors of onnx, or arrays for lists of numbers."""
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
        if not isinstance(value, np.ndarray):
            return self.onnx.helper.make_attribute(name, value)
        if value.dtype.kind == "f":
            return kinds(name=name, type=kinds.FLOATS, floats=value.tolist())
        return kinds(name=name, type=kinds.INTS, ints=value.tolist())

    def tensor(self, values: Any) -> Any:
        """An attribute that is a tensor, where an array would be a list."""
        return self.onnx.numpy_helper.from_array(np.asarray(values))

    def cast(self, value: str, dtype: Any) -> str:
        """Numbers in another dtype."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", value, to=kind)

    def info(self, name: str, dtype: np.dtype[Any], *shape: Any) -> Any:
        """The description of an input or an output of the model; objects are strings."""
        helper = self.onnx.helper
        is_text = dtype.kind == "O"
        kind = self.onnx.TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(dtype)
        return helper.make_tensor_value_info(name, kind, list(shape))

    def give(self, value: str, name: str) -> None:
        """Give a value under the name of an output."""
        node = self.onnx.helper.make_node("Identity", [value], [name], self.prefix + name)
        self.nodes.append(node)


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
    tables = Tables(estimator, "ONNX", feature_names)
    if ml_version is None:
        ml_version = 5 if tables.categories else 3
    graph = Graph(PREFIX)
    inputs, x = _inputs(graph, tables, np.dtype(dtype))
    outputs = add_model(graph, tables, x, np.dtype(dtype), ml_version)
    for value, info in outputs:
        graph.give(value, info.name)
        if any(info.name == feature.name for feature in inputs):
            raise ValueError(
                f"a feature has the name of the output {info.name!r}: pass other feature_names"
            )
    infos = [info for _, info in outputs]
    model = _model(graph, inputs, infos, type(estimator).__name__, ml_version)
    if path is not None:
        with replaced(Path(path)) as file:
            file.write_bytes(model.SerializeToString())
    return model


def add_model(
    graph: Graph, tables: Tables, x: str, dtype: np.dtype[Any], ml_version: int
) -> list[tuple[str, Any]]:
    """Add the nodes of a model, which takes codes and numbers x [N, F] of the dtype, to a graph;
    the values that it gives and onnx's descriptions of the outputs."""

    def rounded(value: str) -> str:
        return value if dtype == np.float64 else graph.cast(value, dtype)

    sums = _sums(graph, tables, _add_trees(graph, tables, x, dtype, ml_version))
    predictions = _linked(graph, tables, sums)
    if not tables.classes and tables.n_values == 1:
        flat = graph.node("Reshape", predictions, graph.constant(np.array([-1])))
        name = "score_samples" if tables.link == "isolation" else "prediction"
        return [(rounded(flat), graph.info(name, dtype, "rows"))]
    if not tables.classes:
        info = graph.info("prediction", dtype, "rows", tables.n_values)
        return [(rounded(predictions), info)]
    outputs: list[tuple[str, Any]] = []
    parts, n = [(sums, predictions)], len(tables.classes)
    if n > 1:
        sizes = graph.constant(np.array([len(c) for c in tables.classes], np.int64))
        parts = [(part,) * 2 for part in graph.split(n, "Split", predictions, sizes, axis=1)]
    for i, (classes, (decided, shares)) in enumerate(zip(tables.classes, parts, strict=True)):
        ending = f"_{i}" if n > 1 else ""
        label, kind = _labels(graph, tables, decided, classes)
        outputs.append((label, graph.info("label" + ending, kind, "rows")))
        width = max(len(classes), 2 if tables.link == "logistic" else 1)
        info = graph.info("probabilities" + ending, dtype, "rows", width)
        outputs.append((rounded(shares), info))
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
    attributes = (_version_5 if ml_version == 5 else _version_3)(graph.tensor, tables, dtype)
    kind = "TreeEnsemble" if ml_version == 5 else "TreeEnsembleRegressor"
    rows = graph.node(kind, x, domain=ML, n_targets=tables.n_trees, **attributes)
    return graph.cast(rows, np.int64)


def _version_5(
    tensor: Callable[[Any], Any], tables: Tables, dtype: np.dtype[Any]
) -> dict[str, Any]:
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
    more = {"membership_values": tensor(np.array(members, dtype))} if members else {}
    threshold = np.where(np.isin(split, [*tables.sets]), 0.0, tables.rounded(dtype.type)[split])
    tree = np.repeat(np.arange(tables.n_trees), np.diff(tables.offsets))
    return {
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": root,
        "nodes_modes": tensor(modes),
        "nodes_featureids": np.maximum(tables.feature[split], 0),
        "nodes_splits": tensor(threshold.astype(dtype)),
        "nodes_truenodeids": number[left],
        "nodes_trueleafs": leaf[left].astype(np.int64),
        "nodes_falsenodeids": number[right],
        "nodes_falseleafs": leaf[right].astype(np.int64),
        "nodes_missing_value_tracks_true": tables.missing_left[split].astype(np.int64),
        "leaf_targetids": tree[leaf],
        "leaf_weights": tensor(tables.leaf[leaf].astype(dtype)),
        **more,
    }


def _version_3(
    tensor: Callable[[Any], Any], tables: Tables, dtype: np.dtype[Any]
) -> dict[str, Any]:
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
    return attributes | {f"{key}_as_tensor": tensor(array) for key, array in numbers.items()}


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
        best = graph.cast(flat, np.int64)
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
    known, n = tables.categories, tables.n_features
    if not any(map(is_text, known.values())):
        inputs, columns = [graph.info("X", dtype, "rows", n)], ["X"]
        if not known:
            return inputs, "X"
        if n > 1:
            ones = graph.constant(np.ones(n, np.int64))
            columns = graph.split(n, "Split", "X", ones, axis=1)
    else:
        columns, text = tables.names, np.dtype(object)
        refuse_twice(columns, "each is an input")
        kinds = [text if is_text(known.get(f, ())) else dtype for f in range(n)]
        inputs = [
            graph.info(name, kind, "rows", 1) for name, kind in zip(columns, kinds, strict=True)
        ]
    parts = [
        _codes(graph, column, known[f], dtype) if f in known else column
        for f, column in enumerate(columns)
    ]
    return inputs, graph.node("Concat", *parts, axis=1)


def _codes(graph: Graph, column: str, categories: tuple[Any, ...], dtype: np.dtype[Any]) -> str:
    """The codes [N, 1] of a column of categories: NaN is missing, and others have their number."""
    text = is_text(categories)
    known, values = list(categories), [float(code) for code in range(len(categories))]
    missing = "" if text else np.nan
    if missing not in known:
        known.append(missing)
        values.append(np.nan)
    if not text:  # categories are numbers of 64 bits
        column = graph.cast(column, np.float64)
    codes = graph.node(
        "LabelEncoder",
        column,
        domain=ML,
        keys_tensor=graph.tensor(np.array(known, object if text else np.float64)),
        values_tensor=graph.tensor(values),
        default_tensor=graph.tensor([float(len(categories))]),
    )
    return codes if dtype == np.float64 else graph.cast(codes, dtype)


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
    tables = Tables(estimator, "ONNX")
    if len(tables.classes) > 1 or tables.categories:
        what = "categories" if tables.categories else "several outputs"
        raise ValueError(
            f"skl2onnx does not convert {what} of gpuforest's estimators: use estimator.to_onnx()"
        )
    graph = Graph(scope.get_unique_operator_name("gpuforest") + "_")
    dtype: np.dtype[Any] = np.dtype(np.float64)
    x = operator.inputs[0].full_name
    kind = type(operator.inputs[0].type).__name__
    if kind == "FloatTensorType":
        dtype = np.dtype(np.float32)
    elif kind != "DoubleTensorType":
        x = graph.cast(x, dtype)
    results = add_model(graph, tables, x, dtype, SKL2ONNX_VERSION)
    for (value, info), output in zip(results, operator.outputs, strict=True):
        # the type and the shape that a pipeline has for it
        if wanted := DTYPES_THERE.get(type(output.type).__name__):
            value = graph.cast(value, wanted)
        if info.name == "prediction" and len(info.type.tensor_type.shape.dim) == 1:
            value = graph.node("Reshape", value, graph.constant(np.array([-1, 1])))
        graph.give(value, output.full_name)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= set(OPSETS[SKL2ONNX_VERSION].items())
