"""
Which labels are wrong? Leave each row out
==========================================

Some labels of this table were turned around. A wrong label makes predictions of other rows worse,
so the loss on held-out rows falls when its row leaves. With ``bootstrap="poisson"`` a forest can
forget a row: ``influence`` is the change of the loss between two fits of the same bins, and no
estimate.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from gpuforest import RandomForestClassifier

X, y = make_moons(1500, noise=0.2, random_state=0)
X = X.round(1)  # few values: fewer splits that a row may turn
X, X_test, y, y_test = X[:500], X[500:], y[:500], y[500:]
wrong = np.random.default_rng(0).choice(500, 25, replace=False)
labels = y.copy()
labels[wrong] = 1 - y[wrong]

forest = RandomForestClassifier(min_samples_leaf=3, bootstrap="poisson", random_state=0)
forest.fit(X, labels)
change = forest.influence(X_test, y_test, X=X, y=labels)
suspects = change.argsort()[:25]
print(f"{np.isin(suspects, wrong).sum()} of the 25 rows that do most harm have a wrong label")

jitter = np.random.default_rng(1).normal(0, 0.02, X.shape)
fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for label, colour, marker in zip((0, 1), ("#0072b2", "#e69f00"), "os", strict=True):
    axes[0].scatter(*(X + jitter)[labels == label].T, c=colour, marker=marker, s=14)
axes[0].scatter(*(X + jitter)[suspects].T, s=90, facecolors="none", edgecolors="black")
axes[0].set(title="labels as given; circles: the 25 suspects", xticks=[], yticks=[])

# %%
# Rows in the order of the harm that they do, and the share of wrong labels found among the first.
found = np.isin(change.argsort(), wrong).cumsum() / len(wrong)
axes[1].plot(np.arange(1, 501), found, c="#009e73", label="by influence")
axes[1].plot([1, 500], [0, 1], c="grey", ls="--", label="by chance")
axes[1].set(xlabel="rows looked at", ylabel="share of wrong labels found")
axes[1].legend()
