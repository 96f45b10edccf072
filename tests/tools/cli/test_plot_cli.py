"""`gpuforest plot`: each kind becomes a file, errors are one line."""

import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from gpuforest import (
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
    oob_impurity_importance,
)
from gpuforest.tools.cli.main import main

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
POINTS = ["--data", "iris.csv", "--target", "target"]


@pytest.fixture
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    iris, diabetes = load_iris(as_frame=True), load_diabetes(as_frame=True)
    iris.frame.to_csv("iris.csv", index=False)
    diabetes.frame.to_csv("diabetes.csv", index=False)
    RandomForestClassifier(3, random_state=0).fit(iris.data, iris.target).save("forest")
    DecisionTreeClassifier(ccp_alpha="cv", random_state=0).fit(iris.data, iris.target).save("tree")
    RandomForestClassifier(3).fit(iris.data.to_numpy(), iris.target).save("nameless")
    numbers = RandomForestRegressor(20, oob_score=True, random_state=0)
    numbers.fit(diabetes.data, diabetes.target).save("numbers")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "ending"),
    [
        (["tree", "forest", "--tree", "2", "--max-depth", "2"], "svg"),
        (["tree", "numbers", "--max-depth", "3"], "png"),
        (["boundaries", "forest", *POINTS], "png"),
        (["boundaries", "tree", *POINTS, "--features", "petal width (cm),sepal width (cm)"], "pdf"),
        (["steps", "numbers", "--data", "diabetes.csv", "--target", "target"], "png"),
        (["pruning", "tree"], "png"),
        (["oob", "numbers"], "svg"),
        (["importances", "forest", "--top", "3"], "pdf"),
        (["importances", "forest", "--kind", "oob-impurity", *POINTS], "svg"),
        (["importances", "forest", "--kind", "oob-permutation", *POINTS], "svg"),
        (["importances", "forest", "--kind", "permutation", *POINTS], "svg"),
        (["impurity"], "svg"),
    ],
)
def test_each_kind_is_written_the_same_twice(models, capsys, arguments, ending):
    written = []
    for name in ("a", "b"):
        assert main(["plot", *arguments, "--out", f"{name}.{ending}"]) == 0
        assert capsys.readouterr().out == f"{arguments[0]} drawn to {name}.{ending}\n"
        written.append((models / f"{name}.{ending}").read_bytes())
    assert written[0].startswith(BEGINS[ending])
    assert written[0] == written[1]


