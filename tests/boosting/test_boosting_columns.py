"""Features that exclude each other share a column."""

import numpy as np
from boosted import edges_of
from hypothesis import given
from hypothesis import strategies as st

from gpuforest.backends.boosters import columns_of
from gpuforest.engine.binning import BinnedMatrix
from gpuforest.kernels.boosted_tree.records import BoostColumns


def columns(codes: np.ndarray, n_bins: list[int]) -> BoostColumns:
    edges = edges_of(n_bins, [0] * len(n_bins))
    matrix = BinnedMatrix(codes.astype(edges.code_dtype), edges.n_bins, edges)
    stats = np.zeros((len(codes), 1), np.int64)
    return columns_of(matrix, stats)


def decoded(data: BoostColumns, n_bins: list[int], missing: int) -> np.ndarray:
    """The codes [N, F] that columns were made from."""
    out = []
    for f, n in enumerate(n_bins):
        column, first, rest = (int(a[f]) for a in (data.column, data.first, data.rest))
        if data.starts[column + 1] - data.starts[column] == 1:
            own = data.codes[column].astype(int)
        else:
            others = [code for code in range(n + 1) if code != rest]
            own = np.full(data.codes.shape[1], rest)
            for i, code in enumerate(others):
                own[data.codes[column] == first + i] = code
        out.append(np.where(own == n, missing, own))
    return np.column_stack(out)


def test_a_one_hot_encoding_by_hand():
    """A number, and three features of which one is 1; the last row lacks the second of these.

    rest     0       0       0
    codes    a = 1   b = 1   c = 1   none
             0       2       4       6        and one more each where it is missing
    """
    missing = 4
    codes = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [2, 0, 0, 1], [3, 0, 0, 0], [0, 0, missing, 0]])
    data = columns(codes, [4, 2, 2, 2])
    assert data.starts.tolist() == [0, 1, 4]
    assert data.codes.tolist() == [[0, 1, 2, 3, 0], [0, 2, 4, 6, 3]]
    assert data.first.tolist() == [0, 0, 2, 4]
    assert data.rest[1:].tolist() == [0, 0, 0]
    assert data.cells.tolist() == [0, 5, 8, 11, 14]


@given(st.data())
def test_codes_are_those_of_the_matrix(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    n_bins = data.draw(st.lists(st.sampled_from([2, 3, 60, 120, 200]), min_size=1, max_size=6))
    N, F, missing = data.draw(st.integers(1, 50)), len(n_bins), edges_of(n_bins, [0] * len(n_bins))
    codes = np.column_stack([rng.integers(0, n, N) for n in n_bins])
    codes[rng.random((N, F)) < 0.2] = missing.missing_code
    rest = rng.integers(0, 2, F)
    chosen = rng.integers(0, F, N)[:, None] == np.arange(F)
    codes = np.where(chosen | (rng.random(F) < 0.2), codes, rest)
    found = columns(codes, n_bins)
    assert np.array_equal(decoded(found, n_bins, missing.missing_code), codes)
    assert found.cells[-1] == sum(n_bins) + F
