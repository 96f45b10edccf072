"""Arrays of other libraries on the host: read as NumPy's; predictions follow if asked to.

Asked by scikit-learn's switch `array_api_dispatch`. The libraries are array-api-strict, and
stand-ins for one that has DLPack alone and for torch, whose tensors keep gradients.
"""

import array_api_strict as strict
import numpy as np
import pandas as pd
import pytest
from optional import polars as pl
from sklearn import config_context
from sklearn.model_selection import cross_val_score

import gpuforest as gf
from gpuforest.data import arrays

CLASSIFIERS = [gf.DecisionTreeClassifier, gf.RandomForestClassifier]
OTHER = strict.Device("device1")  # NumPy cannot read it unless it is passed a device
N = 60


@pytest.fixture
def dispatch(monkeypatch):
    """scikit-learn asks for the variable before it lets itself be switched."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        yield


class Bare:
    """An array of the standard that has DLPack, and nothing by which NumPy knows it."""

    def __init__(self, host):
        self.host = np.asarray(host)
        self.shape, self.dtype, self.device = self.host.shape, self.host.dtype, "cpu"

    def __array_namespace__(self, api_version=None):
        return BareNamespace

    def __dlpack_device__(self):
        return self.host.__dlpack_device__()

    def __dlpack__(self, **kwargs):
        return self.host.__dlpack__(**kwargs)

    def __getitem__(self, key):
        return Bare(self.host[key])


class BareNamespace:
    @staticmethod
    def asarray(array, device=None):
        assert device == "cpu"
        return Bare(array)


class Tensor(Bare):
    """As torch's: memory is given away only once gradients are let go."""

    requires_grad = True

    def detach(self):
        found = Tensor(self.host)
        found.requires_grad = False
        return found

    def cpu(self):
        return self

    def __dlpack__(self, **kwargs):
        assert not self.requires_grad
        return super().__dlpack__(**kwargs)


Tensor.__module__ = "torch"

LIBRARIES = {
    "strict": strict.asarray,
    "strict, another device": lambda array: strict.asarray(array, device=OTHER),
    "DLPack alone": Bare,
    "torch": Tensor,
}


@pytest.fixture(params=LIBRARIES)
def put(request):
    return LIBRARIES[request.param]


def data(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, 3)).astype(np.float32)
    X[::9, 1] = np.nan
    y = X[:, 0] + 0.1 * rng.normal(size=N)
    return X, np.digitize(y, [-0.5, 0.5]) if kind in CLASSIFIERS else y, np.arange(N) % 3


def params_of(kind):
    return {"random_state": 1} | ({"n_estimators": 3} if "Forest" in kind.__name__ else {})


def methods(model):
    names = ["predict", "apply", "predict_proba", "predict_log_proba"]
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("kind", [gf.DecisionTreeRegressor, gf.RandomForestClassifier])
def test_fits_scores_and_predictions_are_those_of_numpy(kind, put):
    X, y, weight = data(kind)
    reference = kind(**params_of(kind)).fit(X, y, weight)
    model = kind(**params_of(kind)).fit(put(X), put(y), put(weight))
    for method in methods(model):
        found = method(put(X))
        assert type(found) is np.ndarray
        assert np.array_equal(found, method(X))
    assert np.array_equal(model.forest_.nodes, reference.forest_.nodes)
    assert np.array_equal(model.forest_.leaf_sums, reference.forest_.leaf_sums)
    assert model.score(put(X), put(y), put(weight)) == reference.score(X, y, weight)
    assert model.score(X, put(y)) == reference.score(X, y)
    if kind in CLASSIFIERS:
        assert type(model.classes_) is np.ndarray
        assert np.array_equal(model.classes_, reference.classes_)


