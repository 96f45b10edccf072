"""
Quantile forests: the whole distribution
========================================

A quantile forest keeps the targets of its training rows. The rows that share leaves with a new
row give the distribution of its target, here of waiting times that are far from normal.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import RandomForestQuantileRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (3000, 1)), axis=0)
y = rng.gamma(2, 1 + X[:, 0] / 3)

forest = RandomForestQuantileRegressor(200, min_samples_leaf=40, random_state=0).fit(X, y)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
grid = np.linspace(0.2, 9.8, 200)[:, None]
found = forest.predict(grid, quantiles=levels)

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(X[::3], y[::3], ".", color="#bbbbbb", ms=3)
for level, line in zip(levels, found.T, strict=True):
    ax.plot(grid, line, color="#0072b2", lw=2 if level == 0.5 else 1)
    ax.text(9.9, line[-1], f"{level:.0%}", va="center")
ax.set(xlim=(0, 10.7), ylim=(0, 22), xlabel="x", ylabel="waiting time")

# %%
# ``quantile_ranks`` goes the other way: which share of the distribution lies below a target?
print(forest.quantile_ranks([[1.0], [9.0]], [6.0, 6.0]).round(2))
