"""
A model outside Python
======================

A fitted model becomes a file of its own, an ONNX graph, one file of C99, or scikit-learn's own
estimator. Labels are equal on every input. How large are the files?
"""

import tempfile
from pathlib import Path

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from gpuforest import HistGradientBoostingClassifier, export_c, export_python, load

data = load_breast_cancer()
model = HistGradientBoostingClassifier(max_iter=30, random_state=0).fit(data.data, data.target)
names = [name.replace(" ", "_") for name in data.feature_names]

with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder, f"model{end}") for end in (".gpuforest", ".onnx", ".c", ".py")]
    model.save(paths[0])
    model.to_onnx(paths[1])
    export_c(model, paths[2])
    paths[3].write_text(export_python(model, None, feature_names=names))
    sizes = [path.stat().st_size / 1000 for path in paths]
    again = load(paths[0])
    head = paths[2].read_text().splitlines()[:8]
print("equal:", (again.predict_proba(data.data) == model.predict_proba(data.data)).all())
print("scikit-learn's:", (model.to_sklearn().predict(data.data) == model.predict(data.data)).all())

fig, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
ax.barh(["model file", "ONNX", "C", "Python"], sizes, color="#0072b2")
ax.invert_yaxis()
ax.set_xlabel("kB")

# %%
# The C begins like this:
print("\n".join(head))
