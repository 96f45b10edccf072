"""Losses that Python differentiates: derivatives by differences, laws of functions as losses, of
several quantiles, of raw predictions that a fit begins with, and of exposures."""

import pickle

import numpy as np
import pairs
import pytest
from boosted import in_array, made, rules_of
from paths import has_numba
from sklearn.base import clone
from sklearn.metrics import mean_pinball_loss

from gpuforest import HistGradientBoostingClassifier as Classifier
from gpuforest import HistGradientBoostingRegressor as Regressor
from gpuforest.backends import numba, numpy
from gpuforest.common import elementary
from gpuforest.compiler.types import dtype_of
from gpuforest.kernels.boosted_tree import records
from gpuforest.kernels.gradients import host_losses
from gpuforest.kernels.gradients import numba as compiled
from gpuforest.kernels.gradients import numpy as plain

rng = np.random.default_rng(0)
N = 400
X = rng.normal(size=(N, 4))
Y = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=N) / 3
LABELS, COUNTS = (Y > 0).astype(int), rng.poisson(np.exp(X[:, 0] / 2)).astype(float)
WEIGHT, EXPOSURE, ZEROS = rng.uniform(0.5, 2, N), rng.uniform(0.1, 3, N), np.zeros(N)
GIVEN = {"max_iter": 8, "random_state": 0, "early_stopping": False}


def same(a, b):
    """Whether two models are equal, bit for bit."""
    names = ("nodes", "tree_offsets", "leaf_sums", "leaf_values", "baseline")
    return all(np.array_equal(getattr(a.forest_, n), getattr(b.forest_, n)) for n in names)


def squares(y, raw, weight):
    return (raw - y, None) if weight is None else ((raw - y) * weight, None)


def log_loss(y, raw, weight):
    p = elementary.expit(raw)
    weight = 1.0 if weight is None else weight
    return (p - y) * weight, p * (1 - p) * weight


def softmax_loss(y, raw, weight):
    p = host_losses.losses.softmax(raw)
    return p - (y[:, None] == np.arange(raw.shape[1])), p * (1 - p)


def times(censored):
    """Intervals f64[N, 2] of times: known, from a time on, up to a time, and between two."""
    low = rng.exponential(2, N) + 0.01
    high = low.copy()
    if censored:
        high[::4], low[1::4] = np.inf, 0.0
        high[2::4] *= 1.7
    return np.stack([low, high], axis=1)


