"""Isolation forests: anomalies are found, as scikit-learn finds them, on every backend alike."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_matrix
from sklearn.ensemble import IsolationForest as Theirs
from sklearn.metrics import roc_auc_score

import gpuforest
from gpuforest import IsolationForest
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.growing.isolation import POOL_ROWS, even_edges, pool_of

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(980, 4)), RNG.uniform(-6, 6, size=(20, 4))])
ODD = np.arange(1000) >= 980


def fitted(backend="numba", n_estimators=20, **params):
    model = IsolationForest(
        n_estimators=n_estimators, random_state=params.pop("random_state", 0), backend=backend
    )
    return model.set_params(**params).fit(X)


def test_scores_are_distributed_as_scikit_learns():
    mine = fitted(n_estimators=200).score_samples(X)
    theirs = Theirs(n_estimators=200, random_state=0).fit(X).score_samples(X)
    assert stats.spearmanr(mine, theirs)[0] > 0.97
    assert abs(mine.mean() - theirs.mean()) < 0.01  # both vary by seed: some 0.003


def test_the_score_by_hand(backend):
    model = fitted(backend, max_samples=64)
    lengths = np.mean([tree.predict(X) for tree in model.estimators_], axis=0)
    most = 2 * (np.log(63) + np.euler_gamma) - 2 * 63 / 64
    assert np.allclose(model.score_samples(X), -(2 ** -(lengths / most)))  # sums in other orders
    assert model.max_samples_ == 64
    assert model.forest_.depth <= 6


def test_offsets_and_labels(backend):
    model = fitted(backend)
    assert model.offset_ == -0.5
    model = fitted(backend, contamination=0.02)
    assert model.offset_ == np.percentile(model.score_samples(X), 2)
    assert np.array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    labels = model.fit_predict(X)
    assert (labels == -1).sum() == 20
    assert np.array_equal(labels == -1, model.decision_function(X) < 0)


def test_the_rows_of_each_tree():
    for bootstrap in (False, True):
        model = fitted(bootstrap=bootstrap, max_samples=500, n_estimators=3)
        assert [len(rows) for rows in model.estimators_samples_] == [500] * 3
        assert (len(np.unique(model.estimators_samples_[0])) == 500) != bootstrap


def test_the_features_of_each_tree():
    model = fitted(max_features=0.5, n_estimators=5)
    for tree, allowed in zip(model.estimators_, model.estimators_features_, strict=True):
        assert len(allowed) == 2
        assert set(tree.tree_.feature[tree.tree_.feature >= 0]) <= set(allowed)


@pytest.mark.parametrize(("max_samples", "depth"), [("auto", 8), (5, 3), (1, 1)])
def test_trees_name_the_depth_that_they_may_have(max_samples, depth):
    model = fitted("numpy", 2, max_samples=max_samples)
    assert [tree.max_depth for tree in model.estimators_] == [depth] * 2


def test_many_rows_are_drawn_from_a_pool():
    assert pool_of(1, POOL_ROWS, 256, None) is None
    pool = pool_of(1, 10**6, 256, None)
    assert len(np.unique(pool)) == POOL_ROWS
    assert pool.max() < 10**6
    many = np.arange(2.0 * POOL_ROWS)[:, None]
    model = IsolationForest(n_estimators=2, random_state=0, backend="numpy").fit(many)
    drawn = model.estimators_samples_[0]
    assert len(np.unique(drawn)) == 256
    assert drawn.max() > POOL_ROWS


def test_weights_are_chances():
    weights = np.array([0, 1, 3], np.int32)
    share = np.bincount(pool_of(0, 3, 2, weights)) / POOL_ROWS
    assert share[0] == 0
    assert abs(share[2] - 0.75) < 0.02
    model = IsolationForest(n_estimators=5, random_state=0).fit(X, sample_weight=~ODD)
    assert max(rows.max() for rows in model.estimators_samples_) < 980


def test_bins_are_of_equal_width():
    values = np.array([[0.0, 5, np.nan], [1, 5, np.nan], [8, 5, np.nan], [np.nan, 5, np.nan]])
    for table in (values, csr_matrix(values)):
        edges = even_edges(table, 4, {}, NumpyBackend())
        assert edges.values.tolist() == [2, 4, 6]
        assert edges.offsets.tolist() == [0, 3, 3, 3]


def test_long_tails_get_more_bins():
    """Else all values but a few would share a bin, and not be told apart."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 3))
    rows[:30, :2] *= 3
    rows[rng.random(3000) < 3e-3, 0] *= 1e4
    rows[rng.random(3000) < 0.1, 1] = np.nan
    edges = even_edges(rows, "auto", {}, NumpyBackend())
    assert (edges.n_bins == [65_535, 1023, 1023]).all()
    assert np.allclose(np.diff(edges.values[:65_534]), np.ptp(rows[:, 0]) / 65_535)
    sparse = even_edges(csr_matrix(rows), "auto", {}, NumpyBackend())
    assert np.array_equal(sparse.values, edges.values)


def test_the_middle_half_of_long_tails_has_64_bins():
    """With 16, forests told amounts of different size apart less well than exact cuts do."""
    amounts = np.exp(2 * np.random.default_rng(0).normal(size=(2000, 1)))
    edges = even_edges(amounts, "auto", {}, NumpyBackend()).values
    low, high = np.quantile(amounts, [0.25, 0.75])
    assert 62 <= ((edges > low) & (edges < high)).sum() <= 66


def test_categories_and_missing_values(backend):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"kind": rng.choice(["a", "b", "c"], 500), "size": rng.normal(size=500).astype("f4")}
    )
    frame.loc[:4, "kind"] = "rare"
    frame.loc[5:90, "size"] = np.nan
    model = IsolationForest(n_estimators=50, random_state=0, backend=backend).fit(frame)
    score = model.score_samples(frame)
    assert model.is_categorical_.tolist() == [True, False]
    assert score[:5].mean() < score[91:].mean() - 0.05
    # a row without a value is on a side at random, so it is as normal as others
    assert abs(score[5:91].mean() - score[91:].mean()) < 0.05
    assert np.isfinite(model.score_samples(frame.assign(kind="new", size=np.nan))).all()


def test_binned_data():
    data = gpuforest.BinnedData.from_blocks([X], random_state=0)
    model = IsolationForest(n_estimators=50, random_state=0).fit(data)
    assert roc_auc_score(ODD, -model.score_samples(X)) > 0.9


def test_what_there_is_not():
    assert not hasattr(fitted(), "feature_importances_")
    with pytest.warns(UserWarning, match="greater than the total number of samples"):
        assert fitted(max_samples=2000).max_samples_ == 1000
