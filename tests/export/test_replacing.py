"""Files that are replaced as a whole: their mode stays, and streams are written to."""

import os

import pytest
from saved import fitted

import gpuforest
from gpuforest import (
    ModelFormatError,
)


def test_the_umask_is_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("other threads create files too"))
    fitted()[0].save(tmp_path / "model")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFormatError, match="pipe"):
        gpuforest.load(tmp_path / "pipe")
