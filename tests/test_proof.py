"""Proofs of origin: digests of forests and rows, models that are grown again, and forgeries."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import refused, told
from sklearn.base import clone

import gpuforest as gf
from gpuforest.cli import main
from gpuforest.export import container, model_file
from gpuforest.proof import drawn_trees

pytestmark = pytest.mark.filterwarnings("ignore:the rows move .* all trees grow anew")
RNG = np.random.default_rng(0)
N = 120
X = pd.DataFrame({"a": RNG.normal(size=N).round(1), "b": RNG.integers(0, 9, N)})
X["c"] = RNG.choice(["x", "y", "ü"], N)
X.loc[5, ["a", "c"]] = np.nan, None
Y = np.where(RNG.normal(X["b"], 3) > 4, "yes", "no")
NUMBER = RNG.normal(X["b"])
WEIGHT, GROUPS = RNG.integers(0, 4, N), RNG.integers(0, 30, N)
C, R, SIZE = gf.RandomForestClassifier, gf.RandomForestRegressor, {"n_estimators": 6}


def digest(rows, ids=None, X=X, y=Y):
    ids = rows if ids is None else ids
    return int(gf.data_digest(X.iloc[rows], y[rows], WEIGHT[rows], row_ids=ids), 16)


def proved(model, y=Y, X=X, **of_rows):
    gf.prove(model.fit(X, y, **of_rows), X, y, **of_rows)
    return model


def test_digests_are_equal_on_all_backends_and_cover_each_part_of_a_forest():
    model = R(**SIZE, random_state=1, backend="numpy").fit(X, NUMBER)
    again = R(**SIZE, random_state=1, backend="numba", n_jobs=2).fit(X, NUMBER)
    assert model.digest_ == again.digest_
    forest, digests = model.forest_, {model.digest_}
    arrays = ("nodes", "tree_offsets", "leaf_sums", "sets")
    changed = [replace(forest, **{n: getattr(forest, n) + np.uint8(1)}) for n in arrays]
    changed += [replace(forest, shrinkage=1.0), replace(forest, multiway=True)]
    changed += [replace(forest, oblique=True), replace(forest, combine="sum")]
    coding, edges = forest.coding, forest.edges
    changed += [replace(forest, coding=replace(coding, scale=coding.scale * 2))]
    changed += [replace(forest, coding=replace(coding, centre=coding.centre + 1))]
    changed += [replace(forest, edges=replace(edges, values=np.nextafter(edges.values, 9)))]
    changed += [replace(forest, edges=replace(edges, kinds=1 - edges.kinds))]
    changed += [replace(forest, edges=replace(edges, categories={2: ("x", "y", "u")}))]
    for other in changed:
        model.forest_ = other
        digests.add(model.digest_)
    assert len(digests) == len(changed) + 1


def test_the_digest_of_data_is_a_sum_over_rows():
    rows, some = np.arange(N), np.array([3, 5, 80])
    rest, whole = np.setdiff1d(rows, some), digest(rows)
    assert whole == digest(rows[::-1]) == int(gf.data_digest(X, Y, WEIGHT), 16)
    assert digest(rest) == (whole - digest(some)) % 2**2048
    assert whole != digest(rows, rows[::-1].copy())


@pytest.mark.parametrize("kind", ["category", "pyarrow", "polars", "array"])
def test_the_digest_is_of_values_and_not_of_their_container(kind):
    other = X.astype({"c": "category"}) if kind == "category" else X
    if kind in ("pyarrow", "polars"):
        library = pytest.importorskip(kind)
        make = library.Table.from_pandas if kind == "pyarrow" else library.from_pandas
        other = make(X.reset_index(drop=True))
    elif kind == "array":
        other = X.to_numpy(object)
    assert gf.data_digest(other, Y.astype(object)) == gf.data_digest(X, Y)


def test_each_value_counts_and_zeros_and_missing_values_have_one_form():
    table = X[["a", "b"]].to_numpy()
    table[0, 0], table[1, 0] = 0.0, np.nan
    same = table.copy()
    same[0, 0] = -0.0
    same[1:2, 0] = np.array([0x7FF8000000000001], np.uint64).view(np.float64)
    assert gf.data_digest(same, NUMBER) == gf.data_digest(table, NUMBER)
    found = {gf.data_digest(table, NUMBER), gf.data_digest(table, NUMBER, WEIGHT)}
    for cell in np.ndindex(3, 2):
        other = table.copy()
        other[cell] = np.nextafter(np.nan_to_num(other[cell]), 99)
        found.add(gf.data_digest(other, NUMBER))
    found.add(gf.data_digest(table, np.nextafter(NUMBER, 99)))
    found.add(gf.data_digest(table, NUMBER, groups=GROUPS))
    found.add(gf.data_digest(table, NUMBER, blocks=GROUPS))
    assert len(found) == 11


MODELS = [
    (C(**SIZE, oob_score=True), Y, {"sample_weight": WEIGHT, "groups": GROUPS}),
    (C(**SIZE, class_weight="balanced_subsample", categorical_split="multiway"), Y, {}),
    (C(**SIZE, monotonic_cst=[0, 1, 0], voting="hard"), Y, {"blocks": GROUPS}),
    (C(**SIZE, categorical_split="ordered_target"), Y, {}),
    (R(**SIZE, max_leaf_nodes=9, shrinkage=2.0), NUMBER, {"sample_weight": WEIGHT}),
    (gf.ExtraTreesRegressor(**SIZE, ccp_alpha=0.01), NUMBER, {}),
    (gf.ExtraTreesClassifier(**SIZE, bootstrap=True, max_samples=0.5), Y, {}),
    (R(**SIZE, max_features="oob", shrinkage="oob"), NUMBER, {}),
    (R("auto", oob_tol=1.0, random_state=np.random.RandomState(0)), NUMBER, {}),
    (gf.DecisionTreeClassifier(ccp_alpha="cv"), Y, {}),
    (gf.DecisionTreeRegressor(), NUMBER, {}),
    (gf.HistGradientBoostingClassifier(max_iter=4), Y, {"sample_weight": WEIGHT}),
    (gf.HistGradientBoostingRegressor(max_iter=30, early_stopping=True), NUMBER, {}),
]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize(("model", "y", "of_rows"), MODELS)
def test_models_are_verified_by_any_backend(model, y, of_rows, tmp_path):
    proved(model, y, **of_rows)
    model.save(tmp_path / "model")
    other = "numpy" if model.backend_ == "numba" else "numba"
    loaded = gf.load(tmp_path / "model").set_params(backend=other)
    found = gf.verify(loaded, X, y, **of_rows)
    assert found.ok, found
    assert len(found.trees) == model.forest_.n_trees
    found = gf.verify(model, X, y, **of_rows, sample=2, salt=7)
    assert found.ok, found
    alone = getattr(model, "n_estimators", None) == 6 and model.shrinkage != "oob"
    assert len({*found.trees}) == (2 if alone else model.forest_.n_trees)
    changed = np.roll(y, 1)
    assert gf.verify(tmp_path / "model", X, changed, **of_rows).differs == ["data"]


def forged(forest, part):
    """A forest with one changed number."""
    if part == "edge":
        values = forest.edges.values.copy()
        values[0] = np.nextafter(values[0], -99)
        return replace(forest, edges=replace(forest.edges, values=values))
    array = getattr(forest, part).copy()
    array.flat[0] ^= array.dtype.type(1 if part == "leaf_sums" else 1 << 32)
    return replace(forest, **{part: array})


@pytest.mark.parametrize("part", ["leaf_sums", "nodes", "edge"])
def test_a_forger_who_writes_the_record_anew_is_found_by_growth(part):
    model = proved(R(**SIZE, random_state=0), NUMBER)
    model.forest_ = forged(model.forest_, part)
    assert gf.verify(model, X, NUMBER).differs == ["forest"]  # the record is the old one
    gf.prove(model, X, NUMBER)
    found = gf.verify(model, X, NUMBER)
    assert found.differs == ["trees"]
    by_salt = [gf.verify(model, X, NUMBER, sample=3, salt=salt) for salt in range(12)]
    assert [one.ok for one in by_salt] == [part != "edge" and 0 not in one.trees for one in by_salt]
    assert len({one.ok for one in by_salt}) == 1 + (part != "edge")


def test_a_forger_of_parameters_or_of_rows_is_found():
    model = proved(C(**SIZE, random_state=0))
    assert gf.verify(model.set_params(max_depth=2), X, Y).differs == ["parameters"]
    gf.prove(model, X, Y)
    assert "trees" in gf.verify(model, X, Y).differs
    model, other = proved(C(**SIZE, random_state=0)), Y.copy()
    other[:9] = "no"
    assert gf.verify(model, X, other).differs == ["data"]
    assert gf.verify(model, X[1:], Y[1:]).differs == ["rows"]
    gf.prove(model, X, other)
    assert "trees" in gf.verify(model, X, other).differs


def mutated(path, to, number, repaired):
    """Change one bit of a file; `repaired`: of its content, with the right checksum."""
    draw = random.Random(number)
    if not repaired:
        data = bytearray(path.read_bytes())
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        to.write_bytes(data)
        return
    text, arrays = container.read(path, model_file.ARRAYS)
    if number % 2:
        at = draw.randrange(len(text))
        text = text[:at] + chr(ord(text[at]) ^ 1 << draw.randrange(7)) + text[at + 1 :]
    else:
        name = draw.choice([name for name, array in arrays.items() if array.size])
        data = bytearray(arrays[name].tobytes())
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        arrays[name] = np.frombuffer(data, arrays[name].dtype).reshape(arrays[name].shape)
    container.write(to, text, arrays)


@pytest.mark.parametrize("repaired", [False, True])
@pytest.mark.parametrize("n", [150, pytest.param(5000, marks=pytest.mark.deep)])
def test_no_changed_file_is_verified(n, repaired, tmp_path):
    few, path, other = slice(0, 40), tmp_path / "model", tmp_path / "other"
    proved(C(3, max_depth=4, random_state=0), Y[few], X[few]).save(path)
    assert gf.verify(path, X[few], Y[few]).ok
    for number in range(n):
        mutated(path, other, number, repaired)
        try:
            found = gf.verify(other, X[few], Y[few])
        except (ValueError, TypeError):  # the file is refused
            continue
        assert not found.ok, number


def test_drawn_trees_are_different_and_any():
    drawn = [drawn_trees("abc", salt, 50, 5) for salt in range(400)]
    assert all(len({*trees}) == 5 and trees == sorted(trees) for trees in drawn)
    counts = np.bincount(np.concatenate(drawn), minlength=50)
    assert counts.min() > 15
    assert counts.max() < 75
    found = np.mean([1 in trees or 2 in trees for trees in drawn])
    assert abs(found - (1 - math.comb(48, 5) / math.comb(50, 5))) < 0.06


@pytest.mark.parametrize(("model", "text"), [
    (gf.BaggingClassifier(n_estimators=2), "it is a BaggingClassifier"),
    (C(2, warm_start=True), "with warm_start=True"),
    (gf.HistGradientBoostingClassifier(max_iter=2, scoring=lambda *_: 0.0), "scoring is an object"),
])  # fmt: skip
def test_what_cannot_be_grown_again_is_refused(model, text):
    with pytest.raises(ValueError, match=f"cannot be grown again: {text}"):
        gf.prove(model.fit(X[["b"]], Y), X[["b"]], Y)


def test_bad_input_gets_one_error(tmp_path):
    model = C(**SIZE).fit(X, Y)
    with pytest.raises(ValueError, match="has no proof"):
        gf.verify(model, X, Y)
    with pytest.raises(ValueError, match="fitted on 120 rows, and X has 119"):
        gf.prove(model, X[1:], Y[1:])
    with pytest.raises(ValueError, match="must all differ"):
        gf.prove(model, X, Y, row_ids=np.zeros(N, int))
    with pytest.raises(TypeError, match="pass the table itself"):
        gf.data_digest(gf.BinnedData.from_blocks([(X, Y)]), Y)
    gf.prove(model, X, Y)
    with pytest.raises(ValueError, match="sample=0 must be"):
        gf.verify(model, X, Y, sample=0)
    with pytest.raises(ValueError, match="y has 119 rows"):
        gf.verify(model, X, Y[1:])
    model.proof_["algorithm"] = 99
    with pytest.raises(ValueError, match="grown by algorithm 99"):
        gf.verify(model, X, Y)
    boosted = proved(gf.HistGradientBoostingClassifier(max_iter=2))
    assert len(gf.verify(boosted, X, Y, sample=1).trees) == 2  # which depend on each other


def test_the_record_after_a_deletion_is_that_of_a_fit_of_the_rest():
    ids, rest = np.arange(N) + 7, np.arange(N) != 4
    model = C(**SIZE, bootstrap="poisson", random_state=0).fit(X, Y, row_ids=ids)
    other = clone(model).fit(X[rest], Y[rest], row_ids=ids[rest])
    rows = {"X": X[rest], "y": Y[rest], "row_ids": ids[rest]}
    assert gf.prove(model.delete(11, X, Y), **rows) == gf.prove(other, **rows)
    assert gf.verify(model, **rows).ok
    assert gf.verify(model, **rows, sample=2).ok
    model = proved(C(**SIZE, random_state=0))
    gf.prove(model, X, Y, row_ids=ids)  # which say nothing to this fit
    assert gf.verify(model, X, Y, row_ids=ids).ok


@pytest.mark.parametrize("change", [
    lambda m: m.fit(X, Y), lambda m: m.refit(X, Y), lambda m: m.add_rows(X, Y),
    lambda m: m + m, lambda m: m.keep_trees([1, 2]), lambda m: m.prune_trees(X, Y),
    lambda m: m.delete(3, X, Y), lambda m: m.delete(3, X, Y).insert(N, X, Y),
    lambda m: m.set_params(warm_start=True, n_estimators=9).fit(X, Y),
])  # fmt: skip
def test_a_model_that_changes_has_no_proof(change):
    model = proved(C(**SIZE, bootstrap="poisson", random_state=0))
    changed = change(model)
    assert not hasattr(changed, "proof_")
    assert (changed is model) or hasattr(model, "proof_")


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X.assign(y=Y, w=WEIGHT, t=GROUPS).to_csv("data.csv", index=False)
    train = ("train", "data.csv", "--target", "y", "--weight", "w", "--proof")
    for more in (("--groups", "t"), ("--time", "t"), ("--drop", "t", "--model", "boosting")):
        assert main([*train, *more, "--out", "model"]) == 0
        found = told(capsys, "verify", "model", "data.csv")
        assert (found["ok"], found["differs"], found["rows"]) == (True, [], N)
    assert main([*train, "--out", "model"]) == 0
    assert told(capsys, "verify", "model", "data.csv", "--sample", "4")["trees"][3] < 100
    X.assign(y=Y, w=WEIGHT, t=GROUPS + 1).to_csv("other.csv", index=False)
    assert main(["verify", "model", "other.csv"]) == 1
    out = capsys.readouterr().out
    assert "differ    the data" in out
    assert "result    NOT VERIFIED" in out
    assert "is a Bagging" in refused(capsys, *train, "--model", "bagging", "--out", "bag")
    assert "--proof is of all rows" in refused(capsys, *train, "--test", "0.2", "--out", "bag")
    assert main([*train[:-1], "--out", "model"]) == 0
    assert "has no proof" in refused(capsys, "verify", "model", "data.csv")
    header = json.loads(container.read(tmp_path / "model", model_file.ARRAYS)[0])
    assert not header["source"].keys() & {"weight", "groups", "time"}


def test_rows_are_deleted_on_the_command_line(tmp_path, monkeypatch, capsys):
    """Weights are those of the training, which the proof names; other rows are refused."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 5},{i % 3},{1 + i % 2},{(i * i) % 7}" for i in range(60)]
    Path("data.csv").write_text("\n".join(["a,b,w,y", *rows]))
    how = ["--n-estimators", "40", "--bootstrap", "poisson", "--weight", "w", "--target", "y"]
    train = ["train", "data.csv", *how, "--task", "classification", "--proof", "--out", "model"]
    assert main(train) == 0
    assert main(["delete", "model", "data.csv", "--rows", "7,9", "--out", "less"]) == 0
    table = np.array([row.split(",") for row in rows], float)
    stays = ~np.isin(np.arange(60), [7, 9])
    given = [table[stays, :2], table[stays, 3].astype(int), table[stays, 2]]
    fresh = gf.RandomForestClassifier(40, bootstrap="poisson", random_state=gf.load("model").seed_)
    fresh.fit(*given, row_ids=np.flatnonzero(stays))
    less = gf.load("less")
    assert np.array_equal(less.forest_.nodes, fresh.forest_.nodes)
    assert np.array_equal(less.forest_.leaf_sums, fresh.forest_.leaf_sums)
    capsys.readouterr()
    Path("other.csv").write_text("\n".join(["a,b,w,y", *rows[:-1], "4,2,2,5"]))
    assert main(["delete", "model", "other.csv", "--rows", "7", "--out", "none"]) == 2
    assert "do not match the digest of the data" in capsys.readouterr().err
    assert not Path("none").exists()
