"""
More rows than memory
=====================

``BinnedData.from_blocks`` passes over the data block by block and keeps one byte for each value,
in memory or in a file. The forest is the same, bit for bit, as from one array.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import BinnedData, HistGradientBoostingClassifier, predict_blocks


def blocks():
    """Ten blocks of rows, as if each was read from a file."""
    for number in range(10):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(5000, 8)).round(2)
        yield X, (X[:, 0] * X[:, 1] + rng.normal(size=5000) > 0).astype(int)


data = BinnedData.from_blocks(blocks, max_bins=255, random_state=0)
model = HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0).fit(data)
X, y = (np.concatenate(parts) for parts in zip(*blocks(), strict=True))
whole = HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0).fit(X, y)
print("the same predictions:", (model.predict_proba(X) == whole.predict_proba(X)).all())
print(f"{len(X)} rows: {X.nbytes / 1e6:.1f} MB as numbers, {X.size / 1e6:.1f} MB as bins")

# %%
# Predictions come block by block too.
fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
found = predict_blocks(model, (X for X, _ in blocks()), method="predict_proba")
for block in found:
    ax.hist(block[:, 1], 40, histtype="step", color="#0072b2", alpha=0.5)
ax.set(xlabel="probability of the second class", ylabel="rows of a block")
