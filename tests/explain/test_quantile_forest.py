"""Quantile forests beside Meinshausen's definition in plain Python, with exact fractions."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from weighted_quantiles import members_of

from gpuforest import ExtraTreesQuantileRegressor, RandomForestQuantileRegressor
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.core import nodes
from gpuforest.explain.quantile_forest import leaf_members
from gpuforest.growing.bags import draw_bags

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.round(3 * X[:, 0] + RNG.normal(size=90), 1)  # some are equal
LEVELS = [0.05, 0.25, 0.5, 0.9]


def grown(n=5, leaf=6, y=Y, backend="numpy", **options):
    options = {"min_samples_leaf": leaf, "random_state": 3, "backend": backend, **options}
    return RandomForestQuantileRegressor(n, **options).fit(X, y)


def bags_of(model):
    return draw_bags(model._rows_.sampling, model.seed_, 0, model.n_estimators_, NumpyBackend())


def draws_of(model, i, out_of_bag):
    """How often rows were drawn into the leaf of row i, a list for each tree that counts."""
    return [
        np.where(leaves == leaves[i], bag, 0)
        for leaves, bag in zip(model.apply(X).T, bags_of(model), strict=True)
        if not (out_of_bag and bag[i])
    ]


def exact_weights(model, i, out_of_bag):
    """The weight of each training row for row i of them, and the number of draws in its leaves."""
    trees, weights = draws_of(model, i, out_of_bag), [Fraction(0)] * len(X)
    for inside in trees:
        for r, m in enumerate(inside.tolist()):
            weights[r] += Fraction(m, int(inside.sum()) * len(trees))
    return weights, int(np.sum(trees))


def plain(model, i, out_of_bag):
    """Quantiles of row i: Meinshausen's, and the mean over windows; and the weighted mean."""
    weights, draws = exact_weights(model, i, out_of_bag)
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
    model = grown(12, leaf, backend=backend)
    expected = [plain(model, i, out_of_bag) for i in range(len(X))]
    inverse, linear, mean = (np.array(part) for part in zip(*expected, strict=True))
    found = model.predict(X, LEVELS, interpolation="inverted_cdf", oob_score=out_of_bag)
    assert np.array_equal(found, inverse, equal_nan=True)  # a training target each
    found = model.predict(X, LEVELS, oob_score=out_of_bag)
    # float64 beside fractions, and weights that are rounded to 2**-48 of a leaf
    assert np.allclose(found, linear, rtol=1e-11, atol=1e-11, equal_nan=True)
    found = model.predict(X, "mean", oob_score=out_of_bag)
    assert np.allclose(found, mean, rtol=1e-11, atol=1e-11, equal_nan=True)


def test_both_backends_give_the_same_bits():
    y = np.stack([Y, X[:, 1] ** 2], axis=1)
    weights = RNG.integers(0, 4, len(X))
    for most in (None, 2, 0.05):
        models = [
            ExtraTreesQuantileRegressor(
                7, max_samples_leaf=most, min_samples_leaf=5, random_state=0, backend=b, n_jobs=2
            ).fit(X, y, weights)
            for b in ("numpy", "numba")
        ]
        for asked in (LEVELS, 0.5, "mean"):
            one, other = (m.predict(X, asked) for m in models)
            assert one.shape == ((90, 2, 4) if asked == LEVELS else (90, 2))
            assert np.array_equal(one, other)
        one, other = (m.quantile_ranks(X, y) for m in models)
        assert np.array_equal(one, other)


def test_leaves_keep_at_most_so_many_draws():
    whole = grown(6, 8)
    every_draw = leaf_members(whole.forest_, whole._rows_, None, NumpyBackend())
    leaves = np.flatnonzero(nodes.is_leaf(whole.forest_.nodes))
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


def targets_of(model, i, out_of_bag=False):
    """The targets of all draws in the leaves of row i, a list for each tree that counts."""
    return [np.repeat(Y, drawn) for drawn in draws_of(model, i, out_of_bag)]


