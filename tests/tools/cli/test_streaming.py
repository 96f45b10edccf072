"""Training and predicting by blocks, from Parquet files."""

import numpy as np
import pandas as pd
import pytest
from commands import refused
from engine import same_forest

import gpuforest as gf
from gpuforest.data import blocks
from gpuforest.tools.cli import files
from gpuforest.tools.cli.main import main

N, STREAMS = 700, files.streams
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "id": np.arange(N), "a": RNG.normal(size=N), "b": RNG.choice(["u", "v", "w", None], N),
    "when": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
    "weight": RNG.integers(1, 4, N) * 0.5, "family": np.arange(N) // 9,
}).assign(
    died=lambda f: (f.a > 0).astype(int),
    y=lambda f: np.where(f.a + (f.b == "u") > 0, "yes", "no"),
    z=lambda f: f.a * 2 + (f.b == "v"),
)  # fmt: skip

BOOSTED = ["--target", "z", "--model", "boosting", "--categorical-split", "ordered_target"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of Parquet files, and the same rows in one CSV file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "ROWS", 90)
    (tmp_path / "data").mkdir()
    for i, (begin, end) in enumerate([(0, 200), (200, 201), (201, N)]):
        FRAME[begin:end].to_parquet(f"data/{i}.parquet")
    FRAME.to_csv("data.csv", index=False)
    return tmp_path


def trained(monkeypatch, by_blocks, *options):
    monkeypatch.setattr(files, "streams", STREAMS if by_blocks else lambda _: False)
    size = ["--max-iter", "4"] if "boosting" in options else ["--n-estimators", "30"]
    common = [*size, "--random-state", "3", "--drop", "id", "--dates", "when"]
    assert main(["train", "data", *common, *options, "--out", "model"]) == 0
    return gf.load("model")


@pytest.mark.parametrize("options", [
    ["--target", "y"],
    ["--target", "y", "--weight", "weight", "--memory-limit", "1GB"],
    ["--target", "z", "--max-bins", "50"],
    ["--target", "z", "--model", "extra_trees", "--test", "data.csv"],
    ["--target", "y", "--model", "boosting"],
    ["--target", "y", "--categorical-split", "ordered_target"],
    ["--target", "z", "--categorical-split", "ordered_target"],
    ["--target", "z", "--categorical-split", "ordered_target", "--groups", "family"],
    [*BOOSTED, "--groups", "family"],
    [*BOOSTED, "--time", "family", "--weight", "weight"],
    ["--target", "weight", "--event", "died", "--criterion", "logrank"],
], ids=" ".join)  # fmt: skip
def test_blocks_train_the_same_model(folder, monkeypatch, capsys, options):
    whole = trained(monkeypatch, False, *options)
    found = trained(monkeypatch, True, *options)
    assert same_forest(found.forest_, whole.forest_)
    assert found.forest_.edges.known == whole.forest_.edges.known
    assert found.get_params() == whole.get_params()
    assert list(found.feature_names_in_) == list(whole.feature_names_in_)
    assert np.array_equal(getattr(found, "classes_", 0), getattr(whole, "classes_", 0))
    assert getattr(found, "oob_score_", None) == getattr(whole, "oob_score_", None)


@pytest.mark.parametrize("out", ["p.csv", "p.parquet"])
def test_predictions_by_blocks(folder, monkeypatch, out):
    trained(monkeypatch, True, "--target", "y")
    for data, name in (("data", out), ("data.csv", "whole.csv")):
        given = ["predict", "model", data, "--out", name, "--proba", "--keep", "id,b"]
        assert main(given) == 0
    found = pd.read_csv(out) if out.endswith("csv") else pd.read_parquet(out)
    whole = pd.read_csv("whole.csv")
    assert len(found) == N
    pd.testing.assert_frame_equal(found, whole, check_dtype=False)


@pytest.mark.parametrize(("change", "message"), [
    ({"a": np.inf}, "2.parquet, rows 0 to 89: Input X contains infinity: column 'a', row 0"),
    ({"y": None}, "2.parquet, rows 0 to 89: the target 'y' is missing in 90 of 90 rows"),
    ({"a": "text"}, "2.parquet, rows 0 to 89: column 'a'"),
    ({"more": 1}, "2.parquet has other columns than data/0.parquet: 'more'"),
])  # fmt: skip
def test_errors_name_the_file(folder, capsys, change, message):
    FRAME[201:].assign(**change).to_parquet("data/2.parquet")
    assert main(["train", "data", "--target", "y", "--out", "m", "--drop", "when"]) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "m").exists()


def test_columns_in_another_order_and_files_without_rows(folder, monkeypatch, capsys):
    whole = trained(monkeypatch, True, "--target", "y")
    part = FRAME[201:]
    part[part.columns[::-1]].to_parquet("data/2.parquet")
    found = trained(monkeypatch, True, "--target", "y")
    assert same_forest(found.forest_, whole.forest_)
    trained_on = ["train", "data.csv", "--target", "y", "--out", "model", "--drop", "id,when"]
    assert main(trained_on) == 0
    FRAME[:0].to_parquet("none.parquet")
    for command in (
        ["train", "none.parquet", *trained_on[2:]],
        ["predict", "model", "none.parquet"],
    ):
        assert "none.parquet has no rows" in refused(capsys, *command)
