"""
Spam, from a file to a report of errors
=======================================

The Spambase e-mails come with the repository. Which words make a forest call a mail spam, and how
many mails does it get wrong at which threshold?
"""

import pandas as pd
from matplotlib import pyplot as plt
from sklearn.metrics import PrecisionRecallDisplay

from gpuforest import RandomForestClassifier
from gpuforest.plot import plot_importances

mails = pd.read_csv("../../data/spambase.csv.gz")
X, y = mails.drop(columns="class"), mails["class"]
forest = RandomForestClassifier(200, oob_score=True, random_state=0).fit(X, y)
print(f"accuracy out of bag {forest.oob_score_:.3f}")

fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
plot_importances(forest, top=10, ax=axes[0])
PrecisionRecallDisplay.from_predictions(
    y == forest.classes_[1], forest.oob_decision_function_[:, 1], ax=axes[1], name="out of bag"
)
axes[1].set(xlim=(0.5, 1.01), ylim=(0.5, 1.01), title=f"finding {forest.classes_[1]}")