CASES = {
    "logistic": (host_losses.AcceleratedFailure("aft_logistic", spread=0.7), times(True)),
    "extreme": (host_losses.AcceleratedFailure("aft_extreme", spread=0.7), times(True)),
    "logistic, all known": (host_losses.AcceleratedFailure("aft_logistic"), times(False)),
    "extreme, all known": (host_losses.AcceleratedFailure("aft_extreme"), times(False)),
    "cox": (
        host_losses.ProportionalHazards("coxph"),
        np.stack([rng.integers(1, 30, N), rng.random(N) < 0.6], axis=1).astype(float),
    ),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_the_loss(name, weight):
    loss, y = CASES[name]
    raw, step = rng.normal(size=(1, N)) * 1.5, 1e-5
    total = N if weight is None else weight.sum()
    g, h = loss.derivatives(y, raw, weight)
    assert (h >= 0).all()
    for row in range(0, N, 23):
        moved = np.zeros((1, N))
        moved[0, row] = step
        losses = [loss.mean(y, raw + sign * moved, weight) * total for sign in (1, -1)]
        slopes = [loss.derivatives(y, raw + sign * moved, weight)[0][0, row] for sign in (1, -1)]
        assert abs((losses[0] - losses[1]) / (2 * step) - g[0, row]) < 1e-5
        assert abs((slopes[0] - slopes[1]) / (2 * step) - h[0, row]) < 1e-5


def test_cox_by_hand():
    """Three rows of equal hazard; events at 1 and 2, of three and two rows at risk."""
    y = np.array([[1.0, 1], [2, 1], [3, 0]])
    loss = host_losses.ProportionalHazards("coxph")
    g, _ = loss.derivatives(y, np.zeros((1, 3)), None)
    assert np.allclose(g[0], [1 / 3 - 1, 1 / 3 + 1 / 2 - 1, 1 / 3 + 1 / 2])
    assert np.isclose(loss.mean(y, np.zeros((1, 3)), None), (np.log(3) + np.log(2)) / 3)


def test_sums_at_risk_do_not_depend_on_the_order_of_rows():
    loss, y = CASES["cox"]
    raw, order = rng.normal(size=(1, N)), rng.permutation(N)
    g, h = loss.derivatives(y, raw, WEIGHT)
    moved = loss.derivatives(y[order], raw[:, order], WEIGHT[order])
    assert np.array_equal(g[:, order], moved[0])
    assert np.array_equal(h[:, order], moved[1])


FEW = np.where(rng.random(N) < 0.5, 0.0, WEIGHT)
EVENTS = {
    "ties": CASES["cox"][1],
    "no ties": np.stack([rng.random(N), rng.random(N) < 0.3], axis=1),
    "one event": np.stack([np.arange(N) % 50, np.arange(N) == 7], axis=1).astype(float),
    "one time": np.stack([np.ones(N), rng.random(N) < 0.3], axis=1),
}


@pytest.mark.skipif(not has_numba, reason="no numba here")
@pytest.mark.parametrize("weight", [None, WEIGHT, FEW], ids=["", "weighted", "some without"])
@pytest.mark.parametrize("name", EVENTS)
def test_the_compiled_kernel_of_cox_computes_what_numpy_does(name, weight):
    loss = host_losses.ProportionalHazards("coxph")
    for raw in (np.zeros((1, N)), rng.normal(size=(1, N)) * 3, rng.normal(size=(1, N)) * 900):
        found, wanted = (f(EVENTS[name], raw, weight) for f in (loss.compiled, loss.derivatives))
        assert np.array_equal(found, wanted)


@pytest.mark.skipif(not has_numba, reason="no numba here")
@pytest.mark.parametrize("K", [1, 3])
def test_kernels_take_derivatives_from_the_host(K):
    loss = host_losses.GivenLoss("given", n_raw=K, function=lambda y, raw, w: (raw - 1.5, raw**2))
    of_rows, order = loss.of_rows(Y, None, rng.normal(size=(K, N)), None), rng.permutation(N)
    rules, scratch = rules_of(1, N.bit_length(), g=2.0**9, h=2.0**7), np.empty((7, compiled.BLOCK))
    for words in (1, 2):
        found, wanted = np.empty((2, K, N, words), np.int64)
        plain.gradients(of_rows, rules, wanted)
        given = of_rows.for_kernels, in_array(rules)
        compiled.gradients(*given, found, np.zeros(0), 0, N, scratch)
        assert np.array_equal(found, wanted)
    if K == 1:
        leaves, sums = np.zeros(2, dtype_of(records.Leaf)), np.empty((2, 2), np.int64)
        leaves["begin"], leaves["end"] = [0, 150], [150, N]
        compiled.residual_bits(*given, order.astype(np.int32), leaves, 0, 2, sums, scratch)
        rest = plain.residual_bits(of_rows, rules)[0][order]
        assert np.array_equal(sums, [rest[:150].sum(axis=0), rest[150:].sum(axis=0)])
        assert sums.any()


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_a_function_gives_the_model_of_the_loss_that_it_differentiates(backend, weight):
    given = GIVEN | {"backend": backend}
    built_in = Regressor(**given).fit(X, Y, weight, init_score=ZEROS)
    assert same(built_in, Regressor(squares, **given).fit(X, Y, weight, init_score=ZEROS))
    built_in = Classifier(**given).fit(X, LABELS, weight, init_score=ZEROS)
    model = Classifier(log_loss, **given).fit(X, LABELS, weight, init_score=ZEROS)
    assert same(built_in, model)
    assert np.array_equal(built_in.predict_proba(X, ZEROS), model.predict_proba(X, ZEROS))


def test_a_function_of_several_classes():
    classes, start = np.digitize(Y, [-1, 1]), np.zeros((N, 3))
    built_in = Classifier(**GIVEN).fit(X, classes, init_score=start)
    model = Classifier(softmax_loss, **GIVEN).fit(X, classes, init_score=start)
    assert same(built_in, model)


def test_a_function_begins_at_the_constant_of_least_loss():
    assert np.isclose(Regressor(squares, **GIVEN).fit(X, Y).forest_.baseline, np.mean(Y))
    counts = Regressor(lambda y, raw, w: (np.exp(raw) - y, np.exp(raw)), link="log", **GIVEN).fit(
        X, 1000 * COUNTS
    )
    assert np.isclose(np.exp(counts.forest_.baseline[0]), 1000 * COUNTS.mean())
    assert (counts.predict(X) > 0).all()


BAD = {
    "must return a gradient": lambda y, raw, w: raw - y,
    "shape": lambda y, raw, w: (raw[1:] - y[1:], None),
    "NaN or infinite": lambda y, raw, w: (raw * np.nan, None),
    "gradient of loss has values": lambda y, raw, w: (raw + np.inf, np.ones_like(raw)),
    "negative values": lambda y, raw, w: (raw - y, -np.ones_like(raw)),
}


@pytest.mark.parametrize("says", BAD)
def test_functions_that_are_no_loss(says):
    model = Regressor(BAD[says])
    with pytest.raises(ValueError, match=says):
        model.fit(X, Y)
    assert not hasattr(model, "forest_")


def test_early_stopping_needs_a_score_of_a_function():
    with pytest.raises(ValueError, match="pass scoring"):
        Regressor(squares, early_stopping=True).fit(X, Y)
    model = Regressor(squares, early_stopping=True, scoring="r2", max_iter=5, verbose=1).fit(X, Y)
    assert len(model.validation_score_) == model.n_iter_ + 1
    assert Regressor(squares, max_iter=2, verbose=1).fit(X, Y).n_iter_ == 2


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.5)])
def test_exposure_is_a_division_and_a_weight(loss, power):
    y = COUNTS + (loss == "gamma")
    model = Regressor(loss, **GIVEN).fit(X, y, exposure=EXPOSURE)
    weight = None if power == 2 else elementary.exp((2 - power) * elementary.log(EXPOSURE))
    weight = EXPOSURE if power == 1 else weight
    assert same(model, Regressor(loss, **GIVEN).fit(X, y / EXPOSURE, weight))
    assert np.array_equal(model.predict(X, exposure=EXPOSURE), model.predict(X) * EXPOSURE)


