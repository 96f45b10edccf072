"""Forests from a dask cluster: the local ones, however rows and workers are shared out."""

import re
import sys
import threading

import fake_cupy
import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from sklearn.base import clone
from sweeps import swept

import gpuforest as gf

pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
import dask.array as da
import dask.dataframe as dd
from dask import delayed
from partitioned import CUTS, RNG, WEIGHTS, N, X, Y, Z, assert_same, cluster_of, cut, fitted

import gpuforest.dask as on_dask
from gpuforest.backends import registry
from gpuforest.data.blocks import Block
from gpuforest.data.passes import Reader
from gpuforest.growing.edges import fit_edges
from gpuforest.tools.dask import partitions
from gpuforest.tools.dask.estimators import score_of, scored


@pytest.fixture(scope="module", params=swept(1, [3, 1, 2, 7]))
def client(request):
    with cluster_of(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def pair():
    with cluster_of(2) as client:
        yield client


@pytest.mark.parametrize("strategy", ["trees", "rows"])
@pytest.mark.parametrize("sizes", CUTS.values(), ids=CUTS)
def test_the_local_forest_on_any_workers(client, sizes, strategy):
    model = gf.RandomForestClassifier(9, random_state=3)
    found = fitted(model, X, Y, WEIGHTS, sizes, strategy)
    assert_same(found, clone(model).fit(X, Y, WEIGHTS))


@pytest.mark.parametrize(("model", "what"), [
    (gf.RandomForestClassifier(4, oob_score=True), "oob_score=True"),
    (gf.RandomForestClassifier(4, class_weight="balanced_subsample"), "class_weight="),
    (gf.RandomForestRegressor(4, criterion="absolute_error"), "criterion="),
    (gf.RandomForestRegressor(4, feature_combinations=2), "combinations of features"),
    (gf.RandomForestClassifier("auto"), "models whose trees depend on each other"),
    (gf.HistGradientBoostingRegressor(), "models whose trees depend on each other"),
])  # fmt: skip
def test_what_needs_all_rows(pair, model, what):
    with pytest.raises(ValueError, match=f"strategy='rows' cannot do {what}"):
        fitted(model, X, Z, strategy="rows")


FOREST, NUMBERS = gf.RandomForestClassifier, gf.RandomForestRegressor


@pytest.mark.parametrize(("strategy", "model", "y"), [
    *(
        (strategy, model, y)
        for strategy in ("trees", "rows")
        for model, y in (
            (FOREST(4, random_state=1, bootstrap=False), Y),
            (FOREST(4, random_state=1, class_weight="balanced"), Y),
            (FOREST(4, random_state=1, max_leaf_nodes=9), Y),
            (NUMBERS(4, random_state=1, max_samples=0.5), Z),
            (NUMBERS(1, random_state=1), np.stack([Z, -Z], axis=1)),
            (gf.ExtraTreesClassifier(5, random_state=1), Y),
        )
    ),
    ("rows", NUMBERS(4, random_state=1, monotonic_cst=[1, 0, 0, -1, 0]), Z),
    ("auto", FOREST(30, random_state=1, oob_score=True), Y),
    ("auto", FOREST("auto", random_state=1, oob_tol=0.1), Y),
    ("auto", NUMBERS(4, random_state=1, criterion="absolute_error"), Z),
    ("auto", gf.HistGradientBoostingClassifier(max_iter=4, random_state=1), Y),
    ("auto", gf.HistGradientBoostingRegressor(max_iter=4, random_state=1), Z),
    ("auto", gf.HistGradientBoostingRegressor(
        max_iter=4, random_state=1, early_stopping=True, refit=True), Z),
], ids=lambda case: type(case).__name__ if hasattr(case, "fit") else "")  # fmt: skip
def test_estimators(pair, strategy, model, y):
    whole, found = clone(model).fit(X, y), fitted(model, X, y, strategy=strategy)
    assert_same(found, whole)
    assert getattr(found, "oob_score_", None) == getattr(whole, "oob_score_", None)
    assert found.get_params()["n_jobs"] == model.n_jobs
    assert np.array_equal(found.to_local().predict(X), whole.predict(X))


@pytest.mark.parametrize(("model", "y", "strategy"), [
    (gf.RandomForestRegressor(6, oob_score=True, random_state=0), Z, "trees"),
    (gf.RandomForestRegressor(6, random_state=0), Z, "rows"),
    (gf.HistGradientBoostingClassifier(max_iter=4, early_stopping=True, random_state=0), Y,
     "trees"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["groups", "blocks"])
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_groups_and_blocks_of_time(pair, model, y, strategy, name):
    labels = np.char.add("label ", RNG.integers(10, 50, N).astype(str))
    parts = (X, y, WEIGHTS, *((labels,) if name == "groups" else (None, labels)))
    how = {"max_bins": model.max_bins, "random_state": 0}
    whole = clone(model).fit(gf.BinnedData.from_blocks([parts], **how))
    found = fitted(model, X, y, WEIGHTS, strategy=strategy, **{name: labels})
    assert_same(found, whole)
    assert getattr(found, "oob_score_", None) == getattr(whole, "oob_score_", None)
    plain = clone(model).fit(gf.BinnedData.from_blocks([(X, y, WEIGHTS)], **how))
    same = name == "blocks" and hasattr(model, "bootstrap")  # they judge alone
    assert same_forest(found.forest_, plain.forest_) == same
    assert getattr(plain, "oob_score_", 0) != getattr(whole, "oob_score_", 1)


def test_a_worker_trains_on_its_device(cuda, monkeypatch):
    """Emulated, if there is none. One worker, because an emulated device serves one thread."""
    used = []

    def device(*_):
        used.append(threading.current_thread())
        return cuda.backend()

    monkeypatch.setattr(registry, "_factories", registry._factories | {"device": device})
    model = gf.RandomForestClassifier(3, max_depth=4, random_state=1)
    whole = clone(model).fit(X, Y)
    with cluster_of(1):
        found = fitted(model.set_params(backend="device"), X, Y)
    assert_same(found, whole)
    assert used
    assert threading.current_thread() not in used


def test_rows_by_label_and_a_class_in_one_partition(client):
    order = np.argsort(Y, kind="stable")
    n = int((Y == "no").sum())
    model = gf.RandomForestClassifier(4, random_state=0)
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
    model = gf.RandomForestClassifier(4, random_state=2)
    found = on_dask.RandomForestClassifier(4, random_state=2).fit(X, target)
    whole = model.fit(frame, y)
    assert_same(found, whole)
    assert found.feature_names_in_.tolist() == list("abcde")
    proba = found.predict_proba(X)
    assert np.array_equal(proba.compute(), whole.predict_proba(frame))


def test_predictions_wait_and_are_those_of_the_local_model(pair):
    found = fitted(gf.RandomForestClassifier(5, random_state=0), X, Y)
    local, parts, labels = found.to_local(), cut(X, CUTS["uneven"]), cut(Y, CUTS["uneven"])
    assert type(local) is gf.RandomForestClassifier
    for method in ("predict", "predict_proba", "apply"):
        lazy, whole = getattr(found, method)(parts), getattr(local, method)(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.dtype, lazy.shape) == (whole.dtype, whole.shape)
        assert np.array_equal(lazy.compute(), whole)
        assert np.array_equal(getattr(found, method)(X), whole)
    weights = cut(WEIGHTS, CUTS["uneven"])
    assert found.score(parts, labels, weights).compute() == local.score(X, Y, WEIGHTS)
    assert found.score(X, Y) == local.score(X, Y)


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_survival(pair):
    y = np.empty(N, [("event", bool), ("time", float)])
    y["event"], y["time"] = Z > 0, np.abs(Z)
    model = gf.ExtraSurvivalTrees(5, random_state=0, oob_score=True)
    with pytest.raises(ValueError, match="strategy='rows' cannot do survival forests, whose cur"):
        fitted(model, X, y, strategy="rows")
    found, local = fitted(model, X, y), model.fit(X, y)
    assert_same(found, local)
    assert found.oob_score_ == local.oob_score_
    parts, pairs = cut(X, CUTS["uneven"]), cut(y, CUTS["uneven"])
    assert np.array_equal(found.predict(parts).compute(), local.predict(X))
    for name in ("survival", "cumulative_hazard"):
        method = f"predict_{name}_function"
        lazy, whole = getattr(found, method)(parts), getattr(local, method)(X, return_array=True)
        assert lazy.shape == whole.shape
        assert np.array_equal(lazy.compute(), whole)
        assert np.array_equal(getattr(found, method)(X, True), whole)
    assert found.score(parts, pairs).compute() == local.score(X, y)
    # the second half says that the times are not the causes
    times = np.where(np.arange(N) < N // 2, np.ceil(np.abs(Z)), np.abs(Z))
    unsaid = np.rec.fromarrays([times, 1 * (Z > 0)], names="a,b")
    other, same = fitted(model, X, unsaid), model.fit(X, unsaid)
    assert_same(other, same)
    halves = cut(X, CUTS["uneven"]), cut(unsaid, CUTS["uneven"])
    assert other.score(*halves).compute() == same.score(X, unsaid)
    with pytest.raises(ValueError, match="cause=2 must be an integer from 1 to 1"):
        found.predict_cumulative_incidence_function(parts, cause=2).compute()
    with pytest.raises(ValueError, match="concordance has no weights"):
        found.score(parts, pairs, cut(WEIGHTS, CUTS["uneven"])).compute()


def test_delayed_blocks_and_what_is_no_collection(pair):
    cuts = [(0, 10), (10, 10), (10, N)]
    blocks = [[delayed(a[b:e]) for b, e in cuts] for a in (X, Z)]
    model = gf.ExtraTreesRegressor(3, random_state=0)
    found = on_dask.ExtraTreesRegressor(3, random_state=0).fit(*blocks)
    assert_same(found, model.fit(X, Z))
    assert np.array_equal(found.predict(blocks[0]).compute(), model.predict(X))
    found = on_dask.RandomForestRegressor(3, random_state=0).fit(X, Z)
    assert_same(found, gf.RandomForestRegressor(3, random_state=0).fit(X, Z))


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
    assert_same(found, gf.RandomForestRegressor(2, random_state=0).fit(X, Z))


def test_warm_start_and_verbose(pair, capsys):
    found = fitted(gf.RandomForestRegressor(3, random_state=0, warm_start=True), X, Z)
    sizes = CUTS["even"]
    found.set_params(n_estimators=8).fit(cut(X, sizes), cut(Z, sizes))
    assert_same(found, gf.RandomForestRegressor(8, random_state=0).fit(X, Z))
    found.set_params(n_estimators=11, strategy="rows").fit(cut(X, sizes), cut(Z, sizes))
    whole = gf.RandomForestRegressor(11, random_state=0).fit(X, Z)
    assert_same(found, whole)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        found.fit(cut(X, sizes), cut(Z, sizes))
    assert_same(found, whole)
    with pytest.raises(ValueError, match="n_estimators=5 must be larger or equal"):
        found.set_params(n_estimators=5).fit(cut(X, sizes), cut(Z, sizes))
    fitted(gf.RandomForestRegressor(3, random_state=0, verbose=1), X, Z)
    said = [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()]
    stages = ["reading partitions", "learning bins", "binning", "sharing codes", "growing"]
    assert [f"gpuforest: {stage}" for stage in [*stages, "joining"]] == said[:6]


ROWS, INFINITE = X, X.copy()
INFINITE[700, 2] = np.inf


@pytest.mark.parametrize(("X", "y", "message"), [
    (cut(X, (400, 400)), cut(Z, (800,)), "X has 2 partitions, y has 1"),
    (cut(X, (400, 400)), cut(Z, (300, 500)), "00 rows, y has "),
    (cut(INFINITE, (400, 400)), cut(Z, (400, 400)), "partition 1: Input X contains inf"),
    (cut(X[:0], (0,)), cut(Z[:0], (0,)), "the partitions have no rows"),
    ([delayed(X), delayed(X[:, :3])], [delayed(Z), delayed(Z)],
     "partition 1: X has 3 features, but"),
    ([delayed(frames()[["a", "b"]]), delayed(frames()[["b", "a"]])], [delayed(Z), delayed(Z)],
     "partition 1: The feature names should match"),
    ([delayed(X), delayed(X)], [delayed(Z), delayed(Y)], "partition 1: y holds labels in some"),
])  # fmt: skip
def test_bad_partitions(pair, X, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        on_dask.RandomForestRegressor(2, random_state=0).fit(X, y)
    again = fitted(gf.RandomForestRegressor(2, random_state=0), ROWS, Z)  # the cluster is well
    assert again.forest_.n_trees == 2


def test_no_client_and_no_workers(monkeypatch):
    def none_there():
        raise ValueError("No global client found")

    with monkeypatch.context() as patched:
        patched.setattr("distributed.get_client", none_there)
        with pytest.raises(ValueError, match="there is no dask client: make one"):
            fitted(gf.RandomForestRegressor(2), X, Z)
    with cluster_of(0), pytest.raises(ValueError, match="the cluster has no workers"):
        fitted(gf.RandomForestRegressor(2), X, Z)
    with pytest.raises(TypeError, match="y is a ndarray, but X is a dask collection"):
        on_dask.RandomForestRegressor(2, client=object()).fit(cut(X, (N,)), Z)


@pytest.fixture
def put(monkeypatch):
    """Brings a host array to the device; without a GPU to a stand-in."""
    fake_cupy.install(monkeypatch)
    return sys.modules["cupy"].asarray


def test_partitions_on_a_device_are_summarised_and_encoded_there(put):
    def found(place):
        reader = Reader(255, None, 1, 3)
        block = Block("partition 0", place(X), place(Z), place(WEIGHTS))
        reader = partitions.opened(block, reader)
        return partitions.summarised(block, reader, 0, 2**64 - 1)

    here, there = found(np.asarray), found(put)
    assert np.array_equal(there.sample.rows, here.sample.rows)
    assert len(here.sample.rows) < len(X)  # rows without weight are left out
    reader = Reader(255, None, 1, 3)
    here = Block("partition 0", X)
    reader = partitions.opened(here, reader)
    edges = fit_edges(X)
    expected = partitions.encoded(here, reader, edges, {})
    there = Block("partition 0", put(X))
    fake_cupy.TRANSFERS.clear()
    assert np.array_equal(partitions.encoded(there, reader, edges, {}), expected)
    out = [size for way, size in fake_cupy.TRANSFERS if way == "out"]
    assert max(out) == expected.nbytes < X.nbytes  # the codes, not the values


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "RandomForestRegressor"])
def test_a_score_of_values_on_a_device(put, kind):
    y = Z if kind.endswith("Regressor") else (Y == "yes") + 1
    local = getattr(gf, kind)(3, random_state=0).fit(X, y, WEIGHTS)
    cuts = [slice(0, 300), slice(300, None)]
    blocks = [Block("partition", *(put(a[part]) for a in (X, y, WEIGHTS))) for part in cuts]
    parts = [scored(local, block) for block in blocks]
    assert score_of(local, parts) == local.score(X, y, WEIGHTS)


@pytest.mark.parametrize("strategy", swept(1, ["rows", "trees"]))
@pytest.mark.parametrize("grouped", swept(1, [True, False]))
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alone", "weighted"])
def test_target_statistics(pair, strategy, weights, grouped):
    frame = pd.DataFrame({"town": [f"town {i % 40}" for i in range(N)], "a": X[:, 0]})
    groups = pd.Series(np.arange(N) * 7 % 50) if grouped else None

    def parts(values):
        return None if values is None else dd.from_pandas(values, npartitions=5)

    weight = None if weights is None else pd.Series(weights)
    kept = np.full(N, True) if weights is None else weights > 0
    wanted = {"categorical_split": "ordered_target", "random_state": 2}
    if judges := strategy == "trees":  # rows out of bag are judged without themselves
        wanted["unbiased_importances"] = True
    for name, y in (("RandomForestClassifier", Y), ("RandomForestRegressor", Z)):
        model = getattr(on_dask, name)(4, strategy=strategy, **wanted)
        rows = (parts(values) for values in (frame, pd.Series(y), weight))
        found = model.fit(*rows, groups=parts(groups))
        rows = (v if v is None else v[kept] for v in (frame, pd.Series(y), weight, groups))
        *rows, some = rows
        whole = getattr(gf, name)(4, **wanted).fit(*rows, groups=some)
        assert same_forest(found.forest_, whole.forest_)
        assert found.forest_.edges.statistics == whole.forest_.edges.statistics
        if judges:
            importances = found.unbiased_feature_importances_, whole.unbiased_feature_importances_
            assert np.array_equal(*importances)


@pytest.mark.parametrize("more", [(), ("sample_weight", "groups"), ("instrument",)])
@pytest.mark.filterwarnings("ignore:.* groups have one value")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
def test_effects(pair, more):
    w, given = RNG.integers(0, 2, N) * 1.0, {}
    given = {"sample_weight": WEIGHTS, "groups": np.arange(N) // 3, "instrument": 1 - w}
    given = {name: values for name, values in given.items() if name in more}
    whole = gf.CausalForest(6, random_state=3).fit(X, Z + w, w, **given)
    rows = [cut(values, CUTS["uneven"]) for values in (X, Z + w, w)]
    parts = {name: cut(values, CUTS["uneven"]) for name, values in given.items()}
    found = on_dask.CausalForest(6, random_state=3).fit(*rows, **parts)
    assert_same(found, whole)
    assert np.array_equal(found.oob_effect_, whole.oob_effect_)
    assert found.ate() == whole.ate()
    assert np.array_equal(found.effect(rows[0]).compute(), whole.effect(X))
    for one, other in zip(found.effect_interval(rows[0]), whole.effect_interval(X), strict=True):
        assert np.array_equal(one.compute(), other)
    assert np.array_equal(found.effect(X), whole.effect(X))


@pytest.mark.parametrize(("params", "treatment", "why"), [
    ({"strategy": "rows"}, cut(Z, CUTS["uneven"]), "all rows of a node in one place"),
    ({"model_t": gf.RandomForestRegressor()}, cut(Z, CUTS["uneven"]), "fit the RandomForestReg"),
    ({}, cut(Z, CUTS["even"]), r"treatment has \[200, 200, 200, 200\]: cut both in the same way"),
    ({}, Z, "treatment is a ndarray, but X is a dask collection"),
    ({}, None, "y and the treatment are needed"),
])  # fmt: skip
def test_effects_that_a_cluster_refuses(pair, params, treatment, why):
    X_parts, y = (cut(values, CUTS["uneven"]) for values in (X, Z + 1))
    with pytest.raises((ValueError, TypeError), match=why):
        on_dask.CausalForest(4, model_y=0.0, **params).fit(X_parts, y, treatment)
