"""
Proximities: a map of the rows
==============================

Two rows are similar to a forest if they share a leaf in many trees. From these proximities any
method for distances draws a map, here classical scaling; rows that lie far from the others of
their class are outliers.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

from gpuforest import RandomForestClassifier, proximity_outliers

X, y = load_wine(return_X_y=True)
forest = RandomForestClassifier(500, min_samples_leaf=3, random_state=0).fit(X, y)
near = forest.proximity(X)
strange = proximity_outliers(near, y)

squared = 1 - near.toarray()
centring = np.eye(len(X)) - 1 / len(X)
values, vectors = np.linalg.eigh(-0.5 * centring @ squared @ centring)
places = vectors[:, -2:] * np.sqrt(values[-2:])

fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
for label, colour, marker in zip(range(3), ("#0072b2", "#e69f00", "#009e73"), "o^s", strict=True):
    some = y == label
    ax.scatter(*places[some].T, c=colour, marker=marker, s=20, label=f"class {label}")
far = strange.argsort()[-5:]
ax.scatter(*places[far].T, s=120, facecolors="none", edgecolors="black", label="outliers")
ax.set(xticks=[], yticks=[])
ax.legend()
