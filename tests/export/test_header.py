"""Headers of model files: what cannot have been written is refused."""

import json

import numpy as np
import pytest
from saved import fitted
from tampered import save_tampered

import gpuforest
from gpuforest import ModelFormatError, RandomForestRegressor
from gpuforest.export import container, model_file


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
        {"feature_names": ["a", "b", "c", "a"]},
        {"combine": "sum"},
        {"classes": ["a", "b"], "classes_dtype": "str"},
        {"classes": [1, 2, 3], "classes_dtype": "object"},
        {"classes": "abc", "classes_dtype": "str"},
        {"combine": "product"},
        {"combine": 1},
        {"oob_score": "good"},
        {"training": [1, 2]},
        {"training": {"rows": 1}},
        {"training": {"rows": "1", "version": "1"}},
        {"training": {"rows": -1, "version": "1"}},
        {"training": {"rows": 1, "version": "1", "seconds": 1.0}},
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


def test_trees_vote_as_they_were_trained_to(tmp_path):
    model, X = fitted(max_depth=2)
    model.set_params(voting="hard").save(tmp_path / "model")  # of the next fit
    loaded = gpuforest.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert not np.array_equal(
        loaded.fit(X, model.predict(X)).predict_proba(X), model.predict_proba(X)
    )


def test_errors_where_no_row_is_out_of_bag(tmp_path):
    forest = RandomForestRegressor(3, oob_score=True, random_state=4, backend="numpy")
    with pytest.warns(UserWarning, match="out-of-bag|OOB|bag"):
        forest.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    assert np.isnan(forest.oob_curve_.error[0])
    forest.save(tmp_path / "model")
    again = gpuforest.load(tmp_path / "model")
    assert np.array_equal(again.oob_curve_.error, forest.oob_curve_.error, equal_nan=True)
