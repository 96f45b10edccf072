"""Rows that leave or join: the forest is that of a fit with the other rows, node by node."""

import sys

import numpy as np
import pytest
from engine import same_forest
from paths import has_numba
from sklearn.base import clone
from sweeps import swept

import gpuforest as gf
from gpuforest.backends import rows as rows_of
from gpuforest.backends.numpy import NumpyBackend
from gpuforest.backends.rows import chosen
from gpuforest.estimators import kept
from gpuforest.growing import bags

N = 300
BACKENDS = ["numpy", *["numba"] * has_numba]
KINDS = [
    (gf.RandomForestClassifier, {}),
    (gf.RandomForestClassifier, {"max_depth": 4, "criterion": "entropy"}),
    (gf.RandomForestClassifier, {"max_leaf_nodes": 9, "class_weight": {0: 2, 1: 1, 2: 1}}),
    (gf.RandomForestRegressor, {"max_features": 1.0}),
    (gf.RandomForestRegressor, {"min_samples_leaf": 5, "shrinkage": 2.0}),
    (gf.RandomForestRegressor, {"max_samples": 0.5, "monotonic_cst": [1, 0, 0, 0, 0]}),
    (gf.RandomForestRegressor, {"criterion": "poisson"}),
    (gf.ExtraTreesClassifier, {"min_samples_leaf": 3}),
    (gf.ExtraTreesRegressor, {"categorical_features": [2]}),
    (gf.RandomForestClassifier, {"categorical_features": [2, 3]}),
]


