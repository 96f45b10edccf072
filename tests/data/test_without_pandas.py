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


def test_arrays_bring_no_pandas(tmp_path):
    run(
        f"""
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
model.save("{tmp_path / "model"}")
assert np.array_equal(load("{tmp_path / "model"}").predict(X), model.predict(X))
"""
    )


def test_models_and_surfaces_of_other_frames():
    for library in ("matplotlib", "polars", "pyarrow"):
        pytest.importorskip(library, reason=f"no {library} here")
    run(
        """
import matplotlib, polars, pyarrow
matplotlib.use("agg")
from gpuforest import plot

frame = {"size": X[:, 0], "wide": X[:, 1], "colour": names}
for data in (X, polars.DataFrame(frame), pyarrow.table(frame)):
    model = RandomForestRegressor(5, random_state=0).fit(data, y)
    plot.plot_steps(model, data, y, 0)
    plot.plot_boundaries(model, data, y, (0, 1))
    if data is not X:
        assert model.forest_.edges.categories == {2: ("blue", "green", "grey", "red")}
"""
    )
