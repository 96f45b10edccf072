"""What a fit takes of the memory: estimated before it, and kept within a limit."""

import json
import logging
import sys
from typing import ClassVar

import numpy as np
import pytest
from engine import same_forest
from peaks import measured
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError
from sweeps import swept

import gpuforest
from gpuforest import MemoryEstimate, estimate_memory, load
from gpuforest.backends import registry
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.common.arguments import byte_count
from gpuforest.estimators import memory
from gpuforest.tools.cli import main

ROWS, FEATURES = 3000, 8


ALL = [f"{kind}{y}" for kind in ("DecisionTree", "RandomForest", "ExtraTrees")
       for y in ("Classifier", "Regressor")]  # fmt: skip


def table(n_classes: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=ROWS)
    return X, (np.digitize(y, np.linspace(-1, 1, n_classes - 1)) if n_classes else y)


def test_sizes_of_codes_and_targets():
    forest = gpuforest.RandomForestClassifier(max_bins=255, backend="numpy")
    assert estimate_memory(forest, 1000, 7).codes == 7000
    found = estimate_memory(forest.set_params(max_bins=256), 1000, 7, n_classes=3, n_outputs=2)
    assert found.codes == 14000
    assert found.target == 1000 * (6 * 8 + 2 * 8)  # classes of several outputs are moments
    parts = {"codes": 1, "target": 2, "bags": 8, "growing": 16, "forest": 32}
    assert MemoryEstimate(binning=4, **parts).total == 59  # what there is at once
    assert MemoryEstimate(binning=100, **parts).total == 103


def test_the_table_names_every_part():
    lines = str(MemoryEstimate(1_000_000, 0, 0, 0, 0, 2_000_000)).splitlines()
    sizes = {"codes": "1.0", "target": "0.0", "binning": "0.0", "bags": "0.0", "growing": "0.0"}
    sizes |= {"forest": "2.0", "total": "3.0"}
    assert [line.split() for line in lines] == [[*part, "MB"] for part in sizes.items()]


@pytest.mark.parametrize(
    "smaller",
    [{"max_depth": 4}, {"min_samples_leaf": 50}, {"min_samples_split": 100}, {"max_samples": 100}],
    ids=str,
)
def test_what_makes_trees_small_makes_the_estimate_small(backend, smaller):
    forest = gpuforest.RandomForestRegressor(backend=backend)
    most = estimate_memory(forest, 10_000, 5)
    assert estimate_memory(forest.set_params(**smaller), 10_000, 5).forest < most.forest / 10


def test_forests_that_choose_a_parameter_count():
    """Out-of-bag errors choose it by forests of 48 trees, however few the fit keeps."""
    few = gpuforest.RandomForestRegressor(8, min_samples_leaf="oob", backend="numpy")
    many = gpuforest.RandomForestRegressor(48, backend="numpy")
    assert estimate_memory(few, 10_000, 5).forest == estimate_memory(many, 10_000, 5).forest


@pytest.mark.parametrize("name", ["n_samples", "n_features", "n_classes", "n_outputs"])
def test_sizes_below_one_are_refused(name):
    sizes = {"n_samples": 10, "n_features": 2, name: 0}
    with pytest.raises(ValueError, match=f"{name}=0 must be at least 1"):
        estimate_memory(gpuforest.RandomForestClassifier(), **sizes)


def test_combinations_count_the_words_of_their_splits():
    """A split has two words with two or three features, and three with four or five."""
    alone = gpuforest.RandomForestRegressor(backend="numpy")
    whole = clone(alone).set_params(feature_combinations=2)
    least = estimate_memory(alone, 10_000, 2)
    most = estimate_memory(whole, 10_000, 2)  # a mean of two of two features: all have both
    # two nodes of eight bytes a split, and a leaf's two sums; leaf tables are rounded up to waves
    leaves = least.forest / (2 * 8 + 2 * 8)
    assert most.forest - least.forest == pytest.approx(leaves * 2 * 8, rel=0.02)
    assert most.growing > least.growing
    few = estimate_memory(whole.set_params(feature_combinations=1.5), 10_000, 2)
    assert few.forest - least.forest == pytest.approx(leaves * 8, rel=0.02)


CLASSES, NUMBERS = "RandomForestClassifier", "RandomForestRegressor"


