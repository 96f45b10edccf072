"""pandas is optional: it is imported for pandas' own frames alone, and nothing else needs it."""

import subprocess
import sys

import pytest

START = """
import sys
import numpy as np
from gpuforest import *

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=200), rng.integers(0, 4, 200)])
y = (X[:, 0] + (X[:, 1] == 2) > 0).astype(int)
names = np.array(["red", "green", "blue", "grey"])[X[:, 1].astype(int)]
"""
ABSENT = """
import sys

class NoPandas:
    asked = []  # modules that wanted to import it: scikit-learn does where it can

    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            frame = sys._getframe(1)
            while "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            self.asked.append(frame.f_globals["__name__"])
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoPandas())
"""
NOT_ASKED = """
ours = {name for name in NoPandas.asked if name.startswith("gpuforest")}
assert not ours, f"imported by {ours}"
"""


def run(body):
    script = ABSENT + START + body + NOT_ASKED
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr


def test_arrays_bring_no_pandas():
    run(
        """
from scipy.sparse import csr_matrix

for backend in ("numpy", "numba"):
    for categories in (None, [1]):
        model = RandomForestClassifier(
            20, categorical_features=categories, backend=backend, oob_score=True, random_state=0
        )
        model.fit(X, y).predict_proba(X)
    RandomForestRegressor(3, backend=backend).fit(csr_matrix(X), y).predict(csr_matrix(X))
objects = np.column_stack([X[:, 0].astype(object), names.astype(object)])
DecisionTreeClassifier(categorical_features=[1]).fit(objects, y).predict(objects)
"""
    )


def test_a_model_is_saved_and_read(tmp_path):
    run(
        f"""
model = RandomForestClassifier(3, categorical_features=[1], random_state=0).fit(X, y)
model.save("{tmp_path / "m.gpuforest"}")
assert np.array_equal(load("{tmp_path / "m.gpuforest"}").predict(X), model.predict(X))
"""
    )


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_frames(library):
    pytest.importorskip(library, reason=f"no {library} here")
    make = {"polars": "polars.DataFrame", "pyarrow": "pyarrow.table"}[library]
    run(
        f"""
import {library}
frame = {make}({{"size": X[:, 0], "colour": names}})
model = RandomForestClassifier(5, random_state=0).fit(frame, y)
assert model.score(frame, y) > 0.9
assert model.forest_.edges.categories == {{1: ("blue", "green", "grey", "red")}}
"""
    )


@pytest.mark.parametrize("data", ["array", "polars", "pyarrow"])
def test_surfaces(data):
    pytest.importorskip("matplotlib", reason="no matplotlib here")
    make = {
        "array": "X",
        "polars": "polars.DataFrame({'size': X[:, 0], 'wide': X[:, 1], 'colour': names})",
        "pyarrow": "pyarrow.table({'size': X[:, 0], 'wide': X[:, 1], 'colour': names})",
    }[data]
    library = "numpy" if data == "array" else data
    pytest.importorskip(library, reason=f"no {library} here")
    run(
        f"""
import matplotlib, {library}
matplotlib.use("agg")
from gpuforest import plot

data = {make}
model = RandomForestRegressor(5, random_state=0).fit(data, y)
plot.plot_steps(model, data, y, 0)
plot.plot_boundaries(model, data, y, (0, 1))
"""
    )
