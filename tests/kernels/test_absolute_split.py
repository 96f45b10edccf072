"""The criteria "absolute_error" and "friedman_mse", against scikit-learn's."""

import numpy as np
import pytest
from engine import Task, same_forest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import gpuforest
from gpuforest.backends import numba, numpy, registry
from gpuforest.common.hashing import CUT, hash_at
from gpuforest.growing.assemble import merged
from gpuforest.growing.grow import grow
from gpuforest.splits import kinds
from gpuforest.splits.absolute.kind import Absolute


def test_friedman_mse_warns_and_means_squared_error():
    with pytest.warns(FutureWarning, match=r'"friedman_mse".*"squared_error"') as caught:
        model = gpuforest.RandomForestRegressor(criterion="friedman_mse")
    assert caught[0].filename == __file__
    assert clone(model).criterion == "squared_error"  # without a second warning
    with pytest.raises(ValueError, match="criterion"):
        gpuforest.DecisionTreeClassifier(criterion="friedman_mse").fit([[0], [1]], [0, 1])


def data(seed, n=120, n_features=1, n_outputs=1, missing=False):
    """Features with some equal values, and targets without."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, (n, n_features)).astype(np.float32)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    y = np.nan_to_num(X[:, :1], nan=20) + rng.normal(size=(n, n_outputs)) * 10
    return X, y if n_outputs > 1 else y[:, 0]


LIMITS = [
    {"max_leaf_nodes": 5}, {"ccp_alpha": 0.3}, {"max_depth": 2}, {"min_samples_split": 150},
    {"min_weight_fraction_leaf": 0.1}, {"min_impurity_decrease": 0.3},
    {"monotonic_cst": [1, 0]}, {"monotonic_cst": [-1, 1]},
]  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("kind", ["one output", "several outputs", "weights", "missing values"])
def test_small_trees_are_those_of_scikit_learn(limit, kind):
    if "monotonic_cst" in limit and kind in ("several outputs", "missing values"):
        pytest.skip("scikit-learn refuses monotonic constraints here")
    n_outputs, missing = 3 if kind == "several outputs" else 1, kind == "missing values"
    X, y = data(5, n=400, n_features=2, n_outputs=n_outputs, missing=missing)
    weights = np.random.default_rng(5).integers(1, 5, 400) if kind == "weights" else np.ones(400)
    params = {"criterion": "absolute_error", "min_samples_leaf": 25, **limit}
    a = gpuforest.DecisionTreeRegressor(**params, backend="numpy").fit(X, y, weights)
    b = DecisionTreeRegressor(**params, random_state=0).fit(X, y, weights)
    assert 2 < a.get_n_leaves() == b.get_n_leaves()
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-12)
    np.testing.assert_allclose(sorted(a.tree_.impurity), sorted(b.tree_.impurity), rtol=1e-9)
    for importances in (a.feature_importances_, a.tree_.compute_feature_importances()):
        np.testing.assert_allclose(importances, b.feature_importances_, rtol=1e-9)
    path, other = (m.cost_complexity_pruning_path(X, y, weights) for m in (a, b))
    np.testing.assert_allclose(path.impurities[-1], other.impurities[-1], rtol=1e-9)


def tasks():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        N, F, K = int(rng.integers(5, 70)), int(rng.integers(1, 5)), int(rng.integers(1, 3))
        X = rng.normal(size=(N, F))
        if seed % 2:
            X = rng.integers(0, 6, (N, F)).astype(np.float64)
        X[rng.random(X.shape) < 0.2 * (seed % 3 == 0)] = np.nan
        signs = tuple(rng.integers(-1, 2, F).tolist()) if K == 1 and seed % 4 < 2 else ()
        y = rng.integers(0, 9, (N, K)) if seed % 5 else rng.normal(size=(N, K))
        weights = rng.integers(1, 4, N).astype(np.int32) if seed % 3 == 1 else None
        yield Task(
            X, y, "absolute_error", weights, N if seed % 3 == 0 else 0, n_trees=2, seed=seed,
            n_tried=int(rng.integers(1, F + 1)), max_bins=int(rng.choice([3, 255, 1000])),
            min_rows_leaf=int(rng.integers(1, 4)), min_weight_leaf=int(rng.integers(1, 4)),
            random=seed % 7 == 0, signs=signs if any(signs) else (),
        )  # fmt: skip


def error_of(training, rows, w):
    """The absolute errors around the medians of all outputs, times their factors; and the median of
    the first output."""
    total, medians = 0.0, []
    for k, factor in enumerate(training.target.coding.error_factors):
        y = training.target.y[rows, k]
        each = np.repeat(y, w)
        each.sort()
        n = len(each)
        medians.append((each[(n - 1) // 2] + each[n // 2]) * 0.5)
        total += factor * int((w * abs(y - each[(n - 1) // 2])).sum())
    return total, medians[0]


def sides_of(training, slots, s, f):
    """The cuts of a slot by a feature, each as a mask of the rows that go left."""
    rows = slots.rows[slots.begin[s] : slots.end[s]]
    code, missing = training.matrix.codes[rows, f].astype(np.int64), training.n_codes - 1
    present = np.unique(code[code != missing])
    if training.rules.random:
        if not len(present):
            return []
        h = int(hash_at(slots.key[s : s + 1], np.array([f + CUT], np.uint64))[0])
        low, high = int(present[0]), int(present[-1])
        cut = low + (h >> 1) % max(high - low, 1)
        left = (code <= cut) & (code != missing)
        return [left | (code == missing) if h & 1 and high > low else left]
    left = [code <= c for c in present]
    return [one for c in left for one in ([c, c | (code == missing)] if missing in code else [c])]


class ByDefinition(Absolute):
    """The search by its definition: all cuts are tried, and medians are of repeated values."""

    seen = 0  # cuts whose rows were compared

    def cuts(self, backend, training, slots, features):
        rules, expected = training.rules, super().cuts(backend, training, slots, features)
        for s, j in np.ndindex(features.shape):
            f, own = int(features[s, j]), slice(slots.begin[s], slots.end[s])
            rows, w = slots.rows[own], slots.weights[own].astype(np.int64)
            varies = f >= 0 and len(np.unique(training.matrix.codes[rows, f])) > 1
            assert expected.varies[s, j] == varies
            gains, sign = [], rules.signs[f] if len(rules.signs) else 0
            for left in sides_of(training, slots, s, f) if varies else ():
                sides = [(rows[m], w[m]) for m in (left, ~left)]
                if min(len(r) for r, _ in sides) < max(rules.min_rows_leaf, 1):
                    continue
                errors, medians = zip(*(error_of(training, *side) for side in sides), strict=True)
                gain = error_of(training, rows, w)[0] - sum(errors)
                if min(v.sum() for _, v in sides) < rules.min_weight_leaf:
                    continue
                if sign:
                    low, high = slots.bounds[s]
                    if sign * medians[0] > sign * medians[1] or not (
                        low <= min(medians) and max(medians) <= high
                    ):
                        continue
                gains.append((gain, left))
            best = pytest.approx(max((g for g, _ in gains), default=-np.inf), rel=1e-9, abs=1e-9)
            assert expected.score[s, j] == best
            if gains and len(training.target.coding.error_factors) == 1:
                missing, code = training.n_codes - 1, training.matrix.codes[rows, f]
                moved = np.where(
                    code == missing, expected.missing_left[s, j], code <= expected.bin[s, j]
                )
                # of cuts that gain equally, to the last bits, either may be the first
                assert any(g == best and np.array_equal(moved, left) for g, left in gains)
                assert expected.left[s, j, 0] == w[moved].sum()
                ByDefinition.seen += 1
        return expected


@pytest.mark.parametrize("n_threads", [1, 3])
def test_cuts_are_the_best_by_definition(n_threads, monkeypatch):
    expected = [task.grow(numpy.NumpyBackend()) for task in tasks()]
    monkeypatch.setattr(kinds, "kind_for", lambda *_: ByDefinition())
    backend, before = numba.NumbaBackend(n_threads), ByDefinition.seen
    for task, forest in zip(tasks(), expected, strict=True):
        training = task.training(backend)
        assert same_forest(merged(grow(training, backend, 0, task.n_trees), training, 1), forest)
    assert ByDefinition.seen > before + 200


X3, Y3 = data(7, n=150, n_features=3, missing=True)


def test_a_tree_is_pruned_by_its_absolute_error():
    X, y = data(8, n=400, n_features=2)
    tree = gpuforest.DecisionTreeRegressor(criterion="absolute_error", backend="numpy")
    whole = tree.fit(X[:200], y[:200])
    n_leaves = whole.get_n_leaves()
    before = np.abs(whole.predict(X[200:]) - y[200:]).mean()
    whole.prune(X[200:], y[200:])
    after = np.abs(whole.predict(X[200:]) - y[200:]).mean()
    assert whole.get_n_leaves() < n_leaves
    assert after < before
    assert whole.pruning_curve_.errors.min() == pytest.approx(after)
    again = clone(whole).set_params(ccp_alpha=whole.ccp_alpha_).fit(X[:200], y[:200])
    assert same_forest(again.forest_, whole.forest_)
    assert np.array_equal(again.forest_.node_values, whole.forest_.node_values)


class Elsewhere(numpy.NumpyBackend):
    """A backend whose arrays lie elsewhere, as those of GPUs do."""

    name, on_host = "elsewhere", False


CLASSES = "has no sets of categories for several classes or outputs"


@pytest.mark.parametrize(
    ("kind", "rest", "words"),
    [
        (gpuforest.DecisionTreeRegressor, {"criterion": "absolute_error"}, ""),
        (gpuforest.DecisionTreeRegressor, {"categorical_split": "multiway"},
         "has no categorical_split='multiway'"),
        (gpuforest.DecisionTreeClassifier, {"categorical_features": [0]}, CLASSES),
    ],
)  # fmt: skip
def test_other_backends_hand_over_to_the_cpu(kind, rest, words, monkeypatch, caplog):
    monkeypatch.setitem(registry._factories, "elsewhere", Elsewhere)
    tree, y = kind(**rest, backend="elsewhere"), np.digitize(Y3, [10, 20, 30])
    with caplog.at_level("WARNING", "gpuforest"):
        tree.fit(X3, y)
    (record,) = (one for one in caplog.records if "compiling" not in one.message)
    assert record.levelname == "WARNING"
    assert all(part in caplog.text for part in ("'elsewhere' ", words, "CPU"))
    assert tree.backend_ == "numba"
    found = tree.predict(X3)
    assert np.array_equal(found, tree.set_params(backend="numba").fit(X3, y).predict(X3))
    for n_channels, random in ((2, False), (3, True)):
        assert registry.for_categories(Elsewhere(), n_channels, random).name == "elsewhere"
