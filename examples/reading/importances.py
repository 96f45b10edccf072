"""
Importances that do not favour many values
==========================================

A feature of many values offers many splits, and some of them fit the noise of the training rows.
So the usual impurity importance favours it. Rows out of bag had no part in the choice of a split;
importances by these rows are 0 on average for features that say nothing.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import RandomForestClassifier, oob_permutation_importance

rng = np.random.default_rng(0)
levels = {"2 levels (tells)": 2, "4 levels": 4, "20 levels": 20, "200 levels": 200}
X = np.column_stack([rng.integers(0, n, 400) for n in levels.values()])
y = rng.random(400) < 0.3 + 0.4 * X[:, 0]
forest = RandomForestClassifier(200, max_features=1, unbiased_importances=True, random_state=0).fit(
    X, y
)

results = {
    "feature_importances_": forest.feature_importances_,
    "unbiased_feature_importances_": forest.unbiased_feature_importances_,
    "oob_permutation_importance": oob_permutation_importance(forest, X, y).importances_mean,
}
fig, axes = plt.subplots(1, 3, figsize=(10, 2.8), layout="constrained", sharey=True)
for ax, (title, found) in zip(axes, results.items(), strict=True):
    ax.barh(list(levels), found, color=["#0072b2", *["#bbbbbb"] * 3])
    ax.axvline(0, color="black", lw=0.8)
    ax.set_title(title, fontsize=9)
axes[0].invert_yaxis()
