"""Curves of impurities, errors and losses, and importances as bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from gpuforest import impurity
from gpuforest.core.criteria import CRITERIA
from gpuforest.data.arrays import to_host
from gpuforest.explain import model_facts as facts
from gpuforest.explain.importances import importance_spread
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import Axes

POINTS = 201  # of the impurities; odd, so that one half is among them
DECADES = 30.0  # a range of alphas by more than this factor is shown by their logarithms
DENSE = 40  # alphas, above which error bars are pale and without ends
MOST_TICKS = 9  # numbers of leaves above the axis
GIVEN = "rows passed"  # what the curve of X and y is called
HEIGHT, MARGINS = 0.24, 0.9  # inches of a bar, and above and below all


@documented
def plot_impurity(*, ax: Axes | None = None) -> Axes:
    """Draw the impurities of a node of two classes against the proportion of one of them.

    Half the entropy is there too, because it is all but the Gini impurity.
    """
    p = np.linspace(0.0, 1.0, POINTS)
    both = np.stack([p, 1 - p], axis=1)
    entropy = impurity.entropy(both)
    curves = [
        ("entropy (bits)", p, entropy),
        ("half the entropy", p, entropy / 2),
        ("Gini impurity", p, impurity.gini(both)),
        ("misclassification", p, impurity.misclassification(both)),
    ]
    with style.drawing(ax) as ax:
        style.add_lines(ax, curves)
        ax.set(xlim=(0, 1), ylim=(0, 1.02), ylabel="impurity")
        ax.set_xlabel("p, the proportion of one of two classes")
        ax.legend(**style.BESIDE)
    return ax


@documented
def plot_pruning(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the errors that a tree's alpha was chosen by, with their standard errors.

    The numbers of leaves stand above. A dotted line is at the least error and one standard error
    more: subtrees below it are as good as far as the rows can tell.

    Raises
    ------
    ValueError : an estimator that no alpha was chosen for
    """
    how = "fit a DecisionTree* with ccp_alpha='cv', or prune it by rows held out"
    curve = _kept_curve(estimator, "pruning_curve_", how)
    alphas, errors, deviations = curve.ccp_alphas, curve.errors, curve.std_errors
    best = np.flatnonzero(errors == errors.min())[-1]
    chosen = int(np.flatnonzero(alphas == estimator.ccp_alpha_)[0])
    positive = alphas[alphas > 0]
    scale: dict[str, Any] = {"value": "linear"}
    if len(positive) and positive[-1] > DECADES * positive[0]:  # logarithms, except at zero
        first = np.floor(np.log10(positive[0]))
        # a tenth of the axis is for all below, so that 0 has room for its label
        decades = max(0.5, (np.log10(positive[-1]) - first) / 10)
        scale = {"value": "symlog", "linthresh": 10.0**first, "linscale": decades}
    with style.drawing(ax) as ax:
        ax.set_xscale(**scale)
        bars: Any = {"ecolor": style.INK, "capsize": 2, "markersize": 4}
        if len(errors) > DENSE:
            bars = {"ecolor": style.PALE_INK, "capsize": 0, "markersize": 2.5}
        bars |= {"color": style.PALETTE[0], "elinewidth": 0.7, "label": "error ± 1 standard error"}
        ax.errorbar(alphas, errors, deviations, fmt="o-", **bars)
        level, label = errors[best] + deviations[best], "least error + 1 standard error"
        ax.axhline(level, color=style.INK, lw=1, ls=":", label=label)
        label = f"chosen: {curve.n_leaves[chosen]} leaves, alpha = {estimator.ccp_alpha_:.3g}"
        ax.plot(alphas[chosen], errors[chosen], label=label, **style.CHOSEN)
        ax.set(xlabel="alpha", ylabel=f"error: {CRITERIA[estimator.criterion_].loss_name}")
        ax.legend(reverse=True)
        _add_leaves(ax, curve, scale)
    return ax


@documented
def plot_oob(estimator: Any, *, ax: Axes | None = None) -> Axes:
    """Draw a forest's out-of-bag error against the number of its trees.

    Raises
    ------
    ValueError : an estimator whose out-of-bag errors were not computed
    """
    how = "fit a forest with oob_score=True or n_estimators='auto'"
    curve = _kept_curve(estimator, "oob_curve_", how)
    with style.drawing(ax) as ax:
        ax.plot(curve.n_estimators, curve.error, "o-", color=style.PALETTE[0])
        end = curve.n_estimators[-1], curve.error[-1]
        ax.annotate(f"{end[1]:.3g}", end, (0, 7), textcoords="offset points", ha="right")
        ax.set(xlabel="number of trees", ylabel=f"out-of-bag error: {error_name(estimator)}")
        ax.set_xlim(left=0)
    return ax


def error_name(estimator: Any) -> str:
    """What is one minus the score of an estimator."""
    score = facts.score_name(estimator)
    return "share of wrong rows" if score == "accuracy" else f"1 - {score}"


def _kept_curve(estimator: Any, name: str, how: str) -> Any:
    check_is_fitted(estimator)
    curve = getattr(estimator, name, None)
    if curve is None:
        raise ValueError(f"this {type(estimator).__name__} has no {name}: {how}")
    return curve


def _add_leaves(ax: Axes, curve: Any, scale: dict[str, Any]) -> None:
    """The numbers of leaves above the axis, where there is room for them."""
    limits = ax.get_xlim()
    top = ax.twiny()
    top.set_xscale(**scale)
    top.set(xlim=limits, xlabel="leaves")
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


@documented
def plot_loss(estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the loss of a boosted model against its rounds, and mark the best one.

    The round that was best is marked on the curve of X and y, or else of the validation rows.

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
    curves, measure, less = _curves(estimator, X, y)
    with style.drawing(ax) as ax:
        style.add_lines(ax, curves)
        name, rounds, values = curves[-1]
        if name != "training":  # whose last round is the best, as a rule
            at = facts.best_round(values, less)
            said = f"best: round {rounds[at]}, {values[at]:.4g}"
            ax.plot(rounds[at], values[at], label=said, **style.CHOSEN)
        ax.set(xlabel="rounds", ylabel=style.plain(measure))
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", integer=True)
        ax.legend()
    return ax


def _curves(estimator: Any, X: Any, y: Any) -> tuple[list[Any], str, bool]:
    """Names, rounds and values of curves, what they measure, and whether less of it is better."""
    kind = type(estimator).__name__
    if hasattr(estimator, "staged_score"):
        if X is None:
            raise ValueError(f"an {kind} keeps no losses: pass rows to compute them of, X and y")
        errors = 1.0 - np.array(list(estimator.staged_score(X, y)))
        return [(GIVEN, np.arange(1, len(errors) + 1), errors)], error_name(estimator), True
    curves, (measure, less) = facts.kept_curves(estimator), facts.measure_of(estimator)
    if X is not None:
        curves[GIVEN] = _staged(estimator, X, y, less)
    if not curves:
        raise ValueError(
            f"this {kind} kept no losses: fit it with early_stopping=True, or pass rows to compute "
            "them of, X and y"
        )
    return [(key, np.arange(len(of)), of) for key, of in curves.items()], measure, less


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


@documented
def plot_importances(
    importances: Any, *, top: int | None = 20, feature_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw the features' importances, largest first, with their standard deviations: over
    trees, or as they were found.

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
        feature_names = facts.feature_names(importances) if feature_names is None else feature_names
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
