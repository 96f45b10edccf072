"""Forests that cannot have been grown are refused, in files, in pickles and block by block."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from saved import change, fitted, refuses, save_tampered

import gpuforest
from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.core import forest as validate
from gpuforest.core.nodes import CHILD_SHIFT, LEAF_WORD, is_leaf, pack_splits
from gpuforest.export import container, model_file


def tampered_forests(forest):
    """What a forest must not be, by name."""
    nodes, offsets, sums = forest.nodes, forest.tree_offsets, forest.leaf_sums
    leaf, split = np.flatnonzero(is_leaf(nodes))[0], np.flatnonzero(~is_leaf(nodes))[0]
    edges, coding, word = forest.edges, forest.coding, int(nodes[split])
    child = (word >> CHILD_SHIFT) & (2**30 - 1)
    below = np.uint64((2**30 - 1) << CHILD_SHIFT)
    no_child = word - (child << CHILD_SHIFT)

    def node(at, value):
        return replace(forest, nodes=change(nodes, at, np.asarray(value, np.uint64)))

    def with_edges(**fields):
        return replace(forest, edges=replace(edges, **fields))

    def with_coding(**fields):
        return replace(forest, coding=replace(coding, **fields))

    far = pack_splits(np, np.array([4]), np.array([0]), np.array([False]))[0]
    high = pack_splits(np, np.array([0]), edges.n_bins[:1].astype(int), np.array([False]))[0]
    yield "feature", node(split, int(far) + (child << CHILD_SHIFT))
    yield "bin", node(split, int(high) + (child << CHILD_SHIFT))
    yield "leaf row", node(leaf, LEAF_WORD + len(sums))
    yield "leaf far", node(leaf, LEAF_WORD + 2**40)
    yield "child is itself", node(split, no_child)
    yield "child outside", node(split, no_child + (int(offsets[1] - 1) << CHILD_SHIFT))
    yield "child of another", node(split, no_child + ((child + 1) << CHILD_SHIFT))
    both = np.flatnonzero(~is_leaf(nodes))[:2]  # the second below the first: a cycle apart
    yield "children exchanged", node(both, nodes[both] ^ np.bitwise_xor.reduce(nodes[both] & below))
    yield "leaf for split", node(split, LEAF_WORD)
    yield "nodes missing", replace(forest, nodes=nodes[:-1])
    yield "nodes' dtype", replace(forest, nodes=nodes.astype(np.int64))
    yield "nodes' shape", replace(forest, nodes=nodes[:, None])
    yield "offsets' first", replace(forest, tree_offsets=change(offsets, 0, 1))
    yield "offsets' last", replace(forest, tree_offsets=change(offsets, -1, len(nodes) + 5))
    yield "offsets descend", replace(forest, tree_offsets=change(offsets, 1, -3))
    yield "offsets' dtype", replace(forest, tree_offsets=offsets.astype(np.int32))
    yield "an empty tree", replace(forest, tree_offsets=np.append(offsets, offsets[-1]))
    yield "no trees", replace(forest, tree_offsets=offsets[:1])
    yield "leaf table's width", replace(forest, leaf_sums=sums[:, :-1])
    yield "leaf table's shape", replace(forest, leaf_sums=sums[:, 0])
    yield "leaf table's rows", replace(forest, leaf_sums=sums[:1])
    yield "no leaf table", replace(forest, leaf_sums=sums[:0])
    yield "leaf of no weight", replace(forest, leaf_sums=change(sums, 0, 0))
    yield "leaf of floats", replace(forest, leaf_sums=sums.astype(float))
    yield "leaf too heavy", replace(forest, leaf_sums=change(sums, 0, 2**31))
    yield "edges descend", with_edges(values=edges.values[::-1])
    yield "edge NaN", with_edges(values=change(edges.values, 0, np.nan))
    yield "edge infinite", with_edges(values=change(edges.values, -1, np.inf))
    yield "edges' dtype", with_edges(values=edges.values.astype(np.float32))
    yield "edges' offsets", with_edges(offsets=change(edges.offsets, 1, 10**6))
    yield "edges too few", with_edges(values=edges.values[:-1])
    yield "edges' features", with_edges(offsets=edges.offsets[[0, -1]])
    yield "edges' kinds", with_edges(kinds=change(edges.kinds, 0, 1))
    yield "no kinds", with_edges(kinds=edges.kinds[:0])
    yield "a scale of zero", with_coding(scale=0.0) if coding.classes is None else None
    yield "a scale of NaN", with_coding(scale=float("nan")) if coding.classes is None else None
    yield "centre NaN", with_coding(centre=np.array([np.nan])) if coding.classes is None else None
    yield "centre's shape", with_coding(centre=np.zeros(2))
    if coding.classes is not None:
        yield "classes descend", with_coding(classes=coding.classes[::-1])
        yield "classes too few", with_coding(classes=coding.classes[:-1])
        yield "rows below zero", replace(forest, leaf_sums=change(sums, (0, 0), -1))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_forests_that_cannot_have_been_grown(kind, tmp_path):
    path = tmp_path / "model"
    model, X = fitted(kind)
    tried = 0
    for name, forest in tampered_forests(model.forest_):
        if forest is None:
            continue
        model.save(path)
        save_tampered(model, path, forest)
        assert refuses(gpuforest.load, path), f"a file with wrong {name} was read"
        assert refuses(pickle.loads, pickle.dumps(forest)), f"a pickle with wrong {name} was read"
        tried += 1
    assert tried >= 34
    model.save(path)
    save_tampered(model, path, model.forest_)  # the helper itself breaks nothing
    assert np.array_equal(gpuforest.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("size", [1, 2, 7])
def test_forests_are_checked_the_same_in_blocks_of_any_size(size, monkeypatch):
    monkeypatch.setattr(validate, "BLOCK_NODES", size)
    forest = fitted()[0].forest_
    validate.check_forest(forest)
    for name, other in tampered_forests(forest):
        assert other is None or refuses(validate.check_forest, other), name


def boosted_forests(forest):
    """What a forest of boosted trees must not be, by name."""
    weights, nodes = forest.tree_weights, forest.nodes
    for name, wrong in (
        ("too few weights", weights[:-1]),
        ("weights' shape", weights[:, None]),
        ("weights' dtype", weights.astype(np.float32)),
        ("a weight below zero", change(weights, 0, -1.0)),
        ("a weight that is NaN", change(weights, 0, np.nan)),
        ("weights of an infinite sum", np.full_like(weights, 1e308)),
        ("no weights", None if forest.combine == "median" else weights * 0),
    ):
        yield name, replace(forest, tree_weights=wrong)
    yield "another way to combine", replace(forest, combine="mean")
    if forest.combine == "votes":
        leaf = np.flatnonzero(is_leaf(nodes))[0]
        yield "a leaf of two trees", replace(forest, nodes=change(nodes, leaf, nodes[-1]))


@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_gradient_boosting_that_cannot_have_been_trained(kind, tmp_path):
    boosting = getattr(gpuforest, f"HistGradientBoosting{kind}")
    model = boosting(max_iter=3, min_samples_leaf=3, random_state=0, backend="numpy")
    X = np.arange(24.0)[:, None]
    path = tmp_path / "model"
    model.fit(X, X[:, 0] > 11).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    one_class = {"classes": np.zeros(1)} if kind == "Classifier" else {}
    values = arrays["leaf_values"]
    for changes in ({"leaf_values": None}, {"leaf_values": -values, "units": None}, one_class):
        if changes:
            changed = {n: a for n, a in (arrays | changes).items() if a is not None}
            container.write(path, text, changed)
            assert refuses(gpuforest.load, path), changes
    model.save(path)
    save_tampered(model, path, combine="mean")
    assert refuses(gpuforest.load, path)
    model.fit(X, np.zeros(24)).save(path)  # a single class is allowed
    assert np.array_equal(gpuforest.load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("kind", [gpuforest.AdaBoostClassifier, gpuforest.AdaBoostRegressor])
def test_boosted_forests_that_cannot_have_been_grown(kind, tmp_path):
    model, X = fitted(kind, n_estimators=4)
    validate.check_forest(model.forest_)
    for name, forest in boosted_forests(model.forest_):
        assert refuses(validate.check_forest, forest), name
    path = tmp_path / "model"
    model.save(path)
    for header in ({"combine": "mean"}, {"combine": "sum"}, {"estimator": "BaggingClassifier"}):
        save_tampered(model, path, **header)
        assert refuses(gpuforest.load, path), header
        model.save(path)
    for name, wrong in (("tree_errors", [2.0] * 4), ("tree_errors", [0.0]), ("tree_weights", [])):
        text, arrays = container.read(path, model_file.ARRAYS)
        container.write(path, text, arrays | {name: np.array(wrong)})
        assert refuses(gpuforest.load, path), (name, wrong)
        model.save(path)
    assert np.array_equal(gpuforest.load(path).predict(X), model.predict(X))
