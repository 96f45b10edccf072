"""The risks of leaves: what they follow from, and how long a fit takes to find them."""

import time
from dataclasses import replace

import numpy as np
import pytest

import gpuforest as gf
from gpuforest import loading
from gpuforest.core.nodes import is_leaf, leaf_rows
from gpuforest.estimators.survival import SurvivalForest


def table(n_rows: int, n_causes: int = 1, n_features: int = 6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    time = np.round(rng.exponential(np.exp(-X[:, 0])), 3) + 0.001
    cause = rng.integers(1, n_causes + 1, n_rows) * (rng.random(n_rows) < 0.6)
    y = np.empty(n_rows, [("event", int if n_causes > 1 else bool), ("time", float)])
    y["event"], y["time"] = cause, time
    return X, y


@pytest.mark.parametrize(("n_causes", "parameters", "drawn"), [
    (1, {}, {}),
    (3, {"bootstrap": False}, {"sample_weight": np.arange(120) % 3}),
    (40, {"max_samples": 20}, {}),  # so few that they alone walk down the trees
    (2, {}, {"groups": np.arange(120) // 5}),
])  # fmt: skip
def test_risks_add_up_the_steps_of_hazards(n_causes, parameters, drawn, backend):
    X, y = table(120, n_causes)
    for kind in (gf.RandomSurvivalForest, gf.ExtraSurvivalTrees):
        model = kind(6, random_state=0, backend=backend, **parameters).fit(X, y, **drawn)
        forest, steps = model.forest_, model._steps_
        node = np.repeat(np.arange(forest.n_nodes), np.diff(steps.begin))
        rises = steps.hazard * (len(steps.times) - steps.time)[:, None]
        risk = np.stack([np.bincount(node, of, forest.n_nodes) for of in rises.T], axis=1)
        leaf = is_leaf(forest.nodes)
        assert np.array_equal(risk[leaf], forest.leaf_values[leaf_rows(forest.nodes[leaf])])


@pytest.mark.parametrize("changed", ["risks", "rows", "shared"])
def test_files_whose_risks_and_rows_disagree_are_refused(changed, tmp_path, monkeypatch):
    X, y = table(80)
    model = gf.RandomSurvivalForest(5, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    assert np.array_equal(gf.load(tmp_path / "model").predict(X), model.predict(X))
    forest = model.forest_
    if changed == "risks":
        values = forest.leaf_values.copy()
        values[-1] += 1
        model.forest_ = replace(forest, leaf_values=values)
    elif changed == "shared":  # two leaves have the risk of one of them
        nodes = forest.nodes.copy()
        first, second = np.flatnonzero(is_leaf(nodes))[:2]
        nodes[second] = nodes[first]
        model.forest_ = replace(forest, nodes=nodes)
    else:
        times = model._rows_.y.copy()
        times[:, 0] = times[::-1, 0]
        model._rows_ = replace(model._rows_, y=times)
    model.save(tmp_path / "model")
    with pytest.raises(
        gf.ModelFormatError, match="leaf_values that do not follow from the training"
    ):
        gf.load(tmp_path / "model")
    monkeypatch.setattr(loading, "CHECKED", 1)  # as if there were many rows: one tree is checked
    if changed == "risks":  # of the last tree
        loaded = gf.load(tmp_path / "model")
        assert np.isfinite(loaded.predict(X)).all()
        with pytest.raises(ValueError, match="its curves would contradict them: fit the model"):
            loaded.predict_survival_function(X)


def seconds(model, X, y, monkeypatch) -> tuple[float, float]:
    """The processor time of a fit, and of what comes after its trees have grown."""
    after, keep = [], SurvivalForest._keep

    def timed(self, forest, plan=None):
        start = time.process_time()
        keep(self, forest, plan)
        after.append(time.process_time() - start)

    with monkeypatch.context() as patched:
        patched.setattr(SurvivalForest, "_keep", timed)
        start = time.process_time()
        model.fit(X, y)
        return time.process_time() - start, sum(after)


def test_risks_take_little_of_a_fit_also_by_many_causes(monkeypatch):
    pytest.importorskip("numba", reason="no numba here")
    X, y = table(480)
    model = gf.RandomSurvivalForest(200, criterion="logrank", random_state=0, n_jobs=1)
    pairs = [seconds(model, X, y, monkeypatch) for _ in range(5)]
    assert min(after / whole for whole, after in pairs) < 0.4
    model = gf.RandomSurvivalForest(20, max_depth=6, random_state=0, n_jobs=1)
    few, many = table(4000, 2), table(4000, 100)
    pairs = [[seconds(model, *rows, monkeypatch)[1] for rows in (few, many)] for _ in range(5)]
    assert min(of_many / of_few for of_few, of_many in pairs) < 3


@pytest.mark.parametrize("criterion", ["exponential", "logrank"])
def test_small_bags_of_many_rows_take_at_most_three_times_those_of_regression(
    criterion, monkeypatch
):
    pytest.importorskip("numba", reason="no numba here")
    X, y = table(100_000)
    small = {"n_estimators": 200, "max_samples": 100, "random_state": 0, "n_jobs": 1}
    survival = gf.RandomSurvivalForest(criterion=criterion, **small)
    regression = gf.RandomForestRegressor(**small)
    ratios = []
    for _ in range(5):
        start = time.process_time()
        regression.fit(X, y["time"])
        middle = time.process_time()
        survival.fit(X, y)
        ratios.append((time.process_time() - middle) / (middle - start))
    assert min(ratios) < 3
