"""
Monotonic constraints
=====================

Where it is known that a target cannot fall as a feature rises, such as a price with the size,
``monotonic_cst`` keeps the model to it. The noise of few rows can no longer turn the curve round.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import HistGradientBoostingRegressor, RandomForestRegressor

rng = np.random.default_rng(3)
X = np.sort(rng.uniform(0, 10, (120, 1)), axis=0)
y = np.log1p(X[:, 0]) + rng.normal(0, 0.3, 120)
grid = np.linspace(0, 10, 800)[:, None]

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
models = {
    "boosting": HistGradientBoostingRegressor(min_samples_leaf=5, random_state=0),
    "a forest": RandomForestRegressor(min_samples_leaf=3, random_state=0),
}
for ax, (title, model) in zip(axes, models.items(), strict=True):
    ax.plot(X, y, ".", color="#999999", ms=4)
    for signs, style, name in ((None, ":", "free"), ([1], "-", "rising")):
        found = model.set_params(monotonic_cst=signs).fit(X, y).predict(grid)
        ax.plot(grid, found, style, color="#0072b2" if signs else "#d55e00", label=name)
        falls = np.sum(np.diff(found) < 0)
        print(f"{title}, {name}: falls {falls} times")
    ax.set_title(title)
axes[1].legend()
