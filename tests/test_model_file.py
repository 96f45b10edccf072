"""Model files: the same predictions after a round trip, and nothing else is believed."""

import copy
import json
import os
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save, save_file
from sklearn.datasets import load_diabetes, load_iris

import gpuforest
from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ModelFormatError,
    RandomForestClassifier,
    RandomForestRegressor,
    container,
    model_file,
    validate,
)
from gpuforest.nodes import CHILD_SHIFT, LEAF_MASK, LEAF_WORD, is_leaf, pack_splits

KINDS = [
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
]


def fitted(kind=RandomForestClassifier, backend="numpy", labels=None, **params):
    X, y = load_iris(return_X_y=True)
    if kind in KINDS[2:]:
        params["n_estimators"] = 4
    model = kind(random_state=0, backend=backend, **params)
    return model.fit(X, y if labels is None else np.asarray(labels)[y]), X


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(backend, kind, tmp_path):
    model, X = fitted(kind, backend, max_depth=4, min_samples_leaf=0.01)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    model.save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model").set_params(backend=backend)
    assert type(other) is kind
    assert other.get_params() == model.get_params()
    assert np.array_equal(other.predict(X), model.predict(X))
    assert np.array_equal(other.apply(X), model.apply(X))
    assert np.array_equal(other.feature_importances_, model.feature_importances_)
    if hasattr(model, "classes_"):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        assert other.n_classes_ == 3
    assert (other.seed_, other.criterion_, other.n_features_in_) == (0, model.criterion_, 4)
    assert not hasattr(other, "feature_names_in_")
    other.save(str(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "ü", "zzz"],
        np.array(["b", "c", "a"], dtype=object),
        [-1, 2**40, 7],
        np.array([1, 2, 3], dtype=">i2"),
        [0.5, 1.5, 2.5],
        [False, True, True],
    ],
)
def test_labels(labels, tmp_path):
    labels = np.asarray(labels)
    if labels.dtype.kind == "f":
        labels = labels * 2
    model, X = fitted(DecisionTreeClassifier, labels=labels)
    model.save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    assert other.classes_.dtype.kind == model.classes_.dtype.kind
    assert np.array_equal(other.predict(X), model.predict(X))


def test_labels_that_cannot_be_saved(tmp_path):
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")
    model, _ = fitted(DecisionTreeClassifier, labels=days)
    with pytest.raises(ValueError, match="pickle"):
        model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_names_scores_and_states(tmp_path):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    state = np.random.RandomState(3)
    model = RandomForestRegressor(30, oob_score=True, random_state=state, backend="numba", n_jobs=1)
    model.fit(X, y).save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    assert other.feature_names_in_.tolist() == list(X.columns)
    assert other.oob_score_ == model.oob_score_
    assert not hasattr(other, "oob_prediction_")
    assert (other.random_state, other.backend, other.n_jobs) == (model.seed_, "auto", None)
    assert np.array_equal(other.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="same order"):
        other.predict(X[X.columns[::-1]])
    assert isinstance(X, pd.DataFrame)


