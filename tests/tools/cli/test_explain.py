"""The command `explain`: SHAP values of a file's rows."""

import numpy as np
import pandas as pd
import pytest
from commands import refused

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.tools.cli import main

FOREST = {"n_estimators": 3, "max_depth": 3, "random_state": 0, "backend": "numpy", "n_jobs": 1}


@pytest.fixture
def X(tmp_path, monkeypatch):
    """A file of data in the working directory."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    frame.assign(id=np.arange(40)).to_csv("data.csv", index=False)
    return frame


def explain(*arguments):
    return main(["explain", "model", "data.csv", "--backend", "numpy", *arguments])


@pytest.mark.parametrize("beside", [False, True])
def test_a_regression(X, capsys, beside):
    model = RandomForestRegressor(**FOREST).fit(X, X["a"])
    model.save("model")
    X.iloc[:7].assign(c="other").to_csv("typical.csv", index=False)
    assert explain("--out", "why.csv", *(["--background", "typical.csv"] if beside else [])) == 0
    out, error = capsys.readouterr()
    assert "40 explanations written to why.csv" in out
    assert "columns ignored: 'id'" in error
    found, background = pd.read_csv("why.csv"), X.iloc[:7] if beside else None
    assert [*found] == ["a", "b", "expected_value"]
    assert np.array_equal(found[["a", "b"]], model.shap_values(X, background=background))
    expected = model.expected_value(background) if beside else model.expected_value_
    assert (found["expected_value"] == expected).all()


def test_classes_to_standard_output(X, capsys):
    model = RandomForestClassifier(**FOREST).fit(X, np.where(X["a"] > 0, "yes", "no"))
    model.save("model")
    assert explain() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a_no,b_no,expected_value_no,a_yes,b_yes,expected_value_yes"
    found = np.array([line.split(",") for line in lines[1:]], float)
    assert np.array_equal(found[:, 3:5], model.shap_values(X)[:, :, 1])
    total = found[:, 3:].sum(axis=1)
    np.testing.assert_allclose(total, model.predict_proba(X)[:, 1], atol=1e-12)


def test_backgrounds_and_names_that_are_refused(X, capsys):
    RandomForestRegressor(**FOREST).fit(X, X["a"]).save("model")
    X[["a"]].to_csv("narrow.csv", index=False)
    X[:0].to_csv("empty.csv", index=False)
    X.assign(b="text").to_csv("text.csv", index=False)
    for given, error in (
        (
            ["narrow.csv"],
            "--background: the model needs a column that is absent from the data: 'b'",
        ),
        (["empty.csv"], "--background: empty.csv has no rows"),
        (["text.csv"], "--background: column 'b' held numbers in training"),
        (["none.csv"], "none.csv: no such file"),
        ([], "--background: expected one argument"),
    ):
        assert error in refused(capsys, "explain", "model", "data.csv", "--background", *given)
    X = X.rename(columns={"b": "expected_value"})
    X.to_csv("data.csv", index=False)
    RandomForestRegressor(**FOREST).fit(X, X["a"]).save("model")
    error = "a feature has the name expected_value: rename it"
    assert error in refused(capsys, "explain", "model", "data.csv")
