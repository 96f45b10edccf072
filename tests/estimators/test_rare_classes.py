"""Bags with a number of rows of each class, and predictions at other priors of the classes."""

from importlib.util import find_spec

import numpy as np
import pytest
from engine import same_forest
from scipy.stats import chisquare
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import gpuforest as gf
from gpuforest.estimators import task
from gpuforest.explain.model_facts import forest_digest
from gpuforest.export import model_file

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
y = np.array(["few", "many", "some"])[np.digitize(X[:, 0] + rng.normal(size=600), [-1.9, 1.2])]
COUNTS = {c: int((y == c).sum()) for c in ("few", "many", "some")}
FEWEST = min(COUNTS.values())
NAMED = {"few": 30, "many": 0.25, "some": 50}
NAMED_ROWS = [30, COUNTS["many"] // 4, 50]


def grown(backend="numba", kind=gf.RandomForestClassifier, **params):
    return kind(**{"n_estimators": 8, "random_state": 0, "backend": backend, **params})


def roots(model):
    """The weight of each class in each tree, i64[T, C]."""
    return np.stack([model.forest_.node_sums(t, t + 1)[0] for t in range(len(model))])


def test_each_tree_draws_as_many_rows_of_each_class(backend):
    balanced = grown(backend, class_weight="balanced_bootstrap").fit(X, y)
    assert (roots(balanced) == FEWEST).all()
    for samples in balanced.estimators_samples_:
        assert np.unique(y[samples], return_counts=True)[1].tolist() == [FEWEST] * 3
    by_number = grown(backend, max_samples=dict.fromkeys(COUNTS, FEWEST)).fit(X, y)
    assert same_forest(by_number.forest_, balanced.forest_)
    named = grown(backend, max_samples=NAMED).fit(X, y)
    assert (roots(named) == NAMED_ROWS).all()
    assert named._n_samples_bootstrap == sum(NAMED_ROWS)
    one = grown(backend, class_weight="balanced_bootstrap", n_estimators=1, oob_score=True)
    with pytest.warns(UserWarning, match="do not have OOB"):
        means = one.fit(X, y).oob_decision_function_
    assert np.array_equal(
        np.flatnonzero(np.isnan(means[:, 0])), np.unique(one.estimators_samples_[0])
    )


def test_threads_memory_and_backends_change_nothing():
    weight = rng.uniform(0.5, 2, 600)
    want = grown("numpy", class_weight="balanced_bootstrap").fit(X, y, weight).forest_
    for how in ({"n_jobs": 1}, {"n_jobs": 3}, {"memory_limit": "2MB"}, {"warm_start": True}):
        other = grown(class_weight="balanced_bootstrap", **how)
        if "warm_start" in how:
            other.set_params(n_estimators=3).fit(X, y, weight).set_params(n_estimators=8)
        assert same_forest(other.fit(X, y, weight).forest_, want)


def test_weights_of_classes_multiply_and_rows_of_no_weight_are_not_counted(backend):
    plain = grown(backend, max_samples=NAMED).fit(X, y)
    weights = {"few": 1, "many": 3, "some": 2}
    weighed = grown(backend, max_samples=NAMED, class_weight=weights).fit(X, y)
    assert np.array_equal(roots(weighed), roots(plain) * [1, 3, 2])
    even = grown(backend, max_samples=NAMED, class_weight="balanced_subsample").fit(X, y)
    shares = roots(even) / roots(even).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares, 1 / 3, atol=1e-5)
    counted = (y != "few") | (np.arange(600) % 2 == 0)
    some = grown(backend, class_weight="balanced_bootstrap").fit(X, y, counted * 1.0)
    assert (roots(some) == (counted & (y == "few")).sum()).all()
    none = grown(backend, class_weight="balanced_bootstrap").fit(X, y, (y != "few") * 1.0)
    assert (roots(none) == [0, COUNTS["some"], COUNTS["some"]]).all()


