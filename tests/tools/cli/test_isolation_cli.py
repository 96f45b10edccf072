"""Isolation forests on the command line: all but train read their files."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import refused

from gpuforest import IsolationForest
from gpuforest.tools.cli.main import main


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["colour"] = rng.choice(["red", "blue"], 60)
    frame.loc[7, "a"] = 9.0
    frame.loc[3, "b"] = np.nan
    frame.to_csv("rows.csv", index=False)
    IsolationForest(n_estimators=20, contamination=0.05, random_state=0).fit(frame).save("model")
    return frame


def test_predictions_and_scores(rows):
    assert main(["predict", "model", "rows.csv", "--keep", "a", "--out", "found.csv"]) == 0
    found = pd.read_csv("found.csv")
    model = IsolationForest(n_estimators=20, contamination=0.05, random_state=0).fit(rows)
    assert np.array_equal(found["prediction"], model.predict(rows))
    assert np.array_equal(found["score"], model.score_samples(rows))
    assert found["score"].argmin() == 7
    assert found["prediction"][7] == -1


def test_a_model_is_described(rows, capsys):
    assert main(["inspect", "model", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["task"], facts["importances"], facts["trees"]) == ("anomalies", {}, 20)
    assert main(["inspect", "model"]) == 0
    assert "anomalies" in capsys.readouterr().out
    line = ["evaluate", "model", "rows.csv", "--target", "a"]
    assert "has no target to compare with" in refused(capsys, *line)
