"""Arrays of PyTorch and JAX and frames of cuDF on a GPU."""

import sys

import numpy as np
import pandas as pd
import pytest
from device_data import data, params_of
from engine import same_forest

import gpuforest as gf
from gpuforest.data import arrays


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
        reference = gf.RandomForestClassifier(**params, backend="numpy").fit(X, y)
        make, kind = libraries[library]
        model = gf.RandomForestClassifier(**params, backend=backend).fit(make(X), make(y))
        assert same_forest(model.forest_, reference.forest_)
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
        found = model.predict(X)
        assert type(found) is fake.ndarray
        assert np.array_equal(found.get(), reference.predict(hostX))
        with pytest.raises(ValueError, match="same order"):
            model.predict(X[list("badce")])
        assert model.score(X, y) == reference.score(hostX, hosty)

    def test_labels_of_strings(self, cudf):
        (X, y), hostX = self.frame(cudf), self.frame(pd)[0]
        names = cudf.Series(np.where(y > 0, "yes", "no"))
        model = gf.DecisionTreeClassifier(backend="cupy").fit(X, names)
        reference = gf.DecisionTreeClassifier(backend="numpy").fit(hostX, np.asarray(names))
        assert same_forest(model.forest_, reference.forest_)
        assert isinstance(model.predict(X), np.ndarray)

    def test_missing_labels_and_strings_in_x_are_refused(self, cudf):
        X, y = self.frame(cudf)
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
        found = model.predict(X)
        assert type(found) is fake.ndarray
        assert np.array_equal(found.get(), reference.predict(hostX))
