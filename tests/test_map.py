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
OPERATIONS = ("encode", "bag", "totals", "histogram", "best_split", "partition")


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
    also = {"estimators/standing_in.py", "export/sklearn.py"}  # as scikit-learn has its name
    also |= {"tools/dask/__init__.py", "tools/dask/estimators.py"}  # as it trains on clusters
    assert with_text(r"\bExtraTreesClassifier\b") == files | also | {"estimators/forests.py"}
    assert with_text(r"\bBaggingClassifier\b") >= files


def test_files_of_a_criterion():
    assert with_text(r"\bMISCLASSIFICATION\b") == set(listed("A criterion"))


def test_files_of_a_kind_of_split():
    files = listed("A kind of split")
    found = with_text(r"\b(SET_BIN|has_set)\b")
    found -= {path for path in found if path.startswith(("splits/oblique/", "splits/multiway/"))}
    assert all(path.startswith(tuple(files)) for path in found), found
    marked = found | with_text(r"\b(sets|has_code)\b")
    assert all(any(path.startswith(file) for path in marked) for file in files)


@pytest.mark.parametrize("name", OPERATIONS)
def test_files_of_an_operation(name):
    files = {path.replace("OPERATION", name) for path in listed("A backend operation")}
    found = with_text(rf"^ *def {name}\(") - {"cluster/rows.py"}  # sums what a backend finds
    assert found == {path for path in files if path.endswith(".py")}
    assert all((PACKAGE / path).is_file() for path in files)


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, to be edited as a contributor would."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(PACKAGE, tmp_path / "gpuforest", ignore=ignored)


def run_copy(copied, source: str) -> str:
    """What Python prints where it imports the copy."""
    environment = os.environ | {"PYTHONPATH": str(copied.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=copied.parent,
        env=environment,
        capture_output=True,
        text=True,
    )
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


def test_a_parameter_that_follows_the_list(copied):
    table, _ = listed("An estimator parameter")
    row = r'^    "max_features": Parameter\($'
    toy = '    "toy_share": Parameter(0.0, "float", [SHARE], "A toy."),'
    edit(copied / table, row, rf"{toy}\n\g<0>")
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
        "estimators/__init__.py": [
            (r"\A(.*\n\n)", rf"\1from gpuforest.estimators.toy import {name}\n"),
            (r"^__all__ = \[$", rf'__all__ = [\n    "{name}",'),
        ],
        "__init__.py": [(r"^__all__ = \[$", rf'__all__ = [\n    "{name}",')],
        "tools/cli/options.py": [
            (
                r"^ESTIMATORS: .*$",
                rf'\g<0>\n    ("toy", "classification"): gpuforest.{name},'
                rf'\n    ("toy", "regression"): gpuforest.{name},',
            )
        ],
    }
    assert list(edits) == listed("An estimator")
    (copied / "estimators/toy.py").write_text(TOY)
    for file, changes in edits.items():
        for pattern, replacement in changes or []:
            edit(copied / file, pattern, replacement)
    assert name in run_copy(copied, USE_ESTIMATOR)
