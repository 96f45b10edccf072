"""The scripts behind the tables of the pages: a tiny run of each, its lines and table."""

import json
from importlib import import_module
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    boruta,
    breiman,
    dependence,
    forest_or_boosting,
    isolation,
    outliers,
    quantiles,
    rare_classes,
    record,
    understanding,
)
from benchmarks.synthetic import TASKS
from gpuforest.boosting import losses

pytestmark = pytest.mark.deep


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    """Runs a script, and gives its lines and what it prints."""
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    monkeypatch.setattr(outliers, "RESULTS", tmp_path)

    def run(script, arguments):
        name = script.__name__.split(".")[-1]
        monkeypatch.setattr("sys.argv", [name, *arguments.split()])
        script.main()
        text = (tmp_path / f"{name}.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()], capsys.readouterr().out

    return run


def test_boruta(ran):
    size = "--rows 120 --features 24 --trees 5 --rounds 3"
    lines, printed = ran(boruta, f"{size} --seeds 2 --rivals 0")
    assert [(line["seed"], line["selector"]) for line in lines] == [
        (seed, f"gpuforest, {kind}") for seed in range(2) for kind in ("oob_impurity", "impurity")
    ]
    # three rounds decide nothing
    decided = {(x["relevant"], x["others"], x["tentative"], x["rounds"]) for x in lines}
    assert decided == {(0, 0, 24, 3)}
    assert "| gpuforest, impurity | 2 | 0 (0-0) | 0 (0-0) | 24 (24-24) |" in printed


def test_dependence(ran, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[5, 1] = np.nan
    monkeypatch.setattr(dependence.real, "load", lambda name, folder: (X, rng.normal(size=60)))
    lines, printed = ran(dependence, "--rows 50 --trees 3 --runs 2")
    assert [(line["way"], line["model"]) for line in lines] == [
        (way, model)
        for way in ("recursion", "brute", "individual")
        for model in ("gpuforest", "scikit-learn")
    ]
    assert all(line["rows"] == 50 and line["later_s"] > 0 for line in lines)
    assert lines[-1]["all_at_once_mb"] == 50 * 3 * 4 * 50 / 1e6
    assert "| recursion, gpuforest |" in printed


def test_without_the_data_there_is_no_run(tmp_path, capsys):
    dependence.main(["--data", str(tmp_path), "--results", str(tmp_path / "lines")])
    assert "california: skipped" in capsys.readouterr().out
    assert not (tmp_path / "lines").exists()


def anomalies(folder):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(8, 1, size=(3, 2))])
    yield "numbers", X.astype(np.float32), np.arange(63) >= 60
    kinds = pd.Series(["usual", "common"] * 30 + ["odd", None, "odd"]).astype("category")
    yield "categories", pd.DataFrame({"kind": kinds, "size": X[:, 0]}), np.arange(63) >= 60
    yield "others", X, np.arange(63) >= 60


def test_isolation(ran, monkeypatch):
    monkeypatch.setattr(isolation, "tasks", anomalies)
    lines, printed = ran(isolation, "--seeds 2 --tasks num categories")
    assert [(line["set"], line["model"]) for line in lines] == [
        (name, model)
        for name in ("numbers", "categories")
        for model in ("scikit-learn", "gpuforest, max_bins=auto")
    ]
    assert all(line["rows"] == 63 and line["auc"] > 0.9 for line in lines)
    assert lines[0]["fit_ratio"] == 1
    assert f"| numbers: scikit-learn | {lines[0]['auc']:.4f} ±" in printed


def test_anomalies_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation.real, "load", lambda name, folder: None)
    frame = pd.DataFrame({"label": ["p", "e"] * 40, "cap": ["a", "?", "b", "c"] * 20, "n": 1.5})
    frame.to_csv(tmp_path / "mushroom.csv.gz", index=False)
    tasks = {name: (X, odd) for name, X, odd in isolation.tasks(tmp_path)}
    assert [*tasks] == ["mushroom, poisonous in others", "heavy tails", "amounts"]
    X, odd = tasks["mushroom, poisonous in others"]
    assert odd.sum() == 1
    assert X["cap"].dtype == "category"
    assert X["cap"].isna().any()
    assert X["n"].dtype == float


def test_outliers(ran):
    lines, printed = ran(outliers, "--rows 60 --trees 2 --seeds 2")
    models = ["gpuforest, max_bins=auto", "gpuforest, max_bins=65535", "scikit-learn"]
    expected = [(far, model) for far in outliers.FAR for model in models]
    assert [(x["far"], x["model"]) for x in lines] == expected
    assert all(0 < x["median_error"] < 2 for x in lines)
    assert "| 1e+09 |" in printed


def with_a_gap(name):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    X[7, 1] = np.nan
    return X, 1e5 * (X[:, 0] + rng.uniform(size=120))


def test_quantiles(ran, monkeypatch):
    monkeypatch.setattr(quantiles.real, "load", with_a_gap)
    lines, printed = ran(quantiles, "--splits 2 --rivals 0")
    assert [(line["data"], line["split"]) for line in lines] == [
        (name, split) for name in ("california", "bike") for split in range(2)
    ]
    assert all(len(line["pinball"]) == 3 and 0 <= line["range"][0] <= 1 for line in lines)
    share, width = np.mean([line["interval"] for line in lines[:2]], axis=0)
    assert f"| california | interval | {share:.3f} | {width:.3f} |" in printed


