"""Survival forests in reports: events, curves, rows at risk, calibration, Brier scores."""

import re

import numpy as np
import pytest
from hostile import Page

import gpuforest as gf
from gpuforest.tools.report.scores import brier_scores

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TIME, END = RNG.exponential(np.exp(-X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= END, np.round(np.minimum(TIME, END), 1)], names="event, time")


def made(**params):
    return gf.RandomSurvivalForest(20, random_state=0, backend="numpy", **params)


def brier_by_definition(known, rows, survival, t):
    """Graf's score as scikit-survival computes it: rows [time, event], in plain Python."""

    def free(until):
        """The Kaplan-Meier estimate of not being censored; of equal times, events come first."""
        value = 1.0
        for time in sorted({time for time, event in known if not event and time <= until}):
            at_risk = sum(other > time or (other == time and not e) for other, e in known)
            value *= 1 - sum(other == time and not e for other, e in known) / at_risk
        return value

    total = 0.0
    for (time, event), chance in zip(rows, survival, strict=True):
        if time > t:
            total += (1 - chance) ** 2 / free(t) if free(t) > 0 else 0.0
        elif event:
            total += chance**2 / free(time) if free(time) > 0 else 0.0
    return total / len(rows)


@pytest.mark.parametrize("event_rate", [0.3, 0.6, 1.0])
def test_brier_scores_by_their_definition(event_rate):
    rng = np.random.default_rng(1)
    known, y = (
        np.stack([rng.integers(1, 12, n) / 4, rng.random(n) < event_rate], axis=1).astype(float)
        for n in (80, 50)
    )
    times = np.array([0.1, 0.5, 1.0, 1.6, 2.5])
    survival = np.sort(rng.random((50, 5)), axis=1)[:, ::-1]
    expected = [brier_by_definition(known, y, s, t) for s, t in zip(survival.T, times, strict=True)]
    assert brier_scores(known, y, survival, times) == pytest.approx(expected, rel=1e-12)


def test_the_section_has_events_rows_at_risk_and_pictures():
    model = made(oob_score=True).fit(X[:120], Y[:120])
    html = model.report(X[120:], Y[120:])
    page, (known, given) = Page(html), (Y["event"][:120].sum(), Y["event"][120:].sum())
    assert page.after("events").startswith(f"{known} of 120\n{given} of 120")
    assert page.after("censored").startswith(f"{120 - known} of 120\n{120 - given} of 120")
    lines = page.text.split("rows at risk at the time\n")[1].split("\n")
    times = [float(t) for t in lines[:5]]
    risk = model.predict(X[120:])
    lowest = Y["time"][120:][np.argsort(risk, kind="stable")[:40]]
    at = page.text.split("lowest risk: 40 rows\n")[-1].split("\n")[:5]
    assert at == [str((lowest >= t).sum()) for t in np.linspace(0, Y["time"][120:].max(), 6)[:-1]]
    assert times[0] == 0
    section = html.split('id="survival"')[1].split("</section>")[0]
    titles = re.findall("<h3>(.*?)</h3>", section)
    wanted = ["Survival by groups of risk", "Calibration of survival", "Brier score over time"]
    assert titles == wanted
    forest, by_all = re.findall(r"mean (0\.\d{4})", section.split("<desc>")[-1])[:2]
    assert 0 < float(forest) < float(by_all) < 0.3
    quarters = np.quantile(Y["time"][120:][Y["event"][120:]], [0.25, 0.5, 0.75])
    assert [float(t) for t in re.findall(r"time (\d\.\d+)</text", section)] == pytest.approx(
        quarters
    )
    assert "#0072B2" not in section.upper()  # of a picture of its own: dark pages have others


def test_several_causes_low_memory_and_nothing_but_censored_rows():
    cause = np.where(Y["event"], 1 + (X[:, 1] > 0), 0)
    y = np.rec.fromarrays([cause, Y["time"]], names="cause, time")
    page = Page(made().fit(X[:120], y[:120]).report(X[120:], y[120:]))
    assert page.after("events by cause 2").startswith(f"{(cause[:120] == 2).sum()} of 120")
    page = Page(made(low_memory=True).fit(X[:120], Y[:120]).report(X[120:], Y[120:]))
    assert "A forest with low_memory=True has no curves." in page.text
    rest = np.flatnonzero(~Y["event"])[:30]
    page = Page(made().fit(X, Y).report(X[rest], Y[rest]))
    assert page.after("events").startswith(f"{Y['event'].sum()} of {N}\n0 of 30")
