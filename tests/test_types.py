"""What a user's `mypy --strict` says of the estimators."""

import json
import re
import subprocess
import sys

import pytest
from paths import ROOT, kept

import gpuforest

pytest.importorskip("mypy", reason="needs pip install 'gpuforest[checks]'")

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
    lines, wrong = ["import gpuforest", "gpuforest.plot.plot_tree; gpuforest.dask"], []
    lines += ["gpuforest.ExtraTreesRegressor(5, memory_limit='2GB').fit([[0]], [0]).predict([[0]])"]
    for name, kind in ESTIMATORS.items():
        lines += [f"def of_{name}(model: gpuforest.{name}) -> None:"]
        lines += [f"    model.{attribute}" for attribute in attributes_of(kind)]
        lines += ["    model.get_params(); model.set_params(verbose=1); model.n_features_in_"]
        lines += ["    model.prdict"]
        wrong += [f'user.py:{len(lines)}: error: "{name}" has no attribute "prdict"']
    assert len(wrong) == 19
    (tmp_path / "user.py").write_text("\n".join(lines) + "\n")
    run = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "user.py"]
    run += ["--config-file=", f"--cache-dir={kept('mypy') / 'user'}"]
    environment = {"MYPYPATH": str(ROOT)}
    said = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    found = [line for line in said.stdout.splitlines() if ": error:" in line]
    assert [line.partition("; maybe")[0].partition("  [")[0] for line in found] == wrong
