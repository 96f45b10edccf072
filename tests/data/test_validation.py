"""Bad input: refused before any work, with the parameter or column named."""

import numpy as np
import pandas as pd
import pytest
from optional import polars as pl
from sklearn.exceptions import NotFittedError

import gpuforest as gf
from gpuforest.backends import registry
from gpuforest.data import validation

X = np.arange(60.0).reshape(20, 3)
Y = np.arange(20) % 2
CLASSES, NUMBERS = gf.DecisionTreeClassifier(), gf.DecisionTreeRegressor()


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Whatever is refused here is refused before the first stage."""

    def worked(*args, **kwargs):
        raise AssertionError("an error came after work had begun")

    monkeypatch.setattr("gpuforest.growing.edges.fit_edges", worked)


def with_value(value, dtype=np.float64):
    bad = X.astype(dtype)
    bad[17, 1] = value
    return bad


BAD_X = [
    (with_value(-np.inf, np.float32), ValueError, "infinity: column 1, row 17"),
    (with_value(np.inf, np.float16), ValueError, "infinity: column 1, row 17"),
    (np.asfortranarray(with_value(np.inf)), ValueError, "infinity: column 1, row 17"),
    (pd.DataFrame(with_value(np.inf), columns=list("abc")), ValueError, "column 'b', row 17"),
    (pl.DataFrame(with_value(np.inf), schema=list("abc")), ValueError, "column 'b', row 17"),
    (X + 0j, ValueError, "Complex data not supported: X"),
    (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
    (X[None], ValueError, "dim 3"),
    (with_value(7).astype(str) + "x", ValueError, "column 0 of X holds no numbers.*x' is a str"),
    (X.astype("M8[s]"), ValueError, "datetime64"),
    (pd.DataFrame({"a": X[:, 0], "b": ["x"] * 20}), ValueError, "column 'b'.*encode"),
    (pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(["x", "y"] * 10)}), ValueError,
     "column 'kind' holds .*: list it in categorical_features at fit, encode it"),
    (pl.DataFrame({"a": X[:, 0], "s": ["x"] * 20}), ValueError, "column 's'.*encode"),
    (pd.DataFrame({"a": X[:, 0], "when": pd.date_range("2020", periods=20)}), ValueError,
     "column 'when'.*only numeric and boolean"),
    (pd.DataFrame({"a": X[:, 0], 3: X[:, 1]}), TypeError, "string names"),
    (np.broadcast_to(np.float32(0), (20, 2**17)), ValueError, "131072 features; at most 131071"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [gf.DecisionTreeClassifier, gf.RandomForestRegressor])
@pytest.mark.parametrize(("bad", "error", "message"), BAD_X)
def test_x(kind, bad, error, message):
    with pytest.raises(error, match=message):
        kind(categorical_features=None).fit(bad, Y)


def test_too_many_rows_and_infinity_in_a_later_block(monkeypatch):
    monkeypatch.setattr(validation, "BLOCK_VALUES", 12)
    with pytest.raises(ValueError, match="column 1, row 17"):
        gf.DecisionTreeClassifier().fit(with_value(np.inf), Y)
    monkeypatch.setattr(validation, "MAX_ROWS", 10)
    with pytest.raises(ValueError, match="X has 20 rows; at most 10"):
        gf.DecisionTreeClassifier().fit(X, Y)


@pytest.mark.parametrize(("y", "weights", "message"), [
    (None, None, "y"),
    (Y[:-1], None, "X has 20 rows, y has 19"),
    (np.column_stack([Y, Y])[:-1], None, "X has 20 rows, y has 19"),
    (Y[:, None, None], None, "y"),
    (Y + 0j, None, "Complex data not supported: y"),
    (Y, np.ones(19), r"sample_weight.shape == \(19,\), expected \(20,\)!"),
    (Y, np.ones((20, 2)), "must be 1D array or scalar, got 2D array"),
    (Y, ["a"] * 20, "sample_weight must hold real numbers"),
    (Y, np.ones(20) * 1j, "sample_weight"),
])  # fmt: skip
@pytest.mark.parametrize("kind", [gf.DecisionTreeClassifier, gf.RandomForestRegressor])
def test_y_and_sample_weight(kind, y, weights, message):
    with pytest.raises(ValueError, match=message):
        kind().fit(X, y, weights)


@pytest.mark.parametrize(("model", "y", "message"), [
    (CLASSES, np.linspace(0, 1, 20), "Unknown label type: continuous"),
    (CLASSES, np.linspace(0, 1, 20).astype(object), "Unknown label type: continuous"),
    (CLASSES, np.array([1, "a"] * 10, dtype=object), "Unknown label type"),
    (CLASSES, np.array(["b", None] * 10, dtype=object), "y"),
    (CLASSES, np.array([1.0, np.nan] * 10, dtype=object), "y contains NaN"),
    (CLASSES, pd.Series(["a", pd.NA] * 10), "y"),
    (NUMBERS, np.array(["a"] * 20), "y must hold real numbers"),
    (NUMBERS, np.array([{}] * 20, dtype=object), "y must hold real numbers"),
])  # fmt: skip
def test_labels_and_targets(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="polars before 1.18")
def test_integers_that_numpy_lacks():
    wide = pl.Series(Y.tolist(), dtype=pl.Int128)
    for name, rest in (("y", (wide,)), ("sample_weight", (Y, wide))):
        with pytest.raises(ValueError, match=rf"^{name} \(polars.*Int128\) cannot be read"):
            NUMBERS.fit(X, *rest)


@pytest.mark.parametrize("params", [
    {"n_estimators": 0}, {"n_estimators": 2.5}, {"criterion": "absurd"}, {"criterion": "gini"},
    {"max_depth": 0}, {"min_samples_split": 1}, {"min_samples_split": 1.5},
    {"min_samples_leaf": 0}, {"min_samples_leaf": 1.0}, {"min_impurity_decrease": -0.1},
    {"max_features": 0}, {"max_features": 1.1}, {"max_features": "third"},
    {"bootstrap": "yes"}, {"max_samples": 0}, {"max_samples": 0.0}, {"oob_score": "maybe"},
    {"random_state": -1}, {"random_state": "seed"}, {"n_jobs": 1.5}, {"n_jobs": 0},
    {"max_bins": 1}, {"max_bins": 65536}, {"max_bins": 64.0}, {"backend": "abacus"},
    {"backend": None}, {"max_samples": 2**31},
])  # fmt: skip
def test_parameters(params):
    name = next(p for p in reversed(params))
    with pytest.raises(ValueError, match=name):
        gf.RandomForestRegressor(**params).fit(X, Y)


def test_a_backend_of_the_environment_and_one_that_cannot_run(monkeypatch):
    monkeypatch.setenv("GPUFOREST_BACKEND", "abacus")
    with pytest.raises(ValueError, match=r"abacus.*GPUFOREST_BACKEND"):
        gf.DecisionTreeClassifier().fit(X, Y)

    def absent(n_threads, memory_budget):
        raise gf.BackendError("no such device")

    monkeypatch.setitem(registry._factories, "absent", absent)
    with pytest.raises(gf.BackendError, match="no such device"):
        gf.DecisionTreeClassifier(backend="absent").fit(X, Y)


def test_unfitted():
    for ask in (CLASSES.predict, NUMBERS.apply, gf.RandomForestRegressor().save):
        with pytest.raises(NotFittedError):
            ask(X)
