"""Estimators of categories: all kinds, on all backends, saved and loaded."""

import pickle

import numpy as np
import pandas as pd
import pytest
from category_columns import COLOURS, NUMBERS, SORTED, Y, frame_of
from sklearn.base import clone

import gpuforest as gf


@pytest.mark.parametrize(
    "make",
    [
        lambda **p: gf.DecisionTreeRegressor(**p),
        lambda **p: gf.ExtraTreesRegressor(3, **p),
        lambda **p: gf.RandomForestClassifier(3, oob_score=True, **p),
        lambda **p: gf.BaggingClassifier(gf.DecisionTreeClassifier(**p), 3),
        lambda **p: gf.RandomTreesEmbedding(3, **p),
    ],
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_all_estimators_take_them(make, tmp_path):
    X = frame_of(pd.Series(NUMBERS))
    model = make(categorical_features=["a"])
    assert not hasattr(model, "is_categorical_")
    model = clone(model).fit(X, Y)
    assert model.is_categorical_.tolist() == [True, False]
    model.save(tmp_path / "model")
    other = gf.load(tmp_path / "model")
    assert other.is_categorical_.tolist() == [True, False]
    assert other.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for copied in (other, pickle.loads(pickle.dumps(model))):
        assert copied.forest_.edges.categories == {0: (1.0, 2.0, 3.0)}
        assert np.array_equal(copied.apply(X), model.apply(X))
    assert all(
        t.is_categorical_.tolist() == [True, False] for t in getattr(model, "estimators_", [])
    )
    assert make().fit(X, Y).is_categorical_ is None


def test_warm_start_needs_the_same_categories():
    X = frame_of(pd.Series(COLOURS))
    forest = gf.RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, Y)
    whole = gf.RandomForestClassifier(4, random_state=0).fit(X, Y)
    forest.set_params(n_estimators=4).fit(X, Y)
    assert np.array_equal(forest.forest_.nodes, whole.forest_.nodes)
    forest.set_params(n_estimators=5)
    for other in (X.replace("red", "rot"), X.assign(a=[SORTED.index(c or "") for c in COLOURS])):
        with pytest.raises(ValueError, match="X or y has other values now"):
            forest.fit(other, Y)


def test_memory_knows_of_many_categories():
    X = (np.arange(2000) % 1000)[:, None]
    bins = gf.DecisionTreeRegressor(max_bins=1001, memory_limit=1)
    few = gf.DecisionTreeRegressor(
        categorical_features=[0], min_category_frequency=1, memory_limit=1
    )
    with pytest.raises(ValueError, match="memory_limit") as as_bins:
        bins.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="memory_limit") as as_categories:
        few.fit(X, X[:, 0])
    assert str(as_bins.value) == str(as_categories.value)


# backends and real data
