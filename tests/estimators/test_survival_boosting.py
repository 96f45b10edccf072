"""Boosting of survival: Cox's model and accelerated failure times, by their laws."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from saved import refuses, save_tampered
from sklearn.base import clone
from sklearn.utils import get_tags

import gpuforest as gf
from gpuforest import HistGradientBoostingSurvival as Survival
from gpuforest.common import elementary
from gpuforest.estimators import prepare
from gpuforest.explain import survival
from gpuforest.export import container, model_file
from gpuforest.kernels.gradients.host_losses import ProportionalHazards

rng = np.random.default_rng(0)
N = 300
X = rng.normal(size=(N, 4))
TIME, END = rng.exponential(np.exp(-X[:, 0])) + 0.01, rng.exponential(2.0, N) + 0.01
LOSSES = ("coxph", "aft_logistic", "aft_extreme")
GIVEN = {"max_iter": 8, "random_state": 0, "early_stopping": False}


def pairs(event, time):
    y = np.empty(len(time), [("event", bool), ("time", float)])
    y["event"], y["time"] = event, time
    return y


def intervals(low, high):
    y = np.empty(len(low), [("lower", float), ("upper", float)])
    y["lower"], y["upper"] = low, high
    return y


Y = pairs(TIME <= END, np.round(np.minimum(TIME, END), 2) + 0.01)
BETWEEN = intervals(
    np.floor(TIME * 2) / 2, np.where(TIME > 2, np.inf, np.floor(TIME * 2) / 2 + 0.5)
)
CURVES = ("predict_survival_function", "predict_cumulative_hazard_function")


def same(a, b):
    names = ("nodes", "tree_offsets", "leaf_values", "baseline")
    equal = all(np.array_equal(getattr(a.forest_, n), getattr(b.forest_, n)) for n in names)
    curves = [m.predict_survival_function(X[:9], return_array=True) for m in (a, b)]
    return equal and np.array_equal(*curves)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", [None, rng.integers(1, 4, N)], ids=["", "weighted"])
def test_models_are_equal_on_numpy_and_numba_and_in_any_order(loss, weight):
    model, order = Survival(loss=loss, **GIVEN), rng.permutation(N)
    first, second = (
        clone(model).set_params(backend=b).fit(X, Y, weight) for b in ("numpy", "numba")
    )
    assert same(first, second)
    moved = clone(model).fit(X[order], Y[order], None if weight is None else weight[order])
    assert same(first, moved)
    assert first.score(X, Y) > 0.7
    assert get_tags(first).target_tags.required


TWICE = rng.random(N) < 0.4


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_a_row_that_comes_twice_is_one_of_weight_two(loss):
    weight = 1.0 + TWICE
    model = Survival(loss=loss, min_samples_leaf=1, max_leaf_nodes=4, **GIVEN)
    both = np.append(np.arange(N), np.flatnonzero(TWICE))
    a, b = clone(model).fit(X, Y, weight), clone(model).fit(X[both], Y[both])
    assert np.allclose(a.predict(X), b.predict(X), rtol=1e-6)
    curves = [m.predict_survival_function(X, return_array=True) for m in (a, b)]
    assert np.allclose(*curves, atol=1e-6)


def test_risk_sets_of_rows_that_come_twice():
    """Gradients and baseline hazards are those of weight two. Hessians are smaller: the two rows
    of a weight move together, and what is at risk moves with them."""
    loss, both = ProportionalHazards("coxph"), np.append(np.arange(N), np.flatnonzero(TWICE))
    y, raw = np.stack([Y["time"], Y["event"]], axis=1), rng.normal(size=(1, N))
    g, h = loss.derivatives(y, raw, 1.0 + TWICE)
    of_rows, of_h = loss.derivatives(y[both], raw[:, both], None)
    for k in (0, 1):
        assert np.allclose(g[0, k == TWICE], (1 + k) * of_rows[0, :N][k == TWICE])
    assert (h[0] <= (1 + TWICE) * of_h[0, :N] + 1e-9).all()
    found = (
        loss.baseline_hazard(y, raw, 1.0 + TWICE),
        loss.baseline_hazard(y[both], raw[:, both], None),
    )
    assert np.allclose(*found)


def test_no_weight_is_no_row():
    some = rng.random(N) < 0.5
    model = Survival(**GIVEN)
    assert same(
        clone(model).fit(X, Y, some.astype(float)),
        clone(model).fit(X[some], Y[some], np.ones(some.sum())),
    )


def test_cox_by_hand():
    """Two leaves: one Newton step from the gradients at equal hazards."""
    Z, y = np.array([[0.0], [0], [1], [1]]), pairs([1, 1, 1, 0], [1.0, 2, 3, 4])
    how = {"min_samples_leaf": 1, "min_hessian": 0, "learning_rate": 1.0}
    model = Survival(max_iter=1, **how).fit(Z, y)
    # at risk are 4, 3 and 2 rows
    hazard = np.cumsum([1 / 4, 1 / 3, 1 / 2])[[0, 1, 2, 2]]
    square = np.cumsum([1 / 16, 1 / 9, 1 / 4])[[0, 1, 2, 2]]
    g, h = hazard - [1, 1, 1, 0], hazard - square
    steps = [-g[:2].sum() / h[:2].sum(), -g[2:].sum() / h[2:].sum()]
    assert np.allclose(model.predict([[0], [1]]), steps)
    own = np.exp(np.repeat(steps, 2))
    assert np.allclose(model.baseline_hazard_, 1 / own[::-1].cumsum()[::-1][:3])
    assert model.event_times_.tolist() == [1, 2, 3]
    [curve] = model.predict_survival_function([[1]])
    assert curve(0.5) == 1.0
    assert np.isclose(curve(2.5), np.exp(-model.baseline_hazard_[:2].sum() * own[2]))


def test_breslow_is_nelson_aalen_where_no_row_differs():
    model = Survival(**GIVEN).fit(np.zeros((N, 1)), Y)
    assert abs(model.predict(np.zeros((1, 1)))) < 1e-9
    [found] = model.predict_cumulative_hazard_function(np.zeros((1, 1)), return_array=True)
    times = np.unique(Y["time"][Y["event"]])
    rises = [(Y["event"] & (Y["time"] == t)).sum() / (Y["time"] >= t).sum() for t in times]
    assert np.array_equal(model.event_times_, times)
    assert np.allclose(found, np.cumsum(rises), rtol=1e-9)


def test_known_times_of_extreme_value_are_an_exponential_regression():
    """A leaf's best constant is the log of its mean time, as of gamma deviance."""
    Z, y = (X[:, :1] > 0).astype(float), pairs(np.ones(N), TIME)
    model = Survival(loss="aft_extreme", max_iter=200, early_stopping=False).fit(Z, y)
    means = [TIME[Z[:, 0] == k].mean() for k in (0, 1)]
    found = model.predict([[0], [1]])
    assert np.allclose(found, means, rtol=1e-6)
    values = model.predict_survival_function([[0], [1]], return_array=True)
    assert np.allclose(values, np.exp(-model.unique_times_ / found[:, None]))
    gamma = gf.HistGradientBoostingRegressor("gamma", max_iter=200, early_stopping=False).fit(
        Z, TIME
    )
    assert np.allclose(gamma.predict([[0], [1]]), found, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_intervals(loss):
    model = Survival(loss=loss, scale=0.8, **GIVEN).fit(X, BETWEEN)
    events = survival.concordance(np.ones(N, bool), TIME, -model.predict(X))
    assert events > 0.7
    assert model.event_times_.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert model.score(X, intervals(TIME, TIME)) > 0.5
    frame = pd.DataFrame(BETWEEN)[["upper", "lower"]]
    assert same(model, clone(model).fit(X, frame))
    pair = intervals(Y["time"], np.where(Y["event"], Y["time"], np.inf))
    assert same(clone(model).fit(X, Y), clone(model).fit(X, pair))
    assert model.fit(X, Y).score(X, Y) == model.score(X, pair)
    z = (np.log(model.event_times_) - np.log(model.predict(X[:5]))[:, None]) / 0.8
    expected = elementary.expit(-z) if loss == "aft_logistic" else np.exp(-np.exp(z))
    assert np.allclose(model.predict_survival_function(X[:5], return_array=True), expected)
    hazard = model.predict_cumulative_hazard_function(X[:5])
    assert np.allclose([h(9.0) for h in hazard], -np.log(expected[:, -1]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scoring", ["loss", None])
def test_early_stopping_and_refit(loss, scoring):
    model = Survival(loss=loss, early_stopping=True, scoring=scoring, refit=True, max_iter=60,
                     n_iter_no_change=5, random_state=0, subsample=0.7).fit(X, Y)  # fmt: skip
    best = max(1, int(np.argmax(model.validation_score_)))
    assert model.n_iter_ == best < 60
    assert len(model.event_times_) == len(np.unique(Y["time"][Y["event"]]))
    held = clone(model).set_params(refit=False).fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    if scoring is None:
        last = held.validation_score_[-1]
        assert np.isclose(last, held.score(X[200:], Y[200:]))


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_set_aside_have_events(loss):
    """Also where few have, and where all but one have; else it is an error before growth."""
    model = Survival(loss=loss, early_stopping=True, max_iter=2, random_state=0)
    for few in (5, N - 1, N):
        event = np.arange(N) < few
        assert np.diff(model.fit(X, pairs(event, TIME)).validation_score_).any()
    label = np.arange(N) // 30  # the last block is set aside
    for word, event in (("judge", label < 9), ("train", label == 9)):
        model = clone(model)
        with pytest.raises(ValueError, match=f"all rows that {word} are censored"):
            model.fit(X, pairs(event, TIME), blocks=label)
        assert not hasattr(model, "forest_")
    with pytest.raises(ValueError, match="all rows that judge are censored"):
        model.set_params(validation_fraction=0.01).fit(X, pairs(np.arange(N) < 2, TIME))


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_judge_count_by_their_weights(loss):
    """Rows of no weight do not judge, and weights times a constant judge alike."""
    weight, train = rng.choice([0.0, 0.3, 1.7], N), slice(200)
    held = {"X_val": X[200:], "y_val": Y[200:].copy(), "sample_weight_val": weight[200:]}
    held["y_val"]["time"][weight[200:] == 0] *= 100
    model = Survival(loss=loss, early_stopping=True, max_iter=4, random_state=0)
    first = clone(model).fit(X[train], Y[train], **held).validation_score_
    some = {name: part[weight[200:] > 0] for name, part in held.items()}
    some["sample_weight_val"] = 4 * some["sample_weight_val"]
    assert np.array_equal(first, clone(model).fit(X[train], Y[train], **some).validation_score_)


def test_binned_data_bring_intervals(tmp_path):
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(**pd.DataFrame(BETWEEN))
    how = {"max_bins": 255, "path": tmp_path / "data"}
    gf.BinnedData.from_blocks([frame[:90], frame[90:]], target=("lower", "upper"), **how)
    data, model = gf.BinnedData.load(tmp_path / "data"), Survival(loss="aft_logistic", **GIVEN)
    binned = clone(model).fit(data)
    assert np.array_equal(binned.forest_.nodes, clone(model).fit(X, BETWEEN).forest_.nodes)
    with pytest.raises(ValueError, match="y has intervals"):
        Survival().fit(data)


@pytest.mark.parametrize("label", ["groups", "blocks"])
def test_groups_and_blocks(label):
    model = Survival(max_iter=5, early_stopping=True, subsample=0.6, random_state=0)
    model.fit(X, Y, **{label: np.arange(N) // 10})
    assert model.n_iter_ == 5


def test_gradients_come_from_all_rows(monkeypatch):
    """Also those of a round that draws some: risk sets have all rows."""
    known = []
    plan = prepare.prepare_rounds

    def watched(*args):
        known.append(plan(*args))
        return known[-1]

    monkeypatch.setattr(prepare, "prepare_rounds", watched)
    model = Survival(subsample=0.2, max_iter=2, early_stopping=False).fit(X, Y)
    assert [len(s.y) for s in known[0].boosting.loss.known] == [N]
    monkeypatch.undo()
    assert np.isclose(model.forest_.leaf_sums[:, 0].sum(), 2 * int(0.2 * N))


@pytest.mark.parametrize("loss", LOSSES)
def test_pickles_files_and_starts(tmp_path, loss):
    model = Survival(loss=loss, scale=1.0 if loss == "coxph" else 0.7, **GIVEN).fit(
        X, Y, np.ones(N)
    )
    model.save(tmp_path / "model")
    for kept in (pickle.loads(pickle.dumps(model)), gf.load(tmp_path / "model")):
        assert same(kept, model)
        assert np.array_equal(kept.predict(X), model.predict(X))
    more = clone(model).set_params(max_iter=4).fit(X, Y)
    more.set_params(max_iter=8, warm_start=True).fit(X, Y)
    assert np.array_equal(more.predict(X), model.predict(X))
    values = model.shap_values(X[:5])
    raw = np.log(model.predict(X[:5])) if loss != "coxph" else model.predict(X[:5])
    assert np.allclose(values.sum(axis=1) + model.expected_value_, raw)
    start = rng.normal(size=N)
    begun = clone(model).fit(X, Y, init_score=start)
    assert np.isfinite(begun.predict_survival_function(X, True, init_score=start)).all()


@pytest.mark.parametrize("spread", [None, 0.0, -1.0, 2.0])
def test_files_whose_spread_is_not_the_estimators_are_refused(tmp_path, spread):
    path = tmp_path / "model"
    model = Survival(loss="aft_logistic", **GIVEN).fit(X, Y)
    model.save(path)
    facts = json.loads(container.read(path, model_file.ARRAYS)[0])["boosting"]
    assert facts.pop("spread") == 1.0
    save_tampered(model, path, boosting=facts if spread is None else facts | {"spread": spread})
    assert refuses(gf.load, path)


def test_data_of_all_kinds():
    """Missing values, categories, constraints, interactions and binned data."""
    frame = pd.DataFrame(X).assign(town=pd.Categorical(rng.choice([*"abc"], N))).rename(columns=str)
    frame.iloc[::7, 1] = np.nan
    model = Survival(monotonic_cst={"0": 1}, interaction_cst="pairwise", **GIVEN)
    model.fit(frame, Y)
    row = frame.iloc[[0] * 30].assign(**{"0": np.linspace(-2, 2, 30)})
    assert (np.diff(model.predict(row)) >= 0).all()
    binned = gf.BinnedData.from_blocks([X], max_bins=255)
    assert same(Survival(**GIVEN).fit(binned, Y), Survival(**GIVEN).fit(X, Y))


WRONG = {
    "boosting takes events of one cause": (
        "coxph",
        pairs(np.zeros(N), TIME).astype([("cause", int), ("time", float)]),
    ),
    "all rows of y are censored": ("coxph", pairs(np.zeros(N), TIME)),
    "0 <= lower <= upper": ("aft_logistic", intervals(TIME, TIME / 2)),
    "events later than time 0": ("aft_extreme", pairs(np.ones(N), np.maximum(TIME - 0.1, 0.0))),
    "y must say which rows had their event": ("coxph", TIME),
    "y has intervals": ("coxph", BETWEEN),
}
WRONG["boosting takes events of one cause"][1]["cause"] = (
    1 + np.arange(N) % 2 - (np.arange(N) % 5 == 0)
)


@pytest.mark.parametrize("says", WRONG)
def test_wrong_targets_are_refused(says):
    loss, y = WRONG[says]
    with pytest.raises(ValueError, match=says):
        Survival(loss=loss).fit(X, y)


def test_what_is_refused():
    model = Survival(**GIVEN).fit(X, Y)
    for call in (model.to_onnx, model.to_treelite, model.to_sklearn, model.report):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="categorical_split"):
        Survival(categorical_split="ordered_target").fit(X, Y)
    with pytest.raises(ValueError, match="scale=2 is for"):
        Survival(scale=2).fit(X, Y)
    with pytest.raises(ValueError, match="exposure is for"):
        Survival().fit(X, Y, exposure=TIME)
    with pytest.raises(ValueError, match="concordance has no weights"):
        model.score(X, Y, np.ones(N))
