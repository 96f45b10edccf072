"""
How many trees? The out-of-bag curve
====================================

Each tree sees about 63 % of the rows. Predicting every row by the trees that did not draw it is a
test that needs no test rows. The error by the number of trees falls, then stays level; more trees
do no harm.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from gpuforest import RandomForestClassifier
from gpuforest.plot import plot_oob

X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(500, oob_score=True, random_state=0).fit(X, y)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_oob(forest, ax=ax)

# %%
# ``n_estimators="auto"`` grows as many trees as it takes until the curve is level.
grown = RandomForestClassifier("auto", random_state=0).fit(X, y)
print(f"{grown.n_estimators_} trees, error {grown.oob_curve_.error[-1]:.3f}")
