"""Quantile forests beside Meinshausen's definition in plain Python, with exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from gpuforest import ExtraTreesQuantileRegressor, RandomForestQuantileRegressor
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.inspection.quantile_forest import leaf_members
from gpuforest.kernels.quantiles.numpy import members_of
from gpuforest.nodes import is_leaf
from gpuforest.sampling import draw_bags

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.round(3 * X[:, 0] + RNG.normal(size=90), 1)  # some are equal
LEVELS = [0.05, 0.25, 0.5, 0.9]


def exact_weights(model, i, out_of_bag, rows=X):
    """The weight of each training row for row i of them, and the number of draws in its leaves."""
    leaves, n_trees = model.apply(rows), model.n_estimators_
    bags = draw_bags(model._rows_.sampling, model.seed_, 0, n_trees, NumpyBackend())
    trees = [t for t in range(n_trees) if not (out_of_bag and bags[t][i])]
    weights, draws = [Fraction(0)] * len(rows), 0
    for t in trees:
        inside = [
            int(m) if leaf == leaves[i, t] else 0
            for m, leaf in zip(bags[t], leaves[:, t], strict=True)
        ]
        draws += sum(inside)
        for r, m in enumerate(inside):
            weights[r] += Fraction(m, sum(inside) * len(trees))
    return weights, draws


def plain(model, i, out_of_bag, rows=X):
    """Quantiles of row i: Meinshausen's, and the mean over windows; and the weighted mean."""
    weights, draws = exact_weights(model, i, out_of_bag, rows)
    if not draws:
        return [np.nan] * len(LEVELS), [np.nan] * len(LEVELS), np.nan
    pairs = sorted((Fraction(y), w) for y, w in zip(Y.tolist(), weights, strict=True) if w)
    inverse, linear = [], []
    for q in map(Fraction, map(str, LEVELS)):  # 0.9 is meant, of which float64 has only a neighbour
        upto, found, start = Fraction(0), None, q * (draws - 1) / draws
        end, mean = start + Fraction(1, draws), Fraction(0)
        for y, w in pairs:
            before, upto = upto, upto + w
            found = y if found is None and upto >= q else found
            mean += y * max(min(upto, end) - max(before, start), Fraction(0))
        inverse.append(float(found))
        linear.append(float(mean * draws))
    return inverse, linear, float(sum(y * w for y, w in pairs))


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("out_of_bag", [False, True])
@pytest.mark.parametrize("leaf", [1, 6])
def test_quantiles_are_meinshausens(backend, leaf, out_of_bag):
    model = RandomForestQuantileRegressor(
        12, min_samples_leaf=leaf, random_state=3, backend=backend
    ).fit(X, Y)
    expected = [plain(model, i, out_of_bag) for i in range(len(X))]
    inverse, linear, mean = (np.array(part) for part in zip(*expected, strict=True))
    found = model.predict(X, LEVELS, interpolation="inverted_cdf", oob_score=out_of_bag)
    assert np.array_equal(found, inverse, equal_nan=True)  # a training target each
    found = model.predict(X, LEVELS, oob_score=out_of_bag)
    # float64 beside fractions, and weights that are rounded to 2**-48 of a leaf
    assert np.allclose(found, linear, rtol=1e-11, atol=1e-11, equal_nan=True)
    found = model.predict(X, "mean", oob_score=out_of_bag)
    assert np.allclose(found, mean, rtol=1e-11, atol=1e-11, equal_nan=True)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("out_of_bag", [False, True])
