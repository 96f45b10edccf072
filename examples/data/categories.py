"""
Categories as they are
======================

Strings in a frame are categories, without any encoding. A split sends a set of them to the left:
the best of all sets, not of an order that somebody chose.
"""

import numpy as np
import pandas as pd

from gpuforest import DecisionTreeRegressor, RandomForestRegressor, export_rules
from gpuforest.plot import plot_tree

rng = np.random.default_rng(0)
cities = np.array(["Bergen", "Cadiz", "Dublin", "Malaga", "Oslo", "Palermo"])
X = pd.DataFrame({"city": rng.choice(cities, 600), "month": rng.integers(1, 13, 600)})
warm = X["city"].isin(["Cadiz", "Malaga", "Palermo"])
y = 8 + 9 * warm - 8 * np.cos((X["month"] - 1) / 6 * np.pi) + rng.normal(0, 1, 600)

forest = RandomForestRegressor(oob_score=True, random_state=0).fit(X, y)
print(f"R2 out of bag {forest.oob_score_:.3f}; categorical: {forest.is_categorical_}")

tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y)
print(export_rules(tree, plain=True, decimals=1))
plot_tree(tree, precision=1)
