"""`gpuforest plot`: each kind becomes a file, errors are one line."""

import os

import numpy as np
import pytest
from commands import refused
from sklearn.datasets import load_diabetes, load_iris

import gpuforest as gf
from gpuforest.tools.cli.main import main

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
POINTS = ["--data", "iris.csv", "--target", "target"]
ROWS = ["--data", "iris.csv"]
NUMBERS = ["numbers", "--data", "few.csv"]
DEPENDENCE = ["shap-dependence", "forest", *ROWS, "--class", "1", "--feature"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, before = tmp_path_factory.mktemp("pictures"), os.getcwd()
    os.chdir(folder)
    iris, diabetes = load_iris(as_frame=True), load_diabetes(as_frame=True)
    iris.frame.to_csv("iris.csv", index=False)
    iris.frame[::9].to_csv("some.csv", index=False)
    diabetes.frame.to_csv("diabetes.csv", index=False)
    diabetes.frame[:20].to_csv("few.csv", index=False)
    small = {"random_state": 0, "backend": "numpy"}
    classes, numbers = (iris.data, iris.target), (diabetes.data, diabetes.target)
    for name, model, (X, y) in (
        ("forest", gf.RandomForestClassifier(3, max_depth=3, **small), classes),
        ("tree", gf.DecisionTreeClassifier(ccp_alpha="cv", **small), classes),
        ("nameless", gf.RandomForestClassifier(3, **small), (iris.data.to_numpy(), iris.target)),
        ("ada", gf.AdaBoostClassifier(n_estimators=5, random_state=0), classes),
        ("boosted", gf.HistGradientBoostingClassifier(max_iter=3, random_state=0), classes),
        ("numbers", gf.RandomForestRegressor(20, max_depth=3, oob_score=True, **small), numbers),
        ("stopped",
         gf.HistGradientBoostingRegressor(max_iter=9, early_stopping=True, random_state=0),
         numbers),
    ):  # fmt: skip
        model.fit(X, y).save(name)
    yield folder
    os.chdir(before)


@pytest.mark.parametrize(("arguments", "ending"), [
    (["tree", "forest", "--tree", "2", "--max-depth", "2"], "svg"),
    (["boundaries", "forest", *POINTS], "png"),
    (["boundaries", "tree", *POINTS, "--features", "petal width (cm),sepal width (cm)"], "pdf"),
    (["boundaries", "boosted", *POINTS], "svg"),
    (["steps", "numbers", "--data", "diabetes.csv", "--target", "target"], "png"),
    (["steps", "stopped", "--data", "few.csv", "--target", "target", "--feature", "bmi"], "svg"),
    (["pruning", "tree"], "png"),
    (["oob", "numbers"], "svg"),
    (["loss", "stopped"], "png"),
    (["loss", "ada", *POINTS], "svg"),
    (["importances", "forest", "--top", "3"], "pdf"),
    (["importances", "forest", "--kind", "oob-impurity", *POINTS], "svg"),
    (["importances", "forest", "--kind", "oob-permutation", *POINTS], "svg"),
    (["importances", "boosted", *POINTS], "svg"),
    (["impurity"], "svg"),
    (["shap-summary", "forest", *ROWS, "--class", "2", "--top", "3"], "png"),
    (["shap-bar", "forest", *ROWS, "--class", "1", "--background", "some.csv"], "svg"),
    (["shap-waterfall", "forest", *ROWS, "--class", "0", "--row", "7"], "pdf"),
    ([*DEPENDENCE, "petal length (cm)", "--color-by", "petal width (cm)"], "png"),
])  # fmt: skip
def test_each_kind_is_written_the_same_twice(folder, capsys, arguments, ending):
    written = []
    for name in ("a", "b"):
        assert main(["plot", *arguments, "--out", f"{name}.{ending}"]) == 0
        assert capsys.readouterr().out == f"{arguments[0]} drawn to {name}.{ending}\n"
        written.append((folder / f"{name}.{ending}").read_bytes())
    assert written[0].startswith(BEGINS[ending])
    assert written[0] == written[1]


def test_the_tree_stands_beside_the_forest(folder):
    widths = []
    for name in ("forest", "tree"):
        assert main(["plot", "boundaries", name, *POINTS, "--out", "wide.png"]) == 0
        widths.append(int.from_bytes((folder / "wide.png").read_bytes()[16:20], "big"))
    assert widths == [960, 640]


@pytest.mark.parametrize(("arguments", "error"), [
    (["impurity", "--out", "x.gif"], "--out x.gif: a name that ends in .png, .svg or .pdf"),
    (["tree", "forest", "--tree", "3"], "tree 3 does not exist"),
    (["importances", "forest", "--kind", "oob-permutation"],
     "--kind oob-permutation needs the rows that it was trained on: add --data FILE"),
    (["importances", "forest", "--kind", "permutation"],
     "--kind permutation needs the rows to permute the features of: add --data FILE"),
    (["importances", "forest", "--kind", "impurity", *POINTS],
     "--kind impurity is of the model alone: leave --data out"),
    (["importances", "forest", "--date-format", "%Y"], "--date-format is about the rows of"),
    (["loss", "forest", "--target", "price"], "--target is about the rows of a file: add"),
    (["boundaries", "forest", *POINTS, "--tree", "9"], "tree 9 does not"),
    (["boundaries", "boosted", *POINTS, "--tree", "0"], "predicts nothing by itself"),
    (["boundaries", "forest", *POINTS, "--features", "a"], "no column 'a'"),
    (["boundaries", "tree", *POINTS, "--features", "petal width (cm)"],
     "2 features of numbers are needed, not 1"),
    (["boundaries", "forest", *ROWS], "does not say what its target is called: add --target"),
    (["boundaries", "nameless", *POINTS],
     "only models of one target and of features with names are compared with data"),
    (["boundaries", "forest", *POINTS, "--missing", "0.2", "--decimal", ","],
     "column 'sepal length (cm)' held numbers in training, and is text here"),
    (["flower"], "argument KIND: invalid choice: 'flower'"),
    (["shap-bar", "forest"], "the following arguments are required: --data"),
    (["shap-dependence", *NUMBERS], "the following arguments are required: --feature"),
    (["shap-bar", "forest", *ROWS, "--class", "3"], "output='3' is none of the 3 outputs"),
    (["shap-bar", *NUMBERS, "--background", "iris.csv"],
     "--background: the model needs 10 columns that are absent"),
])  # fmt: skip
def test_errors_are_one_line(folder, capsys, arguments, error):
    out = [] if "--out" in arguments else ["--out", "x.png"]
    assert error in refused(capsys, "plot", *arguments, *out)
    assert not (folder / "x.png").exists()


def test_importances_that_a_fit_was_asked_for(folder):
    train = ["train", "iris.csv", "--target", "target", "--unbiased-importances"]
    assert main([*train, "--n-estimators", "40", "--out", "own"]) == 0
    own, iris = gf.load("own"), load_iris(as_frame=True)
    found = gf.oob_impurity_importance(own, iris.data, iris.target)
    assert np.array_equal(own.unbiased_feature_importances_, found.importances_mean)
    texts = []
    for rows in ([], ROWS):
        plot = ["plot", "importances", "own", "--kind", "oob-impurity", *rows]
        assert main([*plot, "--out", "own.svg"]) == 0
        texts.append((folder / "own.svg").read_text())
    assert all("decrease of impurity out of bag" in text for text in texts)
    assert ["standard deviation" in text for text in texts] == [False, True]


def test_data_are_read_as_in_training_or_by_options(folder):
    for name, comma in (("a.csv", ","), ("b.csv", ".")):
        rows = [f"{i}{comma}5;{i % 3};{'x' if i < 9 else '01'}" for i in range(30)]
        rows = rows if name == "a.csv" else rows[9:]  # all are 01, which is a text
        (folder / name).write_text("\n".join(["x;z;y", *rows]))
    line = ["train", "a.csv", "--target", "y", "--decimal", ",", "--out", "own", "--model", "tree"]
    assert main(line) == 0
    plot = ["plot", "boundaries", "own", "--data"]
    assert main([*plot, "a.csv", "--out", "a.png"]) == 0
    assert main([*plot, "b.csv", "--out", "b.png", "--decimal", "."]) == 0
