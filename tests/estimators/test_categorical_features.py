"""Estimators of categories: all kinds, on all backends, saved and loaded."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from category_columns import (
    COLOURS,
    NUMBERS,
    SORTED,
    Y,
    frame_of,
)
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import gpuforest
from gpuforest import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomTreesEmbedding,
)
from gpuforest.backends import get_backend
from gpuforest.data.validation import check_table
from gpuforest.engine.binning import CATEGORICAL, bin_matrix

# estimators


@pytest.mark.parametrize(
    "make",
    [
        lambda **p: DecisionTreeRegressor(**p),
        lambda **p: ExtraTreesRegressor(3, **p),
        lambda **p: RandomForestClassifier(3, oob_score=True, **p),
        lambda **p: BaggingClassifier(DecisionTreeClassifier(**p), 3),
        lambda **p: RandomTreesEmbedding(3, **p),
    ],
)
@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
def test_all_estimators_take_them(make, tmp_path):
    X = frame_of(pd.Series(NUMBERS))
    model = make(categorical_features=["a"])
    assert not hasattr(model, "is_categorical_")
    model = clone(model).fit(X, Y)
    assert model.is_categorical_.tolist() == [True, False]
    model.save(tmp_path / "model")
    other = gpuforest.load(tmp_path / "model")
    assert other.is_categorical_.tolist() == [True, False]
    assert other.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    for copied in (other, pickle.loads(pickle.dumps(model))):
        assert copied.forest_.edges.categories == {0: (1.0, 2.0, 3.0)}
        assert np.array_equal(copied.apply(X), model.apply(X))
    assert all(
        t.is_categorical_.tolist() == [True, False] for t in getattr(model, "estimators_", [])
    )
    assert make().fit(X, Y).is_categorical_ is None


def test_set_output_and_scores():
    X = frame_of(pd.Series(COLOURS))
    trees = RandomTreesEmbedding(2, sparse_output=False).set_output(transform="pandas")
    assert list(trees.fit_transform(X)) == trees.get_feature_names_out().tolist()
    tree = DecisionTreeClassifier().fit(X, Y)
    assert tree.score(X, Y) == 1
    assert len(tree.cost_complexity_pruning_path(X, Y).ccp_alphas) > 1


def test_warm_start_needs_the_same_categories():
    X = frame_of(pd.Series(COLOURS))
    forest = RandomForestClassifier(2, warm_start=True, random_state=0).fit(X, Y)
    whole = RandomForestClassifier(4, random_state=0).fit(X, Y)
    forest.set_params(n_estimators=4).fit(X, Y)
    assert np.array_equal(forest.forest_.nodes, whole.forest_.nodes)
    forest.set_params(n_estimators=5)
    for other in (X.replace("red", "rot"), X.assign(a=[SORTED.index(c or "") for c in COLOURS])):
        with pytest.raises(ValueError, match="X or y has other values now"):
            forest.fit(other, Y)


def test_monotonic_constraints_are_for_numbers():
    X = frame_of(pd.Series(COLOURS))
    message = "Categorical features cannot have monotonic constraints: set that of column 'a'"
    with pytest.raises(ValueError, match=message):
        DecisionTreeRegressor(monotonic_cst=[1, 0]).fit(X, Y)
    tree = DecisionTreeRegressor(monotonic_cst=[1, 0])
    with pytest.raises(ValueError, match="constraints: set that of column 0 in"):
        tree.set_params(categorical_features=[0]).fit(np.column_stack([Y, Y]), Y)
    DecisionTreeRegressor(monotonic_cst=[0, 1]).fit(X, Y)


@pytest.mark.parametrize("container", ["csr_matrix", "csc_array"])
def test_sparse_x_has_no_categories(container):
    import scipy.sparse

    X = getattr(scipy.sparse, container)(np.column_stack([Y, Y]).astype(float))
    message = re.escape("categorical features of sparse X are not supported: pass X.toarray()")
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier(categorical_features=[0]).fit(X, Y)
    model = DecisionTreeClassifier(categorical_features=[0]).fit(X.toarray(), Y)
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_scikit_learns_trees_have_no_categories():
    model = DecisionTreeClassifier().fit(frame_of(pd.Series(COLOURS)), Y)
    with pytest.raises(ValueError, match="scikit-learn's trees have no categorical features"):
        model.to_sklearn()


def test_memory_knows_of_many_categories():
    X = (np.arange(2000) % 1000)[:, None]
    bins = DecisionTreeRegressor(max_bins=1001, memory_limit=1)
    few = DecisionTreeRegressor(categorical_features=[0], min_category_frequency=1, memory_limit=1)
    with pytest.raises(ValueError, match="memory_limit") as as_bins:
        bins.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="memory_limit") as as_categories:
        few.fit(X, X[:, 0])
    assert str(as_bins.value) == str(as_categories.value)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(categorical_features=[0]),
        ExtraTreesRegressor(3, categorical_features=[0]),
    ],
)
@pytest.mark.filterwarnings("ignore")  # the checks warn on purpose
def test_scikit_learns_own_checks_with_a_category(estimator):
    failing = {
        "check_estimator_sparse_array": "sparse X with categories is refused",
        "check_estimator_sparse_matrix": "sparse X with categories is refused",
        "check_estimator_sparse_tag": "sparse X with categories is refused",
        "check_sample_weight_equivalence_on_sparse_data": "sparse X with categories is refused",
    }
    check_estimator(estimator, expected_failed_checks=failing)


# backends and real data


def test_backends_have_the_same_codes():
    X = frame_of(pd.Series(COLOURS)).assign(c=NUMBERS)
    codes = []
    for name in ("numpy", "numba"):
        model, engine = DecisionTreeClassifier(backend=name).fit(X, Y), get_backend(name)
        edges = model.forest_.edges
        assert edges.kinds.tolist() == [CATEGORICAL, 0, 0]
        found = bin_matrix(check_table(model, X, engine), edges, engine).codes
        codes.append(np.asarray(found)[:, :3])
    assert np.array_equal(*codes)
    assert codes[0][:4, 0].tolist() == [2, 1, edges.missing_code, 0]


@pytest.mark.parametrize(("name", "target"), [("adult_train", "class"), ("mushroom", "label")])
def test_real_data(name, target, tmp_path, shared_data):
    X = pd.read_csv(shared_data / f"{name}.csv.gz", nrows=4000)
    y = X.pop(target)
    train, test = slice(0, None, 2), slice(1, None, 2)
    models = [
        RandomForestClassifier(10, random_state=0, backend=b).fit(X[train], y[train])
        for b in ("numpy", "numba")
    ]
    assert np.array_equal(models[0].forest_.nodes, models[1].forest_.nodes)
    strings = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    assert [X.columns[f] for f in models[0].forest_.edges.categories] == strings
    assert models[0].score(X[test], y[test]) > 0.8
    models[0].save(tmp_path / "model")
    loaded = gpuforest.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(pl.from_pandas(X)), models[0].predict(X))
