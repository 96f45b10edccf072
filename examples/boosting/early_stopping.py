"""
When to stop
============

Early stopping sets rows aside and ends when none of the last rounds made their loss smaller. The
picture shows the losses of both kinds of rows, and marks the best round.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from gpuforest import HistGradientBoostingRegressor
from gpuforest.plot import plot_loss

X, y = load_diabetes(return_X_y=True)
model = HistGradientBoostingRegressor(
    early_stopping=True, n_iter_no_change=40, max_leaf_nodes=8, random_state=0
).fit(X, y)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_loss(model, ax=ax)
best = model.validation_score_.argmax()
print(f"{model.n_iter_} rounds, the best of them {best}")
