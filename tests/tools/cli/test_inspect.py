"""What is shown of a model: its summary, and trees as text that leads rows as they do."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, told
from engine import table
from small_trees import chain

import gpuforest as gf
from gpuforest.core.model import Model
from gpuforest.explain.paths import subtree_sizes, tree_depths
from gpuforest.export.text import export_text, tree_lines
from gpuforest.tools.cli import main

N = 150
NAMES = ["a", "b c", "n", "d[0]"]


def data():
    """A frame with missing values, classes and numbers of its rows."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(table(rng, N, list("cfnN"), np.float64), columns=NAMES)
    y = 3 * (X["a"] > 0) + X["n"].isna() + rng.normal(size=N) / 3
    return X, np.array(["low", "mid", "high"])[np.digitize(y, [0.5, 2.5])], y


@pytest.fixture
def forest(tmp_path, monkeypatch):
    """A saved forest of classes, `model`, in the working directory."""
    monkeypatch.chdir(tmp_path)
    X, labels, _ = data()
    model = gf.RandomForestClassifier(
        25, max_depth=5, oob_score=True, random_state=9, backend="numpy"
    )
    model.fit(X, labels).save("model")
    return model


def test_text_reads_well_and_deep_trees_do_not_recurse():
    nan = np.nan
    X = [[0.0, 1.0], [0.5, 1.0], [2.0, nan], [2.0, 3.0]]
    model = gf.DecisionTreeClassifier().fit(X, ["no", "no", "yes", "may be"])
    assert export_text(model) == (
        "feature_0 <= 1.25\n"
        "|   class: no (no: 2)\n"
        "feature_0 > 1.25 or missing\n"
        "|   feature_1 is not missing\n"
        "|   |   class: may be (may be: 1)\n"
        "|   feature_1 is missing\n"
        "|   |   class: yes (yes: 1)\n"
    )
    assert export_text(model, feature_names=["x", "y"], max_depth=1) == (
        "x <= 1.25\n|   class: no (no: 2)\nx > 1.25 or missing\n|   ... 2 more nodes\n"
    )
    assert export_text(model, max_depth=0) == "... 4 more nodes\n"
    leaf = gf.DecisionTreeRegressor().fit(X, [0.1] * 4)
    assert export_text(leaf) == "value: 0.1 (weight: 4)\n"
    depth = 3 * sys.getrecursionlimit()
    tree = chain(depth)
    names = [field.name for field in fields(Model)]
    model = Model(**{**dict.fromkeys(names), "forest": tree, "facts": {}})
    assert sum(1 for _ in tree_lines(model, 0)) == depth * 3 + 1
    assert tree_depths(tree).tolist() == [depth]
    assert subtree_sizes(tree, 0)[:3].tolist() == [2 * depth + 1, 1, 2 * depth - 1]


def test_several_outputs_bags_and_embeddings(tmp_path, capsys):
    X = np.arange(20.0)[:, None]
    y = np.stack([X[:, 0] > 9, X[:, 0] // 5], axis=1).astype(int)
    for model, task, leaf in (
        (gf.RandomForestRegressor(3), "regression", "value: ["),
        (gf.BaggingClassifier(), "classification (2 outputs of 2, 4 classes)", "classes: "),
        (gf.RandomTreesEmbedding(3), "embedding", "value: "),
    ):
        model.fit(X, y).save(tmp_path / "model")
        assert main(["inspect", str(tmp_path / "model")]) == 0
        assert f"task        {task}\n" in capsys.readouterr().out
        assert main(["inspect", str(tmp_path / "model"), "--tree", "0"]) == 0
        assert leaf in capsys.readouterr().out
    bags = gf.BaggingClassifier(gf.DecisionTreeClassifier(max_depth=2)).fit(X, y)
    bags.save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model")]) == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^settings +estimator=DecisionTreeClassifier\(max_depth=2\)$", out, re.MULTILINE
    )


def test_json_is_the_model(forest, capsys):
    found = told(capsys, "inspect", "model")
    depths = tree_depths(forest.forest_)
    importances = dict(zip(NAMES, forest.feature_importances_.tolist(), strict=True))
    assert list(found["importances"].values()) == sorted(importances.values(), reverse=True)
    settings = {"n_estimators": 25, "max_depth": 5, "oob_score": True, "random_state": 9}
    n_nodes = forest.forest_.n_nodes
    assert found == {
        "file": "model", "bytes": Path("model").stat().st_size, "seed": 9,
        "estimator": "RandomForestClassifier", "task": "classification", "outputs": 1,
        "features": 4, "categories": {}, "classes": ["high", "low", "mid"],
        "trees": 25, "nodes": n_nodes, "leaves": (n_nodes + 25) // 2,
        "depth": depths.max(), "min_depth": depths.min(), "mean_depth": depths.mean(),
        "score": "accuracy", "oob_score": forest.oob_score_,
        "importances": importances, "settings": settings,
    }  # fmt: skip


def test_summary_reads_well(forest, capsys):
    assert main(["inspect", "model"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = dict(re.findall(r"^(\S+(?: \S+)*) {2,}(.*)$", out, re.MULTILINE))
    assert rows["estimator"] == "RandomForestClassifier, seed 9"
    assert rows["task"] == "classification (3 classes: high, low, mid)"
    assert rows["settings"] == "n_estimators=25, max_depth=5, oob_score=True, random_state=9"
    assert rows["out-of-bag accuracy"] == f"{forest.oob_score_:.4f}"
    assert rows["nodes"].endswith("leaves")
    assert out.count("\n") == len(rows) + len(NAMES) - 1  # an importance a line


@pytest.mark.parametrize(("arguments", "message"), [
    (["no-model"], "no-model: No such file or directory"),
    (["notes"], "notes: damaged model: it is cut, or no model file"),
    (["."], "Is a directory"),
    (["model", "--tree", "25"], "tree 25 does not exist: choose one of 0 to 24"),
    (["model", "--tree", "0", "--max-depth", "-1"], "max_depth=-1 is negative"),
    (["model", "--max-depth", "2"], "--max-depth is for one tree: add --tree N"),
    (["model", "--as", "rules"], "--as is for one tree: add --tree N"),
    (["model", "--as", "python", "--json"], "--as is for one tree: add --tree N"),
    (["model", "--as", "python"], "--as python without --tree is for boosted models"),
    (["model", "--tree", "0", "--as", "python", "--max-depth", "2"],
     "--as python shows all of a tree: leave out --max-depth"),
    (["model", "--tree", "x"], "invalid int value: 'x'"),
    (["model", "--tree", "0", "--json"], "not allowed with argument"),
    (["model", "--as", "png"], "invalid choice: 'png'"),
])  # fmt: skip
def test_errors_are_one_line_and_status_2(forest, capsys, arguments, message):
    Path("notes").write_text("nothing that was trained")
    assert message in refused(capsys, "inspect", *arguments)


def test_nothing_is_compiled_for_a_look(forest):
    script = "import sys; from gpuforest.cli import main; main(['inspect', 'model', '--json'])"
    script += "; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0
