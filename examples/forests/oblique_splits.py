"""
Oblique splits: sums of features
================================

Splits by one feature have borders along the axes, so a slanted border becomes a staircase. With
``feature_combinations`` a node also tries sums of several features.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import DecisionTreeClassifier, export_text
from gpuforest.plot import plot_boundaries

rng = np.random.default_rng(1)
X = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 300)
y = np.where(X[:, 1] - X[:, 0] + rng.normal(0, 0.15, 300) > 0, "above", "below")

straight = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(X, y)
slanted = DecisionTreeClassifier(
    max_leaf_nodes=2, feature_combinations=2, max_features=20, random_state=0
).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for ax, tree, title in zip(axes, (straight, slanted), ("6 leaves", "2 leaves"), strict=True):
    plot_boundaries(tree, X, y, feature_names=["x1", "x2"], legend=tree is slanted, ax=ax)
    ax.set_title(f"{title}: accuracy {tree.score(X, y):.2f}")

# %%
# A sum is shown in the units of its first feature.
print(export_text(slanted, feature_names=["x1", "x2"]))
