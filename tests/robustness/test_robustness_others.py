"""Bad input of quantiles, anomalies, proximities and selection: rows of docs/robustness.md."""

import numpy as np
import pytest
from robust import PAGE, X, Y
from sklearn.ensemble import RandomForestClassifier as TheirForest

from gpuforest import (
    BorutaSelector,
    IsolationForest,
    RandomForestClassifier,
    RandomForestQuantileRegressor,
    RandomForestRegressor,
    oob_impurity_importance,
    oob_permutation_importance,
    proximity_outliers,
)

WRONG_SHARES = [0, 1, 1.5, -1, np.nan, True, "a"]


def refused(message, function, kind=ValueError):
    """With just these words, which the page has too."""
    with pytest.raises(kind) as caught:
        function()
    assert str(caught.value) == message
    assert message in PAGE


def forest(backend, kind=RandomForestClassifier, n=20, **params):
    return kind(n, random_state=0, backend=backend, **params).fit(X, Y)


def selector(backend, **params):
    few = RandomForestClassifier(10, max_depth=3, backend=backend)
    return BorutaSelector(few, random_state=0, **params)


def test_quantiles_out_of_range(backend):
    model = forest(backend, RandomForestQuantileRegressor, 3)
    refused("Quantiles must be in the range [0, 1], got 1.5.", lambda: model.predict(X, [0.5, 1.5]))
    for wrong in (-0.1, np.nan, True):
        with pytest.raises(ValueError, match=f"Quantiles must be in the range .*got {wrong}"):
            model.predict(X, wrong)
        with pytest.raises(ValueError, match="Quantiles must be in the range"):
            forest(backend, RandomForestQuantileRegressor, 3, default_quantiles=[wrong])


def test_no_quantiles(backend):
    model = forest(backend, RandomForestQuantileRegressor, 3)
    said = "no quantiles are asked for: give a number from 0 to 1, or some"
    refused(said, lambda: model.predict(X, []))


def test_coverage_out_of_range(backend):
    numbers = forest(backend, RandomForestRegressor, oob_score=True)
    classes = forest(backend, oob_score=True)
    for ask in (numbers.predict_interval, classes.predict_set):
        refused("coverage=1.5 must be a number between 0 and 1", lambda ask=ask: ask(X, 1.5))
        for wrong in WRONG_SHARES:
            with pytest.raises(ValueError, match=f"coverage={wrong!r} must be a number between"):
                ask(X, wrong)


def test_intervals_without_out_of_bag_predictions(backend):
    model = forest(backend, RandomForestRegressor)
    said = "predict_interval is calibrated on out-of-bag predictions: fit with oob_score=True"
    refused(said, lambda: model.predict_interval(X))
    whole = forest(backend, bootstrap=False)
    with pytest.raises(ValueError, match="fit with bootstrap=True and oob_score=True"):
        whole.predict_set(X)


def test_contamination_out_of_range(backend):
    said = (
        "The 'contamination' parameter of IsolationForest must be a str among {'auto'} or a float "
        "in the range (0.0, 0.5]. Got 0.6 instead."
    )
    refused(said, lambda: IsolationForest(contamination=0.6, backend=backend).fit(X))
    for wrong in (0, -0.1, np.nan, "some"):
        with pytest.raises(ValueError, match="The 'contamination' parameter"):
            IsolationForest(contamination=wrong, backend=backend).fit(X)


def test_more_features_than_there_are(backend):
    said = "max_features=9 must be <= n_features=5"
    refused(said, lambda: IsolationForest(max_features=9, backend=backend).fit(X))


def test_anomalies_among_equal_rows(backend):
    for rows in (np.ones((80, 2)), np.full((80, 2), np.nan)):
        model = IsolationForest(n_estimators=5, random_state=0, backend=backend).fit(rows)
        assert (model.score_samples(rows) == -0.5).all()
        assert (model.predict(rows) == 1).all()


def test_out_of_bag_proximities_of_other_rows(backend):
    model = forest(backend)
    said = "X has 5 rows, but the forest was fitted to 80: pass the data that it was fitted to"
    refused(said, lambda: model.proximity(X[:5], oob=True))


def test_numbers_of_neighbours(backend):
    model = forest(backend, n=3)
    refused("k=0 neighbours are none: pass 1 or more", lambda: model.neighbours(X, 0))
    near, rows = model.neighbours(X[:3], 9)
    assert near.shape == rows.shape == (3, 9)
    assert (rows[:, 2:] == -1).all()  # there are two others
    assert (near[:, 2:] == 0).all()


def test_labels_that_do_not_fit_the_proximities(backend):
    found = forest(backend, n=3).proximity(X)
    said = "y has 3 rows, but the proximities have 80: pass the same"
    refused(said, lambda: proximity_outliers(found, Y[:3]))


@pytest.mark.parametrize("find", [oob_impurity_importance, oob_permutation_importance])
def test_importances_out_of_bag_of_other_data(backend, find):
    model = forest(backend, RandomForestRegressor)
    said = "X has 79 rows, but the forest was fitted to 80: pass the data that it was fitted to"
    refused(said, lambda: find(model, X[1:], Y[1:]))
    said = "y has other values than in training: pass what the forest was fitted to"
    refused(said, lambda: find(model, X, Y + 100))


def test_levels_and_rounds_out_of_range(backend):
    said = (
        "The 'alpha' parameter of BorutaSelector must be a float in the range (0.0, 1.0). Got 1.0 "
        "instead."
    )
    refused(said, lambda: selector(backend, alpha=1.0).fit(X, Y))
    for params in ({"alpha": 0}, {"alpha": np.nan}, {"max_iter": 0}, {"importance": "gain"}):
        with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of Boruta"):
            selector(backend, **params).fit(X, Y)


def test_selection_by_another_estimator(backend):
    said = (
        "BorutaSelector takes a RandomForest*, ExtraTrees* or Bagging* of gpuforest as estimator, "
        "not a RandomForestClassifier of sklearn"
    )
    refused(said, lambda: BorutaSelector(TheirForest()).fit(X, Y), TypeError)


def test_selection_without_bags(backend):
    whole = RandomForestClassifier(bootstrap=False, backend=backend)
    said = (
        "importance='oob_impurity' needs rows out of bag: set bootstrap=True of the estimator, or "
        "importance='impurity'"
    )
    refused(said, lambda: BorutaSelector(whole).fit(X, Y))


def test_selection_from_one_row(backend):
    said = (
        "Found array with 1 sample(s) (shape=(1, 5)) while a minimum of 2 is required by "
        "BorutaSelector."
    )
    refused(said, lambda: selector(backend).fit(X[:1], Y[:1]))


def test_selection_where_nothing_varies(backend):
    rows = np.column_stack([X[:, 0], np.ones(80), np.full(80, np.nan)])
    found = selector(backend).fit(rows, X[:, 0] > 25)
    assert (found.ranking_ > 2).tolist() == [False, True, True]
    assert found.support_[0]
    found = selector(backend).fit(X, np.zeros(80))
    assert (found.ranking_ > 2).all()
