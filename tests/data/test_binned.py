"""Binned data: the same forest as from the whole table, however it comes in blocks."""

import os
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import is_classifier

import gpuforest as gf
from gpuforest.data import binned, passes
from gpuforest.growing import edges
from gpuforest.growing.edges import bin_matrix

N = 600
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "a": RNG.normal(size=N).astype(np.float32), "b": RNG.integers(0, 40, N),
    "c": RNG.choice(list("vwxyz"), N),
    "d": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
})  # fmt: skip
NUMBERS = FRAME.drop(columns="c").to_numpy()
LABELS = np.where((FRAME.a > 0) ^ (FRAME.c == "x"), "yes", "no")
TARGETS = (FRAME.a * 3 + FRAME.b / 7).to_numpy()
WEIGHTS = RNG.integers(0, 4, N) * 0.3
INFINITE = NUMBERS.copy()
INFINITE[400, 1] = -np.inf
CUTS = st.lists(st.integers(0, N), max_size=5).map(sorted)


def cut(cuts, *parts):
    """The parts in blocks that end at the cuts."""
    ends = [0, *cuts, N]
    return [tuple(p[a:b] for p in parts) for a, b in pairwise(ends)]


@given(cuts=CUTS, seed=st.integers(0, 9), with_weights=st.booleans())
def test_a_frame_in_any_blocks(cuts, seed, with_weights):
    rows = (FRAME, LABELS, WEIGHTS) if with_weights else (FRAME, LABELS)
    forest = gf.RandomForestClassifier(5, random_state=seed, backend="numpy")
    whole = forest.fit(*rows).forest_
    data = gf.BinnedData.from_blocks(cut(cuts, *rows), random_state=seed)
    assert data.shape == FRAME.shape
    found = forest.fit(data)
    assert same_forest(found.forest_, whole)
    assert found.forest_.edges.categories == whole.edges.categories
    assert found.classes_.tolist() == ["no", "yes"]
    assert found.feature_names_in_.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
def test_a_sample_of_the_rows(monkeypatch, weights):
    # as if there were more than 200,000 rows; each of the values would be an edge otherwise
    monkeypatch.setitem(edges.fit_edges.__kwdefaults__, "sample_rows", 50)
    monkeypatch.setattr(passes, "SAMPLE_ROWS", 50)
    rows = (NUMBERS, TARGETS) if weights is None else (NUMBERS, TARGETS, weights)
    whole = gf.ExtraTreesRegressor(3, random_state=4).fit(*rows).forest_
    assert whole.edges.n_bins[0] <= 50
    for cuts in ([], [300], range(1, N, 7)):
        data = gf.BinnedData.from_blocks(cut(cuts, *rows), random_state=4)
        assert same_forest(gf.ExtraTreesRegressor(3, random_state=4).fit(data).forest_, whole), cuts


@pytest.mark.parametrize("model", [
    gf.RandomForestClassifier(30, random_state=0, oob_score=True),
    gf.RandomForestClassifier(4, random_state=0, class_weight="balanced"),
    gf.RandomForestClassifier(4, random_state=0, bootstrap=False, class_weight="balanced"),
    gf.RandomTreesEmbedding(4, random_state=0),
], ids=range(4))  # fmt: skip
def test_estimators(model):
    """Those of other kinds are pairs of test_pairs.py."""
    X = NUMBERS.astype(np.float32)
    y = LABELS if is_classifier(model) else TARGETS
    data = gf.BinnedData.from_blocks(cut([200], X, y), max_bins=getattr(model, "max_bins", "auto"))
    whole = model.fit(X, y)
    forest, score = whole.forest_, getattr(whole, "oob_score_", None)
    found = model.fit(data)
    assert same_forest(found.forest_, forest)
    assert getattr(found, "oob_score_", None) == score


def test_on_a_device(cuda, monkeypatch):
    data, backend = gf.BinnedData.from_blocks([NUMBERS]), cuda.backend()
    for values in (2**26, 100):  # in one block, and in several
        monkeypatch.setattr(binned, "DEVICE_VALUES", values)
        monkeypatch.setattr(edges, "DEVICE_VALUES", values)
        codes = bin_matrix(data, data.edges, backend).codes
        wanted = bin_matrix(NUMBERS, data.edges, backend).codes
        assert (codes.shape, codes.dtype) == (wanted.shape, wanted.dtype)
        codes, wanted = backend.asnumpy(codes), backend.asnumpy(wanted)
        assert np.array_equal(codes[:, :3], wanted[:, :3])


def test_warm_start():
    data = gf.BinnedData.from_blocks(cut([200], NUMBERS, TARGETS), max_bins=255, random_state=0)
    forest = gf.RandomForestRegressor(6, random_state=0, max_bins=255).fit(data)
    again = gf.RandomForestRegressor(2, random_state=0, max_bins=255, warm_start=True).fit(data)
    assert same_forest(again.set_params(n_estimators=6).fit(data).forest_, forest.forest_)
    more = gf.HistGradientBoostingRegressor(max_iter=2, random_state=0, warm_start=True).fit(data)
    whole = gf.HistGradientBoostingRegressor(max_iter=4, random_state=0).fit(data)
    assert same_forest(more.set_params(max_iter=4).fit(data).forest_, whole.forest_)