def test_many_bins_and_no_edges(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = DecisionTreeRegressor(max_bins=1000, backend="numpy").fit(X, y)
    model.save(tmp_path / "model")
    assert np.array_equal(gpuforest.load(tmp_path / "model").predict(X), model.predict(X))
    constant = DecisionTreeClassifier(backend="numpy").fit(np.ones((5, 2)), [1, 1, 1, 0, 0])
    constant.save(tmp_path / "model")
    assert gpuforest.load(tmp_path / "model").predict([[1, 2]]).tolist() == [1]


def test_cut_files(tmp_path):
    fitted()[0].save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for size in (*range(0, 64, 7), *range(64, len(whole), 211), len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        with pytest.raises(ModelFormatError, match="cut"):
            gpuforest.load(tmp_path / "cut")


def test_flipped_bits(tmp_path):
    fitted()[0].save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    rng = np.random.default_rng(0)
    places = rng.integers(0, len(whole), 400)
    for place, bit in zip(places, rng.integers(0, 8, 400), strict=True):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << bit
        (tmp_path / "flipped").write_bytes(damaged)
        with pytest.raises(ModelFormatError):
            gpuforest.load(tmp_path / "flipped")


def test_foreign_files(tmp_path):
    path = tmp_path / "file"
    for content in (b"", b"hello", b"\x80\x04K\x01.", b"\xff" * 500, b"{}" * 100):
        path.write_bytes(content)
        with pytest.raises(ModelFormatError, match="file"):
            gpuforest.load(path)
    save_file({"nodes": np.zeros(3)}, path)
    with pytest.raises(ModelFormatError, match="not written by gpuforest"):
        gpuforest.load(path)
    with pytest.raises(FileNotFoundError):
        gpuforest.load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        gpuforest.load(tmp_path)


def test_newer_version(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "VERSION", 2)
    fitted()[0].save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ModelFormatError, match=r"newer gpuforest .format version 2"):
        gpuforest.load(tmp_path / "model")


def test_files_are_those_that_safetensors_writes(tmp_path):
    fitted()[0].save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    text, arrays = container.read(tmp_path / "model", model_file.ARRAYS)
    assert arrays.keys() == load_file(tmp_path / "model").keys()
    metadata = {"gpuforest": f"{container.VERSION} {container.checksum(text, arrays)} {text}"}
    assert whole == save(arrays, metadata)


def test_every_dtype_is_written_as_safetensors_does(tmp_path):
    arrays = {str(i): np.ones((i, 2), dtype) for i, dtype in enumerate(container.DTYPES.values())}
    container.write(tmp_path / "model", "text", arrays)
    told = f"{container.VERSION} {container.checksum('text', arrays)} text"
    assert (tmp_path / "model").read_bytes() == save(arrays, {"gpuforest": told})


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads create files too"))
    fitted()[0].save(tmp_path / "model")


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


def save_tampered(model, path, forest=None, **header):
    """A file whose checksum is right, of another forest or with another header."""
    text, arrays = container.read(path, model_file.ARRAYS)
    told = json.loads(text) | header
    if forest is not None:
        for name in ("leaves", "leaf_weights"):
            arrays.pop(name, None)
        arrays = arrays | {
            **packed(forest),
            "tree_offsets": forest.tree_offsets,
            "edge_values": forest.edges.values,
            "edge_offsets": forest.edges.offsets,
            "edge_kinds": forest.edges.kinds,
            "centre": forest.coding.centre,
        }
        if isinstance(forest.coding.classes, np.ndarray):
            arrays["classes"] = forest.coding.classes
        told["scale"] = forest.coding.scale
    container.write(path, json.dumps(told), arrays)


def change(array, place, value):
    array = array.copy()
    array[place] = value
    return array


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


def refuses(read, *args):
    try:
        read(*args)
    except ModelFormatError:
        return True
    return False


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


@pytest.mark.parametrize(
    "header",
    [
        {"estimator": "Exploit"},
        {"estimator": "RandomForestRegressor"},
        {"estimator": "DecisionTreeClassifier"},
        {"estimator": ["RandomForestClassifier"]},
        {"parameters": {"n_estimators": -1}},
        {"parameters": {"unknown": 1}},
        {"parameters": [1, 2]},
        {"criterion": "squared_error"},
        {"criterion": {}},
        {"seed": "0"},
        {"seed": -1},
        {"scale": "big"},
        {"feature_names": ["a"]},
        {"feature_names": [1, 2, 3, 4]},
        {"feature_names": 4},
        {"classes": ["a", "b"], "classes_dtype": "str"},
        {"classes": [1, 2, 3], "classes_dtype": "object"},
        {"classes": "abc", "classes_dtype": "str"},
        {"oob_score": "good"},
        {"oob_curve": [1, 2]},
        {"oob_curve": {"n_estimators": [1, 2]}},
        {"oob_curve": {"n_estimators": [1, 2], "error": [0.5]}},
        {"oob_curve": {"n_estimators": [2, 1], "error": [0.5, 0.5]}},
        {"oob_curve": {"n_estimators": [1, 2], "error": [0.5, "good"]}},
        {"oob_max_features": {"n_estimators": [1], "error": [0.5]}},
        {"source": ["target"]},
        {"source": {"target": "y", "quotes": "'"}},
        {"source": {"target": ["a", "b"]}},
        {"source": {"decimal": [","]}},
        {"source": {"dates": "when"}},
        {"source": {"missing": [1]}},
        {"parameters": {"backend": "numpy"}},
        {"parameters": {"n_jobs": 1}},
        {"parameters": {"class_weight": {"pairs": [[0, 1], [0, 2]]}}},
        {"parameters": {"class_weight": {"pairs": ["ab"]}}},
        {"parameters": {"class_weight": {"pairs": [], "more": 1}}},
        {"seed": True},
        {"seed": 2**64},
        {"scale": 1},
        {"scale": float("nan")},
        {"unknown": 1},
    ],
)
def test_headers_that_cannot_have_been_written(header, tmp_path):
    model, _ = fitted()
    model.save(tmp_path / "model")
    save_tampered(model, tmp_path / "model", **header)
    with pytest.raises(ModelFormatError, match="model"):
        gpuforest.load(tmp_path / "model")


@pytest.mark.parametrize("key", ["estimator", "parameters", "seed", "criterion", "scale"])
def test_a_header_key_that_is_missing_or_comes_twice(key, tmp_path):
    fitted()[0].save(tmp_path / "model")
    text, arrays = container.read(tmp_path / "model", model_file.ARRAYS)
    header = json.loads(text)
    twice = text[:-1] + f", {json.dumps(key)}: {json.dumps(header[key])}}}"
    for changed in (json.dumps({k: v for k, v in header.items() if k != key}), twice):
        container.write(tmp_path / "changed", changed, arrays)
        with pytest.raises(ModelFormatError, match=f"no header key '{key}'|twice"):
            gpuforest.load(tmp_path / "changed")


def write_raw(path, header, data):
    """A safetensors file of this header, a dict or a text."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def raw_headers(header):
    """What safetensors' header must not be, by what is said of it."""

    def entry(name, **changes):
        return header | {name: header[name] | changes}

    def metadata(text):
        return header | {"__metadata__": {"gpuforest": text}}

    text = json.dumps(header)
    told = header["__metadata__"]["gpuforest"]
    last = max(header.keys() - {"__metadata__"}, key=lambda name: header[name]["data_offsets"])
    (begin, end), (size,) = header["splits"]["data_offsets"], header["splits"]["shape"]
    yield "twice", text[:-1] + ', "splits": {}}'
    yield "twice", text.replace('"dtype"', '"dtype": "U8", "dtype"', 1)
    yield "no JSON object", "[]"
    yield "RecursionError", "[" * 100_000
    yield "ValueError", "9" * 5000
    yield "JSONDecodeError", text[:-1]
    yield "unknown array", {**header, "more": header["splits"]}
    yield "not described", entry("splits", more=1)
    yield "not described", header | {"splits": {}}
    yield "another dtype", entry("splits", dtype="I64")
    yield "another dtype", entry("splits", dtype="BF16")
    yield "another shape", entry("splits", shape=[size, 1])
    yield "another shape", entry("splits", shape=[-size])
    yield "another shape", entry("splits", shape=[True])
    yield "another shape", entry("splits", shape=[10**400])
    yield "another shape", entry("leaf_sums", shape=[2**62] * 1000)
    yield "fit its place", entry("splits", shape=[2**62])
    yield "fit its place", entry("splits", data_offsets=[end, begin])
    yield "from nowhere", entry("splits", data_offsets=[begin, end, end])
    yield "from nowhere", entry("splits", data_offsets=[begin, float("inf")])
    yield "one behind another", entry("splits", data_offsets=[begin + 8, end + 8])
    yield "longer than its", {name: header[name] for name in header if name != last}
    yield "not written by gpuforest", header | {"__metadata__": {}}
    yield "not written by gpuforest", header | {"__metadata__": {"gpuforest": 1}}
    yield "not gpuforest's", header | {"__metadata__": {"gpuforest": told, "more": ""}}
    yield "not gpuforest's", metadata("0" + told[1:])
    yield "not gpuforest's", metadata("-" + told)
    yield "not gpuforest's", metadata("1")
    yield "newer", metadata("2 0 {}")
    yield "checksum", metadata("1 0 {}")


def test_safetensors_headers_that_cannot_have_been_written(tmp_path):
    fitted()[0].save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    begin = 8 + int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8:begin]), whole[begin:]
    for why, changed in raw_headers(header):
        write_raw(tmp_path / "raw", changed, data)
        with pytest.raises(ModelFormatError, match=why):
            gpuforest.load(tmp_path / "raw")
    write_raw(tmp_path / "raw", header, data)  # the helper itself breaks nothing
    assert gpuforest.load(tmp_path / "raw").n_features_in_ == 4


