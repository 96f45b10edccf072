"""Model files at unusual paths, and what may come in between: rows of docs/robustness.md."""

import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import gpuforest as gf
from gpuforest.export import container
from gpuforest.tools.cli import main

X, Y = load_iris(return_X_y=True)


def tree(depth=None):
    return gf.DecisionTreeClassifier(max_depth=depth, random_state=0, backend="numpy").fit(X, Y)


def depth_of(path):
    return gf.load(path).get_params()["max_depth"]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        tree().save(tmp_path / "model")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "model") == 0o640


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    path = tmp_path / "model"
    tree(1).save(path)
    for mode in (0o600, 0o664, 0o444):
        path.chmod(mode)
        tree(2).save(path)
        assert mode_of(path) == mode
    assert depth_of(path) == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no files without a name here")
def test_a_killed_save_leaves_nothing(tmp_path):
    path = tmp_path / "model"
    path.write_text("before")
    writer = os.fork()
    if not writer:
        with container.replaced(path) as file, file.open("wb") as opened:
            opened.write(b"half of")
            opened.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(writer, 0)[1])
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "before"


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "models").mkdir()
    path, link = tmp_path / "models" / "today", tmp_path / "newest"
    link.symlink_to("models/today")
    for depth in (1, 2):  # at first it leads nowhere
        tree(depth).save(link)
        assert link.is_symlink()
        assert depth_of(path) == depth_of(link) == depth
    assert os.listdir(tmp_path / "models") == ["today"]


def test_a_pipe_is_written_into(tmp_path):
    path, found = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    tree().save(path)
    reader.join()
    assert path.is_fifo()
    tree().save(tmp_path / "model")
    assert found == [(tmp_path / "model").read_bytes()]


def test_standard_output_is_written_into(tmp_path):
    tree().save(tmp_path / "model")
    code = "import gpuforest, sys; gpuforest.load(sys.argv[1]).save('/dev/stdout')"
    command = [sys.executable, "-c", code, tmp_path / "model"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == (tmp_path / "model").read_bytes()


def test_a_device_is_written_into(tmp_path):
    leader, follower = os.openpty()
    path = Path(os.ttyname(follower))
    before = path.stat().st_ino
    threading.Thread(target=lambda: [os.read(leader, 2**16) for _ in range(9)], daemon=True).start()
    tree().save(path)
    assert path.is_char_device()
    assert path.stat().st_ino == before


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        tree().save(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere/model"):
        tree().save(tmp_path / "nowhere" / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full"), MemoryError()]
)
def test_a_save_that_is_broken_off_leaves_the_old_file(tmp_path, monkeypatch, error):
    def write_all(file, start, arrays):
        file.write(start)
        raise error

    tree(1).save(tmp_path / "model")
    monkeypatch.setattr(container, "_write_all", write_all)
    with pytest.raises(type(error)):
        tree(2).save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert depth_of(tmp_path / "model") == 1


@pytest.mark.parametrize("at", ["open", "replace"])
def test_an_interrupt_stays_an_interrupt(tmp_path, monkeypatch, at):
    def interrupted(source, target):
        if at == "replace":  # it comes after the file has its name
            replace(source, target)
        raise KeyboardInterrupt

    replace = os.replace
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tree().save(tmp_path / "model")
    assert os.listdir(tmp_path) == (["model"] if at == "replace" else [])


def test_a_full_disk_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        tree().save("/dev/full")
    model, limit = tree(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*/model'"):
            model.save(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "model")  # it is still what it was
    assert np.array_equal(gf.load(tmp_path / "model").predict(X), model.predict(X))


def test_a_trained_model_is_not_lost_to_a_full_disk(tmp_path, monkeypatch, capsys):
    def full(file, start, arrays):
        monkeypatch.setattr(container, "_write_all", write_all)
        raise OSError(errno.ENOSPC, "No space left on device")

    spare, write_all = tmp_path / "spare", container._write_all
    spare.mkdir()
    np.savetxt(tmp_path / "data.csv", np.c_[X, Y], delimiter=",", header="a,b,c,d,y", comments="")
    train = ["train", str(tmp_path / "data.csv"), "--target", "y", "--model", "tree"]
    for folder in (tmp_path / "spare", tmp_path / "nowhere"):
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        monkeypatch.setattr(container, "_write_all", full)
        assert main([*train, "--out", str(tmp_path / "model")]) == 2
        said = capsys.readouterr().err
        assert f"{tmp_path / 'model'}: No space left on device" in said
        saved = list(spare.rglob("model"))
        if folder == spare:
            assert f"; the trained model is in {saved[0]}" in said
            assert gf.load(saved.pop()).n_features_in_ == 4
            shutil.rmtree(spare)
        assert saved == []
    assert not (tmp_path / "model").exists()


def test_a_reader_sees_one_file_while_others_are_saved(tmp_path, monkeypatch):
    path, check_layout = tmp_path / "model", container._check_layout
    tree(1).save(path)

    def meanwhile(*arguments):
        tree(2).save(path)
        check_layout(*arguments)

    monkeypatch.setattr(container, "_check_layout", meanwhile)
    assert depth_of(path) == 1
    monkeypatch.undo()
    assert depth_of(path) == 2


def test_a_file_that_shrinks_while_it_is_read_is_cut(tmp_path, monkeypatch):
    path, check_layout = tmp_path / "model", container._check_layout
    gf.RandomForestClassifier(20, random_state=0, backend="numpy").fit(X, Y).save(path)

    def meanwhile(*arguments):
        os.truncate(path, path.stat().st_size - 100)
        check_layout(*arguments)

    monkeypatch.setattr(container, "_check_layout", meanwhile)
    with pytest.raises(gf.ModelFormatError, match="it is cut"):
        gf.load(path)


LITTLE_MEMORY = """
import resource, sys
import gpuforest.loading

def limit(n_bytes):
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, resource.getrlimit(resource.RLIMIT_AS)[1]))

limit(int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + 2**24)
try:
    gpuforest.load(sys.argv[1])
except Exception as error:
    print(isinstance(error, MemoryError))
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux' /proc")
def test_too_little_memory_is_an_error_that_is_caught(tmp_path):
    container.write(tmp_path / "model", "{}", {"splits": np.zeros(2**23, np.uint64)})
    command = [sys.executable, "-c", LITTLE_MEMORY, tmp_path / "model"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_a_subclass_is_refused_before_anything_is_written(tmp_path):
    MyForest = type("MyForest", (gf.RandomForestClassifier,), {})
    MyTree = type("MyTree", (gf.DecisionTreeClassifier,), {})
    own = MyForest(2, random_state=0, backend="numpy").fit(X, Y)
    bags = gf.BaggingClassifier(MyTree(), n_estimators=2, random_state=0).fit(X, Y)
    for model, name in ((own, "MyForest"), (bags, "MyTree")):
        with pytest.raises(ValueError, match=f"{name} is no.*pickle"):
            model.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