@pytest.mark.parametrize(
    ("name", "n_rows", "n_features", "n_classes", "parameters"),
    swept(3, [
        (CLASSES, 30_000, 20, 10, {}),
        (NUMBERS, 40_000, 10, 0, {"max_leaf_nodes": 50}),
        (CLASSES, 60_000, 10, 2, {"ccp_alpha": 0.001}),
        (CLASSES, 60_000, 20, 2, {}),
        (NUMBERS, 40_000, 20, 0, {}),
        (CLASSES, 60_000, 20, 2, {"feature_combinations": 2}),
        (CLASSES, 30_000, 10, 10, {"class_weight": "balanced_subsample"}),
        (CLASSES, 10_000, 10, 1000, {}),
        (NUMBERS, 20_000, 10, 0, {"criterion": "absolute_error", "max_depth": 8}),
        (CLASSES, 100_000, 10, 2, {"unbiased_importances": True}),
        ("AdaBoostClassifier", 1_000_000, 10, 2, {"n_estimators": 3}),
        ("AdaBoostRegressor", 1_000_000, 10, 0, {"n_estimators": 3}),
        ("RandomSurvivalForest", 500_000, 10, 1, {"n_estimators": 4}),
        ("RandomSurvivalForest", 500_000, 10, 3, {"n_estimators": 4}),
        ("RandomSurvivalForest", 100_000, 10, 1, {}),
    ]),
    ids=str,
)  # fmt: skip
def test_estimates_are_right_with_numba_and_limits_kept(
    name, n_rows, n_features, n_classes, parameters
):
    pytest.importorskip("numba", reason="no numba here")
    limited = n_features == 10  # where trees take more than their nodes
    parameters = {"n_estimators": 20} | parameters
    compare(name, "numba", n_rows, n_features, n_classes, parameters, limited)


@pytest.mark.deep
def test_estimates_are_right_with_numpy():
    few = {"n_estimators": 3, "max_depth": 7}
    compare("RandomForestClassifier", "numpy", 30_000, 20, 2, few, False)
    compare("RandomForestRegressor", "numpy", 10_000, 20, 0, few | {"max_depth": 11}, False)


def compare(*fit) -> None:
    found, least, peak, *limited = measured(*fit)
    # a guess of how many nodes trees will have, and what the allocator keeps for itself
    most = 1.4 if limited else 1.6 if fit[1] == "numba" else 1.8
    if "class_weight" in fit[5]:  # 52 MB, if both threads' trees are whole at once: peaks of
        most = 1.7  # 40 to 46 MB were measured, and of 33 to 37 MB elsewhere
    if "Survival" in fit[0]:
        most = 1.3
    assert (1 / 1.3 if "Survival" in fit[0] else 0.8) < found / peak < most
    if limited:
        assert limited[0] < 1.1 * least + 1  # the allocator keeps up to one megabyte for itself


@pytest.mark.parametrize("name", [*ALL, "RandomTreesEmbedding"])
def test_the_forest_is_the_same_with_any_limit(backend, name):
    estimator = getattr(gpuforest, name)
    X, y = table(3 if name.endswith("Classifier") else 0)
    given = {"max_depth": 5, "random_state": 0, "backend": backend}
    if "n_estimators" in estimator._parameter_constraints:
        given |= {"n_estimators": 6, "n_jobs": 4}
    free = estimator(**given).fit(X, y)
    most = estimate_memory(free, *X.shape, n_classes=3).total
    least = least_limit(lambda limit: estimator(**given, memory_limit=limit).fit(X, y), most)
    for limit in (most, (most + least) // 2, least):
        assert same_forest(estimator(**given, memory_limit=limit).fit(X, y).forest_, free.forest_)


def least_limit(fit, most: int) -> int:
    """The limit that, by the error, would be enough."""
    with pytest.raises(ValueError, match="memory_limit=1 bytes is too little") as refused:
        fit(1)
    needed = int(str(refused.value).split("takes about ")[1].split()[0])
    assert needed <= most
    return needed


def test_a_bagging_takes_the_limit_of_its_tree(backend):
    X, y = table()
    tree = gpuforest.DecisionTreeRegressor(memory_limit=1, backend=backend)
    bagging = gpuforest.BaggingRegressor(tree, 3, random_state=0)
    assert bagging.memory_limit == 1
    with pytest.raises(ValueError, match="memory_limit=1 bytes is too little"):
        bagging.fit(X, y)
    tree.set_params(memory_limit=10**9)
    limited = bagging.fit(X, y)
    free = bagging.set_params(estimator=gpuforest.DecisionTreeRegressor(backend=backend))
    assert same_forest(clone(free).fit(X, y).forest_, limited.forest_)


def test_the_error_says_what_is_needed_and_what_to_change():
    X, y = table(2)
    with pytest.raises(ValueError, match=r"lower max_depth, .* or raise the limit") as refused:
        gpuforest.RandomForestClassifier(memory_limit=5000).fit(X, y)
    assert f"{ROWS * FEATURES} of them for the binned features" in str(refused.value)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "", "2", "2 gigs", "0MB"])
@pytest.mark.parametrize("name", ["RandomForestClassifier", "HistGradientBoostingClassifier"])
def test_limits_that_are_no_bytes_are_refused(limit, name):
    words = "'memory_limit' parameter of .* a str such as '500MB' or '2GiB' or None. Got"
    with pytest.raises(InvalidParameterError, match=words):
        getattr(gpuforest, name)(memory_limit=limit).fit(*table(2))


