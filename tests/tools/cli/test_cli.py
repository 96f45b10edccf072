"""The command line, end to end: what it writes, prints, and refuses."""

import inspect
import re
import signal
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, told

import gpuforest as gf
from gpuforest.tools.cli import main
from gpuforest.tools.cli.main import interrupt_after
from gpuforest.tools.cli.options import ESTIMATORS, defaults_of

N = 120
exactly = {} if pd.__version__ >= "3" else {"float_precision": "round_trip"}
read_csv = partial(pd.read_csv, **exactly)
COMMAND = [sys.executable, "-m", "gpuforest.cli"]


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c[0]"])
    frame.loc[::7, "b"] = np.nan
    frame["label"] = np.where(X[:, 0] > 0, "yes", "no")
    frame["flag"] = X[:, 0] > 0
    frame["amount"] = 3 * X[:, 0] + X[:, 1]
    frame["w"] = rng.integers(1, 4, N)
    frame.to_csv("data.csv", index=False)
    return tmp_path


def train(*arguments: str, target: str = "label") -> list[str]:
    others = {"label", "flag", "amount", "w"} - {target, *arguments}
    size = [] if {"--max-iter", "--weight"} & {*arguments} else ["--n-estimators", "15"]
    return [
        *("train", "data.csv", "--target", target, "--drop", ",".join(sorted(others))),
        *("--out", "model", *size, "--random-state", "3", *arguments),
    ]


def facts(capsys, *arguments: str, target: str = "label") -> dict:
    return told(capsys, *train(*arguments, target=target))


@pytest.mark.parametrize(("options", "target", "same"), [
    (["--max-depth", "4", "--max-features", "0.7", "--no-bootstrap"], "label",
     gf.RandomForestClassifier(15, max_depth=4, max_features=0.7, bootstrap=False)),
    (["--model", "tree", "--weight", "w"], "label", gf.DecisionTreeClassifier()),
    (["--model", "extra_trees", "--max-depth", "2"], "label",
     gf.ExtraTreesClassifier(15, max_depth=2)),
    (["--model", "extra_trees", "--no-oob-score", "--max-depth", "2", "--bootstrap"], "label",
     gf.ExtraTreesClassifier(15, max_depth=2, bootstrap=True)),
    (["--no-oob-score", "--max-depth", "2", "--bootstrap", "poisson"], "label",
     gf.RandomForestClassifier(15, max_depth=2, bootstrap="poisson")),
    (["--model", "bagging", "--max-depth", "2", "--no-oob-score"], "label",
     gf.BaggingClassifier(gf.DecisionTreeClassifier(max_depth=2), 15)),
    (["--criterion", "entropy", "--model", "adaboost"], "label", gf.AdaBoostClassifier(
        gf.DecisionTreeClassifier(criterion="entropy", max_depth=1), n_estimators=15
    )),
    (
        [
            *("--model", "boosting", "--max-iter", "7", "--loss", "poisson"),
            *("--early-stopping", "true", "--l2-regularization", "1"),
            *("--interaction-cst", "[{0, 2}, {1}]"),
        ],
        "w",
        gf.HistGradientBoostingRegressor(
            "poisson", max_iter=7, early_stopping=True, l2_regularization=1.0,
            interaction_cst=[{0, 2}, {1}],
        ),
    ),
])  # fmt: skip
def test_trained_model_is_the_estimator_of_the_same_parameters(data, capsys, options, target, same):
    task = ["--task", "regression"] if target == "w" else []
    found = facts(capsys, *options, *task, target=target)
    frame = read_csv("data.csv")
    X = frame[["a", "b", "c[0]"]]
    weight = frame["w"] if "--weight" in options else None
    same = same.set_params(random_state=3).fit(X, frame[target], weight)
    forest = gf.load("model").forest_
    np.testing.assert_array_equal(forest.nodes, same.forest_.nodes)
    np.testing.assert_array_equal(forest.leaf_values, same.forest_.leaf_values)
    assert found["estimator"] == type(same).__name__
    assert found["nodes"] == same.forest_.n_nodes
    assert found["depth"] == same.forest_.depth
    assert found["seed"] == 3
    assert found["oob_score"] is None
    assert ("boosting" in found) == ("boosting" in options)
    importances = dict(zip(X.columns, same.feature_importances_.tolist(), strict=True))
    assert found["importances"] == importances


