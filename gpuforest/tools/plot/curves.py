"""Curves of impurities, errors and losses, and importances as bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from gpuforest import impurity
from gpuforest.core.criteria import CRITERIA
from gpuforest.data.arrays import to_host
from gpuforest.explain.importances import importance_spread
from gpuforest.explain.model_facts import best_round, kept_curves, measure_of, score_name
from gpuforest.explain.model_facts import feature_names as known_names
from gpuforest.tools.plot import style

POINTS = 201  # of the impurities; odd, so that one half is among them
DECADES = 30.0  # a range of alphas by more than this factor is shown by their logarithms
DENSE = 40  # alphas, above which error bars are pale and without ends
MOST_TICKS = 9  # numbers of leaves above the axis
GIVEN = "rows passed"  # what the curve of X and y is called
HEIGHT, MARGINS = 0.24, 0.9  # inches of a bar, and above and below all


def plot_impurity(*, ax: style.Axes | None = None) -> style.Axes:
    """Draw the impurities of a node of two classes against the proportion of one of them.

    Half the entropy is there too, because it is all but the Gini impurity.

    Parameters
    ----------
    ax : matplotlib axis, which is returned; None: that of a new figure
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
    with style.drawing(ax) as ax:
        for (name, values), line, colour in zip(
            curves.items(), style.LINES, style.PALETTE, strict=False
        ):
            ax.plot(p, values, line, color=colour, label=name)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="impurity")
        ax.set_xlabel("p, the proportion of one of two classes")
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def plot_pruning(estimator: Any, *, ax: style.Axes | None = None) -> style.Axes:
    """Draw the errors that a tree's alpha was chosen by, with their standard errors.

    The numbers of leaves stand above. A dotted line is at the least error and one standard error
    more: subtrees below it are as good as far as the rows can tell.

    Parameters
    ----------
    estimator : fitted DecisionTree*, whose alpha was chosen: by `ccp_alpha="cv"` or `prune`
    ax : matplotlib axis, which is returned; None: that of a new figure

    Raises
    ------
    ValueError : an estimator that no alpha was chosen for
    """
    curve = _kept_curve(
        estimator,
        "pruning_curve_",
        "fit a DecisionTree* with ccp_alpha='cv', or prune it by rows held out",
    )
    alphas, errors, deviations = curve.ccp_alphas, curve.errors, curve.std_errors
    best = np.flatnonzero(errors == errors.min())[-1]
    chosen = int(np.flatnonzero(alphas == estimator.ccp_alpha_)[0])
    with style.drawing(ax) as ax:
        _set_alpha_scale(ax, alphas)
        bars: Any = {
            "color": style.PALETTE[0],
            "elinewidth": 0.7,
            "label": "error ± 1 standard error",
        }
        if len(errors) > DENSE:
            bars |= {"ecolor": style.PALE_INK, "capsize": 0, "markersize": 2.5}
        else:
            bars |= {"ecolor": style.INK, "capsize": 2, "markersize": 4}
        ax.errorbar(alphas, errors, deviations, fmt="o-", **bars)
        level, label = errors[best] + deviations[best], "least error + 1 standard error"
        ax.axhline(level, color=style.INK, lw=1, ls=":", label=label)
        label = f"chosen: {curve.n_leaves[chosen]} leaves, alpha = {estimator.ccp_alpha_:.3g}"
        ax.plot(alphas[chosen], errors[chosen], label=label, **style.CHOSEN)
        ax.set(xlabel="alpha", ylabel=f"error: {CRITERIA[estimator.criterion_].loss_name}")
        handles, labels = ax.get_legend_handles_labels()
        order = [-1, -2, 0]  # bars come last by themselves
        ax.legend([handles[i] for i in order], [labels[i] for i in order])
        _add_leaves(ax, curve)
    return ax


