"""Class labels in model files: numbers, strings and objects come back, others are refused."""

import numpy as np
import pytest
from saved import fitted

import gpuforest
from gpuforest import (
    DecisionTreeClassifier,
)


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
