"""
Regression: steps, and their mean
=================================

A tree predicts a step function. The mean over a forest has many small steps, and the noise of
single trees averages out.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import DecisionTreeRegressor, RandomForestRegressor
from gpuforest.plot import plot_steps

rng = np.random.default_rng(0)
X = rng.uniform(0, 6, (150, 1))
y = np.sin(X[:, 0]) + rng.normal(0, 0.3, 150)

tree = DecisionTreeRegressor(random_state=0).fit(X, y)
forest = RandomForestRegressor(200, min_samples_leaf=5, random_state=0).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
plot_steps(tree, X, y, feature_names=["x"], ax=axes[0])
plot_steps(forest, X, y, feature_names=["x"], n_trees=3, ax=axes[1])
axes[0].set_title("a tree grown to the end")
axes[1].set(title="a forest, and three of its trees", ylabel="")

grid = np.linspace(0.1, 5.9, 500)[:, None]
for name, model in (("tree", tree), ("forest", forest)):
    error = np.mean((model.predict(grid) - np.sin(grid[:, 0])) ** 2)
    print(f"{name:<7}mean squared error beside the sine {error:.3f}")
