"""
Partial dependence
==================

What does a feature do, on average over the rows? scikit-learn draws it for these estimators as
for its own. The thin lines are single rows: where they are not parallel, the feature interacts
with others.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay

from gpuforest import RandomForestRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, y)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
PartialDependenceDisplay.from_estimator(
    forest, X, ["bmi", "s5"], kind="both", subsample=60, random_state=0, ax=axes
)
