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
from typing import Any

import numpy as np

from gpuforest.core.bins import categories_of, rounded
from gpuforest.export import container, views
from gpuforest.export.model_tables import Tables, is_text

ML = "ai.onnx.ml"
ML_VERSIONS = (3, 5)
OPSET = 13  # of all other operators
IR_VERSION = 8  # of files, which all of these runtimes read
PREFIX = "gpuforest_"
MEMBER = 6  # of nodes_modes, in version 5, where 0 is "less or equal"
MOST_WHOLE = 2**24  # whole numbers up to here are float32 numbers
SKL2ONNX_VERSION = 3  # of ai.onnx.ml: skl2onnx has no newer one
DTYPES_THERE: dict[str, Any] = {  # its types of tensors
    "FloatTensorType": np.float32,
    "DoubleTensorType": np.float64,
    "Int64TensorType": np.int64,
    "BooleanTensorType": np.bool_,
}
NOT_OURS = ("decision_leaf", "decision_path", "nocl", "output_class_labels", "raw_scores")


class Graph:
    """Nodes and constants, each with a name of its own that begins with the prefix; the dtype is
    that of the numbers that a model takes and gives."""

    def __init__(self, prefix: str, dtype: Any, ml_version: int) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "ONNX needs the package onnx: pip install 'gpuforest[onnx]'"
            ) from error
        self.onnx: Any = onnx
        self.prefix, self.dtype, self.ml_version = prefix, np.dtype(dtype), ml_version
        self.opsets = {"": OPSET, ML: ml_version}
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a new constant; strings are those of an array of objects."""
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, domain: str = "", n: int = 1, **attributes: Any) -> str:
        """Add a node that gives n results; the name of the first. Attributes are numbers, lists of
        strings, tensors of onnx, or arrays for lists of numbers."""
        name = f"{self.prefix}{kind}_{len(self.nodes)}"
        results = [f"{name}_{i}" for i in range(n)]
        node = self.onnx.NodeProto(
            op_type=kind, input=inputs, output=results, name=name, domain=domain
        )
        node.attribute.extend(self._attribute(key, value) for key, value in attributes.items())
        self.nodes.append(node)
        return results[0]

    def split(self, value: str, sizes: Sequence[int]) -> list[str]:
        """Split a value into parts by columns; `sizes` are the numbers of columns of the parts."""
        if len(sizes) == 1:
            return [value]
        self.node("Split", value, self.constant(np.array(sizes, np.int64)), n=len(sizes), axis=1)
        return [*self.nodes[-1].output]

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
        return self.node("Cast", value, to=self._type(np.dtype(dtype)))

    def in_dtype(self, value: str) -> str:
        """Numbers f64[...] in the dtype of the model."""
        return value if self.dtype == np.float64 else self.cast(value, self.dtype)

    def reshape(self, value: str, *shape: int) -> str:
        """The same numbers in another shape."""
        return self.node("Reshape", value, self.constant(np.array(shape)))

    def info(self, name: str, dtype: np.dtype[Any], *shape: Any) -> Any:
        """The description of an input or an output of the model; objects are strings."""
        return self.onnx.helper.make_tensor_value_info(name, self._type(dtype), list(shape))

    def _type(self, dtype: np.dtype[Any]) -> Any:
        if dtype.kind == "O":
            return self.onnx.TensorProto.STRING
        return self.onnx.helper.np_dtype_to_tensor_dtype(dtype)

    def give(self, value: str, name: str) -> None:
        """Give a value under the name of an output."""
        node = self.onnx.helper.make_node("Identity", [value], [name], self.prefix + name)
        self.nodes.append(node)


def to_onnx(
    estimator: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32",
    ml_version: int | None = None, feature_names: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """A fitted estimator as an ONNX model that predicts the same.

    Labels are equal for each row. Probabilities and means are equal to the last bit with
    dtype="float64", and the same numbers rounded to float32 with "float32"; exponentials
    (boosting's probabilities, poisson and gamma, AdaBoost) are equal up to rounding. Missing values
    and unseen categories go where they go here, and infinities the way of the largest numbers.

    The model takes "X", a tensor [rows, features] of numbers. If a feature has strings as
    categories, each feature is an input [rows, 1] under its name, of strings or numbers; "" is a
    missing value, unless it is a category. The outputs are "label" [rows] of the type of the
    classes and "probabilities" [rows, classes]; of several outputs "label_0", "probabilities_0",
    "label_1", ...; or "prediction", of the shape that `predict` gives; or "score_samples" [rows].

    Parameters
    ----------
    estimator : fitted classifier, regressor or isolation forest of gpuforest
    path : str or path, default=None
        A file to write as well, whole or not at all.
    dtype : {"float32", "float64"}, default="float32"
        The dtype of input and output. Rounded thresholds send each row the way it goes here.
    ml_version : {3, 5} or None, default=None
        The version of ai.onnx.ml. Version 5 makes smaller models, and has splits by categories;
        ONNX Runtime reads it rightly from 1.24 on. None: 5 for splits by categories, else 3.
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
    if ml_version not in (None, *ML_VERSIONS):
        raise ValueError(f"ml_version={ml_version!r} is unknown: pass 3, 5 or None")
    tables = Tables(estimator, "ONNX", feature_names)
    if ml_version is None:
        ml_version = 5 if tables.edges.known else 3
    graph = Graph(PREFIX, dtype, ml_version)
    inputs, x = _inputs(graph, tables)
    names, outputs = [feature.name for feature in inputs], []
    for value, info in add_model(graph, tables, x):
        graph.give(value, info.name)
        outputs.append(info)
        if info.name in names:
            raise ValueError(
                f"a feature has the name of the output {info.name!r}: pass other feature_names"
            )
    helper = graph.onnx.helper
    model = helper.make_model(
        helper.make_graph(graph.nodes, tables.kind, inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid(*opset) for opset in graph.opsets.items()],
        ir_version=IR_VERSION,
        producer_name="gpuforest",
        producer_version=version("gpuforest"),
    )
    if path is not None:
        with container.replaced(Path(path)) as file:
            file.write_bytes(model.SerializeToString())
    return model


def add_model(graph: Graph, tables: Tables, x: str) -> list[tuple[str, Any]]:
    """Add the nodes of a model, which takes codes and numbers x [N, F], to a graph; the values that
    it gives and onnx's descriptions of the outputs."""
    sums = _sums(graph, tables, _add_trees(graph, tables, x))
    predictions, dtype = _linked(graph, tables, sums), graph.dtype
    if not tables.classes:
        name = "score_samples" if tables.link == "isolation" else "prediction"
        if tables.n_values > 1:
            info = graph.info(name, dtype, "rows", tables.n_values)
        else:
            predictions, info = graph.reshape(predictions, -1), graph.info(name, dtype, "rows")
        return [(graph.in_dtype(predictions), info)]
    outputs: list[tuple[str, Any]] = []
    n, widths = len(tables.classes), [*map(len, tables.classes)]
    for i, shares in enumerate(graph.split(predictions, widths)):
        ending, labels = f"_{i}" if n > 1 else "", _classes(tables.classes[i])
        label = _labels(graph, tables, shares if n > 1 else sums, labels)
        outputs.append((label, graph.info("label" + ending, labels.dtype, "rows")))
        width = max(widths[i], 2 if tables.link == "logistic" else 1)
        info = graph.info("probabilities" + ending, dtype, "rows", width)
        outputs.append((graph.in_dtype(shares), info))
    return outputs


def _add_trees(graph: Graph, tables: Tables, x: str) -> str:
    """Add the trees to a graph, which look at the codes and numbers x [N, F]: the row of `values`
    that each leads to, i64[N, T]."""
    is_new = graph.ml_version == 5
    if tables.edges.known and not is_new:
        raise ValueError(
            "categories need version 5 of ai.onnx.ml: pass ml_version=5, or train on numbers in "
            "their place (OneHotEncoder)"
        )
    if len(tables.values) > MOST_WHOLE and (graph.dtype == np.float32 or not is_new):
        raise ValueError(
            f"the model has {len(tables.values):,} different leaves, more than float32 can count "
            '(16,777,216): pass dtype="float64" and ml_version=5'
        )
    kind = "TreeEnsemble" if is_new else "TreeEnsembleRegressor"
    attributes = (_version_5 if is_new else _version_3)(graph, tables)
    rows = graph.node(kind, x, domain=ML, n_targets=tables.n_trees, **attributes)
    return graph.cast(rows, np.int64)


def _version_5(graph: Graph, tables: Tables) -> dict[str, Any]:
    """The attributes of TreeEnsemble, in which splits and leaves have numbers of their own. A tree
    of one leaf is a split with that leaf on both sides."""
    leaf, dtype, roots = tables.feature < 0, graph.dtype, tables.offsets[:-1]
    alone = np.zeros(len(leaf), bool)
    alone[roots[leaf[roots]]] = True
    is_split = ~leaf | alone
    split, split_number = np.flatnonzero(is_split), np.cumsum(is_split) - 1
    number = np.where(leaf, np.cumsum(leaf) - 1, split_number)
    left = np.where(alone, np.arange(len(leaf)), tables.left)[split]
    right = np.where(alone[split], left, left + 1)
    by_set, tensor = np.isin(split, [*tables.members]), graph.tensor
    threshold = np.where(by_set, 0.0, rounded(tables.threshold, dtype.type)[split])
    attributes = {
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": split_number[roots],
        "nodes_modes": tensor((MEMBER * by_set).astype(np.uint8)),
        "nodes_featureids": np.maximum(tables.feature[split], 0),
        "nodes_splits": tensor(threshold.astype(dtype)),
        "nodes_truenodeids": number[left],
        "nodes_trueleafs": leaf[left].astype(np.int64),
        "nodes_falsenodeids": number[right],
        "nodes_falseleafs": leaf[right].astype(np.int64),
        "nodes_missing_value_tracks_true": tables.missing_left[split].astype(np.int64),
        "leaf_targetids": tables.tree[leaf],
        "leaf_weights": tensor(tables.leaf[leaf].astype(dtype)),
    }
    if tables.members:
        codes = [np.append(own, np.nan) for own in tables.members.values()]
        attributes["membership_values"] = tensor(np.concatenate(codes).astype(dtype))
    return attributes


def _version_3(graph: Graph, tables: Tables) -> dict[str, Any]:
    """The attributes of TreeEnsembleRegressor. Its results are float32 numbers always."""
    leaf, tree, dtype = tables.feature < 0, tables.tree, graph.dtype
    first = tables.offsets[tree]
    node, left = np.arange(len(leaf)) - first, np.where(leaf, 0, tables.left - first)
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
    threshold = rounded(tables.threshold, dtype.type).astype(dtype)
    numbers = {"nodes_values": threshold, "target_weights": tables.leaf[leaf].astype(dtype)}
    if dtype == np.float32:
        return attributes | numbers
    return attributes | {f"{key}_as_tensor": graph.tensor(array) for key, array in numbers.items()}


def _sums(graph: Graph, tables: Tables, index: str) -> str:
    """The sums f64[N, K] of what the leaves at rows i64[N, T] add, in the order of the trees."""
    step = tables.n_sums if tables.each_adds_one else 1
    table = graph.constant(tables.values[:, 0] if tables.each_adds_one else tables.values)
    total = "" if tables.baseline is None else graph.constant(tables.baseline)
    for part in graph.split(index, [step] * (tables.n_trees // step)):
        added = graph.node("Gather", table, part, axis=0)
        total = graph.node("Add", total, added) if total else added
    if not tables.each_adds_one:
        total = graph.node("Squeeze", total, graph.constant(np.array([1])))
    if tables.divisor is None:
        return total
    means = graph.node("Div", total, graph.constant(tables.divisor))
    if tables.priors is None:
        return means
    weighed = graph.node("Mul", means, graph.constant(tables.priors))
    total, *others = graph.split(weighed, [1] * tables.n_sums)
    for part in others:  # as `TargetCoding.at_priors` adds
        total = graph.node("Add", total, part)
    return graph.node("Div", weighed, total)


def _linked(graph: Graph, tables: Tables, sums: str) -> str:
    """Predictions or probabilities f64[N, ...] of sums."""
    node, number = graph.node, graph.constant
    match tables.link:
        case "exp":
            return node("Exp", sums)
        case "isolation":
            shares = node("Div", sums, number(float(tables.length)))
            return node("Neg", node("Pow", number(2.0), node("Neg", shares)))
        case "softmax":
            return node("Softmax", sums, axis=1)
        case "logistic":
            power = node("Exp", node("Neg", sums))
            second = node("Div", number(1.0), node("Add", number(1.0), power))
            return node("Concat", node("Sub", number(1.0), second), second, axis=1)
        case "votes":  # the probabilities of AdaBoost, see `AdaBoostClassifier.predict_proba`
            K = tables.n_sums
            if K == 2:
                first, second = graph.split(sums, [1, 1])
                less = node("Sub", second, first)
                decisions = node("Concat", node("Neg", less), less, axis=1)
            else:
                decisions = node("Sub", node("Mul", sums, number(float(K))), number(1.0))
                decisions = node("Div", decisions, number(float(max(K - 1, 1) ** 2)))
            return node("Softmax", decisions, axis=1)
    return sums


def _labels(graph: Graph, tables: Tables, decided: str, labels: np.ndarray) -> str:
    """The labels [N] that sums decide."""
    if tables.link == "logistic":
        above = graph.node("Greater", decided, graph.constant(0.0))
        best = graph.cast(graph.reshape(above, -1), np.int64)
    else:
        best = graph.node("ArgMax", decided, axis=1, keepdims=0)  # the first among equals
    return graph.node("Gather", graph.constant(labels), best, axis=0)


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


def _inputs(graph: Graph, tables: Tables) -> tuple[list[Any], str]:
    """What a model takes, as onnx's descriptions, and the codes and numbers [N, F] of it."""
    known, n, dtype = tables.edges.known, tables.n_features, graph.dtype
    categories = {f: categories_of(of_feature) for f, of_feature in known.items()}
    if not any(map(is_text, categories.values())):
        inputs = [graph.info("X", dtype, "rows", n)]
        if not categories:
            return inputs, "X"
        columns = graph.split("X", [1] * n)
    else:
        columns, text = tables.names, np.dtype(object)
        views.refuse_twice(columns, "each is an input")
        kinds = [text if is_text(categories.get(f, ())) else dtype for f in range(n)]
        inputs = [graph.info(*pair, "rows", 1) for pair in zip(columns, kinds, strict=True)]
    parts = [_codes(graph, c, known[f]) if f in known else c for f, c in enumerate(columns)]
    return inputs, graph.node("Concat", *parts, axis=1)


def _codes(graph: Graph, column: str, known: Any) -> str:
    """The codes [N, 1] of a column of categories, or the numbers of a statistic: NaN is missing,
    and others have the last number."""
    keys = list(categories_of(known))
    text, numbers = is_text(tuple(keys)), map(float, getattr(known, "values", range(len(keys) + 1)))
    *values, other = numbers
    missing = "" if text else np.nan
    if missing not in keys:
        keys.append(missing)
        values.append(np.nan)
    if not text:  # categories are numbers of 64 bits
        column = graph.cast(column, np.float64)
    codes = graph.node(
        "LabelEncoder",
        column,
        domain=ML,
        keys_tensor=graph.tensor(np.array(keys, object if text else np.float64)),
        values_tensor=graph.tensor(values),
        default_tensor=graph.tensor([other]),
    )
    return graph.in_dtype(codes)


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
    if len(tables.classes) > 1 or tables.edges.known:
        what = "categories" if tables.edges.known else "several outputs"
        raise ValueError(
            f"skl2onnx does not convert {what} of gpuforest's estimators: use estimator.to_onnx()"
        )
    x, kind = operator.inputs[0].full_name, type(operator.inputs[0].type).__name__
    dtype = np.float32 if kind == "FloatTensorType" else np.float64
    graph = Graph(scope.get_unique_operator_name("gpuforest") + "_", dtype, SKL2ONNX_VERSION)
    if kind not in ("FloatTensorType", "DoubleTensorType"):
        x = graph.cast(x, dtype)
    results = add_model(graph, tables, x)
    for (value, info), output in zip(results, operator.outputs, strict=True):
        # the type and the shape that a pipeline has for it
        if wanted := DTYPES_THERE.get(type(output.type).__name__):
            value = graph.cast(value, wanted)
        if info.name == "prediction" and len(info.type.tensor_type.shape.dim) == 1:
            value = graph.reshape(value, -1, 1)
        graph.give(value, output.full_name)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= set(graph.opsets.items())