def test_losses_and_coverage_by_hand():
    y, found = np.array([1.0, 3.0]), np.array([[0.0, 2.0, 3.0], [4.0, 2.0, 3.0]])
    expected = [(0.05 * 1 + 0.95 * 1) / 2, (0.5 * 1 + 0.5 * 1) / 2, (0.05 * 2 + 0) / 2]
    assert np.allclose(quantiles.pinball(y, found), expected)
    assert quantiles.covered(y, np.array([0.0, 4.0]), np.array([1.0, 5.0])) == (0.5, 1.0)


def test_shap(ran):
    pytest.importorskip("shap", reason="the package shap is not installed")
    shap = import_module("benchmarks.shap")
    size = "--trees=2 --train-rows=400 --rows=8 --shap-rows=2 --background=5"
    lines, printed = ran(shap, f"{size} --threads=1 --runs=2")
    assert [line["depth"] for line in lines] == [16, None]
    for line in lines:
        assert line["sum_error"] < 1e-12
        assert line["difference"] < 1e-9
        for kind in shap.KINDS:
            skipped = (line["depth"], kind) == (None, "shap_background")
            assert len(line[kind]) == (0 if skipped else 2)
    assert lines[0]["difference_background"] < 1e-6  # shap's weights have 32 bits
    assert lines[1]["difference_background"] is None
    for depth in (16, "unlimited"):
        assert f"| {depth}, clock |" in printed
        assert f"| {depth}, processors |" in printed


def test_forest_or_boosting(ran):
    lines, printed = ran(forest_or_boosting, "--sets cancer diabetes --seeds 2")
    assert len(lines) == 2 * 3 * 2
    assert {line["rows"] for line in lines if line["part"] == "300 rows"} == {300}
    forest, boosting = (np.mean(line["accuracy"]) for line in lines[:2])
    row = f"| cancer, all rows | {forest:.4f} | {boosting:.4f} | {boosting - forest:+.4f} ±"
    assert row in printed
    assert printed.count("± ") == 3 * 2 + 3


def test_wrong_targets_are_a_fifth_at_most():
    X, y = np.arange(1000.0)[:, None], np.arange(1000)
    X_new, y_new = forest_or_boosting.training("a fifth wrong", X, y, 0)
    assert np.array_equal(X, X_new)
    assert 150 < (y_new != y).sum() <= 200
    assert set(y_new) <= set(y)


def test_log_links(ran):
    pytest.importorskip("lightgbm", reason="no LightGBM here")
    log_links = import_module("benchmarks.log_links")
    lines, printed = ran(log_links, "--rows 200 --rates 0.1 --ratios 1 --seeds 1")
    assert [line["loss"] for line in lines] == ["gamma", "poisson", "tiny rates"]
    assert all(0 < line[library] < 3 for line in lines for library in log_links.LIBRARIES)
    assert "| gamma | 0.1 | 1 |" in printed


def test_rare_classes(ran):
    lines, printed = ran(rare_classes, "--sets spambase --seeds 2 --rounds 2")
    assert [line["limit"] for line in lines] == [None, 60, 30, 10]
    assert [line["same"] for line in lines] == [2, 2, 2, 2]
    mean, worst = (f"{f(lines[0]['log_loss']):.4f}" for f in (np.mean, np.max))
    assert f"| {mean} | {worst} | 2 |" in printed
    assert losses.MOST_VALUE_OF_CLASSES == 30  # as it was


def test_the_rarest_class(monkeypatch):
    X, y = np.zeros((6, 1)), np.array([0, 0, 1, 2, 2, 2])
    monkeypatch.setattr(rare_classes, "load", lambda name, rows, folder: (X, y))
    assert rare_classes.data_of("covtype, one class", None)[1].tolist() == [0, 0, 1, 0, 0, 0]


def test_understanding(ran, monkeypatch):
    first = list(islice(understanding.learning_sets(), 1))
    monkeypatch.setattr(understanding, "learning_sets", lambda: first)
    monkeypatch.setattr(understanding, "LEAST_ROWS", (20,))
    monkeypatch.setattr(understanding, "VOTING_SETS", ("digits",))
    lines, printed = ran(understanding, "--rounds 2 --seeds 2")
    assert [line["part"] for line in lines] == ["bias and variance"] * 6 + ["voting"] * 4
    for line in lines[:6]:
        # both are rounded to six digits when they are written
        assert abs(line["bias"] + line["variance"] - line["error"]) < 1e-4 * line["error"]
    votes = [(seed, voting) for seed in (1, 2) for voting in ("soft", "hard")]
    assert [(line["seed"], line["voting"]) for line in lines[6:]] == votes
    assert f"| Friedman 1: tree | {lines[1]['error']:.2f} |" in printed
    soft = (lines[6]["accuracy"] + lines[8]["accuracy"]) / 2
    assert f"| digits, leaves of 20 or more | {100 * soft:.2f} |" in printed


def test_breiman(ran, monkeypatch):
    monkeypatch.setattr(breiman, "experiments", lambda: {"waveform": lambda i: float(i)})
    [line], printed = ran(breiman, "--repetitions 3")
    assert (line["experiment"], line["published"]) == ("waveform", 17.3)
    assert line["errors"] == [0, 1, 2]
    assert "| waveform | 3 | 1.00 ± 0.58 | 1.00 | 17.3 |" in printed


WITHIN = 0.5  # of the published figure: that of 50 repetitions is uncertain by 0.15


BAGGED = ["Friedman 1, 100 bagged trees", "Friedman 1, 25 bagged trees"]


@pytest.mark.parametrize("name", [*TASKS, *BAGGED, "spambase, forest"])
def test_errors_are_those_published(name):
    figure = breiman.experiments()[name]
    errors = [figure(i) for i in range(3 if name.startswith("spam") else 50)]
    assert abs(np.mean(errors) - breiman.PUBLISHED[name]) < WITHIN


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
