"""Causal forests on the command line: a column is the treatment, another perhaps its instrument."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused
from commands import told as said

import gpuforest as gf
from gpuforest.cli import main

N, COIN = 160, {"random_state": 3, "model_y": 0.5, "model_t": 0.5}
SMALL = ("--n-estimators", "20", "--random-state", "3", "--model-y", "0.5", "--model-t", "0.5")
TRAIN = ("train", "rows.csv", "--target", "cost", "--out", "model", *SMALL)
DRUG = ("--treatment", "drug")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    frame = frame.assign(town=["x", "y"] * (N // 2), coin=rng.integers(0, 2, N))
    frame["drug"] = frame["coin"] * rng.integers(0, 2, N)
    frame["cost"] = frame["b"] + 2 * frame["drug"] * (frame["a"] > 0) + rng.normal(size=N)
    frame.to_csv("rows.csv", index=False)
    return frame


def test_the_model_is_that_of_python(rows, capsys):
    rows.to_parquet("rows.parquet")
    X = rows[["a", "b", "town"]]
    same = gf.CausalForest(20, **COIN).fit(X, rows["cost"], rows["drug"])
    tested = same.calibration_test()
    for file in ("rows.csv", "rows.parquet"):
        found = said(capsys, "train", file, *TRAIN[2:], *DRUG, "--drop", "coin")
        assert (found["task"], found["features"], found["rows"]) == ("effects", 3, N)
        assert found["average_effect"] == dict(same.ate())
        parts = [[part["value"], part["p_value"]] for part in found["calibration"].values()]
        assert np.array_equal(parts, np.transpose([tested.coef, tested.p_value]))
    assert main(["predict", "model", "rows.csv", "--out", "effects.csv"]) == 0
    written = pd.read_csv("effects.csv")
    assert [*written] == ["prediction", "low", "high"]
    assert np.allclose(written.T, [same.effect(X), *same.effect_interval(X)])


@pytest.mark.filterwarnings("ignore:.*groups have one value", "ignore:.*hardly varies")
def test_instruments_weights_and_groups(rows, capsys):
    of = {"sample_weight": 1 + rows["coin"], "groups": np.arange(N) // 4}
    rows.assign(w=of["sample_weight"], g=of["groups"]).to_csv("rows.csv", index=False)
    assert main([*TRAIN, *DRUG, "--instrument", "coin", "--weight", "w", "--groups", "g"]) == 0
    out, X = capsys.readouterr().out, rows[["a", "b", "town"]]
    same = gf.CausalForest(20, **COIN)
    same.fit(X, rows["cost"], rows["drug"], instrument=rows["coin"], **of)
    assert np.array_equal(gf.load("model").effect(X), same.effect(X))
    ate = same.ate()
    assert f"{ate.estimate:.6g}, 95% interval {ate.low:.6g} to {ate.high:.6g}" in out


def test_pictures_and_what_is_refused_of_a_model(rows, capsys):
    assert main([*TRAIN, *DRUG]) == 0
    draw = ("plot", "effects", "model", "--data", "rows.csv", "--feature", "b", "--out", "e.svg")
    assert main(draw) == 0
    assert main(["plot", "effect-calibration", "model", "--n-groups", "3", "--out", "c.svg"]) == 0
    assert "average effect" in Path("e.svg").read_text()
    assert "mean predicted effect" in Path("c.svg").read_text()
    assert "no row shows the effect on it" in refused(capsys, "evaluate", "model", "rows.csv")
    assert "model has no classes" in refused(capsys, "predict", "model", "rows.csv", "--proba")
    assert main(["report", "model", "--data", "rows.csv", "--out", "page.html"]) == 0
    assert "the effect of <bdi>drug</bdi> on <bdi>cost</bdi>" in Path("page.html").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(("options", "message"), [
    (["--instrument", "coin"], "--instrument moves a treatment: add --treatment COLUMN"),
    ([*DRUG, "--task", "regression"], "--treatment is for causal forests, not for regression"),
    ([*DRUG, "--event", "a"], "--event is for survival forests, not for causal forests"),
    ([*DRUG, "--model", "boosting"], "--model boosting is not for effects"),
    ([*DRUG, "--test", "0.3"], "--test: no row shows the effect on it, so that there is no score"),
    (["--treatment", "town"], "treatment must hold a real number for each of 160 rows"),
    (["--treatment", "drugs"], "no column 'drugs': did you mean 'drug'?"),
    (["--treatment", "cost"], "column 'cost' is the target: it cannot be dropped, or be the we"),
])  # fmt: skip
def test_what_train_refuses(rows, capsys, options, message):
    assert message in refused(capsys, *TRAIN, *options)
