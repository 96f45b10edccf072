"""
SHAP values: why this prediction?
=================================

SHAP values share out the difference between a prediction and the mean prediction among the
features. They add up to it exactly. One picture shows all rows, the other one row, step by step.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from gpuforest import RandomForestRegressor
from gpuforest.plot import plot_shap_summary, plot_shap_waterfall

X, y = load_diabetes(return_X_y=True, as_frame=True)
forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X, y)
values = forest.shap_values(X)
total = forest.expected_value_ + values.sum(axis=1)
print(f"largest difference from the prediction: {abs(total - forest.predict(X)).max():.1e}")

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
plot_shap_summary(forest, X, values=values, ax=ax)

# %%
# A point is a row; the lighter it is, the larger its value of the feature. A single row:
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plot_shap_waterfall(forest, X, 5, top=7, ax=ax)