def test_quantiles_with_categories_and_missing_values(backend, out_of_bag):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    kinds = np.array(["red", "green", "blue", None], object)[rng.integers(0, 4, 90)]
    rows = pd.DataFrame({"kind": kinds, "a": X[:, 0], "b": X[:, 1]})
    rows.loc[rng.random(90) < 0.3, "a"] = np.nan
    model = RandomForestQuantileRegressor(
        8, min_samples_leaf=3, max_features=None, random_state=3, backend=backend
    ).fit(rows, Y)
    assert model.is_categorical_.tolist() == [True, False, False]
    assert len(model.forest_.sets)  # some splits are by categories
    found = model.predict(rows, LEVELS, interpolation="inverted_cdf", oob_score=out_of_bag)
    middle = model.predict(rows, LEVELS, oob_score=out_of_bag)
    for i in range(0, 90, 3):
        inverse, linear, _ = plain(model, i, out_of_bag, rows)
        assert np.array_equal(found[i], inverse, equal_nan=True)
        # float64 beside fractions, see above
        assert np.allclose(middle[i], linear, rtol=1e-11, atol=1e-11, equal_nan=True)


def test_ranks_are_sums_of_weights(backend):
    model = RandomForestQuantileRegressor(
        12, min_samples_leaf=4, random_state=3, backend=backend
    ).fit(X, Y)
    asked = Y[::-1].copy()
    kinds = {k: model.quantile_ranks(X, asked, kind=k) for k in ("weak", "strict", "mean", "rank")}
    for i in range(0, 90, 7):
        weights, draws = exact_weights(model, i, False)
        pairs = list(zip(Y, weights, strict=True))
        weak = sum(w for y, w in pairs if y <= asked[i])
        strict = sum(w for y, w in pairs if y < asked[i])
        middle = (weak + strict) / 2
        rank = middle + (Fraction(1, 2 * draws) if weak > strict else 0)
        for kind, exact in zip(kinds, (weak, strict, middle, rank), strict=True):
            assert abs(kinds[kind][i] - float(exact)) < 1e-11  # rounded weights, see above


def test_both_backends_give_the_same_bits():
    y = np.stack([Y, X[:, 1] ** 2], axis=1)
    weights = RNG.integers(0, 4, len(X))
    for kind in (RandomForestQuantileRegressor, ExtraTreesQuantileRegressor):
        for most in (None, 2, 0.05):
            params = {"max_samples_leaf": most, "min_samples_leaf": 5, "random_state": 0}
            models = [
                kind(7, backend=b, n_jobs=n, **params).fit(X, y, weights)
                for b, n in (("numpy", 1), ("numba", 2))
            ]
            for asked in (LEVELS, 0.5, "mean"):
                one, other = (m.predict(X, asked) for m in models)
                assert one.shape == ((90, 2, 4) if asked == LEVELS else (90, 2))
                assert np.array_equal(one, other)
            one, other = (m.quantile_ranks(X, y) for m in models)
            assert np.array_equal(one, other)


def test_leaves_keep_at_most_so_many_draws():
    whole = RandomForestQuantileRegressor(6, min_samples_leaf=8, random_state=1, backend="numpy")
    whole.fit(X, Y)
    every_draw = leaf_members(whole.forest_, whole._rows_, None, NumpyBackend())
    leaves = np.flatnonzero(is_leaf(whole.forest_.nodes))
    for most in (1, 3, 0.05):
        found = leaf_members(whole.forest_, whole._rows_, most, NumpyBackend())
        limit = 5 if most == 0.05 else most  # 4.5, rounded up
        for node in leaves:
            kept, known = members_of(found, node), members_of(every_draw, node)
            assert kept[:, 1].sum() == limit  # as leaves have eight rows
            assert set(kept[:, 0].tolist()) <= set(known[:, 0].tolist())


def test_without_bootstrap_weights_are_draws():
    weights = RNG.integers(0, 4, len(X))
    one, other = (
        RandomForestQuantileRegressor(
            4, bootstrap=False, max_depth=3, max_features=None, random_state=0, backend="numpy"
        )
        .fit(rows, y, w)
        .predict(X, LEVELS)
        for rows, y, w in ((X, Y, weights), (X.repeat(weights, 0), Y.repeat(weights), None))
    )
    assert np.array_equal(one, other)
