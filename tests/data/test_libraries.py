"""The library that reads files: what is not installed is named, what damages text is not used."""

import pytest
from tables_on_disk import CSV, write

from gpuforest.data import libraries
from gpuforest.data.frames import read_frame


def test_what_is_not_installed_is_named_with_its_extra(tmp_path, only):
    only("pandas")
    with pytest.raises(ImportError, match=r"Parquet .* need pyarrow.*'gpuforest\[files\]'"):
        read_frame(write(tmp_path, "", "data.parquet"))
    only(None)
    with pytest.raises(ImportError, match=r"pip install 'gpuforest\[files\]'"):
        read_frame(write(tmp_path, CSV))


def test_a_pyarrow_that_damages_text_is_not_used(monkeypatch):
    monkeypatch.setattr(libraries, "version", lambda name: "22.0.0")
    assert libraries.frame_engine() == "pandas"
    with pytest.raises(ImportError, match="need pyarrow 24 or newer"):
        libraries.require_pyarrow()
