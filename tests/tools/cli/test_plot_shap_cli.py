"""`gpuforest plot shap-...`: each kind becomes a file, errors are one line."""

import os

import pytest
from sklearn.datasets import load_diabetes, load_iris

from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.tools.cli.main import main

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
ROWS = ["--data", "iris.csv"]
NUMBERS = ["numbers", "--data", "diabetes.csv"]
DEPENDENCE = ["shap-dependence", "forest", *ROWS, "--class", "1", "--feature"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of models and files."""
    folder, small = tmp_path_factory.mktemp("shap"), {"n_estimators": 3, "random_state": 0}
    iris, diabetes = load_iris(as_frame=True), load_diabetes(as_frame=True)
    iris.frame.to_csv(folder / "iris.csv", index=False)
    iris.frame[::9].to_csv(folder / "few.csv", index=False)
    diabetes.frame[:20].to_csv(folder / "diabetes.csv", index=False)
    forest = RandomForestClassifier(max_depth=3, backend="numpy", n_jobs=1, **small)
    forest.fit(iris.data, iris.target).save(folder / "forest")
    numbers = RandomForestRegressor(max_depth=3, backend="numpy", n_jobs=1, **small)
    numbers.fit(diabetes.data, diabetes.target).save(folder / "numbers")
    before = os.getcwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


@pytest.mark.parametrize(
    ("arguments", "ending"),
    [
        (["shap-summary", "forest", *ROWS, "--class", "2", "--top", "3"], "png"),
        (["shap-bar", *NUMBERS], "svg"),
        (["shap-bar", "forest", *ROWS, "--class", "1", "--background", "few.csv"], "png"),
        (["shap-waterfall", "forest", *ROWS, "--class", "0", "--row", "7"], "pdf"),
        ([*DEPENDENCE, "petal length (cm)", "--color-by", "petal width (cm)"], "png"),
    ],
)
def test_each_kind_is_written_the_same_twice(folder, capsys, arguments, ending):
    written = []
    for name in ("a", "b"):
        assert main(["plot", *arguments, "--out", f"{name}.{ending}"]) == 0
        assert capsys.readouterr().out == f"{arguments[0]} drawn to {name}.{ending}\n"
        written.append((folder / f"{name}.{ending}").read_bytes())
    assert written[0].startswith(BEGINS[ending])
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["shap-bar", "forest"], "the following arguments are required: --data"),
        (["shap-dependence", *NUMBERS], "the following arguments are required: --feature"),
        (
            ["shap-bar", "forest", *ROWS],
            "output=None is none of the 3 outputs: choose one of 0",
        ),
        (["shap-bar", "forest", *ROWS, "--class", "3"], "output='3' is none of the 3 outputs"),
        (["shap-bar", *NUMBERS, "--class", "1"], "output='1': the prediction is one number, so"),
        (["shap-waterfall", *NUMBERS, "--row", "20"], "row=20: X has the rows 0 to 19"),
        ([*DEPENDENCE, "petals"], "no feature 'petals': choose one of sepal length (cm)"),
        ([*DEPENDENCE, "petal length (cm)", "--color-by", "x"], "no feature 'x': choose one of"),
        (
            ["shap-bar", *NUMBERS, "--background", "iris.csv"],
            "--background: the model needs 10 columns that are absent",
        ),
        (["shap-summary", *NUMBERS, "--top", "0"], "top=0 features are none"),
        (["shap-bar", "numbers", "--data", "none.csv"], "none.csv: no such file"),
    ],
)
def test_errors_are_one_line(folder, capsys, arguments, error):
    try:
        status = main(["plot", *arguments, "--out", "x.png"])
    except SystemExit as exit:  # of the parser
        status = exit.code
    assert status == 2
    said = capsys.readouterr().err
    assert said.startswith("gpuforest: ")
    assert error in said
    assert said.count("\n") == 1
    assert not (folder / "x.png").exists()


def test_no_input_is_overwritten(folder, capsys):
    few = (folder / "few.csv").read_bytes()
    (folder / "few.png").write_bytes(few)
    arguments = ["shap-bar", "forest", *ROWS, "--class", "1", "--background", "few.png"]
    assert main(["plot", *arguments, "--out", "few.png"]) == 2
    assert "few.png" in capsys.readouterr().err
    assert (folder / "few.png").read_bytes() == few
