"""
Anomalies: an isolation forest
==============================

Random cuts isolate a row that is unlike the others after few steps. The score of a row says how
many it takes, on average over the trees.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import IsolationForest

rng = np.random.default_rng(0)
usual = np.concatenate([rng.normal([-2, 0], 0.5, (300, 2)), rng.normal([2, 1], 0.7, (300, 2))])
strange = rng.uniform(-5, 5, (20, 2))
X = np.concatenate([usual, strange])
forest = IsolationForest(n_estimators=200, contamination=20 / 620, random_state=0).fit(X)
found = forest.predict(X) == -1
print(f"{found[-20:].sum()} of the 20 strange rows found, and {found[:-20].sum()} others")

side = np.linspace(-5.5, 5.5, 120)
a, b = np.meshgrid(side, side)
scores = forest.score_samples(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
fig, ax = plt.subplots(figsize=(6.5, 4.8), layout="constrained")
shades = ax.contourf(a, b, scores, 12, cmap="Blues_r")
ax.contour(a, b, scores, [forest.offset_], colors="#d55e00")
ax.plot(*usual.T, ".", color="black", ms=3, label="usual")
ax.plot(*strange.T, "x", color="#d55e00", label="strange")
fig.colorbar(shades, label="score")
ax.legend(loc="upper left")
