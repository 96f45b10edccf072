"""ONNX models: the same numbers as ours, on every side of every threshold."""

import exported
import numpy as np
import pytest

import gpuforest as gf

onnx = pytest.importorskip("onnx", reason="needs pip install 'gpuforest[checks]'")
runtime = pytest.importorskip("onnxruntime", reason="needs pip install 'gpuforest[checks]'")

DTYPES = {"float32": np.float32, "float64": np.float64}


def run(graph, feeds):
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
@pytest.mark.parametrize("kind", exported.KINDS)
def test_predictions_are_equal_at_every_edge(kind, dtype, ml_version):
    fitted, rows = exported.model(kind), exported.edge_rows(exported.model(kind), dtype)
    graph = fitted.to_onnx(dtype=dtype, ml_version=ml_version)
    for some in (rows, rows[:1]):
        answers = run(graph, {"X": some})
        check(answers, expected(fitted, some), DTYPES[dtype], kind in exported.BY_EXPONENTIALS)


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
    fitted = exported.categorical(kind)
    graph = fitted.to_onnx(dtype=dtype)
    kinds = {i.name: i.type.tensor_type.elem_type for i in graph.graph.input}
    assert list(kinds) == ["colour", "size", "x", "letter"]
    assert kinds["colour"] == onnx.TensorProto.STRING != kinds["size"]
    for frame in (exported.category_frame()[0], exported.unseen_frame()):
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
    fitted, rows = (
        exported.model("numbers"),
        exported.edge_rows(exported.model("numbers"), np.float64),
    )
    graph = fitted.to_onnx(dtype="float64").SerializeToString()
    for threads in (1, 2, 4):
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        assert np.array_equal(session.run(None, {"X": rows})[0], fitted.predict(rows))
