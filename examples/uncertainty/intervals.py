"""
Prediction intervals
====================

``predict_interval`` says between which numbers a target will lie. The width comes from rows out
of bag, and it is larger where the trees disagree. Nothing is assumed of the noise.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import RandomForestRegressor

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (1200, 1)), axis=0)
y = np.sin(X[:, 0]) * 2 + rng.normal(0, 0.1 + 0.1 * X[:, 0])  # the noise grows
train = rng.random(1200) < 0.7

forest = RandomForestRegressor(300, min_samples_leaf=5, oob_score=True, random_state=0)
forest.fit(X[train], y[train])
test, truth = X[~train], y[~train]
low, high = forest.predict_interval(test, coverage=0.9).T
inside = (low <= truth) & (truth <= high)
print(f"{inside.mean():.3f} of the new rows are inside, asked for 0.9")

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.fill_between(test[:, 0], low, high, color="#56b4e9", alpha=0.4, label="90 % interval")
ax.plot(test, forest.predict(test), color="#0072b2", lw=1, label="prediction")
ax.plot(test[inside], truth[inside], ".", color="#666666", ms=4, label="inside")
ax.plot(test[~inside], truth[~inside], "x", color="#d55e00", ms=5, label="outside")
ax.legend(loc="lower left")