@pytest.mark.parametrize("size", [1, 2, 7])
def test_forests_are_checked_the_same_in_blocks_of_any_size(size, monkeypatch):
    monkeypatch.setattr(validate, "BLOCK_NODES", size)
    forest = fitted()[0].forest_
    validate.check_forest(forest)
    for name, other in tampered_forests(forest):
        assert other is None or refuses(validate.check_forest, other), name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFormatError, match="pipe"):
        gpuforest.load(tmp_path / "pipe")


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_copies_and_pickles_predict_the_same(kind):
    model, X = fitted(kind)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(X), model.predict(X))


def test_the_longest_text(tmp_path, monkeypatch):
    model, _ = fitted(labels=["a", "ü", "z" * 1000])
    model.save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    limit = int.from_bytes(whole[:8], "little")
    monkeypatch.setattr(container, "MAX_HEADER", limit)
    assert gpuforest.load(tmp_path / "model").n_classes_ == 3
    monkeypatch.setattr(container, "MAX_HEADER", limit - 1)
    with pytest.raises(ModelFormatError, match="a header of more than"):
        gpuforest.load(tmp_path / "model")
    with pytest.raises(ValueError, match="pickle the estimator instead"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == whole


def test_small(tmp_path):
    """A model of classes takes little more than eight bytes a node."""
    X = np.random.default_rng(0).random((3000, 5))
    model = RandomForestClassifier(10, random_state=0).fit(X, X[:, 0] + X[:, 1] > X[:, 2])
    model.save(tmp_path / "model")
    forest = model.forest_
    edges = 16 * len(forest.edges.values)
    assert (tmp_path / "model").stat().st_size < 8.1 * forest.n_nodes + edges + 4000