def test_scikit_learns_trees_of_the_same_bags_predict_the_same():
    exact = {"max_features": None, "max_depth": 2, "n_estimators": 20}
    model, equal = grown(class_weight="balanced_bootstrap", **exact).fit(X, y), 0
    for tree, samples in zip(model.estimators_, model.estimators_samples_, strict=True):
        weight = np.bincount(samples, minlength=600)
        other = SklearnTree(max_depth=2, random_state=0).fit(X, y, weight)
        bag = X[samples]  # other rows may lie between two of them, where cuts are
        equal += np.allclose(other.predict_proba(bag), tree.predict_proba(bag))
    assert equal >= 18  # the best splits of others have equal gains


def test_extra_trees_hold_the_rows_of_their_bags():
    model = grown(kind=gf.ExtraTreesClassifier, bootstrap=True, max_samples=NAMED).fit(X, y)
    for tree, samples in zip(model.estimators_, model.estimators_samples_, strict=True):
        at = tree.apply(X[samples])
        held = np.stack([np.bincount(at, y[samples] == c) for c in COUNTS], axis=1)[at]
        shares = held / held.sum(axis=1, keepdims=True)
        assert np.allclose(shares, tree.predict_proba(X[samples]))


@pytest.mark.parametrize("weighed", [False, True])
def test_rows_of_a_class_are_drawn_by_their_weights(weighed):
    weight = rng.integers(1, 5, 600).astype(float) if weighed else None
    model = grown(max_samples=NAMED, n_estimators=2000, max_depth=1, n_jobs=1).fit(X, y, weight)
    drawn = sum(np.bincount(s, minlength=600) for s in model.estimators_samples_)
    for label in COUNTS:
        chances = np.ones(600) if weight is None else weight
        expected, found = chances[y == label], drawn[y == label]
        assert chisquare(found, expected / expected.sum() * found.sum()).pvalue > 1e-3


@pytest.mark.parametrize("more", [{}, {"voting": "hard"}, {"shrinkage": "oob"}])
def test_priors_multiply_the_means_of_the_trees(backend, tmp_path, more):
    asked = {"class_weight": "balanced_bootstrap", "oob_score": True, "n_estimators": 20, **more}
    plain = grown(backend, **asked).fit(X, y)
    for priors in ({"few": 0.2, "many": 0.7, "some": 0.1}, "training"):
        model = grown(backend, priors=priors, **asked).fit(X, y)
        assert same_forest(plain.forest_, model.forest_)
        counts = np.array([*(COUNTS if priors == "training" else priors).values()])
        for name in ("predict_proba", "oob_decision_function_"):
            before, after = (getattr(m, name) for m in (plain, model))
            before, after = (before(X), after(X)) if callable(before) else (before, after)
            want = before * counts / (before * counts).sum(axis=1, keepdims=True)
            np.testing.assert_allclose(after, want, rtol=1e-12)
        assert model.oob_score_ == (model.classes_[after.argmax(axis=1)] == y).mean()
        best = model.predict_proba(X).argmax(axis=1)
        assert np.array_equal(model.predict(X), model.classes_[best])
        assert np.array_equal(model.estimators_[0].predict_proba(X), plain[0].predict_proba(X))
        assert np.array_equal(plain.feature_importances_, model.feature_importances_)
        model.save(tmp_path / "model.gf")
        loaded = gf.load(tmp_path / "model.gf")
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
        for one, other in zip(loaded.estimators_samples_, model.estimators_samples_, strict=True):
            assert np.array_equal(one, other)
    assert forest_digest(plain.forest_) != forest_digest(model.forest_)
    falls = [gf.oob_permutation_importance(m, X, y).importances for m in (plain, model)]
    assert np.array_equal(*falls)


def test_priors_bring_probabilities_of_a_rare_class_near_its_frequency():
    rows = np.random.default_rng(1).normal(size=(24_000, 7))
    rare = rows[:, 0] + rows[:, 1] + 2 * rows[:, 6] > 4  # 5 % are
    means, losses, balanced = [], [], {"class_weight": "balanced_bootstrap"}
    for way in (balanced, balanced | {"priors": "training"}, {}):
        model = grown(n_estimators=100, **way).fit(rows[:4000, :6], rare[:4000])
        found = model.predict_proba(rows[4000:, :6])
        means.append(found[:, 1].mean() / rare[4000:].mean())
        losses.append(log_loss(rare[4000:], found))
    assert means[0] > 4
    assert 0.55 < means[1] < 1.2  # means of trees lie towards the middle, so it is below 1
    assert losses[1] < min(losses[0], losses[2])


