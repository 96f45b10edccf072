"""A process's first fit where kernels are not on disk: who compiles, and what is said meanwhile."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from engine import same_forest

import gpuforest as gf
from gpuforest.compiler import code
from gpuforest.compiler.families import all_kernels

WORD = "compiling the kernels of forests"
CALL = "import few_kernels; few_kernels.call()"
RESULT = "[1, 3] [2, 1]\n"
SMALL = """
import sys
from types import SimpleNamespace
import numpy as np
from gpuforest import RandomForestClassifier
from gpuforest.compiler import code

def begin(*arguments):  # half a minute of work
    print("begun", "forests" in arguments)
    return SimpleNamespace(poll=lambda: None)

code.build_process = begin
X = np.random.default_rng(0).integers(0, 9, (300, 5)).astype(float)
forest = RandomForestClassifier(5, random_state=0).fit(X, X[:, 0] > 4)
print(forest.backend_, len(forest.predict(X)))
assert "numba" not in sys.modules
"""


@pytest.fixture
def start(tmp_path):
    """Starts a process whose kernels are kept in tmp_path."""
    children = []

    def started(script=CALL, stderr=subprocess.PIPE, **environment):
        path = os.pathsep.join(filter(None, sys.path))
        environment = {
            "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "COMPILED": str(tmp_path / "compiled"),
            "PYTHONPATH": path, **environment,
        }  # fmt: skip
        child = subprocess.Popen(
            [sys.executable, "-c", script],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        children.append(child)
        return child

    yield started
    for child in children:
        child.kill()
        child.communicate()


def finish(child):
    out, errors = child.communicate(timeout=240)
    assert child.returncode == 0, errors
    return out, errors


def compiled(tmp_path):
    """The kernels that were compiled, and the processes that compiled them."""
    path = tmp_path / "compiled"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.split() for line in lines]


def until(condition):
    begin = time.monotonic()
    while not condition():
        assert time.monotonic() - begin < 120
        time.sleep(0.01)


def test_eight_processes_at_once_compile_each_kernel_once(start, tmp_path):
    children = [start() for _ in range(8)]
    for child in children:
        out, errors = finish(child)
        assert out == RESULT
        assert WORD in errors or not errors
    until(lambda: [*tmp_path.glob("cache/gpuforest/all-forests.*")])
    names = [name for name, _ in compiled(tmp_path)]
    assert len(names) == len({*names}) == 7  # the whole family, and no other
    kinds = {".so", ".o", ".dylib", ".digest", ".lock"}  # nobody leaves a part of a file
    until(lambda: {path.suffix for path in (tmp_path / "cache/gpuforest").iterdir()} <= kinds)
    assert finish(start()) == (RESULT, "")  # it finds them on disk


@pytest.mark.deep
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_another_process_compiles_what_a_killed_one_has_not(start, tmp_path):
    script = CALL.replace(";", "; from gpuforest.compiler import code;").replace(
        "few_kernels.call()", "print(code.begin('forests', 'uint8', None)[0].pid, flush=True);"
        "few_kernels.call()",
    )  # fmt: skip
    first = start(script)
    killed = int(first.stdout.readline())
    until(lambda: compiled(tmp_path))
    second = start()
    os.kill(killed, signal.SIGKILL)
    _, errors = first.communicate(timeout=240)
    assert first.returncode != 0
    assert "BackendError: backend 'numba' cannot compile its kernels here" in errors
    assert finish(second)[0] == RESULT
    assert finish(start()) == (RESULT, "")
    orphans = {int(process) for _, process in compiled(tmp_path)}
    until(lambda: not any(Path(f"/proc/{process}/stat").exists() for process in orphans))


@pytest.mark.deep
def test_a_folder_that_cannot_be_written_to(start, tmp_path):
    (tmp_path / "file").write_text("")
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "file/cache"), "TMPDIR": str(tmp_path)}
    assert finish(start(**where))[0] == RESULT
    until(lambda: [*tmp_path.glob("gpuforest-*/kernels/all-forests.*")])
    assert finish(start(**where)) == (RESULT, "")
    assert len(compiled(tmp_path)) == 7


@pytest.mark.deep
@pytest.mark.skipif(os.name != "posix", reason="limits of processes")
def test_a_full_disk(start, tmp_path):
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (500, 500));"
    out, errors = finish(start(limit + CALL))
    assert out == RESULT
    assert "gpuforest cannot keep its compiled kernels on disk" in errors


@pytest.mark.deep
def test_a_bar_on_a_terminal_counts_the_kernels(start, tmp_path):
    terminal, other_end = pytest.importorskip("pty").openpty()
    child = start(CALL, stderr=other_end)
    os.close(other_end)
    assert child.communicate(timeout=240)[0] == RESULT
    shown = ""
    with suppress(OSError):  # its end
        while read := os.read(terminal, 2**16):
            shown += read.decode(errors="replace")
    os.close(terminal)
    assert f"{WORD}, once on this machine: " in shown
    assert " of 7" in shown


@pytest.mark.deep
def test_an_environment_without_numbas_compiler(start):
    assert finish(start(NUMBA_DISABLE_JIT="1"))[0] == RESULT


@pytest.mark.deep
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_the_wait(start):
    child = start()
    assert WORD in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = child.communicate(timeout=60)
    assert time.monotonic() - begin < 6  # one or two, where nothing else runs
    assert errors.endswith("KeyboardInterrupt\n")


def test_small_work_does_not_wait(start):
    out, errors = finish(start(SMALL, GPUFOREST_BACKEND=""))
    assert out == "begun True\nnumpy 300\n"
    assert WORD in errors
    assert len(errors.splitlines()) == 1


RNG = np.random.default_rng(0)
X = RNG.integers(0, 9, (120, 4)).astype(float)
CLASSES, ROWS = (X[:, 0] + X[:, 1] > 8).astype(int), np.arange(120)
EVENTS = np.rec.fromarrays([CLASSES > 0, 1 + X[:, 2]], names="event,time")
OUT_OF_BAG = {"n_estimators": 30, "oob_score": True}
STATISTICS = {"categorical_features": [0], "categorical_split": "ordered_target"}
STARTS_AGAIN = {  # y, parameters, what else `fit` takes
    "RandomForestClassifier": (CLASSES, OUT_OF_BAG | STATISTICS, {"groups": ROWS // 3}),
    "RandomForestRegressor": (X[:, 0], OUT_OF_BAG, {"blocks": ROWS // 30}),
    "ExtraTreesClassifier": (CLASSES, OUT_OF_BAG | {"bootstrap": True, "max_features": "oob"}, {}),
    "RandomSurvivalForest": (EVENTS, OUT_OF_BAG, {}),
    "IsolationForest": (None, {"n_estimators": 9, "contamination": 0.1}, {}),
    "BaggingClassifier": (CLASSES, {"n_estimators": 9}, {}),
    "AdaBoostClassifier": (CLASSES, {"n_estimators": 4}, {}),
    "HistGradientBoostingRegressor": (X[:, 0], {"early_stopping": True}, {}),
}


@pytest.mark.parametrize("name", STARTS_AGAIN)
def test_work_that_starts_again_leaves_what_numpy_leaves(name, monkeypatch):
    """A kernel is found missing when others have run: no draw and no attribute is left of that."""
    y, parameters, passed = STARTS_AGAIN[name]
    really, asked, left = code.function_of, [], []

    def function_of(kernel):
        if ".grow_" in kernel and not code._waits.get():
            asked.append(kernel)
            raise code.Later(kernel)
        return really(kernel)

    monkeypatch.setattr(code, "function_of", function_of)
    for kernel in all_kernels():
        monkeypatch.setattr(kernel, "loaded", {})
    for backend in ("", "numpy"):
        monkeypatch.setenv("GPUFOREST_BACKEND", backend)
        model = getattr(gf, name)(random_state=np.random.RandomState(0), **parameters)
        left.append(model.fit(X, y, **passed))
        if "warm_start" in model.get_params() and "max_features" not in parameters:
            n_trees = "max_iter" if "Hist" in name else "n_estimators"
            more = model.get_params()[n_trees] + 2
            model.set_params(warm_start=True, **{n_trees: more}).fit(X, y, **passed)
    late, plain = left
    assert asked
    assert vars(late).keys() == vars(plain).keys()
    assert getattr(late, "oob_score_", None) == getattr(plain, "oob_score_", None)
    assert np.array_equal(late.predict(X), plain.predict(X))
    assert not hasattr(late, "forest_") or same_forest(late.forest_, plain.forest_)


@pytest.mark.deep
def test_a_release_of_numba_that_was_not_tested_compiles_the_plain_way(start):
    script = """
import numba
numba.version_info = (0, 99, 0, 0, 99)
import os
from pathlib import Path
from gpuforest.compiler import build, code, compile, objects, processors
assert compile.HELPERS is compile.Compiler
name, objects.PACKAGED = "kernels.bag.numba.in_bag", Path(os.environ["COMPILED"]).parent
(found,) = build.compile_one(name, [processors.native()])
path = objects.PACKAGED / objects.file_of(name, processors.native(), found)
path.write_bytes(objects.packed(name, found))
code.built = None
import few_kernels
few_kernels.call()
"""
    assert finish(start(script))[0] == RESULT
