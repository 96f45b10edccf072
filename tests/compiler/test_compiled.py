"""The list of compiled kernels: it has all that calls use, and each level's code gives the same."""

import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import record
from record_cases import cases, data
from two_forests import NEEDED, SCRIPT

import gpuforest
from gpuforest.cli import main
from gpuforest.compiler import code, objects, processors
from gpuforest.compiler.build import compile_one, lists_of, warm_up
from gpuforest.compiler.families import TITLES, all_kernels, family_of, members, variants

MOST = 60  # compiled variants: each costs its first user a second or more

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


def test_the_list_is_short():
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
