"""
Arrays on a GPU
===============

Arrays of CuPy, torch or JAX that lie on a GPU stay there: predictions come back as the same kind
of array. Where there is no GPU, this example uses NumPy's arrays; the code and
the forest are the same.
"""

import numpy as np
from matplotlib import pyplot as plt

from gpuforest import RandomForestRegressor
from gpuforest.backends import gpu

why_not = gpu.why_not()
if why_not is None:
    import cupy as xp  # arrays on the device
else:
    xp = np
    print(f"no GPU here: {why_not}")

rng = np.random.default_rng(0)
numbers = rng.uniform(-3, 3, (5000, 2))
X, y = xp.asarray(numbers), xp.asarray(np.sinc(numbers[:, 0]) * np.cos(numbers[:, 1]))
forest = RandomForestRegressor(50, min_samples_leaf=3, random_state=0).fit(X, y)
found = forest.predict(X)
print(f"grown by {forest.backend_}; predictions are of {type(found).__module__}")

side = np.linspace(-3, 3, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
surface = np.asarray(forest.predict(grid)).reshape(120, 120)
fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
fig.colorbar(ax.pcolormesh(side, side, surface, cmap="RdBu_r"), label="prediction")
