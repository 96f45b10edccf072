"""Target statistics beside groups and beside rows of weight zero: what holds for each alone."""

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from sklearn.base import clone

import gpuforest as gf
from gpuforest.estimators import boosting_fit

N_GROUPS, SIZE = 300, 8
TOWNS = np.array([f"town {i}" for i in range(40)])
OF_TOWN = np.random.default_rng(9).normal(size=40)
OWN, SHARED, BOTH = ("id",), ("town",), ("id", "town")


def simulated(rng, target, ids, n_groups=N_GROUPS, name="old"):
    """X, y and groups: each group has an effect that no feature explains, and brings its own ids;
    towns are shared among the groups, and have effects too."""
    groups = np.repeat(np.arange(n_groups), SIZE)
    N = len(groups)
    numbers, town = rng.normal(size=(N, 3)), rng.integers(0, 40, N)
    score = numbers[:, 0] + 1.5 * rng.normal(size=n_groups)[groups] + 0.5 * rng.normal(size=N)
    score += OF_TOWN[town] * ("town" in ids)
    frame = pd.DataFrame(numbers, columns=list("abc"))
    own = [f"{name} {g}.{visit}" for g, visit in zip(groups, rng.integers(0, 2, N), strict=True)]
    columns = {"id": own, "town": TOWNS[town]}
    frame = frame.assign(**{column: columns[column] for column in ids})
    if target == "numbers":
        return frame, score, groups
    cuts = {"two": [0], "several": [-1.5, 0, 1.5]}[target]
    return frame, np.digitize(score, cuts), groups


def losses(model, X, y, values):
    """Squared errors, or whether labels are wrong, from predictions or shares of classes."""
    if not hasattr(model, "classes_"):
        return (values - y) ** 2
    return (model.classes_[values.argmax(axis=1)] != y) * 1.0


def mean_of_groups(values, groups):
    """The mean, and its standard error, of groups of one size."""
    means = np.bincount(groups, values) / np.bincount(groups)
    return means.mean(), means.std(ddof=1) / len(means) ** 0.5


