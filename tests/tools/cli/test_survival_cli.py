"""Survival forests on the command line: two columns are the target."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused
from commands import told as said

import gpuforest as gf
from gpuforest.cli import main

TRAIN = ("train", "rows.csv", "--target", "weeks", "--event", "died", "--out", "model")
SMALL = ("--n-estimators", "30", "--random-state", "3")
N = 90


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, N)
    frame = pd.DataFrame(X, columns=list("abc")).assign(town=["x", "y", "z"] * (N // 3))
    return frame.assign(weeks=np.round(np.minimum(time, end), 2), died=(time <= end).astype(int))


@pytest.fixture
def rows(frame, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("rows.csv", index=False)
    return frame


def parts(frame):
    y = np.rec.fromarrays([frame["died"] == 1, frame["weeks"].astype(float)])
    return frame.drop(columns=["weeks", "died"]), y


@pytest.mark.parametrize(
    ("word", "kind"), [("forest", gf.RandomSurvivalForest), ("extra_trees", gf.ExtraSurvivalTrees)]
)
def test_the_model_is_that_of_python(rows, capsys, word, kind):
    X, y = parts(rows)
    found = said(capsys, *TRAIN, *SMALL, "--model", word, "--n-times", "7")
    model = gf.load("model")
    assert type(model) is kind
    same = kind(30, n_times=7, random_state=3, oob_score=model.oob_score).fit(X, y)
    assert np.array_equal(model.predict(X), same.predict(X))
    assert (found["task"], found["score"]) == ("survival", "concordance")
    assert (found["oob_score"], found["features"]) == (same.oob_score_, 4)
    known = said(capsys, "evaluate", "model", "rows.csv", "--permute")
    assert known["concordance"] == same.score(X, y)
    assert next(iter(known["permuted"])) == "a"
    assert main(["predict", "model", "rows.csv", "--out", "risks.csv"]) == 0
    assert np.allclose(pd.read_csv("risks.csv")["prediction"], same.predict(X))


def test_truth_values_parquet_rows_held_out_and_weights(rows, capsys):
    rows.assign(died=rows["died"] == 1).to_parquet("rows.parquet")
    train = ("train", "rows.parquet", *TRAIN[2:], *SMALL)
    found = said(capsys, *train, "--test", "0.3", "--drop", "b")
    assert (found["rows"], found["test_rows"], found["features"]) == (63, 27, 3)
    assert 0.5 < found["test_score"] < 1
    said(capsys, *train)
    whole = gf.load("model").forest_
    said(capsys, *TRAIN, *SMALL)
    assert np.array_equal(whole.nodes, gf.load("model").forest_.nodes)
    rows.assign(w=1 + rows["died"]).to_csv("rows.csv", index=False)
    found = said(capsys, *TRAIN, *SMALL, "--weight", "w", "--test", "0.3")
    assert 0.5 < found["test_score"] < 1
    line = refused(capsys, "evaluate", "model", "rows.csv", "--weight", "w")
    assert "concordance has no weights" in line  # they count in the training alone


def test_several_causes(rows, capsys):
    rows["died"] *= 1 + (rows["b"] > 0)
    rows.to_csv("rows.csv", index=False)
    X = parts(rows)[0]
    y = np.rec.fromarrays([rows["died"], rows["weeks"]])
    same = gf.RandomSurvivalForest(30, random_state=3, oob_score=True).fit(X, y)
    assert said(capsys, *TRAIN, *SMALL)["oob_score"] == same.oob_score_
    known = said(capsys, "evaluate", "model", "rows.csv")
    for cause, name in ((1, "concordance"), (2, "concordance_2")):
        assert known[name] == same.score(X, y, cause=cause)
    main(["evaluate", "model", "rows.csv"])
    assert f"concordance 2  {known['concordance_2']:.4f}" in capsys.readouterr().out
    assert main(["predict", "model", "rows.csv", "--out", "risks.csv"]) == 0
    assert np.allclose(pd.read_csv("risks.csv"), same.predict(X))
    picture = ("plot", "survival", "model", "--data", "rows.csv", "--groups", "2")
    assert main([*picture, "--out", "curves.svg"]) == 0
    assert "highest risk: 45 rows" in Path("curves.svg").read_text()
    assert main(["report", "model", "--data", "rows.csv", "--out", "page.html"]) == 0
    page, texts = Path("page.html").read_text(), ("out-of-bag concordance", "concordance, rows giv")
    assert all(text in page for text in (*texts, "concordance by cause 2"))
    assert "R²" not in page


@pytest.mark.parametrize(("options", "message"), [
    (["--event", "a"], "the event column 'a' must hold 1 (or true) where the event came, or"),
    (["--event", "town"], "the event column 'town' must hold 1 (or true)"),
    (["--event", "weeks"], "column 'weeks' is the target: it cannot be dropped, or be the w"),
    (["--event", "death"], "no column 'death'"),
    (["--target", "town"], "the target 'town' must hold the times of the events: numbers"),
    (["--target", "a"], "the times of y must be finite and not negative"),
    (["--model", "boosting"], "--model boosting is not for survival"),
    (["--target", "died", "--event", "days"], "exchange --event 'days', named a time, and --"),
    (["--task", "regression"], "--event is for survival forests, not for regression"),
])  # fmt: skip
def test_what_train_refuses(rows, capsys, options, message):
    rows.assign(days=np.arange(N)).to_csv("rows.csv", index=False)
    assert message in refused(capsys, *TRAIN, *options)


def test_forests_without_curves_and_what_evaluate_refuses(rows, capsys):
    assert main([*TRAIN, *SMALL, "--low-memory"]) == 0
    picture = ("plot", "survival", "model", "--data", "rows.csv", "--out", "curves.svg")
    assert "is not implemented in low memory mode" in refused(capsys, *picture)
    assert main(["report", "model", "--data", "rows.csv", "--out", "page.html"]) == 0
    assert "low_memory=True has no curves" in Path("page.html").read_text()
    X, y = parts(rows)
    gf.RandomSurvivalForest(2, random_state=0).fit(X, y).save("model")
    known = ("evaluate", "model", "rows.csv", "--target", "weeks")
    assert "which column has its events: add --event" in refused(capsys, *known)
    assert said(capsys, *known, "--event", "died")["concordance"] > 0.5
    gf.RandomForestRegressor(2, random_state=0).fit(X, rows["weeks"]).save("model")
    line = refused(capsys, *known, "--event", "died")
    assert "--event: the model is no survival forest" in line
