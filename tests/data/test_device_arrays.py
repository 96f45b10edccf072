"""Arrays on a GPU: used where they are, results go back alike, forests are the same.

Without a GPU these run on stand-ins (fake_cupy.py) that separate host and device strictly
apart; with one, on CuPy too.
"""

import pickle
import sys
from types import SimpleNamespace

import fake_cupy
import numpy as np
import pandas as pd
import pytest
from device_data import data, params_of
from engine import same_forest
from saved import KINDS
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

import gpuforest as gf
from gpuforest.backends import gpu
from gpuforest.data import arrays, validation
from gpuforest.growing import edges, targets
from gpuforest.growing.edges import fit_edges


@pytest.fixture(params=["stand-in", "GPU"])
def device(request, monkeypatch):
    """`put` brings a host array to the device, as a `cupy.ndarray`, and `get` back."""
    if request.param == "GPU":
        if (reason := gpu.why_not()) is not None:
            pytest.skip(reason)
        import cupy
    else:
        fake_cupy.install(monkeypatch)
        cupy = sys.modules["cupy"]
    return SimpleNamespace(put=cupy.asarray, get=lambda array: array.get(), type=cupy.ndarray)


def assert_there(found, kind, expected):
    """An array of this type, on the device, that holds what the host's does."""
    assert type(found) is kind
    assert found.dtype == expected.dtype
    assert np.array_equal(found.get(), expected)


