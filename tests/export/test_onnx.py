"""ONNX models: the same numbers as ours, on every side of every threshold, and by proof."""

from itertools import product

import numpy as np
import pytest
from exported import (
    BY_EXPONENTIALS,
    CATEGORICAL,
    KINDS,
    categorical,
    category_frame,
    edge_rows,
    model,
    unseen_frame,
)

import gpuforest as gf
from gpuforest.engine.nodes import has_set, leaf_rows, unpack

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

DTYPES = {"float32": np.float32, "float64": np.float64}


def run(graph, feeds):
    """What ONNX Runtime predicts."""
    onnx.checker.check_model(graph, full_check=True)
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = session.run(None, feeds)
    return dict(zip([o.name for o in session.get_outputs()], found, strict=True))


def expected(fitted, rows):
    """The outputs as ours predicts them: labels, probabilities and numbers by name."""
    if hasattr(fitted, "score_samples"):
        return {"score_samples": fitted.score_samples(rows)}
    if not hasattr(fitted, "classes_"):
        return {"prediction": fitted.predict(rows)}
    labels, shares = fitted.predict(rows), fitted.predict_proba(rows)
    if not isinstance(shares, list):
        return {"label": labels, "probabilities": shares}
    found = {f"label_{i}": labels[:, i] for i in range(len(shares))}
    return {**found, **{f"probabilities_{i}": own for i, own in enumerate(shares)}}


def check(found, wanted, dtype, by_exponentials):
    """Labels are equal; numbers too, in the model's dtype, but for exponentials."""
    assert found.keys() == wanted.keys()
    for name, own in wanted.items():
        assert found[name].shape == own.shape
        if name.startswith("label"):
            assert found[name].tolist() == own.tolist()
            assert not isinstance(own[0], bool | np.bool_) or found[name].dtype == bool
        elif by_exponentials and dtype == np.float64:
            # exponentials of two libraries differ in the last bits
            assert np.allclose(found[name], own, rtol=1e-12, atol=1e-12)
        elif by_exponentials:
            assert np.allclose(found[name], own, rtol=1e-6, atol=1e-6)  # the same, in 32 bits
        else:
            assert found[name].dtype == dtype
            assert np.array_equal(found[name], own.astype(dtype))


