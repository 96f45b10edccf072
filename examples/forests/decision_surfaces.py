"""
Decision surfaces of a tree, a forest and boosting
==================================================

A tree cuts the plane into rectangles, each with one class. A forest averages many trees, so its
borders are finer and its colours fade where the classes overlap. Extra trees draw their cuts at
random, which makes the borders smoother still. Boosting adds small trees up.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_iris

from gpuforest import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from gpuforest.plot import plot_boundaries

iris = load_iris()
petals, names = iris.data[:, 2:], iris.feature_names[2:]
species = iris.target_names[iris.target]

models = {
    "one tree": DecisionTreeClassifier(random_state=0),
    "a random forest": RandomForestClassifier(random_state=0),
    "extra trees": ExtraTreesClassifier(min_samples_leaf=2, random_state=0),
    "gradient boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}
fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", sharex=True, sharey=True)
for ax, (title, model) in zip(axes.flat, models.items(), strict=True):
    model.fit(petals, species)
    plot_boundaries(model, petals, species, feature_names=names, legend=ax is axes[0, 1], ax=ax)
    ax.set_title(title)

# %%
# The deeper a colour, the larger the lead of the class. A tree that is grown to the end has one
# colour only: it is sure everywhere, also where it should not be.
