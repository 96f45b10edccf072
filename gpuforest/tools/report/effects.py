"""What a report says of effects of a treatment, and what to check before believing them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuforest.explain import effects
from gpuforest.tools.plot.effects import draw_effects, plot_effect_calibration
from gpuforest.tools.plot.shap import Described
from gpuforest.tools.report.html import Html, figure, h, joined, name, share, table
from gpuforest.tools.report.pictures import histogram_picture, picture
from gpuforest.tools.report.results import Results

SHOWN_FEATURES, SHOWN_ROWS = 3, 120
UNSURE = 0.05  # p-values from which effects may all be the same
AVERAGE = (
    "How much the outcome changes with one unit of the treatment (0 to 1), over training rows; "
    "overlap weighs all by how much their treatment varies. With an instrument: where it moves the "
    "treatment. Doubly robust: right if the effects or the expected treatments are."
)
TESTED = (
    "Mean prediction is near 1 if effects are right on average. Differential prediction is near 1 "
    "if they differ as much as predicted, and its p-value is small if they differ at all. The "
    "out-of-bag R² over the average effect is small even then if effects explain little of y."
)
DOUBT = (
    "Effects mean causes only where the features hold all that both the treatment and the outcome "
    "depend on, and nothing that the treatment has changed: no number here can show this. Rows "
    "tell the effect only where others like them had another treatment. See docs/causal.md."
)
NO_DOUBTS = (
    "No problems found. Looked for: rows of little overlap, effects that do not differ, a feature "
    "of nearly all importance, rows given that are unlike the training rows."
)


def doubtful(estimator: Any) -> dict[str, int]:
    """The number of training rows that tell little of the effect, by the reason."""
    rows, counts, rare = estimator._known_rows(), estimator._weighed()[0] > 0, effects.RARE
    found = {
        "the treatment hardly varies": effects.steady(rows.spread) != rows.spread,
        f"the probability of treatment is below {rare}": rows.w_hat < rare,
        f"the probability of treatment is above {1 - rare}": rows.w_hat > 1 - rare,
    }
    shown = [*found.items()][: 3 if rows.is_binary else 1]
    return {reason: int(those[counts].sum()) for reason, those in shown}


def effect_checks(results: Results) -> Iterator[tuple[Any, ...]]:
    """Whether the treatment varies in all rows, and whether effects differ."""
    if results.task != "effects":
        return
    for reason, n in doubtful(results.estimator).items():
        if n:
            text = f"In {n:,} training rows {reason}: do not believe effects on rows like them."
            yield "Little overlap.", text, " The average over all leans on few rows, see overlap."
    if not (p := float(results.estimator.calibration_test().p_value[1])) < UNSURE:
        text = f"The test of calibration does not show it (p-value {figure(p)}): use averages."
        yield "Do effects differ from row to row?", text


def effect_parts(results: Results) -> list[Html]:
    """The treatment, average effects, the test of calibration, doubts, and effects of rows."""
    if results.task != "effects":
        return []
    model, weighed = results.estimator, results.estimator._weighed()
    rows, tested, doubts = model._known_rows(), model.calibration_test(), doubtful(model)
    some, (_, w, z) = effects.EffectRows(rows.values[weighed[0] > 0]), rows.residuals
    said = f"from {figure(some.w.min())} to {figure(some.w.max())}"
    if np.isin(some.w, (0.0, 1.0)).all():
        said = f"{share(np.average(rows.w, weights=weighed[0]))} of the rows have 1, the others 0"
    design = [("treatment", said), ("honest trees", "yes" if model.honest else "no")]
    if rows.has_instrument:
        moved = effects.regression(z[:, None], w, *weighed)
        by = f"{figure(moved.coef[0])} (standard error {figure(moved.std_error[0])})"
        design.append(("instrument", f"a unit moves the treatment by {by}"))
    averages = [
        [target, *map(figure, effects.average(rows, target, *weighed).values())]
        for target in ("all", "overlap", "treated", "control")[: 4 if rows.is_binary else 2]
    ]
    columns = zip(tested.names, tested.coef, tested.std_error, tested.p_value, strict=True)
    lines = [[key.replace("_", " "), *map(figure, of)] for key, *of in columns]
    header = ["average over", "effect", "standard error", "95% interval from", "to"]
    return [
        table([], design, look="facts"),
        *(h("h3", "Average effects"), h("p", AVERAGE), table(header, averages, (1, 2, 3, 4))),
        *(h("h3", "Test of calibration"), h("p", TESTED)),
        table(["coefficient", "value", "standard error", "p-value"], lines, (1, 2, 3)),
        *(h("h3", "When not to believe effects"), h("p", DOUBT)),
        table(["where", "training rows"], [(k, f"{n:,}") for k, n in doubts.items()], (1,)),
        h("div", *_pictures(results, some), class_="figures"),
    ]


def _pictures(results: Results, some: effects.EffectRows) -> Iterator[Html]:
    """Pictures of training rows; and effects on rows given, by features of most importance."""
    text = "Of training rows, by the trees that did not draw the row."
    yield histogram_picture("Effects out of bag", some.effect, ("effect", "rows"), text)
    if some.is_binary:
        text, axes = "What features tell. Near 0 or 1 there is no overlap.", ("probability", "rows")
        yield histogram_picture("Probability of treatment", some.w_hat, axes, text)
    draw = partial(plot_effect_calibration, results.estimator, n := min(5, len(some.values) // 2))
    text = "Groups of training rows. Intervals that cross the diagonal fit what is predicted."
    yield picture("Calibration of effects", f"{n} groups", draw, text)
    if results.rows is None:
        return
    text = f"{(rows := results.rows.sample(SHOWN_ROWS)).n:,} of the rows given."
    shown = Described(rows.predictor(), rows.dense(), results.names)
    shown.categories = results.model.forest.edges.categories
    found = effects.interval_of(*shown.model.effect_and_std(shown.values))
    for f in results.ranked[:SHOWN_FEATURES].tolist():
        draw, by = partial(draw_effects, shown, f, found), name(results.names[f])
        yield picture(f"Effects by {results.names[f]}", text, draw, text, joined(["By ", by]))
