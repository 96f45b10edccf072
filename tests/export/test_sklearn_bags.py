"""Forests that go to scikit-learn take their bags and out-of-bag scores along."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble._forest import _generate_sample_indices

from gpuforest import (
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
)

X, Y = load_iris(return_X_y=True)


def converted_bags(model):
    """The converted forest, and how often each row is in each of its bags."""
    there = model.to_sklearn()
    return there, [np.bincount(rows, minlength=len(X)) for rows in there.estimators_samples_]


@pytest.mark.parametrize("params", [{}, {"max_samples": 40}, {"class_weight": "balanced"}])
def test_bags_travel(params):
    model = RandomForestClassifier(6, random_state=3, backend="numpy", **params).fit(X, Y)
    there, bags = converted_bags(model)
    for counts, rows in zip(bags, model.estimators_samples_, strict=True):
        assert np.array_equal(counts, np.bincount(rows, minlength=len(X)))
    assert len({tuple(counts) for counts in bags}) == 6
    # what packages that look into scikit-learn do
    for tree, counts in zip(there.estimators_, bags, strict=True):
        drawn = _generate_sample_indices(tree.random_state, len(X), counts.sum(), None)
        assert np.array_equal(np.bincount(drawn, minlength=len(X)), counts)


def test_bags_of_weighted_rows_travel():
    weights = np.arange(len(X)) % 4
    model = RandomForestClassifier(4, random_state=0, backend="numpy").fit(X, Y, weights)
    for counts in converted_bags(model)[1]:
        assert counts.sum() == sum(map(len, model.estimators_samples_[:1]))
        assert not counts[weights == 0].any()


def test_without_bags_every_tree_has_all_rows_and_a_seed_of_its_own():
    model = ExtraTreesClassifier(5, random_state=0, backend="numpy").fit(X, Y)
    there, bags = converted_bags(model)
    assert (np.array(bags) == 1).all()
    seeds = [tree.random_state for tree in there.estimators_]
    assert len(set(seeds)) == 5
    assert all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)


def test_scores_out_of_bag_travel():
    for kind, y in ((RandomForestClassifier, Y), (RandomForestRegressor, X[:, 0])):
        model = kind(60, oob_score=True, random_state=0, backend="numpy").fit(X, y)
        there = model.to_sklearn()
        assert there.oob_score_ == model.oob_score_
        name = "oob_prediction_" if kind is RandomForestRegressor else "oob_decision_function_"
        assert np.array_equal(getattr(there, name), getattr(model, name))


def test_what_is_not_known_of_bags_is_not_made_up(tmp_path):
    model = RandomForestClassifier(3, random_state=0, backend="numpy").fit(X, Y)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model").to_sklearn()
    pickled = pickle.loads(pickle.dumps(model.to_sklearn()))
    assert np.array_equal(pickled.predict_proba(X), model.predict_proba(X))
    bags = zip(loaded.estimators_samples_, model.estimators_samples_, strict=True)
    assert all(np.array_equal(np.sort(one), np.sort(other)) for one, other in bags)
    with pytest.raises(ValueError, match="gpuforest drew the rows of this tree's bag"):
        _generate_sample_indices(pickled.estimators_[0].random_state, len(X), len(X), None)
    assert b"gpuforest.export.sklearn" not in pickle.dumps(model.to_sklearn())
    copied = copy.deepcopy(model.to_sklearn())
    assert len(copied.estimators_samples_[0]) == len(X)
