"""
Boosting, round by round
========================

Each round grows a small tree on the residuals, and adds a tenth of what it predicts. After some
rounds the residuals are mere noise; later rounds learn it.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import HistGradientBoostingRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, (200, 1)), axis=0)
y = np.sin(X[:, 0]) + rng.normal(0, 0.2, 200)
model = HistGradientBoostingRegressor(max_leaf_nodes=4, min_samples_leaf=5, random_state=0)
stages = list(model.fit(X, y).staged_predict(X))

fig, axes = plt.subplots(2, 4, figsize=(9, 4.4), layout="constrained", sharex=True, sharey=True)
for (above, below), n in zip(axes.T, (1, 5, 20, 100), strict=True):
    above.plot(X, y, ".", color="#888888", ms=3)
    above.plot(X, stages[n - 1], color="#0072b2")
    above.set_title(f"{n} round{'s' * (n > 1)}")
    below.plot(X, y - stages[n - 1], ".", color="#d55e00", ms=3)
    below.axhline(0, color="black", lw=0.8)
    print(f"{n:3} rounds: mean squared residual {np.mean((y - stages[n - 1]) ** 2):.3f}")
axes[0, 0].set_ylabel("data, prediction")
axes[1, 0].set_ylabel("residuals")