def table(seed):
    """Rows of few values, so that bin edges hardly ever move; some are missing, and many equal."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (2 * N, 5)) * 1.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[[10, 20, 400], 3] = 9  # a rare category
    y = (np.nan_to_num(X[:, 0]) + rng.integers(0, 3, 2 * N)).clip(0, 7)
    y[:2] = 0, 7
    return rng, X, y, rng.permutation(10 * N)[: 2 * N]


def assert_same(found, whole, X):
    assert same_forest(found.forest_, whole.forest_)
    assert np.array_equal(found.row_ids_, whole.row_ids_)
    assert np.array_equal(found.predict(X), whole.predict(X))
    if hasattr(whole, "oob_score_"):
        assert found.oob_score_ == whole.oob_score_


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "params"), KINDS)
@pytest.mark.parametrize("seed", swept(1, [*range(25)]))
@pytest.mark.filterwarnings("ignore:the rows move .* all trees grow anew")
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_rows_leave_and_join(kind, params, seed, backend):
    rng, X, y, ids = table(seed)
    y = np.digitize(y, [2, 5]) if hasattr(kind, "predict_proba") else y
    weight = rng.integers(1, 4, 2 * N) * 1.0 if seed % 2 else None
    how = {"n_estimators": 5, "random_state": seed, "bootstrap": "poisson", "backend": backend}
    held = np.arange(N)

    def rows(at):
        return X[at], y[at], None if weight is None else weight[at]

    def fitted(at):
        return kind(**how | params, oob_score=True).fit(*rows(at), row_ids=ids[at])

    forest = fitted(held)
    for n in (1, 1, 7):
        gone = rng.choice(held[2:], n, replace=False)
        forest.delete(ids[gone], *rows(held))
        held = held[~np.isin(held, gone)]
        assert_same(forest, fitted(held), X)
        new = rng.choice(np.setdiff1d(np.arange(2 * N), held), n, replace=False)
        held = np.concatenate([held, new])
        forest.insert(ids[new], *rows(held))
        assert_same(forest, fitted(held), X)


KEPT = [
    (gf.RandomForestClassifier, {"min_samples_leaf": 3}, 1),
    (gf.RandomForestRegressor, {"max_features": 1.0}, 1),
    (gf.RandomForestRegressor, {"shrinkage": 2.0, "max_features": 2}, 1),
    (gf.ExtraTreesRegressor, {"min_samples_leaf": 5}, 2),
    (gf.ExtraTreesClassifier, {"categorical_features": [2, 3]}, 1),
    (gf.RandomForestClassifier, {"categorical_features": [2], "criterion": "entropy"}, 1),
    (gf.RandomForestClassifier, {"max_samples": 0.7, "class_weight": {0: 2, 1: 1, 2: 1}}, 1),
    (gf.RandomForestClassifier, {"max_depth": 6}, 2),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "params", "n_outputs"), KEPT)
@pytest.mark.parametrize("seed", swept(1, [*range(25)]))
def test_kept_rows_leave_and_join(kind, params, n_outputs, seed, backend, monkeypatch):
    """Without the other rows, where blocks hold few rows and upper nodes many."""
    monkeypatch.setattr(kept, "FEWEST_KEPT", 8)
    monkeypatch.setattr(rows_of, "LEARNED_FROM", 20)
    rng, X, y, ids = table(seed)
    y = np.digitize(y, [2, 5]) if hasattr(kind, "predict_proba") else y
    y = np.stack([y, np.nan_to_num(X[:, 1]) // 3], axis=1) if n_outputs == 2 else y
    weight = rng.integers(1, 4, 2 * N) * 1.0 if seed % 2 else None
    how = {"n_estimators": 4, "random_state": seed, "bootstrap": "poisson", "backend": backend}

    def rows(at):
        return X[at], y[at], None if weight is None else weight[at]

    def fitted(at, **options):
        return kind(**how | params).fit(*rows(at), row_ids=ids[at], **options)

    held, n_changes = np.arange(N), 0
    forest = fitted(held, keep_bytes=10**8)
    assert (forest._kept_.upper.below > 0).sum() > 20
    for n in (1, 1, 9, 1, 30):
        for join in (False, True):
            pool = np.setdiff1d(np.arange(2 * N), held) if join else held
            some = rng.choice(pool, n, replace=False)
            refused = None
            try:
                forest.insert(ids[some], *rows(some)) if join else forest.delete(ids[some])
            except ValueError as error:
                refused = str(error)
            if refused:
                assert "all trees grow anew: pass X and y of all rows" in refused
                assert_same(forest, fitted(held), X)
                continue
            assert not chosen(forest.seed_, ids[some].astype(np.uint64), N).any()
            held = np.concatenate([held, some]) if join else held[~np.isin(held, some)]
            assert_same(forest, fitted(held), X)
            n_changes += 1
    assert n_changes > 2
    assert 0 < forest.kept_bytes_ < 10**8
    arrays = [array for kept in forest._kept_.upper.kept if kept is not None for array in kept]
    assert all(array.base is None for array in arrays)  # no part of a larger one, which would stay


@pytest.mark.parametrize("backend", BACKENDS)
def test_trees_without_the_rows_stay(backend, recwarn):
    """A row that no tree counts changes nothing but what is known of rows."""
    _, X, y, ids = table(0)
    forest = gf.RandomForestClassifier(2, bootstrap="poisson", max_samples=0.2, backend=backend)
    forest.set_params(random_state=0).fit(X, y, row_ids=ids)
    before = forest.forest_
    drawn = bags.draw_bags(forest._sampling_, forest.seed_, 0, 2, NumpyBackend())
    free = np.flatnonzero((drawn == 0).all(axis=0))[2:3]
    forest.delete(ids[free], X, y)
    assert same_forest(forest.forest_, before)
    assert ids[free][0] not in forest.row_ids_
    assert not [w for w in recwarn if "grow anew" in str(w.message)]


def test_what_moves_an_edge_grows_anew():
    _, X, y, ids = table(1)
    X[5, 0] = 99
    forest = gf.RandomForestRegressor(3, bootstrap="poisson", random_state=0).fit(X, y, row_ids=ids)
    with pytest.warns(UserWarning, match="the rows move bin edges, so all trees grow anew"):
        forest.delete(ids[5], X, y)
    rest = np.arange(len(X)) != 5
    again = gf.RandomForestRegressor(3, bootstrap="poisson", random_state=0)
    assert_same(forest, again.fit(X[rest], y[rest], row_ids=ids[rest]), X)


@pytest.mark.parametrize(("change", "why"), [
    (lambda f, X, y, ids: f.delete([-7, ids[0]], X, y), "1 of 2 row_ids are no rows of the fit"),
    (lambda f, X, y, ids: f.delete([ids[0]] * 2, X, y), "row_ids must all differ"),
    (lambda f, X, y, ids: f.delete(ids, X, y), "are all rows of the fit"),
    (lambda f, X, y, ids: f.delete(ids[0], X[1:], y[1:]), f"X must have {2 * N} rows"),
    (lambda f, X, y, ids: f.delete([], X, y), "row_ids are empty: name one row or more"),
    (lambda f, X, y, ids: f.delete([0.5], X, y), "row_ids must be 1 integers"),
    (lambda f, X, y, ids: f.delete(ids[y == 7], X, y), r"are the last of class \[7.0\]"),
    (lambda f, X, y, ids: f.insert([-7], X, y), f"X must have {2 * N + 1} rows"),
    (lambda f, X, y, ids: f.insert(ids[0], np.vstack([X, X[:1]]), y), "are rows of the fit al"),
    (lambda f, X, y, ids: f.insert(-1, np.vstack([X, X[:1]]), [*y, 8]), r"bring the new class \[8"),
    (lambda f, X, y, ids: f.delete(ids[0]), "or fit with keep_bytes, which keeps what this needs"),
    (lambda f, X, y, ids: f.set_params(n_estimators=9).delete(ids[0], X, y), "n_estimators ch"),
])  # fmt: skip
def test_bad_input_leaves_the_forest_as_it_was(change, why):
    _, X, y, ids = table(2)
    forest = gf.RandomForestClassifier(3, bootstrap="poisson", random_state=0)
    before = forest.fit(X, y, row_ids=ids).forest_
    with pytest.raises(ValueError, match=why):
        change(forest, X, y, ids)
    assert forest.forest_ is before
    assert np.array_equal(forest.row_ids_, ids)
    with pytest.raises(ValueError, match="fit with bootstrap='poisson'"):
        gf.RandomForestClassifier(3).fit(X, y).delete(0, X, y)
    with pytest.raises(ValueError, match="add_rows has changed the trees since their fit"):
        forest.add_rows(X, y).delete(ids[0], X, y)


@pytest.mark.parametrize("keep_bytes", [0, 10**7])
def test_no_row_leaves_when_parameters_have_changed(keep_bytes, tmp_path, monkeypatch):
    """Other trees would grow beside the ones that are there. Where a fit runs may change."""
    monkeypatch.setattr(rows_of, "LEARNED_FROM", 20)
    _, X, y, ids = table(2)
    options = {"row_ids": ids, "keep_bytes": keep_bytes}
    forest = gf.RandomForestClassifier(2, bootstrap="poisson", random_state=0).fit(X, y, **options)
    forest.set_params(max_depth=3, class_weight={0: 2})
    rows = () if keep_bytes else (X, y)
    for change in (lambda: forest.delete(ids[5], *rows), lambda: forest.influence(X[:1], X=X, y=y)):
        with pytest.raises(
            ValueError, match="class_weight, max_depth changed since the trees grew"
        ):
            change()
    before = forest.forest_
    forest.set_params(max_depth=None, class_weight=None, n_jobs=1, backend="numpy")
    forest.delete(ids[5], *rows).delete(ids[6], *(part[ids != ids[5]] for part in rows))
    assert forest.forest_ is not before
    # trees that grow later from other parameters, and files
    grown = clone(forest).fit(X, y).set_params(warm_start=True, n_estimators=4, max_depth=3)
    with pytest.raises(ValueError, match="max_depth changed"):
        grown.fit(X, y).delete(5, X, y)
    grown = clone(forest).fit(X, y).set_params(warm_start=True, n_estimators=4).fit(X, y)
    grown.save(tmp_path / "forest")
    loaded = gf.load(tmp_path / "forest")
    assert_same(loaded.delete(5, X, y), grown.delete(5, X, y), X)
    with pytest.raises(ValueError, match="max_depth changed"):
        loaded.set_params(max_depth=3).delete(5, X[1:], y[1:])


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_functions_and_generators_as_parameters():
    """Nothing can be compared of a function, and a generator's state changes."""
    _, X, y, _ = table(2)
    how = {"n_estimators": 3, "bootstrap": "poisson", "oob_score": lambda y, found: 0.5}
    forest = gf.RandomForestClassifier(random_state=np.random.RandomState(0), **how).fit(X, y)
    seeded = (
        clone(forest)
        .set_params(random_state=forest.seed_)
        .fit(X[1:], y[1:], row_ids=[*range(1, 2 * N)])
    )
    assert_same(forest.delete(0, X, y), seeded, X)
    with pytest.raises(ValueError, match="n_estimators, random_state changed since the trees grew"):
        seeded.set_params(random_state=np.random.RandomState(0), n_estimators=4).delete(
            1, X[1:], y[1:]
        )


