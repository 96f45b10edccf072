"""
AdaBoost: rows that are wrong weigh more
========================================

Each stump makes one cut. The rows that it gets wrong weigh more for the next one, and all of them
vote. So a circle becomes learnable by single cuts.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import AdaBoostClassifier
from gpuforest.plot import plot_boundaries

rng = np.random.default_rng(2)
X = rng.uniform(-1, 1, (300, 2))
y = np.where((X**2).sum(axis=1) > 0.6, "outside", "inside")

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, n in zip(axes, (1, 10, 200), strict=True):
    model = AdaBoostClassifier(n_estimators=n, random_state=0).fit(X, y)
    plot_boundaries(model, X, y, feature_names=["a", "b"], legend=n == 200, ax=ax)
    ax.set_title(f"{n} stump{'s' * (n > 1)}: accuracy {model.score(X, y):.2f}")