def both(put, kind, X, y, backend="cupy", **params):
    """The model of rows that `put` brings to the device, and that of the host: their forests are
    the same."""
    reference = kind(**params, backend="numpy").fit(X, y)
    model = kind(**params, backend=backend).fit(put(X), put(y))
    assert same_forest(model.forest_, reference.forest_)
    return model, reference


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y_there", [False, True])
@pytest.mark.parametrize("x_there", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_forest_is_that_of_the_host(device, kind, x_there, y_there, weighted):
    X, y = data(kind)
    weights = np.arange(len(y)) % 3 if weighted else None
    reference = kind(**params_of(kind), backend="numpy").fit(X, y, weights)
    model = kind(**params_of(kind), backend="cupy").fit(
        device.put(X) if x_there else X,
        device.put(y) if y_there else y,
        device.put(weights) if weighted and y_there else weights,
    )
    assert model.backend_ == "cupy"
    assert same_forest(model.forest_, reference.forest_)
    assert model.forest_.coding.scale == reference.forest_.coding.scale
    assert np.array_equal(model.forest_.coding.centre, reference.forest_.coding.centre)
    expected = reference.predict(X)
    assert np.array_equal(model.predict(X), expected)
    there = device.put(X)
    assert_there(model.predict(there), device.type, expected)
    assert np.array_equal(device.get(model.apply(there)), reference.apply(X))
    assert model.score(there, device.put(y)) == reference.score(X, y)
    assert model.score(there, y, device.put(y * 0 + 2)) == reference.score(X, y)
    if hasattr(model, "predict_proba"):
        assert isinstance(model.classes_, np.ndarray)
        assert np.array_equal(model.classes_, reference.classes_)
        assert model.classes_.dtype == reference.classes_.dtype
        found = device.get(model.predict_proba(there))
        assert np.array_equal(found, reference.predict_proba(X))


@pytest.mark.parametrize(
    "options", [{}, {"early_stopping": True}, {"early_stopping": True, "scoring": "r2"}], ids=str
)
def test_gradient_boosting_takes_tables_from_the_device(device, options):
    X, y = data(gf.HistGradientBoostingRegressor)
    models, weights = [], np.arange(len(y)) % 3
    for backend, put in (("numpy", np.asarray), ("cupy", device.put)):
        model = gf.HistGradientBoostingRegressor(
            max_iter=3, min_samples_leaf=5, random_state=0, warm_start=True, backend=backend
        ).set_params(**options)
        model.fit(put(X), put(y), put(weights))
        models.append(model.set_params(max_iter=5).fit(put(X), put(y), put(weights)))
    expected, found = models
    assert found.backend_ == "cupy"
    assert same_forest(found.forest_, expected.forest_)
    assert np.array_equal(found.train_score_, expected.train_score_)
    assert np.array_equal(found.validation_score_, expected.validation_score_)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_the_chosen_subtree_is_that_of_the_host(device, kind):
    X, y = data(kind)
    y = y[:, None]
    params = params_of(kind, ccp_alpha="cv", ccp_cv=3)
    with pytest.warns(DataConversionWarning):
        reference = kind(**params, backend="numpy").fit(X, y, y[:, 0] * 0 + 2)
    with pytest.warns(DataConversionWarning):
        model = kind(**params, backend="cupy").fit(
            device.put(X), device.put(y), device.put(y[:, 0] * 0 + 2)
        )
    for _ in range(2):
        assert same_forest(model.forest_, reference.forest_)
        for name, values in reference.pruning_curve_.items():
            assert np.array_equal(model.pruning_curve_[name], values)
        reference.prune(X[:60], y[:60, 0])
        model.prune(device.put(X[:60]), device.put(y[:60, 0]))


def test_every_layout_and_blocks_of_rows(device, monkeypatch):
    X, y = data(gf.DecisionTreeClassifier)
    reference = gf.DecisionTreeClassifier(backend="numpy").fit(X, y)
    wide = device.put(np.repeat(np.repeat(X, 2, axis=0), 3, axis=1))
    for other in (device.put(np.ascontiguousarray(X.T)).T, wide[::2, ::3]):
        model = gf.DecisionTreeClassifier(backend="cupy").fit(other, y)
        assert same_forest(model.forest_, reference.forest_)
        assert np.array_equal(device.get(model.predict(other)), reference.predict(X))
    for module in (edges, validation):
        monkeypatch.setattr(module, "DEVICE_VALUES", 64)
    X, y = data(gf.DecisionTreeClassifier)
    model, reference = both(device.put, gf.DecisionTreeClassifier, X, y)
    found = device.get(model.predict_proba(device.put(X)))
    assert np.array_equal(found, reference.predict_proba(X))
    X[77, 2] = -np.inf
    with pytest.raises(ValueError, match="infinity: column 2, row 77"):
        model.predict(device.put(X))


def test_only_the_sample_leaves_the_device(fake, monkeypatch):
    monkeypatch.setattr(fit_edges, "__kwdefaults__", {
        **fit_edges.__kwdefaults__, "sample_rows": 100,
    })  # fmt: skip
    monkeypatch.setattr(edges, "LOOK_ROWS", 100)
    monkeypatch.setattr(targets, "LOOK_ROWS", 100)
    X, y = data(gf.DecisionTreeRegressor, 5000)
    there = fake.asarray(X), fake.asarray(y)
    fake.TRANSFERS.clear()
    # a forest: of a single tree the host adds up how each leaf's targets spread
    model = gf.RandomForestRegressor(1, max_depth=1, bootstrap=False, backend="cupy").fit(*there)
    assert max(size for way, size in fake.TRANSFERS if way == "out") == 100 * X[:1].nbytes
    fake.TRANSFERS.clear()
    model.predict(there[0])
    assert sum(size for way, size in fake.TRANSFERS if way == "out") == 0


def test_rows_on_the_host_go_over_once(fake, monkeypatch):
    moved = []
    encode = fake.FakeCupyBackend.encode

    def counting(self, X, edges):
        moved.append(X.shape[0])
        return encode(self, X, edges)

    monkeypatch.setattr(fake.FakeCupyBackend, "encode", counting)
    X, y = data(gf.DecisionTreeRegressor)
    monkeypatch.setattr(edges, "BLOCK_VALUES", 50 * X.shape[1])
    gf.DecisionTreeRegressor(backend="cupy").fit(X, y)
    assert moved == [50, 50, 20]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("kind", [gf.RandomForestClassifier, gf.DecisionTreeRegressor])
def test_a_backend_on_the_cpu_takes_them_too(fake, kind, backend):
    X, y = data(kind)
    reference = kind(**params_of(kind), backend="numpy").fit(X, y)
    there = fake.asarray(X), fake.asarray(y)
    fake.TRANSFERS.clear()
    model = kind(**params_of(kind), backend=backend).fit(*there, fake.asarray(np.ones(len(y))))
    out = [size for way, size in fake.TRANSFERS if way == "out"]
    assert sorted(out) == sorted([X.nbytes, y.nbytes, 8 * len(y)])  # once each
    assert model.backend_ == backend
    assert same_forest(model.forest_, reference.forest_)
    assert_there(model.predict(there[0]), fake.ndarray, reference.predict(X))


def test_categories_are_found_and_labels_of_strings_predicted_on_the_host(device):
    X, y = data(gf.DecisionTreeClassifier)
    X[:, 2] = np.arange(len(X)) % 5
    params = {"categorical_features": [2], "random_state": 0}
    model, reference = both(device.put, gf.DecisionTreeClassifier, X, y, **params)
    assert model.forest_.edges.categories == {2: (0.0, 1.0, 2.0, 3.0, 4.0)}
    assert_there(model.predict(device.put(X)), device.type, reference.predict(X))
    names = np.where(y > 0, "yes", "no")
    model = gf.DecisionTreeClassifier(backend="cupy").fit(device.put(X), names)
    found = model.predict(device.put(X))
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, model.predict(X))
    assert isinstance(model.predict_proba(device.put(X)), device.type)
    assert model.score(device.put(X), names) == model.score(X, names)


