"""The scripts behind the tables of docs/: a tiny run of each, its lines and its table."""

import json
from importlib import import_module
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from benchmarks import (
    boruta,
    dependence,
    first_contact,
    forest_or_boosting,
    isolation,
    outliers,
    public_data,
    quantiles,
    rare_classes,
    record,
    understanding,
    versions,
)
from benchmarks.presets import __main__ as presets
from benchmarks.presets.methods import Encoded, sklearn_forest
from benchmarks.presets.sets import SIMULATED, simulated, task_of
from gpuforest.boosting import losses

pytestmark = pytest.mark.deep


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs a script with these options; returns its lines and what it prints."""

    def run(script, *options, to_file=False):
        monkeypatch.setattr(record, "RESULTS", tmp_path)
        name = script.__name__.removesuffix(".__main__").rpartition(".")[2]
        path = tmp_path / f"{name}.jsonl"
        arguments = [*map(str, options), *(["--results", str(path)] if to_file else [])]
        monkeypatch.setattr("sys.argv", ["script", *arguments])
        script.main(arguments) if to_file else script.main()
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines], capsys.readouterr().out

    return run


def test_boruta(run):
    size = ["--rows", 120, "--features", 24, "--trees", 5, "--rounds", 3, "--seeds", 2]
    lines, printed = run(boruta, *size, "--rivals", 0, to_file=True)
    assert [(line["seed"], line["selector"]) for line in lines] == [
        (seed, f"gpuforest, {kind}") for seed in range(2) for kind in ("oob_impurity", "impurity")
    ]
    # three rounds decide nothing
    found = {(x["relevant"], x["others"], x["tentative"], x["rounds"]) for x in lines}
    assert found == {(0, 0, 24, 3)}
    assert "| gpuforest, impurity | 2 | 0 (0-0) | 0 (0-0) | 24 (24-24) |" in printed


def test_dependence(run, monkeypatch, tmp_path):
    lines, printed = run(dependence, "--data", tmp_path, to_file=True)
    assert (lines, "california: skipped" in printed) == ([], True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[5, 1] = np.nan
    monkeypatch.setattr(dependence.real, "load", lambda name, folder: (X, rng.normal(size=60)))
    lines, printed = run(dependence, "--rows", 50, "--trees", 3, "--runs", 2, to_file=True)
    assert [(line["way"], line["model"]) for line in lines] == [
        (way, model)
        for way in ("recursion", "brute", "individual")
        for model in ("gpuforest", "scikit-learn")
    ]
    assert all(line["rows"] == 50 and line["later_s"] > 0 for line in lines)
    assert lines[-1]["all_at_once_mb"] == 50 * 3 * 4 * 50 / 1e6
    assert "| recursion, gpuforest |" in printed


def test_isolation(run, monkeypatch):
    def tiny(folder):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(8, 1, size=(3, 2))])
        yield "numbers", X.astype(np.float32), np.arange(63) >= 60
        kinds = pd.Series(["usual", "common"] * 30 + ["odd", None, "odd"]).astype("category")
        yield "categories", pd.DataFrame({"kind": kinds, "size": X[:, 0]}), np.arange(63) >= 60

    monkeypatch.setattr(isolation, "tasks", tiny)
    lines, printed = run(isolation, "--seeds", 2, "--tasks", "num", "categories", to_file=True)
    assert [line["model"] for line in lines] == ["scikit-learn", "gpuforest, max_bins=auto"] * 2
    assert all(line["rows"] == 63 and line["auc"] > 0.9 for line in lines)
    assert f"| numbers: scikit-learn | {lines[0]['auc']:.4f} ±" in printed


def test_outliers(run):
    lines, printed = run(outliers, "--rows", 60, "--trees", 2, "--seeds", 2, to_file=True)
    assert len(lines) == 3 * len(outliers.FAR)
    assert all(0 < x["median_error"] < 2 for x in lines)
    assert "| 1e+09 |" in printed


def test_quantiles(run, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(120, 3))
    X[7, 1] = np.nan
    y = 1e5 * (X[:, 0] + rng.uniform(size=120))
    monkeypatch.setattr(quantiles.real, "load", lambda name: (X, y))
    lines, printed = run(quantiles, "--splits", 2, "--rivals", 0)
    assert [line["data"] for line in lines] == ["california"] * 2 + ["bike"] * 2
    assert all(len(line["pinball"]) == 3 and 0 <= line["range"][0] <= 1 for line in lines)
    share, width = np.mean([line["interval"] for line in lines[:2]], axis=0)
    assert f"| california | interval | {share:.3f} | {width:.3f} |" in printed


def test_shap(run):
    pytest.importorskip("shap", reason="the package shap is not installed")
    script = import_module("benchmarks.shap")
    sizes = {"trees": 2, "train-rows": 400, "rows": 8, "shap-rows": 2, "background": 5}
    options = [f"--{name}={n}" for name, n in (sizes | {"threads": 1, "runs": 2}).items()]
    lines, printed = run(script, *options)
    assert [line["depth"] for line in lines] == [16, None]
    assert all(x["sum_error"] < 1e-12 and x["difference"] < 1e-9 for x in lines)
    assert lines[0]["difference_background"] < 1e-6  # shap's weights have 32 bits
    assert lines[1]["difference_background"] is None
    assert "| 16, clock |" in printed


def test_log_links(run):
    pytest.importorskip("lightgbm", reason="no LightGBM here")
    script = import_module("benchmarks.log_links")
    size = ["--rows", 200, "--rates", 0.1, "--ratios", 1, "--seeds", 1]
    lines, printed = run(script, *size)
    assert [line["loss"] for line in lines] == ["gamma", "poisson", "tiny rates"]
    assert all(0 < line[library] < 3 for line in lines for library in script.LIBRARIES)
    assert "| gamma | 0.1 | 1 |" in printed


def test_rare_classes(run):
    lines, printed = run(rare_classes, "--sets", "spambase", "--seeds", 2, "--rounds", 2)
    assert [(line["limit"], line["same"]) for line in lines] == [
        (limit, 2) for limit in (None, 60, 30, 10)
    ]
    mean, worst = (f"{f(lines[0]['log_loss']):.4f}" for f in (np.mean, np.max))
    assert f"| {mean} | {worst} | 2 |" in printed
    assert losses.MOST_VALUE_OF_CLASSES == 30  # as it was


def test_forest_or_boosting(run):
    lines, printed = run(forest_or_boosting, "--sets", "cancer", "diabetes", "--seeds", 2)
    assert len(lines) == 2 * 3 * 2
    assert {line["rows"] for line in lines if line["part"] == "300 rows"} == {300}
    forest, boosting = (np.mean(line["accuracy"]) for line in lines[:2])
    row = f"| cancer, all rows | {forest:.4f} | {boosting:.4f} | {boosting - forest:+.4f} ±"
    assert row in printed
    assert printed.count("± ") == 3 * 2 + 3


def test_understanding(run, monkeypatch):
    first = list(islice(understanding.learning_sets(), 1))
    monkeypatch.setattr(understanding, "learning_sets", lambda: first)
    monkeypatch.setattr(understanding, "LEAST_ROWS", (20,))
    monkeypatch.setattr(understanding, "VOTING_SETS", ("digits",))
    lines, printed = run(understanding, "--rounds", 2, "--seeds", 2)
    assert [line["part"] for line in lines] == ["bias and variance"] * 6 + ["voting"] * 4
    for line in lines[:6]:  # rounded to six digits when they are written
        assert abs(line["bias"] + line["variance"] - line["error"]) < 1e-4 * line["error"]
    assert [line["voting"] for line in lines[6:]] == ["soft", "hard"] * 2
    assert f"| Friedman 1: tree | {lines[1]['error']:.2f} |" in printed


def test_first_contact(run, monkeypatch):
    def measure(commits, options, found):
        assert (commits, options.parts) == ({"before": "a", "after": "b"}, ["install"])
        found["install", "`pip install .` alone"] = {"before": [4, 2, 3], "after": [1, 2, 1]}

    monkeypatch.setattr(first_contact, "commit_of", str)
    monkeypatch.setattr(first_contact, "measure_all", measure)
    lines, printed = run(first_contact, "a", "b", "--parts", "install")
    assert [(line["part"], line["median_ratio"]) for line in lines] == [("install", 0.333333)]
    assert "alone | 3.00 (2.00-4.00) | 1.00 (1.00-2.00) | 0.333 | 0.35 times |" in printed


def test_versions(run):
    lines, printed = run(versions, record.ROOT, "--repeats", 1, "--work", "depth 8", "boosting")
    assert [line["work"] for line in lines] == ["depth 8", "boosting"]
    assert all(line["before"] > 0 and line["median_ratio"] > 0 for line in lines)
    assert "| depth 8 |" in printed


def test_presets(run, monkeypatch):
    methods = "sklearn-forest,gpuforest-forest-default"
    options = ["--sets", "digits", "--splits", 2, "--methods", methods]
    lines, printed = run(presets, *options)
    assert [(x["split"], x["method"]) for x in lines] == [
        (split, method)
        for split in range(2)
        for method in ("gpuforest-forest-default", "sklearn-forest")
    ]
    assert all(x["rows"] == 1347 and 0.9 < x["accuracy"] < x["fit_s"] + 1 for x in lines)
    assert lines[0]["log_loss"] != lines[2]["log_loss"]
    assert len(run(presets, *options)[0]) == 4  # what is there is not done again
    assert len(run(presets, *options, "--label", "b")[0]) == 6  # but with another label
    pair = methods.replace(",", ":")
    _, printed = run(presets, *options, "--summary", "--pairs", pair)
    assert "| sklearn-forest beside gpuforest-forest-default | 1 |" in printed


def test_presets_are_not_tried_on_sealed_sets(run):
    assert len(public_data.SEALED) == 8
    for name in public_data.SEALED:
        with pytest.raises(SystemExit, match=f"unknown: {name}"):
            run(presets, "--sets", name)


def test_presets_encodes_categories_by_the_training_rows():
    train = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 4]})
    test = pd.DataFrame({"a": ["z", None, "y"], "b": [1, 2, 3]})
    model = Encoded(sklearn_forest("Classifier", 0).model, 0).fit(train, [0, 1] * 2)
    np.testing.assert_array_equal(model.encoded(test)["a"], [-1, np.nan, 1])
    model.most_values = 2
    assert model.encoded(test)["a"].isna().tolist() == [True, True, False]


@pytest.mark.parametrize("name", SIMULATED)
def test_presets_simulates_many_values(name):
    X, y = simulated(name, 500)
    assert X.shape == (500, 5 if name == "sim-honest" else 6)
    assert (len(np.unique(y)) == 2) == (task_of(name) == "Classifier")
    if "unique" in name:
        assert X["name"].is_unique
