"""Poisson bags: how often a row counts in a tree is a hash of its id, and of nothing else."""

import pickle
from dataclasses import replace
from fractions import Fraction
from math import factorial

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from scipy.stats import chisquare, poisson
from sklearn.datasets import load_diabetes, load_wine

import gpuforest as gf
from gpuforest.backends import rows
from gpuforest.backends.numpy import HOST
from gpuforest.core.rules import Sampling, poisson_steps
from gpuforest.growing import targets
from gpuforest.growing.bags import draw_bags, drawn_rows, learned_from, was_drawn

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
FORESTS = (
    gf.RandomForestClassifier, gf.RandomForestRegressor,
    gf.ExtraTreesClassifier, gf.ExtraTreesRegressor,
)  # fmt: skip
POISSON = {"n_estimators": 6, "bootstrap": "poisson", "random_state": 3}


def test_steps_are_the_cumulative_distribution():
    """By a rational series of e**-1, whose error is below 1 / 40!."""
    inverse = sum(Fraction((-1) ** k, factorial(k)) for k in range(40))
    steps = poisson_steps(1.0)
    for k, step in enumerate(steps.tolist()):
        assert step == int(2**64 * inverse * sum(Fraction(1, factorial(i)) for i in range(k + 1)))
    assert len(steps) == 21
    assert len(poisson_steps(16.0)) < 128
    assert (np.diff(poisson_steps(16.0).astype(object)) > 0).all()


@pytest.mark.parametrize("rate", [0.3, 1.0, 4.5])
def test_counts_have_poissons_distribution(engine, rate):
    sampling = Sampling(5000, round(5000 * rate), None, rate=rate, ids=np.arange(5000) ** 3 - 10**6)
    bags = engine.asnumpy(draw_bags(sampling, 5, 0, 8, engine))
    assert np.array_equal(bags, draw_bags(sampling, 5, 0, 8, HOST))
    most = int(poisson.isf(1e-3, rate))
    found = np.bincount(np.minimum(bags, most).ravel(), minlength=most + 1)
    share = poisson.pmf(np.arange(most + 1), rate)
    share[-1] = poisson.sf(most - 1, rate)
    assert chisquare(found, share * bags.size).pvalue > 1e-3
    # trees are independent of each other, and so are rows
    assert abs(np.corrcoef(bags)[np.triu_indices(8, 1)]).max() < 5 / np.sqrt(5000)
    assert np.array_equal(drawn_rows(sampling, 5, 3, engine), np.repeat(np.arange(5000), bags[3]))
    assert bags.sum(axis=1).max() <= sampling.most_weight
    assert abs(bags.sum(axis=1).mean() - sampling.bag_weight) < 0.05 * sampling.bag_weight
    assert (bags > 0).sum(axis=1).max() <= sampling.likely_bag_rows


def test_a_count_depends_on_the_id_alone(engine):
    ids, order = np.arange(400) * 1001 - 5, np.random.default_rng(0).permutation(400)
    weights = np.arange(400, dtype=np.int32) % 3
    sampling = Sampling(400, 1, weights, rate=1.0, ids=ids)
    bags = engine.asnumpy(draw_bags(sampling, 0, 0, 4, engine))
    moved = replace(sampling, ids=ids[order], weights=weights[order])
    assert np.array_equal(engine.asnumpy(draw_bags(moved, 0, 0, 4, engine)), bags[:, order])
    fewer = replace(sampling, n_rows=100, ids=ids[:100].astype(np.uint64), weights=weights[:100])
    assert np.array_equal(engine.asnumpy(draw_bags(fewer, 0, 0, 4, engine)), bags[:, :100])
    assert np.array_equal(engine.asnumpy(was_drawn(sampling, 0, 0, 4, engine)), bags > 0)
    assert not (bags % np.maximum(weights, 1)).any()
    # of two rows, chance leaves out both in some trees, which then have both
    pairs = engine.asnumpy(draw_bags(Sampling(2, 2, None, rate=1.0), 0, 0, 60, engine))
    assert pairs.any(axis=1).all()


@pytest.mark.parametrize("n", [2499, 4999, 5000, 20_000, 200_000])
def test_rows_that_a_fit_learns_from(n):
    ids = np.random.default_rng(n).permutation(10 * n)[:n] - n
    is_chosen = rows.chosen(7, ids.view(np.uint64), n)
    least = rows.LEARNED_FROM
    assert is_chosen.all() if n < 2 * least else 0.9 * least < is_chosen.sum() < 2.1 * least
    learned = learned_from(Sampling(n, n, None, rate=1.0, ids=ids), 7)
    assert np.array_equal(np.sort(learned), np.flatnonzero(is_chosen))
    order = np.random.default_rng(1).permutation(n)
    moved = learned_from(Sampling(n, n, None, rate=1.0, ids=ids[order]), 7)
    assert np.array_equal(ids[order][moved], ids[learned])


def test_the_fixed_point_hardly_moves():
    y = np.random.default_rng(0).normal(size=(30_000, 1))
    chosen = np.flatnonzero(rows.chosen(0, np.arange(30_000, dtype=np.uint64), 30_000))
    coding, moments = targets.encode_moments(y, 2**20, chosen=chosen)
    others = np.setdiff1d(np.arange(30_000), chosen)
    y[others] = 100.0 * y[others[::-1]]
    again, wide = targets.encode_moments(y, 2**20, chosen=chosen)
    assert (coding.centre, coding.scale) == (again.centre, again.scale)
    assert np.array_equal(moments[chosen], wide[chosen])
    y[others[0]] = 1e9  # beyond all room: the scale gives way, and no sum can overflow
    far = targets.encode_moments(y, 2**20, chosen=chosen)[1]
    assert abs(far).max() <= 2**42


