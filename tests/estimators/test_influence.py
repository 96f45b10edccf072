"""Influence of training rows: the predictions of fits without each of them."""

import numpy as np
import pytest
from paths import has_numba

import gpuforest as gf
from gpuforest.backends import rows as rows_of
from gpuforest.backends.rows import chosen
from gpuforest.estimators import influence, kept
from gpuforest.growing import left_out

BACKENDS = ["numpy", *["numba"] * has_numba]


def table():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (400, 4)) * 1.0
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + rng.integers(0, 3, 400)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "params"), [
    (gf.RandomForestClassifier, {"categorical_features": [1], "min_samples_leaf": 2}),
    (gf.RandomForestClassifier, {"voting": "hard"}),
    (gf.RandomForestRegressor, {"max_depth": 5}),
])  # fmt: skip
def test_influence_is_that_of_fits_without_a_row(kind, params, backend, monkeypatch):
    monkeypatch.setattr(influence, "FEWEST_ROWS", 16)
    monkeypatch.setattr(kept, "FEWEST_KEPT", 16)
    monkeypatch.setattr(rows_of, "LEARNED_FROM", 20)
    X, y, X_test, y_test = table()
    if kind is gf.RandomForestClassifier:
        y, y_test = (y > 3) * 1, (y_test > 3) * 1
    weight = np.arange(300) % 3 + 1.0
    how = {"n_estimators": 5, "random_state": 3, "bootstrap": "poisson", "backend": backend}
    forest = kind(**how | params).fit(X, y, weight, row_ids=np.arange(300) * 7)
    free = np.flatnonzero(~chosen(forest.seed_, np.arange(300, dtype=np.uint64) * 7, 300))
    some, data = free[[30, 7, 100, 55]], (X, y, weight)
    found = forest.influence(X_test, row_ids=some * 7, X=X, y=y, sample_weight=weight)
    losses = forest.influence(X_test, y_test, some * 7, X, y, weight)
    predict = getattr(forest, "predict_proba", forest.predict)
    before = predict(X_test)
    for i, row in enumerate(some):
        rest = np.arange(300) != row
        ids = np.flatnonzero(rest) * 7
        other = kind(**how | params).fit(*(part[rest] for part in data), row_ids=ids)
        after = getattr(other, "predict_proba", other.predict)(X_test)
        assert np.allclose(found[i], after - before, atol=1e-12)
        assert np.isclose(losses[i], loss(after, y_test) - loss(before, y_test), atol=1e-12)
    assert np.abs(found).max() > 0
    keeping = kind(**how | params).fit(*data, row_ids=np.arange(300) * 7, keep_bytes=10**8)
    assert np.allclose(keeping.influence(X_test, row_ids=some * 7), found, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "params"), [
    (gf.RandomForestClassifier, {"max_depth": 7}),
    (gf.RandomForestClassifier, {"categorical_features": [0, 1], "max_features": None}),
    (gf.ExtraTreesClassifier, {"min_samples_leaf": 3, "voting": "hard"}),
    (gf.RandomForestRegressor, {"min_samples_split": 6, "max_features": 0.5}),
    (gf.RandomForestRegressor, {"min_impurity_decrease": 0.01, "n_jobs": 2}),
    (gf.RandomForestClassifier, {"class_weight": {0: 2, 1: 1}, "min_weight_fraction_leaf": 0.02}),
])  # fmt: skip
def test_rows_left_out_together_share_what_grows(kind, params, backend, monkeypatch):
    monkeypatch.setattr(kept, "FEWEST_KEPT", 8)
    monkeypatch.setattr(left_out, "FEWEST_SHARED", 2)
    turned = []
    add_turned = left_out.LeavingOut.add_turned
    count = lambda *given: turned.append(len(given[4])) or add_turned(*given)  # noqa: E731
    monkeypatch.setattr(left_out.LeavingOut, "add_turned", count)
    X, y, X_test, _ = table()
    y = (y > 3) * 1 if "Classifier" in kind.__name__ else y
    weight = np.arange(300) % 3 + 1.0
    forest = kind(4, random_state=1, bootstrap="poisson", backend=backend, **params)
    forest.fit(X, y, weight, keep_bytes=10**8)
    together = forest.influence(X_test)[::4]
    assert sum(turned) > 4
    turned.clear()
    alone = [forest.influence(X_test, row_ids=[i])[0] for i in range(0, 300, 4)]
    assert not turned  # the trees of single rows grow below each turned split
    assert np.allclose(together, alone, rtol=0, atol=1e-12)
    one = forest.influence(X_test[5:6], row_ids=np.arange(0, 300, 4))
    assert np.allclose(one[:, 0], together[:, 5], rtol=0, atol=1e-12)
    assert (np.abs(together).max(axis=tuple(range(1, together.ndim))) > 0).sum() > 5


@pytest.mark.parametrize("backend", BACKENDS)
def test_tables_after_a_deletion_do_not_depend_on_influence(backend, monkeypatch):
    monkeypatch.setattr(kept, "FEWEST_KEPT", 8)
    monkeypatch.setattr(rows_of, "LEARNED_FROM", 20)
    X, y, X_test, _ = table()
    free = np.flatnonzero(~chosen(0, np.arange(300, dtype=np.uint64), 300))
    found = []
    for asks in (False, True):
        forest = gf.RandomForestClassifier(4, random_state=0, bootstrap="poisson", backend=backend)
        forest.fit(X, (y > 3) * 1, keep_bytes=10**8)
        assert forest.seed_ == 0
        if asks:
            forest.influence(X_test, row_ids=free[:40])
        forest.delete(free[:40])
        found.append(forest._kept_.upper)
    without, after = found
    assert np.array_equal(without.below, after.below)
    assert without.n_bytes == after.n_bytes


def loss(predicted, y):
    if predicted.ndim == 1:
        return np.mean((predicted - y) ** 2)
    return -np.log(np.maximum(predicted[np.arange(len(y)), y], 1e-15)).mean()


@pytest.mark.parametrize(("change", "why"), [
    ({"row_ids": [3]}, "pass X and y of all rows, or fit with keep_bytes"),
    ({"row_ids": [999]}, "are no rows of the fit"),
    ({"y_test": [1, 2], "row_ids": [3]}, "y_test must have 100 values"),
    ({"y_test": np.full(100, np.nan), "row_ids": [3]}, "y_test must hold finite numbers"),
    ({"X": 1, "row_ids": [3]}, "must be those of the last fit, and they are not"),
    ({"y": 1, "row_ids": [3]}, "must be those of the last fit: other trees grow from these"),
])  # fmt: skip
def test_bad_input(change, why):
    X, y, X_test, _ = table()
    forest = gf.RandomForestRegressor(2, bootstrap="poisson", random_state=0).fit(X, y)
    if "X" in change or "y_test" in change:
        change = change | {"X": 2 * X, "y": y}
    if "y" in change and "X" not in change:  # the same targets of other rows
        change = change | {"X": X, "y": y[::-1]}
    with pytest.raises(ValueError, match=why):
        forest.influence(X_test, **change)


def test_shrunk_forests_are_refused():
    X, y, X_test, _ = table()
    forest = gf.RandomForestRegressor(2, bootstrap="poisson", shrinkage=1.0).fit(X, y)
    with pytest.raises(ValueError, match="fit without shrinkage"):
        forest.influence(X_test, X=X, y=y)
