"""max_bins="auto": a bin for each value where every feature has few, else 255."""

import numpy as np
from engine import same_forest

from gpuforest import RandomForestRegressor, estimate_memory
from gpuforest.backends.registry import get_backend
from gpuforest.growing.edges import FEW_VALUES, LOOK_ROWS, MANY_BINS, fit_edges, most_bins


def columns(n_values: int, n_rows: int = 6000) -> np.ndarray:
    """A feature of so many values, and one of three."""
    rows = np.arange(n_rows)
    return np.column_stack([rows * 7 % n_values, rows % 3]).astype(np.float64)


def test_a_bin_for_each_value_up_to_the_limit(backend):
    """As with as many bins as values, or with 255: nothing in between."""
    for n_values, bins in ((255, 255), (256, 256), (FEW_VALUES, FEW_VALUES), (FEW_VALUES + 1, 255)):
        X = columns(n_values)
        found = fit_edges(X, max_bins="auto", backend=get_backend(backend))
        assert found.n_bins.tolist() == [bins, 3]
        assert np.array_equal(found.values, fit_edges(X, max_bins=bins).values)


def test_it_is_the_default():
    X, y = columns(600), np.arange(6000) % 5
    auto = RandomForestRegressor(3, random_state=1).fit(X, y)
    given = RandomForestRegressor(3, random_state=1, max_bins=600).fit(X, y)
    assert auto.max_bins == "auto"
    assert same_forest(auto.forest_, given.forest_)


def test_many_values_are_seen_from_a_few_rows(backend):
    engine = get_backend(backend)
    many, few = columns(FEW_VALUES + 1), columns(FEW_VALUES)
    assert most_bins(many, "auto", None, (), engine) == MANY_BINS
    assert most_bins(few, "auto", None, (), engine) == "auto"
    assert most_bins(few[:LOOK_ROWS], "auto", None, (), engine) == FEW_VALUES
    assert most_bins(many[:FEW_VALUES], "auto", None, (), engine) == FEW_VALUES
    assert most_bins(many, 300, None, (), engine) == 300


def test_values_of_no_weight_do_not_count(backend):
    X = columns(FEW_VALUES + 1)
    weights = (X[:, 0] > 0).astype(np.int32)
    engine = get_backend(backend)
    assert most_bins(X, "auto", weights, (), engine) == "auto"
    found = fit_edges(X, max_bins="auto", weights=weights, backend=engine)
    assert found.n_bins.tolist() == [FEW_VALUES, 3]


def test_categories_do_not_count(backend):
    """They have a bin each whatever the limit is."""
    X, engine = columns(2000), get_backend(backend)
    given = {0: tuple(range(2000))}
    assert most_bins(X, "auto", None, given, engine) == "auto"
    found = fit_edges(X, max_bins="auto", backend=engine, categories=given)
    assert found.n_bins.tolist() == [2001, 3]


def test_devices_follow_the_same_rule(cuda):
    engine = cuda.backend()
    for n_values in (FEW_VALUES, FEW_VALUES + 1):
        X = columns(n_values)
        X[::7] = np.nan
        bins = most_bins(engine.asarray(X), "auto", None, (), engine)
        assert bins == most_bins(X, "auto", None, (), get_backend("numpy"))
        found = fit_edges(engine.asarray(X), max_bins=bins, backend=engine)
        assert np.array_equal(found.values, fit_edges(X, max_bins="auto").values)


def test_memory_is_planned_for_the_codes_that_there_may_be():
    forest = RandomForestRegressor(backend="numpy")
    assert estimate_memory(forest, 1000, 10).codes == 2 * 1000 * 10
    assert estimate_memory(forest, 10_000, 10).codes == 10_000 * 10
