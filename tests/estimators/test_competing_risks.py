"""Several causes of events: curves by their definitions, and what is the same with one cause."""

import pickle

import numpy as np
import pytest
from survivors import data_of_causes, target

import gpuforest
from gpuforest import ExtraSurvivalTrees, RandomSurvivalForest
from gpuforest.explain.survival import concordance

CRITERIA = ["exponential", "logrank"]


X, Y = data_of_causes()


def test_a_case_worked_by_hand():
    # one leaf: cause 1 at 1 (of 4 at risk), cause 2 at 2 (of 3), cause 1 at 3 (of 2); one leaves
    y = target([1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0])
    options = {"bootstrap": False, "backend": "numpy", "min_samples_leaf": 4}
    forest = RandomSurvivalForest(1, **options).fit(np.zeros((4, 1)), y)
    row = np.zeros((1, 1))
    assert forest.unique_times_.tolist() == [1.0, 2.0, 3.0]
    incidence = forest.predict_cumulative_incidence_function
    assert np.allclose(incidence(row, True), [[1 / 4, 1 / 4, 1 / 4 + 1 / 2 * 1 / 2]])
    assert np.allclose(incidence(row, True, cause=2), [[0, 3 / 4 * 1 / 3, 1 / 4]])
    assert np.allclose(forest.predict_survival_function(row, True), [[3 / 4, 1 / 2, 1 / 4]])
    hazard = forest.predict_cumulative_hazard_function
    assert np.allclose(hazard(row, True), [[1 / 4, 1 / 4, 1 / 4 + 1 / 2]])
    assert np.allclose(hazard(row, True, cause=2), [[0, 1 / 3, 1 / 3]])
    assert np.allclose(forest.predict(row), [[1 / 4 + 1 / 4 + 3 / 4, 2 / 3]])
    [function] = incidence(row, cause=2)
    assert function(1.9) == 0.0 < function(2.0) == function(99.0)


@pytest.mark.parametrize("kind", [RandomSurvivalForest, ExtraSurvivalTrees])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_cause_has_its_own_risk(kind, criterion, tmp_path):
    options = {"criterion": criterion, "bootstrap": True, "oob_score": True, "random_state": 0}
    forest = kind(50, **options).fit(X, Y)
    Z, y = data_of_causes(seed=1)
    risks = forest.predict(Z)
    assert risks.shape == (len(Z), 2)
    for k in (1, 2):
        others_are_censored = concordance(y["event"] == k, y["time"], risks[:, k - 1])
        assert forest.score(Z, y, cause=k) == others_are_censored > 0.65
        assert concordance(y["event"] == k, y["time"], risks[:, 2 - k]) < 0.55
    assert forest.score(Z, y) == forest.score(Z, y, cause=1)
    assert forest.oob_prediction_.shape == (len(X), 2)
    first = forest.oob_prediction_[:, 0]
    assert forest.oob_score_ == concordance(Y["event"] == 1, Y["time"], first)
    assert set(forest.feature_importances_.argsort()[-2:]) == {0, 1}
    forest.save(tmp_path / "model")
    for same in (gpuforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(same.predict(Z), risks)
        curves = (m.predict_cumulative_incidence_function(Z, True, 2) for m in (same, forest))
        assert np.array_equal(*curves)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_cause_is_as_before(criterion):
    plain, one = (target(event, Y["time"]) for event in (Y["event"] > 0, 1 * (Y["event"] > 0)))
    options = {"criterion": criterion, "random_state": 0, "oob_score": True}
    forest, same = (RandomSurvivalForest(20, **options).fit(X, y) for y in (plain, one))
    assert np.array_equal(forest.predict(X), same.predict(X))
    assert forest.oob_score_ == same.oob_score_
    come = same.predict_cumulative_incidence_function(X, True)
    assert np.array_equal(np.maximum(1.0 - come, 0.0), forest.predict_survival_function(X, True))


def test_the_number_of_rows_of_a_leaf_by_loss():
    forest = RandomSurvivalForest(48, min_samples_leaf="oob", random_state=0).fit(X, Y)
    assert np.isfinite(forest.oob_parameters_["error"]).all()


def test_what_is_refused():
    forest = RandomSurvivalForest(2, random_state=0).fit(X, Y)
    for cause in (0, 3, 1.5, 1.0, True, "1", None, [1, 2], np.array([1, 2])):
        with pytest.raises(ValueError, match=r"cause=.* must be an integer from 1 to 2"):
            forest.predict_cumulative_incidence_function(X, cause=cause)
        with pytest.raises(ValueError, match="must be an integer from 1 to 2"):
            forest.score(X, Y, cause=cause)
    assert forest.score(X, Y, cause=np.int64(2)) == forest.score(X, Y, cause=2)
    with pytest.warns(UserWarning, match="no row of y is censored: 1 to 2 are taken for causes"):
        forest.fit(X, target(1 + (Y["event"] > 0), Y["time"]))
