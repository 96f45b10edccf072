"""Our estimators in pipelines that skl2onnx converts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.export.model_tables import tables_of
from gpuforest.export.onnx import OPSETS, Result, add_model
from gpuforest.export.onnx_graph import Graph

NOT_OURS = ("decision_leaf", "decision_path", "nocl", "output_class_labels", "raw_scores")
ML_VERSION = 3  # skl2onnx has no newer one


def convert(scope: Any, operator: Any, container: Any) -> None:
    """Add an estimator to a graph of skl2onnx: a converter as that package wants it.

    Raises
    ------
    ValueError : what `to_onnx` refuses; an option or a kind of result that is not written
    """
    estimator = operator.raw_operator
    given = container.get_options(estimator, {}, fail=False)
    if unknown := [name for name in NOT_OURS if given.get(name)]:
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
    results = add_model(graph, tables, *_numbers(graph, operator.inputs[0]), ML_VERSION)
    for result, output in zip(results, operator.outputs, strict=True):
        _give(graph, result, output)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.constants)
    container.node_domain_version_pair_sets |= set(OPSETS[ML_VERSION].items())


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