def plot_oob(estimator: Any, *, ax: style.Axes | None = None) -> style.Axes:
    """Draw a forest's out-of-bag error against the number of its trees.

    Parameters
    ----------
    estimator : forest or bag of gpuforest, fitted with oob_score=True or n_estimators="auto"
    ax : matplotlib axis, which is returned; None: that of a new figure

    Raises
    ------
    ValueError : an estimator whose out-of-bag errors were not computed
    """
    curve = _kept_curve(
        estimator, "oob_curve_", "fit a forest with oob_score=True or n_estimators='auto'"
    )
    score = score_name(estimator)
    name = "share of wrong rows" if score == "accuracy" else f"1 - {score}"
    with style.drawing(ax) as ax:
        ax.plot(curve.n_estimators, curve.error, "o-", color=style.PALETTE[0])
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


def _kept_curve(estimator: Any, name: str, how: str) -> Any:
    """An attribute of a fitted estimator."""
    check_is_fitted(estimator)
    curve = getattr(estimator, name, None)
    if curve is None:
        raise ValueError(f"this {type(estimator).__name__} has no {name}: {how}")
    return curve


def _set_alpha_scale(ax: style.Axes, alphas: np.ndarray) -> None:
    """Logarithms, except at zero, where alphas are of many magnitudes."""
    positive = alphas[alphas > 0]
    if len(positive) and positive[-1] > DECADES * positive[0]:
        first = np.floor(np.log10(positive[0]))
        # a tenth of the axis is for all below, so that 0 has room for its label
        decades = max(0.5, (np.log10(positive[-1]) - first) / 10)
        ax.set_xscale("symlog", linthresh=10.0**first, linscale=decades)


def _add_leaves(ax: style.Axes, curve: Any) -> None:
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


def plot_loss(
    estimator: Any, X: Any = None, y: Any = None, *, ax: style.Axes | None = None
) -> style.Axes:
    """Draw the loss of a boosted model against its rounds, and mark the best one.

    Parameters
    ----------
    estimator : fitted HistGradientBoosting* or AdaBoost* of gpuforest
        Of the first, the losses that early stopping kept are drawn, or the scores of its `scoring`:
        of the training rows and, if some were set aside, of the validation rows.
    X, y : as for `predict` and `fit`, rows whose loss is drawn too; None: no such rows
        AdaBoost* keep no losses and need them: their loss is the share of wrong rows, or 1 - R².
    ax : matplotlib axis; None: that of a new figure

    Returns
    -------
    matplotlib axis; the round that was best is marked on the curve of X and y, or else of the
    validation rows

    Raises
    ------
    ValueError : no losses to draw; X without y; classes in y that the estimator does not know
    TypeError : another kind of estimator
    """
    if not (hasattr(estimator, "_model") and hasattr(estimator, "staged_predict")):
        raise TypeError(
            f"a {type(estimator).__name__} has no rounds of boosting: pass a HistGradientBoosting* "
            "or an AdaBoost* (plot_oob draws the error of a forest)"
        )
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise ValueError(f"{'y' if y is None else 'X'} is missing: pass both X and y, or neither")
    curves, first, measure, less = _curves(estimator, X, y)
    with style.drawing(ax) as ax:
        from matplotlib.ticker import MaxNLocator

        for (name, values), line, colour in zip(
            curves.items(), style.LINES, style.PALETTE, strict=False
        ):
            ax.plot(first + np.arange(len(values)), values, line, color=colour, label=name)
        name, values = list(curves.items())[-1]
        if name != "training":  # whose last round is the best, as a rule
            at = best_round(values, less)
            said = f"best: round {first + at}, {values[at]:.4g}"
            ax.plot(first + at, values[at], label=said, **style.CHOSEN)
        ax.set(xlabel="rounds", ylabel=style.plain(measure))
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
    return ax