def table(kind, n):
    """Rows with numbers, categories, missing values and ties, a target, and weights."""
    rng = np.random.default_rng(n)
    X = pd.DataFrame(np.round(rng.normal(size=(n, 4)), 2), columns=[*"abcd"])
    X.loc[rng.random(n) < 0.1, "a"] = np.nan
    X["town"] = rng.choice([*"uvwxyz"], n)
    y = X["b"] + X["c"] ** 2 + (X["town"] > "w") + 0.1 * rng.normal(size=n)
    y = np.digitize(y, [0.5, 1.5]) if kind.__name__.endswith("Classifier") else y.to_numpy()
    return X, y, rng.integers(0, 4, n) * 0.37


@pytest.mark.parametrize("kind", FORESTS)
@pytest.mark.parametrize(("n", "weighed"), [(300, True), (12_000, False)])
def test_rows_in_any_order_give_the_same_forest(kind, n, weighed):
    X, y, weight = table(kind, n)
    weight = weight if weighed else None
    ids, order = (
        np.random.default_rng(0).permutation(10 * n)[:n],
        np.random.default_rng(1).permutation(n),
    )
    params = POISSON | {"max_samples": 0.8, "oob_score": n > 300, "max_depth": 9}
    whole = kind(**params).fit(X, y, weight, row_ids=ids)
    moved = None if weight is None else weight[order]
    other = kind(**params).fit(X.iloc[order], y[order], moved, row_ids=ids[order])
    assert same_forest(whole.forest_, other.forest_)
    assert np.array_equal(whole.row_ids_[order], other.row_ids_)
    if n > 300:
        name = "oob_prediction_" if hasattr(whole, "oob_prediction_") else "oob_decision_function_"
        assert np.array_equal(getattr(whole, name)[order], getattr(other, name), equal_nan=True)
    else:
        slow = kind(backend="numpy", **params).fit(X, y, weight, row_ids=ids)
        assert same_forest(whole.forest_, slow.forest_)
    by_number = kind(**params).fit(X, y, weight)
    assert by_number.row_ids_ is None
    assert same_forest(
        by_number.forest_, kind(**params).fit(X, y, weight, row_ids=np.arange(n)).forest_
    )
    assert not same_forest(by_number.forest_, whole.forest_)


def test_files_and_warm_starts(tmp_path):
    X, y, _ = table(gf.RandomForestRegressor, 300)
    ids = np.arange(300) * 3
    forest = gf.RandomForestRegressor(**POISSON).fit(X, y, row_ids=ids)
    again = pickle.loads(pickle.dumps(forest))
    assert np.array_equal(again.row_ids_, ids)
    numbers = gf.RandomForestRegressor(**POISSON).fit(X, y)
    for model in (forest, numbers):
        model.save(tmp_path / "model")
        loaded = gf.load(tmp_path / "model")
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert np.array_equal(loaded.row_ids_, model.row_ids_)
        assert (loaded.proximity(X, oob=True) != model.proximity(X, oob=True)).nnz == 0
    more = gf.RandomForestRegressor(**POISSON | {"n_estimators": 9}).fit(X, y, row_ids=ids)
    warm = forest.set_params(warm_start=True, n_estimators=9)
    with pytest.raises(ValueError, match="the same bootstrap, max_samples and row_ids"):
        warm.fit(X, y, row_ids=ids + 1)
    assert same_forest(warm.fit(X, y, row_ids=ids).forest_, more.forest_)


@pytest.mark.parametrize(("load", "kind", "least"), [
    (load_wine, gf.RandomForestClassifier, 0.95), (load_diabetes, gf.RandomForestRegressor, 0.38),
])  # fmt: skip
def test_as_good_as_drawn_bags(load, kind, least):
    X, y = load(return_X_y=True)
    scores = [
        kind(200, bootstrap=how, oob_score=True, random_state=0).fit(X, y).oob_score_
        for how in (True, "poisson")
    ]
    assert abs(scores[0] - scores[1]) < 0.03
    assert min(scores) > least


IDS = np.arange(300)


@pytest.mark.parametrize(("ids", "message"), [
    (IDS[:-1], "row_ids must be 300 integers, one for each row of X: .* shape \\(299,\\)"),
    (IDS * 1.0, "row_ids must be 300 integers, .* dtype float64"),
    (IDS.astype(str), "row_ids must be 300 integers"),
    (IDS > 5, "row_ids must be 300 integers, .* dtype bool"),
    (IDS // 2, "row_ids must all differ: 0 stands for 2 rows"),
    (IDS[:, None], "row_ids must be 300 integers"),
])  # fmt: skip
def test_refused_ids(ids, message):
    X, y, _ = table(gf.RandomForestRegressor, 300)
    with pytest.raises(ValueError, match=message):
        gf.RandomForestRegressor(**POISSON).fit(X, y, row_ids=ids)


def test_refused_parameters():
    X, y, _ = table(gf.RandomForestClassifier, 300)
    for params, given, message in (
        ({"bootstrap": True}, {"row_ids": IDS}, "set bootstrap='poisson', or pass neither"),
        ({"max_samples": 30}, {}, "max_samples=30 with bootstrap='poisson': pass how often"),
        ({"max_samples": 17.0}, {}, "a float up to 16"),
        ({"class_weight": "balanced_subsample"}, {}, "counts all rows of a bag"),
    ):
        with pytest.raises(ValueError, match=message):
            gf.RandomForestClassifier(**POISSON | params).fit(X, y, **given)
    forest = gf.RandomForestRegressor(**POISSON).fit(X, y)
    with pytest.raises(ValueError, match=r"return_std compares trees .* fit with bootstrap=True"):
        forest.predict(X, return_std=True)
