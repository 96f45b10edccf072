"""The classic experiments come out as published; their generators are what they say."""

import json
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest

from benchmarks import breiman, record
from benchmarks.synthetic import TASKS, ringnorm, threenorm, twonorm, waveform

pytestmark = pytest.mark.deep

N = 100_000
# five standard errors of a mean, or a covariance, of N / 3 rows of variance 1
LIMIT = 5 * np.sqrt(2 / (N / 3))
REPETITIONS = 50
WITHIN = 0.5  # of the published figure: that of 50 repetitions is uncertain by 0.15


def drawn(make):
    return make(np.random.default_rng(0), N)


def moments(X):
    return X.mean(axis=0), np.cov(X.T)


def near(found, expected, variance=1.0):
    return bool((np.abs(found - expected) < LIMIT * variance).all())


@pytest.mark.parametrize("name", TASKS)
def test_rows_follow_the_seed_and_classes_are_equally_likely(name):
    X, y = drawn(TASKS[name])
    for one, other in zip((X, y), drawn(TASKS[name]), strict=True):
        assert np.array_equal(one, other)
    assert X.shape == (N, 21 if name == "waveform" else 20)
    assert near(np.bincount(y) / N, 1 / 3 if name == "waveform" else 1 / 2)


def test_waveform():
    X, y = drawn(waveform)
    middle, right, left = np.zeros((3, 21))
    for triangle, begin in ((left, 1), (middle, 5), (right, 9)):
        triangle[begin : begin + 11] = [1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]
    for c, (a, b) in enumerate([(middle, right), (middle, left), (right, left)]):
        mean, covariance = moments(X[y == c])
        assert near(mean, (a + b) / 2, variance=2)
        # u is uniform: its variance is 1/12, at most 36/12 in a feature
        assert near(covariance, np.eye(21) + np.outer(a - b, a - b) / 12, variance=4)


def test_twonorm():
    X, y = drawn(twonorm)
    for c, a in enumerate([2 / np.sqrt(20), -2 / np.sqrt(20)]):
        mean, covariance = moments(X[y == c])
        assert near(mean, a)
        assert near(covariance, np.eye(20))
    # the best rule looks at the sign of the sum, two deviations from either mean
    assert near(np.mean((X.sum(axis=1) < 0) != y), NormalDist().cdf(-2))


def test_threenorm():
    X, y = drawn(threenorm)
    a = 2 / np.sqrt(20)
    mean, covariance = moments(X[y == 0])
    assert near(mean, 0, variance=2)
    assert near(covariance, np.eye(20) + a**2, variance=2)
    mean, covariance = moments(X[y == 1])
    assert near(mean, a * np.array([1, -1] * 10))
    assert near(covariance, np.eye(20))


@pytest.mark.parametrize("distance", [1, 2])
def test_ringnorm(distance):
    X, y = drawn(partial(ringnorm, mean=distance))
    for c, (expected, variance) in enumerate([(0, 4), (distance / np.sqrt(20), 1)]):
        mean, covariance = moments(X[y == c])
        assert near(mean, expected, variance)
        assert near(covariance, variance * np.eye(20), variance)


def mean_of(name, repetitions=REPETITIONS):
    figure = breiman.experiments()[name]
    return np.mean([figure(i) for i in range(repetitions)])


@pytest.mark.parametrize(
    "name", [*TASKS, "Friedman 1, 100 bagged trees", "Friedman 1, 25 bagged trees"]
)
def test_errors_are_those_published(name):
    assert abs(mean_of(name) - breiman.PUBLISHED[name]) < WITHIN


def test_spam():
    assert abs(mean_of("spambase, forest", 3) - breiman.PUBLISHED["spambase, forest"]) < WITHIN


def test_the_tree_of_iris():
    assert breiman.iris_tree().splitlines() == [
        "petal length (cm) <= 2.45",
        "|   class: setosa (setosa: 50)",
        "petal length (cm) > 2.45 or missing",
        "|   petal width (cm) <= 1.75 or missing",
        "|   |   class: versicolor (versicolor: 49, virginica: 5)",
        "|   petal width (cm) > 1.75",
        "|   |   class: virginica (versicolor: 1, virginica: 45)",
    ]


def test_its_lines_and_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(breiman, "experiments", lambda: {"waveform": lambda i: float(i)})
    monkeypatch.setattr("sys.argv", ["breiman", "--repetitions", "3"])
    breiman.main()
    line = json.loads((tmp_path / "breiman.jsonl").read_text())
    assert (line["experiment"], line["published"]) == ("waveform", 17.3)
    assert line["errors"] == [0, 1, 2]
    assert "| waveform | 3 | 1.00 ± 0.58 | 1.00 | 17.3 |" in capsys.readouterr().out
