"""Bad input of quantiles, anomalies, proximities and selection: rows of docs/robustness.md."""

import numpy as np
import pytest
from robust import PAGE, X, Y
from sklearn.ensemble import RandomForestClassifier as TheirForest

import gpuforest as gf


def forest(backend, kind=gf.RandomForestClassifier, n=20, **params):
    return kind(n, random_state=0, backend=backend, **params).fit(X, Y)


def selector(backend, **params):
    few = gf.RandomForestClassifier(10, max_depth=3, backend=backend)
    return gf.BorutaSelector(few, random_state=0, **params)


def test_anomalies_among_equal_rows(backend):
    for rows in (np.ones((80, 2)), np.full((80, 2), np.nan)):
        model = gf.IsolationForest(n_estimators=5, random_state=0, backend=backend).fit(rows)
        assert (model.score_samples(rows) == -0.5).all()
        assert (model.predict(rows) == 1).all()


def test_numbers_of_neighbours(backend):
    model = forest(backend, n=3)
    near, rows = model.neighbours(X[:3], 9)
    assert near.shape == rows.shape == (3, 9)
    assert (rows[:, 2:] == -1).all()  # there are two others
    assert (near[:, 2:] == 0).all()


def test_selection_where_nothing_varies(backend):
    rows = np.column_stack([X[:, 0], np.ones(80), np.full(80, np.nan)])
    found = selector(backend).fit(rows, X[:, 0] > 25)
    assert (found.ranking_ > 2).tolist() == [False, True, True]
    assert found.support_[0]
    found = selector(backend).fit(X, np.zeros(80))
    assert (found.ranking_ > 2).all()


def isolation(**params):
    return gf.IsolationForest(backend="numpy", **params).fit(X)


QUANTILES = forest("numpy", gf.RandomForestQuantileRegressor, 3)
NUMBERS = forest("numpy", gf.RandomForestRegressor, oob_score=True)
CLASSES = forest("numpy", oob_score=True)
PLAIN = forest("numpy", gf.RandomForestRegressor)
WHOLE = gf.RandomForestClassifier(3, bootstrap=False, backend="numpy").fit(X, Y)
RANGE = "Quantiles must be in the range [0, 1], got 1.5."
COVERAGE = "coverage=1.5 must be a number between 0 and 1"
OTHERS = "X has {} rows, but the forest was fitted to 80: pass the data that it was fitted to"
VALUES = "y has other values than in training: pass what the forest was fitted to"
REFUSED = [
    (RANGE, lambda: QUANTILES.predict(X, [0.5, 1.5])),
    (RANGE, lambda: forest("numpy", gf.RandomForestQuantileRegressor, default_quantiles=[1.5])),
    ("no quantiles are asked for: give a number from 0 to 1, or some",
     lambda: QUANTILES.predict(X, [])),
    (COVERAGE, lambda: NUMBERS.predict_interval(X, 1.5)),
    (COVERAGE, lambda: CLASSES.predict_set(X, 1.5)),
    ("predict_interval is calibrated on out-of-bag predictions: fit with oob_score=True",
     lambda: PLAIN.predict_interval(X)),
    ("The 'contamination' parameter of IsolationForest must be a str among {'auto'} or a float "
     "in the range (0.0, 0.5]. Got 0.6 instead.", lambda: isolation(contamination=0.6)),
    ("max_features=9 must be <= n_features=5", lambda: isolation(max_features=9)),
    (OTHERS.format(5), lambda: CLASSES.proximity(X[:5], oob=True)),
    ("k=0 neighbours are none: pass 1 or more", lambda: CLASSES.neighbours(X, 0)),
    ("y has 3 rows, but the proximities have 80: pass the same",
     lambda: gf.proximity_outliers(CLASSES.proximity(X), Y[:3])),
    (OTHERS.format(79), lambda: gf.oob_impurity_importance(PLAIN, X[1:], Y[1:])),
    (OTHERS.format(79), lambda: gf.oob_permutation_importance(PLAIN, X[1:], Y[1:])),
    (VALUES, lambda: gf.oob_impurity_importance(PLAIN, X, Y + 100)),
    (VALUES, lambda: gf.oob_permutation_importance(PLAIN, X, Y + 100)),
    ("The 'alpha' parameter of BorutaSelector must be a float in the range (0.0, 1.0). Got 1.0 "
     "instead.", lambda: selector("numpy", alpha=1.0).fit(X, Y)),
    ("importance='oob_impurity' needs rows out of bag: set bootstrap=True of the estimator, or "
     "importance='impurity'", lambda: gf.BorutaSelector(WHOLE).fit(X, Y)),
    ("Found array with 1 sample(s) (shape=(1, 5)) while a minimum of 2 is required by "
     "BorutaSelector.", lambda: selector("numpy").fit(X[:1], Y[:1])),
    ("BorutaSelector takes a RandomForest*, ExtraTrees* or Bagging* of gpuforest as estimator, "
     "not a RandomForestClassifier of sklearn", lambda: gf.BorutaSelector(TheirForest()).fit(X, Y)),
]  # fmt: skip


@pytest.mark.parametrize(("message", "ask"), REFUSED, ids=range(len(REFUSED)))
def test_refused_others(message, ask):
    """With just these words, which the page has too."""
    with pytest.raises((ValueError, TypeError)) as caught:
        ask()
    assert str(caught.value) == message
    assert message in PAGE


def test_other_values_out_of_range():
    for wrong in (-0.1, np.nan, True):
        with pytest.raises(ValueError, match=f"Quantiles must be in the range .*got {wrong}"):
            QUANTILES.predict(X, wrong)
    for wrong in (0, 1, -1, np.nan, True, "a"):
        with pytest.raises(ValueError, match=f"coverage={wrong!r} must be a number between"):
            NUMBERS.predict_interval(X, wrong)
