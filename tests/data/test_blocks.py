"""Tables in blocks: what is a source, and files that are read by blocks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from engine import same_forest
from pyarrow import parquet
from sklearn.base import clone

import gpuforest as gf
from gpuforest import BinnedData, RandomForestClassifier, predict_blocks
from gpuforest.data import blocks
from gpuforest.data.blocks import Blocks

N = 1000
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "a": RNG.normal(size=N).astype(np.float32), "b": RNG.integers(-9, 9, N),
    "c": RNG.choice(["v", "w", None], N), "w": RNG.integers(1, 3, N) / 2,
    "y": RNG.choice(["no", "yes"], N),
})  # fmt: skip
PARTS = {"target": "y", "sample_weight": "w"}


@pytest.fixture
def forest():
    X = FRAME[["a", "b", "c"]]
    return RandomForestClassifier(3, random_state=0).fit(X, FRAME.y, FRAME.w).forest_


def fitted(source, **parts):
    data = BinnedData.from_blocks(source, random_state=0, **{**PARTS, **parts})
    return RandomForestClassifier(3, random_state=0).fit(data).forest_


def test_parquet_files(tmp_path, monkeypatch, forest):
    monkeypatch.setattr(blocks, "ROWS", 64)
    for i, (begin, end) in enumerate([(0, 300), (300, 300), (300, 301), (301, N)]):
        FRAME[begin:end].to_parquet(tmp_path / f"p{i}.parquet", row_group_size=50)
    files = sorted(tmp_path.iterdir())
    for source in (tmp_path, str(tmp_path / "*.parquet"), files):
        assert Blocks(source).n_rows == N
        assert same_forest(fitted(source), forest)
    assert same_forest(fitted(pyarrow.dataset.dataset(files)), forest)


@pytest.mark.parametrize("name", ["groups", "blocks"])
def test_groups_and_blocks_of_time(tmp_path, name):
    names = np.array([f"label {g:03}" for g in RNG.integers(0, 90, N)])
    X, numbers = FRAME[["a", "b"]], np.unique(names, return_inverse=True)[1]
    model = RandomForestClassifier(25, oob_score=True, random_state=0)
    whole = clone(model).fit(X, FRAME.y, FRAME.w, **{name: names})
    frame = FRAME.drop(columns="c").assign(g=names)
    frame.to_parquet(tmp_path / "file.parquet")
    cuts = [slice(0, 300), slice(300, 301), slice(301, N)]
    skipped = (None,) * (name == "blocks")
    tuples = [(X[s], FRAME.y[s], FRAME.w[s], *skipped, numbers[s]) for s in cuts]
    named = {**PARTS, {"groups": "groups", "blocks": "time"}[name]: "g"}
    for source, how in (
        (tmp_path / "file.parquet", named), ([frame[s] for s in cuts], named),
        (tuples, {"path": tmp_path / "saved"}),
    ):  # fmt: skip
        data = BinnedData.from_blocks(source, random_state=0, **how)
        assert np.array_equal(getattr(data, name), numbers)
        found = clone(model).fit(data)
        assert same_forest(found.forest_, whole.forest_)
        assert found.oob_score_ == whole.oob_score_
    loaded = BinnedData.load(tmp_path / "saved")
    assert np.array_equal(getattr(loaded, name), numbers)
    assert np.array_equal(getattr(loaded.take(np.arange(5)), name), numbers[:5])
    # labels that are passed take their place, and other estimators take none
    other = clone(model).fit(loaded, **{name: numbers // 2})
    sampling = other._sampling_ if name == "groups" else other._judges_[1]
    assert len(set(getattr(sampling, name))) == 45
    with pytest.raises(ValueError, match="groups and blocks judge rows in two ways"):
        model.fit(replace(loaded, groups=numbers, blocks=numbers))
    for model, y in (
        (gf.AdaBoostRegressor(n_estimators=2, random_state=0), FRAME.b),
        (gf.IsolationForest(n_estimators=3, random_state=0), None),
        (gf.DecisionTreeClassifier(random_state=0), None),
    ):
        without = clone(model).fit(replace(loaded, **{name: None}), y)
        one = replace(loaded, **{name: 0 * numbers})
        assert same_forest(model.fit(one, y).forest_, without.forest_)


def test_tables_in_memory_and_categories_in_other_orders(forest, tmp_path):
    table = pa.Table.from_pandas(FRAME)
    assert same_forest(fitted(table.to_batches(max_chunksize=130)), forest)
    assert same_forest(fitted([table]), forest)
    assert same_forest(fitted(lambda: (FRAME[i : i + 99] for i in range(0, N, 99))), forest)
    levels = pd.CategoricalDtype(["w", "v", "u"], ordered=True)
    X = FRAME[["a", "c"]].astype({"c": levels})
    data = BinnedData.from_blocks([X[:500], X[500:]])
    assert data.edges.categories == {1: ("w", "v")}
    data = BinnedData.from_blocks([X[:500], X[500:].astype({"c": object})])
    assert data.edges.categories == {1: ("v", "w")}


def test_folders_are_columns(tmp_path):
    for year in (2020, 2021):
        (tmp_path / f"year={year}").mkdir()
        FRAME.to_parquet(tmp_path / f"year={year}" / "part.parquet")
    data = BinnedData.from_blocks(tmp_path, drop=["c"], **PARTS)
    assert data.feature_names == ["a", "b", "year"]
    assert data.edges.threshold(np.array([2]), np.array([0])).tolist() == [2020.5]


def test_csv_files(tmp_path, monkeypatch):
    """The second file has fractions where the first has whole numbers, or nothing."""
    monkeypatch.setattr(blocks, "CSV_BYTES", 4000)
    whole = FRAME.assign(d=np.where(np.arange(N) < 400, np.nan, 0.5), b=FRAME.b * 1.0)
    whole.loc[600:, "b"] += 0.5
    whole[:400].astype({"b": int}).to_csv(tmp_path / "1.csv", index=False)
    whole[400:].to_csv(tmp_path / "2.csv.gz", index=False)
    found = fitted([tmp_path / "1.csv", tmp_path / "2.csv.gz"])
    X = pd.concat(pd.read_csv(f) for f in sorted(tmp_path.iterdir()))
    model = RandomForestClassifier(3, random_state=0)
    model.fit(X[["a", "b", "c", "d"]], X.y, X.w)
    assert same_forest(found, model.forest_)


def test_files_that_cannot_be_read_and_rows_that_are_refused_are_named(tmp_path, monkeypatch):
    good, bad, text = (tmp_path / name for name in ("1.parquet", "2.parquet", "3.csv"))
    FRAME.to_parquet(good, row_group_size=100)
    with pytest.raises(FileNotFoundError, match="no such file"):
        BinnedData.from_blocks([good, bad])
    content = bytearray(good.read_bytes())
    bad.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"2\.parquet"):
        BinnedData.from_blocks([good, bad], **PARTS)
    content[200:2000] = bytes(1800)  # pages of the first columns
    bad.write_bytes(content)
    with pytest.raises(ValueError, match=r"2\.parquet cannot be read"):
        BinnedData.from_blocks([good, bad], **PARTS, path=tmp_path / "data")
    assert not (tmp_path / "data").exists()
    text.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"3\.csv cannot be read"):
        BinnedData.from_blocks(text)
    monkeypatch.setattr(blocks, "ROWS", 400)
    parquet.write_table(
        pa.table({"a": np.where(np.arange(N) == 900, np.inf, 0)}), tmp_path / "p.pq"
    )
    for source, target, message in (
        (tmp_path / "p.pq", None, r"p\.pq, rows 800 to 999: Input X contains infinity"),
        (tmp_path / "p.pq", "y", r"p\.pq, rows 0 to 399: no column of the name 'y'"),
        ([np.zeros((2, 2))], "y", "name columns, but the block is no frame"),
    ):
        with pytest.raises(ValueError, match=message):
            BinnedData.from_blocks(source, target=target)


def test_predictions_by_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "ROWS", 300)
    X = FRAME[["a", "b", "c"]]
    model = RandomForestClassifier(3, random_state=0).fit(X, FRAME.y)
    FRAME[["y", "c", "b", "a"]].to_parquet(tmp_path / "p.parquet")
    for method in ("predict", "predict_proba", "apply"):
        found = list(predict_blocks(model, tmp_path / "p.parquet", method))
        assert [len(part) for part in found] == [300, 300, 300, 100]
        assert np.array_equal(np.concatenate(found), getattr(model, method)(X))
    found = predict_blocks(model, iter([X[:0], X[:5], X[5:]]))
    assert np.array_equal(np.concatenate(list(found)), model.predict(X))
    with pytest.raises(ValueError, match="block 0: no column of the name 'c'"):
        next(predict_blocks(model, [FRAME[["a", "b"]]]))