def test_a_fit_goes_on_from_raw_predictions():
    """Rounds after those of a model are the rounds that a warm start adds."""
    first = Regressor(**GIVEN | {"max_iter": 4}).fit(X, Y)
    rest = Regressor(**GIVEN | {"max_iter": 1}).fit(X, Y, init_score=first.predict(X))
    more = clone(first).set_params(warm_start=True).fit(X, Y).set_params(max_iter=5).fit(X, Y)
    assert np.allclose(rest.predict(X, first.predict(X)), more.predict(X), rtol=1e-12)
    kept = pickle.loads(pickle.dumps(rest))
    assert np.array_equal(kept.predict(X, ZEROS), rest.predict(X, ZEROS))
    *_, last = rest.staged_predict(X, ZEROS)
    assert np.array_equal(last, rest.predict(X, ZEROS))


def test_early_stopping_judges_from_raw_predictions():
    far = 100.0 + 0 * Y
    model = Regressor(max_iter=30, early_stopping=True, random_state=0)
    near = clone(model).fit(X, Y, init_score=ZEROS)
    moved = clone(model).fit(X, Y + 100, init_score=far)
    assert np.allclose(near.validation_score_, moved.validation_score_)
    held = clone(model).fit(
        X, Y, X_val=X[:50], y_val=Y[:50], init_score=ZEROS, init_score_val=ZEROS[:50]
    )
    assert held.validation_score_[-1] > held.validation_score_[0]


BOOSTED = [
    (kind, name)
    for kind in pairs.FAMILIES["boosting"]
    for name in pairs.CAPABILITIES
    if pairs.has(kind, name) and name not in ("dask", "refit", "preset")
]


@pytest.mark.skipif(not has_numba, reason="no numba here")
@pytest.mark.parametrize(("kind", "name"), BOOSTED)
def test_a_fit_from_its_own_baseline_is_the_fit_without(kind, name):
    """With all that a fit can be given, an init_score of the constant that the fit would find gives
    its rounds."""
    case = pairs.Case(kind, {name})
    rows, model = case.rows, case.model()
    rows = pairs.binned(model, rows) if name == "binned" else rows
    passed = {part: own for part, own in rows._asdict().items() if own is not None}
    plain = clone(model).fit(**passed)
    baseline = plain.forest_.baseline
    start = np.tile(baseline, (case.rows.X.shape[0], 1))
    start = start[:, 0] if len(baseline) == 1 else start
    again = model.fit(**passed, init_score=start)
    for part in ("nodes", "leaf_sums", "leaf_values", "sets"):
        assert np.array_equal(getattr(plain.forest_, part), getattr(again.forest_, part))
    predict = "predict_proba" if pairs.of_classes(kind) else "predict"
    found = getattr(plain, predict)(case.rows.X), getattr(again, predict)(case.rows.X, start)
    assert np.allclose(*found, rtol=1e-12)  # the constant is added before or after the trees


