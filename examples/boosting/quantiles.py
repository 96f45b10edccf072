"""
Losses: quantiles and counts
============================

The loss says what is predicted. With "quantile" it is a quantile of the target, so two models
make an interval; with "poisson" it is the mean of a count, which is never negative.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import HistGradientBoostingRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (1500, 1)), axis=0)
mean = np.exp(1 + np.sin(X[:, 0]))
y = rng.poisson(mean)

settings = {"max_iter": 80, "max_leaf_nodes": 6, "random_state": 0}
counts = HistGradientBoostingRegressor(loss="poisson", **settings).fit(X, y)
low, high = (
    HistGradientBoostingRegressor(loss="quantile", quantile=q, **settings).fit(X, y).predict(X)
    for q in (0.1, 0.9)
)
print(f"{np.mean((low <= y) & (y <= high)):.2f} of the counts are inside")

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(X, y, ".", color="#999999", ms=3, label="counts")
ax.fill_between(X[:, 0], low, high, color="#56b4e9", alpha=0.5, label="10 % to 90 %", step="mid")
ax.plot(X, counts.predict(X), color="#d55e00", label="predicted mean")
ax.plot(X, mean, "--", color="black", lw=1, label="true mean")
ax.legend()
