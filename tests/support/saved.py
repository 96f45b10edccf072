"""Small fitted models of the four kinds that most are, to be saved, and files that were changed."""

import json

import numpy as np
from sklearn.datasets import load_iris

import gpuforest
from gpuforest.core.nodes import LEAF_MASK, is_leaf
from gpuforest.export import container, model_file

KINDS = [
    gpuforest.DecisionTreeClassifier, gpuforest.DecisionTreeRegressor,
    gpuforest.RandomForestClassifier, gpuforest.RandomForestRegressor,
]  # fmt: skip


def fitted(kind=gpuforest.RandomForestClassifier, backend="numpy", labels=None, **params):
    X, y = load_iris(return_X_y=True)
    if kind in KINDS[2:]:
        params["n_estimators"] = 4
    model = kind(random_state=0, backend=backend, **params)
    return model.fit(X, y if labels is None else np.asarray(labels)[y]), X


def reloaded(model, folder):
    """The model as a file holds it."""
    model.save(folder / "model")
    return gpuforest.load(folder / "model")


def save_tampered(model, path, forest=None, **header):
    """A file whose checksum is right, of another forest or with another header."""
    text, arrays = container.read(path, model_file.ARRAYS)
    header_text = json.loads(text) | header
    if forest is not None:
        for name in ("leaves", "leaf_weights"):
            arrays.pop(name, None)
        arrays |= packed(forest) | {
            "tree_offsets": forest.tree_offsets, "centre": forest.coding.centre,
            "edge_values": forest.edges.values, "edge_offsets": forest.edges.offsets,
            "edge_kinds": forest.edges.kinds,
        }  # fmt: skip
        if isinstance(forest.coding.classes, np.ndarray):
            arrays["classes"] = forest.coding.classes
        header_text["scale"] = forest.coding.scale
    container.write(path, json.dumps(header_text), arrays)


def change(array, index, value):
    array = array.copy()
    array[index] = value
    return array


def refuses(read, *args):
    try:
        read(*args)
    except gpuforest.ModelFormatError:
        return True
    return False


def packed(forest):
    """As the module's own, of arrays that are no forest's."""
    nodes, sums = forest.nodes, forest.leaf_sums
    leaf = is_leaf(nodes.reshape(-1).astype(np.uint64))
    rows = nodes[leaf].astype(np.uint64) & np.uint64(LEAF_MASK)
    arrays = {"is_leaf": np.packbits(leaf), "splits": nodes[~leaf], "leaves": rows.reshape(-1)}
    if forest.coding.classes is not None:
        return {**arrays, "leaf_sums": sums}
    weights, moments = (sums[:, 0], sums[:, 1:]) if sums.ndim == 2 else (sums, sums)
    return {**arrays, "leaf_weights": weights, "leaf_sums": moments}
