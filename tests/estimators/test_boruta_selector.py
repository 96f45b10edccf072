"""BorutaSelector: what it finds, on all kinds of tables, and the same on every backend."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gpuforest as gf
from gpuforest.backends.registry import available_backends

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 8)).round(1)
Y = (X[:, 2] + X[:, 5] > 0).astype(int)
FOREST = gf.RandomForestClassifier(15, max_depth=4)
LABELS = np.array(["no", "yes"])


@parametrize_with_checks([gf.BorutaSelector(gf.RandomForestClassifier(5), max_iter=2)], legacy=True)
@pytest.mark.filterwarnings("ignore")  # the checks warn on purpose
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("importance", ["oob_impurity", "impurity", "oob_permutation"])
def test_one_seed_gives_one_selection_on_every_backend(importance):
    found = []
    for backend in ("numpy", "numba") if "numba" in available_backends() else ("numpy",):
        forest = clone(FOREST).set_params(backend=backend)
        selector = gf.BorutaSelector(forest, importance=importance, random_state=3)
        found.append(selector.fit(X, Y))
        assert found[-1].get_support(indices=True).tolist() == [2, 5]
    first, last = found[0], found[-1]
    assert np.array_equal(first.importance_history_, last.importance_history_, equal_nan=True)
    assert np.array_equal(first.shadow_max_, last.shadow_max_)
    assert np.array_equal(first.ranking_, last.ranking_)


def test_ranks():
    found = gf.BorutaSelector(FOREST, random_state=0).fit(X, Y)
    assert found.n_features_ == 2
    assert (found.ranking_ == 1).tolist() == found.support_.tolist()
    assert (found.ranking_ == 2).tolist() == found.support_weak_.tolist()
    assert found.ranking_[~found.support_].min() >= 2
    few = gf.BorutaSelector(FOREST, max_iter=3, random_state=0).fit(X, Y)
    assert few.support_weak_.all()  # three rounds decide nothing
    assert few.n_iter_ == 3
    assert set(few.ranking_) == {2}


def test_numbers_and_other_forests():
    forest = gf.RandomForestRegressor(15, max_depth=4, monotonic_cst=[0, 0, 1, 0, 0, 1, 0, 0])
    found = gf.BorutaSelector(forest, random_state=0).fit(X, X[:, 2] + X[:, 5])
    assert found.get_support(indices=True).tolist() == [2, 5]
    bag = gf.BaggingClassifier(gf.DecisionTreeClassifier(max_depth=4), 15)
    found = gf.BorutaSelector(bag, random_state=0).fit(X, LABELS[Y])
    assert found.get_support(indices=True).tolist() == [2, 5]


def test_nothing_to_find():
    found = gf.BorutaSelector(FOREST, random_state=0).fit(X, RNG.integers(0, 2, 240))
    assert not found.support_.any()
    with pytest.warns(UserWarning, match="No features were selected"):
        assert found.transform(X).shape == (240, 0)


def test_binned_data_and_constant_columns():
    table = np.column_stack([X, np.ones(240)])
    data = gf.BinnedData.from_blocks([(table, Y)], random_state=3)
    one = gf.BorutaSelector(FOREST, random_state=3).fit(data)
    other = gf.BorutaSelector(FOREST, random_state=3).fit(table, Y)
    assert np.array_equal(one.importance_history_, other.importance_history_, equal_nan=True)
    assert one.ranking_[8] > 2  # rejected


def test_frames_with_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X[:, :5], columns=list("abcde"))
    frame["colour"] = np.array(["red", "green", "blue"])[RNG.integers(0, 3, 240)]
    frame["place"] = np.array(["east", "west"])[RNG.integers(0, 2, 240)]
    y = (frame["colour"] == "red") ^ (frame["c"] > 0.5)
    frame.loc[RNG.random(240) < 0.2, "c"] = np.nan
    forest = gf.RandomForestClassifier(25, max_features=0.5)
    found = gf.BorutaSelector(forest, random_state=0).set_output(transform="pandas").fit(frame, y)
    assert found.get_feature_names_out().tolist() == ["c", "colour"]
    assert found.transform(frame).equals(frame[["c", "colour"]])
    assert found.feature_names_in_.tolist() == list(frame)
    chained = make_pipeline(clone(found), clone(forest)).fit(frame, y)
    assert chained[-1].feature_names_in_.tolist() == ["c", "colour"]


def test_importances_that_need_no_bags():
    whole = gf.RandomForestClassifier(15, bootstrap=False, max_depth=4)
    found = gf.BorutaSelector(whole, importance="impurity", random_state=0).fit(X, Y)
    assert found.support_[[2, 5]].all()


def test_the_package_finds_the_same():
    boruta = pytest.importorskip("boruta", reason="Boruta is not installed")
    theirs = boruta.BorutaPy(TheirForest(max_depth=4), n_estimators=15, random_state=1, max_iter=40)
    theirs.fit(X, Y)
    mine = gf.BorutaSelector(FOREST, max_iter=40, random_state=0).fit(X, Y)
    assert mine.support_.tolist() == theirs.support_.tolist()
    for name in ("support_weak_", "ranking_", "n_features_", "importance_history_"):
        assert np.ndim(getattr(mine, name)) == np.ndim(getattr(theirs, name))
