"""Ours where tools ask for scikit-learn's: virtual subclasses, `tree_`, recursion."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.datasets import load_iris
from sklearn.inspection import partial_dependence

import gpuforest
from gpuforest.export.sklearn import BOOSTING, HOMES

X, Y = load_iris(return_X_y=True)


def categories():
    """A frame with a categorical column, and numbers that depend on it."""
    names = pd.Categorical(np.array(["a", "b", "c"])[np.arange(60) % 3])
    frame = pd.DataFrame({"name": names, "x": np.arange(60) % 7.0})
    return frame, (np.arange(60) % 3 == 1) * 4.0 + np.arange(60) % 7


@pytest.mark.parametrize("name", [*HOMES, *BOOSTING])
def test_ours_are_virtual_subclasses(name):
    theirs = getattr(sklearn.tree, name, None) or getattr(sklearn.ensemble, name)
    ours = getattr(gpuforest, name)
    assert issubclass(ours, theirs)
    assert theirs not in ours.__mro__
    if "ensemble" in HOMES.get(name, ""):
        assert issubclass(ours, sklearn.ensemble._forest.BaseForest)


OURS, THEIRS = "import gpuforest.estimators", "import sklearn.tree, sklearn.ensemble"
IS_SUBCLASS = """import gpuforest, sys
for name, home in ("DecisionTreeRegressor", "tree"), ("RandomForestRegressor", "ensemble"):
    print(issubclass(getattr(gpuforest, name), getattr(sys.modules["sklearn." + home], name)))
print([f for f in sys.meta_path if getattr(f, "_name", "").startswith("sklearn")])
"""
LOOK = "from importlib.util import find_spec; assert find_spec('sklearn.tree')"
IMPORTED = "import sys; print('sklearn.tree' in sys.modules)"
TOOL = "import skl2onnx; print(skl2onnx.ready)"  # which cannot be taught


@pytest.mark.parametrize(("statements", "expected"), [
    ([OURS, LOOK, IMPORTED, THEIRS, IS_SUBCLASS], ["False", "True", "True", "[]"]),
    ([THEIRS, OURS, IS_SUBCLASS, TOOL], ["True", "True", "[]", "True"]),
])  # fmt: skip
def test_whatever_is_imported_first(statements, expected, tmp_path, monkeypatch):
    (tmp_path / "skl2onnx.py").write_text("ready = True\n")
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-c", "\n".join(statements)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == expected


def test_categories_are_refused_with_a_way_out():
    frame, y = categories()
    tree = gpuforest.DecisionTreeRegressor(max_depth=3, backend="numpy").fit(frame, y)
    for export in (sklearn.tree.export_text, sklearn.tree.export_graphviz):
        with pytest.raises(ValueError, match=r"no thresholds .* OrdinalEncoder\), or use gpufor"):
            export(tree)
    with pytest.raises(ValueError, match="no thresholds"):  # a plain Tree would be wrong
        pickle.dumps(tree.tree_)
    assert pickle.loads(pickle.dumps(tree)).predict(frame).tolist() == tree.predict(frame).tolist()
    with pytest.raises(ValueError, match="method='brute'"):
        partial_dependence(tree, frame, ["name"], method="recursion")
    # on a number the categories are averaged over
    found = partial_dependence(tree, frame, ["x"], method="recursion")["average"]
    assert found.shape == (1, 7)
    brute = partial_dependence(tree, frame, ["name"], method="brute")["average"]
    assert brute.argmax() == 1
    assert tree.tree_.node_count == tree.forest_.n_nodes
    assert np.array_equal(tree.tree_.value[tree.apply(frame), 0, 0], tree.predict(frame))


def test_recursion_of_boosting_goes_both_ways_at_categories():
    frame, y = categories()
    params = {"max_iter": 3, "min_samples_leaf": 2, "backend": "numpy"}
    model = gpuforest.HistGradientBoostingRegressor(**params).fit(frame, y)
    # every pair of values is as frequent, so both methods average over the same
    recursion, brute = (
        partial_dependence(model, frame, ["x"], method=method)["average"]
        for method in ("recursion", "brute")
    )
    assert np.ptp(brute) > 0.1
    assert np.allclose(recursion + model.forest_.baseline, brute, atol=0.05)
    with pytest.raises(ValueError, match="method='brute'"):
        partial_dependence(model, frame, ["name"], method="recursion")


def test_boosting_with_weights_has_no_recursion():
    model = gpuforest.HistGradientBoostingRegressor(max_iter=2, backend="numpy")
    model.fit(X, Y, sample_weight=1.0 + Y)
    with pytest.raises(NotImplementedError, match="'recursion' method when sample weights"):
        partial_dependence(model, X, [0])
    assert partial_dependence(model.fit(X, Y), X, [0])["average"].shape[0] == 1


def test_what_tools_read_of_boosting_follows_a_new_fit():
    model = gpuforest.HistGradientBoostingRegressor(max_iter=2, backend="numpy").fit(X, Y)
    first = pickle.dumps(model)
    assert len(model._predictors) == 2
    assert pickle.dumps(model) == first
    assert len(model.set_params(max_iter=3).fit(X, Y)._predictors) == 3
    with pytest.raises(AttributeError):
        print(gpuforest.HistGradientBoostingRegressor()._predictors)
