"""Curves: impurity against proportions, errors against alpha and against the number of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gpuforest import impurity
from gpuforest.engine.criteria import CRITERIA
from gpuforest.tools.plot.style import INK, LINES, PALE_INK, PALETTE, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 201  # of the impurities; odd, so that one half is among them
DECADES = 30.0  # a range of alphas by more than this factor is shown by their logarithms
DENSE = 40  # alphas, above which error bars are pale and without ends
MOST_TICKS = 9  # numbers of leaves above the axis


def plot_impurity(*, ax: Axes | None = None) -> Axes:
    """Draw the impurities of a node of two classes against the proportion of one of them.

    Half the entropy is there too, because it is all but the Gini impurity.

    Parameters
    ----------
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest.plot import plot_impurity
    >>> plot_impurity().figure.savefig("impurity.png")  # doctest: +SKIP
    """
    p = np.linspace(0.0, 1.0, POINTS)
    both = np.stack([p, 1 - p], axis=1)
    entropy = impurity.entropy(both)
    curves = {
        "entropy (bits)": entropy,
        "half the entropy": entropy / 2,
        "Gini impurity": impurity.gini(both),
        "misclassification": impurity.misclassification(both),
    }
    with drawing(ax) as ax:
        for (name, values), line, colour in zip(curves.items(), LINES, PALETTE, strict=False):
            ax.plot(p, values, line, color=colour, label=name)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="impurity")
        ax.set_xlabel("p, the proportion of one of two classes")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_pruning(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the errors that a tree's alpha was chosen by, with their standard errors.

    The numbers of leaves stand above. A dotted line is at the least error and one standard error
    more: subtrees below it are as good as far as the rows can tell.

    Parameters
    ----------
    estimator : fitted DecisionTree*, whose alpha was chosen: by `ccp_alpha="cv"` or `prune`
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : an estimator that no alpha was chosen for
    ImportError : no matplotlib
    """
    curve = _curve(
        estimator,
        "pruning_curve_",
        "fit a DecisionTree* with ccp_alpha='cv', or prune it by rows held out",
    )
    best = np.flatnonzero(curve.errors == curve.errors.min())[-1]
    chosen = int(np.flatnonzero(curve.ccp_alphas == estimator.ccp_alpha_)[0])
    with drawing(ax) as ax:
        _set_alpha_scale(ax, curve.ccp_alphas)
        is_dense = len(curve.errors) > DENSE
        ax.errorbar(
            curve.ccp_alphas,
            curve.errors,
            curve.std_errors,
            fmt="o-",
            color=PALETTE[0],
            ecolor=PALE_INK if is_dense else INK,
            elinewidth=0.7,
            capsize=0 if is_dense else 2,
            markersize=2.5 if is_dense else 4,
            label="error ± 1 standard error",
        )
        ax.axhline(
            curve.errors[best] + curve.std_errors[best],
            color=INK,
            lw=1,
            ls=":",
            label="least error + 1 standard error",
        )
        ax.plot(
            curve.ccp_alphas[chosen],
            curve.errors[chosen],
            "s",
            color=PALETTE[5],
            markeredgecolor=INK,
            markersize=8,
            zorder=3,
            label=f"chosen: {curve.n_leaves[chosen]} leaves, alpha = {estimator.ccp_alpha_:.3g}",
        )
        ax.set(xlabel="alpha", ylabel=f"error: {CRITERIA[estimator.criterion_].loss.name}")
        handles, labels = ax.get_legend_handles_labels()
        order = [-1, -2, 0]  # bars come last by themselves
        ax.legend([handles[i] for i in order], [labels[i] for i in order])
        _add_leaves(ax, curve)
    return ax


def plot_oob(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw a forest's out-of-bag error against the number of its trees.

    Parameters
    ----------
    estimator : forest or bag of gpuforest, fitted with oob_score=True or n_estimators="auto"
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis

    Raises
    ------
    ValueError : an estimator whose out-of-bag errors were not computed
    ImportError : no matplotlib
    """
    curve = _curve(
        estimator, "oob_curve_", "fit a forest with oob_score=True or n_estimators='auto'"
    )
    name = "share of wrong rows" if is_classifier(estimator) else "1 - R²"
    with drawing(ax) as ax:
        ax.plot(curve.n_estimators, curve.error, "o-", color=PALETTE[0])
        ax.annotate(
            f"{curve.error[-1]:.3g}",
            (curve.n_estimators[-1], curve.error[-1]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="right",
        )
        ax.set(xlabel="number of trees", ylabel=f"out-of-bag error: {name}")
        ax.set_xlim(left=0)
    return ax


def _curve(estimator: Any, name: str, how: str) -> Any:
    """An attribute of a fitted estimator."""
    check_is_fitted(estimator)
    curve = getattr(estimator, name, None)
    if curve is None:
        raise ValueError(f"this {type(estimator).__name__} has no {name}: {how}")
    return curve


def _set_alpha_scale(ax: Axes, alphas: np.ndarray) -> None:
    """Logarithms, but for zero, where alphas are of many magnitudes."""
    positive = alphas[alphas > 0]
    if len(positive) and positive[-1] > DECADES * positive[0]:
        first = np.floor(np.log10(positive[0]))
        # a tenth of the axis is for all below, so that 0 has room for its label
        decades = max(0.5, (np.log10(positive[-1]) - first) / 10)
        ax.set_xscale("symlog", linthresh=10.0**first, linscale=decades)


def _add_leaves(ax: Axes, curve: Any) -> None:
    """The numbers of leaves above the axis, where there is room for them."""
    limits = ax.get_xlim()
    top = ax.twiny()
    top.set(xscale=ax.get_xscale(), xlim=limits, xlabel="leaves")
    if ax.get_xscale() == "symlog":
        _set_alpha_scale(top, curve.ccp_alphas)
        top.set_xlim(limits)
    at = ax.transScale.transform([(alpha, 0) for alpha in curve.ccp_alphas])[:, 0]
    least, ticks = np.ptp(at) / MOST_TICKS, [len(at) - 1]
    for i in range(len(at) - 2, 0, -1):
        if min(at[ticks[-1]] - at[i], at[i] - at[0]) >= least:
            ticks.append(i)
    ticks += [0] * (len(at) > 1)
    top.set_xticks(curve.ccp_alphas[ticks], [f"{curve.n_leaves[i]:,}" for i in ticks])
    top.minorticks_off()
    top.spines[["right", "bottom"]].set_visible(False)
    top.spines["top"].set_visible(True)
