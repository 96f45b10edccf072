"""What is published: types that users see, archives, the recipe for conda, the citation."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from paths import ROOT, kept

import gpuforest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
USE = """\
from typing import Any

import numpy as np

import gpuforest as gf

X = np.random.default_rng(0).normal(size=(200, 4))
y = X[:, 0] > 0
forest = gf.RandomForestClassifier(50, max_depth=4, oob_score=True, random_state=0).fit(X, y)
labels: np.ndarray[Any, Any] = forest.predict(X)
chances: np.ndarray[Any, Any] = forest.predict_proba(X)
print(forest.feature_importances_.argmax(), 1 - forest.oob_score_, forest.n_features_in_)
forest.save("forest.gpuforest")
assert (gf.load("forest.gpuforest").predict(X) == labels).all()
print(gf.export_text(forest).upper(), gf.tree_nodes(forest)[0].depth)
gf.export_c(forest, "forest.c")
data: gf.BinnedData = gf.BinnedData.from_blocks([(X, X[:, 1])], max_bins=255)
rounds = gf.HistGradientBoostingRegressor(max_iter=5, n_jobs=2).fit(data)
print(rounds.n_iter_ + 1, data.shape[0], gf.estimate_memory(forest, 1000, 10).total)
print(gf.IsolationForest(n_estimators=5).fit(X).decision_function(X), gf.ModelFormatError)
"""
REVEALED = "reveal_type(forest)\nreveal_type(forest.predict)\nreveal_type(forest.oob_score_)\n"
SEEN = ["RandomForestClassifier", "(X: Any) -> Any", "float"]


def checked(folder: Path, text: str, *command: object) -> str:
    """What a type checker says to a user's file, who has no settings but those beside it."""
    (folder / "use.py").write_text(text)
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    command = (sys.executable, "-m", *map(str, command))
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def test_mypy_sees_the_types(tmp_path):
    pytest.importorskip("mypy", reason="needs pip install 'gpuforest[checks]'")
    text = USE + REVEALED + 'forest.save(1)\ngf.IsolationForest(trees="many")\n'
    options = "--strict", "--config-file=", f"--cache-dir={kept('mypy')}", "use.py"
    said = checked(tmp_path, text, "mypy", *options)
    seen = [line.split('"')[1] for line in said.splitlines() if "Revealed type" in line]
    assert [s.removeprefix("def ").removeprefix("gpuforest.") for s in seen] == SEEN, said
    errors = re.findall(r": error: .*\[(.*)\]", said)
    assert errors == ["arg-type", "call-arg"], said  # none but in the last two lines


@pytest.mark.deep
def test_pyright_sees_the_types(tmp_path):
    pytest.importorskip("pyright")
    if not checked(tmp_path, "", "pyright", "--version").startswith("pyright"):
        pytest.skip("pyright, or Node, does not start here")
    said = checked(tmp_path, USE + REVEALED, "pyright", "--pythonpath", sys.executable)
    assert re.findall(r'Type of ".*" is "(.*)"', said) == SEEN, said
    assert "\n0 errors, 0 warnings" in said, said


def test_what_is_checked_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(USE, "use.py", "exec"), {})


