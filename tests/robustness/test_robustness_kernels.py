"""Compiled kernels on disk: where they lie, and that no damage or full disk stops a fit."""

import errno
import logging
import os
import stat
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from gpuforest.compiler import code, compile, decorators, objects, processors
from gpuforest.kernels.bag.numba import in_bag

really_compiled = code.compiled


@cache
def once(command, *asked):
    """What was compiled before, by the same compiler."""
    return really_compiled(*asked)


@pytest.fixture
def compiled(monkeypatch):
    """The names of the kernels that were compiled, by this process on behalf of others."""
    names = []

    def compiled(*asked):
        names.append(asked[0])
        return once(os.environ.get("CC"), *asked)

    monkeypatch.setattr(code, "compiled", compiled)
    monkeypatch.setattr(code, "built", lambda name: objects.write(name, compiled(name)) is not None)
    return names


@pytest.fixture
def make(monkeypatch, tmp_path, compiled):
    """Makes a small kernel that knows no code yet, and keeps it below tmp_path."""
    monkeypatch.setattr(objects, "PACKAGED", tmp_path / "none")
    monkeypatch.setattr(
        objects, "folders", lambda make=False: iter([tmp_path / "a", tmp_path / "b"])
    )
    monkeypatch.setattr(objects, "_logged", set())
    return lambda: decorators.Kernel(in_bag.function)


def works(kernel):
    rows, weights = np.empty((2, 2), np.int32)
    kernel(np.array([0, 2, 0, 1], np.int32), rows, weights)
    return rows.tolist() == [1, 3] and weights.tolist() == [2, 1]


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_code_is_kept_and_read(make, compiled, tmp_path, caplog):
    for _ in range(2):
        assert works(make())
        (path,) = files(tmp_path)
        assert path.parent == tmp_path / "a"
        assert compiled == ["kernels.bag.numba.in_bag"]
    assert not caplog.records


