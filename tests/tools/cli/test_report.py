"""`gpuforest report`: the page of a saved model, and of rows of a file; errors are one line."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused
from hostile import SCRIPT, Page

import gpuforest as gf
from gpuforest.tools.cli import main


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model of two thirds of a file, and the rest of it as new.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"])
    frame["colour"] = rng.choice(["red", "green", "blue"], 150)
    frame["kind"] = np.where(frame["a"] + rng.normal(size=150) / 2 > 0, SCRIPT, "other")
    frame[:100].to_csv("train.csv", index=False)
    frame[100:].to_csv("new.csv", index=False)
    line = ["train", "train.csv", "--target", "kind", "--out", "model", "--oob-score"]
    assert main([*line, "--n-estimators", "20", "--random-state", "0", "--backend", "numpy"]) == 0
    return gf.load("model").set_params(backend="numpy")


def report(*arguments: str) -> int:
    return main(["report", "model", "--out", "report.html", "--backend", "numpy", *arguments])


def test_the_model_alone_and_with_rows_as_by_the_method(model, capsys):
    capsys.readouterr()
    assert report() == 0
    assert capsys.readouterr().out == "report written to report.html\n"
    page = Page(Path("report.html").read_text("utf-8"))
    assert page.after("target").startswith("kind")
    assert page.after("training rows").startswith("100")
    assert page.after("out-of-bag accuracy").startswith(f"{model.oob_score_:.4f}")
    assert report("--data", "new.csv") == 0
    frame = pd.read_csv("new.csv")
    text = Path("report.html").read_text("utf-8")
    assert text == model.report(frame.drop(columns="kind"), frame["kind"])
    assert SCRIPT in Page(text).text
    assert "<script" not in text


def test_rows_are_read_as_by_evaluate(model, capsys):
    frame = pd.read_csv("new.csv").rename(columns={"kind": "truth"})
    frame.loc[frame.index[:3], "truth"] = np.nan
    frame.to_csv("new.csv", sep=";", decimal=",", index=False)
    given = ["--data", "new.csv", "--decimal", ",", "--target", "truth"]
    line = refused(capsys, "report", "model", "--out", "report.html", *given)
    assert "missing in 3 of 50 rows; --drop-missing-target" in line
    assert report(*given, "--drop-missing-target") == 0
    assert "3 of 50 rows have no 'truth'" in capsys.readouterr().err
    assert Page(Path("report.html").read_text("utf-8")).after("rows given").startswith("47")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--data", "new.csv", "--target", "knid"], "no column 'knid': did you mean 'kind'"),
    (["--data", "other.csv"], "a column that is absent from the data: 'colour'"),
    (["--data", "numbers.csv"], "the target holds '1', '2', and the model's classes are"),
    (["--target", "kind"], "--target is about the rows of a file: add --data FILE"),
    (["--out", "report.txt"], "--out report.txt: a name that ends in .html"),
])  # fmt: skip
def test_errors_are_one_line_and_nothing_is_written(model, capsys, arguments, message):
    frame = pd.read_csv("new.csv")
    frame.drop(columns="colour").to_csv("other.csv", index=False)
    frame.assign(kind=np.arange(50) % 2 + 1).to_csv("numbers.csv", index=False)
    line = ["report", "model", "--out", "report.html", "--backend", "numpy", *arguments]
    assert message in refused(capsys, *line)
    assert not Path("report.html").exists()
