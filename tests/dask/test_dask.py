"""Forests from a dask cluster: the local ones, however rows and workers are shared out."""

import importlib
import os
import queue
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from sklearn.base import clone

import gpuforest

pytest.importorskip("distributed", reason="dask is not installed")
import dask.array as da
import dask.dataframe as dd
from dask import delayed
from distributed import Client, LocalCluster

import gpuforest.dask as on_dask
from gpuforest.backends import registry

N = 800
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5)).astype(np.float32)
X[RNG.random(X.shape) < 0.05] = np.nan
Y = np.where(np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 0, "yes", "no")
Z = np.nan_to_num(X[:, 0] * 3 + X[:, 2])
WEIGHTS = RNG.integers(0, 4, N) * 0.3
CUTS = {
    "even": (200, 200, 200, 200),
    "uneven": (500, 0, 1, 299),
    "one": (N,),
    "many": (7,) * 114 + (2,),
}


@pytest.fixture(scope="module", params=[1, 2, 3, 7])
def client(request):
    local = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=request.param, **local) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def pair():
    """Two workers."""
    local = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=2, **local) as cluster, Client(cluster) as client:
        yield client


def cut(values, sizes):
    return da.from_array(values, chunks=(sizes, *values.shape[1:]))


def fitted(model, X, y, weight=None, sizes=CUTS["uneven"], strategy="auto"):
    """The model for dask of the same name, fitted on partitions."""
    kind = getattr(on_dask, type(model).__name__)
    parts = [None if a is None else cut(a, sizes) for a in (X, y, weight)]
    return kind(**model.get_params(), strategy=strategy).fit(*parts)


def assert_same(found, whole):
    assert same_forest(found.forest_, whole.forest_)
    assert found.forest_.edges.categories == whole.forest_.edges.categories
    assert found.forest_.seed == whole.forest_.seed
    assert found.n_features_in_ == whole.n_features_in_
    if hasattr(whole, "classes_"):
        assert found.classes_.tolist() == whole.classes_.tolist()
        assert found.classes_.dtype == whole.classes_.dtype


@pytest.mark.parametrize("strategy", ["trees", "rows"])
@pytest.mark.parametrize("sizes", CUTS.values(), ids=CUTS)
def test_the_local_forest_on_any_workers(client, sizes, strategy):
    model = gpuforest.RandomForestClassifier(9, random_state=3)
    found = fitted(model, X, Y, WEIGHTS, sizes, strategy)
    assert_same(found, clone(model).fit(X, Y, WEIGHTS))


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (gpuforest.RandomForestClassifier(4, random_state=1, bootstrap=False), Y),
        (gpuforest.RandomForestClassifier(4, random_state=1, class_weight="balanced"), Y),
        (gpuforest.RandomForestClassifier(4, random_state=1, max_leaf_nodes=9), Y),
        (gpuforest.RandomForestRegressor(4, random_state=1, max_samples=0.5), Z),
        (gpuforest.RandomForestRegressor(4, random_state=1, monotonic_cst=[1, 0, 0, -1, 0]), Z),
        (gpuforest.RandomForestRegressor(4, random_state=1), np.stack([Z, -Z], axis=1)),
        (gpuforest.ExtraTreesClassifier(5, random_state=1), Y),
    ],
    ids=lambda case: type(case).__name__ if hasattr(case, "fit") else "",
)
def test_estimators_by_rows(pair, model, y):
    assert_same(fitted(model, X, y, strategy="rows"), clone(model).fit(X, y))


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (gpuforest.RandomForestClassifier(4, oob_score=True), "oob_score=True"),
        (gpuforest.RandomForestClassifier(4, class_weight="balanced_subsample"), "class_weight="),
        (gpuforest.RandomForestRegressor(4, criterion="absolute_error"), "criterion="),
        (gpuforest.RandomForestClassifier("auto"), "models whose trees depend on each other"),
        (gpuforest.HistGradientBoostingRegressor(), "models whose trees depend on each other"),
    ],
)
def test_what_needs_all_rows(pair, model, what):
    with pytest.raises(ValueError, match=f"strategy='rows' cannot do {what}"):
        fitted(model, X, Z, strategy="rows")


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (gpuforest.RandomForestClassifier(30, random_state=1, oob_score=True), Y),
        (gpuforest.RandomForestClassifier(4, random_state=1, bootstrap=False), Y),
        (gpuforest.RandomForestClassifier(4, random_state=1, class_weight="balanced"), Y),
        (gpuforest.RandomForestClassifier(4, random_state=1, max_leaf_nodes=9), Y),
        (gpuforest.RandomForestClassifier("auto", random_state=1, oob_tol=0.1), Y),
        (gpuforest.RandomForestRegressor(4, random_state=1, max_samples=0.5), Z),
        (gpuforest.RandomForestRegressor(4, random_state=1, criterion="absolute_error"), Z),
        (gpuforest.RandomForestRegressor(1, random_state=1), np.stack([Z, -Z], axis=1)),
        (gpuforest.ExtraTreesClassifier(5, random_state=1), Y),
        (gpuforest.ExtraTreesRegressor(5, random_state=1), Z),
        (gpuforest.HistGradientBoostingClassifier(max_iter=4, random_state=1), Y),
        (gpuforest.HistGradientBoostingRegressor(max_iter=4, random_state=1), Z),
    ],
    ids=lambda case: type(case).__name__ if hasattr(case, "fit") else "",
)
def test_estimators(pair, model, y):
    whole, found = clone(model).fit(X, y), fitted(model, X, y)
    assert_same(found, whole)
    assert getattr(found, "oob_score_", None) == getattr(whole, "oob_score_", None)
    assert found.get_params()["n_jobs"] == model.n_jobs
    assert np.array_equal(found.to_local().predict(X), whole.predict(X))


