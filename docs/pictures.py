"""Draw the pictures of these pages: python docs/pictures.py [FOLDER]"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_iris

from gpuforest import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gpuforest.plot import (
    plot_boundaries,
    plot_importances,
    plot_impurity,
    plot_oob,
    plot_pruning,
    plot_steps,
    plot_tree,
)
from gpuforest.plot.style import PALETTE
from gpuforest.reweighting import samme

FOLDER = Path(__file__).parent / "images"
DPI, COLOURS = 100, 128  # few colours make small files
IRIS, CANCER = load_iris(), load_breast_cancer()
SPECIES = IRIS.target_names[IRIS.target]
PETALS, PETAL_NAMES = IRIS.data[:, 2:], IRIS.feature_names[2:]


def pair() -> Any:
    """Two axes side by side, of one scale."""
    from matplotlib import pyplot

    return pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True, sharey=True)[
        1
    ]


def tree() -> Any:
    model = DecisionTreeClassifier(max_depth=3).fit(IRIS.data, SPECIES)
    return plot_tree(model, feature_names=IRIS.feature_names)


def boundaries() -> Any:
    left, right = pair()
    single = DecisionTreeClassifier(random_state=0).fit(PETALS, SPECIES)
    forest = RandomForestClassifier(100, random_state=0).fit(PETALS, SPECIES)
    plot_boundaries(single, PETALS, SPECIES, feature_names=PETAL_NAMES, legend=False, ax=left)
    plot_boundaries(forest, PETALS, SPECIES, feature_names=PETAL_NAMES, ax=right)
    left.set_title("one tree")
    right.set(title="a forest of 100", ylabel="")
    return right


def steps() -> Any:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (120, 1))
    y = np.sin(X[:, 0]) + rng.normal(0, 0.25, 120)
    left, right = pair()
    forest = RandomForestRegressor(100, max_depth=4, random_state=0).fit(X, y)
    plot_steps(DecisionTreeRegressor(max_depth=3).fit(X, y), X, y, feature_names=["x"], ax=left)
    plot_steps(forest, X, y, feature_names=["x"], ax=right)
    right.set_ylabel("")
    return right


def pruning() -> Any:
    model = DecisionTreeClassifier(ccp_alpha="cv", ccp_rule="one_se", random_state=0)
    return plot_pruning(model.fit(CANCER.data, CANCER.target))


def oob() -> Any:
    forest = RandomForestClassifier(500, oob_score=True, random_state=0)
    return plot_oob(forest.fit(CANCER.data, CANCER.target))


def importances() -> Any:
    forest = RandomForestClassifier(100, random_state=0).fit(CANCER.data, CANCER.target)
    return plot_importances(forest, top=10, feature_names=CANCER.feature_names)


def impurity() -> Any:
    return plot_impurity()


def weights() -> Any:
    """The rows' weights in four rounds of AdaBoost, and the cut of each round's stump."""
    from matplotlib import pyplot

    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (80, 2))
    y = (X**2).sum(axis=1) > 0.6
    axes = pyplot.subplots(1, 4, figsize=(9, 2.6), layout="constrained", sharex=True, sharey=True)[
        1
    ]
    model = AdaBoostClassifier(n_estimators=50, random_state=0).fit(X, y)
    shares = np.full(len(y), 1 / len(y))
    for t, ax in enumerate(axes):
        own = model[t]
        for label, colour, marker in ((False, PALETTE[0], "o"), (True, PALETTE[1], "^")):
            some = y == label
            ax.scatter(*X[some].T, s=1500 * shares[some], c=colour, marker=marker, alpha=0.7)
        cut = (ax.axvline, ax.axhline)[int(own.tree_.feature[0])]
        cut(own.tree_.threshold[0], color="black", lw=1.2)
        ax.set(title=f"round {t + 1}: error {model.estimator_errors_[t]:.2f}", xticks=[], yticks=[])
        found = samme(own.predict(X) != y, shares, 2, 1.0)
        assert found is not None
        shares = shares * found.factors
        shares /= shares.sum()
    return axes[0]


PICTURES = (tree, boundaries, steps, pruning, oob, importances, impurity, weights)


def main(folder: Path = FOLDER) -> None:
    """Draw them all."""
    matplotlib.use("agg")
    for draw in PICTURES:
        drawn = BytesIO()
        draw().figure.savefig(drawn, dpi=DPI)
        picture = Image.open(drawn).convert("RGB").quantize(COLOURS)
        picture.save(folder / f"{draw.__name__}.png", optimize=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
