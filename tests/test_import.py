"""What `import gpuforest` costs and brings in."""

import json
import subprocess
import sys
import traceback
from importlib.util import find_spec

import pytest

import gpuforest

SHARE = 0.33  # 0.09 to 0.17 were measured, some 0.3 s; without bytecode it is three times as much
HEAVY = ("numba", "cupy", "pandas", "polars", "pyarrow", "narwhals", "rich")

SCRIPT = """
import json, sys, time
import numpy, sklearn.base, sklearn.metrics, sklearn.utils.validation
import sklearn.feature_selection  # for BorutaSelector alone, and 0.07 s
before = set(sys.modules)
start = time.process_time()  # since Python began: what scikit-learn takes on this machine
import gpuforest
bare = time.process_time() - start
bare_modules = set(sys.modules) - before
late = {"gpuforest.plot", "gpuforest.dask", "gpuforest.impurity", "matplotlib", "dask"}
assert not late & set(sys.modules)
assert {"plot", "dask", "impurity"} <= set(dir(gpuforest))
from gpuforest import *
whole, modules = (time.process_time() - start) / start, set(sys.modules) - before
sklearn.tree.DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])
before = set(sys.modules)  # it may bring pandas itself
DecisionTreeClassifier(backend="numpy").fit([[0.0], [1.0]], [0, 1]).predict([[0.0]])
fitted = set(sys.modules) - before
gpuforest.plot.plot_tree, gpuforest.impurity.gini
assert "matplotlib" not in sys.modules
json.dump({
    "bare": bare, "bare_modules": sorted(bare_modules), "fitted": sorted(fitted),
    "whole": whole, "modules": sorted(modules),
}, sys.stdout)
"""


def run(script):
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120
    ).stdout


def test_what_imports_and_a_training_by_numpy_bring():
    # the processor's time, and the best of a few, because other processes may be at work
    late = "gpuforest.dask.ExtraTreesRegressor" if find_spec("distributed") else ""
    runs = [json.loads(run(SCRIPT + last)) for last in (late, "", "")]
    assert min(r["bare"] for r in runs) < 0.05
    assert min(r["whole"] for r in runs) < SHARE
    assert not {m.split(".")[0] for m in runs[0]["modules"] + runs[0]["fitted"]} & {*HEAVY}
    assert not [m for m in runs[0]["bare_modules"] if m.startswith("gpuforest.estimators")]


def test_all_names_are_there():
    assert set(gpuforest.__all__) <= set(dir(gpuforest))
    assert all(getattr(gpuforest, name) is not None for name in gpuforest.__all__)
    assert {"cupy", "numba", "numpy"} <= set(gpuforest.available_backends())
    assert gpuforest.__version__.count(".") == 2


@pytest.mark.parametrize(("name", "hint"), [
    ("RandomForestClasifier", "did you mean 'RandomForestClassifier'?"),
    ("plots", "did you mean 'plot'?"),
    ("export_", "did you mean 'export_c' or 'export_graphviz' or 'export_python'?"),
])  # fmt: skip
def test_a_misspelt_name_is_told_the_right_one(name, hint):
    with pytest.raises(AttributeError) as caught:
        getattr(gpuforest, name)
    assert str(caught.value) == f"module 'gpuforest' has no attribute '{name}': {hint}"
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.lower().count("did you mean") == 1  # Python adds none
    assert not hasattr(gpuforest, "_x")


def test_every_estimator_is_there_without_scikit_learns_callbacks():
    script = """
import builtins
whole = builtins.__import__
def before_1_9(name, globals=None, locals=None, fromlist=(), level=0):
    if name == "sklearn" and fromlist == ("callback",):
        raise ImportError
    return whole(name, globals, locals, fromlist, level)
builtins.__import__ = before_1_9
from gpuforest.estimators import fit_scope
assert fit_scope.callback is None
from gpuforest import *
print(DecisionTreeClassifier(backend="numpy").fit([[0.0], [1.0]], [0, 1]).predict([[1.0]]))
"""
    assert run(script) == "[1]\n"


def test_the_environment_decides_what_auto_means(monkeypatch):
    from gpuforest.backends.registry import get_backend

    for name in ("numpy", "numba"):
        monkeypatch.setenv("GPUFOREST_BACKEND", name)
        assert get_backend("auto").name == name
    assert get_backend("numpy").name == "numpy"  # a name that is given stands
