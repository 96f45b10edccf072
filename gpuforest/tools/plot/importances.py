"""Importances of features as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.tools.plot.style import INK, PALETTE, SIZE, drawing, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT, MARGINS = 0.24, 0.9  # inches of a bar, and above and below all


def plot_importances(
    importances: Any,
    *,
    top: int | None = 20,
    feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the features' importances, largest first, with their standard deviations: over
    trees, or as they were found.

    Parameters
    ----------
    importances : fitted estimator of gpuforest, for its `feature_importances_`; or what
        `oob_permutation_importance`, `oob_impurity_importance` or scikit-learn's
        `permutation_importance` found
    top : int >= 1, how many features; None: all
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : top below 1, a wrong number of names
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest import RandomForestClassifier
    >>> from gpuforest.plot import plot_importances
    >>> forest = RandomForestClassifier(10).fit([[0, 0], [1, 0], [0, 1]], ["a", "b", "c"])
    >>> ax = plot_importances(forest, feature_names=["x", "y"])  # doctest: +SKIP
    """
    if top is not None and top < 1:
        raise ValueError(f"top={top} features are none: pass 1 or more")
    if hasattr(importances, "importances_mean"):
        means, spread = importances.importances_mean, importances.importances_std
        label = getattr(importances, "measure", "decrease of the score when permuted")
    else:
        check_is_fitted(importances)
        means = getattr(importances, "feature_importances_", None)
        if means is None:
            name = type(importances).__name__
            raise ValueError(f"{name} has no importances: its cuts are random")
        spread = _spread(importances)
        boosted = importances.forest_.baseline is not None
        label = f"{'gain of splits' if boosted else 'decrease of impurity'}, as a share of all"
        if feature_names is None:
            feature_names = getattr(importances, "feature_names_in_", None)
    if feature_names is None:
        feature_names = [f"feature_{i}" for i in range(len(means))]
    if len(feature_names) != len(means):
        raise ValueError(
            f"feature_names has {len(feature_names)} names, the importances {len(means)}: "
            "pass a name for each feature"
        )
    order = np.argsort(-means, kind="stable")[:top]
    rows = np.arange(len(order))
    with drawing(ax, (SIZE[0], MARGINS + HEIGHT * len(order))) as ax:
        ax.barh(
            rows,
            means[order],
            height=0.7,
            color=PALETTE[4],
            edgecolor=INK,
            linewidth=0.5,
            xerr=None if spread is None else spread[order],
            error_kw={"ecolor": INK, "elinewidth": 0.8, "capsize": 2},
        )
        ax.set_yticks(rows, [plain(feature_names[i]) for i in order])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlabel(label if spread is None else f"{label}\n± standard deviation")
        if (means >= 0).all():
            ax.set_xlim(left=0)
    return ax


def _spread(estimator: Any) -> np.ndarray | None:
    """Standard deviations f64[F] of the trees' importances; None: it is a single tree, or trees
    that share one task."""
    trees = getattr(estimator, "estimators_", None)
    if trees is None:
        return None
    return np.asarray(np.std([tree.feature_importances_ for tree in trees], axis=0))
