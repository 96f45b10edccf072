"""The hash of two forests, grown by the kernels in a folder, and the kernels that they need."""

SCRIPT = """
import hashlib, sys
from pathlib import Path
import numpy as np
from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.compiler import objects, processors

objects.PACKAGED, level = Path(sys.argv[1]), sys.argv[2]
objects.folders = lambda make=False: iter(())
objects.native = lambda: processors.Target("none", "", "")
objects.levels = lambda: [t for t in processors.all_levels() if t.name == level]
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
digest = hashlib.sha256()
for forest, y in (
    (RandomForestClassifier(8, random_state=1, backend="numba"), X[:, 0] * X[:, 1] > 0),
    (RandomForestRegressor(8, random_state=1, backend="numba"), X[:, 0] * X[:, 1]),
):
    forest.fit(X, y)
    digest.update(forest.forest_.nodes.tobytes() + forest.forest_.values.tobytes())
    digest.update(forest.predict(X).tobytes())
print(digest.hexdigest())
"""
NEEDED = (
    "kernels.edges.numba.edges",
    "kernels.encode.numba.encode-code_uint8-value_float64",
    "kernels.bag.numba.bag", "kernels.bag.numba.in_bag", "kernels.totals.numba",
    "kernels.partition.numba", "kernels.best_split.numba.level-code_uint8-",
    "kernels.grow_subtrees.numba.grow_subtrees-code_uint8-sets_False",
    "kernels.place_nodes.numba", "kernels.traverse.numba.accumulate-code_uint8",
)  # fmt: skip
