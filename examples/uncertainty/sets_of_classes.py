"""
Sets of classes
===============

``predict_set`` gives the classes that a row may belong to. Where a forest is sure, it is one
class; where it is not, two or more. The asked share of new rows has its true class in its set.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from gpuforest import RandomForestClassifier

X, X_test, y, y_test = train_test_split(
    *load_digits(return_X_y=True), test_size=0.5, random_state=0
)
forest = RandomForestClassifier(200, oob_score=True, random_state=0).fit(X, y)
for coverage in (0.9, 0.95, 0.99):
    sets = forest.predict_set(X_test, coverage=coverage)
    right = sets[np.arange(len(y_test)), y_test].mean()
    print(
        f"asked for {coverage}: {right:.3f} hold the digit, {sets.sum(axis=1).mean():.2f} classes"
    )

unsure = sets.sum(axis=1).argsort()[-10:]
fig, axes = plt.subplots(2, 5, figsize=(8, 3.8), layout="constrained")
for ax, row in zip(axes.flat, unsure, strict=True):
    ax.imshow(X_test[row].reshape(8, 8), cmap="Greys")
    ax.set_title(
        f"{y_test[row]}: may be " + ", ".join(map(str, np.flatnonzero(sets[row]))), fontsize=8
    )
    ax.axis("off")
