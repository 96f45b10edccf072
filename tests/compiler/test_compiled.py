"""The list of compiled kernels: it has all that calls use, and each level's code gives the same.
Kernels for other machines: formats, tags of wheels, rounding, and arm64 itself where QEMU is."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import record
from paths import ROOT, has_numba
from record_cases import cases, data

import gpuforest
from gpuforest.cli import main
from gpuforest.compiler import code, objects, processors
from gpuforest.compiler.build import compile_one, lists_of, warm_up
from gpuforest.compiler.families import TITLES, all_kernels, family_of, members, variants

# the hash of two forests, grown by the kernels in a folder, and the kernels that they need
SCRIPT = """
import hashlib, sys
from pathlib import Path
import numpy as np
from gpuforest import RandomForestClassifier, RandomForestRegressor
from gpuforest.compiler import objects, processors

objects.PACKAGED, level = Path(sys.argv[1]), sys.argv[2]
objects.folders = lambda make=False: iter(())
objects.native = lambda: processors.Target("none", "", "")
objects.levels = lambda: [t for t in processors.all_levels() if t.name == level]
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 5))
digest = hashlib.sha256()
for forest, y in (
    (RandomForestClassifier(8, random_state=1, backend="numba"), X[:, 0] * X[:, 1] > 0),
    (RandomForestRegressor(8, random_state=1, backend="numba"), X[:, 0] * X[:, 1]),
):
    forest.fit(X, y)
    digest.update(forest.forest_.nodes.tobytes() + forest.forest_.values.tobytes())
    digest.update(forest.predict(X).tobytes() + forest.digest_.encode())
print(digest.hexdigest())
"""
FORGETTING = """
import numpy as np
from gpuforest import ExtraTreesClassifier, RandomForestRegressor, data_digest

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 6)).round(2)
X[:, 5] = np.abs(X[:, 5] * 3) // 1
how = {"bootstrap": "poisson", "random_state": 1, "backend": "numba"}
for forest, y in (
    (ExtraTreesClassifier(8, categorical_features=[5], **how), X[:, 0] * X[:, 1] > 0),
    (RandomForestRegressor(8, **how), (X[:, 0] * 64).round() / 64),
):
    gone = []
    forest.fit(X, y, keep_bytes=10**8)
    for row in (5, 70, 800, 2000, 3000, 5999):
        try:
            forest.delete([row])
            gone.append(row)
        except ValueError as error:
            assert "bin edges" in str(error)
    assert gone
    rest = np.setdiff1d(np.arange(6000), gone)
    digest = data_digest(X[rest], y[rest], row_ids=rest)
    again = type(forest)(**forest.get_params()).fit(X[rest], y[rest], row_ids=rest)
    assert again.digest_ == forest.digest_
    print(forest.digest_, digest, forest.influence(X[:5], row_ids=[9], X=X[rest], y=y[rest]).sum())
