"""Causal forests: splits by pseudo-outcomes, honest leaves, effects, their errors and averages."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from paths import has_numba

import gpuforest as gf
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core.nodes import is_leaf, unpack
from gpuforest.explain import effects
from gpuforest.growing import bags
from gpuforest.splits.effects import kind as splitting

pytestmark = [
    pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores"),
    pytest.mark.filterwarnings("ignore:.* groups have one value of the treatment"),
    pytest.mark.filterwarnings("ignore:.* rows the treatment hardly varies"),
]
N = 240
FEW = {"n_estimators": 8, "random_state": 1, "model_y": 0.0, "model_t": 0.5}


def data(n=N, seed=0):
    """The effect is 2 where the first feature is positive, else 0; treated by a coin."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-64, 64, (n, 4)) / 16.0
    w = rng.integers(0, 2, n) * 1.0
    y = np.round(16 * (X[:, 1] + 2 * w * (X[:, 0] > 0) + rng.normal(size=n))) / 16
    return X, y, w


def fitted(**params):
    return gf.CausalForest(**(FEW | params)).fit(*data())


# growth


def test_pseudo_outcomes_of_the_worked_example(monkeypatch):
    """The four rows of the docstring of splits/effects, by the formula and in integers."""
    y, w = np.array([0.0, 1, 2, 5]), np.array([0.0, 1, 0, 1])
    slope = (np.mean(w * y) - w.mean() * y.mean()) / w.var()
    r = (w - w.mean()) * (y - y.mean() - slope * (w - w.mean()))
    assert slope == 2
    assert r.tolist() == [0.5, -1.0, -0.5, 1.0]
    scale, most = 2.0**20, 2.0**30
    moments = np.stack([y, w, w * y, w * w], axis=1) * scale

    class Coding:
        pass

    Coding.scale = scale
    training = type(
        "T", (), {"target": type("Y", (), {"coding": Coding, "y": moments.astype("i8")})}
    )
    sums = np.concatenate([[4], moments.sum(axis=0)]).astype(np.int64)[None]
    slots = type("S", (), {
        "sums": sums, "local_rows": np.array([4]), "n_slots": 1, "begin": np.array([0]),
    })  # fmt: skip
    monkeypatch.setattr(splitting, "most_of", lambda training: most)
    found = splitting.pseudo_outcomes(NumpyBackend(), training, slots, np.arange(4))
    step = splitting.ROOM / (4 * most**2 * 3)
    assert np.array_equal(found, np.floor(r * scale**2 * step + 0.5))
    assert abs(found.sum()) <= 2


@pytest.mark.parametrize(
    "how", ["", "instrument", "weights", "categories", "missing", "groups", "continuous"]
)
@pytest.mark.skipif(not has_numba, reason="no numba")
def test_backends_grow_one_forest(how):
    X, y, w = data()
    # with the default, nodes of so few rows leave no more than `min_samples_leaf` on each side
    rng, more, given = np.random.default_rng(3), {"min_balancedness_tol": 0.3}, {}
    if how == "instrument":
        given["instrument"] = (rng.random(N) < 0.5) * 1.0
        more["model_z"] = 0.5
    if how == "weights":
        given["sample_weight"] = rng.integers(0, 4, N) * 0.3
    if how == "categories":
        X[:, 2] = rng.integers(0, 7, N)
        more["categorical_features"] = [2]
    if how == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    if how == "groups":
        given["groups"] = np.arange(N) // 3
    if how == "continuous":
        w = w + rng.integers(0, 32, N) / 16
        more["model_t"] = 1.5
    grown = [
        gf.CausalForest(**FEW | more, backend=b).fit(X, y, w, **given) for b in ("numpy", "numba")
    ]
    assert grown[0].forest_.n_nodes > 40
    assert same_forest(grown[0].forest_, grown[1].forest_)
    assert np.array_equal(grown[0].oob_effect_, grown[1].oob_effect_)
    for one, other in zip(*(f.effect_and_std(X) for f in grown), strict=True):
        assert np.array_equal(one, other)


