"""
Effects of a treatment
======================

A causal forest compares treated rows with untreated ones that are alike. Here the effect is known:
it rises with the first feature. Rows of a high second feature are treated more often, and have a
high y in any case, so the difference of the means of both arms says too much.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import CausalForest

rng = np.random.default_rng(0)
X = rng.uniform(size=(1500, 4))
treated = rng.uniform(size=1500) < 0.2 + 0.6 * X[:, 1]
truth = 1 / (1 + np.exp(-12 * (X[:, 0] - 0.5)))
y = 2 * X[:, 1] + truth * treated + rng.normal(0, 0.5, 1500)

forest = CausalForest(500, random_state=0).fit(X, y, treatment=treated)
average, naive = forest.ate(), y[treated].mean() - y[~treated].mean()
print(f"true average {truth.mean():.2f}, difference of the arms {naive:.2f}")
print(f"forest {average.estimate:.2f}, interval {average.low:.2f} to {average.high:.2f}")

grid = np.full((200, 4), 0.5)
grid[:, 0] = np.linspace(0, 1, 200)
effect, (low, high) = forest.effect(grid), forest.effect_interval(grid)

fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.fill_between(grid[:, 0], low, high, color="#56b4e9", alpha=0.4, label="95 % interval")
ax.plot(grid[:, 0], effect, color="#0072b2", lw=1.5, label="effect by the forest")
ax.plot(grid[:, 0], 1 / (1 + np.exp(-12 * (grid[:, 0] - 0.5))), "k--", lw=1, label="true effect")
ax.axhline(naive, color="#d55e00", lw=1, label="difference of the arms")
ax.set(xlabel="first feature", ylabel="effect on y")
ax.legend(loc="lower right")