"""
NEEDED = (
    "kernels.edges.numba.edges",
    "kernels.encode.numba.encode-code_uint8-value_float64",
    "kernels.bag.numba.bag", "kernels.bag.numba.in_bag", "kernels.totals.numba",
    "kernels.partition.numba", "kernels.best_split.numba.level-code_uint8-",
    "kernels.grow_subtrees.numba.grow_subtrees-code_uint8-sets_False",
    "kernels.place_nodes.numba", "kernels.traverse.numba.accumulate-code_uint8",
)  # fmt: skip

MOST = 87  # compiled variants: each costs its first user a second or more

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6))
CATEGORIES = np.column_stack([rng.integers(0, 5, (400, 2)), X])
MANY = np.column_stack([rng.integers(0, 300, 400), X])
HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)
CLASSES, THREE, NUMBER = (X[:, 0] > 0).astype(int), rng.integers(0, 3, 400), X[:, 1] + X[:, 2]

RFC, RFR, HGR = "RandomForestClassifier", "RandomForestRegressor", "HistGradientBoostingRegressor"
ONE, SUMS = {"categorical_features": [0]}, {"feature_combinations": 2}
MEDIANS = {"criterion": "absolute_error"}
NUMPYS = {
    "max_depth": np.int32(3),
    "min_samples_leaf": np.uint8(2),
    "max_features": np.float64(0.5),
}

# what the record has not: estimator, X, y, and its parameters
CALLS = {
    "float32": (RFC, X.astype(np.float32), CLASSES, {}),
    "columns first": (RFC, np.asfortranarray(X), CLASSES, {}),
    "integers": (RFC, (10 * X).astype(np.int16), CLASSES, {}),
    "one feature": (RFC, X[:, :1], CLASSES, {}),
    "two rows": (RFC, X[:2], np.array([0, 1]), {}),
    "NumPy's numbers": (RFC, X, CLASSES, NUMPYS),
    "300 categories": (RFC, MANY, THREE, ONE),
    "absolute error, 1000 bins": (RFR, X, NUMBER, MEDIANS | {"max_bins": 1000}),
    "regression, multiway": (RFR, MANY, NUMBER, ONE | {"categorical_split": "multiway"}),
    "combinations, categories": (RFC, CATEGORIES, THREE, SUMS | {"categorical_features": [0, 1]}),
    "combinations, at random": ("ExtraTreesRegressor", HOLES, NUMBER, SUMS),
    "combinations, absolute error": (RFR, X, NUMBER, SUMS | MEDIANS),
    "extra trees, categories": ("ExtraTreesClassifier", MANY, CLASSES, ONE),
    "boosting, 255 categories": (
        *(HGR, np.column_stack([np.arange(400) % 255, X]), NUMBER),
        ONE | {"loss": "absolute_error"},
    ),
}


def fitted(name, X, y, parameters):
    few = {"max_iter": 3} if name == HGR else {"n_estimators": 3}
    kind = getattr(gpuforest, name)
    return kind(random_state=0, backend="numba", **few, **parameters).fit(X, y)


FITS = {name: (partial(fitted, *call), call[1]) for name, call in CALLS.items()}
FITS |= {
    case.title: (partial(record.fitted, case, "numba"), data(case)[0])
    for case in cases()
    if "numba" in case.backends
}


@pytest.fixture(scope="module")
def on_disk():
    """All kernels; most other tests need few of them, and the others are not compiled for those."""
    assert warm_up([*TITLES], os.cpu_count() or 1) == 0


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_no_call_compiles_anything(name, on_disk, monkeypatch):
    """A call that needs types which no kernel declares raises a TypeError."""
    asked, (fit, rows) = [], FITS[name]
    monkeypatch.setattr(code, "built", asked.append)
    for kernel in all_kernels():
        monkeypatch.setattr(kernel, "loaded", {})  # as in a new process
    model = fit()
    for method in ("predict", "transform", "apply"):
        if hasattr(model, method):
            getattr(model, method)(rows)
    assert asked == []
    n_loaded = sum(len(kernel.loaded) for kernel in all_kernels())
    assert n_loaded >= 4  # edges, encode, growing, walking


@pytest.mark.deep
def test_a_warm_up_of_what_is_on_disk_needs_no_compiler(on_disk, monkeypatch, capsys):
    monkeypatch.setattr(code, "has_compiler", lambda: False)
    assert code.warm_up(None, 1) == (0, len(variants()))
    assert objects.is_complete("oblique")
    assert main(["warmup", "--family", "oblique"]) == 0
    n = len(members(["oblique", "shared"]))
    assert capsys.readouterr().err.endswith(f"compiled 0 kernels in 0 s; {n} are on disk\n")


def test_families():
    """By hand: a classifier's first fit compiles these, in this order on two processors."""
    both = members(["forests", "shared"], "uint8", "int32")
    assert both[0] == "kernels.grow_subtrees.numba.grow_subtrees-code_uint8-sets_False-target_int32"
    assert both[-1].endswith("-target_int64")
    assert [name for name in both if "uint16" in name or "sets_True" in name] == []
    sums = "kernels.traverse.oblique.accumulate_sums-code_uint16"  # whose bins are widened first
    assert sums in members(["oblique"], "uint8")
    assert {family_of(name) for name in variants()} == {*TITLES}
    assert sorted(members([*TITLES])) == sorted(variants())
    first, *_ = lists_of(both, 2)
    assert {name[:22] for name in first} == {"kernels.grow_subtrees."}  # they share helpers
    assert len(lists_of(both, 8)) == len(both)
    assert len(variants()) <= MOST


