"""scikit-learn's own tests of forests and trees, run with our estimators in place of its own.

They take minutes and belong to one version of scikit-learn, so they run only where
GPUFOREST_PEER=1 asks for them. docs/migration.md lists what fails, and why.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from paths import SHARED

RUNNER = SHARED / "peer_tests.py"
TESTS = {
    "forest": "ensemble/tests/test_forest.py",
    "tree": "tree/tests/test_tree.py",
    "monotonic": "tree/tests/test_monotonic_tree.py",
    "bagging": "ensemble/tests/test_bagging.py",
    "weight": "ensemble/tests/test_weight_boosting.py",
}


@pytest.mark.skipif(os.environ.get("GPUFOREST_PEER") != "1", reason="GPUFOREST_PEER=1 asks for it")
@pytest.mark.skipif(not RUNNER.exists(), reason="../shared/peer_tests.py is not here")
@pytest.mark.parametrize(
    ("name", "least"),
    [("forest", 305), ("tree", 510), ("monotonic", 221), ("bagging", 110), ("weight", 43)],
)
def test_so_many_of_scikit_learns_tests_pass(name, least):
    sklearn = pytest.importorskip("sklearn", minversion="1.9", reason="tests of scikit-learn 1.9")
    if not (Path(sklearn.__file__).parent / TESTS[name]).exists():
        pytest.skip("scikit-learn is installed without its tests")
    command = [sys.executable, str(RUNNER), name]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    passed = re.search(r"(\d+) passed", found)
    assert passed is not None, found[-2000:]
    assert int(passed[1]) >= least, found[-20_000:]
