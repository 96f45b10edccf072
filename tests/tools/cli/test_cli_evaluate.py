"""`gpuforest evaluate`: scores of a saved model on a file."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, told
from paths import ROOT
from sklearn import metrics

import gpuforest as gf
from gpuforest.tools.cli import main

N = 90


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    noisy = frame["a"] + rng.normal(size=N) / 2
    frame["kind"] = np.array(["low", "mid", "top"])[np.digitize(noisy, [-0.5, 0.5])]
    frame["size"] = noisy
    frame["w"] = rng.integers(1, 4, N)
    frame[: N // 2].to_csv("train.csv", index=False)
    frame[N // 2 :].to_csv("new.csv", index=False)
    return frame[N // 2 :]


def train(target: str, other: str) -> gf.RandomForestClassifier:
    line = ["train", "train.csv", "--target", target, "--drop", f"{other},w", "--out", "model"]
    assert main([*line, "--backend", "numpy", "--random-state", "0"]) == 0
    return gf.load("model").set_params(backend="numpy")


def facts(capsys, *arguments: str) -> dict:
    return told(capsys, "evaluate", "model", "new.csv", "--backend", "numpy", *arguments)


@pytest.mark.parametrize("weight", [None, "w"])
def test_scores_of_classes_are_those_of_scikit_learn(data, capsys, weight):
    model = train("kind", "size")
    found = facts(capsys, *(["--weight", weight] if weight else []))
    X, y, w = data[["a", "b"]], data["kind"], None if weight is None else data[weight]
    predicted = model.predict(X)
    assert found["target"] == "kind"
    assert found["rows"] == N // 2
    assert found["accuracy"] == metrics.accuracy_score(y, predicted, sample_weight=w)
    assert found["balanced_accuracy"] == pytest.approx(  # a mean in another order
        metrics.balanced_accuracy_score(y, predicted, sample_weight=w), rel=1e-12
    )
    assert found["log_loss"] == metrics.log_loss(y, model.predict_proba(X), sample_weight=w)
    assert found["classes"] == ["low", "mid", "top"]
    expected = metrics.confusion_matrix(y, predicted, sample_weight=w)
    assert np.array_equal(found["confusion"], expected)
    assert main(["evaluate", "model", "new.csv", "--backend", "numpy"]) == 0
    out = capsys.readouterr().out
    assert "balanced accuracy" in out
    lines = [line.split() for line in out.splitlines()]
    assert lines[-4] == ["confusion", "predicted", "low", "mid", "top"]
    assert [line[0] for line in lines[-3:]] == ["low", "mid", "top"]


def test_scores_of_numbers_are_those_of_scikit_learn(data, capsys):
    model = train("size", "kind")
    found = facts(capsys)
    y, predicted = data["size"], model.predict(data[["a", "b"]])
    assert found["r2"] == metrics.r2_score(y, predicted)
    assert found["mean_absolute_error"] == metrics.mean_absolute_error(y, predicted)
    squared = metrics.mean_squared_error(y, predicted)
    assert found["root_mean_squared_error"] == np.sqrt(squared)
    data[:1].to_csv("new.csv", index=False)
    assert facts(capsys)["r2"] is None  # one row has none


@pytest.mark.parametrize(("column", "arguments", "message"), [
    ("kind", ["--target", "colour"], "no column 'colour'"),
    ("kind", ["--target", "w"], "the model's classes are 'low', 'mid', 'top'"),
    ("kind", ["--weight", "a"], "the weight column 'a' is negative or infinite in "),
    ("size", ["--target", "kind"], "the target holds text, and the model predicts numbers"),
])  # fmt: skip
def test_targets_that_do_not_fit(data, capsys, column, arguments, message):
    train(column, {"kind": "size", "size": "kind"}[column])
    assert message in refused(capsys, "evaluate", "model", "new.csv", *arguments)


def test_classes_that_training_had_not_and_models_from_python(data, capsys):
    train("kind", "size")
    data.assign(kind=["new", *data["kind"][1:]]).to_csv("new.csv", index=False)
    found = facts(capsys)
    assert found["classes"] == ["low", "mid", "new", "top"]
    assert sum(found["confusion"][2]) == 1
    assert found["log_loss"] is None
    X, y = data[["a", "b"]], data["kind"]
    model = gf.RandomForestClassifier(5, random_state=0, backend="numpy")
    model.fit(X, y).save("model")
    line = refused(capsys, "evaluate", "model", "new.csv")
    assert "does not say what its target is called: add --target" in line
    assert facts(capsys, "--target", "kind")["accuracy"] > 0.8
    model.fit(X.to_numpy(), y).save("model")
    line = refused(capsys, "evaluate", "model", "new.csv", "--target", "kind")
    assert "features with names" in line


def test_the_commands_and_options_of_the_page(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("onnx", reason="needs pip install 'gpuforest[checks]'")
    page = (ROOT / "docs" / "command_line.md").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPUFOREST_BACKEND", "numpy")
    rows = [f"{i:03d},{i % 7},{100 + i}.5" for i in range(20)]
    for name in ("houses.csv", "new.csv"):
        Path(name).write_text("\n".join(["id,rooms,price", *rows]))
    lines = page.split("```sh\n")[1].split("```")[0].splitlines()
    for line in lines:
        assert main(line.split()[1:]) == 0, line
    assert Path("prices.csv").read_text().startswith("id,prediction\n000,1")
    capsys.readouterr()
    known = ""
    commands = ("train", "predict", "evaluate", "inspect", "plot loss", "plot importances")
    for command in (
        *commands,
        "verify",
        "refit",
        "delete",
        "merge",
        "report",
        "export onnx",
        "export c",
    ):
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        known += capsys.readouterr().out
    for option in set(re.findall(r"--[a-z][a-z-]+", page)):
        assert option in known, option
