"""CONTRIBUTING: its map has every module and folder, and its lists of files are complete."""

import os
import re
import shutil
import subprocess
import sys

import house_map
import pytest
from paths import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGE = ROOT / "gpuforest"
SOURCES = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".cu", ".cuh")]
OPERATIONS = ("encode", "totals", "histogram", "best_split", "partition")


def listed(title: str) -> list[str]:
    """The files that the list below a heading names, in the package."""
    section = PAGE.split(f"\n### {title}\n")[1].split("\n#")[0]
    lines = re.findall(r"^- (`gpuforest/.*?`): ", section, re.M)
    files = [path for line in lines for path in re.findall(r"`gpuforest/(\S+)`", line)]
    assert files, title
    return files


def with_text(pattern: str) -> set[str]:
    """The package's files in which a regular expression is found."""
    found = (path for path in SOURCES if re.search(pattern, path.read_text(), re.M))
    return {path.relative_to(PACKAGE).as_posix() for path in found}


def test_the_map_is_that_of_the_docstrings():
    (block,) = house_map.BLOCK.findall(PAGE)[:1]
    assert block == house_map.house_map(), "python tests/support/house_map.py writes it"


def test_files_of_a_parameter():
    fixed = {"estimators/isolation.py"}  # where it is no parameter
    found = with_text("min_weight_fraction_leaf")
    assert found - fixed == set(listed("An estimator parameter"))


def test_files_of_an_estimator():
    files = set(listed("An estimator")) - {"estimators/NAME.py"}
    # as scikit-learn has its name, and it trains on clusters
    also = {"export/sklearn.py", "tools/dask/__init__.py"}
    assert with_text(r"\bExtraTreesClassifier\b") == files | also | {"estimators/forests.py"}
    assert with_text(r"\bBaggingClassifier\b") >= files


def test_files_of_a_criterion():
    assert with_text(r"\bMISCLASSIFICATION\b") == set(listed("A criterion"))


# files outside splits/ that name a kind of split; others ask the kind, or the forest
NAMED = {"oblique": 20, "multiway": 12, "median": 29, "has_set": 8}


@pytest.mark.parametrize("kind", NAMED)
def test_few_files_name_a_kind_of_split(kind):
    named = {path for path in with_text(rf"(?i)\b{kind}") if not path.startswith("splits/")}
    assert len(named) <= NAMED[kind], sorted(named)


@pytest.mark.parametrize("name", OPERATIONS)
def test_files_of_an_operation(name):
    files = {path.replace("OPERATION", name) for path in listed("A backend operation")}
    found = with_text(rf"^ *def {name}\(") - {"tools/dask/rows.py"}  # sums what a backend finds
    # names for a thread's work stand in the file of Numba CUDA
    assert found == {p for p in files if p.endswith(".py")} - {"kernels/numba_cuda.py"}
    assert all((PACKAGE / path).is_file() for path in files)


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, to be edited as a contributor would."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "gpuforest", ignore=ignored)


