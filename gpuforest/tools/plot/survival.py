"""How rows fared, and what a survival forest says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuforest.data.arrays import to_host
from gpuforest.data.survival import check_survival
from gpuforest.explain.model_facts import is_survival
from gpuforest.export.documentation import documented
from gpuforest.tools.plot import style
from gpuforest.tools.plot.style import Axes

MOST_GROUPS = len(style.PALETTE)  # each with a colour of its own


@documented
def plot_survival(
    estimator: Any, X: Any, y: Any, groups: Any = 3, *, ax: Axes | None = None
) -> Axes:
    """Draw the survival of groups of rows: the Kaplan-Meier estimate of y, with a mark where a row
    was censored, and the mean of the forest's curves.

    Where both agree, the forest's probabilities can be believed; where the groups are far apart, it
    tells rows well. Draw rows that were not in the training: the curves of the others look better
    than they are.

    Raises
    ------
    ValueError : no groups, more than ten or more than rows; a wrong number of labels
    TypeError : another kind of estimator
    """
    if not is_survival(estimator):
        raise TypeError(f"a {type(estimator).__name__} has no curves: pass a survival forest")
    check_is_fitted(estimator)
    said = to_host(estimator.predict_survival_function(X, return_array=True))
    time, event = check_survival(y, len(said)).T
    names, number = risk_groups(estimator, X, groups, len(said))
    with style.drawing(ax) as ax:
        steps: Any = {"drawstyle": "steps-post"}
        for i, name in enumerate(names):
            rows, colour = number == i, style.PALETTE[i]
            times, survival = kaplan_meier(event[rows] > 0, time[rows])
            left = np.unique(time[rows & (event == 0)])
            ax.plot([0.0, *times], [1.0, *survival], color=colour, label=name, **steps)
            marks = survival[np.searchsorted(times, left)]
            ax.plot(left, marks, "|", color=colour, label="_censored")
            curve = [0.0, *estimator.unique_times_], [1.0, *said[rows].mean(axis=0)]
            ax.plot(*curve, "--", color=colour, label="_forest", **steps)
        for line, text in (("-", "rows (Kaplan-Meier)"), ("--", "the forest's mean")):
            ax.plot([], [], line, color=style.INK, label=text)
        ax.set(xlabel="time", ylabel="survival", ylim=(0, 1.02))
        ax.set_xlim(left=0)
        ax.legend(**style.BESIDE)
    return ax


def kaplan_meier(event: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct times, ascending, and the Kaplan-Meier estimate of survival from each on (1958)."""
    times, place, counts = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = counts[::-1].cumsum()[::-1]
    died = np.bincount(place, event)
    return times, np.cumprod(1.0 - died / at_risk)


def at_times(grid: np.ndarray, survival: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Survival [..., G], which steps at the times of the grid f64[G], at other times."""
    before = np.ones((*survival.shape[:-1], 1))
    steps = np.concatenate([before, survival], axis=-1)
    return np.asarray(steps[..., np.searchsorted(grid, times, "right")])


def risk_groups(estimator: Any, X: Any, groups: Any, n_rows: int) -> tuple[list[str], np.ndarray]:
    """The names of the groups, and the number of each row's."""
    if np.ndim(groups) == 0:
        top = min(MOST_GROUPS, n_rows)
        if not isinstance(groups, int | np.integer) or not 1 <= groups <= top:
            raise ValueError(f"groups={groups!r}: pass a number from 1 to {top}, or labels of rows")
        risks = to_host(estimator.predict(X)).reshape(n_rows, -1)
        order = np.argsort(risks.sum(axis=1), kind="stable")
        number = np.empty(n_rows, np.int64)
        number[order] = np.arange(n_rows) * groups // n_rows
        names = [f"risk {i + 1} of {groups}" for i in range(groups)]
        names[0], names[-1] = ("lowest risk", "highest risk") if groups > 1 else ("all", "all")
    else:
        labels = np.asarray(to_host(groups))
        if labels.shape != (n_rows,):
            raise ValueError(f"X has {n_rows} rows, groups has the shape {labels.shape}")
        distinct, number = np.unique(labels.astype(str), return_inverse=True)
        if len(distinct) > MOST_GROUPS:
            raise ValueError(f"groups has {len(distinct)} labels: pass at most {MOST_GROUPS}")
        names = [style.plain(label) for label in distinct]
    sizes = np.bincount(number)
    return [f"{name}: {n:,} rows" for name, n in zip(names, sizes, strict=True)], number
