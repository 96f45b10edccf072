"""Rows that belong together: whole groups are drawn, judged and set aside."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from paths import ROOT
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.tree import DecisionTreeClassifier as TheirTree

import gpuforest as gf
from gpuforest.backends import boosters, numpy, registry
from gpuforest.estimators import base, boosting_fit
from gpuforest.explain import uncertainty

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(40), 1 + np.arange(40) % 6)  # of one to six rows
N = len(GROUPS)
OF_GROUP = RNG.normal(size=40)[GROUPS]
X = np.column_stack([RNG.normal(size=40)[GROUPS], RNG.normal(size=(N, 3))])
Y = X[:, 1] + 2 * OF_GROUP + 0.3 * RNG.normal(size=N)
LABELS = np.where(Y > 0, "high", "low")
WEIGHTS = RNG.integers(0, 4, N)
FORESTS = [
    gf.RandomForestRegressor, gf.ExtraTreesRegressor, gf.RandomForestQuantileRegressor,
    gf.BaggingRegressor, gf.RandomForestClassifier, gf.BaggingClassifier, gf.RandomSurvivalForest,
]  # fmt: skip


def made(kind, **params):
    if issubclass(kind, (gf.BaggingRegressor, gf.BaggingClassifier)):
        backend = params.pop("backend", "numpy")
        tree = kind._tree(backend=backend, max_depth=5)
        return kind(tree, **{"n_estimators": 30, "random_state": 0, **params})
    more = {"n_estimators": 30, "backend": "numpy", "random_state": 0, "bootstrap": True}
    return kind(**{**more, "max_depth": 5, **params})


def target(kind):
    if kind is gf.RandomSurvivalForest:
        return np.rec.fromarrays([np.arange(N) % 4 > 0, np.exp(-Y)])
    return LABELS if hasattr(kind, "predict_proba") else Y


def whole(samples):
    """How often each group was drawn: all of its rows alike."""
    counts = np.bincount(samples, minlength=N)
    of_groups = counts[np.unique(GROUPS, return_index=True)[1]]
    assert np.array_equal(counts, of_groups[GROUPS])
    return of_groups


@pytest.mark.parametrize("kind", FORESTS)
def test_trees_draw_whole_groups_and_others_are_out_of_bag(kind):
    model = made(kind, oob_score=True).fit(X, target(kind), groups=GROUPS)
    drawn = np.array([whole(samples) for samples in model.estimators_samples_])
    assert (drawn.sum(axis=1) == 40).all()
    assert len({tuple(row) for row in drawn}) == 30
    out = drawn[:, GROUPS] == 0
    if hasattr(model, "predict_proba"):
        trees = np.array([tree.predict_proba(X)[:, 0] for tree in model.estimators_])
        found = model.oob_decision_function_[:, 0]
    else:
        trees = np.array([tree.predict(X) for tree in model.estimators_])
        found = model.oob_prediction_
    means = np.where(out, trees, 0).sum(axis=0) / out.sum(axis=0)
    assert np.allclose(found, means)


@pytest.mark.parametrize(("kind", "params"), [
    (gf.RandomForestClassifier, {}), (gf.RandomForestClassifier, {"class_weight": "balanced"}),
    (gf.RandomForestClassifier, {"class_weight": "balanced_subsample"}),
    (gf.RandomForestClassifier, {"class_weight": {"high": 3, "low": 0.7}}),
    (gf.RandomForestRegressor, {"max_samples": 0.5}),
    (gf.RandomForestRegressor, {"max_samples": 50, "min_weight_fraction_leaf": 0.1}),
    (gf.RandomForestRegressor, {"criterion": "absolute_error"}),
    (gf.ExtraTreesRegressor, {"min_impurity_decrease": 0.01}),
    (gf.BaggingRegressor, {"bootstrap": False, "max_samples": 0.6}),
    (gf.RandomForestQuantileRegressor, {}),
])  # fmt: skip
@pytest.mark.parametrize("weights", [None, WEIGHTS, WEIGHTS / 3.7])
def test_backends_agree(kind, params, weights):
    score = {} if params.get("bootstrap") is False else {"oob_score": True}
    models = [
        made(kind, backend=backend, n_jobs=jobs, **params, **score).fit(
            X, target(kind), weights, groups=GROUPS
        )
        for backend, jobs in (("numpy", 1), ("numba", 2))
    ]
    assert same_forest(models[0].forest_, models[1].forest_)
    if score:
        assert models[0].oob_score_ == models[1].oob_score_
    assert np.array_equal(models[0].predict(X), models[1].predict(X))
    assert models[0]._sampling_.most_weight < 2**31


@pytest.mark.parametrize("kind", FORESTS)
def test_groups_of_one_row_in_their_order_change_nothing(kind):
    one_each = [f"row {i:03}" for i in range(N)]
    models = [
        made(kind, oob_score=True).fit(X, target(kind), groups=groups)
        for groups in (None, one_each)
    ]
    assert same_forest(models[0].forest_, models[1].forest_)
    assert models[0].oob_score_ == models[1].oob_score_


@pytest.mark.parametrize(
    "labels",
    [
        GROUPS.astype(float) / 7, [f"patient {g:02}" for g in GROUPS], pd.Series(GROUPS + 10**12),
        pd.Series([f"{g:02}" for g in GROUPS], dtype="category"),
        np.datetime64("2020-01-01") + GROUPS, pd.Series(GROUPS, dtype="Int64"),
    ],
    ids=["float", "str", "int64", "categories", "dates", "nullable"],
)  # fmt: skip
def test_labels_of_all_kinds_are_numbered_in_their_order(labels):
    models = [made(gf.RandomForestRegressor).fit(X, Y, groups=g) for g in (GROUPS, labels)]
    assert same_forest(models[0].forest_, models[1].forest_)


def test_weights_multiply_the_rows_of_groups():
    rows = np.repeat(np.arange(N), WEIGHTS)
    weighed = made(gf.RandomForestRegressor).fit(X, Y, WEIGHTS, groups=GROUPS)
    repeated = made(gf.RandomForestRegressor).fit(X[rows], Y[rows], groups=GROUPS[rows])
    assert same_forest(weighed.forest_, repeated.forest_)
    # a group of weight 10**6 is drawn no more often than others, but weighs
    heavy = np.where(GROUPS == 7, 10**6, 1)
    forest = made(gf.RandomForestRegressor, n_estimators=400).fit(X, Y, heavy, groups=GROUPS)
    out = np.mean([whole(samples)[7] == 0 for samples in forest.estimators_samples_])
    assert abs(out - np.exp(-1)) < 0.12
    assert forest._sampling_.weights.max() == 10**6


def test_bags_without_replacement_draw_groups():
    bag = made(gf.BaggingRegressor, bootstrap=False, max_samples=0.5).fit(X, Y, groups=GROUPS)
    drawn = np.array([whole(samples) for samples in bag.estimators_samples_])
    assert (drawn.sum(axis=1) == 20).all()
    assert drawn.max() == 1
    for kind in (gf.BaggingRegressor, gf.ExtraTreesRegressor):  # all rows are drawn, or no bags
        models = [made(kind, bootstrap=False).fit(X, Y, groups=g) for g in (None, GROUPS)]
        assert same_forest(models[0].forest_, models[1].forest_)


def test_importances_and_proximities_take_groups_out_of_bag():
    model = made(gf.RandomForestRegressor, unbiased_importances=True).fit(X, Y, groups=GROUPS)
    out = np.array([whole(samples) == 0 for samples in model.estimators_samples_])[:, GROUPS]
    found = gf.oob_permutation_importance(model, X, Y)
    assert np.isfinite(found.importances).all()
    # the variance that the root's split explains, by hand, for trees of one split
    stumps = made(gf.RandomForestRegressor, max_depth=1, max_features=None).fit(X, Y, groups=GROUPS)
    gains = gf.oob_impurity_importance(stumps, X, Y).importances
    for t, tree in enumerate(stumps.estimators_):
        rows, leaf = np.flatnonzero(out[t]), tree.apply(X)
        value, middle = tree.tree_.value[:, 0, 0], tree.tree_.value[0, 0, 0]
        moved = value[leaf[rows]] - middle
        assert np.isclose(gains[:, t].sum(), ((Y[rows] - middle) * moved).mean())
    leaves = model.apply(X)
    same, both = leaves[3] == leaves[50], out[:, 3] & out[:, 50]
    assert np.isclose(model.proximity(X, oob=True)[3, 50], (same & both).sum() / both.sum())


def test_standard_errors_are_those_of_groups():
    model = made(gf.RandomForestRegressor, n_estimators=30).fit(X, Y, groups=GROUPS)
    draws = np.array([whole(samples) for samples in model.estimators_samples_])
    trees = np.array([tree.predict(X) for tree in model.estimators_])
    d = trees - trees.mean(axis=0)
    C = draws.T @ d / 30 - draws.mean(axis=1).mean() * d.mean(axis=0)
    variance = (C**2).sum(axis=0) - 40 * (1 - 1 / 40) / 30**2 * (d**2).sum(axis=0)
    errors = model.predict(X, return_std=True)[1]
    assert np.allclose(errors, np.sqrt(np.maximum(variance, 0)))
    assert uncertainty.products(model.forest_, model._sampling_).shape == (30, 30)


def test_quantile_forests_take_groups_out_of_bag(tmp_path):
    model = made(gf.RandomForestQuantileRegressor).fit(X, Y, groups=GROUPS)
    found = model.predict(X, "mean", oob_score=True)
    same = np.zeros(N)
    for g in range(40):  # what quantile-forest does: the rows of a group as one and the same
        rows = np.flatnonzero(g == GROUPS)
        same[rows] = model.predict(X, "mean", oob_score=True, duplicates=[rows.tolist()])[rows]
    assert np.array_equal(found, same, equal_nan=True)
    weighed = made(gf.RandomForestQuantileRegressor).fit(X, Y, WEIGHTS, groups=GROUPS)
    rows = np.repeat(np.arange(N), WEIGHTS)
    repeated = made(gf.RandomForestQuantileRegressor).fit(X[rows], Y[rows], groups=GROUPS[rows])
    for quantiles in ("mean", [0.1, 0.5]):
        assert np.allclose(weighed.predict(X, quantiles), repeated.predict(X, quantiles), atol=1e-6)
    model.save(tmp_path / "model")
    pair = (m.predict(X, 0.3, oob_score=True) for m in (model, gf.load(tmp_path / "model")))
    assert np.array_equal(*pair, equal_nan=True)


def test_files_and_pickles_keep_groups(tmp_path):
    model = made(gf.RandomForestRegressor, oob_score=True).fit(X, Y, WEIGHTS, groups=GROUPS)
    model.save(tmp_path / "model")
    for other in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other._sampling_.groups, GROUPS)
        for a, b in zip(model.estimators_samples_, other.estimators_samples_, strict=True):
            assert np.array_equal(a, b)
        found = [gf.oob_permutation_importance(m, X, Y).importances for m in (model, other)]
        assert np.array_equal(*found)
        assert np.array_equal(other.predict_interval(X), model.predict_interval(X))
        assert np.array_equal(other.predict(X, return_std=True), model.predict(X, return_std=True))
    bag = made(gf.BaggingRegressor).fit(X, Y, groups=GROUPS)
    bag.save(tmp_path / "bag")
    with pytest.raises(ValueError, match="the bags are not known to Bagging"):
        gf.load(tmp_path / "bag").proximity(X, oob=True)


def test_scikit_learns_forest_draws_the_same_groups():
    model = made(gf.RandomForestRegressor).fit(X, Y, WEIGHTS, groups=GROUPS)
    theirs = model.to_sklearn()
    for a, b in zip(model.estimators_samples_, theirs.estimators_samples_, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("kind", FORESTS)
def test_one_group_of_some_weight_is_refused_and_few_draws_are_warned_of(kind):
    with pytest.raises(ValueError, match="all rows of some weight are of one group"):
        made(kind).fit(X, target(kind), (GROUPS == 3) * 1.0, groups=GROUPS)
    with pytest.warns(UserWarning, match="draws only 4 groups a tree"):
        made(kind, max_samples=0.1).fit(X, target(kind), groups=GROUPS)


def test_other_refusals(monkeypatch):
    bag = made(gf.BaggingRegressor, bootstrap=False, max_samples=41)
    with pytest.raises(ValueError, match="max_samples=41 draws 41 of 40 groups without"):
        bag.fit(X, Y, groups=GROUPS)
    model = made(gf.RandomForestRegressor, warm_start=True).fit(X, Y, groups=GROUPS)
    before, model.n_estimators = model.forest_, 40
    monkeypatch.setattr(base, "grow", None)  # no tree grows in vain
    for other in (None, GROUPS // 2):
        with pytest.raises(ValueError, match="adds trees from the same groups"):
            model.fit(X, Y, groups=other)
        assert model.forest_ is before


@pytest.mark.parametrize("name", ["groups", "blocks"])
def test_other_estimators_take_no_groups_or_blocks(name):
    for kind in (gf.DecisionTreeRegressor, gf.IsolationForest, gf.AdaBoostRegressor):
        with pytest.raises(TypeError, match=name):
            kind().fit(X, Y, **{name: GROUPS})
    with pytest.raises((TypeError, ValueError)):  # routed to estimators that want them
        gf.BaggingClassifier(TheirTree(), 3).fit(X, LABELS, **{name: GROUPS})


def test_scores_by_groups_are_near_those_of_grouped_folds():
    """With metadata routing, folds and forests get the same groups."""
    with config_context(enable_metadata_routing=True):
        forest = made(gf.RandomForestRegressor, n_estimators=100, max_depth=None, backend="numba")
        forest.set_fit_request(groups=True)
        found = cross_validate(
            forest, X, Y, cv=GroupKFold(10), params={"groups": GROUPS}, return_estimator=True
        )
    assert all(model._sampling_.groups is not None for model in found["estimator"])
    predicted = np.empty(N)
    for model, (_, test) in zip(
        found["estimator"], GroupKFold(10).split(X, Y, GROUPS), strict=True
    ):
        predicted[test] = model.predict(X[test])
    of_folds = r2_score(Y, predicted)
    scores = [
        clone(forest).set_params(oob_score=True).fit(X, Y, groups=g).oob_score_
        for g in (GROUPS, None)
    ]
    assert abs(scores[0] - of_folds) < 0.1 < scores[1] - of_folds


def boosted(kind=gf.HistGradientBoostingRegressor, **params):
    more = {"backend": "numpy", "max_iter": 12, "early_stopping": True, "random_state": 0}
    return kind(**{**more, "min_samples_leaf": 5, **params})


@pytest.mark.parametrize(
    "kind", [gf.HistGradientBoostingRegressor, gf.HistGradientBoostingClassifier]
)
def test_early_stopping_sets_whole_groups_aside(kind, monkeypatch):
    parts = []

    def keep(*arguments):
        parts.append(aside(*arguments))
        return parts[-1]

    aside = boosting_fit.groups_aside
    monkeypatch.setattr(boosting_fit, "groups_aside", keep)
    y = LABELS if kind is gf.HistGradientBoostingClassifier else Y
    for weights in (None, WEIGHTS):
        models = [
            boosted(kind, backend=backend, refit=refit).fit(X, y, weights, groups=GROUPS)
            for backend, refit in (("numpy", False), ("numba", False), ("numba", True))
        ]
        assert same_forest(models[0].forest_, models[1].forest_)
        train, held = parts[-1]
        groups = GROUPS if weights is None else GROUPS[weights > 0]
        assert len(set(groups[held])) == np.ceil(0.1 * len(set(groups)))
        assert not set(groups[held]) & set(groups[train])
        assert sorted([*train, *held]) == [*range(len(groups))]
        rows = np.arange(N) if weights is None else np.flatnonzero(weights)
        train, held = rows[train], rows[held]
        w = {"sample_weight": weights[train]} if weights is not None else {}
        w |= {"sample_weight_val": weights[held]} if weights is not None else {}
        by_hand = boosted(kind, backend="numba").fit(
            X[train], y[train], X_val=X[held], y_val=y[held], **w
        )
        assert same_forest(by_hand.forest_, models[0].forest_)
        assert np.array_equal(by_hand.validation_score_, models[0].validation_score_)
    assert not np.array_equal(aside(GROUPS, 0.3, 0)[1], aside(GROUPS, 0.3, 1)[1])


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
@pytest.mark.parametrize("stops", [False, True])
def test_rounds_draw_whole_groups(loss, stops):
    y, params = np.abs(Y), {"loss": loss, "subsample": 0.5, "early_stopping": stops}
    models = [
        boosted(backend=backend, n_jobs=jobs, **params).fit(X, y, groups=GROUPS)
        for backend, jobs in (("numpy", 1), ("numba", 1), ("numba", 2))
    ]
    assert all(same_forest(model.forest_, models[0].forest_) for model in models)
    if not stops:  # which would set others aside
        alone, rows = (boosted(**params).fit(X, y, groups=g) for g in (np.arange(N), None))
        assert same_forest(alone.forest_, rows.forest_)
        assert not same_forest(rows.forest_, models[0].forest_)
    rules = SimpleNamespace(n_rows=N, row_groups=GROUPS, subsample=0.5, seed=0)
    for number in range(5):
        rows, n_drawn = boosters.ordered_rows(rules, number)
        drawn, others = rows[:n_drawn], rows[n_drawn:]
        assert len(set(GROUPS[drawn])) == 20
        assert not set(GROUPS[drawn]) & set(GROUPS[others])
        assert sorted(rows) == [*range(N)]
        assert all((np.diff(part) > 0).all() for part in (drawn, others))


def test_a_device_that_draws_no_groups_for_rounds_leaves_them_to_the_cpu(caplog):
    class Device(numpy.NumpyBackend):
        name, on_host = "device", False

    device = Device()
    assert registry.for_boosting(device) is device
    assert registry.for_boosting(device, ["subsample of groups"]).on_host
    assert "'device' has no subsample of groups: the trees grow on the CPU" in caplog.text


def test_boosting_refuses_bad_groups():
    with pytest.raises(ValueError, match=r"validation_fraction=0\.1 leaves no groups") as caught:
        boosted().fit(X, Y, groups=np.zeros(N))
    assert str(caught.value) in (ROOT / "docs" / "robustness.md").read_text()
    with pytest.raises(ValueError, match=f"X has {N} rows, groups has 3"):
        boosted(early_stopping=False).fit(X, Y, groups=[1, 2, 3])
    a, b = (boosted(early_stopping=False).fit(X, Y, groups=g) for g in (None, GROUPS))
    assert same_forest(a.forest_, b.forest_)