def test_rows_match_the_digest_of_a_proof():
    """A model with a proof knows its rows: others are refused, and no forest comes of them."""
    _, X, y, ids = table(3)
    here, new = np.arange(N), [N]
    for change, passed in (("delete", here), ("insert", np.r_[here, new])):
        forest = gf.RandomForestClassifier(3, bootstrap="poisson", random_state=0)
        before = forest.fit(X[here], y[here], row_ids=ids[here]).forest_
        gf.prove(forest, X[here], y[here], row_ids=ids[here])
        which = ids[new] if change == "insert" else ids[:1]
        swapped = passed.copy()
        swapped[[1, 2]] = swapped[[2, 1]]
        other = y[passed].copy()
        other[5] += 1
        for rows, target in ((swapped, y[swapped]), (passed, other)):
            with pytest.raises(ValueError, match="do not match the digest of the data in proof_"):
                getattr(forest, change)(which, X[rows], target)
            assert forest.forest_ is before
        getattr(forest, change)(which, X[passed], y[passed])
        assert not hasattr(forest, "proof_")


def interrupting(call, at):
    """Interrupt a call at the start of a function of the package; returns how many started."""
    started = 0

    def count(frame, event, _):
        nonlocal started
        if event == "call" and "gpuforest" in frame.f_code.co_filename:
            started += 1
            if started == at:
                raise KeyboardInterrupt

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return started


