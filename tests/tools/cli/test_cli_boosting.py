"""Gradient boosting on the command line."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor, load
from gpuforest.tools.cli import main

N = 300
exactly = {} if pd.__version__ >= "3" else {"float_precision": "round_trip"}
read_csv = partial(pd.read_csv, **exactly)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A table of numbers, a category and missing values, in the working directory."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 99, (N, 3)), columns=["a", "b", "c"]).astype(float)
    frame["colour"] = rng.choice(["blue", "green", "red"], N)
    frame["price"] = frame.a + 30 * (frame.colour == "red") + rng.integers(1, 20, N)
    frame["size"] = np.array(["s", "m", "l"])[np.digitize(frame.price, [50, 90])]
    frame.loc[::9, "b"] = np.nan
    frame.to_csv("data.csv", index=False)
    return frame


def train(*arguments: str, target: str = "size", status: int = 0) -> None:
    other = {"size": "price", "price": "size"}[target]
    line = ["train", "data.csv", "--target", target, "--drop", other, "--out", "model"]
    assert main([*line, "--model", "boosting", "--random-state", "0", *arguments]) == status


@pytest.mark.parametrize("target", ["size", "price"])
def test_the_model_is_that_of_the_same_parameters(data, capsys, target):
    options = ["--max-iter", "7", "--learning-rate", "0.3", "--max-leaf-nodes", "5"]
    options += ["--l2-regularization", "1", "--interaction-cst", "[{0, 3}, {1}]"]
    loss = {"size": [], "price": ["--loss", "poisson"]}[target]
    train(*options, *loss, "--json", target=target)
    found = json.loads(capsys.readouterr().out)
    kind, more = HistGradientBoostingClassifier, {}
    if target == "price":
        kind, more = HistGradientBoostingRegressor, {"loss": "poisson"}
    same = kind(
        max_iter=7, learning_rate=0.3, max_leaf_nodes=5, l2_regularization=1.0,
        interaction_cst=[{0, 3}, {1}], random_state=0, **more,
    ).fit(data[["a", "b", "c", "colour"]], data[target])  # fmt: skip
    model = load("model")
    assert np.array_equal(model.forest_.nodes, same.forest_.nodes)
    assert np.array_equal(model.forest_.leaf_values, same.forest_.leaf_values)
    assert found["estimator"] == kind.__name__
    assert found["boosting"]["rounds"] == 7
    assert found["trees"] == (21 if target == "size" else 7)
    assert found["categories"] == {"colour": 3}
    assert found["memory"]["total"] > 0
    assert found["oob_score"] is None


def test_predict_evaluate_inspect_and_importances(data, capsys):
    train("--max-iter", "9", "--test", "0.2")
    assert "27 trees" in capsys.readouterr().out
    model = load("model")
    X = data[["a", "b", "c", "colour"]]
    assert main(["predict", "model", "data.csv", "--proba", "--out", "out.csv"]) == 0
    out = read_csv("out.csv")
    assert out["prediction"].tolist() == model.predict(X).tolist()
    assert np.array_equal(out[[f"probability_{c}" for c in "lms"]], model.predict_proba(X))
    capsys.readouterr()
    assert main(["evaluate", "model", "data.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == model.score(X, data["size"])
    assert main(["inspect", "model"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^rounds +9\b", shown, re.MULTILINE)
    assert "max_iter=9" in shown
    assert main(["plot", "importances", "model", "--out", "i.svg"]) == 0
    assert "colour" in Path("i.svg").read_text()


def test_rounds_end_early(data, capsys):
    options = ["--early-stopping", "true", "--n-iter-no-change", "3", "--tol", "0.01"]
    train(*options, "--max-iter", "500", "--scoring", "r2", "--json", target="price")
    found = json.loads(capsys.readouterr().out)
    assert found["boosting"]["rounds"] == load("model").n_iter_ < 500
    train(*options, "--validation-fraction", "300", target="price", status=2)
    assert "leaves no rows to train on" in capsys.readouterr().err


def test_what_is_refused(data, capsys):
    train("--n-estimators", "5", status=2)
    wanted = "--n-estimators is no option of a classification boosting; there it is --max-iter\n"
    assert capsys.readouterr().err.endswith(wanted)
    train("--max-iter", "5", "--model", "forest", status=2)
    wanted = "--max-iter is no option of a classification forest; there it is --n-estimators\n"
    assert capsys.readouterr().err.endswith(wanted)
    train("--subsample", "0.5", "--model", "forest", status=2)
    assert capsys.readouterr().err.endswith("no option of a classification forest\n")
    train("--loss", "gamma", status=2)
    assert "The 'loss' parameter" in capsys.readouterr().err
    train("--memory-limit", "1kB", status=2)
    assert "memory_limit=1000 bytes is too little" in capsys.readouterr().err