@pytest.mark.deep  # it compiles for each level
@pytest.mark.skipif(not processors.all_levels()[1:], reason="x86-64 has several levels")
def test_every_level_gives_the_same_bits(tmp_path):
    native, *others = targets = processors.levels()
    names = [name for name in variants() if name.startswith(NEEDED)]
    found = [  # most often they are on disk
        (name, native, objects.read(name) or compile_one(name, [native])[0]) for name in names
    ]
    for name in names:
        found += [(name, *each) for each in zip(others, compile_one(name, others), strict=True)]
    for name, target, machine_code in found:
        path = tmp_path / objects.file_of(name, target, machine_code)
        path.write_bytes(objects.packed(name, machine_code))
    digests = [
        subprocess.check_output([sys.executable, "-c", SCRIPT, tmp_path, target.name], text=True)
        for target in targets
    ]
    assert len({*digests}) == 1
    assert len(digests[0]) == 65


@pytest.mark.deep
def test_code_calls_nothing_of_numba_or_python(on_disk):
    for name in variants():
        content = objects.read(name)
        assert content is not None, name
        foreign = re.findall(rb"\0((?:NRT_|_?Py|numba_)\w{3,})\0", content)
        assert not foreign, name


def test_numpy_finds_the_level_of_the_processor_as_linux_does():
    features = processors.host_features()
    for level in processors.LEVELS.values():
        assert (level <= features) == (level <= processors.numpy_features())


NAME = "kernels.bag.numba.in_bag"
ARM64, SUMS = "aarch64-unknown-linux-gnu", "kernels.gradients.numba.residual_bits"
HEADS = {  # of object code: format, and family of processors
    ARM64: b"\x7fELF\2\1\1" + bytes(9) + b"\1\0\xb7\0",
    "arm64-apple-macosx11.0": b"\xcf\xfa\xed\xfe\x0c\0\0\1",
    "x86_64-apple-macosx11.0": b"\xcf\xfa\xed\xfe\7\0\0\1",
    "x86_64-w64-windows-gnu": b"\x64\x86",
}
CUSTOMS = ("manylinux2014", "manylinux_2_17", "musllinux_1_2")  # of Linux's C libraries
needs_numba = pytest.mark.skipif(not has_numba, reason="no numba here, which compiles the kernels")


def test_the_file_of_machine_code_is_named_by_its_format():
    elf, macho = b"\x7fELF" + bytes(12), b"\xcf\xfa\xed\xfe" + bytes(8)
    for content, suffix in (
        (elf + b"\3", ".so"), (elf + b"\1", ".o"), (macho + b"\6", ".dylib"), (macho + b"\1", ".o"),
        (b"MZ\x90", ".dll"), (b"\x64\x86", ".o"), (b"", ".o"),
    ):  # fmt: skip
        assert objects.suffix_of(content) == suffix


@pytest.mark.parametrize("suffix", [".so", ".dll", ".dylib", ".o"])
def test_nothing_follows_the_signature_of_a_library_of_macos(tmp_path, suffix):
    path = tmp_path / f"kernel{suffix}"
    objects.save(path, NAME, b"code")
    assert (path.read_bytes() == b"code") == (suffix == ".dylib")
    assert objects.unpacked(NAME, objects.content_of(path)) == b"code"
    path.write_bytes(b"o" + path.read_bytes()[1:])
    with pytest.raises(ValueError, match="digest"):
        objects.unpacked(NAME, objects.content_of(path))


def test_a_wheels_tag_follows_from_the_machine(monkeypatch):
    pytest.importorskip("hatchling", reason="no hatchling here, which builds wheels")
    tags = pytest.importorskip("packaging.tags")
    monkeypatch.syspath_prepend(ROOT)
    build = importlib.import_module("hatch_build")
    for machine, system, names in (
        ("x86_64", "linux", {f"{c}_x86_64" for c in CUSTOMS}),
        ("arm64", "darwin", {"macosx_11_0_arm64"}),
        ("AMD64", "win32", {"win_amd64"}),
    ):  # fmt: skip
        monkeypatch.setattr(build.platform, "machine", lambda machine=machine: machine)
        monkeypatch.setattr(build.sys, "platform", system)
        tag = f"py3-none-{build.OTHERS[build.this_machine()]}"
        assert {each.platform for each in tags.parse_tag(tag)} == names
    assert {*HEADS} < {*build.OTHERS}


