"""Gradient boosting on the CUDA backend is the reference's, bit for bit: emulated, its host code
and its kernels' own text run on the CPU, whatever order threads and blocks take; and on a GPU
where there is one."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from boosted import LOSSES, UNLIMITED, Fit, differences, fits, made
from hypothesis import given
from hypothesis import strategies as st

from gpuforest import HistGradientBoostingRegressor
from gpuforest.backends import gpu, registry
from gpuforest.backends.cuda import boosting as cuda_boosters
from gpuforest.backends.cuda.boosting import Sizes
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.dtypes import CATEGORICAL
from gpuforest.common.errors import BackendError
from gpuforest.core.nodes import SET_BIN, unpack
from gpuforest.kernels.gradients.losses import Loss
from gpuforest.kernels.gradients.numpy import ABSOLUTE, HUBER, QUANTILE

seeds = st.integers(0, 2**31)
SMALL = 10 << 10  # shared memory in which few histograms fit


def check(fit: Fit, reference, backend) -> list:
    """The rounds and the raw predictions are equal; returns the rounds."""
    expected, raw = fit.run(reference)
    found, there = fit.run(backend)
    assert differences(expected, found) == []
    assert np.array_equal(raw, there)
    return found


def thousands(name: str, weight: str = "none", n_rows: int = 5000, **rest) -> Fit:
    """A fit on many rows of numbers and categories."""
    kinds, n_bins = [0, 0, CATEGORICAL, 0, 0, CATEGORICAL], [250, 3, 90, 40, 255, 7]
    return made(3, n_rows, kinds, n_bins, name, weight, 0.1, **{"min_rows": 20} | rest)


@given(fit=fits(), seed=seeds, shared_limit=st.sampled_from([SMALL, 227 << 10]))
def test_rounds_are_the_reference(cuda, fit, seed, shared_limit):
    with cuda.order(seed):
        check(fit, NumpyBackend(), cuda.backend(shared_limit=shared_limit))


@pytest.mark.emulated(every=5)
@pytest.mark.parametrize("weight", ["none", "real"])
@pytest.mark.parametrize("name", LOSSES)
def test_thousands_of_rows(cuda, name, weight):
    fit = thousands(name, weight)
    assert fit.boosting(NumpyBackend()).n_words == 1 + (
        weight == "real" or not fit.rest["loss"].constant_hessian
    )
    with cuda.order(len(name)):
        found = check(fit, NumbaBackend(), cuda.backend())
    nodes = np.concatenate([tree.nodes for grown in found for tree in grown.trees])
    feature, bin, _, _ = unpack(np, nodes)
    assert (bin[feature >= 0] == SET_BIN).any()
    assert (bin[feature >= 0] != SET_BIN).any()


@given(
    number=st.sampled_from([ABSOLUTE, QUANTILE, HUBER]),
    share=st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]),
    weight=st.sampled_from(["none", "whole", "real", "far apart", "farther apart"]),
    unit=st.sampled_from([1e-300, 0.3, 1.0, 1e150, 1e300]),
    rows_seed=st.integers(0, 2**32),
    n_rows=st.integers(1, 40) | st.integers(250, 600),
    seed=seeds,
)
def test_quantiles_are_the_reference(cuda, number, share, weight, unit, rows_seed, n_rows, seed):
    # few distinct numbers, so that shares end between two of them, and weights that round to zero
    rng = np.random.default_rng(rows_seed)
    fit = made(rows_seed, n_rows, [0, 0], [9, 4], "quantile", weight, 0.1, max_leaves=5)
    y = rng.integers(-3, 4, n_rows) * unit
    if weight == "farther apart":
        fit = fit.but(weight=10.0 ** rng.integers(-20, 5, n_rows))
    fit = replace(fit.but(loss=Loss("", number, 1, share), subsample=rng.choice([0.5, 1.0])), y=y)
    with cuda.order(seed):
        check(fit, NumpyBackend(), cuda.backend())


@pytest.mark.emulated(every=3)
@pytest.mark.parametrize(
    "rest",
    [
        {"subsample": 0.3}, {"share": 0.4}, {"max_depth": 3}, {"max_leaves": 2}, {"l2": 1.0},
        {"min_hessian": 60.0},
        {"signs": np.array([1, -1, 0, 1, -1, 0], np.int8)},
        {"groups": np.eye(6, dtype=bool) | np.eye(6, k=1, dtype=bool)},
        {"memory": 1}, {"memory": 1, "max_leaves": UNLIMITED},
    ],
    ids=str,
)  # fmt: skip
def test_every_rule(cuda, rest):
    # in three orders of threads, one for each loss, and not the same one for each rule
    for number, name in enumerate(["squared_error", "binary", "huber"], len(str(rest))):
        with cuda.order(number % 3):
            check(thousands(name, n_rows=3000, **rest), NumbaBackend(), cuda.backend())


@pytest.mark.emulated(every=3)
@pytest.mark.parametrize("weight", ["none", "real"])
@pytest.mark.parametrize(
    ("name", "most"), [("binary", 30.0), ("3 classes", 30.0), ("poisson", 3.0), ("gamma", 3.0)]
)
def test_leaves_are_cut_off(cuda, name, most, weight):
    fit = thousands(name, weight, min_rows=5)
    if most == 30.0:  # of a rare class
        rare = (fit.codes[:, 4] >= 250) & (fit.codes[:, 4] < 253)  # one row in a hundred
        y = np.where(rare, 1.0 + ((name == "3 classes") & (fit.codes[:, 1] == 0)), 0.0)
    else:  # of targets far from the others
        y = np.where(fit.codes[:, 3] < 4, fit.y * (1e4 if name == "poisson" else 1e-4), fit.y)
    with cuda.order(2):
        grown = check(replace(fit, y=y), NumbaBackend(), cuda.backend())
    added = np.abs(np.concatenate([tree.leaves["added"] for tree in grown[0].trees]))
    assert added.max() == 0.3 * most


@pytest.mark.emulated(every=4)
@pytest.mark.parametrize(("name", "size"), [("squared_error", 1e300), ("quantile", 1e302)])
@pytest.mark.parametrize("rate", [1.0, 1e5, 1e12])
def test_a_fit_that_diverges_ends_as_on_the_cpu(cuda, name, size, rate):
    fit = thousands(name, n_rows=400).but(learning_rate=rate)
    fit = replace(fit, y=fit.y * size, n_rounds=20)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore")
        found, expected = (fit.run(backend)[0] for backend in (cuda.backend(), NumbaBackend()))
    assert [r.diverges for r in found] == [r.diverges for r in expected]
    assert (len(found) < 20) == (rate > 1)
    for a, b in zip(found, expected, strict=True):
        added = ([t.leaves["added"].tolist() for t in r.trees] for r in (a, b))
        assert next(added) == next(added)
        assert a.units == b.units


@pytest.mark.emulated(every=3)
@pytest.mark.parametrize("name", ["squared_error", "3 classes", "absolute_error"])
def test_trees_without_a_limit_of_leaves(cuda, name, monkeypatch):
    # the host asks now and then whether they are done
    monkeypatch.setattr(cuda_boosters, "STEPS_AT_ONCE", 20)
    fit = thousands(name, n_rows=1000, min_rows=3, max_leaves=UNLIMITED)
    with cuda.order(1):
        found = check(fit, NumbaBackend(), cuda.backend())
    sizes = [len(tree.nodes) for grown in found for tree in grown.trees]
    assert max(sizes) > 2 * 40
    # some end much earlier than they might
    assert max(sizes) < 2 * Sizes(fit.boosting(cuda.backend())).leaves - 1


def test_equal_categories_go_by_their_number(cuda):
    # the one whose rows differ has too few of them to go alone, so the first other goes with it
    fit = made(0, 48, [CATEGORICAL], [5], "squared_error", "none", 0.0, min_rows=20, max_leaves=2)
    codes = np.repeat(np.arange(4, dtype=np.uint8), 12)[:, None]
    for last in range(4):
        own = replace(fit, codes=codes, y=(codes[:, 0] == last).astype(float), n_rounds=1)
        with cuda.order(last):
            (found,) = check(own, NumpyBackend(), cuda.backend())
        other = 1 if last == 0 else 0
        assert found.trees[0].sets.tolist() == [2**last + 2**other]


@pytest.mark.deep
def test_many_features(cuda):
    # more than a block chooses from, and than a group of histograms has
    rng, F = np.random.default_rng(0), 300
    n_bins = rng.integers(2, 9, F).tolist()
    fit = made(6, 200, [0] * F, n_bins, "binary", "none", 0.0, max_leaves=8)
    for share in (1.0, 0.01):
        with cuda.order(3):
            check(fit.but(share=share), NumbaBackend(), cuda.backend())


@pytest.mark.emulated(every=7)
@pytest.mark.parametrize("weight", ["real", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_the_mean_loss_is_known_without_raw_predictions(cuda, name, weight):
    fit = thousands(name, weight, n_rows=1500, subsample=0.7)
    with cuda.order(4):
        found, there = fit.but(watched=False, by_loss=True).run(cuda.backend())
    assert (there == there[:, :1]).all()  # raw predictions stay on the device
    loss = fit.rest["loss"]
    y = fit.y.astype(int) if loss.is_classes else fit.y
    for n in (1, 2, 3):
        expected, raw = replace(fit, n_rounds=n).run(NumbaBackend())
        assert found[n - 1].loss == loss.mean(y, raw, fit.rest["weight"])
        assert expected[-1].loss is None


@pytest.mark.parametrize("unit", [0.0, 1e-310, 1e160])
def test_mean_losses_at_the_ends_of_their_range(cuda, unit):
    # all zero, subnormal, or infinite
    fit = made(1, 300, [0], [9], "squared_error", "none", 0.0, min_rows=200)
    fit = replace(fit.but(watched=False, by_loss=True), y=fit.y * unit, n_rounds=1)
    (grown,), _ = fit.run(cuda.backend())
    _, raw = fit.run(NumpyBackend())
    with np.errstate(over="ignore"):
        assert grown.loss == fit.rest["loss"].mean(fit.y, raw, None)


def test_memory_is_planned(cuda):
    fit = thousands("binary", n_rows=1000)
    b = fit.boosting(cuda.backend())
    sizes = Sizes(b)
    assert sizes.slots == sizes.leaves + 1 == 32
    least = sizes.other_bytes + 4 * sizes.hist_bytes
    # few histograms are filled again and again
    found = check(fit, NumbaBackend(), cuda.backend(free=least))
    assert len(found) == 3
    with pytest.raises(BackendError, match=rf"needs about {least} bytes .* lower max_leaf_nodes"):
        fit.run(cuda.backend(free=least - 1))


def test_what_a_fit_takes_is_what_was_planned(cuda):
    for name, rest in (("3 classes", {}), ("huber", {"subsample": 0.5, "memory": 1})):
        backend = cuda.backend()
        b = thousands(name, "real", n_rows=1000, **rest).boosting(backend)
        booster = backend.booster(b)
        s = booster.sizes
        taken = [booster.y, booster.weight, booster.out.at, *booster.rows.record[:2]]
        taken += [booster.residuals, booster.weights]
        taken += booster.table.record[3:13]
        raw = 8 * s.K * s.N
        planned = s.other_bytes + s.K * (s.slots + 2) * s.hist_bytes
        lacking = planned - sum(array.nbytes for array in taken) - raw
        lacking -= cuda_boosters.SORT_BYTES * s.n_sorted  # which a round takes and gives back
        assert lacking == 8 * s.K * (s.leaves + 1 - s.slots)


def test_a_block_without_memory_for_a_histogram(cuda):
    fit = thousands("binary", n_rows=100)
    with pytest.raises(BackendError, match="too little shared memory for 256 bins"):
        fit.run(cuda.backend(shared_limit=1 << 10))


def test_auto_goes_on_on_the_cpu_if_memory_does_not_suffice(cuda, monkeypatch, caplog):
    monkeypatch.setattr(registry, "GPU_ROWS", 10)
    monkeypatch.setattr(gpu, "usable", lambda: True)
    asked = []

    def little(n_threads, memory_budget):
        asked.append(gpu.usable())
        monkeypatch.setattr(gpu, "usable", lambda: False)  # once is enough
        return cuda.backend(free=2**15)

    monkeypatch.setitem(registry._factories, registry.GPU, little)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2500, 3)), rng.normal(size=2500)
    common = {"max_iter": 3, "early_stopping": True, "random_state": 0}
    model = HistGradientBoostingRegressor(**common).fit(X, y)
    assert asked == [True]
    assert "starting again on the CPU" in caplog.text
    assert "boosting 2250 rows needs about" in caplog.text
    assert model.backend_ == "numba"
    other = HistGradientBoostingRegressor(backend="numpy", **common).fit(X, y)
    assert np.array_equal(model.forest_.leaf_values, other.forest_.leaf_values)
    assert np.array_equal(model.validation_score_, other.validation_score_)
