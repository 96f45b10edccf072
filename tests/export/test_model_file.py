"""Model files: the same predictions after a round trip, and nothing else is believed."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from saved import KINDS, fitted
from sklearn.datasets import load_diabetes

import gpuforest
from gpuforest import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ModelFormatError,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.export import container, model_file


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


def test_votes_as_earlier_files_have_them(tmp_path):
    path, kind = tmp_path / "model", RandomForestClassifier
    soft, X = fitted(kind, max_depth=2)
    hard, X = fitted(kind, max_depth=2, voting="hard")
    assert not np.array_equal(soft.predict_proba(X), hard.predict_proba(X))
    for header in ({}, {"votes": True}):
        hard.save(path)
        text, arrays = container.read(path, model_file.ARRAYS)
        header_text = {name: value for name, value in json.loads(text).items() if name != "combine"}
        container.write(path, json.dumps(header_text | header), arrays)
        assert np.array_equal(gpuforest.load(path).predict_proba(X), hard.predict_proba(X))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_copies_and_pickles_predict_the_same(kind):
    model, X = fitted(kind)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.predict(X), model.predict(X))


def test_small(tmp_path):
    """A model of classes takes little more than eight bytes a node."""
    X = np.random.default_rng(0).random((3000, 5))
    model = RandomForestClassifier(10, random_state=0).fit(X, X[:, 0] + X[:, 1] > X[:, 2])
    model.save(tmp_path / "model")
    forest = model.forest_
    edges = 16 * len(forest.edges.values)
    assert (tmp_path / "model").stat().st_size < 8.1 * forest.n_nodes + edges + 4000