def test_threads_and_memory_change_nothing():
    whole = fitted()
    for params in ({"n_jobs": 3}, {"memory_limit": 3_000_000}):
        assert same_forest(whole.forest_, fitted(**params).forest_)


def test_leaves_hold_the_rows_that_chose_no_split():
    """Every leaf's sums are those of its rows, from the definition of bags and their parts."""
    X, forest = data()[0], fitted()
    sampling, backend = forest._sampling_, NumpyBackend()
    T = forest.forest_.n_trees
    bag = bags.draw_bags(sampling, forest.seed_, 0, T, backend)
    assert np.array_equal(bag[0::2], bag[1::2])
    assert (bag.sum(axis=1) == N // 2).all()
    assert not np.array_equal(bag[0], bag[2])
    grows, fills = (
        bags.in_part(bag, sampling, forest.seed_, 0, backend, part)
        for part in ((0, sampling.parts[0]), sampling.parts)
    )
    assert np.array_equal(grows + fills, bag)
    assert (grows * fills == 0).all()
    assert 0.4 < grows.sum() / bag.sum() < 0.6
    leaves, moments = forest.apply(X), forest._rows_.moments
    table, offsets, nodes = (
        forest.forest_.leaf_sums,
        forest.forest_.tree_offsets,
        forest.forest_.nodes,
    )
    scale = forest.forest_.coding.scale
    for t in range(T):
        for leaf in np.unique(leaves[:, t]):
            rows = (leaves[:, t] == leaf) & (fills[t] > 0)
            row = int(nodes[offsets[t] + leaf] & np.uint64(2**32 - 1))
            assert table[row, 0] == rows.sum()
            assert np.array_equal(table[row, 1:], np.rint(moments[rows] * scale).sum(axis=0))


def test_splits_leave_a_share_of_the_rows_on_each_side():
    X = data()[0]
    forest = fitted(min_balancedness_tol=0.2, min_samples_leaf=1)
    sampling, path = forest._sampling_, forest.decision_path(X)
    indicator, offsets = path[0].toarray(), path[1]
    bag = bags.draw_bags(sampling, forest.seed_, 0, 4, NumpyBackend())
    grows = bags.in_part(bag, sampling, forest.seed_, 0, NumpyBackend(), (0, sampling.parts[0]))
    for t in range(4):
        nodes = forest.forest_.nodes[offsets[t] : offsets[t + 1]]
        held = grows[t] @ indicator[:, offsets[t] : offsets[t + 1]]
        splits = np.flatnonzero(~is_leaf(nodes))
        left = unpack(np, nodes[splits])[3]
        smaller = np.minimum(held[left], held[left + 1])
        assert len(splits) > 5
        assert (smaller >= np.ceil((0.5 - 0.2) * held[splits])).all()


def test_groups_stay_together():
    """All rows of a group are drawn together, and grow a tree or fill its leaves together."""
    X, y, w = data()
    groups = np.arange(N) % 40
    sampling = gf.CausalForest(**FEW).fit(X, y, w, groups=groups)._sampling_
    bag = bags.draw_bags(sampling, 1, 0, 8, NumpyBackend())
    grows = bags.in_part(bag, sampling, 1, 0, NumpyBackend(), (0, sampling.parts[0]))
    for part in (bag, grows):
        assert np.array_equal(part, part[:, groups])
        assert 0 < part.sum() < part.size
    drawn = bags.was_drawn(sampling, 1, 0, 8, NumpyBackend())
    assert np.array_equal(drawn, bag > 0)
    assert (drawn.sum(axis=1) == N // 2).all()


def test_a_share_of_the_half_and_trees_that_are_not_honest():
    sampling = fitted(max_samples=0.25)._sampling_
    bag = bags.draw_bags(sampling, 1, 0, 8, NumpyBackend())
    used = bags.in_part(bag, sampling, 1, 0, NumpyBackend(), (0, sampling.parts[1]))
    assert 0.4 < used.sum() / bag.sum() < 0.6
    plain = fitted(honest=False)
    assert plain._sampling_.parts == (2**32, 2**32)
    assert plain.forest_.leaf_sums[:, 0].min() >= 5  # the rows that grew a leaf are in it


# effects


def test_effects_are_the_ratio_of_means_over_filled_leaves():
    X = data()[0]
    forest = fitted()
    table = forest.forest_.leaf_sums
    nodes = forest.forest_.nodes[forest.apply(X) + forest.forest_.tree_offsets[:-1]]
    sums = table[(nodes & np.uint64(2**32 - 1)).astype(int)].astype(float)
    has = sums[..., 0] > 0
    means = np.where(has[..., None], sums[..., 1:] / np.maximum(sums[..., :1], 1), 0)
    y, w, wy, ww = (means.sum(axis=1) / has.sum(axis=1)[:, None]).T / forest.forest_.coding.scale
    expected = (wy - w * y) / (ww - w * w) * forest._rows_.unit
    assert np.allclose(forest.effect(X), expected, rtol=1e-10)
    assert np.array_equal(forest.effect(X), forest.predict(X))


def test_it_finds_who_gains():
    X, y, w = data(2000)
    forest = gf.CausalForest(200, random_state=0).fit(X, y, w)
    new = data(500, seed=5)[0]
    truth = 2.0 * (new[:, 0] > 0)
    assert np.mean((forest.effect(new) - truth) ** 2) < 0.15  # the variance of the truth is 1
    assert forest.feature_importances_.argmax() == 0
    assert forest.oob_score_ > 0.05
    low, high = forest.effect_interval(new)
    inside = (low < truth) & (truth < high)
    assert inside[np.abs(new[:, 0]) > 1].mean() > 0.85
    found = forest.ate()
    assert found.low < 2.0 * (X[:, 0] > 0).mean() < found.high
    test = forest.calibration_test()
    assert test.p_value[1] < 0.001
    assert 0.5 < test.coef[1] < 1.5
    line = forest.best_linear_projection(X[:, 0] > 0)
    assert abs(line.coef[1] - 2) < 3 * line.std_error[1]
    by_group = list(effects.by_parts(forest._rows_, 4, np.ones(2000), None))
    assert all(abs(said - a.estimate) < 4 * a.std_error for said, a in by_group)


def test_shifts_and_flips_and_weights():
    """y in other units, the treatment named the other way round, and weights times a number."""
    X, y, w = data()
    forest = fitted()
    shifted = gf.CausalForest(**FEW | {"model_y": 8.0}).fit(X, y + 8, w)
    assert np.array_equal(shifted.effect(X), forest.effect(X))
    scaled = gf.CausalForest(**FEW).fit(X, 4 * y, w)
    assert np.array_equal(scaled.effect(X), 4 * forest.effect(X))
    flipped = gf.CausalForest(**FEW).fit(X, y, 1 - w)
    assert np.array_equal(flipped.effect(X), -forest.effect(X))
    named = gf.CausalForest(**FEW, discrete_treatment=True).fit(X, y, 3 + 4 * w)
    assert np.array_equal(named.effect(X), forest.effect(X))
    weighed = gf.CausalForest(**FEW).fit(X, y, w, sample_weight=np.full(N, 8.0))
    assert np.array_equal(weighed.effect(X), forest.effect(X))
    assert weighed.ate().estimate == forest.ate().estimate


def test_an_instrument_that_is_the_treatment_changes_little():
    X, y, w = data()
    by_itself = gf.CausalForest(**FEW, model_z=0.5).fit(
        X, y, w, instrument=np.where(w > 0, 5.0, 1.0) / 4
    )
    assert np.corrcoef(by_itself.effect(X), fitted().effect(X))[0, 1] > 0.99


def test_an_instrument_undoes_what_is_not_seen():
    rng, n = np.random.default_rng(0), 3000
    X, hidden, z = rng.normal(size=(n, 3)), rng.normal(size=n), rng.integers(0, 2, n)
    w = (z + hidden > 0.5) * 1.0
    y = w + 3 * hidden + rng.normal(size=n)
    seen = gf.CausalForest(100, random_state=0).fit(X, y, w).ate()
    found = gf.CausalForest(100, random_state=0).fit(X, y, w, instrument=z).ate()
    assert seen.low > 2
    assert found.low < 1 < found.high


def test_averages_of_groups_of_rows():
    """Scores of known expectations, by their definitions (Robins, Rotnitzky and Zhao 1994)."""
    _, y, w = data()
    forest = fitted()
    rows, e = forest._rows_, 0.5
    score = rows.effect + (w - e) / (e * (1 - e)) * (y - (w - e) * rows.effect)
    assert np.isclose(forest.ate().estimate, score.mean())
    assert np.isclose(forest.ate().std_error, score.std(ddof=1) / np.sqrt(N))
    treated, control = forest.ate("treated"), forest.ate("control")
    base = y - (0.0 - e * rows.effect)
    assert np.isclose(treated.estimate, (w * base - (1 - w) * base).sum() / w.sum())
    mixed = (treated.estimate * w.sum() + control.estimate * (1 - w).sum()) / N
    assert np.isclose(mixed, forest.ate().estimate, atol=0.3)
    slope = ((w - e) * y).sum() / ((w - e) ** 2).sum()
    assert np.isclose(forest.ate("overlap").estimate, slope)


def test_regression_has_robust_errors():
    """HC3 by its definition, row by row."""
    rng = np.random.default_rng(0)
    A, y, one = (
        np.column_stack([np.ones(50), rng.normal(size=50)]),
        rng.normal(size=50),
        np.ones(50),
    )
    found = effects.regression(A, y, one, None)
    coef, inverse = np.linalg.lstsq(A, y, rcond=None)[0], np.linalg.inv(A.T @ A)
    off = (y - A @ coef) / (1 - np.diag(A @ inverse @ A.T))
    expected = np.sqrt(np.diag(inverse @ (A.T * off**2) @ A @ inverse))
    assert np.allclose(found.coef, coef)
    assert np.allclose(found.std_error, expected)


def test_variances_of_little_bags():
    """A row, three pairs of trees: the variance between pairs less that within, above zero."""
    between, noise = np.array([4.0, 1.0]), np.array([1.0, 1.0])
    found = effects.at_least_zero(between, noise, np.array([200, 200]))
    assert np.isclose(found[0], 3.0, rtol=1e-3)  # it is far above what chance could make of 0
    assert np.isclose(found[1], 0.1 * np.sqrt(2 / np.pi))  # half of a normal distribution


# files, and what is refused


def test_files_and_pickles(tmp_path):
    X, forest = data()[0], fitted()
    forest.save(tmp_path / "model")
    for other in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        assert same_forest(other.forest_, forest.forest_)
        for one, two in zip(forest.effect_interval(X), other.effect_interval(X), strict=True):
            assert np.array_equal(one, two)
        assert other.ate() == forest.ate()
        assert np.array_equal(other.oob_effect_, forest.oob_effect_)


def test_files_whose_rows_are_of_another_forest_are_refused(tmp_path):
    forest = fitted()
    values = forest._rows_.values.copy()
    values[:, 2] = 1 - values[:, 2]  # an instrument, which the trees do not have
    forest._rows_ = effects.EffectRows(values)
    forest.save(tmp_path / "model")
    with pytest.raises(gf.ModelFormatError, match="sums of other moments"):
        gf.load(tmp_path / "model")


def test_an_instrument_that_equals_the_treatment_is_none_of_its_own():
    X, y, w = data()
    found = gf.CausalForest(**FEW, model_z=0.25).fit(X, y, w, instrument=w)
    assert np.array_equal(found.effect(X), fitted().effect(X))


def test_pickles_of_equal_fits_are_equal_after_they_predict():
    one, other = fitted(), fitted()
    one.effect(data()[0])
    assert pickle.dumps(one._rows_) == pickle.dumps(other._rows_)


def test_models_of_what_X_lets_expect():
    from sklearn.linear_model import LinearRegression, LogisticRegression

    X, y, w = data()
    forest = gf.CausalForest(4, model_y=LinearRegression(), model_t=LogisticRegression()).fit(
        X, y, w
    )
    assert forest._rows_.w_hat.min() > 0
    assert np.corrcoef(forest._rows_.y_hat, y)[0, 1] > 0.5
    given = gf.CausalForest(4, model_y=y / 2, model_t=np.full(N, 0.4)).fit(X, y, w)
    assert (given._rows_.w_hat == 0.4).all()
    assert np.array_equal(given._rows_.y_hat, y / 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treatment": None}, "the treatment are needed"),
        ({"treatment": np.ones(N)}, "the treatment is 1 in all rows of some weight"),
        ({"treatment": np.arange(N) % 3}, "takes two values, and the treatment has 3"),
        ({"treatment": np.array([np.nan] * 2 + [0, 1] * 119)}, "missing or infinite in 2"),
        ({"treatment": "y"}, "y equals the treatment"),
        ({"treatment": np.ones(3)}, "for each of 240 rows"),
        ({"instrument": np.ones(N)}, "the instrument is 1 in all rows of some weight"),
        ({"groups": np.arange(N) // 40}, "need 8 groups of some weight, and there are 6"),
        ({"rows": 7}, "need 8 rows"),
        ({"model_t": data()[2]}, "must lie within 0 and 1"),
        ({"model_y": data()[1]}, "tell the y of every row"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*probability of treatment")
def test_what_a_fit_refuses(change, message):
    X, y, w = data()
    y = w if isinstance(change.get("treatment"), str) else y
    n = change.pop("rows", N) if "rows" in change else N
    models = {name: change.pop(name) for name in ("model_t", "model_y") if name in change}
    model, given = gf.CausalForest(**FEW | models), {"treatment": w} | change
    given["treatment"] = w if isinstance(given["treatment"], str) else given["treatment"]
    if "has 3" in message:
        model.set_params(discrete_treatment=True)
    given = {k: v if v is None else v[:n] for k, v in given.items()}
    with pytest.raises(ValueError, match=message):
        model.fit(X[:n], y[:n], **given)
    assert not hasattr(model, "forest_")


def test_warnings():
    X, y, w = data()
    rare = np.where(np.arange(N) < 7, 0.001, 0.5)
    with pytest.warns(UserWarning, match="7 rows have a probability of treatment below 0.01"):
        gf.CausalForest(**FEW | {"model_t": rare}).fit(X, y, w)
    groups = np.arange(N) // 4
    w[:8] = np.repeat([0, 1], 4)
    w[8:] = np.arange(N - 8) % 2
    with pytest.warns(UserWarning, match="2 of 60 groups have one value of the treatment"):
        gf.CausalForest(**FEW).fit(X, y, w, groups=groups)


def test_what_a_causal_forest_does_not_have():
    X, forest = data()[0], fitted()
    with pytest.raises(ValueError, match="no tree has predictions of its own"):
        gf.export_text(forest)
    with pytest.raises(ValueError, match="effects are ratios of means"):
        forest.shap_values(X)
    with pytest.raises(AttributeError, match="predict nothing alone"):
        _ = forest.estimators_
    with pytest.raises(ValueError, match="unknown: pass all"):
        forest.ate("nobody")
    with pytest.raises(ValueError, match="between 0 and 1"):
        forest.effect_interval(X, alpha=2)
    blocks = gf.BinnedData.from_blocks([(X, data()[1], None, None, np.arange(N) // 60)])
    with pytest.raises(ValueError, match="blocks of time"):
        gf.CausalForest(**FEW).fit(blocks, treatment=data()[2])