@pytest.mark.parametrize("damage", [
    lambda content: b"", lambda content: content[:10], lambda content: content[: len(content) // 2],
    lambda content: content[:-1],
    lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    lambda content: content + b"\0",
], ids=["empty", "stamp", "half", "last byte", "a bit", "longer"])  # fmt: skip
def test_a_damaged_file_is_made_anew(make, compiled, tmp_path, caplog, damage):
    assert works(make())
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    objects.write_whole(path, damage(whole))  # in place, it would change code that is loaded
    assert works(make())
    assert len(compiled) == 2
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gpuforest", logging.WARNING)
    assert record.message.startswith(f"{path} is damaged")
    assert works(make())
    assert len(compiled) == 2


def test_code_of_other_sources_is_replaced_without_a_word(
    make, compiled, tmp_path, monkeypatch, caplog
):
    assert works(make())
    (path,) = files(tmp_path)
    with monkeypatch.context() as earlier:
        earlier.setattr(objects, "stamp", lambda name: bytes(32))
        objects.write_whole(path, objects.packed("kernels.bag.numba.in_bag", b"old"))
    assert works(make())
    assert len(compiled) == 2
    assert objects.unpacked("kernels.bag.numba.in_bag", path.read_bytes())
    assert not caplog.records


def test_a_folder_that_cannot_be_written_to_may_hold_code_and_the_next_gets_it(
    make, compiled, tmp_path
):
    (tmp_path / "a").write_text("not a folder")
    for _ in range(2):
        assert works(make())
    kept = [path for path in files(tmp_path) if path.suffix in objects.SUFFIXES]
    assert [path.parent.name for path in kept] == ["b"]
    assert len(compiled) == 1


def test_a_full_disk(make, tmp_path, monkeypatch, caplog):
    def full(self, content):
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    for _ in range(2):
        assert works(make())
    assert files(tmp_path) == []
    (record,) = caplog.records
    assert "cannot keep its compiled kernels on disk" in record.message
    assert "No space left on device" in record.message
    assert "NUMBA_CACHE_DIR" in record.message


def test_a_wheels_code_is_chosen_by_the_processor(make, compiled, tmp_path, monkeypatch):
    assert works(make())
    (path,) = files(tmp_path)
    packaged = tmp_path / "packaged"
    packaged.mkdir()
    lowest = processors.levels()[-1].name
    (packaged / f"kernels.bag.numba.in_bag.{lowest}{path.suffix}").write_bytes(path.read_bytes())
    path.unlink()
    monkeypatch.setattr(objects, "PACKAGED", packaged)
    assert works(make())
    assert len(compiled) == 1


def test_levels_of_processors(monkeypatch):
    for without, names in (
        ("", ["x86-64-v4", "x86-64-v3", "x86-64"]),
        ("avx512bw", ["x86-64-v3", "x86-64"]),
        ("bmi2", ["x86-64"]),  # a virtual machine may hide it and show AVX-512
    ):
        some = {*chain(*processors.LEVELS.values())} - {without}
        monkeypatch.setattr(processors, "host_features", lambda some=some: some)
        monkeypatch.setattr(processors.platform, "machine", lambda: "x86_64")
        assert [target.name for target in processors.levels.__wrapped__()] == names
    monkeypatch.setattr(processors.platform, "machine", lambda: "arm64")
    assert [target.name for target in processors.levels.__wrapped__()] == ["generic"]


@pytest.mark.skipif(compile.linker() is None, reason="no linker here")
def test_a_folder_from_which_the_system_loads_nothing(make, compiled, tmp_path, monkeypatch):
    """As where it is mounted with the option noexec."""

    import llvmlite.binding  # noqa: F401  it is a shared library itself

    def refuse(path):
        raise OSError(f"{path}: failed to map segment from shared object")

    monkeypatch.setattr(code.ctypes, "CDLL", refuse)
    for _ in range(2):
        assert works(make())
        assert {path.suffix for path in files(tmp_path)} == {".so", ".o"}
    assert len(compiled) == 2  # a library, then object code, by the first


@pytest.mark.parametrize("command", ["no-such-compiler", "false"])
def test_without_a_linker_object_code_is_kept(make, compiled, tmp_path, monkeypatch, command):
    monkeypatch.setenv("CC", command)
    for _ in range(2):
        assert works(make())
    (path,) = files(tmp_path)
    assert path.suffix == ".o"
    assert len(compiled) == 1


def test_a_kernel_takes_only_the_types_that_it_declares():
    rows, weights = np.empty((2, 2), np.int32)
    for bag in (np.zeros(4), np.zeros((4, 1), np.int32), np.zeros(8, np.int32)[::2]):
        with pytest.raises(TypeError, match="a kernel takes"):
            in_bag(bag, rows, weights)


posix = pytest.mark.skipif(os.name != "posix", reason="users and folders of POSIX")


@posix
def test_the_temporary_folder_is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setattr(objects.tempfile, "tempdir", str(tmp_path))
    assert objects._temporary(make=False) is None
    folder = objects._temporary(make=True)
    assert folder == tmp_path / f"gpuforest-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o770)  # others could put code there
    assert objects._temporary(make=True) is None
    folder.chmod(0o700)
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    folder.rename(tmp_path / f"gpuforest-{another}")
    assert objects._temporary(make=True) is None
    monkeypatch.undo()
    monkeypatch.setattr(objects.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    assert objects._temporary(make=True) is None


@pytest.fixture(params=["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def chosen(request, monkeypatch, tmp_path):
    """A folder of the user's choice, which comes first of those that hold compiled kernels."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv(request.param, str(tmp_path / "cache"))
    monkeypatch.setattr(objects.sys, "platform", "linux")
    monkeypatch.setattr(objects, "PACKAGED", tmp_path / "none")
    monkeypatch.setattr(objects, "_logged", set())
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(objects.tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path / "cache" / ("gpuforest" if request.param == "XDG_CACHE_HOME" else "")


NAME = "kernels.bag.numba.in_bag"


@posix
def test_a_umask_by_which_the_group_may_write(chosen, caplog):
    before = os.umask(0o002)
    try:
        path = objects.write(NAME, b"code")
    finally:
        os.umask(before)
    assert path.parent.parent == chosen
    assert objects.read(NAME) == b"code"
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, chosen)]
    assert modes == [0o644, 0o755, 0o755]
    assert not caplog.records


@posix
@pytest.mark.parametrize("level", range(3), ids=["file", "folder", "folder above"])
@pytest.mark.parametrize("mode", [None, 0o775, 0o757], ids=["another's", "group", "others"])
def test_code_that_another_user_could_have_put_there_is_not_read(
    chosen, monkeypatch, caplog, level, mode
):
    path = objects.write(NAME, b"planted")
    place = (path, path.parent, chosen)[level]
    assert objects.read(NAME) == b"planted"
    if mode:
        place.chmod(mode)
    elif os.getuid():
        another = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: another)
    else:
        os.chown(place, 65534, -1)
    assert objects.read(NAME) is None
    assert not caplog.records
    kept = objects.write(NAME, b"ours")
    assert objects.read(NAME) == b"ours"
    if level:  # a file is replaced, a folder is left alone
        assert objects._temporary(make=False) in kept.parents
        assert path.read_bytes() == objects.packed(NAME, b"planted")
        (record,) = caplog.records
        reason = f"{place} can be written to by other users; `chmod go-w {place}` ends"
        assert (reason if mode else f"{place} belongs to user ") in record.message
        assert record.message.startswith("gpuforest keeps its compiled kernels in ")


@posix
def test_links_are_not_read(chosen):
    path = objects.write(NAME, b"planted")
    for place in (path, path.parent):
        place.rename(place.with_name("elsewhere"))
        place.symlink_to(place.with_name("elsewhere"))
        assert objects.read(NAME) is None
        place.unlink()
        place.with_name("elsewhere").rename(place)
        assert objects.read(NAME) == b"planted"


@posix
def test_a_folder_where_all_may_write_but_not_to_what_others_own(chosen):
    path = objects.write(NAME, b"code")
    chosen.chmod(0o1777)  # as /tmp
    assert objects.read(NAME) == b"code"
    assert objects.write(NAME, b"code") == path


def test_a_user_without_a_home_gets_no_folder_of_that_name(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert all(folder.is_absolute() for folder in objects.folders())


def test_a_user_without_a_home_keeps_code_in_the_temporary_folder(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(objects, "_temporary", lambda make: tmp_path)
    monkeypatch.setattr(objects, "folders", lambda make=False: iter([tmp_path / "kernels"]))
    monkeypatch.setattr(objects, "_logged", set())
    assert objects.write(NAME, b"code").parent == tmp_path / "kernels"
    (record,) = caplog.records
    assert "there is no home folder" in record.message
