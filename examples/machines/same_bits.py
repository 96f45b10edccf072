"""
The same forest, bit for bit
============================

Sums of integers do not depend on their order. So backends, threads and limits of memory change
the time that a fit takes, and not a single bit of the forest. Here NumPy's arrays, compiled code
on one thread and on all, and a fit with little memory agree.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from gpuforest import RandomForestClassifier, estimate_memory

X, y = load_digits(return_X_y=True)
settings = {"n_estimators": 20, "max_depth": 8, "random_state": 0}
first = RandomForestClassifier(backend="numba", **settings).fit(X, y)
others = {
    "NumPy, the specification": RandomForestClassifier(backend="numpy", **settings),
    "compiled, all threads": RandomForestClassifier(backend="numba", n_jobs=-1, **settings),
    "with little memory": RandomForestClassifier(
        backend="numba", memory_limit=20_000_000, **settings
    ),
}
for name, forest in others.items():
    same = np.array_equal(forest.fit(X, y).forest_.nodes, first.forest_.nodes)
    print(f"{name:<26}{'the same' if same else 'another'} forest")

# %%
# What a fit takes can be asked for beforehand.
estimate = estimate_memory(first, *X.shape, n_classes=10)
parts = ["codes", "target", "binning", "bags", "growing", "forest"]
fig, ax = plt.subplots(figsize=(6.5, 2.8), layout="constrained")
ax.barh(parts, [getattr(estimate, part) / 1e6 for part in parts], color="#0072b2")
ax.invert_yaxis()
ax.set_xlabel("MB")
