"""Compiled kernels on disk: where they lie, and that no damage or full disk stops a fit."""

import errno
import hashlib
import logging
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import gpuforest
from gpuforest.kernels import cache, compile

SCRIPT = """
import numpy as np
from gpuforest.backends.numba import NumbaBackend
keys = np.arange(3, dtype=np.uint64)
print(NumbaBackend().bag(keys, 50, 50, None).sum())
"""
SUM = "150\n"
WORD = "compiling its kernels"  # said where compilation takes long


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Makes a small kernel that knows no code yet, and keeps it below tmp_path."""

    def double(x):
        return 2 * x

    monkeypatch.setattr(cache, "folders", lambda make=False: iter([tmp_path / "a", tmp_path / "b"]))
    monkeypatch.setattr(cache, "_logged", set())
    return lambda: compile.kernel(double)


def hits(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_code_is_kept_and_read(make, tmp_path, caplog):
    assert make()(3) == 6
    (path,) = files(tmp_path)
    assert path.parent == tmp_path / "a"
    again = make()
    assert again(4) == 8
    assert hits(again) == 1
    assert again(0.5) == 1.0  # another signature, another file
    assert len(files(tmp_path)) == 2
    assert not caplog.records


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
        lambda content: content + b"\0",
    ],
    ids=["empty", "stamp", "half", "last byte", "a bit", "longer"],
)
def test_a_damaged_file_is_made_anew(make, tmp_path, caplog, damage):
    assert make()(3) == 6
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    damaged = make()
    assert damaged(3) == 6
    assert hits(damaged) == 0
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gpuforest", logging.WARNING)
    assert record.message.startswith(f"{path} is damaged")
    repaired = make()
    assert repaired(3) == 6
    assert hits(repaired) == 1


def test_an_intact_file_of_another_environment_is_made_anew(make, tmp_path, caplog):
    assert make()(3) == 6
    (path,) = files(tmp_path)
    rest = compile._STAMP + b"cno_such_module\nname\n."
    path.write_bytes(hashlib.sha256(rest).digest() + rest)
    assert make()(3) == 6
    (record,) = caplog.records
    assert "no_such_module" in record.message


def test_code_of_other_sources_is_replaced_without_a_word(make, tmp_path, monkeypatch, caplog):
    with monkeypatch.context() as earlier:
        earlier.setattr(compile, "_STAMP", bytes(32))
        assert make()(3) == 6
    old = {path: path.read_bytes() for path in files(tmp_path)}
    now = make()
    assert now(3) == 6
    assert hits(now) == 0
    assert {*files(tmp_path)} == {*old}
    assert all(path.read_bytes() != content for path, content in old.items())
    assert not caplog.records


def test_a_folder_that_cannot_be_written_to_may_hold_code_and_the_next_gets_it(make, tmp_path):
    (tmp_path / "a").write_text("not a folder")
    assert make()(3) == 6
    assert [path.parent.name for path in files(tmp_path) if path.suffix == ".nbc"] == ["b"]
    again = make()
    assert again(3) == 6
    assert hits(again) == 1


def test_a_full_disk(make, tmp_path, monkeypatch, caplog):
    def full(self, content):
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    for _ in range(2):
        assert make()(3) == 6
    assert files(tmp_path) == []
    (record,) = caplog.records
    assert "No space left on device" in record.message
    assert "NUMBA_CACHE_DIR" in record.message


def test_another_inside_of_numba_only_costs_time(make, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(cache, "dumps", None)
    assert make()(3) == 6
    assert files(tmp_path) == []
    (record,) = caplog.records
    assert "cannot keep" in record.message


posix = pytest.mark.skipif(os.name != "posix", reason="users and folders of POSIX")


@posix
def test_the_temporary_folder_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    assert cache._temporary(make=False) is None
    folder = cache._temporary(make=True)
    assert folder == tmp_path / f"gpuforest-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o770)  # others could put code there
    assert cache._temporary(make=True) is None
    folder.chmod(0o700)
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    folder.rename(tmp_path / f"gpuforest-{another}")
    assert cache._temporary(make=True) is None
    monkeypatch.undo()
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert cache._temporary(make=True) is None


def test_a_user_without_a_home_gets_no_folder_of_that_name(monkeypatch):
    monkeypatch.setattr(cache.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert all(folder.is_absolute() for folder in cache.folders())


@pytest.fixture
def container(tmp_path):
    """Runs SCRIPT on a copy of the package that cannot be written to, for a user without a home.

    Root may write to any folder, but makes none where a file is.
    """
    package = tmp_path / "site" / "gpuforest"
    shutil.copytree(
        Path(gpuforest.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "kernels" / "__pycache__").write_text("")
    (tmp_path / "tmp").mkdir()

    def run(before=""):
        unset = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
        env = {name: value for name, value in os.environ.items() if name not in unset}
        env |= {"HOME": os.devnull, "TMPDIR": str(tmp_path / "tmp")}
        env |= {"PYTHONPATH": str(tmp_path / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", before + SCRIPT],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert (done.returncode, done.stdout) == (0, SUM), done.stderr
        return [line for line in done.stderr.splitlines() if WORD not in line]

    return run


@posix
def test_a_read_only_package_and_no_home(container, tmp_path):
    (line,) = container()
    assert f"keeps its compiled kernels in {tmp_path}/tmp/gpuforest-{os.getuid()}" in line
    assert container() == []  # they are found there
    assert {path.name for path in tmp_path.iterdir()} == {"site", "tmp"}


@posix
def test_nothing_can_be_written_at_all(container, tmp_path):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    (line,) = container(full)
    assert "cannot keep its compiled kernels on disk" in line
    assert cache.HINT in line
    assert [path for path in files(tmp_path / "tmp") if path.stat().st_size] == []