def test_archives(tmp_path):
    """Both carry types and licences, and a wheel is the same from a checkout and from the sdist."""
    pytest.importorskip("hatchling")

    def build(source: Path, kind: str, name: str) -> Path:
        command = (sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", tmp_path / name)
        subprocess.run(command, cwd=source, check=True, capture_output=True)
        (made,) = (tmp_path / name).iterdir()
        return made

    with tarfile.open(build(ROOT, "sdist", "sdist")) as archive:
        archive.extractall(tmp_path / "from", filter="data")
    (source,) = (tmp_path / "from").iterdir()
    needed = """LICENSE SECURITY.md CITATION.cff data/README.md data/spambase.csv.gz hatch_build.py
        tests/golden/forests.json .ci/readme-command gpuforest/py.typed gpuforest/__init__.pyi"""
    assert [name for name in needed.split() if not (source / name).is_file()] == []
    wheels = []
    for name, path in (("one", ROOT), ("two", source)):
        with ZipFile(build(path, "wheel", name)) as wheel:
            wheels.append({inside: wheel.read(inside).decode() for inside in wheel.namelist()})
    assert wheels[0] == wheels[1]
    info, files = f"gpuforest-{VERSION}.dist-info", wheels[0]
    assert files[f"{info}/licenses/data/README.md"] == (ROOT / "data/README.md").read_text()
    assert {"gpuforest/py.typed", "gpuforest/__init__.pyi", f"{info}/licenses/LICENSE"} <= {*files}
    assert "gpuforest = gpuforest.cli:main" in files[f"{info}/entry_points.txt"]
    assert "Classifier: Typing :: Typed" in files[f"{info}/METADATA"]
    # no kernels are inside, so it needs what compiles them
    assert re.search("^Requires-Dist: numba[^;]*$", files[f"{info}/METADATA"], re.M)


def test_the_recipe_the_citation_and_the_changelog_say_what_the_project_says():
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text()
    assert f"  version: {VERSION}\n" in recipe
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{VERSION}]" in (ROOT / "CHANGELOG.md").read_text()
    python = f"python{PROJECT['project']['requires-python']}"
    run, compiler = (
        PROJECT["project"]["dependencies"],
        PROJECT["project"]["optional-dependencies"]["compile"],
    )
    wanted = {
        "host": [python, "pip", *PROJECT["build-system"]["requires"], *run, *compiler],
        "run": [python, *run],
    }
    for part, names in wanted.items():
        section = re.search(rf"^  {part}:\n((?:    - .*\n)+)", recipe, re.M)[1]
        assert sorted(re.findall("-(.*)", section.replace(" ", ""))) == sorted(names)


ESTIMATORS = {
    name: kind
    for name in gpuforest.__all__
    if hasattr(kind := getattr(gpuforest, name), "_parameter_constraints")
}
LIST = json.loads((ROOT / "tests" / "public_names.json").read_text())


def attributes_of(kind):
    """The parameters, the members, and the attributes that the documentation of the class names."""
    section = re.split(r"\n(?:Attributes|Notes|References|Examples)\n-+\n", kind.__doc__)[1]
    documented = re.findall(r"^([\w, ]+) : ", section, re.MULTILINE)
    names = {name for line in documented for name in re.findall(r"\w+_\b", line)}
    members = LIST[f"gpuforest.{kind.__name__}"].keys() - {"__init__"}
    return sorted(names | {*kind._parameter_constraints} | members)


def test_mypy_knows_all_attributes_and_finds_misspelt_ones(tmp_path):
    pytest.importorskip("mypy", reason="needs pip install 'gpuforest[checks]'")
    lines, wrong = ["import gpuforest", "gpuforest.plot.plot_tree; gpuforest.dask"], []
    lines += ["gpuforest.ExtraTreesRegressor(5, memory_limit='2GB').fit([[0]], [0]).predict([[0]])"]
    for name, kind in ESTIMATORS.items():
        lines += [f"def of_{name}(model: gpuforest.{name}) -> None:"]
        lines += [f"    model.{attribute}" for attribute in attributes_of(kind)]
        lines += ["    model.get_params(); model.set_params(verbose=1); model.n_features_in_"]
        lines += ["    model.prdict"]
        wrong += [f'use.py:{len(lines)}: error: "{name}" has no attribute "prdict"']
    assert len(wrong) == 22
    options = ("--strict", "--config-file=", f"--cache-dir={kept('mypy')}", "use.py")
    said = checked(tmp_path, "\n".join(lines) + "\n", "mypy", *options)
    found = [line for line in said.splitlines() if ": error:" in line]
    assert [line.partition("; maybe")[0].partition("  [")[0] for line in found] == wrong