@pytest.mark.parametrize("kind", [gf.DecisionTreeRegressor, gf.RandomForestClassifier])
@pytest.mark.parametrize("device", [strict.Device("CPU_DEVICE"), OTHER], ids=str)
def test_predictions_follow_x_with_dispatch(kind, device, dispatch):
    X, y, weight = data(kind)
    there = strict.asarray(X, device=device)
    model = kind(**params_of(kind)).fit(there, strict.asarray(y, device=device))
    for method in methods(model):
        found, expected = method(there), method(X)
        assert type(expected) is np.ndarray
        assert type(found) is type(there)
        assert found.device == device
        found = np.from_dlpack(found)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
    expected = model.score(X, y, weight)
    # all arrays together, and X alone
    for put in (lambda array: strict.asarray(array, device=device), np.asarray):
        assert model.score(there, put(y), put(weight)) == expected
    found = cross_val_score(model, there, strict.asarray(y, device=device), cv=3)
    assert found.tolist() == cross_val_score(model, X, y, cv=3).tolist()
    if kind is gf.DecisionTreeRegressor:
        paths = model.decision_path(there)  # SciPy's
        assert (paths != model.decision_path(X)).nnz == 0
        found = kind().fit(Bare(X), Bare(y)).predict(Bare(X))
        assert type(found) is Bare
        assert np.array_equal(found.host, model.predict(X))
        return
    names = np.array(["low", "mid", "high"])[y]
    found = model.fit(there, names).predict(there)
    assert type(found) is np.ndarray  # no other library holds strings
    assert np.array_equal(found, model.predict(X))
    assert model.score(there, names) == model.score(X, names)


@pytest.mark.parametrize("make", [np.ndarray.tolist, pd.DataFrame, pl.DataFrame])
def test_dispatch_changes_nothing_for_what_is_no_array(make, dispatch):
    X, y, _ = data(gf.DecisionTreeClassifier)
    assert type(gf.DecisionTreeClassifier().fit(make(X), y).predict(make(X))) is np.ndarray


@pytest.mark.parametrize(("bad", "message"), [
    (strict.asarray([[1.0], [np.inf]]), "infinity: column 0, row 1"),
    (strict.asarray([[1j], [0j]]), "Complex data not supported: X"),
    (strict.asarray([1.0, 2.0]), "Expected 2D array, got 1D array"),
    (strict.asarray([[1.0, 2.0]]), "expecting 1 features"),
])  # fmt: skip
def test_bad_arrays_are_refused_as_numpys_are(bad, message):
    model = gf.DecisionTreeClassifier(backend="numpy").fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=message):
        model.predict(bad)


def test_arrays_that_cannot_be_read_are_named_unless_they_have_an_array():
    class Odd(Bare):
        def __dlpack__(self, **kwargs):
            raise BufferError("bfloat16 is not for all")

    odd = Odd(np.zeros((4, 1)))
    message = r"\w+ \(\S+Odd of dtype float64\) cannot be read as a NumPy array: bfloat16"
    for fit in (
        lambda tree: tree.fit(odd, [0, 1, 0, 1]),
        lambda tree: tree.fit(odd.host, odd),
        lambda tree: tree.fit(odd.host, [0, 1, 0, 1], odd),
    ):
        with pytest.raises(ValueError, match=message):
            fit(gf.DecisionTreeClassifier())

    class Sharded(Bare):
        def __dlpack__(self, **kwargs):
            raise BufferError("lies in several places")

        def __array__(self, dtype=None, copy=None):
            return self.host

    X, y, _ = data(gf.DecisionTreeClassifier)
    model = gf.DecisionTreeClassifier(backend="numpy").fit(Sharded(X), Sharded(y))
    assert np.array_equal(model.predict(Sharded(X)), model.predict(X))


def test_no_copy_of_what_numpy_can_share():
    assert arrays.count_rows(strict.asarray(np.zeros((7, 2)), device=OTHER)) == 7
    assert arrays.count_rows([[1], [2]]) == 2
    host = np.zeros((5, 2))
    assert np.shares_memory(arrays.to_host(strict.asarray(host, copy=False)), host)
