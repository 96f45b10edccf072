"""Forests of unusual input, held against the reference's forest of the plain form of it."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from engine import same_forest
from paths import ROOT

from gpuforest import RandomForestClassifier, RandomForestRegressor

PAGE = (ROOT / "docs" / "robustness.md").read_text()

KINDS = [RandomForestClassifier, RandomForestRegressor]
both_kinds = pytest.mark.parametrize("kind", KINDS)

# whole numbers, which are the same in every dtype, and targets that are both labels and numbers
X = np.random.default_rng(0).integers(0, 50, (80, 5)).astype(np.float64)
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 700).astype(int) + (X[:, 3] > 25)


def fitted(kind: type, backend: str, X: Any, y: Any = Y, weights: Any = None, **params: Any) -> Any:
    return kind(3, random_state=0, backend=backend, **params).fit(X, y, weights)


@cache
def plain(kind: type) -> Any:
    """The reference's forest of X, Y."""
    return fitted(kind, "numpy", X)


def predicted(model: Any, X: Any) -> np.ndarray:
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def assert_plain(kind: type, backend: str, other: Any) -> None:
    """X in another form gives the plain forest, which also reads that form alike."""
    model, reference = fitted(kind, backend, other), plain(kind)
    assert same_forest(model.forest_, reference.forest_)
    for rows in (other, X):
        assert np.array_equal(predicted(model, rows), predicted(reference, X))
    assert np.array_equal(model.apply(other), reference.apply(X))


def assert_same_trees(a: Any, b: Any) -> None:
    """The same splits by bins and the same leaves; edges and units may differ."""
    assert np.array_equal(a.forest_.nodes, b.forest_.nodes)
    assert np.array_equal(a.forest_.tree_offsets, b.forest_.tree_offsets)
    assert np.array_equal(a.forest_.leaf_sums, b.forest_.leaf_sums)


def refused(words: str, error: Any = ValueError) -> Any:
    """An error of these words, which the page has too."""
    assert words in PAGE
    return pytest.raises(error, match=re.escape(words))


def assert_refused(kind: type, message: str, function: Callable[[], object]) -> None:
    """With just these words, {} for the estimator's name, which the page has too."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        function()
    assert str(caught.value) == message.format(kind.__name__)
    assert message.format("RandomForestClassifier") in PAGE