def test_a_worker_trains_on_its_device(cuda, monkeypatch):
    """Emulated, if there is none. One worker, because an emulated device serves one thread."""
    used = []

    def device(*_):
        used.append(threading.current_thread())
        return cuda.backend()

    monkeypatch.setattr(registry, "_factories", registry._factories | {"device": device})
    model = gpuforest.RandomForestClassifier(3, max_depth=4, random_state=1)
    whole = clone(model).fit(X, Y)
    local = {"processes": False, "dashboard_address": ":0", "threads_per_worker": 1}
    with LocalCluster(n_workers=1, **local) as cluster, Client(cluster):
        found = fitted(model.set_params(backend="device"), X, Y)
    assert_same(found, whole)
    assert used
    assert threading.current_thread() not in used


def test_rows_by_label_and_a_class_in_one_partition(client):
    order = np.argsort(Y, kind="stable")
    n = int((Y == "no").sum())
    model = gpuforest.RandomForestClassifier(4, random_state=0)
    assert_same(fitted(model, X[order], Y[order], sizes=(n, N - n)), model.fit(X[order], Y[order]))


def frames():
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    frame["d"] = pd.Categorical(RNG.choice(["u", "v", "w"], N), ["w", "v", "u", "t"])
    frame["e"] = np.where(RNG.random(N) < 0.1, None, RNG.choice(["x", "y"], N))
    return frame


@pytest.mark.parametrize("known", [True, False])
def test_frames(pair, known):
    frame, y = frames(), pd.Series(Y)
    X, target = dd.from_pandas(frame, npartitions=5), dd.from_pandas(y, npartitions=5)
    if not known:  # partitions list other categories, in other orders
        frame["d"] = frame["d"].astype(object)
        X["d"] = X["d"].astype(object)
    model = gpuforest.RandomForestClassifier(4, random_state=2)
    found = on_dask.RandomForestClassifier(4, random_state=2).fit(X, target)
    whole = model.fit(frame, y)
    assert_same(found, whole)
    assert found.feature_names_in_.tolist() == list("abcde")
    proba = found.predict_proba(X)
    assert np.array_equal(proba.compute(), whole.predict_proba(frame))


def test_delayed_blocks(pair):
    cuts = [(0, 10), (10, 10), (10, N)]
    blocks = [[delayed(a[b:e]) for b, e in cuts] for a in (X, Z)]
    model = gpuforest.ExtraTreesRegressor(3, random_state=0)
    found = on_dask.ExtraTreesRegressor(3, random_state=0).fit(*blocks)
    assert_same(found, model.fit(X, Z))
    assert np.array_equal(found.predict(blocks[0]).compute(), model.predict(X))


