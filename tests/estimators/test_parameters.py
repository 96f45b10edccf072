"""Parameters: presets are estimators by a word, and NumPy's numbers are Python's."""

import numpy as np
import pytest
from commands import refused
from engine import same_forest, table
from sklearn.base import clone

import gpuforest as gf
from gpuforest.tools.cli import main

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
KINDS = ("RandomForest", "ExtraTrees", "HistGradientBoosting")
ESTIMATORS = [getattr(gf, kind + task) for kind in KINDS for task in ("Classifier", "Regressor")]


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("name", ["accurate", "fast", "scikit-learn"])
def test_a_preset_is_an_estimator_of_explicit_parameters(kind, name, tmp_path):
    small = {"max_iter": 3} if "Boosting" in kind.__name__ else {"n_estimators": 3}
    made = kind.preset(name, random_state=1, **small)
    assert type(made) is kind
    params = made.get_params()
    assert params["random_state"] == 1
    assert params | small == params
    assert clone(made).get_params() == params
    default = kind(random_state=1, **small).get_params()
    assert (params == default) == (name == "scikit-learn")
    made.fit(X, (X[:, 0] > 0).astype(int))
    made.save(tmp_path / "model")
    kept = gf.load(tmp_path / "model").get_params()
    assert {n: kept[n] for n in params if n not in ("n_jobs", "backend")} == {
        n: v for n, v in params.items() if n not in ("n_jobs", "backend")
    }


def test_words_that_are_no_presets():
    with pytest.raises(ValueError, match="preset 'best' is unknown: pass one of accurate, fast"):
        gf.RandomForestClassifier.preset("best")
    with pytest.raises(TypeError, match="n_trees"):
        gf.RandomForestClassifier.preset("fast", n_trees=3)
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    on_dask = gf.dask.ExtraTreesRegressor
    assert type(on_dask.preset("fast")) is on_dask


def test_the_command_line(tmp_path, capsys):
    rows = "\n".join(f"{a:.3f},shop {i % 40},{a > 0}" for i, a in enumerate(X[:, 0]))
    data, out = tmp_path / "data.csv", tmp_path / "model"
    data.write_text(f"a,shop,y\n{rows}\n")
    train = ["train", str(data), "--target", "y", "--out", str(out)]
    few = ["--random-state", "1", "--max-iter", "3"]
    assert main([*train, "--model", "boosting", "--preset", "accurate", *few]) == 0
    kept = gf.load(out).get_params()
    wanted = gf.HistGradientBoostingClassifier.preset("accurate", random_state=1, max_iter=3)
    assert {n: kept[n] for n in ("learning_rate", "refit", "max_iter", "random_state")} == {
        n: wanted.get_params()[n] for n in ("learning_rate", "refit", "max_iter", "random_state")
    }
    assert [*gf.load(out).forest_.edges.statistics] == [1]
    capsys.readouterr()
    assert "--preset is for forest, extra_trees and boosting, not for tree" in refused(
        capsys, *train, "--model", "tree", "--preset", "fast"
    )


TABLE = table(np.random.default_rng(0), 300, list("cfnm"))
TARGET = (TABLE[:, 0] > 0) + (TABLE[:, 1] > 0)
LIMITS = {
    "max_depth": (5, np.int32), "min_samples_split": (4, np.int16),
    "min_samples_leaf": (2, np.int64), "min_weight_fraction_leaf": (0.0078125, np.float32),
    "min_impurity_decrease": (2.0**-10, np.float32), "max_leaf_nodes": (9, np.uint16),
    "ccp_alpha": (2.0**-12, np.float16), "max_bins": (100, np.uint8),
    "random_state": (3, np.int64), "memory_limit": (2**31 - 1, np.int32),
}  # fmt: skip
OF_FORESTS = {
    "n_estimators": (3, np.uint8),
    # scikit-learn's check of these refuses np.float32, as it does for its own forests
    "max_samples": (0.5, np.float64),
    "max_features": (0.5, np.float64),
    "bootstrap": (True, np.bool_),
    "n_jobs": (1, np.int32),
}
NUMBERED = [
    gf.DecisionTreeRegressor, gf.RandomForestClassifier,
    gf.RandomForestRegressor, gf.ExtraTreesClassifier, gf.BaggingRegressor,
]  # fmt: skip


def both(Model, backend):
    """The estimator with parameters of Python's types, and of NumPy's."""
    given = LIMITS if Model is gf.DecisionTreeRegressor else LIMITS | OF_FORESTS
    for i in (0, 1):
        params = {name: own[0] if i == 0 else own[1](own[0]) for name, own in given.items()}
        if Model is gf.BaggingRegressor:
            tree = {name: params.pop(name) for name in LIMITS if name != "random_state"}
            params["estimator"] = gf.DecisionTreeRegressor(**tree, backend=backend)
            yield Model(**params)
        else:
            yield Model(**params, backend=backend)


@pytest.mark.parametrize("weight", [0.0, 0.0078125])
@pytest.mark.parametrize("Model", NUMBERED)
def test_the_forest_is_the_same_and_no_kernel_is_compiled_anew(backend, monkeypatch, Model, weight):
    from gpuforest.compiler.families import all_kernels

    def loaded() -> int:
        return sum(len(kernel.loaded) for kernel in all_kernels())

    # of weight zero subtrees are grown whole, else level by level
    monkeypatch.setitem(LIMITS, "min_weight_fraction_leaf", (weight, np.float32))
    python, numpy = both(Model, backend)
    expected = python.fit(TABLE, TARGET).predict(TABLE)
    before = loaded()
    assert np.array_equal(numpy.fit(TABLE, TARGET).predict(TABLE), expected)
    assert loaded() == before
    assert same_forest(python.forest_, numpy.forest_)
    assert gf.estimate_memory(python, 1000, 4) == gf.estimate_memory(numpy, 1000, 4)


def test_a_long_double_is_rounded():
    tree = gf.DecisionTreeRegressor(min_weight_fraction_leaf=np.longdouble(0.1))
    assert type(tree._settings().min_weight_fraction_leaf) is float
