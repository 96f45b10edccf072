"""The parts of a report's page: escaped elements, numbers, axes, and what is told to check."""

import numpy as np
import pytest
from hostile import Page

import gpuforest
from gpuforest.export.report import charts
from gpuforest.export.report.checks import checks
from gpuforest.export.report.html import (
    Html,
    figure,
    h,
    interval,
    listed,
    name,
    scored,
    share,
    table,
)
from gpuforest.inspection.report.intervals import Score
from gpuforest.inspection.report.results import Results

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + RNG.normal(size=N) > 0, "yes", "no")


def forest(n_estimators=20, **params):
    return gpuforest.RandomForestClassifier(n_estimators, random_state=0, backend="numpy", **params)


def test_only_html_is_html():
    assert h("p", "<b>", Html("<i>x</i>"), None) == "<p>&lt;b&gt;<i>x</i></p>"
    assert h("p", title='"><script>', class_="a", aria_label=None) == (
        '<p title="&quot;&gt;&lt;script&gt;" class="a"></p>'
    )
    assert h("rect", x=1.0, stroke_width="2") == '<rect x="1" stroke-width="2"/>'
    assert listed(["<a>", "b", "c"], 2) == "<bdi>&lt;a&gt;</bdi>, <bdi>b</bdi> and 1 more"


def test_names():
    assert name("") == "<i>(empty)</i>"
    assert name("x" * 99, 10) == f'<bdi title="{"x" * 99}">xxxxxxxxx…</bdi>'
    assert name("\ud800") == "<bdi>\\ud800</bdi>"  # what UTF-8 has no bytes for
    assert name(3) == "<bdi>3</bdi>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0.0, "0"), (1234.5, "1,234"), (0.01234, "0.01234"), (-3.14159, "-3.142")),
        *((1e12, "1.000e+12"), (1e-9, "1.000e-09"), (np.nan, "–"), (np.inf, "–")),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert figure(value) == text


def test_shares_and_scores():
    assert [share(v) for v in (0.0, 0.0002, 0.5, 1.0)] == ["0%", "<0.1%", "50.0%", "100.0%"]
    assert [scored(v) for v in (0.5, 1234.5)] == ["0.5000", "1,234"]
    assert interval(Score("a", 0.5)) == ""
    assert interval(Score("a", 0.5, 0.25, 1.0, "Wilson")) == "0.2500 to 1.0000"


def test_tables_have_headers():
    page = Page(table(["a", "b"], [["x", "1"]], numbers=(1,)))
    assert [a["scope"] for a in page.all("th")] == ["col", "col", "row"]
    assert page.all("td") == [{"class": "n"}]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 1, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-3, 12, ["0", "5", "10"]),
        (0.24, 0.25, ["0.240", "0.242", "0.244", "0.246", "0.248", "0.250"]),
        (0, 4e7, ["0", "1e7", "2e7", "3e7", "4e7"]),
    ],
)
def test_ticks_are_round(low, high, words):
    found = charts.ticks(low, high)
    assert [word for _, word in found] == words
    assert all(low - 1e-9 <= value <= high + 1e-9 for value, _ in found)


def test_ticks_of_counts_are_whole():
    assert [word for _, word in charts.ticks(0, 3, whole=True)] == ["0", "1", "2", "3"]


def test_a_plot_puts_points_where_they_belong():
    plot = charts.Plot("t", "d", charts.Axis("x", 0, 10), charts.Axis("y", 0, 1))
    (left, right), (low, high) = plot.at([0, 10], [0, 1])
    assert right == charts.WIDTH - charts.RIGHT
    assert (left < right, high) == (True, charts.TOP)
    assert low == charts.HEIGHT - charts.BOTTOM
    drawn = plot.points([0], [0]).points([0], [0], 1).points([0], [0], 2).points([0], [0], 3).svg()
    marks = [
        (tag, a["class"])
        for tag, a in Page(drawn).elements
        if (a.get("class") or "").startswith("p ")
    ]
    assert marks == [("circle", "p s0"), ("path", "p s1"), ("path", "p s2"), ("path", "p s3")]
    forms = {a["d"] for a in Page(drawn).all("path") if a["class"].startswith("p ")}
    assert len(forms) == 3  # they differ without colour


def told(model, *rows) -> str:
    return Page("".join(checks(Results.of(model, *rows)))).text


def test_nothing_to_check():
    model = forest(oob_score=True).fit(X[:200], Y[:200])
    assert told(model, X[200:], Y[200:]) == ""


def test_checks_find_training_rows_leaks_and_gaps():
    leaky = X.copy()
    leaky[:, 2] = Y == "yes"
    text = told(forest().fit(leaky, Y), leaky, Y)
    assert "Are these the training rows?" in text
    assert "A leak?" in text
    assert "feature_2" in text
    model = forest(oob_score=True, n_estimators=30).fit(leaky[:200], Y[:200])
    moved = leaky[200:].copy()
    moved[:, 2] = 1 - moved[:, 2]
    text = told(model, moved, Y[200:])
    assert "Out-of-bag and test scores differ." in text
    assert "far worse than" in text


def test_checks_find_other_data():
    model = forest().fit(X[:200], Y[:200])
    moved = X[200:].copy()
    moved[:20, 0], moved[:60, 1] = 99.0, np.nan
    text = told(model, moved, Y[200:])
    assert "Other data than in training." in text
    assert "feature_0\n (up to 2" in text  # 20 rows, and a few that lie beyond by themselves
    assert "Mostly missing." in text
    assert "feature_1\n: missing" in text


def test_checks_find_classes():
    kinds = np.where(np.arange(N) < 3, "rare", Y)
    model = forest().fit(X, kinds)
    text = told(model, X[1:], kinds[1:])
    assert "Classes of few rows.\n \nrare\n: fewer than 10 rows" in text
    text = told(model, X[3:], np.where(Y[3:] == "yes", "yes", "other"))
    assert "Unknown classes." in text
    assert "Absent classes." in text
    stump = forest(max_depth=1, n_estimators=1).fit(X[:2], ["a", "b"])
    assert "Few rows." in told(stump, X[:2], ["a", "b"])


def test_checks_find_one_answer():
    y = np.array(["a", "b"])[(np.arange(N) % 20 == 0).astype(int)]
    model = forest(max_depth=1).fit(X, y)
    assert "One answer." in told(model, X[:200], y[:200])


def test_checks_of_the_model_alone():
    model = forest().fit(np.stack([X[:, 0], np.zeros(N)], axis=1), Y)
    assert "One feature does nearly all." in told(model)
    with pytest.warns(UserWarning, match="OOB"):
        model = forest(n_estimators=1, oob_score=True).fit(X[:1], Y[:1])
    assert "No out-of-bag score." in told(model)
