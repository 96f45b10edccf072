"""The list of compiled kernels: it has all that calls use, and each level's code gives the same."""

import os
import re
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest

import gpuforest
from gpuforest.compiler import code, objects, processors
from gpuforest.compiler.build import all_kernels, compile_one, compile_some, variants, warm_up

MOST = 85  # compiled variants: each costs whoever installs the package a second or more

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6))
CATEGORIES = np.column_stack([rng.integers(0, 5, (400, 2)), X])
MANY = np.column_stack([rng.integers(0, 300, 400), X])
HOLES = np.where(rng.random(X.shape) < 0.1, np.nan, X)
CLASSES, THREE = (X[:, 0] > 0).astype(int), rng.integers(0, 3, 400)
NUMBER, TWO = X[:, 1] + 0.1 * X[:, 2], X[:, :2]
FOREST = {"n_estimators": 3, "random_state": 0, "backend": "numba"}

# estimator, its parameters, X, y
CALLS = {
    "two classes": ("RandomForestClassifier", {}, X, CLASSES),
    "three classes": ("RandomForestClassifier", {}, X, THREE),
    "entropy": ("RandomForestClassifier", {"criterion": "entropy"}, X, CLASSES),
    "log loss, three": ("RandomForestClassifier", {"criterion": "log_loss"}, X, THREE),
    "float32": ("RandomForestClassifier", {}, X.astype(np.float32), CLASSES),
    "columns first": ("RandomForestClassifier", {}, np.asfortranarray(X), CLASSES),
    "integers": ("RandomForestClassifier", {}, (10 * X).astype(np.int16), CLASSES),
    "one feature": ("RandomForestClassifier", {}, X[:, :1], CLASSES),
    "two rows": ("RandomForestClassifier", {}, X[:2], np.array([0, 1])),
    "missing": ("RandomForestClassifier", {}, HOLES, CLASSES),
    "1000 bins": ("RandomForestClassifier", {"max_bins": 1000}, X, CLASSES),
    "hard voting": ("RandomForestClassifier", {"voting": "hard"}, X, CLASSES),
    "NumPy's numbers": (
        "RandomForestClassifier",
        {
            "max_depth": np.int32(3),
            "min_samples_leaf": np.uint8(2),
            "max_features": np.float64(0.5),
        },
        X,
        CLASSES,
    ),
    "out of bag": ("RandomForestClassifier", {"oob_score": True, "n_estimators": 40}, X, CLASSES),
    "balanced": ("RandomForestClassifier", {"class_weight": "balanced"}, X, THREE),
    "threads": ("RandomForestClassifier", {"n_jobs": 3}, X, CLASSES),
    "whole sample": ("RandomForestClassifier", {"bootstrap": False}, X, CLASSES),
    "monotonic": ("RandomForestClassifier", {"monotonic_cst": [1, 0, 0, 0, 0, -1]}, X, CLASSES),
    "least weight": ("RandomForestClassifier", {"min_weight_fraction_leaf": 0.05}, X, CLASSES),
    "pruned": ("RandomForestClassifier", {"ccp_alpha": 0.01}, X, CLASSES),
    "two outputs": ("RandomForestClassifier", {}, X, np.column_stack([CLASSES, THREE])),
    "categories": ("RandomForestClassifier", {"categorical_features": [0, 1]}, CATEGORIES, CLASSES),
    "300 categories": ("RandomForestClassifier", {"categorical_features": [0]}, MANY, THREE),
    "multiway": (
        "RandomForestClassifier",
        {"categorical_features": [0, 1], "categorical_split": "multiway"},
        CATEGORIES,
        CLASSES,
    ),
    "regression": ("RandomForestRegressor", {}, X, NUMBER),
    "regression, 1000 bins": ("RandomForestRegressor", {"max_bins": 1000}, X, NUMBER),
    "several numbers": ("RandomForestRegressor", {}, X, TWO),
    "counts": ("RandomForestRegressor", {"criterion": "poisson"}, X, np.abs(NUMBER)),
    "absolute error": ("RandomForestRegressor", {"criterion": "absolute_error"}, X, NUMBER),
    "absolute error, 1000 bins": (
        "RandomForestRegressor",
        {"criterion": "absolute_error", "max_bins": 1000},
        X,
        NUMBER,
    ),
    "regression, monotonic": ("RandomForestRegressor", {"monotonic_cst": [0, 1] * 3}, X, NUMBER),
    "regression, categories": (
        "RandomForestRegressor",
        {"categorical_features": [0, 1]},
        CATEGORIES,
        NUMBER,
    ),
    "regression, multiway": (
        "RandomForestRegressor",
        {"categorical_features": [0], "categorical_split": "multiway"},
        MANY,
        NUMBER,
    ),
    "combinations": ("RandomForestClassifier", {"feature_combinations": 2}, X, CLASSES),
    "combinations, 1000 bins": (
        "RandomForestRegressor",
        {"feature_combinations": 2, "max_bins": 1000},
        X,
        NUMBER,
    ),
    "combinations, categories": (
        "RandomForestClassifier",
        {"feature_combinations": 2, "categorical_features": [0, 1]},
        CATEGORIES,
        THREE,
    ),
    "combinations, at random": (
        "ExtraTreesRegressor",
        {"feature_combinations": 2},
        HOLES,
        NUMBER,
    ),
    "combinations, absolute error": (
        "RandomForestRegressor",
        {"feature_combinations": 2, "criterion": "absolute_error"},
        X,
        NUMBER,
    ),
    "extra trees": ("ExtraTreesClassifier", {}, X, CLASSES),
    "extra trees, regression": ("ExtraTreesRegressor", {}, X, NUMBER),
    "extra trees, 1000 bins": ("ExtraTreesClassifier", {"max_bins": 1000}, X, THREE),
    "extra trees, categories": (
        "ExtraTreesClassifier",
        {"categorical_features": [0]},
        MANY,
        CLASSES,
    ),
    "embedding": ("RandomTreesEmbedding", {}, X, None),
    "one tree": ("DecisionTreeClassifier", {}, X, THREE),
    "one tree, regression": ("DecisionTreeRegressor", {}, X, NUMBER),
    "bagging": ("BaggingClassifier", {}, X, CLASSES),
    "bagging, regression": ("BaggingRegressor", {}, X, NUMBER),
    "boosting": ("HistGradientBoostingClassifier", {}, HOLES, CLASSES),
    "boosting, three classes": ("HistGradientBoostingClassifier", {"n_jobs": 2}, X, THREE),
    "boosting, categories": (
        "HistGradientBoostingRegressor",
        {"categorical_features": [0, 1], "subsample": 0.5},
        CATEGORIES,
        NUMBER,
    ),
    "boosting, 255 categories": (
        "HistGradientBoostingRegressor",
        {"categorical_features": [0], "loss": "absolute_error"},
        np.column_stack([np.arange(400) % 255, X]),
        NUMBER,
    ),
    "boosting, counts": (
        "HistGradientBoostingRegressor",
        {"loss": "poisson", "early_stopping": True},
        X,
        np.abs(NUMBER),
    ),
}


