"""Survival forests in reports: events, curves and rows at risk."""

import re

import numpy as np
from hostile import Page

import gpuforest

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
TIME, END = RNG.exponential(np.exp(-X[:, 0])), RNG.exponential(2.0, N)
Y = np.rec.fromarrays([TIME <= END, np.round(np.minimum(TIME, END), 1)], names="event, time")


def made(**params):
    return gpuforest.RandomSurvivalForest(20, random_state=0, backend="numpy", **params)


def test_the_section_has_events_rows_at_risk_and_curves():
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
    assert re.findall("<h3>(.*?)</h3>", section) == ["Survival by groups of risk"]
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