def test_predictions_wait_and_are_those_of_the_local_model(pair):
    found = fitted(gpuforest.RandomForestClassifier(5, random_state=0), X, Y)
    local, parts, labels = found.to_local(), cut(X, CUTS["uneven"]), cut(Y, CUTS["uneven"])
    assert type(local) is gpuforest.RandomForestClassifier
    for method in ("predict", "predict_proba", "apply"):
        lazy, whole = getattr(found, method)(parts), getattr(local, method)(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.dtype, lazy.shape) == (whole.dtype, whole.shape)
        assert np.array_equal(lazy.compute(), whole)
        assert np.array_equal(getattr(found, method)(X), whole)
    weights = cut(WEIGHTS, CUTS["uneven"])
    assert found.score(parts, labels, weights).compute() == local.score(X, Y, WEIGHTS)
    assert found.score(X, Y) == local.score(X, Y)


def test_what_is_no_collection_is_trained_here():
    found = on_dask.RandomForestRegressor(3, random_state=0).fit(X, Z)
    assert_same(found, gpuforest.RandomForestRegressor(3, random_state=0).fit(X, Z))


def test_warm_start(pair):
    found = fitted(gpuforest.RandomForestRegressor(3, random_state=0, warm_start=True), X, Z)
    sizes = CUTS["even"]
    found.set_params(n_estimators=8).fit(cut(X, sizes), cut(Z, sizes))
    assert_same(found, gpuforest.RandomForestRegressor(8, random_state=0).fit(X, Z))
    found.set_params(n_estimators=11, strategy="rows").fit(cut(X, sizes), cut(Z, sizes))
    whole = gpuforest.RandomForestRegressor(11, random_state=0).fit(X, Z)
    assert_same(found, whole)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        found.fit(cut(X, sizes), cut(Z, sizes))
    assert_same(found, whole)
    with pytest.raises(ValueError, match="n_estimators=5 must be larger or equal"):
        found.set_params(n_estimators=5).fit(cut(X, sizes), cut(Z, sizes))


def test_codes_that_no_worker_can_hold(pair, monkeypatch):
    real = pair.scheduler_info

    def small(*args):
        found = real(*args)
        for worker in found["workers"].values():
            worker["memory_limit"] = 10_000
        return found

    monkeypatch.setattr(pair, "scheduler_info", small)
    given = {"random_state": 0, "client": pair}
    parts = cut(X, (300, 500)), cut(Z, (300, 500))
    with pytest.raises(ValueError, match=r"codes of 800 rows take 2.88e-05 GB on each worker"):
        on_dask.RandomForestRegressor(2, strategy="trees", **given).fit(*parts)
    with pytest.raises(ValueError, match="codes of 800 rows take"):
        on_dask.HistGradientBoostingRegressor(max_iter=2, **given).fit(*parts)
    found = on_dask.RandomForestRegressor(2, **given).fit(*parts)  # by rows
    assert_same(found, gpuforest.RandomForestRegressor(2, random_state=0).fit(X, Z))


def test_verbose_prints_the_stages(pair, capsys):
    fitted(gpuforest.RandomForestRegressor(3, random_state=0, verbose=1), X, Z)
    said = capsys.readouterr().out.splitlines()
    stages = ["reading partitions", "learning bins", "binning", "sharing codes", "growing"]
    assert [f"gpuforest: {stage}" for stage in [*stages, "joining"]] == said[:6]