METHODS = ["linear", "lower", "higher", "midpoint", "inverted_cdf"]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("out_of_bag", [False, True])
def test_quantiles_of_draws_and_of_trees_are_numpys(backend, out_of_bag):
    model = grown(backend=backend)
    levels, options = [0.1, 0.25, 0.5, 1.0], {"oob_score": out_of_bag}
    lists = [targets_of(model, i, out_of_bag) for i in range(len(X))]
    assert ([] in lists) == out_of_bag  # some row is in all bags
    for method in [*METHODS, "mean"]:
        of_levels = partial(np.quantile, q=levels, method=method)
        plain = np.mean if method == "mean" else of_levels
        none = np.nan if method == "mean" else [np.nan] * 4
        pooled = [plain(np.concatenate(some)) if some else none for some in lists]
        by_tree = [np.mean([plain(d) for d in some], axis=0) if some else none for some in lists]
        q, asked = (levels, {"interpolation": method}) if method != "mean" else (method, {})
        for name, expected in (
            ("weighted_leaves", pooled),
            ("weighted_quantile", pooled),
            ("aggregate_leaves_first", by_tree),
        ):
            found = model.predict(X, q, **asked, **options, **{name: False})
            # float64 beside float64 in another order
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_nearest_draw():
    model = RandomForestQuantileRegressor(
        1, bootstrap=False, max_features=None, max_depth=1, random_state=0, backend="numpy"
    ).fit([[0.0], [0.0], [0.0], [9.0]], [1.0, 2.0, 4.0, 50.0])
    for weighted in (False, True):
        asked = {"interpolation": "nearest", "weighted_leaves": weighted}
        found = model.predict([[0.0]], [0.2, 0.25, 0.3, 0.5, 0.7, 0.8], **asked)
        assert found.tolist() == [[1.0, 1.0, 2.0, 2.0, 2.0, 4.0]]  # 0.25 is in the middle


def test_ranks_are_sums_of_weights_or_means_over_trees(backend):
    model, asked = grown(12, 4, backend=backend), Y[::-1].copy()
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
    model = grown()
    found = model.quantile_ranks(X, Y[::-1], kind="weak", aggregate_leaves_first=False)
    for i in range(0, 90, 7):
        each = [(draws <= Y[::-1][i]).mean() for draws in targets_of(model, i)]
        assert abs(found[i] - np.mean(each)) < 1e-12


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("out_of_bag", [False, True])
def test_proximity_counts(out_of_bag):
    model = grown()
    found = model.proximity_counts(X, return_sorted=False, oob_score=out_of_bag)
    for i in range(len(X)):
        counts = np.sum([np.zeros(90, int), *draws_of(model, i, out_of_bag)], axis=0)
        expected = [(r, n) for r, n in enumerate(counts.tolist()) if n]
        assert found[i] == expected
        by_count = sorted(expected, key=lambda pair: -pair[1])
        if i % 30 == 0:
            few = model.proximity_counts(X, 3, oob_score=out_of_bag)[i]
            assert few == by_count[:3]
    unsampled = model._get_unsampled_indices(model.estimators_[1])
    assert np.array_equal(unsampled, np.flatnonzero(bags_of(model)[1] == 0))
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="must be an integer from 1 on"):
            model.proximity_counts(X, wrong)


def test_duplicates_are_out_of_bag_together():
    model = grown(12, 1)
    pair = [4, 70]
    apart = ~bags_of(model)[:, pair].any(axis=1)
    trees = [tree.predict(X[4:5])[0] for tree in model.estimators_]
    found = model.predict(X[4:5], "mean", oob_score=True, indices=[4.0], duplicates=[pair])
    assert np.allclose(found, np.mean(np.array(trees)[apart]))
    assert not np.allclose(found, model.predict(X[4:5], "mean", oob_score=True, indices=[4]))
    with pytest.raises(ValueError, match="duplicates must be integers from 0 to 89"):
        model.predict(X, oob_score=True, duplicates=[[0, 90]])
    with pytest.raises(ValueError, match="indices must be integers from -1 to 89"):
        model.predict(X[:1], oob_score=True, indices=[0.5])


def test_scores_of_quantiles():
    y = np.stack([Y, X[:, 1] ** 2], axis=1)
    model = grown(5, 9, y, default_quantiles=[0.1, 0.9])
    wrong = ((y - model.predict(X, 0.5)) ** 2).sum(axis=0)
    assert np.isclose(model.score(X, y, quantiles=0.5), 1 - wrong.sum() / (len(y) * y.var(0).sum()))
    with pytest.raises(ValueError, match="a score is of one quantile, not of 2: pass quantiles="):
        model.score(X, y)