@pytest.fixture(autouse=True, scope="module")
def on_disk():
    warm_up(os.cpu_count() or 1)


@pytest.mark.parametrize("kind", CALLS)
def test_no_call_compiles_anything(kind, monkeypatch):
    """A call that needs types which no kernel declares raises a TypeError."""
    asked = []
    monkeypatch.setattr(code, "compiled", lambda name, *options: asked.append(name))
    name, parameters, data, y = CALLS[kind]
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


def test_the_list_is_short():
    assert len(variants()) <= MOST
    assert len(CALLS) >= 40


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
    digest.update(forest.predict(X).tobytes())
print(digest.hexdigest())
"""
NEEDED = (
    "kernels.edges.numba.edges-value_float64",
    "kernels.encode.numba.encode-code_uint8-value_float64",
    "kernels.bag.numba.bag", "kernels.bag.numba.in_bag", "kernels.totals.numba",
    "kernels.partition.numba", "kernels.level.numba.level-categories_False-code_uint8",
    "kernels.grow_subtrees.numba.grow_subtrees-code_uint8-random_False-sets_False",
    "kernels.traverse.numba.accumulate-code_uint8-sums_False",
)  # fmt: skip


@pytest.mark.skipif(not processors.all_levels()[1:], reason="x86-64 has several levels")
def test_every_level_gives_the_same_bits(tmp_path):
    native, *others = targets = processors.levels()
    names = [name for name in variants() if name.startswith(NEEDED)]
    found = [  # most often they are on disk
        (name, native, objects.read(name) or compile_one(name, [native])[0]) for name in names
    ]
    for name, codes in compile_some(names, others, 1):
        found += [(name, *each) for each in zip(others, codes, strict=True)]
    for name, target, machine_code in found:
        path = tmp_path / objects.file_of(name, target, machine_code)
        path.write_bytes(objects.packed(name, machine_code))
    digests = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path), target.name],
            env={**os.environ},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        for target in targets
    ]
    assert len({*digests}) == 1
    assert len(digests[0]) == 65


def test_code_calls_nothing_of_numba_or_python():
    for name in variants():
        content = objects.read(name)
        assert content is not None, name
        foreign = re.findall(rb"\0((?:NRT_|_?Py|numba_)\w{3,})\0", content)
        assert not foreign, name


def test_features_of_the_processor_as_llvm_finds_them():
    asked = {*chain(*processors.LEVELS.values())}
    assert processors.host_features() & asked == processors.llvm_features() & asked