def test_the_tree_stands_beside_the_forest(models):
    assert main(["plot", "boundaries", "forest", *POINTS, "--out", "both.png"]) == 0
    assert main(["plot", "boundaries", "tree", *POINTS, "--out", "one.png"]) == 0
    widths = [
        int.from_bytes((models / name).read_bytes()[16:20], "big")
        for name in ("both.png", "one.png")
    ]
    assert widths == [960, 640]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["impurity", "--out", "x.gif"], "--out x.gif: a name that ends in .png, .svg or .pdf"),
        (["impurity", "--out", "no/x.png"], "no: no such directory"),
        (["tree", "none", "--out", "x.png"], "none: No such file or directory"),
        (["tree", "forest", "--tree", "3", "--out", "x.png"], "tree 3 does not exist"),
        (["oob", "forest", "--out", "x.png"], "no oob_curve_: fit a forest with oob_score=True"),
        (["pruning", "forest", "--out", "x.png"], "no pruning_curve_: fit a DecisionTree*"),
        (["importances", "forest", "--top", "0", "--out", "x.png"], "top=0 features are none"),
        (
            ["importances", "forest", "--kind", "oob-permutation", "--out", "x.png"],
            "--kind oob-permutation needs the rows that it was trained on: add --data FILE",
        ),
        (
            ["importances", "forest", "--kind", "impurity", *POINTS, "--out", "x.png"],
            "--kind impurity is of the model alone: leave --data out",
        ),
        (
            ["importances", "tree", "--kind", "oob-impurity", *POINTS, "--out", "x.png"],
            "oob_impurity_importance takes a fitted RandomForest*",
        ),
        (["steps", "forest", *POINTS, "--out", "x.png"], "for classes draw boundaries"),
        (["boundaries", "forest", *POINTS, "--tree", "9", "--out", "x.png"], "tree 9 does not"),
        (["boundaries", "forest", *POINTS, "--features", "a", "--out", "x.png"], "no column 'a'"),
        (
            ["boundaries", "tree", *POINTS, "--features", "petal width (cm)", "--out", "x.png"],
            "2 features of numbers are needed, not 1",
        ),
        (
            ["boundaries", "forest", "--data", "iris.csv", "--out", "x.png"],
            "does not say what its target is called: add --target",
        ),
        (
            ["boundaries", "nameless", *POINTS, "--out", "x.png"],
            "only models of one target and of features with names are compared with data",
        ),
        (
            [
                "boundaries",
                "forest",
                *POINTS,
                "--missing",
                "0.2",
                "--decimal",
                ",",
                "--out",
                "x.png",
            ],
            "column 'sepal length (cm)' held numbers in training, and is text here",
        ),
        (["flower", "--out", "x.png"], "argument KIND: invalid choice: 'flower'"),
    ],
)
def test_errors_are_one_line(models, capsys, arguments, error):
    try:
        status = main(["plot", *arguments])
    except SystemExit as exit:  # of the parser
        status = exit.code
    assert status == 2
    said = capsys.readouterr().err
    assert said.startswith("gpuforest: ")
    assert error in said
    assert said.count("\n") == 1
    assert not (models / "x.png").exists()


def test_importances_that_a_fit_was_asked_for(models):
    train = ["train", "iris.csv", "--target", "target", "--unbiased-importances"]
    assert main([*train, "--n-estimators", "40", "--out", "own"]) == 0
    own = load("own")
    iris = load_iris(as_frame=True)
    found = oob_impurity_importance(own, iris.data, iris.target)
    assert np.array_equal(own.unbiased_feature_importances_, found.importances_mean)
    plot = ["plot", "importances", "own", "--kind", "oob-impurity"]
    assert main([*plot, "--out", "a.svg"]) == 0
    assert main([*plot, "--data", "iris.csv", "--out", "b.svg"]) == 0
    texts = [(models / name).read_text() for name in ("a.svg", "b.svg")]
    assert all("decrease of impurity out of bag" in text for text in texts)
    assert ["standard deviation" in text for text in texts] == [False, True]


def test_data_are_read_as_in_training_or_by_options(models, capsys):
    for name, comma in (("a.csv", ","), ("b.csv", ".")):
        rows = [f"{i}{comma}5;{i % 3};0{i // 10}" for i in range(30)]
        (models / name).write_text("\n".join(["x;z;y", *rows]))
    line = ["train", "a.csv", "--target", "y", "--task", "classification", "--decimal", ","]
    assert main([*line, "--out", "own", "--model", "tree"]) == 0
    plot = ["plot", "boundaries", "own", "--data"]
    assert main([*plot, "a.csv", "--out", "a.png"]) == 0
    assert main([*plot, "b.csv", "--out", "b.png", "--decimal", "."]) == 0
    assert (models / "a.png").read_bytes() == (models / "b.png").read_bytes()


def test_classes_of_strings_that_look_like_numbers(models):
    rows = [f"{i};{i % 3};{'x' if i < 9 else '01'}" for i in range(30)]
    (models / "a.csv").write_text("\n".join(["x;z;y", *rows]))
    (models / "b.csv").write_text("\n".join(["x;z;y", *rows[9:]]))  # all are 01
    assert main(["train", "a.csv", "--target", "y", "--out", "own", "--model", "tree"]) == 0
    assert main(["plot", "boundaries", "own", "--data", "b.csv", "--out", "x.png"]) == 0


def test_without_matplotlib_the_extra_is_named(models, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "impurity", "--out", "x.png"]) == 2
    assert "pip install 'gpuforest[plot]'" in capsys.readouterr().err
