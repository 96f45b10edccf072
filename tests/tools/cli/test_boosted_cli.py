"""The commands on boosted models: what inspect says, permuted features, and pictures."""

import json
import re
import sys

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, r2_score

import gpuforest
from gpuforest import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from gpuforest.data.columns import Table
from gpuforest.explain.model_facts import rounds_facts, rounds_rows
from gpuforest.tools.cli import main
from gpuforest.tools.cli.predict import REPEATS, permutation_importances

RNG = np.random.default_rng(5)
N = 240
CITY = RNG.choice(["Aachen", "Bonn", "Cuxhaven"], N)
FRAME = pd.DataFrame({"size": RNG.random(N).round(2), "age": RNG.integers(0, 50, N), "city": CITY})
PRICE = 3 * FRAME["size"] + (CITY == "Bonn") + 0.1 * RNG.normal(size=N)
LABEL = np.array(["cheap", "fair", "dear"])[np.digitize(PRICE, [1.2, 2.2])]
STOPS = {"max_iter": 12, "early_stopping": True, "min_samples_leaf": 5, "random_state": 0}


@pytest.fixture
def models(tmp_path, monkeypatch):
    """Saved models and their data, in the working directory."""
    monkeypatch.chdir(tmp_path)
    FRAME.assign(price=PRICE).to_csv("prices.csv", index=False)
    FRAME.assign(label=LABEL).to_csv("labels.csv", index=False)
    found = {
        "numbers": HistGradientBoostingRegressor(**STOPS).fit(FRAME, PRICE),
        "classes": HistGradientBoostingClassifier(**STOPS).fit(FRAME, LABEL),
        "plain": HistGradientBoostingClassifier(max_iter=3).fit(FRAME, LABEL),
        "ada": AdaBoostClassifier(n_estimators=5, random_state=0).fit(FRAME, LABEL),
        "forest": RandomForestClassifier(5, random_state=0).fit(FRAME, LABEL),
    }
    for name, model in found.items():
        model.save(name)
    return found


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_inspect_says_what_the_rounds_are(models, capsys, name):
    model = models[name]
    assert main(["inspect", name]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = dict(re.findall(r"^(\S+(?: \S+)*) {2,}(.*)$", out, re.MULTILINE))
    assert dict(rounds_rows(rounds_facts(model))).items() <= rows.items()
    assert rows["trees"].split()[0] == str(model.forest_.n_trees)
    assert main(["inspect", name, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["boosting"] == rounds_facts(model)
    expected = dict(zip(FRAME.columns, model.feature_importances_.tolist(), strict=True))
    assert facts["importances"] == expected


def test_one_tree_in_each_form(models, capsys):
    model = models["classes"]
    for form, expected in (
        ("text", gpuforest.export_text(model, 4)),
        ("rules", gpuforest.export_rules(model, 4)),
        ("python", gpuforest.export_python(model, 4)),
        ("dot", gpuforest.export_graphviz(model, 4)),
    ):
        assert main(["inspect", "classes", "--tree", "4", "--as", form]) == 0
        assert capsys.readouterr().out == expected
    assert expected.count("round 2 of 12: leaves add to the raw prediction of ") == 1


def test_a_whole_model_as_python(models, capsys):
    assert main(["inspect", "classes", "--as", "python"]) == 0
    made = {}
    exec(capsys.readouterr().out, made)
    found = [made["predict"](row) for row in FRAME.to_dict("records")]
    assert found == models["classes"].predict(FRAME).tolist()
    for arguments, message in (
        (["forest", "--as", "python"], "--as python without --tree is for boosted models"),
        (["classes", "--as", "rules"], "--as is for one tree: add --tree N"),
        (["classes", "--as", "python", "--json"], "--as is for one tree: add --tree N"),
        (["classes", "--tree", "36"], "tree 36 does not exist: choose one of 0 to 35"),
    ):
        assert main(["inspect", *arguments]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["numbers", "classes", "forest"])
def test_permuted_features(models, capsys, name):
    data = "prices.csv" if name == "numbers" else "labels.csv"
    target = ["--target", "price" if name == "numbers" else "label"]
    assert main(["evaluate", name, data, "--permute", "--json", *target]) == 0
    facts = json.loads(capsys.readouterr().out)["permuted"]
    means = [own["mean"] for own in facts.values()]
    assert means == sorted(means, reverse=True)
    assert [*facts][:2] == ["size", "city"]
    assert all(own["std"] >= 0 for own in facts.values())
    assert main(["evaluate", name, data, "--permute", *target]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    first = facts["size"]
    assert lines[0].split() == [
        "permuted",
        f"{first['mean']:.4f}",
        "±",
        f"{first['std']:.4f}",
        "size",
    ]
    assert main(["evaluate", name, data, *target]) == 0
    assert "permuted" not in capsys.readouterr().out


@pytest.mark.parametrize("frame", [FRAME, FRAME.iloc[::-1]], ids=["ordered", "reversed index"])
@pytest.mark.parametrize("weighted", [False, True])
def test_permuted_by_hand(models, frame, weighted):
    weight = RNG.random(N) if weighted else None
    for model, y, score in (
        (models["numbers"], PRICE.to_numpy(), r2_score),
        (models["classes"], LABEL, accuracy_score),
    ):
        own = frame.reset_index(drop=True) if frame is FRAME else frame
        table = Table(nw.from_native(own, eager_only=True), y, weight)
        found = permutation_importances(model, table)
        rng = np.random.default_rng(0)
        orders = [rng.permutation(N) for _ in range(REPEATS)]
        before = score(y, model.predict(own), sample_weight=weight)
        for f, name in enumerate(own.columns):
            falls = []
            for order in orders:
                moved = own.assign(**{name: own[name].to_numpy()[order]})
                falls.append(before - score(y, model.predict(moved), sample_weight=weight))
            np.testing.assert_allclose(found.importances[f], falls, atol=1e-12)
        assert found.importances_mean.tolist() == found.importances.mean(axis=1).tolist()


PRICES = ["--data", "prices.csv", "--target", "price"]
LABELS = ["--data", "labels.csv", "--target", "label"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["loss", "numbers"],
        ["loss", "classes", *LABELS],
        ["loss", "ada", *LABELS],
        ["tree", "classes", "--tree", "5", "--max-depth", "2"],
        ["steps", "numbers", *PRICES],
        ["steps", "numbers", *PRICES, "--feature", "age"],
        ["boundaries", "classes", *LABELS],
        ["boundaries", "numbers", *PRICES, "--features", "size,age"],
        ["importances", "numbers"],
        ["importances", "numbers", *PRICES],
        ["importances", "forest", *LABELS, "--top", "2"],
    ],
)
def test_pictures(models, capsys, arguments):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for name in ("a.svg", "b.svg"):
        assert main(["plot", *arguments, "--out", name]) == 0
        assert capsys.readouterr().out == f"{arguments[0]} drawn to {name}\n"
    with open("a.svg", "rb") as first, open("b.svg", "rb") as second:
        assert first.read() == second.read()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loss", "plain"], "kept no losses: fit it with early_stopping=True, or pass rows"),
        (["loss", "ada"], "an AdaBoostClassifier keeps no losses: pass rows"),
        (["loss", "forest"], "a RandomForestClassifier has no rounds of boosting"),
        (["loss", "numbers", "--target", "price"], "--target is about the rows of a file: add"),
        (["importances", "numbers", "--date-format", "%Y"], "--date-format is about the rows of"),
        (["loss", "numbers", "--data", "prices.csv"], "add --target"),
        (["loss", "classes", "--data", "labels.csv", "--target", "city"], "the estimator does not"),
        (["boundaries", "classes", *LABELS, "--tree", "0"], "predicts nothing by itself"),
        (["steps", "classes", *LABELS], "steps are of predicted numbers"),
        (["steps", "numbers", *PRICES, "--feature", "city"], "holds categories"),
        (["oob", "numbers"], "no oob_curve_"),
        (["pruning", "numbers"], "no pruning_curve_"),
        (["tree", "numbers", "--tree", "99"], "tree 99 does not exist: choose one of 0 to 11"),
    ],
)
def test_errors_are_one_line(models, capsys, arguments, message):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert main(["plot", *arguments, "--out", "x.png"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err


def test_pictures_stand_alone(models, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "loss", "numbers", "--out", "x.png"]) == 2
    assert "pip install 'gpuforest[plot]'" in capsys.readouterr().err
