"""The list of compiled kernels: it has all that calls use, and each level's code gives the same."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
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
CLASSES, THREE = (X[:, 0] > 0).astype(int), rng.integers(0, 3, 400)
NUMBER, TWO = X[:, 1] + 0.1 * X[:, 2], X[:, :2]
FOREST = {"n_estimators": 3, "random_state": 0, "backend": "numba"}

RFC, RFR, ETC, ETR, HGC, HGR = (
    *("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier"),
    *("ExtraTreesRegressor", "HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
)
ONE, BOTH = {"categorical_features": [0]}, {"categorical_features": [0, 1]}
BINS = {"max_bins": 1000}
SUMS, WAYS = {"feature_combinations": 2}, {"categorical_split": "multiway"}
MEDIANS = {"criterion": "absolute_error"}
NUMPYS = {
    "max_depth": np.int32(3),
    "min_samples_leaf": np.uint8(2),
    "max_features": np.float64(0.5),
}

# estimator, X, y, and its parameters
CALLS = {
    "two classes": (RFC, X, CLASSES, {}),
    "three classes": (RFC, X, THREE, {}),
    "entropy": (RFC, X, CLASSES, {"criterion": "entropy"}),
    "log loss, three": (RFC, X, THREE, {"criterion": "log_loss"}),
    "float32": (RFC, X.astype(np.float32), CLASSES, {}),
    "columns first": (RFC, np.asfortranarray(X), CLASSES, {}),
    "integers": (RFC, (10 * X).astype(np.int16), CLASSES, {}),
    "one feature": (RFC, X[:, :1], CLASSES, {}),
    "two rows": (RFC, X[:2], np.array([0, 1]), {}),
    "missing": (RFC, HOLES, CLASSES, {}),
    "1000 bins": (RFC, X, CLASSES, BINS),
    "hard voting": (RFC, X, CLASSES, {"voting": "hard"}),
    "NumPy's numbers": (RFC, X, CLASSES, NUMPYS),
    "out of bag": (RFC, X, CLASSES, {"oob_score": True, "n_estimators": 40}),
    "balanced": (RFC, X, THREE, {"class_weight": "balanced"}),
    "threads": (RFC, X, CLASSES, {"n_jobs": 3}),
    "whole sample": (RFC, X, CLASSES, {"bootstrap": False}),
    "monotonic": (RFC, X, CLASSES, {"monotonic_cst": [1, 0, 0, 0, 0, -1]}),
    "least weight": (RFC, X, CLASSES, {"min_weight_fraction_leaf": 0.05}),
    "pruned": (RFC, X, CLASSES, {"ccp_alpha": 0.01}),
    "two outputs": (RFC, X, np.column_stack([CLASSES, THREE]), {}),
    "categories": (RFC, CATEGORIES, CLASSES, BOTH),
    "300 categories": (RFC, MANY, THREE, ONE),
    "multiway": (RFC, CATEGORIES, CLASSES, BOTH | WAYS),
    "regression": (RFR, X, NUMBER, {}),
    "regression, 1000 bins": (RFR, X, NUMBER, BINS),
    "several numbers": (RFR, X, TWO, {}),
    "counts": (RFR, X, np.abs(NUMBER), {"criterion": "poisson"}),
    "absolute error": (RFR, X, NUMBER, MEDIANS),
    "absolute error, 1000 bins": (RFR, X, NUMBER, MEDIANS | BINS),
    "regression, monotonic": (RFR, X, NUMBER, {"monotonic_cst": [0, 1] * 3}),
    "regression, categories": (RFR, CATEGORIES, NUMBER, BOTH),
    "regression, multiway": (RFR, MANY, NUMBER, ONE | WAYS),
    "combinations": (RFC, X, CLASSES, SUMS),
    "combinations, 1000 bins": (RFR, X, NUMBER, SUMS | BINS),
    "combinations, categories": (RFC, CATEGORIES, THREE, SUMS | BOTH),
    "combinations, at random": (ETR, HOLES, NUMBER, SUMS),
    "combinations, absolute error": (RFR, X, NUMBER, SUMS | MEDIANS),
    "extra trees": (ETC, X, CLASSES, {}),
    "extra trees, regression": (ETR, X, NUMBER, {}),
    "extra trees, 1000 bins": (ETC, X, THREE, BINS),
    "extra trees, categories": (ETC, MANY, CLASSES, ONE),
    "embedding": ("RandomTreesEmbedding", X, None, {}),
    "one tree": ("DecisionTreeClassifier", X, THREE, {}),
    "one tree, regression": ("DecisionTreeRegressor", X, NUMBER, {}),
    "bagging": ("BaggingClassifier", X, CLASSES, {}),
    "bagging, regression": ("BaggingRegressor", X, NUMBER, {}),
    "boosting": (HGC, HOLES, CLASSES, {}),
    "boosting, three classes": (HGC, X, THREE, {"n_jobs": 2}),
    "boosting, categories": (HGR, CATEGORIES, NUMBER, BOTH | {"subsample": 0.5}),
    "boosting, 255 categories": (
        *(HGR, np.column_stack([np.arange(400) % 255, X]), NUMBER),
        ONE | {"loss": "absolute_error"},
    ),
    "boosting, counts": (HGR, X, np.abs(NUMBER), {"loss": "poisson", "early_stopping": True}),
}


@pytest.fixture(scope="module")
def on_disk():
    """All kernels; most other tests need few of them, and the others are not compiled for those."""
    assert warm_up([*TITLES], os.cpu_count() or 1) == 0


@pytest.mark.deep
@pytest.mark.parametrize("kind", CALLS)
def test_no_call_compiles_anything(kind, on_disk, monkeypatch):
    """A call that needs types which no kernel declares raises a TypeError."""
    asked = []
    monkeypatch.setattr(code, "built", asked.append)
    name, data, y, parameters = CALLS[kind]
    own = FOREST
    if name.startswith("DecisionTree"):
        own = {"random_state": 0, "backend": "numba"}
    if name.startswith("Bagging"):
        tree = getattr(gpuforest, name.replace("Bagging", "DecisionTree"))
        own = {"n_estimators": 3, "random_state": 0, "estimator": tree(backend="numba")}
    if name.startswith("Hist"):
        own = {"max_iter": 3, "random_state": 0, "backend": "numba"}
    for kernel in all_kernels():
        monkeypatch.setattr(kernel, "loaded", {})  # as in a new process
    model = getattr(gpuforest, name)(**own | parameters).fit(data, y)
    model.transform(data) if y is None else model.predict(data)
    if hasattr(model, "apply"):
        model.apply(data)
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
    assert len(CALLS) >= 40


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
