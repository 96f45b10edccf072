"""The trees of a model as the tree ensembles of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuforest.export.model_tables import Tables
from gpuforest.export.onnx_graph import ML, Graph, Tensor

LEQ, MEMBER = 0, 6  # of nodes_modes, in version 5
MOST_WHOLE = 2**24  # whole numbers up to here are float32 numbers


def add_trees(graph: Graph, tables: Tables, x: str, dtype: np.dtype[Any], ml_version: int) -> str:
    """Add the trees to a graph: the row of `values` that each leads to, i64[N, T].

    x : the name of the codes and numbers [N, F], of the dtype

    Raises
    ------
    ValueError : categories in version 3; more rows than float32 has whole numbers
    """
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
    found = graph.node(kind, x, domain=ML, n_targets=tables.n_trees, **attributes)
    return graph.node("Cast", found, to=graph.onnx.TensorProto.INT64)


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
    found = {
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
    weights = tables.leaf[leaf].astype(dtype)
    if dtype == np.float32:
        return {**found, "nodes_values": threshold, "target_weights": weights}
    more = {"nodes_values": threshold, "target_weights": weights}
    return {**found, **{f"{name}_as_tensor": Tensor(own) for name, own in more.items()}}