def test_events_and_times(tmp_path):
    y = np.empty(N, [("event", bool), ("time", float)])
    y["event"], y["time"] = TARGETS > 0, np.abs(TARGETS)
    forest = gf.RandomSurvivalForest(4, random_state=1).fit(NUMBERS, y)
    pairs = pd.DataFrame({"event": y["event"], "time": y["time"]})
    table = pd.concat([pd.DataFrame(NUMBERS), pairs], axis=1)
    table.columns = table.columns.astype(str)
    named = {"target": ("event", "time"), "random_state": 1, "path": tmp_path / "data"}
    arrays = gf.BinnedData.from_blocks(
        [(NUMBERS[:9], y[:9]), (NUMBERS[9:], pairs[9:])], random_state=1
    )
    frames = gf.BinnedData.from_blocks([table[:9], table[9:]], **named)
    turned = gf.BinnedData.from_blocks([table], target=("time", "event"), random_state=1)
    for data in (arrays, frames, turned, gf.BinnedData.load(tmp_path / "data")):
        other = gf.RandomSurvivalForest(4, random_state=1).fit(data)
        assert same_forest(other.forest_, forest.forest_)
        assert np.array_equal(other.unique_times_, forest.unique_times_)


def test_in_a_folder(tmp_path):
    rows = (FRAME, LABELS, WEIGHTS)
    path = tmp_path / "new" / "data"
    written = gf.BinnedData.from_blocks(cut([100], *rows), path=path, random_state=1)
    assert sorted(os.listdir(path.parent)) == ["data"]
    memory = gf.BinnedData.from_blocks(cut([], *rows), random_state=1)
    for found in (written, gf.BinnedData.load(path)):
        assert np.array_equal(found.by_feature, memory.by_feature)
        assert (found.feature_names, found.seed) == (["a", "b", "c", "d"], 1)
        assert found.edges.categories == memory.edges.categories
        assert np.array_equal(found.sample_weight, WEIGHTS)
        forest = gf.RandomForestClassifier(2, random_state=1)
        assert same_forest(forest.fit(found).forest_, forest.fit(memory).forest_)
        assert forest.classes_.dtype == LABELS.dtype
    with pytest.raises(FileExistsError, match="remove it, or pass another path"):
        gf.BinnedData.from_blocks(cut([], *rows), path=path)


def test_what_is_cut_off_leaves_nothing(tmp_path, monkeypatch):
    blocks = cut([100], NUMBERS, TARGETS)
    calls = []

    def failing():
        calls.append(1)
        yield blocks[0]
        if len(calls) == 2:
            raise OSError(28, "No space left on device", "there")
        yield blocks[1]

    with pytest.raises(OSError, match="No space left"):
        gf.BinnedData.from_blocks(failing, path=tmp_path / "data")
    assert os.listdir(tmp_path) == []

    def no_room(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room, raising=False)
    with pytest.raises(OSError, match="No space left"):
        gf.BinnedData.from_blocks(blocks, path=tmp_path / "data")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("damage", ["rest", "codes", "both"])