def holds(model, X, y):
    """The share of rows whose 90 % interval, or set of classes, has the target."""
    if hasattr(model, "classes_"):
        return model.predict_set(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()
    low, high = model.predict_interval(X).T
    return ((low <= y) & (y <= high)).mean()


def off(target, ids, params, seed):
    """By how many standard errors losses out of bag lie above those of rows of new groups, and the
    share of these rows in 90 % intervals."""
    rng = np.random.default_rng(seed)
    X, y, groups = simulated(rng, target, ids)
    X_new, y_new, of_new = simulated(rng, target, ids, 600, "new")
    kind = gf.RandomForestRegressor if target == "numbers" else gf.RandomForestClassifier
    plain = {"n_estimators": 100, "max_depth": 8, "oob_score": True, "random_state": seed}
    model = kind(**plain | params).fit(X, y, groups=groups)
    if target == "numbers":
        judged, values = model.oob_prediction_, model.predict(X_new)
    else:
        judged, values = model.oob_decision_function_, model.predict_proba(X_new)
    found, error = mean_of_groups(losses(model, X, y, judged), groups)
    truth, error_new = mean_of_groups(losses(model, X_new, y_new, values), of_new)
    return (found - truth) / np.hypot(error, error_new), holds(model, X_new, y_new)


TASKS = [
    *((target, ids) for target in ("numbers", "two", "several") for ids in (OWN, SHARED, BOTH)),
    ("numbers", BOTH),
]


@pytest.mark.parametrize("split", ["ordered_target", "auto"])
def test_rows_out_of_bag_are_predicted_as_those_of_new_groups(split):
    """Losses of ten tasks lie within two standard errors, and intervals hold their share."""
    found = [off(*task, {"categorical_split": split}, seed) for seed, task in enumerate(TASKS)]
    errors, inside = np.transpose(found)
    assert np.abs(errors).max() < 2
    assert abs(inside.mean() - 0.9) < 0.02


@pytest.mark.deep
def test_more_tasks_of_new_groups():
    found = [
        off(*task, {"categorical_split": "auto"}, seed) for seed in range(10, 16) for task in TASKS
    ]
    errors, inside = np.transpose(found)
    # the tasks of a seed have the same effects of groups, so six seeds differ by 0.3 on average
    assert np.abs(errors.mean()) < 0.8
    assert np.mean(np.abs(errors) > 2) < 0.1
    assert np.mean(errors < -2) < 0.05  # rows are not judged too well
    assert abs(inside.mean() - 0.9) < 0.02


ASKED = {"oob_score": True, "random_state": 0}
TREE = gf.DecisionTreeRegressor(categorical_split="auto")


@pytest.mark.parametrize("model", [
    gf.RandomForestRegressor.preset("accurate", **ASKED),
    gf.ExtraTreesRegressor.preset("accurate", **ASKED),
    gf.RandomForestRegressor("auto", categorical_split="auto", **ASKED),
    gf.RandomForestQuantileRegressor(categorical_split="auto", **ASKED),
    gf.BaggingRegressor(TREE, n_estimators=60, **ASKED),
], ids=["accurate", "accurate extra trees", "as many as needed", "quantiles", "bags"])  # fmt: skip
def test_scores_out_of_bag_with_choices_made_there(model):
    rng = np.random.default_rng(0)
    X, y, groups = simulated(rng, "numbers", OWN)
    X_new, y_new, _ = simulated(rng, "numbers", OWN, 600, "new")
    assert abs(model.fit(X, y, groups=groups).oob_score_ - model.score(X_new, y_new)) < 0.06


# rows of weight zero change nothing

RNG = np.random.default_rng(1)
N = 600
TOWN = RNG.integers(0, 40, N)
WEIGHTS = RNG.integers(0, 4, N) * 1.0
COUNTED = WEIGHTS > 0
GROUPS = RNG.integers(0, 120, N)
COUNTED[GROUPS == 3], WEIGHTS[GROUPS == 3] = False, 0
Z = OF_TOWN[TOWN] + RNG.normal(size=N)
SIX = np.array(list("abcdef"))[np.digitize(Z, [-2, -1, 0, 1, 2])]
Z[~COUNTED] = RNG.permutation(Z[~COUNTED])
FRAME = pd.DataFrame({"town": TOWNS[TOWN], "a": RNG.normal(size=N)})
FRAME.loc[np.flatnonzero(~COUNTED)[:20], "town"] = "elsewhere"
BY = {"categorical_split": "ordered_target", "random_state": 2}
STUMP = gf.DecisionTreeClassifier(max_depth=3, categorical_split="ordered_target")
DEEP = gf.DecisionTreeRegressor(max_depth=3, categorical_split="ordered_target")
MODELS = [
    gf.DecisionTreeClassifier(**BY), gf.DecisionTreeRegressor(**BY),
    gf.RandomForestClassifier(4, **BY), gf.RandomForestRegressor(4, **BY),
    gf.ExtraTreesClassifier(4, **BY), gf.ExtraTreesRegressor(4, bootstrap=True, **BY),
    gf.RandomForestQuantileRegressor(4, **BY),
    gf.BaggingClassifier(STUMP, 4, random_state=2), gf.BaggingRegressor(DEEP, 4, random_state=2),
    gf.AdaBoostClassifier(STUMP, n_estimators=4, random_state=2),
    gf.AdaBoostRegressor(DEEP, n_estimators=4, random_state=2),
    gf.HistGradientBoostingClassifier(max_iter=4, **BY),
    gf.HistGradientBoostingRegressor(max_iter=4, **BY),
]  # fmt: skip
NAMES = [type(model).__name__ for model in MODELS]
GROUPED = [model for model in MODELS if not isinstance(model, (type(MODELS[0]), type(MODELS[1])))]
GROUPED = [model for model in GROUPED if "AdaBoost" not in type(model).__name__]


def target_of(model, y=Z):
    return SIX if hasattr(model, "predict_proba") else y


def binned(model, y, weights, groups, rows=slice(None)):
    """The rows in three blocks, for this model."""
    parts = [part[rows] for part in (FRAME, y, weights, groups) if part is not None]
    cuts = slice(9), slice(9, 300), slice(300, None)
    boosts = {"max_bins": 255, "min_category_frequency": 1} if hasattr(model, "max_iter") else {}
    return gf.BinnedData.from_blocks([tuple(p[cut] for p in parts) for cut in cuts], **BY, **boosts)


def assert_same(found, expected):
    assert same_forest(found.forest_, expected.forest_)
    assert found.forest_.edges.statistics == expected.forest_.edges.statistics
    assert len(found.forest_.edges.statistics) == 1
    assert found.forest_.n_nodes > 10


@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_rows_of_weight_zero_change_nothing(model):
    y = target_of(model)
    expected = clone(model).fit(FRAME[COUNTED], y[COUNTED], WEIGHTS[COUNTED])
    assert_same(clone(model).fit(FRAME, y, WEIGHTS), expected)
    assert_same(clone(model).fit(binned(model, y, WEIGHTS, None)), expected)
    assert_same(clone(model).fit(binned(model, y, WEIGHTS, None, COUNTED)), expected)


@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS], ids=["alone", "weighted"])
@pytest.mark.parametrize("model", GROUPED, ids=lambda model: type(model).__name__)
def test_groups_and_rows_of_weight_zero(model, weights):
    y, counted = target_of(model), weights > 0
    expected = clone(model).fit(
        FRAME[counted], y[counted], weights[counted], groups=GROUPS[counted]
    )
    assert_same(clone(model).fit(FRAME, y, weights, groups=GROUPS), expected)
    assert_same(clone(model).fit(binned(model, y, weights, GROUPS)), expected)
    without = clone(model).fit(FRAME, y, weights)
    assert not np.array_equal(without.forest_.edges.values, expected.forest_.edges.values)