def bad_infinity():
    values = X.copy()
    values[700, 2] = np.inf
    return values


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (cut(X, (400, 400)), cut(Z, (800,)), "X has 2 partitions, y has 1"),
        (cut(X, (400, 400)), cut(Z, (300, 500)), "00 rows, y has "),
        (cut(bad_infinity(), (400, 400)), cut(Z, (400, 400)), "partition 1: Input X contains inf"),
        (cut(X[:0], (0,)), cut(Z[:0], (0,)), "the partitions have no rows"),
        (
            [delayed(X), delayed(X[:, :3])],
            [delayed(Z), delayed(Z)],
            "partition 1: X has 3 features, but",
        ),
        (
            [delayed(frames()[["a", "b"]]), delayed(frames()[["b", "a"]])],
            [delayed(Z), delayed(Z)],
            "partition 1: The feature names should match",
        ),
        ([delayed(X), delayed(X)], [delayed(Z), delayed(Y)], "partition 1: y holds labels in some"),
    ],
)
def test_bad_partitions(pair, X, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        on_dask.RandomForestRegressor(2, random_state=0).fit(X, y)
    again = fitted(gpuforest.RandomForestRegressor(2, random_state=0), *GOOD)  # the cluster is well
    assert again.forest_.n_trees == 2


GOOD = (X, Z)


def none_there():
    raise ValueError("No global client found")


def test_no_client_and_no_workers(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("distributed.get_client", none_there)
        with pytest.raises(ValueError, match="there is no dask client: make one"):
            fitted(gpuforest.RandomForestRegressor(2), X, Z)
    local = {"processes": False, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=0, **local) as cluster,
        Client(cluster),
        pytest.raises(ValueError, match="the cluster has no workers"),
    ):
        fitted(gpuforest.RandomForestRegressor(2), X, Z)
    with pytest.raises(TypeError, match="y is a ndarray, but X is a dask collection"):
        on_dask.RandomForestRegressor(2, client=object()).fit(cut(X, (N,)), Z)


@pytest.fixture
def processes():
    """Two workers that are processes."""
    from dask import config

    quick = {"distributed.deploy.lost-worker-timeout": "1s"}
    with (
        config.set(quick),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def kill_one(after):
    """Kill the first worker that comes to this task, and do nothing elsewhere."""
    flag = Path(after)
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("step", ["encoded", "gathered", "grown_share", "fitted", "grow_of_rows"])
def test_a_worker_that_dies(processes, tmp_path, step):
    """Its tasks run again: on the other worker, or on one that the cluster starts anew."""
    homes = {"encoded": "partitions", "grow_of_rows": "by_rows"}
    home = f"gpuforest.dask.{homes.get(step, 'training')}"

    def die_at(step=step, home=home, flag=str(tmp_path / "died")):
        module = importlib.import_module(home)
        work = getattr(module, step)

        def deadly(*args):
            kill_one(flag)
            return work(*args)

        deadly.__module__, deadly.__qualname__ = work.__module__, work.__qualname__
        setattr(module, step, deadly)

    processes.run(die_at)
    done = queue.Queue()

    def fit():
        model = gpuforest.RandomForestClassifier(6, random_state=0)
        kind = on_dask.RandomForestClassifier(6, random_state=0, client=processes)
        kind.set_params(strategy="rows" if step == "grow_of_rows" else "trees")
        found = kind.fit(cut(X, CUTS["even"]), cut(Y, CUTS["even"]))
        done.put(same_forest(found.forest_, model.fit(X, Y).forest_))

    threading.Thread(target=fit, daemon=True).start()
    assert done.get(timeout=60)
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize("strategy", ["trees", "rows"])
def test_no_workers_are_left(processes, monkeypatch, strategy):
    from gpuforest.dask import training, waiting

    monkeypatch.setattr(waiting, "PATIENCE", 1.0)
    share = training.done_all
    calls = []

    def closing(client, futures):
        calls.append(1)
        if len(calls) == 4:
            processes.cluster.scale(0)
        return share(client, futures)

    monkeypatch.setattr(training, "done_all", closing)
    with pytest.raises((RuntimeError, ValueError), match="no workers"):
        fitted(gpuforest.RandomForestClassifier(6), X, Y, sizes=CUTS["even"], strategy=strategy)


def test_a_worker_that_joins_late_and_a_cancelled_fit(processes, monkeypatch):
    from gpuforest.dask import training

    share = training.done_all
    calls = []

    def interrupted(client, futures):
        calls.append(1)
        if len(calls) == 4:
            processes.cluster.scale(3)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return share(client, futures)

    monkeypatch.setattr(training, "done_all", interrupted)
    sizes = CUTS["even"]
    model = gpuforest.RandomForestClassifier(6, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, X, Y, sizes=sizes)
    assert_same(fitted(model, X, Y, sizes=sizes), clone(model).fit(X, Y))