@pytest.mark.parametrize("ml_version", [5, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_equal_at_every_edge(kind, dtype, ml_version):
    fitted, rows = model(kind), edge_rows(model(kind), dtype)
    graph = fitted.to_onnx(dtype=dtype, ml_version=ml_version)
    for some in (rows, rows[:1]):
        answers = run(graph, {"X": some})
        check(answers, expected(fitted, some), DTYPES[dtype], kind in BY_EXPONENTIALS)


def trees_of(graph):
    """The trees of a graph: of each its root, and by key a split (feature, threshold or codes,
    missing goes to the first child, children) or the row of a leaf."""
    node = next(n for n in graph.graph.node if n.op_type.startswith("TreeEnsemble"))
    found = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        is_tensor = hasattr(value, "raw_data")
        own = onnx.numpy_helper.to_array(value) if is_tensor else value
        found[attribute.name.removesuffix("_as_tensor")] = own
    sides = found["nodes_missing_value_tracks_true"]
    if node.op_type == "TreeEnsemble":
        low = found["nodes_splits"].tolist()
        members = np.asarray(found.get("membership_values", ()), np.float64)
        sets = iter(np.split(members, np.flatnonzero(np.isnan(members)) + 1))  # each ends with NaN
        for i, mode in enumerate(found["nodes_modes"].tolist()):
            assert mode in (0, 6)  # x <= threshold, or x in a set
            low[i] = next(sets)[:-1].tolist() if mode == 6 else low[i]
        ways = ("true", "false")
        below = [
            zip(found[f"nodes_{w}leafs"], found[f"nodes_{w}nodeids"], strict=True) for w in ways
        ]
        facts = zip(found["nodes_featureids"], low, sides, *below, strict=True)
        known = {(0, i): fact for i, fact in enumerate(facts)}
        known |= {(1, i): int(row) for i, row in enumerate(found["leaf_weights"])}
        assert sorted(set(found["leaf_targetids"])) == list(range(len(found["tree_roots"])))
        return [((0, root), known) for root in found["tree_roots"]]
    trees, rows = {}, {}
    for t, n, target, row in zip(
        found["target_treeids"], found["target_nodeids"], found["target_ids"],
        found["target_weights"], strict=True,
    ):  # fmt: skip
        assert t == target
        rows[t, n] = int(row)
    for t, n, feature, threshold, side, yes, no, mode in zip(
        found["nodes_treeids"], found["nodes_nodeids"], found["nodes_featureids"],
        found["nodes_values"], sides, found["nodes_truenodeids"], found["nodes_falsenodeids"],
        found["nodes_modes"], strict=True,
    ):  # fmt: skip
        assert mode in (b"LEAF", b"BRANCH_LEQ")
        fact = rows[t, n] if mode == b"LEAF" else (feature, threshold, side, yes, no)
        trees.setdefault(t, {})[n] = fact
    return [(0, trees[t]) for t in range(len(trees))]


def table_of(graph):
    """The table of leaves, which the first Gather reads."""
    name = next(n for n in graph.graph.node if n.op_type == "Gather").input[0]
    tensor = next(t for t in graph.graph.initializer if t.name == name)
    return onnx.numpy_helper.to_array(tensor)


def codes_left(forest, node):
    """The codes in the set of a split by categories."""
    words = forest.sets[forest.set_at[node] :]
    n = forest.edges.n_bins[unpack(np, forest.nodes[node])[0]]
    return [code for code in range(n) if int(words[code // 64]) >> code % 64 & 1]


PROVED = ["strings", "votes", "root", "numbers", "boosted classes"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("kind", "ml_version"), [*product(PROVED, [5, 3]), *product(CATEGORICAL, [5])]
)
def test_both_trees_are_the_same_function_of_all_numbers(kind, ml_version, dtype):
    """A proof: both are walked side by side. At each split no number of the dtype lies between the
    two thresholds, or the same codes are in both sets; missing values go to the same side, and the
    leaves hold the same values."""
    fitted = categorical(kind) if kind in CATEGORICAL else model(kind)
    number = DTYPES[dtype]
    graph = fitted.to_onnx(dtype=dtype, ml_version=ml_version)
    table, forest, walked = table_of(graph), fitted.forest_, 0
    feature, bin, missing_left, child = unpack(np, forest.nodes)
    threshold = forest.edges.threshold(np.maximum(feature, 0), bin)
    for t, (root, known) in enumerate(trees_of(graph)):
        first = forest.tree_offsets[t]
        pending = [(first, root)]
        while pending:
            ours, key = pending.pop()
            theirs, walked = known[key], walked + 1
            if feature[ours] < 0:
                if not isinstance(theirs, int):  # a tree of one leaf, on both sides of a split
                    assert theirs[3] == theirs[4]
                    theirs = known[theirs[3]]
                own = forest.values[leaf_rows(forest.nodes[ours])]
                own = own[t % len(own)] if forest.baseline is not None else own
                assert np.array_equal(table[theirs], own)
                continue
            column, low, side, yes, no = theirs
            if has_set(forest.nodes[ours]):
                assert low == (codes_left(forest, ours) or -1.0)  # codes are 0 and above
            else:
                low, above = number(low), np.float64(np.nextafter(number(low), number(np.inf)))
                assert low <= threshold[ours]
                assert low == np.inf or above > threshold[ours]
            assert (column, side) == (feature[ours], missing_left[ours])
            pending += [(first + child[ours], yes), (first + child[ours] + 1, no)]
    assert walked == len(forest.nodes)


def columns(frame, dtype):
    """The inputs of a model with categories; "" is missing."""
    return {
        name: (
            column.fillna("").to_numpy(object)
            if column.dtype == object or column.dtype.kind not in "f"
            else column.to_numpy(dtype)
        )[:, None]
        for name, column in frame.items()
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["forest", "chains", "boosted"])
def test_categories_are_strings_and_unseen_ones_go_where_ours_go(kind, dtype):
    fitted = categorical(kind)
    graph = fitted.to_onnx(dtype=dtype)
    kinds = {i.name: i.type.tensor_type.elem_type for i in graph.graph.input}
    assert list(kinds) == ["colour", "size", "x", "letter"]
    assert kinds["colour"] == onnx.TensorProto.STRING != kinds["size"]
    for frame in (category_frame()[0], unseen_frame()):
        frame = frame.astype({"size": dtype})  # 0.1 is another number in 32 bits, and unseen
        wanted = expected(fitted, frame)
        check(run(graph, columns(frame, dtype)), wanted, DTYPES[dtype], False)


def test_categories_that_are_numbers_are_columns_of_x():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 40, 200), rng.normal(size=200)]).astype(np.float64)
    y = np.isin(rows[:, 0], [1, 3, 7, 20, 39]) + rows[:, 1]
    fitted = gf.RandomForestRegressor(
        5, categorical_features=[0], min_category_frequency=1, random_state=0, backend="numpy"
    ).fit(rows, y)
    new = np.concatenate([rows, [[40.0, 0.0], [np.nan, 0.0], [0.5, np.nan], [-1.0, 1.0]]])
    found = run(fitted.to_onnx(dtype="float64"), {"X": new})
    assert np.array_equal(found["prediction"], fitted.predict(new))


def test_sums_do_not_depend_on_threads():
    fitted, rows = model("numbers"), edge_rows(model("numbers"), np.float64)
    graph = fitted.to_onnx(dtype="float64").SerializeToString()
    for threads in (1, 2, 4):
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        assert np.array_equal(session.run(None, {"X": rows})[0], fitted.predict(rows))
