"""What the command line reads: pipes, compressed files, folders; marks, dates and odd columns."""

import bz2
import gzip
import io
import lzma
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import refused, told
from engine import same_forest
from pyarrow import parquet

import gpuforest as gf
from gpuforest.data import files
from gpuforest.data.frames import read_frame
from gpuforest.tools.cli import main
from gpuforest.tools.cli.files import names_of

N = 60


def table(**columns) -> str:
    """CSV of columns; x and its label where they are not given."""
    columns = {"x": [f"{i / N:.4f}" for i in range(N)], **columns}
    columns.setdefault("y", ["no" if i < N // 2 else "yes" for i in range(N)])
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text(table())
    return tmp_path


def train(*arguments: str) -> list[str]:
    data = [] if arguments and arguments[0] in ("-", "fifo") else ["data.csv"]
    return [
        *("train", *data, *arguments, "--target", "y", "--out", "model", "--n-estimators", "9"),
        *("--random-state", "0", "--backend", "numpy", "--no-oob-score"),
    ]


def facts(capsys, *arguments: str) -> dict:
    return told(capsys, *train(*arguments))


def predicted(capsys, *arguments: str) -> list[list[str]]:
    """The rows of the CSV that `predict` prints."""
    assert main(["predict", *arguments, "--backend", "numpy"]) == 0
    return [line.split(",") for line in capsys.readouterr().out.splitlines()]


def test_standard_input_closed_or_not(folder, capsys, monkeypatch):
    assert main(train()) == 0
    monkeypatch.setattr("sys.stdin", None)
    assert "-: standard input is closed" in refused(capsys, "predict", "model", "-")
    assert len(predicted(capsys, "model", "data.csv")) == N + 1

    def stdin(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    stdin(table().encode())
    assert facts(capsys, "-")["rows"] == N
    stdin(gzip.compress(table().encode()))
    assert len(predicted(capsys, "model", "-")) == N + 1
    parquet.write_table(read_frame("data.csv").to_native(), "data.parquet")
    stdin(Path("data.parquet").read_bytes())
    assert len(predicted(capsys, "model", "-")) == N + 1


@pytest.mark.parametrize(("name", "pack"), [
    ("data.csv.gz", gzip.compress),
    ("data.csv.bz2", bz2.compress),
    ("data.csv.xz", lzma.compress),
    ("data.csv.zst", lambda b: pa.compress(b, "zstd", asbytes=True)),
])  # fmt: skip
def test_compressed_files(folder, name, pack):
    whole = pack(table().encode())
    Path(name).write_bytes(whole)
    assert read_frame(name).rows() == read_frame("data.csv").rows()
    Path("other").write_bytes(whole)  # the name need not say it
    assert len(read_frame("other")) == N
    Path(name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises((ValueError, OSError), match=r"data.csv|[Zz][Ss][Tt][Dd]|end"):
        read_frame(name)
    Path(name).write_text(table())
    with pytest.raises(ValueError, match=f"{name} is no whole .* file"):
        read_frame(name)


@pytest.mark.parametrize("most", [10, 10**9])  # a long pipe goes to a temporary file
def test_a_named_pipe_gives_all_rows(folder, capsys, monkeypatch, most):
    monkeypatch.setattr(files, "IN_MEMORY", most)
    os.mkfifo("fifo")
    writer = threading.Thread(target=lambda: Path("fifo").write_text(table()))
    writer.start()
    assert facts(capsys, "fifo")["rows"] == N
    writer.join()


def parts(folder: str, *names: str) -> None:
    for i, name in enumerate(names):
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table({"a": [i, i + 1], "b": ["u", None]}), path)


def test_folders_and_patterns_of_parquet_files(folder):
    parts("set", "part-1.parquet", "part-2.PARQUET", "_temporary/part-3.parquet")
    Path("set/_SUCCESS").touch()
    Path("set/notes.txt").touch()
    expected = {"a": [0, 1, 1, 2], "b": ["u", None] * 2}
    for path in ("set", "set/part-*.[pP]*"):
        assert read_frame(path).to_dict(as_series=False) == expected
    with pytest.raises(ValueError, match=r"set/\*: several files .* set/_SUCCESS is none"):
        read_frame("set/*")
    with pytest.raises(FileNotFoundError, match=r"set/\*.csv: no such file"):
        read_frame("set/*.csv")
    Path("empty").mkdir()
    with pytest.raises(IsADirectoryError, match=r"empty is a directory, .* no Parquet files"):
        read_frame("empty")


def test_partitions_are_columns(folder):
    parts("set", "year=2019/kind=x/1.parquet", "year=2020/kind=y/1.parquet")
    found = read_frame("set").to_dict(as_series=False)
    assert found["year"] == [2019, 2019, 2020, 2020]
    assert found["kind"] == ["x", "x", "y", "y"]
    assert read_frame("set", text=["year"])["year"].to_list() == ["2019"] * 2 + ["2020"] * 2
    parts("other", "a=7/1.parquet", "a=8/1.parquet")  # but those that the files hold too
    assert read_frame("other").to_dict(as_series=False) == {"a": [0, 1, 1, 2], "b": ["u", None] * 2}


@pytest.mark.parametrize(("path", "columns"), [
    ("run=3/set", ["a", "b", "year"]),  # a folder of one file
    ("run=3/set/year=*/1.parquet", ["a", "b", "year"]),
    ("run=3/**/*.parquet", ["a", "b", "year"]),
    ("run=3/set/year=2020", ["a", "b"]),  # what is spelt out is no column
    ("run=3/set/year=2020/*.parquet", ["a", "b"]),
    ("run=3/set/year=2020/1.parquet", ["a", "b"]),
])  # fmt: skip
def test_partitions_are_folders_that_are_found(folder, path, columns):
    parts("run=3/set", "year=2020/1.parquet")
    for given in (path, str(folder / path)):
        assert read_frame(given).columns == columns


def test_parquet_files_that_do_not_fit_together(folder):
    parts("set", "1.parquet")
    parquet.write_table(pa.table({"a": [1], "c": ["u"]}), "set/2.parquet")
    with pytest.raises(ValueError, match=r"2.parquet has other columns than .*: 'b', 'c'"):
        read_frame("set")
    parquet.write_table(pa.table({"a": ["text"], "b": ["u"]}), "set/2.parquet")
    with pytest.raises(ValueError, match="set: the files do not fit together"):
        read_frame("set")


def test_text_in_a_column_of_numbers_is_named_and_strings_like_numbers_are_kept(folder, capsys):
    assert main(train()) == 0
    Path("new.csv").write_text("x\n0.9\nn.a.\n")
    capsys.readouterr()
    err = refused(capsys, "predict", "model", "new.csv", "--backend", "numpy")
    assert "column 'x' held numbers in training, and is text here because of some of" in err
    assert "'n.a.'" in err
    assert len(predicted(capsys, "model", "new.csv", "--missing", "n.a.")) == 3
    codes = ["007" if i % 2 else ("A1", "08")[i % 4 == 0] for i in range(N)]
    Path("data.csv").write_text(table(code=codes))
    assert main(train()) == 0
    model = gf.load("model")
    assert model.forest_.edges.categories == {1: ("007", "08", "A1")}
    Path("new.csv").write_text("x,code\n0.9,007\n0.1,08\n")
    capsys.readouterr()
    assert predicted(capsys, "model", "new.csv") == [["prediction"], ["yes"], ["no"]]


def test_a_target_with_gaps(folder, capsys):
    Path("data.csv").write_text(table(y=["", *(i // 30 for i in range(1, N))]))
    assert "--drop-missing-target leaves these rows out" in refused(capsys, *train())
    found = facts(capsys, "--drop-missing-target", "--test", "0.2")
    assert found["classes"] == [0, 1]  # whole numbers, as in the file
    assert found["rows"] + found["test_rows"] == N - 1
    assert found["notes"] == ["1 of 60 rows have no 'y' and are left out"]
    Path("data.csv").write_text(table(y=[""] * N))
    line = refused(capsys, *train("--drop-missing-target"))
    assert "the target 'y' is missing in all rows" in line


def test_blanks_and_commas_in_lists(folder, capsys):
    assert names_of(["a, b", ' c ,"d, e",']) == ["a", "b", "c", "d, e"]
    Path("data.csv").write_text(table(a=[1] * N, b=[2] * N).replace("x,a,b,y", "x,a, b,y"))
    assert facts(capsys, "--drop", "a, b")["features"] == 1
    assert facts(capsys, "--drop", "a", "--categorical", "b")["categories"] == {"b": 1}
    assert names_of(['"c\nd",e']) == ["c\nd", "e"]
    line = refused(capsys, *train("--drop", "c\nd"))
    assert "is no list of names: commas stand between them" in line


def test_marks_are_kept_with_the_model(folder, capsys):
    x = ['"1.000,5"' if i % 2 else '"-,5 €"' for i in range(N)]
    Path("data.csv").write_text(table(x=x, y=[i % 2 for i in range(N)], z=["n.a."] * N))
    marks = ["--decimal", ",", "--thousands", ".", "--units", "€", "--missing", "n.a.,-"]
    assert facts(capsys, *marks)["categories"] == {}
    model = gf.load("model")
    marks = {"decimal": ",", "thousands": ".", "missing": ["n.a.", "-"], "units": "€"}
    assert model.source_.items() >= {"target": "y", **marks}.items()
    Path("new.csv").write_text('x,z\n"1.000,5",n.a.\n"-0,5",-\n')
    assert predicted(capsys, "model", "new.csv") == [["prediction"], ["1"], ["0"]]
    Path("new.csv").write_text("x,z\n1000.5,\n-0.5,\n")  # written otherwise: say so
    assert "--decimal, --thousands" in refused(capsys, "predict", "model", "new.csv")
    english = ["--decimal", ".", "--thousands", ","]
    assert predicted(capsys, "model", "new.csv", *english) == [["prediction"], ["1"], ["0"]]


@pytest.mark.parametrize(("options", "message"), [
    (["--decimal", "--"], "expected one argument"),
    (["--decimal", "1"], "--decimal '1': one character that is part of no number"),
    (["--decimal", ",", "--thousands", ","], "--decimal and --thousands are both ','"),
    (["--units=-"], "--units '-': '-' may be part of a number"),
    (["--dates", "y"], "--dates y: this column is the target"),
    (["--dates", "when"], "--dates: no feature of the name 'when'"),
    (["--dates", "x"], "is no date; write it as 2020-12-31 or"),
    (["--dates", "x", "--date-format", "%d.%m.%Y"], "it is not of the form '%d.%m.%Y'"),
])  # fmt: skip
def test_marks_that_cannot_be(folder, capsys, options, message):
    assert message in refused(capsys, *train(*options))


def test_dates_are_numbers_where_asked(folder, capsys):
    when = [f"{1 + i % 28:02d}.{1 + i // 30:02d}.2021" for i in range(N)]
    Path("data.csv").write_text(table(x=[0] * N, when=when))
    found = facts(capsys, "--dates", "when", "--date-format", "%d.%m.%Y")
    parts = ["when_year", "when_month", "when_weekday", "when_seconds"]
    assert gf.load("model").feature_names_in_.tolist() == ["x", *parts]
    assert found["categories"] == {}
    Path("new.csv").write_text("x,when\n0,05.01.2021\n0,05.02.2021\n")
    assert predicted(capsys, "model", "new.csv") == [["prediction"], ["no"], ["yes"]]


def test_nearly_numbers_and_categories_are_said(folder, capsys):
    age = ["-" if i % 9 == 0 else i for i in range(N)]
    Path("data.csv").write_text(table(colour=["red", "blue"] * (N // 2), age=age))
    assert main(train()) == 0
    out, err = capsys.readouterr()
    assert "categories" in out
    assert "2 colour, " in out
    assert "gpuforest: column 'age' is nearly all numbers" in err
    assert facts(capsys, "--missing=-")["categories"] == {"colour": 2}


def test_many_columns_are_read_in_few_calls(folder, monkeypatch):
    n = 3000
    rows = [",".join(f"c{i}" for i in range(n)), *(",".join(["0.5", "x", "1"] * (n // 3)),) * 2]
    Path("wide.csv").write_text("\n".join(rows))
    calls = []
    import pyarrow.compute as pc

    cast = pc.cast
    monkeypatch.setattr(pc, "cast", lambda *a, **k: calls.append(1) or cast(*a, **k))
    assert read_frame("wide.csv").shape == (2, n)
    assert len(calls) < 10


def test_groups(folder, capsys):
    groups = [f"patient {i // 3 % 9}" for i in range(N)]
    Path("data.csv").write_text(table(g=groups))
    found = facts(capsys, "--groups", "g")
    assert found["features"] == 1
    x = [[i / N] for i in range(N)]
    y = ["no" if i < N // 2 else "yes" for i in range(N)]
    same = gf.RandomForestClassifier(9, random_state=0, backend="numpy")
    model = gf.load("model")
    assert same_forest(model.forest_, same.fit(np.round(x, 4), y, groups=groups).forest_)
    assert len(set(model._sampling_.groups)) == 9
    assert facts(capsys, "--groups", "g", "--test", "0.2")["test_rows"] in (12, 13, 14, 15)
    assert len(set(gf.load("model")._sampling_.groups)) == 7  # two are held out


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_blocks_of_time(folder, capsys, name):
    y = ["no" if i % 3 else "yes" for i in range(N)]
    text = table(month=[f"2020-{1 + i // 10:02}" for i in range(N)], y=y)
    Path("data.csv").write_text(text)
    if name != "data.csv":
        parquet.write_table(pa.csv.read_csv(io.BytesIO(text.encode())), name)
    model = gf.RandomForestClassifier(9, random_state=0, backend="numpy", oob_score=True)
    x = np.round([[i / N] for i in range(N)], 4)
    model.fit(x, y, blocks=np.arange(N) // 10)
    command = [word for word in train("--time", "month") if word != "--no-oob-score"]
    command[1] = name
    found = told(capsys, *command)
    assert (found["features"], found["oob_score"]) == (1, model.oob_score_)
    assert same_forest(gf.load("model").forest_, model.forest_)
    found = told(capsys, *command, "--test", "0.2")
    assert found["test_rows"] == 20  # the last two months
    model.fit(x[:40], y[:40], blocks=np.arange(40) // 10)
    assert found["oob_score"] == model.oob_score_
    assert found["test_score"] == model.score(x[40:], y[40:])


@pytest.mark.parametrize(("options", "message"), [
    (["--groups", "y"],
     "'y' is the target: it cannot be dropped, or be the weight, the group, the time, "),
    (["--groups", "h"], "no column 'h'"),
    (["--groups", "g", "--model", "tree"], "--groups: --model tree takes no groups"),
    (["--groups", "gap"], "the column 'gap' of groups or times is missing in 1 of 60"),
    (["--groups", "g", "--test", "0.01"], "--test 0.01 of 9 groups leaves one side without"),
    (["--time", "g", "--test", "0.99"], "--test 0.99 of 9 blocks leaves one side without"),
    (["--time", "g", "--groups", "g"], "--groups and --time judge rows in two ways"),
    (["--time", "g", "--model", "tree"], "--time: --model tree takes no blocks"),
    (["--groups", "g", "--dates", "g"], "--dates g: this column is the group or the time"),
])  # fmt: skip
def test_groups_that_are_refused(folder, capsys, options, message):
    gap = ["", *["a", "b"] * 30][:N]
    Path("data.csv").write_text(table(g=[i % 9 for i in range(N)], gap=gap))
    size = [] if "tree" in options else ["--n-estimators", "2"]
    said = refused(capsys, "train", "data.csv", *options, *size, "--target", "y", "--out", "model")
    assert message in said
