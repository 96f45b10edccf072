"""Alphas chosen by cross-validation: what is refused, and curves in files."""

import json

import numpy as np
import pytest
from pruned import CANCER, TASKS
from sklearn.model_selection import KFold

import gpuforest
from gpuforest import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ModelFormatError,
    RandomForestClassifier,
)
from gpuforest.export import container, model_file


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ccp_alpha": -0.1}, "'ccp_alpha' parameter"),
        ({"ccp_alpha": "best"}, "'ccp_alpha' parameter"),
        ({"ccp_cv": 1}, "'ccp_cv' parameter"),
        ({"ccp_cv": None}, "'ccp_cv' parameter"),
        ({"ccp_rule": "two_se"}, "'ccp_rule' parameter"),
        ({"ccp_alpha": "cv", "ccp_cv": "ten"}, "Expected `cv` as an integer"),
        ({"ccp_alpha": "cv", "ccp_cv": 11}, "n_splits=11"),
        ({"ccp_alpha": "cv", "ccp_cv": []}, "no test rows of any weight"),
        ({"ccp_alpha": "cv", "ccp_cv": [(range(9), [])]}, "no test rows of any weight"),
    ],
)
def test_what_is_refused(kind, params, message):
    model = kind(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(np.arange(10.0)[:, None], np.arange(10) % 2)
    assert not hasattr(model, "forest_")


def test_forests_and_bags_take_numbers():
    X, y = CANCER
    with pytest.raises(ValueError, match=r"'ccp_alpha' parameter .* must be a float"):
        RandomForestClassifier(ccp_alpha="cv").fit(X, y)
    with pytest.raises(ValueError, match="for a tree fitted by itself: give the trees of an ens"):
        BaggingClassifier(DecisionTreeClassifier(ccp_alpha="cv")).fit(X, y)
    bags = BaggingClassifier(DecisionTreeClassifier(ccp_alpha=0.01), 2).fit(X, y)
    assert bags.estimators_[0].ccp_alpha_ == 0.01


@pytest.mark.parametrize("criterion", TASKS)
def test_files_keep_the_curve(tmp_path, criterion):
    kind, X, y = TASKS[criterion]
    model = kind(criterion=criterion, ccp_alpha="cv", ccp_cv=3, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    assert other.get_params() == model.get_params()
    assert other.ccp_alpha_ == model.ccp_alpha_
    for name, values in model.pruning_curve_.items():
        assert other.pruning_curve_[name].tolist() == values.tolist()
        assert other.pruning_curve_[name].dtype == values.dtype
    assert other.predict(X).tolist() == model.predict(X).tolist()
    other.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    assert model.to_sklearn().ccp_alpha == model.ccp_alpha_
    model.set_params(ccp_cv=KFold(3)).fit(X, y).save(tmp_path / "model")
    assert gpuforest.load(tmp_path / "model").ccp_cv == 10  # no file can hold a splitter
    plain = kind(criterion=criterion, ccp_alpha=0.1).fit(X, y)
    plain.save(tmp_path / "plain")
    loaded = gpuforest.load(tmp_path / "plain")
    assert (loaded.ccp_alpha_, hasattr(loaded, "pruning_curve_")) == (0.1, False)


def written(**changes):
    whole = {"ccp_alphas": [0.0, 0.1], "n_leaves": [2, 1], "errors": [0.5, 0.6]}
    return {**whole, "std_errors": [0.1, 0.1], **changes}


@pytest.mark.parametrize(
    ("ccp_alpha", "curve"),
    [
        (0.1, None),
        (None, written()),
        (0.3, written()),
        (0.1, {"ccp_alphas": [0.1]}),
        (0.1, written(std_errors=[0.1])),
        (0.1, written(std_errors=[0.1, -0.1])),
        (0.1, written(errors=[0.5, float("inf")])),
        (0.1, written(n_leaves=[2**40, 1])),
        (0.1, written(ccp_alphas=[0.1, 0.0])),
        (0.1, written(ccp_alphas=[], n_leaves=[], errors=[], std_errors=[])),
    ],
    ids=range(10),
)
def test_curves_that_cannot_have_been_written(tmp_path, ccp_alpha, curve):
    path = tmp_path / "model"
    DecisionTreeClassifier(ccp_alpha="cv").fit(*CANCER).save(path)
    text, arrays = container.read(path, model_file.ARRAYS)
    header = json.loads(text) | {"ccp_alpha": ccp_alpha, "pruning_curve": curve}
    header = {name: value for name, value in header.items() if value is not None}
    container.write(path, json.dumps(header), arrays)
    with pytest.raises(ModelFormatError):
        gpuforest.load(path)