def test_what_ends_before_priors_is_refused():
    model = grown(class_weight="balanced_bootstrap", priors="training").fit(X, y)
    calls = [model.to_sklearn, lambda: model.shap_values(X), lambda: model.expected_value(X)]
    for call in (*calls, *[model.to_treelite] * bool(find_spec("treelite"))):
        with pytest.raises(ValueError, match=r"before priors: fit with priors=None.*'few': 0\.\d"):
            call()
    assert not hasattr(model, "expected_value_")


def test_priors_undo_class_weights():
    """A tree of one leaf says what it knows of the training rows."""
    few = {"bootstrap": False, "max_depth": 1, "min_samples_leaf": 301, "priors": "training"}
    weights = {"few": 8, "many": 1, "some": 3}
    for class_weight in (None, weights, "balanced"):
        model = grown(class_weight=class_weight, **few).fit(X, y)
        want = [[COUNTS[c] / 600 for c in model.classes_]]
        np.testing.assert_allclose(model.predict_proba(X[:1]), want, rtol=1e-6)


def test_losses_out_of_bag_weigh_rows_as_the_trees_predict(monkeypatch):
    given = []
    real = task.oob.loss_of
    monkeypatch.setattr(task.oob, "loss_of", lambda y, w, of: given.append(w) or real(y, w, of))
    for asked in ({"class_weight": "balanced_bootstrap"}, {"max_samples": NAMED},
                  {"max_samples": NAMED, "priors": "training"}):  # fmt: skip
        grown(min_samples_leaf="oob", **asked).fit(X, y)
    totals = [[w[y == c].sum() / w.sum() for c in COUNTS] for w in given]
    n = np.array(NAMED_ROWS)
    want = [[1 / 3] * 3, n / n.sum(), n / n.sum()]
    np.testing.assert_allclose(totals, want)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"class_weight": "balanced_bootstrap", "bootstrap": False}, "set bootstrap=True"),
        ({"max_samples": NAMED, "bootstrap": False}, "set bootstrap=True"),
        ({"class_weight": "balanced_bootstrap", "max_samples": 9}, "leave max_samples out"),
        ({"max_samples": {"few": 3}}, "name each of these"),
        ({"max_samples": NAMED | {"few": 0}}, "above 0"),
        ({"max_samples": NAMED | {"few": "all"}}, "above 0"),
        ({"priors": {"few": 0.2, "many": 0.7, "some": 0.2}}, "add up to 1"),
        ({"priors": {"few": 1.0}}, "name each of these"),
    ],
)
def test_bad_ones_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        grown(**params).fit(X, y)
    with pytest.raises(ValueError, match="max_samples"):
        gf.RandomForestRegressor(max_samples={1: 3}).fit(X, X[:, 0])


def test_a_warm_start_draws_as_before():
    model = grown(max_samples=NAMED, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="as many rows of each class"):
        model.set_params(max_samples=NAMED | {"few": 9}, n_estimators=9).fit(X, y)


def test_draws_of_a_damaged_file_are_refused(tmp_path, monkeypatch):
    model = grown(max_samples=NAMED).fit(X, y)
    for wrong in ([30, 1, 50], [], [189], [-1, 190, 0], [0, 0, 0, 189]):
        changed = {"of_classes": wrong} if wrong else {}
        kept = {"n_rows": 600, "n_draws": sum(NAMED_ROWS), **changed}
        monkeypatch.setattr(model_file, "_draws", lambda sampling, kept=kept: kept)
        model.save(tmp_path / "damaged.gf")
        with pytest.raises(gf.ModelFormatError, match=r"draws|class"):
            gf.load(tmp_path / "damaged.gf")