def test_json_tells_all(data, capsys):
    found = facts(capsys, "--test", "0.25")
    assert found["task"] == "classification"
    assert found["classes"] == ["no", "yes"]
    assert (found["rows"], found["test_rows"], found["features"]) == (90, 30, 3)
    assert found["trees"] == 15
    assert 0.8 < found["oob_score"] <= 1
    assert 0.8 < found["test_score"] <= 1
    assert found["bytes"] == Path("model").stat().st_size
    assert {"load", "binning", "growing", "out of bag", "saving"} <= set(found["seconds"])
    assert sum(found["importances"].values()) == pytest.approx(1)
    assert next(iter(found["importances"])) == "a"
    parameters = found["parameters"]  # all cores and out of bag by default
    assert (parameters["n_jobs"], parameters["oob_score"]) == (None, True)
    assert facts(capsys, "--no-oob-score", "--n-jobs", "1")["oob_score"] is None


@pytest.mark.parametrize(("target", "task", "estimator"), [
    ("label", "auto", "RandomForestClassifier"),
    ("flag", "auto", "RandomForestClassifier"),
    ("w", "auto", "RandomForestClassifier"),
    ("w", "regression", "RandomForestRegressor"),
    ("amount", "auto", "RandomForestRegressor"),
])  # fmt: skip
def test_task_follows_the_target(data, capsys, target, task, estimator):
    found = facts(capsys, "--task", task, target=target)
    assert found["estimator"] == estimator == type(gf.load("model")).__name__


def test_test_file_may_order_its_columns_otherwise(data, capsys):
    frame = read_csv("data.csv")
    frame[["label", "c[0]", "b", "a"]].to_csv("test.csv", index=False)  # without the dropped
    found = facts(capsys, "--test", "test.csv")
    assert found["test_score"] == 1
    frame.drop(columns="b").to_csv("test.csv", index=False)
    line = refused(capsys, *train("--test", "test.csv"))
    assert "a column that is absent from the data: 'b'" in line


def test_predictions_equal_the_model(data, capsys):
    assert main(train()) == 0
    model = gf.load("model")
    X = read_csv("data.csv")[["a", "b", "c[0]"]]
    capsys.readouterr()

    assert main(["predict", "model", "data.csv", "--proba"]) == 0
    out, err = capsys.readouterr()
    assert err == "gpuforest: columns ignored: 'label', 'flag', 'amount', 'w'\n"
    Path("stdout.csv").write_text(out)
    assert main(["predict", "model", "data.csv", "--out", "p.csv", "--proba"]) == 0
    assert main(["predict", "model", "data.csv", "--out", "p.parquet", "--proba"]) == 0
    for got in (read_csv("stdout.csv"), read_csv("p.csv"), pd.read_parquet("p.parquet")):
        assert got["prediction"].tolist() == model.predict(X).tolist()
        proba = got[["probability_no", "probability_yes"]].to_numpy()
        np.testing.assert_array_equal(proba, model.predict_proba(X))
    assert sorted(p.name for p in data.iterdir() if p.name.startswith(".")) == []


