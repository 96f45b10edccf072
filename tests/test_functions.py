"""Functions stay small, take few arguments, and few of them lie between fit and a kernel."""

import ast
import sys
import traceback
from functools import cache
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import gpuforest
from gpuforest import HistGradientBoostingClassifier, RandomForestClassifier
from gpuforest.backends import numba
from gpuforest.estimators.base import BaseTrees

PACKAGE = Path(gpuforest.__file__).parent
SCREEN = 60  # lines of a function without its docstring
MOST_ARGUMENTS = 7
MOST_FUNCTIONS = 230  # of this package, comprehensions included
MOST_HOOKS = 5
OF_SKLEARN = {
    "_validate_params", "_compute_partial_dependence_recursion", "_set_oob_score_and_attributes",
}  # fmt: skip

# functions of more arguments, which users call by keyword, as those of scikit-learn
KEYWORDS = {
    "data/binned.py from_blocks", "estimators/boosting.py fit",
    "estimators/ranking.py fit",
    "estimators/quantile_forests.py predict", "explain/bias_variance.py bias_variance",
    "export/graphviz.py export_graphviz", "export/graphviz.py __init__",  # as export_graphviz
    *(f"tools/plot/shap.py plot_shap_{name}"
      for name in ("bar", "dependence", "summary", "waterfall")),
    "proof.py verify", "tools/plot/surfaces.py plot_boundaries", "tools/plot/trees.py plot_tree",
}  # fmt: skip


@cache
def functions() -> list[tuple[str, ast.FunctionDef]]:
    return [
        (f"{path.relative_to(PACKAGE).as_posix()} {node.name}", node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def lines_of(node: ast.FunctionDef) -> int:
    """Lines without those of the docstring and of what decorates it."""
    assert node.end_lineno is not None
    n, first = node.end_lineno - node.lineno + 1, node.body[0]
    if ast.get_docstring(node) is not None:
        assert first.end_lineno is not None
        n -= first.end_lineno - first.lineno + 1
    return n


def arguments_of(node: ast.FunctionDef) -> int:
    """Named arguments but self and cls."""
    a = node.args
    names = [one.arg for one in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_functions_fit_a_screen():
    assert {name for name, node in functions() if lines_of(node) > SCREEN} == set()


def test_functions_outside_kernels_take_few_arguments():
    # an estimator's constructor takes its parameters
    many = {
        name
        for name, node in functions()
        if arguments_of(node) > MOST_ARGUMENTS
        and not name.startswith(("kernels/", "splits/"))
        and not name.split(".py ")[0].endswith("_kernels")
        and not (name.startswith("estimators/") and node.name == "__init__")
    }
    assert many == KEYWORDS


class Seen(Exception):
    """The functions of this package that are running."""


def raises_seen(*arguments):
    frames = traceback.extract_stack()
    raise Seen([f.name for f in frames if Path(f.filename).is_relative_to(PACKAGE)])


@pytest.mark.parametrize(("method", "kernel", "last", "most"), [
    ("fit", "splits.base.grow_subtrees", "part", 10), ("fit", "backends.numba.level", "part", 11),
    ("predict", "kernels.traverse.numba.accumulate", "part", 9),
    ("boost", "backends.boosters.PreparedTree.grown", "grow", 8),
], ids=["subtrees", "levels", "predictions", "boosting"])  # fmt: skip
def test_few_calls_lie_between_a_method_and_a_kernel(monkeypatch, method, kernel, last, most):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    kind = HistGradientBoostingClassifier if method == "boost" else RandomForestClassifier
    model = kind(backend="numba", random_state=0).fit(X, y)
    if kernel.endswith(".level"):
        monkeypatch.setattr(numba.NumbaBackend, "deep_rows", lambda *arguments: 0)
    monkeypatch.setattr(f"gpuforest.{kernel}", raises_seen)
    with pytest.raises(Seen) as seen:
        model.predict(X) if method == "predict" else model.fit(X, y)
    (calls,) = seen.value.args
    assert calls[0] == method.replace("boost", "fit")
    # each calls the next, and the last calls the kernel
    assert calls[-1] == last
    assert len(calls) <= most


def test_estimators_override_few_methods_of_their_base_class():
    def classes_below(kind):
        for one in kind.__subclasses__():
            yield from (one, *classes_below(one))

    own = {name for name in vars(BaseTrees) if name.startswith("_") and not name.startswith("__")}
    methods = {name for name in own if isinstance(vars(BaseTrees)[name], FunctionType)}
    overridden = {name for kind in classes_below(BaseTrees) for name in vars(kind)} & methods
    assert len(overridden - OF_SKLEARN) <= MOST_HOOKS, overridden


@pytest.mark.parametrize("name", ["DecisionTree", "RandomForest", "ExtraTrees", "Bagging"])
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
def test_few_functions_run_before_a_tiny_forest_grows(name, task, monkeypatch):
    monkeypatch.setenv("GPUFOREST_BACKEND", "numba")
    X = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    y = (X[:, 0] > 0) if task == "Classifier" else X[:, 0]
    several = {} if name == "DecisionTree" else {"n_estimators": 5}
    forest = getattr(gpuforest, name + task)(random_state=0, **several).fit(X, y)
    calls = []

    def count(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            calls.append(frame.f_code.co_name)

    sys.setprofile(count)
    try:
        forest.fit(X, y)
    finally:
        sys.setprofile(None)
    assert calls.index("grow_wave") < MOST_FUNCTIONS
