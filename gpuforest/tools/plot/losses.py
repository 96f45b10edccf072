"""The loss of a boosted model against its rounds."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from gpuforest.data.arrays import to_host
from gpuforest.estimators.boosting import HistGradientBoosting
from gpuforest.estimators.reweighted import AdaBoost
from gpuforest.estimators.watch import replace_predictions
from gpuforest.explain.model_facts import best_round, kept_curves, measure_of
from gpuforest.tools.plot.style import INK, LINES, PALETTE, drawing, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GIVEN = "rows passed"  # what the curve of X and y is called


def plot_loss(estimator: Any, X: Any = None, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw the loss of a boosted model against its rounds, and mark the best one.

    Parameters
    ----------
    estimator : fitted HistGradientBoosting* or AdaBoost* of gpuforest
        Of the first, the losses that early stopping kept are drawn, or the scores of its `scoring`:
        of the training rows and, if some were set aside, of the validation rows.
    X, y : as for `predict` and `fit`, rows whose loss is drawn too; None: none
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
    ImportError : no matplotlib

    Examples
    --------
    >>> from gpuforest import HistGradientBoostingRegressor
    >>> from gpuforest.plot import plot_loss
    >>> X, y = [[i] for i in range(100)], [i % 10 for i in range(100)]
    >>> model = HistGradientBoostingRegressor(early_stopping=True).fit(X, y)
    >>> plot_loss(model).figure.savefig("loss.png")  # doctest: +SKIP
    """
    if not isinstance(estimator, HistGradientBoosting | AdaBoost):
        raise TypeError(
            f"a {type(estimator).__name__} has no rounds of boosting: pass a HistGradientBoosting* "
            "or an AdaBoost* (plot_oob draws the error of a forest)"
        )
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise ValueError(f"{'y' if y is None else 'X'} is missing: pass both X and y, or neither")
    curves, first, measure, less = _curves(estimator, X, y)
    with drawing(ax) as ax:
        from matplotlib.ticker import MaxNLocator

        for (name, values), line, colour in zip(curves.items(), LINES, PALETTE, strict=False):
            ax.plot(first + np.arange(len(values)), values, line, color=colour, label=name)
        name, values = list(curves.items())[-1]
        if name != "training":  # whose last round is the best, as a rule
            at = best_round(values, less)
            said = f"best: round {first + at}, {values[at]:.4g}"
            ax.plot(first + at, values[at], "s", color=PALETTE[5], mec=INK, ms=8, label=said)
        ax.set(xlabel="rounds", ylabel=plain(measure))
        ax.set_xlim(left=0)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.legend()
    return ax


def _curves(estimator: Any, X: Any, y: Any) -> tuple[dict[str, np.ndarray], int, str, bool]:
    """The curves to draw by name, the round that they begin with, what they measure, and whether
    less of it is better."""
    kind = type(estimator).__name__
    if isinstance(estimator, AdaBoost):
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
        return np.array([scorer(replace_predictions(estimator, coding, r), X, y) for r in stages])
    if coding.classes is None:
        y = y.astype(np.float64)
    else:
        known = np.isin(y, coding.classes)
        if not known.all():
            other = y[~known].tolist()[0]
            raise ValueError(f"y has a class that the estimator does not know: {other!r}")
        y = np.searchsorted(coding.classes, y)
    return np.array([coding.loss.mean(y, np.ascontiguousarray(raw.T), None) for raw in stages])
