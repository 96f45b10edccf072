"""The benchmark on a GPU, as far as it goes without one."""

import argparse
import json
import os
import sys

import numpy as np
import pytest
from cuda_on_cpu.module import available

from benchmarks.gpu import __main__ as script
from benchmarks.gpu import boosting, counters, device, measure, parity, small, work
from benchmarks.gpu import run as run_module
from benchmarks.gpu.report import report
from benchmarks.gpu.run import LostDevice, Run, model_of
from benchmarks.gpu.watch import NAME, watching
from benchmarks.record import ROOT, Log
from gpuforest.backends import gpu, registry

emulated = pytest.mark.skipif(available() is not None, reason=str(available()))


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Backends that a run adds are gone after it."""
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_without_a_gpu_it_ends_with_the_reason(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "why_not", lambda: "there is no CUDA device")
    assert script.main([]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "benchmarks.gpu: no GPU can be used: there is no CUDA device\n"


@emulated
@pytest.mark.deep
def test_a_whole_run(tmp_path, capsys):
    results = tmp_path / "gpu.jsonl"
    arguments = ["--emulated", "--works", "3.3M,year", "--results", str(results)]
    assert script.main(arguments) == 0
    lines = lines_of(results)
    assert all(line["benchmark"] == "gpu" and line["source"] for line in lines)
    assert all(line["device"]["name"] == "emulated on the CPU" for line in lines)
    for name in ("3.3M x 16", "year-like"):
        own = {line["what"]: line for line in lines if line.get("work") == name}
        boosted = {"boost", "graph", "kernels"} if name == "year-like" else set()
        assert own.keys() == {"same", "fit", "predict", "stages", "first", "cpu"} | boosted
        assert own["same"]["same"]
        assert own["cpu"]["same"]
        paths = {line["path"] for line in own["stages"]["lines"]}
        assert paths > {"fit/edges", "fit/encode/encode/encode.encode", "fit/grow/assembly/to host"}
        assert paths > {
            f"fit/grow/level/{x}" for x in ("histogram.histogram", "best_split.best_cut")
        }
        assert paths > {f"fit/grow/{x}" for x in (
            "roots/bags/bag/bag.bag", "split/partition/partition.move",
            "deep phase/grow_subtrees.grow_subtrees",
        )}  # fmt: skip
        whole = own["stages"]["lines"][0]
        assert whole["path"] == "fit"
        assert sum(x["own_seconds"] for x in own["stages"]["lines"]) == pytest.approx(
            whole["seconds"], rel=1e-3
        )
        level = next(x for x in own["stages"]["lines"] if x["path"] == "fit/grow/level")
        assert level["launches"] > 0
        levels = own["stages"]["levels"]
        assert levels[0]["slots"] == 2
        assert levels[0]["rows"] > levels[-1]["rows"]
        assert {"histogram.histogram", "partition.mark"} < levels[0]["kernels"].keys()
    boosted = [line for line in lines if line["what"] == "boost"]
    assert [line["same"] for line in boosted if "same" in line] == [True]
    assert [x["backend"] for x in boosted if "seconds" in x and "backend" in x] == ["emulated"] * 3
    *ways, both = [line for line in lines if line["what"] == "graph"]
    assert [line["source"] for line in ways] == ["one graph a round", "launch by launch"]
    assert both["same"]
    (kernels,) = [line["lines"] for line in lines if line["what"] == "kernels"]
    assert {f"fit/boosted_tree.{x}" for x in ("fill", "search", "divide", "finish")} < {
        line["path"] for line in kernels
    }
    assert [x["same"] for x in lines if x["what"] == "sweep" and "same" in x] == [True, True]
    said = capsys.readouterr().out
    assert "| 3.3M x 16, 200 rows |" in said
    assert "| seconds, median | fit from device | predict from device |" in said
    assert "FAILED" not in said


@emulated
@pytest.mark.deep
def test_ways_of_kernels_take_turns_and_give_one_model(tmp_path):
    results = tmp_path / "gpu.jsonl"
    arguments = ["--emulated", "--works", "covtype", "--parts", "turns", "--results", str(results)]
    assert script.main(arguments) == 0
    lines = [line for line in lines_of(results) if line["what"] == "turns"]
    assert {x["source"] for x in lines if "seconds" in x} == {*boosting.WAYS, *measure.FOREST_WAYS}
    assert [line["same"] for line in lines if "same" in line] == [True, True]


@emulated
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_small_forests_for_a_sanitizer(capsys, monkeypatch):
    # wide levels and the deep phase, and what a fit from few rows does not need
    alone = small.alone(device.open_device("emulated"))
    ran = alone | small.one_forest(device.open_device("emulated"), 300, *small.CASES[0])
    assert ran > {f"level.{name}" for name in ("compare_samples", "compare_rows", "draw_features")}
    assert ran > {"histogram.histogram", "partition.mark", "partition.move", "bag.rows_below"}
    assert ran > {"grow_subtrees.grow_subtrees", "best_split.best_cut", "slots.sum_spans"}
    assert ran < small.kernels()
    # a kernel that no case needs ends the run with its name
    monkeypatch.setattr(small, "CASES", [])
    monkeypatch.setattr(small, "BOOSTED", small.BOOSTED[:1])
    with pytest.raises(AssertionError, match=r"never launched: .*histogram\.histogram"):
        small.main("emulated", rows=200)
    small.main("emulated", "forest,booster0", 200)  # some cases need not run every kernel
    assert capsys.readouterr().out.count("booster0 (0, 6, {'loss': 'poisson'") == 2


@emulated
@pytest.mark.skipif("GPUFOREST_ALL_GPUS" not in os.environ, reason="minutes: GPUFOREST_ALL_GPUS=1")
def test_the_small_forests_run_every_kernel(capsys):
    small.main("emulated")
    assert "every kernel ran" in capsys.readouterr().out


class Nothing:
    name = "numba"

    def restart_memory(self):
        pass


@pytest.fixture
def run(tmp_path):
    options = argparse.Namespace(minutes=1, repeat=1, parts=[], sweep=[])
    return Run(Nothing(), Log("gpu", tmp_path / "gpu.jsonl"), options)


def test_a_failure_is_a_line_and_the_rest_goes_on(run, capsys):
    def fails():
        raise MemoryError("no room")

    run.attempt("fit", work.WORKS[0], fails)
    run.attempt("fit", work.WORKS[1], lambda: run.add("fit", work.WORKS[1], seconds=[3.0, 1, 2]))
    run.end = 0
    run.attempt("fit", work.WORKS[2], fails)
    failed, done, skipped = lines_of(run.log.path)
    assert failed["error"] == "MemoryError: no room"
    assert done["median"] == 2
    assert skipped["skipped"] == "the time is up"
    assert run.failed
    assert "FAILED: fit of covtype-like: MemoryError: no room" in report(run)


@pytest.mark.parametrize("said", [
    "cudaErrorIllegalAddress: an illegal memory access was encountered",
    "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure",
])  # fmt: skip
def test_a_broken_context_ends_the_process(run, said, monkeypatch):
    def fails():
        raise RuntimeError(said)

    with pytest.raises(LostDevice):
        run.attempt("fit", work.WORKS[0], fails)
    # the works that were not begun go on in another process
    commands = []
    monkeypatch.setattr(script.subprocess, "run", lambda command, **_: commands.append(command))
    run.options = script.parse(["--quick"])
    assert script.go_on(run, work.WORKS[:3]) == 1
    (command,) = commands
    assert command[command.index("--works") + 1] == "3.3M x 16,800k x 128"
    parsed = script.parse(command[command.index("benchmarks.gpu") + 1 :])
    assert [w.name for w in script.chosen(parsed)] == ["3.3M x 16", "800k x 128"]
    assert not parsed.check


def test_the_parity_tests_are_all_that_take_a_gpu():
    files = parity.files(ROOT)
    assert {f"tests/backends/test_cuda{x}.py" for x in ("", "_boosters")} < set(files)
    assert {"tests/test_oblique.py", "tests/data/test_binned.py"} < set(files)
    assert "tests/test_levels.py" not in files


NCU = """
echo "==PROF== Connected to process 1"
echo '"ID","Kernel Name","dram__sectors_read.sum","lts__t_sector_hit_rate.pct"'
echo '"","","sector","%"'
echo '"0","mark","1,200","61.5"'
echo '"1","histogram","40","n/a"'
echo '"2","mark","7","50"'
echo '{"first_fit_seconds": 1.0}'
"""


def test_counters_are_read_as_they_are_printed(run, monkeypatch, tmp_path):
    program = tmp_path / "ncu"
    program.write_text(f"#!/bin/sh{NCU}")
    program.chmod(0o755)
    monkeypatch.setattr(run_module.shutil, "which", lambda *_, **__: str(program))
    counters.count(run, work.WORKS[1])
    (line,) = lines_of(run.log.path)
    marks = line["launches"]["mark"]
    assert [x["dram_sectors"] for x in marks] == [1200, 7]
    assert line["launches"]["histogram"][0]["l2_hits"] is None
    program.write_text("#!/bin/sh\necho no permission to use counters")
    counters.count(run, work.WORKS[1])
    assert "ncu counted nothing: no permission" in run.lines[-1]["error"]
    monkeypatch.setattr(run_module.shutil, "which", lambda *_, **__: None)
    counters.count(run, work.WORKS[1])
    assert "not on the PATH" in run.lines[-1]["skipped"]


@pytest.mark.parametrize("part", script.PLAN)
def test_a_part_of_the_plan_is_a_command(part, monkeypatch):
    commands = []
    run = argparse.Namespace(returncode=0)
    monkeypatch.setattr(
        script.subprocess, "run", lambda command, **_: commands.append(command) or run
    )
    assert script.main(["--plan", part, "--commit", "abc", "--results", "r.jsonl"]) == 0
    options = script.parse(commands[0][3:])
    assert (options.commit, str(options.results), options.plan) == ("abc", "r.jsonl", None)
    assert 60 * options.minutes < script.PART_SECONDS < 480


def test_every_work_is_made_the_same_by_parts():
    for each in work.WORKS:
        X, y = work.make(each, np, 300)
        assert X.shape == (300, each.features)
        assert X.dtype == np.float32
        assert np.isfinite(X).all()
        later = work.make(each, np, 100, first=200)
        assert np.allclose(later[0], X[200:], rtol=1e-3, atol=1e-3)  # products of matrices
        assert np.allclose(later[1], y[200:], rtol=1e-3)
        assert len(np.unique(y)) > 1
        assert model_of(each, "numba").backend == "numba"


@emulated
def test_watching_leaves_no_trace(monkeypatch):
    before = sys.modules["gpuforest.growing.grow"].grown_wave
    X, y = work.make(work.WORKS[1], np, 200)
    with watching(device.open_device("emulated")) as watch:
        model_of(work.WORKS[1], NAME, n_estimators=1, max_depth=2).fit(X, y)
        assert sys.modules["gpuforest.growing.grow"].grown_wave is not before
    assert sys.modules["gpuforest.growing.grow"].grown_wave is before
    assert not watch.open


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.name)
def test_no_script_is_long(path):
    short = path.parent in (ROOT / "benchmarks", ROOT / "benchmarks/libraries")
    assert len(path.read_text().splitlines()) <= (300 if short else 400)