@pytest.mark.parametrize("model", GROUPED, ids=lambda model: type(model).__name__)
def test_groups_of_one_row_change_no_statistic(model):
    y = target_of(model)
    expected = clone(model).fit(FRAME, y)
    assert_same(clone(model).fit(FRAME, y, groups=[f"row {i:03}" for i in range(N)]), expected)
    others = clone(model).fit(FRAME, y, groups=RNG.permutation(N))  # draws differ, numbers do not
    assert np.array_equal(others.forest_.edges.values, expected.forest_.edges.values)


def test_classes_of_weight_zero_change_nothing():
    kept = SIX != "f"
    for grouped in ({}, {"groups": GROUPS}):
        model = gf.RandomForestClassifier(4, class_weight={"f": 0}, **BY).fit(FRAME, SIX, **grouped)
        some = {name: groups[kept] for name, groups in grouped.items()}
        other = gf.RandomForestClassifier(4, **BY).fit(FRAME[kept], SIX[kept], **some)
        numbers = [m.forest_.edges.statistics[0] for m in (model, other)]
        assert numbers[0] == numbers[1]
        assert np.array_equal(model.predict(FRAME), other.predict(FRAME))


def test_boosting_stops_by_groups_that_gave_no_number():
    model = gf.HistGradientBoostingRegressor(max_iter=5, early_stopping=True, **BY)
    whole = clone(model).fit(FRAME, Z, WEIGHTS, groups=GROUPS)
    rows = np.flatnonzero(COUNTED)
    train, held = boosting_fit.groups_aside(GROUPS[rows], 0.1, 2)
    train, held = rows[train], rows[held]
    alone = clone(model).set_params(early_stopping=False)
    alone.fit(FRAME.iloc[train], Z[train], WEIGHTS[train], groups=GROUPS[train])
    assert_same(whole, alone)
    errors = (alone.predict(FRAME.iloc[held]) - Z[held]) ** 2
    loss = np.average(errors, weights=WEIGHTS[held]) / 2
    assert whole.validation_score_[-1] == pytest.approx(-loss)
