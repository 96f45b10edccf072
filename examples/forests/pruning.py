"""
Pruning by cross-validation
===========================

A tree that is grown to the end learns the noise of its rows. Cost-complexity pruning makes nested
subtrees of it, and cross-validation finds the one with the least error. The smallest tree whose
error is within one standard error of the least is easier to read and hardly worse.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gpuforest import DecisionTreeClassifier
from gpuforest.plot import plot_pruning, plot_tree

data = load_breast_cancer()
X, X_test, y, y_test = train_test_split(data.data, data.target, random_state=0)
full = DecisionTreeClassifier(random_state=0).fit(X, y)
small = DecisionTreeClassifier(ccp_alpha="cv", ccp_rule="one_se", random_state=0).fit(X, y)
for name, tree in (("full", full), ("pruned", small)):
    print(f"{name:<7}{tree.get_n_leaves():3} leaves, accuracy {tree.score(X_test, y_test):.3f}")

fig, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
plot_pruning(small, ax=ax)

# %%
# What is left of the tree:
plot_tree(small, feature_names=data.feature_names, class_names=data.target_names)
