"""The classic experiments come out as published; their generators are what they say."""

import json

import numpy as np
import pytest

from benchmarks import breiman, record
from benchmarks.synthetic import TASKS

pytestmark = pytest.mark.deep

N = 100_000
REPETITIONS = 50
WITHIN = 0.5  # of the published figure: that of 50 repetitions is uncertain by 0.15


@pytest.mark.parametrize("name", TASKS)
def test_rows_follow_the_seed_and_classes_are_equally_likely(name):
    (X, y), again = (TASKS[name](np.random.default_rng(0), N) for _ in range(2))
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])
    assert X.shape == (N, 21 if name == "waveform" else 20)
    assert np.allclose(np.bincount(y) / N, 1 / (3 if name == "waveform" else 2), atol=0.01)


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
