"""Gradient boosting as users meet it: the same model on each backend, as good as scikit-learn's."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_regression
from sklearn.ensemble import HistGradientBoostingRegressor as TheirRegressor
from sklearn.model_selection import train_test_split

import gpuforest
from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from gpuforest.backends import base, numpy, registry
from gpuforest.backends.boosters import NumpyBooster
from gpuforest.common import progress

rng = np.random.default_rng(0)
CANCER, IRIS, DIABETES = (
    load(return_X_y=True) for load in (load_breast_cancer, load_iris, load_diabetes)
)
LOSSES = ["squared_error", "absolute_error", "huber", "poisson", "gamma", "quantile"]


def same(a, b):
    """Whether two models are equal, bit for bit."""
    first, second = a.forest_, b.forest_
    names = ("nodes", "tree_offsets", "leaf_sums", "leaf_values", "sets")
    equal = all(np.array_equal(getattr(first, n), getattr(second, n)) for n in names)
    return equal and np.array_equal(first.coding.units, second.coding.units)


@pytest.mark.parametrize("loss", LOSSES)
def test_each_loss_is_near_scikit_learn(loss):
    X, y = DIABETES
    share = {"quantile": 0.8} if loss == "quantile" else {}
    ours = HistGradientBoostingRegressor(loss, max_iter=50, random_state=0, **share).fit(X, y)
    if loss == "huber":  # scikit-learn's class has none
        assert ours.score(X, y) > 0.75
        return
    theirs = TheirRegressor(loss=loss, max_iter=50, random_state=0, **share).fit(X, y)
    # bins are chosen in other ways
    assert np.corrcoef(ours.predict(X), theirs.predict(X))[0, 1] > 0.97
    assert abs(ours.score(X, y) - theirs.score(X, y)) < 0.03


def test_the_model_does_not_depend_on_the_order_of_rows_or_idle_features():
    X, y = CANCER
    model = HistGradientBoostingClassifier(max_iter=10, backend="numba")
    order = rng.permutation(len(y))
    first = clone(model).fit(X, y)
    assert same(first, clone(model).fit(X[order], y[order]))
    wide = clone(model).fit(np.column_stack([X, np.zeros(len(y))]), y)
    assert np.array_equal(first.forest_.nodes, wide.forest_.nodes)
    weight = rng.integers(0, 2, len(y)).astype(float)  # rows of weight zero are as if not there
    some = weight > 0
    assert same(clone(model).fit(X, y, weight), clone(model).fit(X[some], y[some], weight[some]))


def test_stages_end_at_the_prediction():
    X, y = IRIS
    model = HistGradientBoostingClassifier(max_iter=7, backend="numba").fit(X, y)
    for name in ("predict", "predict_proba", "decision_function"):
        stages = list(getattr(model, f"staged_{name}")(X))
        assert len(stages) == 7
        assert np.array_equal(stages[-1], getattr(model, name)(X))
    assert model.decision_function(X).shape == (150, 3)
    two = HistGradientBoostingClassifier(max_iter=3).fit(*CANCER)
    assert two.decision_function(CANCER[0]).shape == (569,)
    proba = two.predict_proba(CANCER[0])
    assert np.array_equal(two.predict(CANCER[0]), (proba[:, 1] > proba[:, 0]).astype(int))


def test_leaves_have_the_least_hessian(backend):
    X, y = CANCER
    model = HistGradientBoostingClassifier(max_iter=9, min_samples_leaf=1, backend=backend)
    usual, coarse, free = (
        clone(model).set_params(**options).fit(X, y)
        for options in ({}, {"min_hessian": 4}, {"min_hessian": 0})
    )
    assert same(usual, clone(model).set_params(min_hessian=1e-3).fit(X, y))
    assert same(free, usual)  # nothing is so small in nine rounds
    assert hessians(usual).min() < 4 <= hessians(coarse).min()
    with pytest.raises(ValueError, match=r"'min_hessian' parameter .* must be a float in"):
        clone(model).set_params(min_hessian=-1).fit(X, y)
    with pytest.warns(UserWarning, match=r"less than min_hessian=1e\+06, so no node is split"):
        stump = clone(model).set_params(min_hessian=1e6).fit(X, y)
    assert stump.forest_.n_nodes == 9


def hessians(model):
    trees = (gpuforest.tree_nodes(model, t).values() for t in range(model.n_iter_))
    return np.array([node.hessians for tree in trees for node in tree if node.is_leaf])


def test_warm_start_goes_on_where_it_ended():
    X, y = DIABETES
    model = HistGradientBoostingRegressor(
        max_iter=8, warm_start=True, random_state=3, subsample=0.7, max_features=0.5
    )
    model.fit(X, y).set_params(max_iter=15).fit(X, y)
    assert model.n_iter_ == 15
    assert same(model, clone(model).set_params(warm_start=False).fit(X, y))
    with pytest.raises(ValueError, match="max_iter=5 must be larger than or equal to n_iter_=15"):
        model.set_params(max_iter=5).fit(X, y)
    assert model.n_iter_ == 15


def test_early_stopping_keeps_scores():
    X, y = make_regression(n_samples=300, noise=30, random_state=0)
    model = HistGradientBoostingRegressor(
        max_iter=500, early_stopping=True, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    assert model.n_iter_ < 500
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_ + 1
    assert (np.diff(model.train_score_) > 0).all()
    before = model.validation_score_[-6]
    assert (model.validation_score_[-5:] <= before + model.tol).all()
    scored = clone(model).set_params(scoring="r2").fit(X, y)
    assert 0.3 < scored.validation_score_.max() <= 1
    for options, n_scores in (({"early_stopping": False}, 0), ({"validation_fraction": None}, 11)):
        other = clone(model).set_params(max_iter=10, **options).fit(X, y)
        assert other.n_iter_ == 10
        assert (len(other.train_score_), len(other.validation_score_)) == (n_scores, 0)


REFITS = {
    "numbers": (HistGradientBoostingRegressor(subsample=0.7), DIABETES),
    "binned": (HistGradientBoostingRegressor(max_features=0.5), DIABETES),
    "classes": (HistGradientBoostingClassifier(class_weight="balanced", scoring="accuracy"), IRIS),
}
STOPS = {
    "max_iter": 25, "early_stopping": True, "n_iter_no_change": 3, "learning_rate": 0.4,
    "validation_fraction": 0.3, "random_state": 5,
}  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", REFITS)
def test_refit_is_a_fit_of_all_rows_with_the_best_number_of_rounds(backend, name, weighted):
    model, (X, y) = REFITS[name]
    weight = np.random.default_rng(2).integers(0, 4, len(y)) if weighted else None
    if name == "binned":
        X = gpuforest.BinnedData.from_blocks([(X, y)], max_bins=255, random_state=0)
    model = clone(model).set_params(**STOPS, backend=backend)
    search = clone(model).fit(X, y, weight)
    best = int(search.validation_score_.argmax())
    assert 1 <= best < search.n_iter_
    plain = clone(model).set_params(early_stopping=False, max_iter=best).fit(X, y, weight)
    model.set_params(refit=True).fit(X, y, weight)
    assert same(model, plain)
    assert (model.n_iter_, model.seed_, model.backend_) == (best, 5, backend)
    assert model.do_early_stopping_
    for scores in ("train_score_", "validation_score_"):
        assert np.array_equal(getattr(model, scores), getattr(search, scores))


def test_refit_of_noise_grows_one_round():
    y = np.random.default_rng(3).normal(size=200)
    model = HistGradientBoostingRegressor(**STOPS | {"learning_rate": 1}, refit=True, verbose=0)
    model.fit(rng.normal(size=(200, 5)), y)
    assert model.validation_score_.argmax() == 0
    assert model.n_iter_ == 1


def test_refit_reports_its_rounds_and_is_a_stage(capsys):
    seen = []
    with progress.heard_by(lambda *report: seen.append(report)):
        model = HistGradientBoostingRegressor(**STOPS, refit=True).fit(*DIABETES)
    n, grown = len(model.validation_score_) - 1, [r for r in seen if r[0] == "growing" and r[1]]
    assert grown[:n] == [("growing", i + 1, 25) for i in range(n)]
    assert grown[n:] == [("growing", i + 1, model.n_iter_) for i in range(model.n_iter_)]
    model.set_params(verbose=1).fit(*DIABETES)
    stages = re.findall(r"gpuforest: (\w+), [0-9.]+ s", capsys.readouterr().out)
    assert stages == ["starting", "checking", "binning", "growing", "refitting"]


@pytest.mark.parametrize("early_stopping", [False, "auto"])
def test_refit_changes_nothing_without_early_stopping(early_stopping):
    model = HistGradientBoostingRegressor(
        early_stopping=early_stopping, max_iter=5, random_state=0, refit=True
    ).fit(*DIABETES)
    assert not model.do_early_stopping_
    assert len(model.validation_score_) == 0
    assert same(model, clone(model).set_params(refit=False).fit(*DIABETES))


@pytest.mark.parametrize(
    ("options", "passed", "what"),
    [
        ({}, {"X_val": [[0.0]], "y_val": [0.0]}, "X_val and y_val"),
        ({"validation_fraction": None}, {}, "validation_fraction=None"),
        ({"warm_start": True}, {}, "warm_start=True"),
        ({"warm_start": True, "validation_fraction": None}, {},
            "validation_fraction=None, warm_start=True"),
    ],
)  # fmt: skip
def test_refit_needs_rows_that_were_set_aside(options, passed, what):
    model = HistGradientBoostingRegressor(refit=True, **options)
    with pytest.raises(ValueError, match=f"does not go with {what}: leave that out, or set refit"):
        model.fit(None, None, **passed)  # before anything is looked at


def test_no_round_is_grown_for_nothing(monkeypatch):
    grown, trees = [], NumpyBooster.grow_trees
    monkeypatch.setattr(NumpyBooster, "grow_trees", lambda *a: grown.append(1) or trees(*a))
    model = HistGradientBoostingRegressor(max_iter=4, warm_start=True, backend="numpy")
    for max_iter in (4, 4, 6):  # all rounds may be there already
        model.set_params(max_iter=max_iter).fit(*DIABETES)
        assert len(grown) == max_iter


def test_validation_rows_that_are_passed():
    X, X_val, y, y_val = train_test_split(*CANCER, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=300, n_iter_no_change=5, random_state=0)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert model.do_early_stopping_
    assert model.n_iter_ < 300
    with pytest.raises(ValueError, match="previously unseen labels"):
        model.fit(X, y, X_val=X_val, y_val=y_val + 5)
    with pytest.raises(ValueError, match="X_val is provided, but y_val was not provided"):
        model.fit(X, y, X_val=X_val)


def test_categories_of_frames():
    n = 600
    city = rng.choice(["Aachen", "Bonn", "Cuxhaven", "Dresden"], n)
    size = rng.random(n)
    frame = pd.DataFrame({"size": size, "city": pd.Categorical(city)})
    y = size + np.isin(city, ["Aachen", "Dresden"])
    model = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(frame, y)
    assert model.is_categorical_.tolist() == [False, True]
    assert model.score(frame, y) > 0.98
    noisy = clone(model).fit(np.column_stack([rng.random(n), size, rng.random(n)]), size)
    assert noisy.feature_importances_.argmax() == 1
    assert np.isclose(noisy.feature_importances_.sum(), 1)
    unknown = frame.assign(city=pd.Categorical(["Essen"] * n))
    missing = frame.assign(city=pd.Categorical([None] * n, categories=["Aachen"]))
    assert np.array_equal(model.predict(unknown), model.predict(missing))
    with pytest.raises(ValueError, match="'city' is expected to have a cardinality <= 2"):
        model.set_params(max_bins=2).fit(frame, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_random_models_respect_monotonic_constraints(loss):
    n, grid = 120, np.linspace(-3, 3, 40)
    for seed in range(4):
        own = np.random.default_rng(seed)
        X = own.normal(size=(n, 3)).round(1)
        y = X[:, 0] + np.sin(3 * X[:, 1]) + own.standard_t(2, n)
        y = np.exp(np.clip(y, -4, 4)) if loss in ("poisson", "gamma") else y
        weight = own.integers(1, 4, n) if seed % 2 else None
        model = HistGradientBoostingRegressor(
            loss, quantile=0.3 if loss == "quantile" else None, monotonic_cst=[1, -1, 0],
            max_iter=10, min_samples_leaf=3, learning_rate=0.5, random_state=0,
        ).fit(X, y, weight)  # fmt: skip
        for f, sign in ((0, 1), (1, -1)):
            rows = np.repeat(X[:20, None], len(grid), axis=1)
            rows[:, :, f] = grid
            steps = np.diff(model.predict(rows.reshape(-1, 3)).reshape(20, -1), axis=1)
            assert (sign * steps >= 0).all()
            assert (sign * steps > 0).any()


def test_on_a_backend_that_does_not_boost_the_cpu_grows_the_trees(caplog, monkeypatch):
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))

    class Other(numpy.NumpyBackend):
        name = "other"
        booster = base.Backend.booster

    gpuforest.register_backend("other", Other)
    model = HistGradientBoostingRegressor(max_iter=3, backend="other").fit(*DIABETES)
    assert model.backend_ == "numba"
    assert "has no gradient boosting" in caplog.text
    assert same(model, clone(model).set_params(backend="numpy").fit(*DIABETES))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_verbose_prints_rounds_and_losses(backend, scoring, capsys, monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    X, y = (part[::5] for part in CANCER)
    model = HistGradientBoostingClassifier(max_iter=3, random_state=0, backend=backend, verbose=1)
    stops = {"early_stopping": True, "validation_fraction": None}
    lines = []
    for params in ({}, stops | {"scoring": scoring}, {"early_stopping": True, "warm_start": True}):
        fitted = clone(model).set_params(**params).fit(X, y)
        lines.append(re.findall("gpuforest: (round .*)", capsys.readouterr().out))
        assert same(fitted, clone(fitted).set_params(verbose=0).fit(X, y))
    sign, word = (-1, "loss") if scoring == "loss" else (1, "score")
    scores = clone(model).set_params(**stops, verbose=0, scoring=scoring).fit(X, y).train_score_
    left = ", [0-9.]+ s left"
    expected = [f"round {i} of 3, {word} {sign * scores[i]:.6g}" for i in (1, 2, 3)]
    assert [re.sub(left, "", line) for line in lines[1]] == expected
    assert [bool(re.search(left, line)) for line in lines[1]] == [True, True, False]
    if scoring == "loss":  # also where nothing stops early
        assert [re.sub(left, "", line) for line in lines[0]] == expected
    train, held = -fitted.train_score_[-1], -fitted.validation_score_[-1]
    assert lines[2][-1] == f"round 3 of 3, loss {train:.6g}, validation loss {held:.6g}"
    fitted.set_params(max_iter=5).fit(X, y)
    assert "gpuforest: round 4 of 5, loss" in capsys.readouterr().out
