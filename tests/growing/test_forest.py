"""Packed nodes, and a forest made by hand: its levels, depths, sums, values and sets; forests that
cannot have been grown are refused, in files, in pickles and block by block."""

import pickle
from dataclasses import replace

import array_api_compat.numpy as xp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from saved import change, fitted, refuses, save_tampered

import gpuforest
from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core import forest as module
from gpuforest.core.bins import BinEdges
from gpuforest.core.forest import Forest, check_forest, joined, tree_groups
from gpuforest.core.nodes import (
    CHILD_SHIFT,
    LEAF_WORD,
    SET_BIN,
    has_set,
    is_leaf,
    leaf_rows,
    pack_splits,
    unpack,
    words_of,
)
from gpuforest.core.target import TargetCoding
from gpuforest.explain.paths import one_tree
from gpuforest.export import container, model_file
from gpuforest.growing.predict import predict


def split(feature, bin, child):
    word = pack_splits(xp, *(np.array([v]) for v in (feature, bin, False)))[0]
    return int(word) + (child << CHILD_SHIFT)


def leaf(row):
    return LEAF_WORD + row


def by_hand() -> Forest:
    """Two trees of three classes: one of two splits in a row, and one of a leaf alone.

    0 -- 1 (leaf 0)
      \\- 2 -- 3 (leaf 1)         5 (leaf 2)
           \\- 4 (leaf 0)
    """
    nodes = [split(0, 0, 1), leaf(0), split(0, 1, 3), leaf(1), leaf(0), leaf(2)]
    return Forest(
        nodes=np.array(nodes, np.uint64),
        tree_offsets=np.array([0, 5, 6]),
        leaf_sums=np.array([[4, 0, 0], [0, 1, 3], [2, 2, 0]]),
        edges=BinEdges.of([np.array([1.5, 2.5])]),
        coding=TargetCoding(np.arange(3), np.zeros(1), 1.0),
        seed=0,
    )


def test_levels_are_nodes_by_depth():
    forest = by_hand()
    assert [level.tolist() for level in forest.levels()] == [[0, 5], [1, 2], [3, 4]]
    assert [level.tolist() for level in forest.levels(1)] == [[5]]
    assert (forest.depth, forest.n_trees, forest.n_nodes) == (2, 2, 6)


def test_the_links_of_a_chain_are_one_level():
    edges = BinEdges.of([np.arange(2.0)], {0: ("a", "b")})
    nodes = by_hand().nodes.copy()
    nodes[0], nodes[2] = split(0, SET_BIN, 1), split(0, SET_BIN, 3)
    chain = replace(by_hand(), nodes=nodes, edges=edges, sets=np.array([1, 2], np.uint64))
    assert chain.set_at[[0, 2]].tolist() == [0, 1]
    assert chain.depth == 2
    assert replace(chain, multiway=True).depth == 1


def test_a_pickle_holds_what_is_not_derived():
    forest = by_hand()
    assert forest.values.any()
    again = pickle.loads(pickle.dumps(forest))
    assert "values" not in vars(again)
    assert np.array_equal(again.nodes, forest.nodes)
    assert np.array_equal(again.values, forest.values)


def test_groups_of_trees_are_small_and_hold_each_tree_once(monkeypatch):
    assert tree_groups(by_hand()) == [(0, 2)]
    monkeypatch.setattr(module, "GROUP_VALUES", 1)
    assert tree_groups(by_hand()) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("multiway", [False, True])
def test_trees_that_are_joined(multiway):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 6, (200, 3)), rng.integers(0, 3, 200)
    model = RandomForestClassifier(
        4,
        categorical_features=[0, 1],
        categorical_split="multiway" if multiway else "subset",
        random_state=0,
        backend="numpy",
    ).fit(X, y)
    whole = model.forest_
    again = joined([one_tree(whole, t) for t in range(4)])
    check_forest(again)
    assert len(again.leaf_sums) == 4 * len(whole.leaf_sums)
    assert np.array_equal(again.sets, whole.sets)
    assert np.array_equal(again.node_sums(0, 4), whole.node_sums(0, 4))
    assert again.multiway == whole.multiway
    assert np.array_equal(predict(again, X, NumpyBackend()), predict(whole, X, NumpyBackend()))
    # votes of trees of different weights
    weights = np.array([0.5, 0.0, 2.0, 1.5])
    boosted = replace(again, combine="votes", tree_weights=weights)
    check_forest(boosted)
    votes = [predict(one_tree(whole, t), X, NumpyBackend()).argmax(axis=1) for t in range(4)]
    shares = [np.average(np.array(votes) == c, axis=0, weights=weights) for c in range(3)]
    assert np.allclose(predict(boosted, X, NumpyBackend()), np.transpose(shares))
    assert boosted.unweighted.tree_weights is None


@given(
    st.integers(0, 2**17 - 2), st.integers(0, 2**16 - 1), st.booleans(), st.integers(0, 2**30 - 1)
)
def test_any_split_comes_back(feature, bin, side, child):
    word = pack_splits(xp, *(np.array([v]) for v in (feature, bin, side)))
    word = word + np.array([child], np.uint64) * np.uint64(2**CHILD_SHIFT)
    assert not is_leaf(word)[0]
    assert [a.tolist() for a in unpack(xp, word)] == [[feature], [bin], [side], [child]]
    assert has_set(word)[0] == (bin == SET_BIN)


def test_leaves_point_at_rows_of_the_table():
    leaves = np.array([0, 3, 2**47 - 1], np.uint64) + np.uint64(LEAF_WORD)
    assert is_leaf(leaves).all()
    assert leaf_rows(leaves).tolist() == unpack(xp, leaves)[3].tolist() == [0, 3, 2**47 - 1]
    assert unpack(xp, leaves)[0].tolist() == [-1, -1, -1]
    assert not has_set(leaves).any()  # though all bits of their bin may be one


def test_sets_take_the_words_of_their_features():
    # two words for feature 0, one for feature 2, and none for the number 1
    feature, bin = np.array([0, 1, 2, 0]), np.array([SET_BIN, 4, SET_BIN, SET_BIN])
    nodes = pack_splits(xp, feature, bin, np.zeros(4, bool))
    nodes = np.insert(nodes, 2, np.uint64(LEAF_WORD))
    assert words_of(xp, nodes, np.array([2, 0, 1]), False).tolist() == [2, 0, 0, 1, 2]


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
    monkeypatch.setattr(module, "BLOCK_NODES", size)
    forest = fitted()[0].forest_
    check_forest(forest)
    for name, other in tampered_forests(forest):
        assert other is None or refuses(check_forest, other), name


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
    check_forest(model.forest_)
    for name, forest in boosted_forests(model.forest_):
        assert refuses(check_forest, forest), name
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