def run_copy(copied, source: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copied.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    # "auto" would begin to compile all kernels of the copy, in the background, for minutes
    environment["GPUFOREST_BACKEND"] = "numpy"
    run, where = [sys.executable, "-c", source], {"cwd": copied.parent, "env": environment}
    done = subprocess.run(run, capture_output=True, text=True, **where)
    assert not done.returncode, done.stderr
    return done.stdout


def edit(path, pattern: str, replacement: str) -> None:
    """Replace all that a regular expression finds in a file, which must be something."""
    text, count = re.subn(pattern, replacement, path.read_text(), flags=re.M)
    assert count, path
    path.write_text(text)


USE_PARAMETER = """
import gpuforest
from gpuforest.tools.cli.main import main

for kind in (gpuforest.RandomForestRegressor, gpuforest.ExtraTreesRegressor):
    assert kind(toy_share=0.25).toy_share == 0.25
assert gpuforest.DecisionTreeRegressor().get_params()["toy_share"] == 0.0
forest = gpuforest.RandomForestRegressor(3, toy_share=0.25, backend="numpy")
forest.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).save("model")
assert gpuforest.load("model").toy_share == 0.25
try:
    gpuforest.ExtraTreesClassifier(toy_share=2.0, backend="numpy").fit([[0.0]], [0])
except ValueError as error:
    assert "'toy_share' parameter" in str(error)
try:
    main(["train", "--help"])
except SystemExit:
    pass
"""


FIRST_ROW = r'^    "max_features": \("sqrt", \[\*FEATURES, StrOptions\(\{"sqrt", "log2", "oob"'


def test_a_parameter_that_follows_the_list(copied):
    table, *_ = listed("An estimator parameter")
    toy = '    "toy_share": (0.0, [SHARE], "A toy."),'
    edit(copied / table, FIRST_ROW, rf"{toy}\n\g<0>")
    edit(copied / table, r'^GROWTH = "', r"\g<0>toy_share ")
    assert "--toy-share" in run_copy(copied, USE_PARAMETER)


TOY = '''"""A toy."""

from gpuforest.estimators.forests import RandomForestClassifier


class ToyForestClassifier(RandomForestClassifier):
    """A random forest of another name."""
'''
USE_ESTIMATOR = """
from pathlib import Path
import gpuforest
from gpuforest.tools.cli.main import main

forest = gpuforest.ToyForestClassifier(3, backend="numpy").fit([[0.0], [1.0]] * 9, ["a", "b"] * 9)
forest.save("model")
assert type(gpuforest.load("model")) is gpuforest.ToyForestClassifier
Path("rows.csv").write_text("x,y\\n" + "0,a\\n1,b\\n" * 9)
options = ["--model", "toy", "--n-estimators", "3", "--backend", "numpy", "--out", "trained"]
assert not main(["train", "rows.csv", "--target", "y", *options])
assert not main(["inspect", "trained"])
"""


def test_an_estimator_that_follows_the_list(copied):
    name = "ToyForestClassifier"
    edits = {
        "estimators/NAME.py": None,
        "__init__.py": [
            (r'^        "estimators.trees": ', rf'        "estimators.toy": "{name}",\n\g<0>')
        ],
        "tools/cli/options.py": [(r"^MODELS = .*$", rf'\g<0>\n    "toy": "{name}",')],
    }
    assert list(edits) == listed("An estimator")
    (copied / "estimators/toy.py").write_text(TOY)
    for file, changes in edits.items():
        for pattern, replacement in changes or []:
            edit(copied / file, pattern, replacement)
    assert name in run_copy(copied, USE_ESTIMATOR)


USE_CRITERION = """
import numpy as np
import gpuforest

X = np.random.default_rng(0).normal(size=(200, 4))
y = (X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 1)
toy, gini = (
    gpuforest.RandomForestClassifier(3, criterion=name, random_state=0, backend=BACKEND).fit(X, y)
    for name in ("toy", "gini")
)
assert (toy.forest_.nodes == gini.forest_.nodes).all()
assert np.allclose(toy[0].tree_.impurity, 2 * gini[0].tree_.impurity)
toy.save("model")
assert gpuforest.load("model").criterion == "toy"
"""
TOY_CRITERION = r"""
        replace(
            OF_COUNTS,
            name="toy",
            number=NUMBER,
            score=lambda xp, sums, n: 2 * _class_squares(xp, sums, n),
            impurity=lambda shares: 2 * gini(shares),
            several=None,
            sklearn="gini",
        ),"""


def test_a_criterion_that_follows_the_list(copied):
    """NumPy's kernels need the first file alone; it is twice the Gini impurity."""
    table = copied / listed("A criterion")[0]
    edit(table, r"^    OF_LOGS,$", rf"\g<0>{TOY_CRITERION.replace('NUMBER', 'None')}")
    run_copy(copied, f"BACKEND = 'numpy'{USE_CRITERION}")


@pytest.mark.deep
def test_a_compiled_criterion_that_follows_the_list(copied):
    """Half of what its definition says, whose splits are the same."""
    table, *compiled, names = (copied / file for file in listed("A criterion"))
    edit(table, r"^    OF_LOGS,$", rf"\g<0>{TOY_CRITERION.replace('NUMBER', 'TOY')}")
    edit(table, r"^ABSOLUTE_ERROR, LOGRANK = 6, 7$", r"\g<0>\nTOY = 8")
    edit(names, r'^CRITERIA = \("GINI", ', r'\g<0>"TOY", ')
    for file in compiled:
        if file.suffix == ".py":
            edit(file, r"criterion == GINI", "criterion in (GINI, TOY)")
            imported = r"^(from gpuforest\.core\.criteria import \(?[^)]*?)\bGINI,"
            edit(file, imported, r"\1GINI, TOY,")
        else:
            edit(file, r"CRITERION == GINI", r"CRITERION == GINI || CRITERION == TOY")
    run_copy(copied, f"BACKEND = 'numba'{USE_CRITERION}")


USE_KIND = """
import numpy as np
import gpuforest

X = np.random.default_rng(0).normal(size=(100, 3))
forest = gpuforest.RandomForestClassifier(3, toy=True, random_state=0, backend="numpy")
importances = forest.fit(X, X[:, 1] > 0).feature_importances_
assert importances[1] == 0 and (importances[[0, 2]] > 0).all()
forest.save("model")
assert (gpuforest.load("model").predict(X) == forest.predict(X)).all()
"""
TOY_KIND = '''"""A toy: cuts of every other feature."""

from gpuforest.splits.base import Kind


class Toy(Kind):
    """The features with odd numbers are not tried."""

    name = "toy"

    def best(self, backend, training, slots, features, need):
        odd = features % 2 == 1
        return super().best(backend, training, slots, backend.xp.where(odd, -1, features), need)
'''


def test_a_kind_of_split_that_follows_the_list(copied):
    files = listed("A kind of split")
    new, kinds, records, table, settings = files[:5]
    assert len(files) <= 8
    (copied / new.replace("NAME", "toy")).mkdir()
    (copied / new.replace("NAME", "toy") / "kind.py").write_text(TOY_KIND)
    edit(copied / kinds, r"^(from .*\n)+", r"\g<0>from gpuforest.splits.toy.kind import Toy\n")
    edit(
        copied / kinds,
        r'^    """The kind of split of these rules;.*$',
        r"\g<0>\n    if rules.toy:\n        return Toy()",
    )
    edit(copied / records, r"^    multiway: bool = False", r"    toy: bool = False\n\g<0>")
    edit(copied / table, FIRST_ROW, '    "toy": (False, ["boolean"], "A toy."),\n\\g<0>')
    edit(copied / table, r'^GROWTH = "', r"\g<0>toy ")
    edit(copied / settings, r"^    splitter: str", r"    toy: bool = False\n\g<0>")
    edit(copied / settings, r"^    return rules\.Rules\($", r"\g<0>\n        toy=settings.toy,")
    run_copy(copied, USE_KIND)


# a file, the text before which its new text comes, or nothing at the end, and that text
OPERATION = r"""
--- backends/base.py: def waves(
    def double(self, values: Array) -> Array:
        raise NotImplementedError
--- kernels/double/numpy.py
def double(values):
    return 2 * values
--- backends/numpy.py: def encode(
    def double(self, values):
        from gpuforest.kernels.double.numpy import double

        return double(values)
--- kernels/double/numba.py
from gpuforest.compiler.decorators import kernel
from gpuforest.compiler.types import I64s


@kernel
def double(values: I64s, twice: I64s):
    for i in range(len(values)):
        twice[i] = 2 * values[i]
--- backends/numba.py: def encode(
    def double(self, values):
        from gpuforest.kernels.double.numba import double

        twice = np.empty_like(values)
        double(values, twice)
        return twice
--- kernels/double/cuda.cu
#include "shared/cuda.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
twice_values(const i64* values, i64 N, i64* twice) {
  for (i64 i = thread_number(); i < N; i += thread_count()) twice[i] = 2 * values[i];
}
--- backends/cuda/levels.py: def encode(
    def double(self, values):
        (N,), twice = values.shape, self.empty(values.shape, self.xp.int64)
        self.launch_each("double", "twice_values", N, values, N, twice)
        return twice
--- kernels/numba_cuda.py
@cuda.jit
def twice_values(values, twice):
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        twice[i] = 2 * values[i]
--- backends/numba_cuda.py: def encode(
    def double(self, values):
        from gpuforest.kernels.numba_cuda import twice_values

        twice = self.xp.empty_like(values)
        self.launch(twice_values, len(values), values, twice)
        return twice
"""
USE_OPERATION = """
import numpy as np
from gpuforest.backends.numba import NumbaBackend
from gpuforest.backends.numba_cuda import NumbaCudaBackend
from gpuforest.backends.numpy import NumpyBackend
from emulated import EmulatedBackend
from cuda_variants import MACROS

MACROS["double"] = ()
values = np.arange(1000)
for make in (NumpyBackend, NumbaBackend, EmulatedBackend, NumbaCudaBackend):
    assert (make().double(values) == 2 * values).all()
"""


@pytest.mark.deep
def test_an_operation_that_follows_the_list(copied, monkeypatch):
    """Twice the values, on four backends: on an emulated device, and in Numba's simulator."""
    pytest.importorskip("numba_cuda", reason="needs pip install 'gpuforest[test-cuda]'")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    files = {path.replace("OPERATION", "double") for path in listed("A backend operation")}
    parts = re.findall(r"^--- (\S+?)(?:: ([^\n]*))?\n(.*?\n)(?=---|\Z)", OPERATION, re.M | re.S)
    assert files == {file for file, _, _ in parts}
    assert len(files) <= 9
    (copied / "kernels/double").mkdir()
    for file, before, text in parts:
        if before:
            edit(copied / file, rf"^    {re.escape(before)}", f"{text}\n    {before}")
        else:
            with (copied / file).open("a") as stream:
                stream.write(text)
    support = str(ROOT / "tests/support")
    run_copy(copied, f"import sys; sys.path.append({support!r}){USE_OPERATION}")