@pytest.mark.parametrize("keep_bytes", [0, 10**8])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_leaves_the_forest_as_it_was(backend, keep_bytes, monkeypatch):
    monkeypatch.setattr(rows_of, "LEARNED_FROM", 60)
    monkeypatch.setattr(kept, "FEWEST_KEPT", 8)
    _, X, y, ids = table(3)

    def fitted():
        forest = gf.RandomForestRegressor(3, bootstrap="poisson", random_state=0, backend=backend)
        return forest.fit(X, y, row_ids=ids, keep_bytes=keep_bytes)

    def delete(forest):
        return forest.delete(gone, *(() if keep_bytes else (X, y)))

    gone = ids[~chosen(fitted().seed_, ids.astype(np.uint64), len(ids))][:3]
    delete(fitted())  # loads kernels
    forest, other = fitted(), fitted()
    n, before = interrupting(lambda: delete(other), -1), forest.digest_
    assert n > 50
    for at in np.linspace(1, 0.95 * n, 20).astype(int).tolist():
        with pytest.raises(KeyboardInterrupt):
            interrupting(lambda at=at: delete(forest), at)
        assert forest.digest_ == before != other.digest_
        assert np.array_equal(forest.row_ids_, ids)
    assert delete(forest).digest_ == other.digest_


def test_binned_data_leave_a_forest_that_keeps_tables(monkeypatch):
    """Their bins are known, so no row moves any; and their codes stay as they are."""
    monkeypatch.setattr(kept, "FEWEST_KEPT", 8)
    _, X, y, ids = table(3)
    y = np.digitize(y, [2, 5])
    data = gf.BinnedData.from_blocks([(X, y)])
    codes = data.by_feature.copy()

    def fitted(at, **options):
        forest = gf.RandomForestClassifier(3, bootstrap="poisson", random_state=0)
        return forest.fit(data.take(at), y[at], row_ids=ids[at], **options)

    forest = fitted(np.arange(N), keep_bytes="1GB")
    forest.delete(ids[:20])
    assert_same(forest, fitted(np.arange(20, N)), X)
    forest.insert(ids[N:], X[N:], y[N:])
    assert_same(forest, fitted(np.arange(20, 2 * N)), X)
    assert np.array_equal(data.by_feature, codes)
    with pytest.raises(ValueError, match="fit binned data with keep_bytes"):
        forest.delete(ids[30], data, y)


def test_what_fits_cannot_keep():
    _, X, y, _ = table(3)
    forest = gf.RandomForestRegressor(2, bootstrap="poisson", random_state=0)
    with pytest.raises(ValueError, match="keep_bytes=1000 is too little: the rows of 2 trees take"):
        forest.fit(X, y, keep_bytes=1000)
    for params in ({"oob_score": True}, {"monotonic_cst": [1, 0, 0, 0, 0]}, {"max_leaf_nodes": 5}):
        with pytest.raises(ValueError, match="keep_bytes"):
            gf.RandomForestRegressor(2, bootstrap="poisson", **params).fit(X, y, keep_bytes="1GB")
    with pytest.raises(ValueError, match="set bootstrap='poisson'"):
        gf.RandomForestRegressor(2).fit(X, y, keep_bytes="1GB")
    assert forest.fit(X, y).kept_bytes_ == 0


def test_rows_judged_by_blocks_do_not_leave():
    """Their score would be computed without the blocks."""
    _, X, y, _ = table(3)
    forest = gf.RandomForestRegressor(9, bootstrap="poisson", oob_score=True, random_state=0)
    forest.fit(X, y, blocks=np.arange(2 * N) // 60)
    with pytest.raises(ValueError, match="are judged by blocks of time"):
        forest.delete(5, X, y)
