"""Survival forests: splits, curves, risks and errors by their definitions in plain Python."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cuda_on_cpu.module import available
from emulated import EmulatedBackend
from engine import same_forest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from survivors import data, data_of_causes, data_of_ties, target

import gpuforest
from gpuforest import ExtraSurvivalTrees, RandomSurvivalForest, register_backend
from gpuforest.backends import registry
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.explain.survival import StepFunction, concordance, person_time
from gpuforest.export.onnx import to_onnx
from gpuforest.growing.bags import draw_bags

KINDS = [RandomSurvivalForest, ExtraSurvivalTrees]
BOTH = ["exponential", "logrank"]
X, Y = data()
ROWS = {"one cause": (X, Y), "two causes": data_of_causes()}
ROWS["ties"] = data_of_ties(900, 0)  # enough rows for codes to be copied


def test_a_case_worked_by_hand():
    # one leaf: deaths at 1 (of 5 at risk), 3 and 3 (of 3); one leaves at 2, one at 4
    y = target([True, False, True, True, False], [1.0, 2.0, 3.0, 3.0, 4.0])
    options = {"bootstrap": False, "backend": "numpy", "min_samples_leaf": 5}
    forest = RandomSurvivalForest(1, **options).fit(np.zeros((5, 1)), y)
    assert forest.unique_times_.tolist() == [1.0, 3.0]
    row = np.zeros((1, 1))
    hazard = forest.predict_cumulative_hazard_function(row, return_array=True)
    assert np.allclose(hazard, [[1 / 5, 1 / 5 + 2 / 3]])
    survival = forest.predict_survival_function(row, return_array=True)
    assert np.allclose(survival, [[4 / 5, 4 / 5 * 1 / 3]])
    assert np.allclose(forest.predict(row), 1 / 5 + (1 / 5 + 2 / 3))
    [function] = forest.predict_survival_function(row)
    assert np.allclose(function([0.5, 1.0, 2.9, 3.0, 99.0]), [1, 0.8, 0.8, 0.8 / 3, 0.8 / 3])
    assert function(0.0) == 1.0


def test_person_time_by_hand():
    # rows 1, 2, 2+, 4+: until 1 four rows lived 4 in all, and one died; later 1 + 1 + 3, and one
    event, time = np.array([True, True, False, False]), np.array([1.0, 2.0, 2.0, 4.0])
    hazard = person_time(event, time, np.ones(4))
    assert np.allclose(hazard, [1 / 4, 1 / 4 + 1 / 5, 1 / 4 + 1 / 5, 1 / 4 + 3 / 5])
    assert np.isclose(hazard.sum(), event.sum())  # as many events as expected ones
    twice = person_time(np.repeat(event, 2), np.repeat(time, 2), np.ones(8))
    assert np.allclose(twice, np.repeat(hazard, 2))
    assert np.allclose(person_time(event, time, np.array([3.0, 1, 1, 1]))[0], 3 / 6)


def test_person_time_of_the_least_and_the_greatest_times():
    """Exact fractions know the hazard; no product of times and weights may overflow."""
    time = np.array([5e-324, 1e-323, 1e-310, 1.0, 1e200, 1.5e308, 1.7e308])
    event, weight = np.array([True, False, True, True, True, False, True]), np.full(7, 2.0**28)
    expected, before, last = np.zeros(7), Fraction(0), Fraction(0)
    for end in map(Fraction, time[event]):
        lived = [min(max(Fraction(t) - last, 0), end - last) for t in time]
        came = sum(e and Fraction(t) == end for e, t in zip(event, time, strict=True))
        for i, part in enumerate(lived):
            if part:
                expected[i] = before + Fraction(int(came)) * part / sum(lived)
        before, last = before + Fraction(int(came)) * (end - last) / sum(lived), end
    assert np.allclose(person_time(event, time, weight), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("criterion", BOTH)
def test_times_of_any_size(criterion, backend):
    whole = target(Y["event"], np.ceil(Y["time"] * 100))
    options = {"criterion": criterion, "bootstrap": False, "random_state": 0, "backend": backend}
    weight = np.full(len(X), 2.0**20)
    forest = RandomSurvivalForest(2, **options).fit(X, whole, weight)
    for exponent in (-1074, 1024 - math.frexp(whole["time"].max())[1]):
        y = target(Y["event"], np.ldexp(whole["time"], exponent))
        other = clone(forest).fit(X, y, weight)
        assert same_forest(forest.forest_, other.forest_)
        assert np.array_equal(other.unique_times_, np.ldexp(forest.unique_times_, exponent))
    y = target(Y["event"] | (np.arange(len(X)) == 3), Y["time"])
    y["time"][3] = np.nextafter(0, 1)  # the usual trick against times of zero
    for bootstrap in (True, False):
        model = clone(forest).set_params(bootstrap=bootstrap).fit(X, y)
        assert model.score(X, y) > 0.7


def curves_of(y, drawn, grid):
    """The curves of a leaf by definition: survival, then incidences and hazards of its causes."""
    causes, found = range(1, 1 + y["event"].max()), []
    left, come, hazard = 1.0, np.zeros(len(causes)), np.zeros(len(causes))
    for time in grid:
        at_risk, now = drawn[y["time"] >= time].sum(), y["time"] == time
        events = np.array([drawn[now & (y["event"] == k)].sum() for k in causes])
        share = events / max(at_risk, 1)
        come, hazard, left = come + left * share, hazard + share, left * (1 - share.sum())
        found.append([left, *come, *hazard])
    return np.transpose(found)


@pytest.mark.parametrize(("kind", "bootstrap", "criterion", "rows"), [
    *((kind, drawn, "exponential", "one cause") for kind in KINDS for drawn in (True, False)),
    *((RandomSurvivalForest, True, criterion, "two causes") for criterion in BOTH),
])  # fmt: skip
def test_curves_and_risks_are_means_over_leaves(kind, bootstrap, criterion, rows):
    X, y = ROWS[rows]
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    options = {"criterion": criterion, "bootstrap": bootstrap, "random_state": 0}
    forest = kind(4, n_times=10**6, **options).fit(X, y, weight)
    grid, few = forest.unique_times_, X[:15]
    leaves, mine = forest.apply(few), forest.apply(X)
    bags = draw_bags(forest._sampling_, forest.seed_, 0, 4, NumpyBackend())
    found = [forest.predict_survival_function(few, True)]
    causes = range(1, 1 + y["event"].max())
    found += [forest.predict_cumulative_incidence_function(few, True, k) for k in causes]
    found += [forest.predict_cumulative_hazard_function(few, True, k) for k in causes]
    expected = np.zeros((len(found), len(few), len(grid)))
    for i, t in np.ndindex(len(few), 4):
        expected[:, i] += curves_of(y, bags[t] * (mine[:, t] == leaves[i, t]), grid) / 4
    assert np.allclose(found, expected)
    risks = expected[1 + len(causes) :].sum(axis=2).T
    assert np.allclose(forest.predict(few).reshape(risks.shape), risks)


def test_splits_are_the_best_by_their_likelihood():
    rng = np.random.default_rng(0)
    options = {"bootstrap": False, "max_features": None, "max_depth": 1, "min_samples_leaf": 1}
    for seed in range(20):
        X, y = rng.integers(0, 6, (40, 3)).astype(float), data(40, seed)[1]
        if y["event"].sum() < 2:
            continue
        forest = RandomSurvivalForest(1, **options, backend="numpy", random_state=0).fit(X, y)
        hazard = person_time(y["event"], y["time"], np.ones(len(y)))

        def score(side, y=y, hazard=hazard):
            events = y["event"][side].sum()
            return events * math.log(events / hazard[side].sum()) if events else -math.inf

        gains = {}
        for f in range(3):
            for cut in np.unique(X[:, f])[:-1]:
                left = X[:, f] <= cut
                gains[tuple(left)] = score(left) + score(~left)
        left = forest.apply(X)[:, 0] == forest.apply(X)[0, 0]
        left = left if tuple(left) in gains else ~left
        assert np.isclose(gains[tuple(left)], max(gains.values()), rtol=1e-4)


@given(n=st.integers(2, 60), seed=st.integers(0, 1000), ties=st.booleans())
def test_concordance(n, seed, ties):
    rng = np.random.default_rng(seed)
    event, time, risk = rng.random(n) < 0.6, rng.random(n), rng.random(n)
    if ties:
        time, risk = np.round(time, 1), np.round(risk, 1)
    pairs = good = 0
    for i in range(n):
        for j in range(n):
            first = time[i] < time[j] or (time[i] == time[j] and not event[j])
            if i != j and event[i] and first:
                pairs += 1
                good += 1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j])
    found = concordance(event, time, risk)
    assert np.isnan(found) if not pairs else np.isclose(found, good / pairs)


@pytest.mark.parametrize(("criterion", "rows", "kind"), [
    *(("exponential", "one cause", kind) for kind in KINDS),
    *((criterion, "two causes", RandomSurvivalForest) for criterion in BOTH),
    *(("logrank", "ties", kind) for kind in KINDS),
])  # fmt: skip
def test_backends_threads_and_memory_give_the_same_forest(criterion, rows, kind, monkeypatch):
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    if available() is None:
        register_backend("emulated", lambda *_: EmulatedBackend())
    rows, options = ROWS[rows], {"criterion": criterion, "random_state": 0, "oob_score": True}
    first, *models = (
        kind(20, backend=backend, n_jobs=n_jobs, **options).fit(*rows)
        for backend, n_jobs in (("numpy", 1), ("numba", 1), ("numba", 3), ("emulated", 1))
        if backend in registry._factories
    )
    assert first.forest_.n_nodes > len(rows[0])
    for model in models:
        assert same_forest(first.forest_, model.forest_)
        assert np.array_equal(first.predict(rows[0]), model.predict(rows[0]))
        assert first.oob_score_ == model.oob_score_
        curves = (m.predict_survival_function(rows[0][:9], True) for m in (first, model))
        assert np.array_equal(*curves)


def test_rows_out_of_bag():
    forest = RandomSurvivalForest(30, random_state=0, oob_score=True, backend="numpy").fit(X, Y)
    bags = draw_bags(forest._sampling_, forest.seed_, 0, 30, NumpyBackend())
    trees = [tree.predict(X) for tree in forest.estimators_]
    out = bags == 0
    means = np.nan_to_num((out * np.array(trees)).sum(axis=0) / out.sum(axis=0))
    assert np.allclose(forest.oob_prediction_, means)
    assert forest.oob_score_ == concordance(Y["event"], Y["time"], forest.oob_prediction_)
    assert 0.6 < forest.oob_score_ < forest.score(X, Y)


BY_OOB = {"max_features": "oob", "min_samples_leaf": "oob"}


@pytest.mark.parametrize(("criterion", "options"), [
    ("exponential", {"n_estimators": "auto", "max_estimators": 60, "oob_tol": 0.5}),
    ("exponential", {"max_features": "oob"}), ("exponential", {"max_samples": 0.5}),
    ("exponential", {"feature_combinations": 2.0}),
    ("exponential", {"max_depth": 2, "min_samples_leaf": 0.1}), ("logrank", {"max_depth": 2}),
    ("logrank", {"max_samples": 0.5, "max_bins": 300}),
    *((criterion, options) for criterion in BOTH for options in (BY_OOB, {"max_leaf_nodes": 4})),
], ids=str)  # fmt: skip
def test_parameters(criterion, options):
    model = RandomSurvivalForest(48, criterion=criterion, random_state=0).set_params(**options)
    found = model.fit(*data(300), groups=np.arange(300) // 2)
    assert found.score(*data(300, 1)) > 0.6
    if "max_leaf_nodes" in options:
        assert {tree.get_n_leaves() for tree in found.estimators_} == {4}
    if "max_depth" in options:
        assert max(tree.get_depth() for tree in found.estimators_) == 2


def test_few_times_are_quantiles_of_all():
    forest = RandomSurvivalForest(5, random_state=0, n_times=7).fit(*data(ties=False))
    fine = clone(forest).set_params(n_times=10**6).fit(*data(ties=False))
    assert len(forest.unique_times_) == 7
    assert set(forest.unique_times_) <= set(fine.unique_times_)
    assert np.array_equal(forest.predict(X), fine.predict(X))
    at = np.searchsorted(fine.unique_times_, forest.unique_times_)
    few, all_ = (m.predict_survival_function(X, return_array=True) for m in (forest, fine))
    assert np.allclose(few, all_[:, at])


@pytest.mark.parametrize("criterion", BOTH)
def test_weights_count_rows(criterion):
    options = {"bootstrap": False, "max_features": None, "min_samples_leaf": 1}
    options |= {"criterion": criterion, "min_samples_split": 2, "random_state": 0}
    model, rows = RandomSurvivalForest(1, **options), np.r_[0:50, 0:150]
    found = clone(model).fit(X, Y, np.repeat([2.0, 1.0, 0.0], [50, 100, 50])).predict(X)
    assert len(np.unique(found)) > 10
    assert np.allclose(found, clone(model).fit(X[rows], Y[rows]).predict(X))


def test_frames_and_categories():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=["x", "y"] * 100)
    y = pd.DataFrame({"event": Y["event"], "time": Y["time"]})
    forest = RandomSurvivalForest(10, random_state=0).fit(frame, y)
    assert forest.is_categorical_.tolist() == [False] * 4 + [True]
    assert np.array_equal(clone(forest).fit(frame, Y).predict(frame), forest.predict(frame))
    assert forest.score(frame, y) == forest.score(frame, Y)


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(50), 4)], ids=["rows", "groups"])
def test_low_memory_keeps_no_codes_and_has_no_curves(groups, tmp_path):
    whole = RandomSurvivalForest(10, random_state=0).fit(X, Y, groups=groups)
    forest = clone(whole).set_params(low_memory=True).fit(X, Y, groups=groups)
    assert len(pickle.dumps(forest)) < len(pickle.dumps(whole)) - X.size + 100
    forest.save(tmp_path / "model")
    for same in (forest, gpuforest.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(same.predict(X), whole.predict(X))
        assert np.array_equal(same.unique_times_, whole.unique_times_)
        for kind in ("survival", "cumulative_hazard", "cumulative_incidence"):
            name = f"predict_{kind}_function"
            with pytest.raises(NotImplementedError, match=f"{name} is not .* low_memory=False"):
                getattr(same, name)(X)


def test_functions_are_those_of_scikit_survival():
    x, y = np.array([1.0, 2.0, 5.0]), np.array([0.9, 0.5, 0.2])
    function = StepFunction(x, y, 1.0)
    assert (function.a, function.b, function.domain) == (1.0, 0.0, (0.0, 5.0))
    assert StepFunction(x, y, domain=(None, 9)).domain == (1.0, 9.0)
    assert StepFunction(x, y)(0.5) == 0.9  # without a value before the first time, the first
    half = StepFunction(x, y, 1.0, a=0.5, b=0.25)
    assert half([0.0, 1.0, 4.0, 9.0]).tolist() == [0.75, 0.7, 0.5, 0.35]
    assert repr(half).endswith("a=0.5, b=0.25)")
    assert function == StepFunction(x.copy(), y.copy(), 1.0)
    others = [half, StepFunction(x, y, 0.5), StepFunction(x, y / 2, 1.0), 1.0]
    assert all(function != other for other in [*others, StepFunction(x[:2], y[:2], 1.0)])
    with pytest.raises(ValueError, match="times must be finite"):
        function([1.0, np.nan])
    curves = (RandomSurvivalForest(3, random_state=0).fit(X, Y) for _ in range(2))
    one, same = (forest.predict_survival_function(X[:3]) for forest in curves)
    assert (one == same).tolist() == [True] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_trees_are_fitted_like_forests_of_one(kind, tmp_path):
    options = {"bootstrap": False, "random_state": 3, "max_depth": 3}
    forest = kind(1, **options).fit(X, Y)
    [tree] = forest.estimators_
    again = clone(tree).fit(X, Y)
    assert again.forest_.n_nodes > 3
    assert np.array_equal(again.predict(X), forest.predict(X))
    assert tree.score(X, Y) == again.score(X, Y) == forest.score(X, Y)
    with pytest.raises(ValueError, match="y must say which rows had their event"):
        tree.fit(X, Y["time"])
    with pytest.raises(ValueError, match="pickle the estimator instead"):
        tree.save(tmp_path / "tree")  # its class is not public


def test_words_are_those_of_scikit_survival():
    with pytest.warns(UserWarning, match="to compute any reliable oob estimates"):
        RandomSurvivalForest(2, oob_score=True, random_state=0).fit(X, Y)
    allowed = r"must be None, a float in the range \(0.0, inf\) or an int in the range \[1, inf\)"
    with pytest.raises(ValueError, match=f"'max_samples' parameter of Random.* {allowed}"):
        RandomSurvivalForest(max_samples=0).fit(X, Y)
    assert RandomSurvivalForest().__sklearn_tags__().target_tags.required


def test_curves_that_were_asked_for_are_in_no_pickle():
    forest = RandomSurvivalForest(5, random_state=0).fit(X, Y)
    before = pickle.dumps(forest)
    forest.predict_survival_function(X[:1])
    assert "_steps_" in vars(forest)
    assert pickle.dumps(forest) == before


@pytest.mark.parametrize(("rows", "first"), [("one cause", 0), ("two causes", [0, 1])])
def test_shares_of_features_add_up_to_the_risks(rows, first):
    forest = RandomSurvivalForest(10, random_state=0).fit(*ROWS[rows])
    few = ROWS[rows][0][:20]
    shares = forest.shap_values(few)
    assert np.allclose(shares.sum(axis=1) + forest.expected_value_, forest.predict(few))
    assert np.abs(shares).sum(axis=0).argmax(axis=0).tolist() == first


def test_as_scikit_learn_calls_it():
    scores = cross_val_score(RandomSurvivalForest(20, random_state=0), *data(300), cv=3)
    assert scores.min() > 0.55
    forest = RandomSurvivalForest(20, random_state=0).fit(X, Y)
    assert forest.feature_importances_.argmax() == 0
    assert forest.proximity(X[:5]).shape == (5, 5)


@pytest.mark.parametrize(("y", "message"), [
    (Y["time"], "y must say which rows had their event, and when"),
    (np.array([("a", 1.0)] * 200, [("e", "U1"), ("t", float)]), "y must say which rows had"),
    (Y[:-1], "X has 200 rows, y has 199"),
    (target([False] * 200, Y["time"]), "all rows of y are censored"),
    (target(Y["event"], Y["time"] * 0), "all events of y are at time 0"),
    (target(Y["event"], -Y["time"]), "the times of y must be finite and not negative: row 0"),
    (target(Y["event"], Y["time"] * np.nan), "the times of y must be finite"),
    (np.array([(0.5, 1.0)] * 200, [("e", float), ("t", float)]), "the events of y must"),
    (np.array([(101, 1.0)] * 200, [("e", int), ("t", float)]), "the events of y must"),
    (Y.astype([("event", bool), ("time", float, (2,))]), "the field 'time' of y must hold one"),
])  # fmt: skip
def test_targets_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        RandomSurvivalForest(2).fit(X, y)


WEEKS = np.random.default_rng(1).integers(1, 52, len(Y))  # which could be causes


@pytest.mark.parametrize(
    "columns",
    [
        {"time": WEEKS, "event": Y["event"] * 1},
        {"Survival_in_days": WEEKS, "Status": Y["event"] * 1},
        {"TENURE": WEEKS, "x": Y["event"] * 1},
        {"x": WEEKS, "death_event": Y["event"] * 1},
        {"time_to_event": WEEKS, "Event": Y["event"] * 1},  # of both words, time decides
        {"x": WEEKS, "z": Y["event"]},
        {"x": WEEKS / 2, "z": Y["event"] * 1},
        {"x": WEEKS * 100, "z": Y["event"] * 1},
    ],
    ids=lambda columns: "-".join(columns),
)
def test_what_tells_events_from_times(columns):
    frame = pd.DataFrame(columns)
    time, event = frame.to_numpy(float).T
    wanted = RandomSurvivalForest(3, random_state=0).fit(X, target(event > 0, time))
    theirs = frame[[*frame.columns[::-1]]].to_records(index=False)  # the event first
    blocks = [(X[i : i + 50], frame[i : i + 50]) for i in range(0, len(X), 50)]
    data = gpuforest.BinnedData.from_blocks(blocks, random_state=0)
    targets = [frame, frame.to_records(index=False), theirs, pa.table(frame)]
    targets += [pa.table(frame).to_batches()[0], frame.convert_dtypes()]
    for of_fit in [*((X, y) for y in targets), (data,)]:
        forest = RandomSurvivalForest(3, random_state=0).fit(*of_fit)
        assert np.array_equal(forest.predict(X), wanted.predict(X))
    assert forest.score(X, frame) == wanted.score(X, target(event > 0, time))


def test_blocks_are_judged_together_where_values_tell_events_from_times():
    y = pd.DataFrame({"x": np.where(np.arange(len(X)) < 150, WEEKS, 0.5), "z": Y["event"] * 1})
    data = gpuforest.BinnedData.from_blocks([(X[:150], y[:150]), (X[150:], y[150:])])
    assert np.array_equal(data.y["time"], y["x"])
    mixed = [(X[:150], y[:150]), (X[150:], Y[150:])]
    with pytest.raises(ValueError, match="block 1: y says what is the event, and what its time,"):
        gpuforest.BinnedData.from_blocks(mixed)


def test_fields_of_scikit_survival_may_have_any_names():
    y = np.array(Y.tolist(), [("weeks_seen", bool), ("x", float)])
    forest, same = (RandomSurvivalForest(3, random_state=0).fit(X, each) for each in (Y, y))
    assert np.array_equal(forest.predict(X), same.predict(X))


@pytest.mark.parametrize("columns", [
    {"x": Y["event"] * 1, "z": WEEKS}, {"x": WEEKS, "z": Y["event"] * 1.0},
    {"x": Y["event"], "z": Y["event"]}, {"time": Y["event"], "x": WEEKS},
    {"time": Y["event"], "event": Y["time"]},
])  # fmt: skip
@pytest.mark.parametrize("kind", ["frame", "array", "table", "blocks"])
def test_what_does_not_tell_events_from_times(columns, kind):
    y = pd.DataFrame(columns)
    first, second = columns
    if kind == "array" and first == "time":
        y = y[["event", "time"]] if second == "event" else y[["x", "time"]]  # no event comes first
    fit = {
        "frame": RandomSurvivalForest(3).fit,
        "array": lambda X, y: RandomSurvivalForest(3).fit(X, y.to_records(index=False)),
        "table": lambda X, y: RandomSurvivalForest(3).fit(X, pa.table(y)),
        "blocks": lambda X, y: gpuforest.BinnedData.from_blocks([(X[:9], y[:9]), (X[9:], y[9:])]),
    }
    with pytest.raises(ValueError, match="y does not say which of its columns "):
        fit[kind](X, y)


def test_what_else_is_refused():
    forest = RandomSurvivalForest(2, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="concordance has no weights"):
        forest.score(X, Y, np.ones(len(X)))
    with pytest.raises(TypeError, match="is not written as ONNX"):
        to_onnx(forest)


def test_extremes():
    y = target([True] * 20, np.arange(20.0))
    assert np.isfinite(RandomSurvivalForest(5, random_state=0).fit(X[:20], y).predict(X)).all()
    one = target([True] + [False] * 19, np.arange(20.0) + 1)
    forest = RandomSurvivalForest(5, bootstrap=False, random_state=0).fit(X[:20], one)
    assert forest.forest_.n_nodes == 5  # both sides of a split have an event
    same = target([True, False] * 10, np.ones(20))
    assert np.isfinite(RandomSurvivalForest(5, random_state=0).fit(X[:20], same).predict(X)).all()


# several causes

X2, Y2 = ROWS["two causes"]


def test_two_causes_worked_by_hand():
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
@pytest.mark.parametrize("criterion", BOTH)
def test_each_cause_has_its_own_risk(kind, criterion):
    options = {"criterion": criterion, "bootstrap": True, "oob_score": True, "random_state": 0}
    forest = kind(50, **options).fit(X2, Y2)
    Z, y = data_of_causes(seed=1)
    risks = forest.predict(Z)
    assert risks.shape == (len(Z), 2)
    for k in (1, 2):
        others_are_censored = concordance(y["event"] == k, y["time"], risks[:, k - 1])
        assert forest.score(Z, y, cause=k) == others_are_censored > 0.65
        assert concordance(y["event"] == k, y["time"], risks[:, 2 - k]) < 0.55
    assert forest.score(Z, y) == forest.score(Z, y, cause=1)
    assert forest.oob_prediction_.shape == (len(X2), 2)
    first = forest.oob_prediction_[:, 0]
    assert forest.oob_score_ == concordance(Y2["event"] == 1, Y2["time"], first)
    assert set(forest.feature_importances_.argsort()[-2:]) == {0, 1}


@pytest.mark.parametrize("criterion", BOTH)
def test_one_cause_is_as_before(criterion):
    plain, one = (target(event, Y2["time"]) for event in (Y2["event"] > 0, 1 * (Y2["event"] > 0)))
    options = {"criterion": criterion, "random_state": 0, "oob_score": True}
    forest, same = (RandomSurvivalForest(20, **options).fit(X2, y) for y in (plain, one))
    assert np.array_equal(forest.predict(X2), same.predict(X2))
    assert forest.oob_score_ == same.oob_score_
    come = same.predict_cumulative_incidence_function(X2, True)
    assert np.array_equal(np.maximum(1.0 - come, 0.0), forest.predict_survival_function(X2, True))


def test_the_number_of_rows_of_a_leaf_by_loss():
    forest = RandomSurvivalForest(48, min_samples_leaf="oob", random_state=0).fit(X2, Y2)
    assert np.isfinite(forest.oob_parameters_["error"]).all()


def test_causes_that_are_refused():
    forest = RandomSurvivalForest(2, random_state=0).fit(X2, Y2)
    for cause in (0, 3, 1.5, 1.0, True, "1", None, [1, 2], np.array([1, 2])):
        with pytest.raises(ValueError, match=r"cause=.* must be an integer from 1 to 2"):
            forest.predict_cumulative_incidence_function(X2, cause=cause)
        with pytest.raises(ValueError, match="must be an integer from 1 to 2"):
            forest.score(X2, Y2, cause=cause)
    assert forest.score(X2, Y2, cause=np.int64(2)) == forest.score(X2, Y2, cause=2)
    with pytest.warns(UserWarning, match="no row of y is censored: 1 to 2 are taken for causes"):
        forest.fit(X2, target(1 + (Y2["event"] > 0), Y2["time"]))
