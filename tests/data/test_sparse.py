"""Sparse X: the forest of the dense array, without ever making it."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from engine import same_forest

import gpuforest as gf
from gpuforest.growing import edges

FORMATS = [
    sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array,
    sp.lil_matrix, sp.dok_array, sp.bsr_array,
]  # fmt: skip
RNG = np.random.default_rng(0)
DENSE = np.where(RNG.random((150, 6)) < 0.4, RNG.normal(size=(150, 6)).round(2), 0)
HOLES = np.where(RNG.random(DENSE.shape) < 0.2, np.nan, DENSE)  # stored NaN is missing
Y = (DENSE[:, 0] + DENSE[:, 1] + RNG.normal(size=150) / 3 > 0).astype(int)


def grown(X):
    return gf.RandomForestClassifier(3, random_state=0).fit(X, Y)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_forest_of_the_dense_array(kind):
    for X in (DENSE, HOLES):
        dense, sparse = grown(X), grown(kind(X))
        assert same_forest(sparse.forest_, dense.forest_)
        assert sparse.n_features_in_ == 6
        for method in ("predict", "predict_proba", "apply"):
            ways = product((dense, sparse), (X, kind(X)))
            found = [getattr(model, method)(rows) for model, rows in ways]
            assert all(np.array_equal(found[0], other) for other in found[1:])
        assert sparse.score(kind(X), Y) == dense.score(X, Y)
        paths = [model.decision_path(kind(X))[0].toarray() for model in (dense, sparse)]
        assert np.array_equal(*paths)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint16, np.float32, np.float64])
def test_every_dtype(dtype):
    X = np.abs(DENSE * 10).astype(dtype)
    dense = grown(X)
    assert same_forest(grown(sp.csr_array(X)).forest_, dense.forest_)
    assert dense.forest_.n_nodes > 20


@pytest.mark.parametrize("model", [
    gf.RandomForestRegressor(3, random_state=0),
    gf.ExtraTreesClassifier(3, random_state=0, bootstrap=True, oob_score=True),
    gf.DecisionTreeRegressor(random_state=0),
    gf.RandomTreesEmbedding(3, random_state=0),
    gf.BaggingRegressor(n_estimators=3, max_features=0.5, random_state=0),
], ids=lambda model: type(model).__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_every_estimator_and_weights(model):
    weights = np.where(RNG.random(150) < 0.3, 0, RNG.random(150))
    both = (DENSE, sp.csr_matrix(DENSE))
    assert same_forest(*(model.fit(X, Y, sample_weight=weights).forest_ for X in both))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.coo_array, sp.csc_array])
def test_values_of_a_repeated_position_add_up(kind):
    once = sp.coo_array(DENSE)
    row, column = once.coords
    order = RNG.permutation(2 * once.nnz)
    halves = np.tile(once.data / 2, 2)[order]
    positions = np.tile(row, 2)[order], np.tile(column, 2)[order]
    twice = sp.coo_array((halves, positions), DENSE.shape)
    if kind is not sp.coo_array:
        major, minor = positions if kind is sp.csr_array else positions[::-1]
        by_major = np.argsort(major, kind="stable")
        starts = np.searchsorted(major[by_major], np.arange(DENSE.shape[kind is sp.csc_array] + 1))
        twice = kind((halves[by_major], minor[by_major], starts), DENSE.shape)
    assert twice.nnz == 2 * once.nnz
    assert same_forest(grown(twice).forest_, grown(DENSE).forest_)
    assert twice.nnz == 2 * once.nnz  # it is left as it was


def test_stored_zeros_and_read_only_unsorted_indices_of_64_bits():
    X = sp.csr_array(DENSE)
    for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.data[begin:end], X.indices[begin:end] = (
            a[begin:end][::-1].copy() for a in (X.data, X.indices)
        )
    X = sp.csr_array((X.data, X.indices, X.indptr), DENSE.shape)
    X.data[::3] = 0  # stored zeros are zeros
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert not X.has_sorted_indices
    before = X.indices.copy()
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    model = grown(X)
    dense = X.toarray()
    assert same_forest(model.forest_, grown(dense).forest_)
    assert np.array_equal(model.predict(X), model.predict(dense))
    assert np.array_equal(X.indices, before)


def test_infinities_complex_numbers_and_other_widths_are_refused():
    dense = DENSE.copy()
    dense[70, 4] = -np.inf
    model = grown(sp.csr_array(DENSE))
    for call, X, message in (
        (grown, sp.csr_matrix(dense), "contains infinity: column 4"),
        (model.predict, sp.coo_array(dense), "contains infinity: column 4"),
        (model.predict, sp.csr_array(DENSE + 1j), "Complex data"),
        (model.predict, sp.csr_array(DENSE[:, :5]), "5 features"),
    ):
        with pytest.raises(ValueError, match=message):
            call(X)


def few_values(seed, n_rows, n_columns, density):
    rng, n = np.random.default_rng(seed), int(density * n_rows * n_columns)
    where = rng.integers(0, n_rows, n), rng.integers(0, n_columns, n)
    return sp.csr_array((rng.random(n), where), shape=(n_rows, n_columns))


@pytest.mark.parametrize("max_bins", [5, 1000])
def test_blocks_and_samples_change_nothing(monkeypatch, backend, max_bins):
    X = few_values(1, 400, 30, 0.2)
    y = RNG.integers(0, 3, 400)
    params = {"max_bins": max_bins, "random_state": 1, "backend": backend}
    whole = gf.RandomForestClassifier(2, **params).fit(X.toarray(), y)
    monkeypatch.setattr(edges, "BLOCK_VALUES", 30 * 7)
    blocks = gf.RandomForestClassifier(2, **params).fit(X, y)
    assert same_forest(blocks.forest_, whole.forest_)
    assert np.array_equal(blocks.predict_proba(X), whole.predict_proba(X.toarray()))


def test_many_columns_take_little_memory(monkeypatch):
    n_rows, n_columns = 200, 20_000
    X = few_values(2, n_rows, n_columns, 2e-4)
    y = (X[:, :2000].sum(axis=1) > 0).astype(int)
    monkeypatch.setattr(edges, "BLOCK_VALUES", 2**18)
    model = gf.RandomForestClassifier(1, max_depth=2, max_features=50, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # codes take a byte a value, and are there twice at the most; a dense float32 takes four
    assert peak < 3 * n_rows * n_columns
    assert model.n_features_in_ == n_columns