WRONG = {
    "init_score has shape": {"init_score": np.zeros((N, 2))},
    "init_score has values that are NaN": {"init_score": ZEROS + np.nan},
    "exposure is for": {"exposure": EXPOSURE},
    "pass init_score and init_score_val": {"init_score": ZEROS, "X_val": X, "y_val": Y},
}


@pytest.mark.parametrize("says", WRONG)
def test_wrong_starts_are_refused(says):
    with pytest.raises(ValueError, match=says):
        Regressor().fit(X, Y, **WRONG[says])
    with pytest.raises(ValueError, match="exposure must be positive"):
        Regressor("poisson").fit(X, COUNTS, exposure=ZEROS)
    model = Regressor(**GIVEN).fit(X, Y, init_score=ZEROS)
    with pytest.raises(ValueError, match="was fitted with init_score"):
        model.predict(X)
    with pytest.raises(ValueError, match="without init_score"):
        Regressor(**GIVEN).fit(X, Y).predict(X, ZEROS)


LEVELS = [0.05, 0.5, 0.95]


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
def test_several_quantiles_are_separate_models_that_do_not_cross(weight):
    model = Regressor("quantile", quantile=LEVELS, **GIVEN).fit(X, Y, weight)
    found = model.predict(X)
    assert found.shape == (N, 3)
    assert (np.diff(found) >= 0).all()
    each = [Regressor("quantile", quantile=q, **GIVEN).fit(X, Y, weight) for q in LEVELS]
    for k, (q, one) in enumerate(zip(LEVELS, each, strict=True)):
        assert np.array_equal(model.forest_.baseline[k], one.forest_.baseline[0])
        pinball = [mean_pinball_loss(Y, p, alpha=q) for p in (found[:, k], one.predict(X))]
        assert pinball[0] <= pinball[1] + 1e-12
    assert np.array_equal(found, np.sort(np.stack([m.predict(X) for m in each], axis=1), axis=1))
    assert 0 < model.score(X, Y) < 1


def test_several_quantiles_are_equal_on_numpy_and_numba():
    model = Regressor("quantile", quantile=LEVELS, subsample=0.5, **GIVEN)
    first, second = (clone(model).set_params(backend=b).fit(X, Y) for b in ("numpy", "numba"))
    assert same(first, second)
    model.set_params(monotonic_cst=[1, 0, 0, 0]).fit(X, Y)
    grid = np.zeros((50, 4))
    grid[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(grid), axis=0) >= 0).all()


def test_quantiles_out_of_order_are_refused():
    for wrong in ([0.9, 0.1], [0.5, 0.5], [-0.1, 0.5], []):
        with pytest.raises(ValueError, match="ascend"):
            Regressor("quantile", quantile=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="trees of one output"):
        Regressor(
            "quantile", quantile=LEVELS, multi_strategy="multi_output_tree",
            monotonic_cst=[1, 0, 0, 0],
        ).fit(X, Y)  # fmt: skip
    with pytest.raises(ValueError, match="several quantiles"):
        Regressor(quantile=LEVELS).fit(X, Y)


def test_outputs_are_separate_models():
    both, model = np.stack([Y, X[:, 2] - Y], axis=1), Regressor(**GIVEN)
    found = clone(model).fit(X, both, WEIGHT).predict(X)
    each = [clone(model).fit(X, y, WEIGHT).predict(X) for y in both.T]
    assert np.allclose(found, np.stack(each, axis=1), rtol=1e-9)
    absolute = Regressor("absolute_error", **GIVEN)
    found = clone(absolute).fit(X, both).predict(X)
    assert np.array_equal(found[:, 1], clone(absolute).fit(X, both[:, 1]).predict(X))
    with pytest.raises(ValueError, match="is for one output"):
        Regressor("huber").fit(X, both)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        Classifier().fit(X, both > 0)


@pytest.mark.parametrize("kind", [numpy.NumpyBackend, numba.NumbaBackend])
@pytest.mark.parametrize("name", CASES)
def test_boosters_take_them(kind, name):
    """Rounds of a loss lower it, and are equal on all backends of the CPU."""
    loss, y = CASES[name]
    fit = made(0, N, [0, 0, 0], [9, 5, 30], "squared_error", "none", 0.0)
    fit = fit.but(loss=loss, learning_rate=0.1)
    fit = type(fit)(fit.codes, fit.edges, y, 4, fit.rest)
    _, raw = fit.run(kind())
    assert loss.mean(y, raw, None) < loss.mean(y, 0 * raw + loss.baseline(y, None)[:, None], None)
    assert np.array_equal(raw, fit.run(numpy.NumpyBackend())[1])
