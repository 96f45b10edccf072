"""The parts of a report's page: escaped elements, numbers, axes, and what is told to check."""

import numpy as np
import pytest
from hostile import Page

import gpuforest
from gpuforest.tools.report.html import figure, interval, scored, share
from gpuforest.tools.report.page import checks
from gpuforest.tools.report.results import Results
from gpuforest.tools.report.scores import Score

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + RNG.normal(size=N) > 0, "yes", "no")


def forest(n_estimators=20, **params):
    return gpuforest.RandomForestClassifier(n_estimators, random_state=0, backend="numpy", **params)


def test_numbers_shares_and_scores():
    numbers = [figure(v) for v in (0.0, 1234.5, 0.01234, -3.14159, 1e12, 1e-9, np.nan, np.inf)]
    assert numbers == ["0", "1,234", "0.01234", "-3.142", "1.000e+12", "1.000e-09", "–", "–"]
    assert [share(v) for v in (0.0, 0.0002, 0.5, 1.0)] == ["0%", "<0.1%", "50.0%", "100.0%"]
    assert [scored(v) for v in (0.5, 1234.5)] == ["0.5000", "1,234"]
    assert interval(Score("a", 0.5)) == ""
    assert interval(Score("a", 0.5, 0.25, 1.0, "Wilson")) == "0.2500 to 1.0000"


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