def test_columns_of_strings_of_named_numbers_and_beyond_float64(data, capsys):
    frame = read_csv("data.csv")
    frame["colour"] = np.where(frame["flag"], "red", None)
    frame["month"] = np.arange(N) % 12
    frame.drop(columns=["label", "flag"]).to_csv("data.csv", index=False)
    arguments = ["train", "data.csv", "--target", "amount", "--categorical", "month"]
    assert main([*arguments, "--out", "model", "--random-state", "0", "--test", "0.1"]) == 0
    model = gf.load("model")
    assert model.feature_names_in_.tolist() == ["a", "b", "c[0]", "w", "colour", "month"]
    assert model.forest_.edges.categories == {4: ("red",), 5: tuple(range(12))}
    assert main(["predict", "model", "data.csv", "--out", "p.csv"]) == 0
    found = model.predict(read_csv("data.csv")[model.feature_names_in_])
    assert read_csv("p.csv")["prediction"].tolist() == found.tolist()
    capsys.readouterr()
    assert main(["inspect", "model"]) == 0
    assert re.search(r"^categories +1 colour, 12 month$", capsys.readouterr().out, re.MULTILINE)
    frame = frame[["label"]].sort_values("label")
    frame.assign(id=2**62 + 2**20 * np.arange(N)).to_csv("data.csv", index=False)
    line = ["train", "data.csv", "--target", "label", "--out", "model", "--model", "tree"]
    assert told(capsys, *line)["importances"] == {"id": 1}
    assert main(["predict", "model", "data.csv", "--out", "p.csv"]) == 0
    assert read_csv("p.csv")["prediction"].tolist() == frame["label"].tolist()


@pytest.mark.parametrize(("name", "text"), [
    ("n_estimators", "100, but 10 for bagging, 50 for adaboost, 2000 for effects"),
    ("criterion", "squared_error, but gini for classification, exponential for survival"),
    ("bootstrap", "True, but False for extra_trees classification and extra_trees regression"),
    ("backend", "auto"),
])  # fmt: skip
def test_help_says_of_which_model_a_default_is(name, text):
    assert defaults_of(name) == text
    for (model, task), estimator in ESTIMATORS.items():
        default = inspect.signature(estimator).parameters.get(name)
        if default is not None and str(default.default) != text.split(",")[0]:
            words = {*text.replace(",", "").split()}
            assert {model, task} & words
            assert str(default.default) in words


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "COMMAND"),
    (["train"], "required"),
    (train("--max-depth", "deep"), "'deep' is not an integer or none"),
    (train("--colour", "red"), "unrecognized arguments: --colour red (see"),
    (train("--n-estimator", "4"), "--n-estimator: did you mean '--n-estimators'?"),
    (train("--max-l", "4"), "unrecognized arguments: --max-l 4"),  # no abbreviations
    (["train", "d", "--targt", "y"], "are required: --target, --out; --targt: did you mean"),
    (["trian"], "did you mean 'train'? (see gpuforest --help)"),
    (["--vers"], "required: COMMAND"),
    (train("--model", "forst"), "did you mean 'forest'?"),
    (["train", "no.csv", "--target", "y", "--out", "m"], "no.csv: no such file"),
    (["train", "data.csv", "--target", "labl", "--out", "m"], "did you mean 'label'"),
    (["train", "data.csv", "--target", "label", "--out", "no/m"], "no: no such directory"),
    (["train", "data.csv", "--target", "label", "--out", "."], "is a directory"),
    (train("--categorical", "w,b"), "--categorical: no feature of the name 'w'"),
    (train("--drop", "lable"), "no column 'lable': did you mean 'label'?"),
    (train("--n-estimators", "0"), "'n_estimators' parameter"),
    (train("--backend", "abacus"), "backend='abacus'"),
    (train("--model", "tree"), "--n-estimators is no option of a classification tree"),
    (train("--model", "boosting"),
     "--n-estimators is no option of a classification boosting; there it is --max-iter"),
    (train("--max-iter", "5"),
     "--max-iter is no option of a classification forest; there it is --n-estimators"),
    (train("--subsample", "0.5"), "--subsample is no option of a classification forest\n"),
    (train("--memory-limit", "1kB"), "memory_limit=1000 bytes is too little"),
    (train("--model", "isolation_forest"), "gpuforest.IsolationForest().fit(frame)"),
    (train("--test", "1.5"), "a fraction lies between 0 and 1"),
    (train("--test", "0.001"), "leaves one side without rows"),
    (train("--task", "regression"), "y must hold real numbers"),
    (["predict", "no-model", "data.csv"], "no-model"),
    (["predict", "data.csv", "data.csv"], "data.csv"),
    (["predict", ".", "data.csv"], "."),
    (["predict", "empty", "data.csv"], "empty"),
    (["predict", "data.csv", "data.csv", "--out", "p.txt"], "ends in .csv or .parquet"),
])  # fmt: skip
def test_errors_are_one_line_and_status_2(data, capsys, arguments, message):
    Path("empty").touch()
    assert message in refused(capsys, *arguments)
    assert not Path("m").exists()


