"""Rows that `train` holds out and writes, and rows of the training that are told again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, told

import gpuforest as gf
from gpuforest.cli import main

N = 240
TRAIN = (
    "train", "rows.csv", "--target", "kind", "--n-estimators", "30", "--random-state", "0",
    "--backend", "numpy",
)  # fmt: skip
SPLIT = ("--test", "0.25", "--random-state", "0", "--out", "model")
TOLD = "of the training rows are among the rows given"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame["town"] = np.where(rng.random(N) < 0.1, None, rng.choice(["01", "02", 'x "y"'], N))
    frame["kind"] = np.where(frame["a"] + rng.normal(size=N) > 0, "yes", "no")
    frame["weeks"], frame["died"] = rng.exponential(5.0, N), rng.integers(0, 2, N)
    frame["family"] = np.arange(N) // 3
    frame.loc[::9, "b"] = np.nan
    frame.to_csv("rows.csv", index=False)
    return frame


def evaluated(capsys, path, *arguments):
    """The facts, and what was said beside them."""
    capsys.readouterr()
    assert main(["evaluate", "model", path, "--json", *arguments]) == 0
    out, err = capsys.readouterr()
    return json.loads(out), err


@pytest.mark.parametrize("name", ["held.csv", "held.parquet"])
@pytest.mark.parametrize(
    "options",
    [("--target", "kind"), ("--target", "weeks", "--event", "died", "--groups", "family")],
)
def test_the_score_of_the_rows_held_out_is_that_of_train(rows, capsys, name, options):
    line = (*TRAIN[:2], *options, *TRAIN[4:], *SPLIT, "--test-out", name)
    said = told(capsys, *line)
    known, err = evaluated(capsys, name)
    assert known["rows"] == said["test_rows"] == N // 4
    assert known[said["score"]] == said["test_score"]
    assert TOLD not in err
    held = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    assert {*held} == {*rows}
    known, err = evaluated(capsys, "rows.csv")  # holds them all
    assert f"100.0% {TOLD}" in err
    assert any(TOLD in check for check in known["checks"])


def test_rows_are_compared_and_not_their_number(rows, capsys):
    rows[: N // 2].to_csv("rows.csv", index=False)
    rows[N // 2 :].to_csv("new.csv", index=False)
    assert main([*TRAIN, "--out", "model"]) == 0
    rows[: N // 2].sample(frac=1.0, random_state=0).to_csv("mixed.csv", index=False)
    for path, is_told in (("new.csv", False), ("mixed.csv", True)):
        assert (TOLD in evaluated(capsys, path)[1]) == is_told
        assert main(["report", "model", "--data", path, "--out", "page.html"]) == 0
        page = Path("page.html").read_text("utf-8")
        assert (TOLD in page) == is_told
        assert "as many as those of the training" not in page
    model = gf.load("model")
    del model.source_["row_hashes"]  # as of an earlier file: their number is all it knows
    model.save("model")
    assert "as many as those of the training" in evaluated(capsys, "new.csv")[1]


@pytest.mark.parametrize("options", [("--drop", "a"), ("--categorical-split", "ordered_target")])
def test_rows_of_blocks_are_known_again(rows, capsys, options):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    rows.to_parquet("rows.parquet")
    train = ("train", "rows.parquet", *TRAIN[2:], *options)
    model = "forest" if "--drop" in options else "boosting"
    size = train[:4] + (("--max-iter", "9", *train[6:]) if model == "boosting" else train[4:])
    assert main([*size, "--model", model, "--out", "model"]) == 0
    err = evaluated(capsys, "rows.csv")[1]
    # codes of target statistics are those of the training alone, so their number tells
    assert ("Are these the training rows?" if model == "boosting" else TOLD) in err


@pytest.mark.parametrize(("options", "text"), [
    (("--test", "rows2.csv", "--test-out", "h.csv"), "--test FRACTION holds out of DATA"),
    (("--test", "0.2", "--test-out", "h.txt"), "--test-out h.txt: a name that ends in .csv"),
    (("--test", "0.2", "--test-out", "rows.csv"), "--test-out rows.csv is the file rows.csv"),
    (("--test", "0.2", "--test-out", "./model.csv"), "name a file of its own"),
    (("--test", "0.2", "--test-out", "h.csv", "--decimal", ","), "name a .parquet file"),
])  # fmt: skip
def test_what_cannot_be_written_is_refused_before_the_work(rows, capsys, options, text):
    assert text in refused(capsys, *TRAIN, "--out", "model.csv", *options)
    assert not Path("model.csv").exists()