def _curves(estimator: Any, X: Any, y: Any) -> tuple[dict[str, np.ndarray], int, str, bool]:
    """Curves by name, number of the first round, what they measure, and whether less is better."""
    kind = type(estimator).__name__
    if hasattr(estimator, "staged_score"):
        if X is None:
            raise ValueError(f"an {kind} keeps no losses: pass rows to compute them of, X and y")
        errors = 1.0 - np.array(list(estimator.staged_score(X, y)))
        measure = "share of wrong rows" if is_classifier(estimator) else "1 - R²"
        return {GIVEN: errors}, 1, measure, True
    curves, (measure, less) = kept_curves(estimator), measure_of(estimator)
    if X is not None:
        curves[GIVEN] = _staged(estimator, X, y, less)
    if not curves:
        raise ValueError(
            f"this {kind} kept no losses: fit it with early_stopping=True, or pass rows to compute "
            "them of, X and y"
        )
    return curves, 0, measure, less


def _staged(estimator: Any, X: Any, y: Any, by_loss: bool) -> np.ndarray:
    """The loss, or the score, of some rows before the first round and after each."""
    y, coding = np.asarray(to_host(y)).ravel(), estimator.forest_.coding
    stages = estimator._staged_raw_predict(X)
    first = next(stages)
    if len(y) != len(first):
        raise ValueError(f"y has {len(y)} targets, X {len(first)} rows: pass one for each")
    stages = chain([np.repeat(coding.baseline[None], len(y), axis=0), first], stages)
    if not by_loss:
        if estimator.scoring == "loss":  # a model from a file, which holds no function
            name = estimator.scored_by_
            raise ValueError(f"the scores are those of {name}: call set_params(scoring={name})")
        scorer = check_scoring(estimator, estimator.scoring)
        return np.array([scorer(estimator._predicting(coding, r), X, y) for r in stages])
    if coding.classes is None:
        y = y.astype(np.float64)
    else:
        style.check_known(y, coding.classes)
        y = np.searchsorted(coding.classes, y)
    return np.array([coding.loss.mean(y, np.ascontiguousarray(raw.T), None) for raw in stages])


def plot_importances(
    importances: Any, *, top: int | None = 20, feature_names: Sequence[str] | None = None,
    ax: style.Axes | None = None,
) -> style.Axes:  # fmt: skip
    """Draw the features' importances, largest first, with their standard deviations: over
    trees, or as they were found.

    Parameters
    ----------
    importances : fitted estimator of gpuforest, for its `feature_importances_`; or what
        `oob_permutation_importance`, `oob_impurity_importance` or scikit-learn's
        `permutation_importance` found
    top : int >= 1, how many features; None: all
    feature_names : names of all features; None: those of the fit, or feature_0, feature_1, ...
    ax : matplotlib axis, which is returned; None: that of a new figure

    Raises
    ------
    ValueError : top below 1, a wrong number of names
    """
    style.check_top(top)
    if hasattr(importances, "importances_mean"):
        means, spread = importances.importances_mean, importances.importances_std
        label = getattr(importances, "measure", "decrease of the score when permuted")
    else:
        check_is_fitted(importances)
        means = getattr(importances, "feature_importances_", None)
        if means is None:
            name = type(importances).__name__
            raise ValueError(f"{name} has no importances: its cuts are random")
        spread = importance_spread(importances)
        boosted = importances.forest_.baseline is not None
        label = f"{'gain of splits' if boosted else 'decrease of impurity'}, as a share of all"
        feature_names = known_names(importances) if feature_names is None else feature_names
    if feature_names is None:
        feature_names = [f"feature_{i}" for i in range(len(means))]
    if len(feature_names) != len(means):
        raise ValueError(
            f"feature_names has {len(feature_names)} names, the importances {len(means)}: "
            "pass a name for each feature"
        )
    order = np.argsort(-means, kind="stable")[:top]
    with style.drawing(ax, (style.SIZE[0], MARGINS + HEIGHT * len(order))) as ax:
        whiskers = {"ecolor": style.INK, "elinewidth": 0.8, "capsize": 2}
        deviations = None if spread is None else spread[order]
        ax.barh(range(len(order)), means[order], xerr=deviations, error_kw=whiskers, **style.BARS)
        style.label_rows(ax, [style.plain(feature_names[i]) for i in order])
        ax.set_xlabel(label if spread is None else f"{label}\n± standard deviation")
        if (means >= 0).all():
            ax.set_xlim(left=0)
    return ax
