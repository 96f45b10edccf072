"""
Why forests average: bias and variance
======================================

The error of a model is what it gets wrong on average (bias) and how much it changes with the rows
that it was trained on (variance). Deep trees have little bias and much variance. A forest keeps
the former and averages the latter away.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import make_friedman1

from gpuforest import (
    DecisionTreeRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    bias_variance,
)

X, y = make_friedman1(600, noise=1.0, random_state=0)
X_test, y_test = make_friedman1(500, noise=0.0, random_state=1)

models = {
    "a tree of depth 3": DecisionTreeRegressor(max_depth=3),
    "a deep tree": DecisionTreeRegressor(),
    "a forest": RandomForestRegressor(50, max_features=1 / 3),
    "boosting": HistGradientBoostingRegressor(max_iter=60),
}
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, model in models.items():
    found = bias_variance(model, X, y, X_test, y_test, n_rounds=15, random_state=0)
    print(f"{name:<18}bias {found.bias:5.2f}  variance {found.variance:5.2f}")
    ax.barh(name, found.bias, color="#0072b2")
    ax.barh(name, found.variance, left=found.bias, color="#e69f00")
ax.invert_yaxis()
ax.set_xlabel("mean squared error: squared bias (blue) and variance (orange)")