def test_damaged_folders_do_not_load(tmp_path, damage):
    path = tmp_path / "data"
    gf.BinnedData.from_blocks(cut([], NUMBERS, TARGETS), path=path)
    names = {"rest": [binned.REST], "codes": [binned.CODES], "both": [binned.CODES, binned.REST]}
    for name in names[damage]:
        os.truncate(path / name, os.path.getsize(path / name) // 2)
    with pytest.raises(ValueError, match="holds no binned data"):
        gf.BinnedData.load(path)
    with pytest.raises(FileNotFoundError):
        gf.BinnedData.load(tmp_path / "other")


@pytest.mark.parametrize(("blocks", "message"), [
    ([], "the blocks have no rows"),
    ([(NUMBERS[:0], TARGETS[:0])], "the blocks have no rows"),
    (cut([300], INFINITE, TARGETS), "block 1: Input X contains infinity: column 1, row 100"),
    ([(NUMBERS, TARGETS), (NUMBERS[:, :2], TARGETS)], "block 1: X has 2 features, but"),
    ([FRAME[:9], FRAME[["a", "b", "c"]]], "block 1: The feature names should match"),
    ([FRAME[:9], FRAME[["b", "a", "c", "d"]]], "block 1: The feature names should match"),
    ([FRAME[:9], FRAME.assign(c=1)], "column 'c' mixes strings and numbers"),
    ([FRAME[:9], FRAME.assign(a="x")], "block 1: column 'a' holds String"),
    ([NUMBERS[:9], FRAME.drop(columns="c")], "block 1: some blocks are frames with column names"),
    ([(NUMBERS, TARGETS[:9])], "block 0: X has 600 rows, y has 9"),
    ([(NUMBERS, TARGETS, WEIGHTS[:9])], "block 0: X has 600 rows, sample_weight has 9"),
    ([(NUMBERS, TARGETS), (NUMBERS,)], "block 1: some blocks have y, and others have not"),
    ([(NUMBERS, TARGETS), (NUMBERS, LABELS)], "block 1: y holds labels in some blocks"),
    ([(NUMBERS, TARGETS * np.nan)], "block 0: y contains NaN"),
    ([(NUMBERS, FRAME[["c", "a"]])], "block 0: y must hold one target, or an event and its"),
    ([(NUMBERS, TARGETS.view([("time", float)]))], "y must hold one target, or an event"),
    ([(NUMBERS, pd.DataFrame({"e": WEIGHTS, "t": TARGETS * np.nan}))], "y contains NaN or in"),
    ([(NUMBERS, np.full(N, None))], "block 0: y contains NaN or None"),
    ([(NUMBERS, TARGETS, -WEIGHTS)], "block 0: Negative values in data passed to"),
    ([(NUMBERS, TARGETS, 0 * WEIGHTS)], "Sample weights must contain at least one non-zero"),
    ([(NUMBERS, TARGETS, None, WEIGHTS), (NUMBERS, TARGETS)],
     "block 1: some blocks have groups, and others have not"),
    ([(NUMBERS, TARGETS, None, LABELS[:9])], "block 0: X has 600 rows, groups has 9"),
    ([(NUMBERS, TARGETS, None, TARGETS * np.nan)], "block 0: groups contains NaN"),
    ([(NUMBERS, TARGETS, None, groups) for groups in (LABELS, np.arange(N))],
     "groups holds strings in some blocks, and numbers in others"),
    ([(NUMBERS, TARGETS, None, None, TARGETS * np.nan)], "block 0: blocks contains NaN"),
    ([(NUMBERS, TARGETS, None, None, WEIGHTS), (NUMBERS, TARGETS)],
     "block 1: some blocks have blocks, and others have not"),
    (iter([NUMBERS]), "blocks is an iterator, which gives its blocks only once"),
])  # fmt: skip
def test_bad_blocks(blocks, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        gf.BinnedData.from_blocks(blocks)


def test_sources_that_are_refused():
    for source in (NUMBERS, FRAME, 3):
        with pytest.raises(TypeError, match="blocks"):
            gf.BinnedData.from_blocks(source)
    passes = iter([[NUMBERS], [NUMBERS[:500]], [NUMBERS], [NUMBERS, NUMBERS]])
    for message in ("the second pass over the blocks finds 500 rows", "finds more rows"):
        with pytest.raises(ValueError, match=message):
            gf.BinnedData.from_blocks(lambda: iter(next(passes)))
    for limit, message in (
        (1000, "more than memory_limit=1000: pass path, a folder"),
        ("1kB", "more than memory_limit=1kB: pass path"),
        ("much", "'much' is no number with a unit, such as 500MB"),
    ):
        with pytest.raises(ValueError, match=message):
            gf.BinnedData.from_blocks(cut([], NUMBERS, TARGETS), memory_limit=limit)


def test_only_fit_takes_them_and_with_the_same_parameters():
    data = gf.BinnedData.from_blocks(cut([], FRAME, LABELS), random_state=0)
    forest = gf.RandomForestClassifier(2, random_state=0)
    for model, source, message in (
        (gf.RandomForestClassifier(max_bins=7), data, "max_bins=7 of the estimator, but the data"),
        (gf.RandomForestClassifier(min_category_frequency=1), data, "frequency=1 of the estimator"),
        (gf.RandomForestRegressor(), data, "y must hold real numbers, but the data have labels"),
        (forest, gf.BinnedData.from_blocks([FRAME]), "requires y to be passed"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(source)
    with pytest.raises(TypeError, match="which only fit takes: pass the table"):
        forest.fit(data).predict(data)
    assert same_forest(forest.fit(data, LABELS).forest_, forest.fit(FRAME, LABELS).forest_)


def test_names_of_columns_that_are_no_strings():
    X, y = pd.DataFrame({0: np.arange(9.0), 1: np.arange(9.0)}), np.arange(9) % 2
    for table in (X, gf.BinnedData.from_blocks([(X, y)], random_state=0)):
        assert not hasattr(gf.RandomForestClassifier(2).fit(table, y), "feature_names_in_")


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("split", ["subset", "ordered_target"])
def test_boosting_leaves_the_codes_as_they_are(backend, split):
    # a column of few values, of which some are missing, and one of many
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 9, 300) * 1.0, "c": rng.normal(size=300)})
    frame["b"] = rng.choice([*"xyz"], 300)
    y = frame["a"] + (frame["b"] == "x") + rng.normal(size=300)
    frame.loc[::5, "a"] = np.nan
    given = {"max_bins": 255, "min_category_frequency": 1, "categorical_split": split}
    data = gf.BinnedData.from_blocks([(frame, y)], random_state=0, **given)
    before = data.by_feature.copy()
    model = gf.HistGradientBoostingRegressor(
        max_iter=3, categorical_split=split, random_state=0, backend=backend
    )
    first = model.fit(data).forest_
    assert np.array_equal(data.by_feature, before)
    again = model.set_params(backend="numpy").fit(data).forest_
    assert same_forest(first, again)
