"""Compiled kernels run without Numba; where neither is there, NumPy works and a warning says so."""

import os
import shutil
import subprocess
import sys

import pytest
from paths import has_numba

from gpuforest.compiler import build, families, objects, processors

FITS = """
import hashlib, logging, sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # as where they are not installed
logging.basicConfig(format="%(message)s")
import numpy as np
import gpuforest

rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 5))
y = (X[:, 0] + rng.normal(size=5000) > 0).astype(float)
digest = hashlib.sha256()
for name in ("RandomForestClassifier", "ExtraTreesRegressor", "HistGradientBoostingClassifier"):
    few = {"max_iter": 3} if "Boosting" in name else {"n_estimators": 3, "max_depth": 5}
    model = getattr(gpuforest, name)(random_state=0, **few).fit(X, y)
    digest.update(model.forest_.nodes.tobytes() + model.predict(X[:100]).tobytes())
    print(model.backend_)
print(digest.hexdigest())
"""


def fits(script=FITS, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "GPUFOREST_BACKEND": "", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture
def packaged(tmp_path):
    """A folder of all kernels that `FITS` needs, which says that these are all."""
    if not has_numba:
        pytest.skip("no numba here, which compiles the kernels")
    asked = ["forests", "boosting", "shared"]
    assert build.warm_up(asked, 2, "uint8") == 0
    folder = tmp_path / "gpuforest"
    folder.mkdir(0o755)
    for name in families.members(asked, "uint8"):
        path, _ = next(objects.usable(name))
        shutil.copy(path, folder)
    mark = objects.file_of(objects.ALL, processors.native(), b"", objects.version_of(objects.ALL))
    objects.save(folder / mark, objects.ALL, b"")
    return str(tmp_path)


def test_compiled_kernels_need_no_numba_and_numpy_works_without_both(tmp_path, packaged):
    *backends, digest = fits(NUMBA_CACHE_DIR=packaged)[0]
    assert backends == ["numba"] * 3
    (*backends, same), said = fits(NUMBA_CACHE_DIR=str(tmp_path / "none"))
    assert backends == ["numpy"] * 3
    assert same == digest
    (warning,) = said
    assert "NumPy does all work, which is slow" in warning
    assert "pip install 'gpuforest[compile]'" in warning


def test_object_code_alone_is_not_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(objects, "PACKAGED", tmp_path)
    for name, code in (
        (objects.ALL, b""),
        ("kernels.bag.numba.bag", b"\x7fELF" + bytes(12) + b"\x03"),
    ):
        objects.save(tmp_path / objects.file_of(name, processors.native(), code), name, code)
    assert objects.all_linked()
    (tmp_path / f"b.{processors.native().name}.o").touch()
    assert not objects.all_linked()


@pytest.mark.parametrize("name", ["numba", "warmup"])
def test_what_was_asked_for_is_an_error_that_names_the_extra(tmp_path, name):
    ask = 'gpuforest.RandomForestClassifier(backend="numba").fit([[0], [1]], [0, 1])'
    if name == "warmup":
        ask = 'from gpuforest.cli import main\nassert main(["warmup"]) != 0'
    script = f"""
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None
import gpuforest
try:
    {ask.replace(chr(10), chr(10) + "    ")}
except gpuforest.BackendError as error:
    print(error, file=sys.stderr)
"""
    said = " ".join(fits(script, NUMBA_CACHE_DIR=str(tmp_path))[1])
    assert "pip install 'gpuforest[compile]'" in said
    assert "Traceback" not in said
