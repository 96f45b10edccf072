"""The commands on boosted models and isolation forests: inspect, permuted features, scores."""

import re

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest
from commands import refused, told
from sklearn.inspection import permutation_importance

from gpuforest import HistGradientBoostingClassifier, HistGradientBoostingRegressor, IsolationForest
from gpuforest.data.frames import Table
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
    monkeypatch.chdir(tmp_path)
    FRAME.assign(price=PRICE).to_csv("prices.csv", index=False)
    found = {
        "numbers": HistGradientBoostingRegressor(**STOPS).fit(FRAME, PRICE),
        "classes": HistGradientBoostingClassifier(**STOPS).fit(FRAME, LABEL),
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
    facts = told(capsys, "inspect", name)
    assert facts["boosting"] == rounds_facts(model)
    expected = dict(zip(FRAME.columns, model.feature_importances_.tolist(), strict=True))
    assert facts["importances"] == expected


def test_permuted_features(models, capsys):
    evaluate = ["evaluate", "numbers", "prices.csv", "--target", "price"]
    facts = told(capsys, *evaluate, "--permute")["permuted"]
    means = [own["mean"] for own in facts.values()]
    assert means == sorted(means, reverse=True)
    assert [*facts][:2] == ["size", "city"]
    assert all(own["std"] >= 0 for own in facts.values())
    assert main([*evaluate, "--permute"]) == 0
    lines = capsys.readouterr().out.splitlines()[-3:]
    said = f"permuted {facts['size']['mean']:.4f} ± {facts['size']['std']:.4f} size"
    assert " ".join(lines[0].split()) == said
    assert main(evaluate) == 0
    assert "permuted" not in capsys.readouterr().out


@pytest.mark.parametrize("weighted", [False, True])
def test_permuted_by_hand(models, weighted):
    own = FRAME.iloc[::-1]  # an index in another order
    weight = RNG.random(N) if weighted else None
    for model, y in ((models["numbers"], PRICE.to_numpy()), (models["classes"], LABEL)):
        table = Table(nw.from_native(own, eager_only=True), y, weight)
        found = permutation_importances(model, table)
        how = {"n_repeats": REPEATS, "random_state": 0, "sample_weight": weight}
        expected = permutation_importance(model, own, y, **how)
        np.testing.assert_allclose(found.importances, expected.importances, atol=1e-12)


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


def test_anomalies_are_predicted_and_described(rows, capsys):
    assert main(["predict", "model", "rows.csv", "--keep", "a", "--out", "found.csv"]) == 0
    found = pd.read_csv("found.csv")
    model = IsolationForest(n_estimators=20, contamination=0.05, random_state=0).fit(rows)
    assert np.array_equal(found["prediction"], model.predict(rows))
    assert np.array_equal(found["score"], model.score_samples(rows))
    assert found["score"].argmin() == 7
    assert found["prediction"][7] == -1
    facts = told(capsys, "inspect", "model")
    assert (facts["task"], facts["importances"], facts["trees"]) == ("anomalies", {}, 20)
    assert main(["inspect", "model"]) == 0
    assert "anomalies" in capsys.readouterr().out
    line = ["evaluate", "model", "rows.csv", "--target", "a"]
    assert "has no target to compare with" in refused(capsys, *line)