@pytest.mark.parametrize("kind", KINDS[2:])
def test_nothing_of_a_device_stays_in_a_model(device, kind, tmp_path, monkeypatch):
    X, y = data(kind)
    params = params_of(kind, n_estimators=25, oob_score=True)
    model, reference = both(device.put, kind, X, y, **params)
    assert model.oob_score_ == reference.oob_score_
    name = "oob_prediction_" if kind is gf.RandomForestRegressor else "oob_decision_function_"
    assert isinstance(getattr(model, name), np.ndarray)
    assert np.array_equal(getattr(model, name), getattr(reference, name))
    expected = device.get(model.predict(device.put(X)))
    seen = []

    def look(value):
        if id(value) in seen or isinstance(value, np.ndarray | str | int | float | None):
            return
        seen.append(id(value))
        assert not arrays.is_on_device(value)
        if isinstance(value, list | tuple):
            value = dict(enumerate(value))
        for child in value.values() if isinstance(value, dict) else vars(value).values():
            look(child)

    look(model)
    model.save(tmp_path / "model")
    pickled = pickle.dumps(model)
    # a laptop: no CuPy, and the same predictions
    monkeypatch.setitem(sys.modules, "cupy", None)
    loaded, unpickled = gf.load(tmp_path / "model"), pickle.loads(pickled)
    assert np.array_equal(loaded.predict(X), expected)
    assert np.array_equal(unpickled.set_params(backend="auto").predict(X), expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i4", "i8", "u8", "?"])
@pytest.mark.parametrize("kind", [gf.DecisionTreeClassifier, gf.DecisionTreeRegressor])
def test_every_dtype(device, dtype, kind):
    X, y = data(kind)
    X, y = (np.nan_to_num(X) * 40).astype(dtype), np.abs(y).astype(dtype)
    if dtype == "f2":  # the dtype of no labels
        y = y.astype("f4")
    model, reference = both(device.put, kind, X, y)
    assert_there(model.predict(device.put(X)), device.type, reference.predict(X))
    assert np.array_equal(device.get(model.apply(device.put(X))), reference.apply(X))


ROWS, LABELS = np.arange(60.0).reshape(20, 3), np.arange(20) % 2
CLASSES, NUMBERS = gf.DecisionTreeClassifier(), gf.DecisionTreeRegressor()
POISSON = gf.DecisionTreeRegressor(criterion="poisson")


@pytest.mark.parametrize(("tree", "X", "y", "weight", "message"), [
    (CLASSES, np.where(ROWS == 52, np.inf, ROWS), LABELS, None, "infinity: column 1, row 17"),
    (CLASSES, np.where(ROWS == 52, -np.inf, ROWS).astype("f2"), LABELS, None,
     "infinity: column 1, row 17"),
    (CLASSES, ROWS + 0j, LABELS, None, "Complex data not supported: X"),
    (CLASSES, ROWS[:, 0], LABELS, None, r"got 1D array instead: X has shape \(20,\)"),
    (CLASSES, ROWS[None], LABELS, None, "got 3D array"),
    (CLASSES, ROWS[:0], LABELS, None, r"0 sample\(s\)"),
    (CLASSES, ROWS[:, :0], LABELS, None, r"0 feature\(s\)"),
    (CLASSES, ROWS, LABELS[:-1], None, "X has 20 rows, y has 19"),
    (NUMBERS, ROWS, LABELS[:, None, None], None, "dim 3"),
    (CLASSES, ROWS, np.where(LABELS, np.nan, 1.0), None, "y contains NaN"),
    (NUMBERS, ROWS, np.where(LABELS, np.inf, 1.0), None, "y contains infinity"),
    (NUMBERS, ROWS, LABELS + 0j, None, "Complex data not supported: y"),
    (CLASSES, ROWS, LABELS + 0.5, None, "Unknown label type: continuous"),
    (POISSON, ROWS, LABELS - 1, None, "Some value"),
    (POISSON, ROWS, LABELS * 0, None, "not strictly positive"),
    (CLASSES, ROWS, LABELS, -LABELS, "Negative"),
    (CLASSES, ROWS, LABELS, LABELS[1:], r"\(19,\), expected \(20,\)"),
])  # fmt: skip
def test_bad_input(device, monkeypatch, tree, X, y, weight, message):
    def worked(*args, **kwargs):
        raise AssertionError("an error came after work had begun")

    monkeypatch.setattr("gpuforest.growing.edges.fit_edges", worked)
    weight = None if weight is None else device.put(weight)
    with pytest.raises(ValueError, match=message):
        clone(tree).set_params(backend="cupy").fit(device.put(X), device.put(y), weight)


@pytest.mark.parametrize("name", ["X", "y"])
def test_another_device(fake, name):
    given = {"X": fake.asarray(ROWS), "y": fake.asarray(LABELS)}
    given[name].device.id = 1
    message = rf"{name} is on GPU 1, but GPU 0 is the current one.*cupy.cuda.Device\(1\)"
    with pytest.raises(ValueError, match=message):
        gf.DecisionTreeClassifier().fit(*given.values())


def test_sparse_arrays_of_others(fake):
    odd = SimpleNamespace(toarray=None, shape=(20, 3))
    with pytest.raises(TypeError, match="sparse"):
        gf.DecisionTreeClassifier(backend="cupy").fit(odd, LABELS)


class TestOtherLibraries:
    """Each array comes in without a copy, and predictions go back as its kind."""

    @pytest.fixture
    def libraries(self, fake, monkeypatch):
        for name, module in {"torch": fake.torch_module(), **fake.jax_modules()}.items():
            monkeypatch.setitem(sys.modules, name, module)
        return {
            "cupy": (fake.asarray, fake.ndarray),
            "torch": (fake.Tensor, fake.Tensor),
            "jax": (fake.JaxArray, fake.JaxArray),
            "interface": (lambda host: fake.Bare(fake.asarray(host)), fake.ndarray),
            "dlpack": (lambda host: fake.BareDlpack(fake.asarray(host)), fake.ndarray),
        }

    @pytest.mark.parametrize("backend", ["cupy", "numpy"])
    @pytest.mark.parametrize("library", ["cupy", "torch", "jax", "interface", "dlpack"])
    def test_there_and_back(self, libraries, library, backend):
        X, y = data(gf.RandomForestClassifier)
        params = params_of(gf.RandomForestClassifier)
        make, kind = libraries[library]
        model, reference = both(make, gf.RandomForestClassifier, X, y, backend, **params)
        for method in ("predict", "predict_proba", "apply"):
            found = getattr(model, method)(make(X))
            assert type(found) is kind
            assert np.array_equal(found.host, getattr(reference, method)(X))
        assert model.score(make(X), make(y)) == reference.score(X, y)

    def test_what_cannot_be_read_is_named(self, fake, monkeypatch):
        def unknown(array):
            raise BufferError("no such dtype")

        monkeypatch.setattr(sys.modules["cupy"], "from_dlpack", unknown)
        X, y = data(gf.DecisionTreeClassifier)
        with pytest.raises(ValueError, match=r"y \(torch.Tensor of dtype int64\).*no such dtype"):
            gf.DecisionTreeClassifier(backend="cupy").fit(X, fake.Tensor(y))

    @pytest.mark.parametrize("odd", [np.float64(1.0), [1.0], "text", None, object()])
    def test_other_objects_are_on_the_host(self, odd):
        assert not arrays.is_on_device(odd)
        assert arrays.to_host(odd) is odd
        assert arrays.in_kind_of(odd, 1) == 1
        assert arrays.count_rows(object()) == 0


class TestCudf:
    """Frames of cuDF, by a stand-in that is pandas' underneath."""

    @pytest.fixture
    def cudf(self, fake, monkeypatch):
        def to_cupy(self, na_value=None):
            assert na_value is not None or not self.isnull().any()
            return fake.asarray(self.to_numpy(na_value=na_value))

        class Series(pd.Series):
            __module__ = "cudf.core.series"
            _constructor = property(lambda self: Series)

            def to_pandas(self):
                return pd.Series(self)

        class DataFrame(pd.DataFrame):
            __module__ = "cudf.core.dataframe"
            _constructor = property(lambda self: DataFrame)
            _constructor_sliced = property(lambda self: Series)

            def to_pandas(self):
                return pd.DataFrame(self)

        Series.to_cupy = to_cupy
        module = fake.module("cudf", DataFrame=DataFrame, Series=Series, Index=pd.Index)
        monkeypatch.setitem(sys.modules, "cudf", module)
        return module

    def frame(self, library):
        X, y = data(gf.RandomForestClassifier)
        columns = {name: pd.array(X[:, i], "Float64") for i, name in enumerate("abcd")}
        columns["e"] = np.arange(len(X)) % 2 == 0
        return library.DataFrame(columns), library.Series(y)

    @pytest.mark.parametrize("backend", ["auto", "cupy", "numpy"])
    def test_a_frame(self, cudf, fake, backend):
        (X, y), (hostX, hosty) = self.frame(cudf), self.frame(pd)
        assert arrays.is_on_device(X)
        assert arrays.is_on_device(y)
        params = params_of(gf.RandomForestClassifier)
        reference = gf.RandomForestClassifier(**params, backend="numpy").fit(hostX, hosty)
        model = gf.RandomForestClassifier(**params, backend=backend).fit(X, y)
        assert model.backend_ == ("numpy" if backend == "numpy" else "cupy")
        assert same_forest(model.forest_, reference.forest_)
        assert list(model.feature_names_in_) == list("abcde")
        assert_there(model.predict(X), fake.ndarray, reference.predict(hostX))
        with pytest.raises(ValueError, match="same order"):
            model.predict(X[list("badce")])
        assert model.score(X, y) == reference.score(hostX, hosty)

    def test_labels_of_strings_and_what_is_refused(self, cudf):
        (X, y), hostX = self.frame(cudf), self.frame(pd)[0]
        names = cudf.Series(np.where(y > 0, "yes", "no"))
        model = gf.DecisionTreeClassifier(backend="cupy").fit(X, names)
        reference = gf.DecisionTreeClassifier(backend="numpy").fit(hostX, np.asarray(names))
        assert same_forest(model.forest_, reference.forest_)
        assert isinstance(model.predict(X), np.ndarray)
        with pytest.raises(ValueError, match="y"):
            gf.DecisionTreeClassifier(backend="cupy").fit(X, y.where(y > 0))
        tree = gf.DecisionTreeClassifier(categorical_features=None, backend="cupy")
        with pytest.raises(ValueError, match="column 'a' holds String"):
            tree.fit(X.assign(a="red"), y)

    def test_categories(self, cudf, fake):
        (X, y), (hostX, hosty) = self.frame(cudf), self.frame(pd)
        colours = np.array(["red", "green", "blue"], object)[np.arange(len(y)) % 3]
        X, hostX = X.assign(a=colours), hostX.assign(a=colours)
        model = gf.DecisionTreeClassifier(backend="cupy").fit(X, y)
        reference = gf.DecisionTreeClassifier(backend="numpy").fit(hostX, hosty)
        assert model.forest_.edges.categories == {0: ("blue", "green", "red")}
        assert same_forest(model.forest_, reference.forest_)
        assert_there(model.predict(X), fake.ndarray, reference.predict(hostX))
