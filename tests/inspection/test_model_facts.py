"""Facts about models: the digest of a forest, settings, finite scores."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gpuforest
from gpuforest.inspection.model_facts import (
    changed_settings,
    feature_names,
    finite,
    forest_digest,
    model_facts,
)

X, Y = load_iris(return_X_y=True)


def forest(**params):
    return gpuforest.RandomForestClassifier(4, random_state=0, **params).fit(X, Y)


def test_equal_forests_have_equal_digests(tmp_path):
    model = forest(backend="numpy", max_bins=64)
    model.save(tmp_path / "model")
    digest = forest_digest(model.forest_)
    assert len(digest) == 64
    assert forest_digest(gpuforest.load(tmp_path / "model").forest_) == digest
    assert forest_digest(forest(max_bins=64, n_jobs=2).forest_) == digest  # on another backend


@pytest.mark.parametrize("other", [{"max_depth": 2}, {"voting": "hard"}, {"max_bins": 16}])
def test_other_forests_have_other_digests(other):
    assert forest_digest(forest(backend="numpy", **other).forest_) != forest_digest(
        forest(backend="numpy").forest_
    )


def test_classes_are_part_of_the_digest():
    model = gpuforest.RandomForestClassifier(4, random_state=0, backend="numpy")
    digests = {forest_digest(model.fit(X, labels).forest_) for labels in (Y, Y + 1, Y.astype(str))}
    assert len(digests) == 3


@pytest.mark.parametrize("name", ["HistGradientBoostingClassifier", "AdaBoostRegressor"])
def test_boosted_models_have_digests_that_last(name, tmp_path):
    params = {"max_iter": 3} if name.startswith("Hist") else {"n_estimators": 3}
    model = getattr(gpuforest, name)(**params, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    digest = forest_digest(model.forest_)
    assert forest_digest(gpuforest.load(tmp_path / "model").forest_) == digest


def test_settings_are_those_that_differ():
    model = forest(max_depth=3, backend="numpy", n_jobs=2)
    assert changed_settings(model) == {"n_estimators": 4, "max_depth": 3, "random_state": 0}


def test_facts():
    facts = model_facts(forest(backend="numpy"))
    assert facts["features"] == 4
    assert facts["classes"] == [0, 1, 2]
    assert list(facts["importances"]) != sorted(facts["importances"])
    assert sum(facts["importances"].values()) == pytest.approx(1.0)
    assert feature_names(forest(backend="numpy"))[0] == "feature_0"
    assert [finite(np.nan), finite(None), finite(0.5)] == [None, None, 0.5]