@needs_numba
@pytest.mark.deep
@pytest.mark.parametrize("triple", HEADS)
def test_kernels_are_compiled_for_other_machines(triple):
    command = [sys.executable, "-m", "gpuforest.compiler.build", "native", NAME, "--object"]
    found = subprocess.check_output(command, env=os.environ | {processors.TRIPLE: triple})
    assert found.startswith(HEADS[triple])
    code = objects.unpacked(NAME, found)
    assert code is not None
    assert b"gpuforest_kernels_bag_numba_in_bag" in code


@needs_numba
def test_arm64_rounds_each_product(monkeypatch):
    """Its processors have instructions that multiply and add and round once."""
    from gpuforest.compiler import compile

    monkeypatch.setenv(processors.TRIPLE, ARM64)
    module = compile.module_of(*variants()[SUMS])
    machine = processors.target_machine(processors.all_levels()[0], library=True)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    compile.optimise(module, machine, plain=False)
    text = machine.emit_assembly(module)
    assert len(re.findall(r"\tfmul\t", text)) > 10
    assert not re.findall(r"\tfn?m(?:add|sub|la|ls)\t", text)


@needs_numba
@pytest.mark.skipif(not shutil.which("readelf"), reason="no readelf here")
def test_kernels_call_memcpy_and_memset_alone():
    paths = {path: name for name in variants() for path, _ in [*objects.usable(name)][:1]}
    libraries = [str(path) for path in paths if path.suffix == ".so"]
    if not libraries:
        pytest.skip("no shared libraries here")
    said = subprocess.run(
        ["readelf", "-dW", "--dyn-syms", *libraries], capture_output=True, text=True, check=True
    ).stdout
    assert {*re.findall(r" UND (\w\S*)", said)} <= {"memcpy", "memset"}
    assert "(NEEDED)" not in said


def arm64_python() -> Path:
    """The Python for arm64 that `.ci/arm64 FOLDER` makes; it skips the test if there is none."""
    python = Path(os.environ.get("GPUFOREST_ARM64", "nowhere"), "python").absolute()
    if not (python.exists() and shutil.which("aarch64-linux-gnu-gcc")):
        pytest.skip("no arm64 Python under QEMU here: `.ci/arm64 FOLDER`, GPUFOREST_ARM64=FOLDER")
    return python


@needs_numba
@pytest.mark.deep
def test_arm64_forgets_the_same_rows():
    """The wheel of the environment has all kernels. Rows leave, and forests and data have the same
    digests as here."""
    run = [[python, "-P", "-c", FORGETTING] for python in (sys.executable, arm64_python())]
    here = subprocess.check_output(run[0], env=os.environ | {"PYTHONPATH": str(ROOT)})
    without = {n: value for n, value in os.environ.items() if n != "PYTHONPATH"}
    assert subprocess.check_output(run[1], env=without) == here
    assert len(here.split()) == 6


@needs_numba
@pytest.mark.deep
def test_arm64_grows_the_same_forests(tmp_path):
    """`.ci/arm64 FOLDER` makes the environment, and compares all forests of the record."""
    python, digests = arm64_python(), []
    for triple, command, run in (
        (None, None, sys.executable),
        (ARM64, "aarch64-linux-gnu-gcc", python),
    ):
        with pytest.MonkeyPatch.context() as there:
            if triple:
                there.setenv(processors.TRIPLE, triple)
                there.setenv("CC", command)
            target = processors.all_levels()[-1]
            folder = tmp_path / target.name
            folder.mkdir()
            for name in variants():
                if name.startswith(NEEDED):
                    (code,) = compile_one(name, [target])
                    objects.save(folder / objects.file_of(name, target, code), name, code)
            # as if all were there, which is asked where Numba is not
            all_ = folder / objects.file_of(objects.ALL, target, b"")
            objects.save(all_, objects.ALL, b"")
        command = [run, "-P", "-c", SCRIPT, folder, target.name]
        digests.append(subprocess.check_output(command, env=os.environ | {"PYTHONPATH": str(ROOT)}))
    assert digests[0] == digests[1]
    assert len(digests[0]) == 65
