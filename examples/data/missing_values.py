"""
Missing values
==============

Missing values need no imputation: each split sends them to the side where they do better. If that
a value is missing says something itself, trees can use that as well.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from gpuforest import RandomForestClassifier

X, y = load_breast_cancer(return_X_y=True)
rng = np.random.default_rng(0)
forest = RandomForestClassifier(100, random_state=0)
filled = make_pipeline(SimpleImputer(strategy="median"), forest)
shares, as_they_are, medians = (0.0, 0.2, 0.4, 0.6), [], []
for share in shares:
    holes = X.copy()
    # large values are missing more often
    holes[rng.random(X.shape) < share * 2 * (X.argsort(0).argsort(0) / len(X))] = np.nan
    as_they_are.append(cross_val_score(forest, holes, y, cv=3).mean())
    medians.append(cross_val_score(filled, holes, y, cv=3).mean())

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(shares, as_they_are, "o-", color="#0072b2", label="missing values as they are")
ax.plot(shares, medians, "^--", color="#d55e00", label="filled with medians")
ax.set(xlabel="share of missing values", ylabel="accuracy")
ax.legend()
