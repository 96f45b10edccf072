"""What the command line writes, and where; and what it shows of names that steer a terminal."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from commands import refused
from pyarrow import parquet

from gpuforest import RandomTreesEmbedding
from gpuforest.tools.cli import main
from gpuforest.tools.cli.output import printable

COMMAND = [sys.executable, "-m", "gpuforest.cli"]
QUICK = ["--backend", "numpy", "--random-state", "0"]
ROWS = [f"{i:03d},{i / 40},{'yes' if i < 20 else 'no'}" for i in range(40)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("\n".join(["id,x,y", *ROWS]) + "\n")
    train("--drop", "id")
    return tmp_path


def train(*arguments: str, status: int = 0) -> None:
    line = ["train", "data.csv", "--target", "y", "--out", "model", "--model", "tree"]
    assert main([*line, *QUICK, *arguments]) == status


def predict(*arguments: str) -> int:
    return main(["predict", "model", "data.csv", "--backend", "numpy", *arguments])


@pytest.mark.parametrize("arguments", [
    ["train", "data.csv", "--target", "y", "--out", "data.csv"],
    ["train", "data.csv", "--target", "y", "--out", "./link"],
    ["train", "data.csv", "--target", "y", "--out", "test.csv", "--test", "test.csv"],
    ["predict", "model", "data.csv", "--out", "data.csv"],
    ["predict", "model", "data.csv", "--out", "link"],
    ["predict", "model", "data.csv", "--out", "model"],
    ["plot", "importances", "model", "--out", "model"],
    ["explain", "model", "data.csv", "--background", "test.csv", "--out", "test.csv"],
    ["report", "model", "--data", "new.html", "--out", "new.html"],
    ["export", "c", "model", "--out", "model"],
])  # fmt: skip
def test_no_input_is_overwritten(folder, capsys, arguments):
    Path("link").symlink_to("data.csv")
    for name in ("test.csv", "new.html"):
        Path(name).write_bytes(Path("data.csv").read_bytes())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "which is read: choose another" in refused(capsys, *arguments)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_columns_kept_beside_the_predictions(folder, capsys, name):
    assert predict("--keep", "id, x", "--keep", "y", "--out", name) == 0
    if name.endswith("csv"):
        lines = Path(name).read_text().splitlines()
        assert lines[0] == "id,x,y,prediction"
        assert lines[1:] == [f"{row},{row.split(',')[2]}" for row in ROWS]  # 007 stays 007
    else:
        found = parquet.read_table(name).to_pydict()
        assert found["id"] == [row[:3] for row in ROWS]
        assert found["x"] == [i / 40 for i in range(40)]
    assert "columns ignored" not in capsys.readouterr().err


def test_columns_that_cannot_be_kept_and_ids_of_a_header_with_blanks(folder, capsys):
    Path("data.csv").write_text("x,prediction,probability_yes\n1,2,3\n")
    for keep, message in (
        (["name"], "no column 'name'"),
        (["prediction"], "a column of the name 'prediction' too; rename it"),
        (["probability_yes", "--proba"], "a column of the name 'probability_yes' too; rename it"),
        (["x", "--dates", "x"], "--keep x: it is read as a date; keep x_seconds"),
    ):
        assert message in refused(capsys, "predict", "model", "data.csv", "--keep", *keep)
    assert predict("--keep", "probability_yes") == 0
    capsys.readouterr()
    Path("data.csv").write_text("id, code ,x\n000,00,0.5\n")
    assert predict("--keep", "code, id") == 0
    assert capsys.readouterr().out == "code,id,prediction\n00,000,no\n"


def test_predictions_go_to_standard_output_by_any_name_and_an_embedding_has_none(folder, capsys):
    line = [*COMMAND, "predict", "model", "data.csv", "--backend", "numpy", "--out", "/dev/stdout"]
    whole = subprocess.run(line, capture_output=True, check=True).stdout
    assert whole.splitlines() == [b"prediction", *(row.split(",")[2].encode() for row in ROWS)]
    X = pa.table({"x": range(9)})
    RandomTreesEmbedding(2, random_state=0, backend="numpy").fit(X).save("model")
    for arguments in ([], ["--proba"]):
        line = refused(capsys, "predict", "model", "data.csv", *arguments)
        assert "a RandomTreesEmbedding predicts nothing" in line


def test_printed_names_steer_no_terminal(folder, capsys):
    assert printable("a\x1b[31m\tb\n\x9b\u202e") == "a\\x1b[31m\tb\n\\x9b\\u202e"
    header = "id\x1b]0;gone\x07,x\x1b[2J,y"
    Path("data.csv").write_text("\n".join([header, *ROWS]) + "\n")
    train()
    train("--model", "forest", "--target", "\x1b[2J", status=2)
    assert predict() == 0
    for arguments in ([], ["--tree", "0"], *(["--tree", "0", "--as", f] for f in ("rules", "dot"))):
        assert main(["inspect", "model", *arguments]) == 0
    assert predict("--out", "\x1b[2J.csv") == 0
    assert main(["plot", "tree", "model", "--out", "\x1b[2J.svg"]) == 0
    out, err = capsys.readouterr()
    assert "\\x1b" in out
    assert not {"\x1b", "\x07"} & {*out, *err}
