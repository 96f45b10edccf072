"""What a report says of effects of a treatment, and what to check before believing them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gpuforest.explain import effects
from gpuforest.tools.plot.effects import draw_effects, plot_effect_calibration
from gpuforest.tools.plot.shap import Described
from gpuforest.tools.report.html import Html, figure, h, joined, name, scored, share, table
from gpuforest.tools.report.pictures import histogram_picture, picture
from gpuforest.tools.report.results import Results

SHOWN_FEATURES, SHOWN_ROWS, GROUPS = 4, 200, 5
UNSURE = 0.05  # p-values from which effects may all be the same
WEAK = 10.0  # F of instruments that hardly move the treatment (Staiger and Stock 1997)
TARGETS = {  # what an average is over
    "all": "all rows",
    "overlap": "all rows, weighed by how much their treatment varies",
    "treated": "rows that were treated",
    "control": "rows that were not treated",
}
TESTED = (
    "Mean prediction is near 1 if effects are right on average. Differential prediction is near 1 "
    "if they differ as much as predicted, and its p-value is small if they differ at all."
)
DOUBT = (
    "Effects mean causes only where the features hold all that both the treatment and the outcome "
    "depend on, and nothing that the treatment has changed: no number here can show this. Rows "
    "tell the effect only where others like them had another treatment. See docs/causal.md."
)
CALIBRATION = (
    "Training rows in groups by their effects out of bag. Where intervals cross the dotted "
    "diagonal, effects are as large as predicted. Groups at one height do not differ."
)


class Treated:
    """What is known of the training rows of a causal forest; `some`: those of some weight."""

    def __init__(self, estimator: Any) -> None:
        rows, (weights, groups) = estimator._known_rows(), estimator._weighed()
        self.some = some = effects.EffectRows(rows.values[weights > 0])
        (_, w, z), is_arm = rows.residuals, np.isin(some.w, (0.0, 1.0)).all()
        self.is_binary, self.has_instrument = rows.is_binary, rows.has_instrument
        self.moved = effects.regression(z[:, None], w, weights, groups)  # the treatment, by z
        self.tested, self.n_steady = estimator.calibration_test(), effects.n_steady(rows, weights)
        self.n_low, self.n_high = (some.w_hat < effects.RARE).sum(), (some.w_hat > 1 - effects.RARE).sum()
        self.unit = "from treatment 0 to 1" if is_arm else "with one unit more of the treatment"
        arms = f"{share(np.average(rows.w, weights=weights))} of the rows have 1, the others 0"
        dose = f"numbers from {figure(some.w.min())} to {figure(some.w.max())}"
        self.treatment = arms if is_arm else dose


def effect_checks(results: Results) -> Iterator[tuple[Any, ...]]:
    """Whether the treatment varies, the instrument moves it, and effects differ."""
    if results.task != "effects":
        return
    known = Treated(results.estimator)
    if n := known.is_binary * (known.n_low + known.n_high):
        text = "training rows have a probability of treatment near 0 or 1: do not believe effects "
        yield "No overlap.", f"{n:,} {text}on rows like them."
    if n := known.n_steady:
        text = "training rows it hardly varies, so the average effect on all rows leans on few."
        yield "The treatment hardly varies.", f"In {n:,} {text} The average by overlap does not."
    F, p = float(known.moved.t[0] ** 2), float(known.tested.p_value[1])
    if known.has_instrument and not F > WEAK:
        text = f"It hardly moves the treatment (F = {figure(F)}): effects may be far off."
        yield "A weak instrument.", text
    if not p < UNSURE:
        text = f"The test of calibration does not show it (p-value {p_value(p)}): use averages."
        yield "Do effects differ from row to row?", text


def effect_parts(results: Results) -> list[Html]:
    """The treatment, average effects, the test of calibration, doubts, and effects of rows."""
    if results.task != "effects":
        return []
    model, known, averages = results.estimator, Treated(results.estimator), list[Any]()
    honest = "half of a tree's rows choose its splits, and the other half fill its leaves"
    design = [("treatment", known.treatment), ("honest", honest if model.honest else "no")]
    where, tested = "", known.tested
    if known.has_instrument:
        where = ", where the instrument moves the treatment"
        by = f"{figure(known.moved.coef[0])} ± {figure(known.moved.std_error[0])}"
        design.append(("instrument", f"moves the treatment by {by} (standard error) a unit"))
    for target in [*TARGETS][: 4 if known.is_binary else 2]:
        with warnings.catch_warnings(action="ignore"):  # the checks say it
            found = model.ate(target)
        said = f"{figure(found.low)} to {figure(found.high)}"
        averages.append([TARGETS[target], *map(figure, (found.estimate, found.std_error)), said])
    text = (
        f"How much the outcome changes {known.unit}{where}, on average over training rows. The "
        "averages are doubly robust: right if the effects or the expected treatments are."
    )
    rows = zip(tested.names, tested.coef, tested.std_error, tested.p_value, strict=True)
    lines = [[key.replace("_", " "), *map(scored, of), p_value(p)] for key, *of, p in rows]
    doubts = [["the treatment hardly varies", f"{known.n_steady:,}"]]
    if known.is_binary:
        ends = {f"below {effects.RARE}": known.n_low, f"above {1 - effects.RARE}": known.n_high}
        doubts += [[f"the probability of treatment is {key}", f"{n:,}"] for key, n in ends.items()]
    header = ["standard error", "95% interval"], ["standard error", "p-value"]
    return [
        table([], design, look="facts"),
        *(h("h3", "Average effects"), h("p", text)),
        table(["average over", "effect", *header[0]], averages, numbers=(1, 2, 3)),
        *(h("h3", "Test of calibration"), h("p", TESTED)),
        table(["coefficient", "value", *header[1]], lines, numbers=(1, 2, 3)),
        *(h("h3", "When not to believe effects"), h("p", DOUBT)),
        table(["", "training rows"], doubts, numbers=(1,)),
        h("div", *_pictures(model, known), *_by_features(results), class_="figures"),
    ]


def p_value(p: float) -> str:
    """A p-value of four digits."""
    return "<0.0001" if p < 1e-4 else scored(p)


def _pictures(estimator: Any, known: Treated) -> Iterator[Html]:
    """Of training rows: effects, probabilities of treatment, and calibration."""
    effect, w_hat = known.some.effect, known.some.w_hat
    q25, q75 = map(figure, np.quantile(effect, [0.25, 0.75]))
    text = f"By the trees that did not draw the row. Half lie between {q25} and {q75}."
    yield histogram_picture("Effects out of bag", effect, ("effect", "rows"), text)
    if known.is_binary and w_hat.min() < w_hat.max():
        text = "What the features let expect. Near 0 or 1 there is no overlap."
        yield histogram_picture("Probability of treatment", w_hat, ("probability", "rows"), text)
    draw = partial(plot_effect_calibration, estimator, n := min(GROUPS, len(effect) // 2))
    yield picture("Calibration of effects", f"{n} groups", draw, CALIBRATION)


def _by_features(results: Results) -> Iterator[Html]:
    """The effects on rows given, by the features of most importance."""
    if results.rows is None:
        return
    rows = results.rows.sample(SHOWN_ROWS)
    shown = Described(rows.predictor(), rows.dense(), results.names)
    shown.categories = results.model.forest.edges.categories
    found = effects.interval_of(*shown.model.effect_and_std(shown.values))
    above, below = (found.low > 0).sum(), (found.high < 0).sum()
    text = f"{above:,} of their intervals lie above 0, and {below:,} below."
    for f in results.ranked[:SHOWN_FEATURES].tolist():
        draw, by = partial(draw_effects, rows=shown, f=f, found=found), name(results.names[f])
        said = f"{rows.n:,} of the rows given. {text}"
        yield picture(f"Effects by {results.names[f]}", said, draw, said, joined(["By ", by]))
