"""Leaves of boosted trees that are filled anew: the same rows give the same model."""

import numpy as np
import pytest
from sweeps import swept

import gpuforest as gf

REGRESSOR, CLASSIFIER = gf.HistGradientBoostingRegressor, gf.HistGradientBoostingClassifier
KINDS = [
    (CLASSIFIER, {}), (CLASSIFIER, {"max_leaf_nodes": 5, "l2_regularization": 1.0}),
    (REGRESSOR, {"categorical_features": [3]}), (REGRESSOR, {"loss": "absolute_error"}),
    (REGRESSOR, {"loss": "quantile", "quantile": 0.3, "subsample": 0.5}),
    (REGRESSOR, {"loss": "poisson"}), (REGRESSOR, {"monotonic_cst": [1, 0, 0, 0]}),
    (REGRESSOR, {"loss": "huber"}), (REGRESSOR, {"multi_strategy": "multi_output_tree"}),
    (REGRESSOR, {"loss": "absolute_error", "monotonic_cst": [1, 0, 0, 0]}),
]  # fmt: skip


def rows(kind, params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 6, 600)
    y = np.nan_to_num(X[:, 0]) + X[:, 3] % 3 + rng.normal(size=600)
    if "multi_strategy" in params:
        y = np.column_stack([y, -y])
    return X, np.digitize(y, [0, 1]) if kind is CLASSIFIER else np.abs(y)


@pytest.mark.parametrize(("kind", "params"), swept(3, KINDS))
@pytest.mark.parametrize("weighs", [False, True])
def test_the_same_rows_give_the_same_model(kind, params, weighs):
    X, y = rows(kind, params)
    weight = np.arange(600) % 3.0 if weighs else None
    how = {"max_iter": 6, "early_stopping": False, "random_state": 0}
    model = kind(**how | params).fit(X, y, weight)
    before, predicted = model.digest_, model.predict(X)
    assert model.refit_leaves(X, y, weight).digest_ == before
    half = model.refit_leaves(X[:400], y[:400], decay_rate=0.5)
    assert not np.array_equal(half.predict(X), predicted) or kind is CLASSIFIER
    assert half.digest_ != before
    model.fit(X, y, weight).refit_leaves(X[:400], y[:400], decay_rate=1.0)
    assert np.allclose(model.predict(X), predicted)  # leaves keep what they add


def test_a_first_round_by_hand():
    """Two leaves add the mean of what is left of their rows, by half; a leaf without rows stays."""
    X, y = np.array([[0.0], [0], [1], [1]]), np.array([0.0, 0, 4, 4])
    how = {"max_iter": 1, "learning_rate": 0.5, "min_samples_leaf": 1, "early_stopping": False}
    model = gf.HistGradientBoostingRegressor(**how, l2_regularization=0.0).fit(X, y)
    assert model.predict([[0], [1]]).tolist() == [1, 3]
    assert model.refit_leaves(X, y + 4).predict([[0], [1]]).tolist() == [3, 5]
    assert model.refit_leaves(X[:1], [10]).predict([[0], [1]]).tolist() == [6, 5]
    assert model.refit_leaves(X, y, decay_rate=0.25).predict([[0], [1]]).tolist() == [2.25, 3.5]


@pytest.mark.parametrize(("change", "why"), [
    ({"decay_rate": 2}, "decay_rate=2 must be a number from 0 to 1"),
    ({"y": np.zeros(600)}, "y must have the classes of the fit, and all of them"),
    ({"decay_rate": "half"}, "decay_rate='half' must be a number from 0 to 1"),
    ({"X": np.zeros((600, 2))}, "X has 2 features"),
    ({"X": gf.BinnedData.from_blocks([np.zeros((600, 4))])}, "and X is BinnedData"),
])  # fmt: skip
def test_bad_input_leaves_the_model_as_it_was(change, why):
    X, y = rows(CLASSIFIER, {})
    model = CLASSIFIER(max_iter=2).fit(X, y)
    before = model.digest_
    with pytest.raises(ValueError, match=why):
        model.refit_leaves(**{"X": X, "y": y} | change)
    assert model.digest_ == before
    offset = CLASSIFIER(max_iter=2).fit(X, y > 1, init_score=X[:, 3])
    with pytest.raises(ValueError, match="models without init_score"):
        offset.refit_leaves(X, y > 1)


def test_groups_and_exposure_are_given_again():
    X, y = rows(REGRESSOR, {})
    given = {"groups": np.arange(600) // 5, "exposure": np.arange(600) % 3 + 1.0}
    how = {"max_iter": 6, "early_stopping": False, "random_state": 0, "subsample": 0.5}
    model = REGRESSOR(**how, loss="poisson").fit(X, y, **given)
    before = model.digest_
    assert model.refit_leaves(X, y, **given).digest_ == before
    assert model.refit_leaves(X, y).digest_ != before