@pytest.mark.parametrize(
    ("model", "text", "bytes_"),
    [
        (gpuforest.RandomForestClassifier(3, random_state=0), "3000kB", 3_000_000),
        (gpuforest.HistGradientBoostingClassifier(max_iter=2, random_state=0), "3MiB", 3 * 2**20),
        (gpuforest.AdaBoostClassifier(n_estimators=2, random_state=0), " 2.5 mb", 2_500_000),
    ],
)
def test_a_limit_may_be_text_with_a_unit(model, text, bytes_):
    X, y = table(2)
    limited = clone(model).set_params(memory_limit=text).fit(X, y)
    assert limited.memory_limit == text
    other = clone(model).set_params(memory_limit=bytes_).fit(X, y)
    assert same_forest(limited.forest_, other.forest_)
    with pytest.raises(ValueError, match="memory_limit=1000 bytes is too little"):
        clone(model).set_params(memory_limit="1kB").fit(X, y)
    assert memory.room_of(limited) == bytes_


def test_a_limit_is_not_saved(tmp_path):
    X, y = table(2)
    tree = gpuforest.DecisionTreeClassifier(memory_limit=10**9, max_depth=2).fit(X, y)
    tree.save(tmp_path / "tree")
    assert load(tmp_path / "tree").memory_limit is None


class Mine(NumpyBackend):
    name = "mine"
    budgets: ClassVar[set[int]] = set()

    def histogram(self, *arguments):
        self.budgets.add(self.memory_budget)
        return super().histogram(*arguments)


def test_a_registered_backend_takes_what_it_is_made_from_takes(monkeypatch):
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    monkeypatch.setitem(registry.BUDGETS, "mine", registry.CPU_MEMORY)
    gpuforest.register_backend("mine", Mine)
    mine = gpuforest.RandomForestRegressor(2, random_state=0, max_depth=4, backend="mine")
    found = estimate_memory(mine, ROWS, FEATURES)
    assert found == estimate_memory(mine, ROWS, FEATURES, backend="numpy")
    X, y = table()
    free = clone(mine).fit(X, y)
    assert Mine.budgets == {registry.CPU_MEMORY}
    Mine.budgets.clear()
    least = least_limit(lambda n: clone(mine).set_params(memory_limit=n).fit(X, y), found.total)
    assert same_forest(mine.set_params(memory_limit=least).fit(X, y).forest_, free.forest_)
    assert max(Mine.budgets) < registry.CPU_MEMORY


def test_sizes_have_units():
    for text, n in (
        ("2GB", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("500mb", 5 * 10**8),
        ("7kB", 7000),
    ):
        assert byte_count(text) == n
    for text in ("", "2", "GB", "-2GB", "2.GB", "2 G", "2GBs", "0MB", "0.0001kB"):
        with pytest.raises(ValueError, match="is no number with a unit"):
            byte_count(text)


@pytest.fixture
def csv(tmp_path):
    X, y = table(3)
    names = ",".join(f"x{i}" for i in range(FEATURES))
    rows = np.column_stack([X, y])
    path = tmp_path / "table.csv"
    np.savetxt(path, rows, delimiter=",", header=f"{names},y", comments="")
    arguments = ["train", str(path), "--target", "y", "--out", str(tmp_path / "model")]
    return [*arguments, "--task", "classification", "--n-estimators", "3", "--no-oob-score"]


def test_the_command_line_tells_the_memory_before_and_after(csv, capsys, monkeypatch):
    assert main([*csv, "--memory-limit", "2GB", "--json"]) == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert shown.err == ""
    assert facts["parameters"]["memory_limit"] == 2 * 10**9
    forest = gpuforest.RandomForestClassifier(**facts["parameters"])
    found = estimate_memory(forest, ROWS, FEATURES, n_classes=3, dtype=np.float64)
    assert facts["memory"] == {**vars(found), "total": found.total}
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(csv) == 0
    shown = capsys.readouterr()
    about = f"about {found.total / 1e6:,.1f} MB"
    assert f"training takes {about} of memory\n" in shown.err
    (line,) = (line for line in shown.out.splitlines() if line.startswith("memory"))
    assert line.split(maxsplit=1)[1] == f"{about}, as estimated before"


def test_the_log_says_once_that_a_machine_has_too_little(monkeypatch, caplog):
    def unknown(name: str) -> int:
        raise OSError

    monkeypatch.setattr(memory, "_warned", set())
    X, y = table(2)
    with caplog.at_level(logging.WARNING, "gpuforest"):
        with monkeypatch.context() as patched:
            patched.setattr(memory, "Path", unknown)
            assert memory.available_bytes() is None
            gpuforest.DecisionTreeClassifier(backend="numpy").fit(X, y)
        assert not caplog.records
        monkeypatch.setattr(memory, "available_bytes", lambda: 10**6)
        for _ in range(2):
            gpuforest.DecisionTreeClassifier(backend="numpy").fit(X, y)
    (record,) = caplog.records
    assert "only 1 MB of memory are available" in record.getMessage()
