"""
A tree in words, as Python and as a picture
===========================================

A tree is a set of rules. ``export_rules`` writes one line for each leaf, ``export_python`` a
function that needs no library, and ``plot_tree`` draws it.
"""

from sklearn.datasets import load_iris

from gpuforest import DecisionTreeClassifier, export_python, export_rules
from gpuforest.plot import plot_tree

iris = load_iris()
species = iris.target_names[iris.target]
names = [name.removesuffix(" (cm)") for name in iris.feature_names]
tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(iris.data, species)
print(export_rules(tree, feature_names=names, plain=True, decimals=2))

# %%
# The same tree as a picture, and as a function:
plot_tree(tree, feature_names=names)
names = [name.replace(" ", "_") for name in names]
made = {}
exec(export_python(tree, feature_names=names), made)
print(made["predict"](dict(zip(names, iris.data[100], strict=True))))
