"""The tests of scikit-learn, quantile-forest and scikit-survival, run with our estimators in place
of their own.

They take minutes and belong to one version of their package, so they run only where
GPUFOREST_PEER=1 asks for them, as .ci/ecosystem does. docs/migration.md lists what fails, and why.
"""

import ast
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import gpuforest

TREES = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
FORESTS = [
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier",
    "ExtraTreesRegressor",
]  # fmt: skip
AROUND = ["BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier", "AdaBoostRegressor"]
BOOSTING = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]
QUANTILES = ["ExtraTreesQuantileRegressor", "RandomForestQuantileRegressor"]
SURVIVAL = ["ExtraSurvivalTrees", "RandomSurvivalForest"]
ALL = [*TREES, *FORESTS, *AROUND, *BOOSTING, "IsolationForest"]
IN_BOOSTING = "ensemble/_hist_gradient_boosting/tests"

# the package, its file of tests, the names that become ours, and how many tests pass
PEERS = {
    "forest": ("sklearn", "ensemble/tests/test_forest.py", [*FORESTS, "RandomTreesEmbedding"], 308),
    "tree": ("sklearn", "tree/tests/test_tree.py", TREES, 519),
    "monotonic": ("sklearn", "tree/tests/test_monotonic_tree.py", TREES + FORESTS, 223),
    "bagging": ("sklearn", "ensemble/tests/test_bagging.py", AROUND[:2], 123),
    "adaboost": ("sklearn", "ensemble/tests/test_weight_boosting.py", AROUND[2:], 43),
    "isolation": ("sklearn", "ensemble/tests/test_iforest.py", ["IsolationForest"], 27),
    "boosting": ("sklearn", f"{IN_BOOSTING}/test_gradient_boosting.py", ALL, 124),
    "boosting, warm start": ("sklearn", f"{IN_BOOSTING}/test_warm_start.py", ALL, 14),
    "metadata routing": ("sklearn", "tests/test_metaestimators_metadata_routing.py", ALL, 305),
    "partial dependence": ("sklearn", "inspection/tests/test_partial_dependence.py", ALL, 430),
    "permutation": ("sklearn", "inspection/tests/test_permutation_importance.py", ALL, 36),
    "multioutput": ("sklearn", "tests/test_multioutput.py", ALL, 69),
    "voting": ("sklearn", "ensemble/tests/test_voting.py", ALL, 40),
    "stacking": ("sklearn", "ensemble/tests/test_stacking.py", ALL, 82),
    "selection by importances": ("sklearn", "feature_selection/tests/test_from_model.py", ALL, 47),
    "recursive elimination": ("sklearn", "feature_selection/tests/test_rfe.py", ALL, 59),
    "calibration": ("sklearn", "tests/test_calibration.py", ALL, 113),
    # these compare quantile forests with plain forests of the same seed, so both must be ours
    "quantiles": ("quantile_forest", "tests/test_quantile_forest.py", QUANTILES + FORESTS, 482),
    "survival": ("sksurv", "tests/test_forest.py", SURVIVAL + FORESTS, 62),
}
VERSIONS = {"sklearn": "1.9", "quantile_forest": "1.4", "sksurv": "0.28"}
FIXTURES = """import numpy, pytest
@pytest.fixture
def global_random_seed(): return 42
@pytest.fixture
def global_dtype(): return numpy.float64
@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")
"""


def with_ours(text, names):
    """The text of a file of tests, in which names mean our estimators after the imports."""
    ours = [name for name in names if hasattr(gpuforest, name) and re.search(rf"\b{name}\b", text)]
    assert ours
    imports = [n for n in ast.parse(text).body if isinstance(n, ast.Import | ast.ImportFrom)]
    lines = text.splitlines()
    lines.insert(
        max(node.end_lineno for node in imports), f"from gpuforest import {', '.join(ours)}"
    )
    return "\n".join(lines)


def test_names_are_bound_after_all_imports():
    theirs = ["import a", "from b import (", "    c,", ")", "try:", "    import d", "except: pass"]
    lines = with_ours("\n".join([*theirs, "RandomForestClassifier"]), FORESTS).splitlines()
    assert lines.pop(4) == "from gpuforest import RandomForestClassifier"
    assert lines == [*theirs, "RandomForestClassifier"]


def home_of(package, folder):
    """Where a package has its tests; scikit-survival's are in its source distribution alone."""
    if package != "sksurv":
        return Path(find_spec(package).origin).parent
    name = "scikit-survival"
    wanted = ["--no-deps", "--no-binary", name, f"{name}=={version(name)}"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *wanted]
    subprocess.run(pip, check=True)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return archive.with_name(archive.name.removesuffix(".tar.gz"))


@pytest.mark.skipif(os.environ.get("GPUFOREST_PEER") != "1", reason="GPUFOREST_PEER=1 asks for it")
@pytest.mark.parametrize("peer", PEERS)
def test_so_many_of_their_tests_pass(peer, tmp_path):
    package, file, names, least = PEERS[peer]
    release = VERSIONS[package]
    pytest.importorskip(package, minversion=release, reason=f"tests of {package} {release}")
    path = home_of(package, tmp_path / "theirs") / file
    if not path.exists():
        pytest.skip(f"{package} is installed without its tests")
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "test_theirs.py").write_text(with_ours(path.read_text(), names))
    theirs = path.with_name("conftest.py")
    fixtures = theirs.read_text() if theirs.exists() else FIXTURES
    (folder / "conftest.py").write_text(fixtures)
    options = ["-q", "--no-header", "-Wignore", "-pno:cacheprovider", "--tb=line"]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    passed = re.search(r"(\d+) passed", shown)
    assert passed is not None, shown[-2000:]
    assert int(passed[1]) >= least, shown[-20_000:]