def test_damaged_models_and_other_data_are_refused(data, capsys):
    assert main(train(target="amount")) == 0
    Path("cut").write_bytes(Path("model").read_bytes()[:-1])
    pd.DataFrame({"a": [1], "b": [2]}).to_csv("other.csv", index=False)
    absent = "a column that is absent from the data: 'c[0]'"
    assert "damaged model" in refused(capsys, "predict", "cut", "data.csv")
    assert "--proba" in refused(capsys, "predict", "model", "data.csv", "--proba")
    assert absent in refused(capsys, "predict", "model", "other.csv")


def test_warnings_are_one_line_and_a_defect_of_ours_keeps_its_traceback(data, capsys, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main(train("--n-estimators", "1")) == 0
    err = capsys.readouterr().err
    assert err.startswith("gpuforest: warning: Some inputs do not have OOB scores")
    assert err.count("\n") == 1
    monkeypatch.setattr("gpuforest.data.frames.load_table", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(train())


def test_version_and_every_parameter_as_an_option(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"gpuforest {gf.__version__}\n"
    with pytest.raises(SystemExit) as caught:
        main(["train", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    for estimator in ESTIMATORS.values():
        for name in inspect.signature(estimator).parameters.keys() - {"estimator"}:
            assert f"--{name.replace('_', '-')}" in text


def test_interrupts_are_quiet_leave_no_file_and_are_swallowed_by_no_import(data):
    process = subprocess.Popen(
        [*COMMAND, *train("--n-estimators", "1000000", "--backend", "numpy")],
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)  # in the imports or in the growing: quiet in both
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "gpuforest: interrupted\n"
    assert process.returncode == 130
    assert [p.name for p in data.iterdir()] == ["data.csv"]
    # shells start what runs in the background with interrupts ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    imports = interrupt_after()
    imports.__enter__()
    signal.raise_signal(signal.SIGINT)  # nothing that an import could swallow
    with pytest.raises(KeyboardInterrupt):  # for who cannot wait
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        imports.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_reader_that_leaves_is_no_error(data, capsys):
    assert main(train(target="amount")) == 0
    many = pd.concat([read_csv("data.csv")] * 200)[["a", "b", "c[0]"]]
    many.to_csv("many.csv", index=False)  # more output than a pipe holds
    process = subprocess.Popen(
        [*COMMAND, "predict", "model", "many.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_summary_reads_well_also_on_a_terminal(data, capsys, monkeypatch):
    assert main(train("--test", "0.5")) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for part in ("60 rows, 3 features", "2 classes: no, yes", "c[0]"):
        assert part in out
    assert re.search(r"^trees +15$", out, re.MULTILINE)
    assert re.search(r"^out-of-bag accuracy +[01]\.\d{4}$", out, re.MULTILINE)
    assert re.search(r"^test accuracy +[01]\.\d{4} on 60 rows$", out, re.MULTILINE)
    for stream in ("stderr", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert main(train()) == 0
    assert "c[0]" in capsys.readouterr().out
