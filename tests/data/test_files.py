"""Files good and bad: compressed ones hold the same, and faults are named with the file."""

import gzip

import pytest
from pyarrow import parquet
from tables_on_disk import CSV, ENGINES, plain, write

from gpuforest.data.frames import read_frame


def test_gzip_and_parquet_hold_the_same(tmp_path):
    frame = read_frame(write(tmp_path, CSV))
    packed = write(tmp_path, gzip.compress(CSV.encode(), mtime=0), "data.csv.gz")
    assert plain(read_frame(packed)) == plain(frame)
    parquet.write_table(frame.to_native(), tmp_path / "data.parquet")
    assert plain(read_frame(tmp_path / "data.parquet")) == plain(frame)


@pytest.mark.parametrize("library", ENGINES)
@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "data.csv", "is empty"),
        ("\n\n", "data.csv", "is empty, or its first line is"),
        ("a,b\n", "data.csv", "has no rows"),
        ("a,b\n1,2,3\n4,5,6\n", "data.csv", "line 2 has more fields than its first .*3 and not 2"),
        ("a,b\n1,2\n1,2,3\n", "data.csv", "line 3 has more fields than its first line"),
        ("a,b\n1,2\n\n1\n", "data.csv", "line 4 has fewer fields than its first line, 1 and"),
        ('a,b\n1,"2\n', "data.csv", "a quotation mark is never closed"),
        ('a,b\n"1,2\n3,4\n', "data.csv", "line 3 has fewer fields"),
        ("a,b, a\n1,2,3\n", "data.csv", "several columns of one name: 'a'; rename or remove"),
        ("a,b,a\n1,2,3\n", "data.csv", "several columns of one name: 'a'; rename or remove"),
        ("a,café\n1,2\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
        ("a,b\n1,café\n".encode("latin-1"), "data.csv", "no CSV file in UTF-8"),
        (b"\x7fELF\0\0\0\n1", "data.csv", "binary data"),
        (CSV, "data.csv.gz", "no whole gzip file"),
        (gzip.compress(CSV.encode(), mtime=0)[:30], "data.csv.gz", "no whole compressed file"),
        (CSV, "data.parquet", "no Parquet file"),
        ("", "data.parquet", "no Parquet file"),
    ],
)
def test_bad_files_are_named(tmp_path, only, library, content, name, message):
    if not name.endswith("parquet"):
        only(library)
    with pytest.raises(ValueError, match=message) as caught:
        read_frame(write(tmp_path, content, name))
    assert name in str(caught.value)


def test_no_file_and_a_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_frame(tmp_path / "absent.csv")
    with pytest.raises(IsADirectoryError, match="is a directory"):
        read_frame(tmp_path)
