"""min_samples_leaf="oob", also beside max_features="oob"; what holds of the word "oob" anywhere."""

import pickle

import numpy as np
import pytest
from engine import same_forest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification

import gpuforest as gf
from gpuforest.backends.registry import get_backend
from gpuforest.estimators.out_of_bag import FIRST_TREES
from gpuforest.growing.bags import draw_bags
from gpuforest.tools.cli.main import main

IRIS = load_iris(return_X_y=True)
NUMBERS = load_diabetes(return_X_y=True)
COUNTS = NUMBERS[0], np.maximum(np.round(NUMBERS[1] / 40) - 2, 0)
# 6 of 30 features say something, and a fifth of the labels are wrong
NOISY = make_classification(300, 30, n_informative=6, n_redundant=0, flip_y=0.2, random_state=0)
FEW = NOISY[0][:90, :9], NOISY[1][:90]  # for NumPy's backend, which is slow
TWO = FEW[0], np.stack([FEW[1], FEW[1] + (FEW[0][:, 0] > 0)], axis=1)
GIVEN = {"bootstrap": True, "random_state": 2}
BOTH = {"max_features": "oob", "min_samples_leaf": "oob", **GIVEN}


def loss_of_many_trees(model, X, losses):
    """Twice the loss of all trees, less the mean of those of the halves, tree by tree."""
    values = [getattr(tree, "predict_proba", tree.predict)(X) for tree in model.estimators_]
    values = np.array(values).reshape(FIRST_TREES, len(X), -1)
    bags = draw_bags(model._sampling_, model.seed_, 0, FIRST_TREES, get_backend("numpy"))

    def loss(part):
        out = bags[part] == 0
        return losses((values[part] * out[:, :, None]).sum(axis=0), out.sum(axis=0)[:, None]).mean()

    first, second, every = slice(0, 24), slice(24, 48), slice(0, 48)
    return 2 * loss(every) - (loss(first) + loss(second)) / 2


def log_losses(y, weights=1):
    """A function of sums and counts; as if one more tree gave all classes the same share."""

    def losses(sums, counts):
        shares = (sums + 1 / sums.shape[1]) / (counts + 1)
        return weights / np.mean(weights) * -np.log(shares[np.arange(len(y)), y])

    return losses


def squares(y):
    return lambda sums, counts: (y - (sums / counts)[:, 0]) ** 2


def absolute(y):
    return lambda sums, counts: abs(y - (sums / counts)[:, 0])


def deviances(y):
    def losses(sums, counts):
        mean = ((sums + y.mean()) / (counts + 1))[:, 0]
        return 2 * (np.where(y > 0, y * np.log(np.maximum(y, 1) / mean), 0) - y + mean)

    return losses


RANDOM, EXTRA = gf.RandomForestClassifier, gf.ExtraTreesRegressor
HEAVY = {0: 1, 1: 7}


@pytest.mark.parametrize(("kind", "data", "losses", "params"), [
    (RANDOM, IRIS, log_losses(IRIS[1]), {}),
    (RANDOM, NOISY, log_losses(NOISY[1], np.where(NOISY[1], 7, 1)), {"class_weight": HEAVY}),
    (EXTRA, NUMBERS, squares(NUMBERS[1]), {}),
    (EXTRA, NUMBERS, absolute(NUMBERS[1]), {"criterion": "absolute_error", "max_depth": 5}),
    (gf.RandomForestRegressor, COUNTS, deviances(COUNTS[1]), {"criterion": "poisson"}),
], ids=["classes", "weights", "squares", "absolute", "counts"])  # fmt: skip
def test_the_loss_is_that_of_many_trees(kind, data, losses, params):
    found = kind(60, **BOTH, **params).fit(*data)
    tried = found.oob_parameters_
    pairs = list(zip(tried.max_features.tolist(), tried.min_samples_leaf.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    best = int(tried.error.argmin())
    assert pairs[best] == (found.max_features_, found.min_samples_leaf_)
    for at in {0, best, len(pairs) - 1}:
        some = dict(zip(("max_features", "min_samples_leaf"), pairs[at], strict=True))
        small = kind(FIRST_TREES, **GIVEN, **params, **some).fit(*data)
        expected = loss_of_many_trees(small, data[0], losses)
        assert tried.error[at] == pytest.approx(expected, rel=1e-9)
    some = dict(zip(("max_features", "min_samples_leaf"), pairs[best], strict=True))
    plain = kind(60, **GIVEN, **params, **some).fit(*data)
    assert same_forest(found.forest_, plain.forest_)
    assert found.estimators_[0].min_samples_leaf == pairs[best][1]


def test_noise_asks_for_larger_leaves():
    alone = gf.RandomForestRegressor(5, min_samples_leaf="oob", random_state=0).fit(*NUMBERS)
    assert (alone.n_estimators_, alone.max_features_) == (5, 3)
    assert alone.min_samples_leaf_ > 1
    assert set(alone.oob_parameters_.max_features) == {3}
    few = gf.RandomForestClassifier(min_samples_leaf="oob", random_state=0).fit([[0], [1]], [0, 1])
    assert few.oob_parameters_.min_samples_leaf.tolist() == [1]


CATEGORIES = {"categorical_features": [0], "max_bins": 255}


@pytest.mark.parametrize(("kind", "data", "params"), [
    (gf.RandomForestClassifier, TWO, {}),
    (gf.RandomForestClassifier, FEW, {"class_weight": "balanced_subsample"}),
    (gf.ExtraTreesClassifier, FEW, {"voting": "hard", "n_estimators": "auto"}),
    (gf.RandomForestRegressor, (np.round(NUMBERS[0] * 50), NUMBERS[1]), CATEGORIES),
    (gf.RandomForestQuantileRegressor, NUMBERS, {"max_samples": 0.5}),
], ids=["outputs", "balanced", "hard", "categories", "quantiles"])  # fmt: skip
def test_every_backend_finds_the_same(backend, kind, data, params):
    params = {"n_estimators": FIRST_TREES + 2, "max_depth": 4, "oob_tol": 0.1} | params
    model = kind(**BOTH, **params, backend=backend).fit(*data)
    same = kind(**BOTH, **params, backend="numpy").fit(*data)
    assert same_forest(model.forest_, same.forest_)
    for name, column in same.oob_parameters_.items():
        assert np.array_equal(model.oob_parameters_[name], column)
    chosen = {name: getattr(same, f"{name}_") for name in ("max_features", "min_samples_leaf")}
    plain = kind(**GIVEN | params | chosen, backend="numpy").fit(*data)
    assert same_forest(plain.forest_, same.forest_)


EACH = pytest.mark.parametrize("by_oob", [{**GIVEN, "max_features": "oob"}, BOTH], ids=range(2))


@EACH
def test_a_sparse_table_and_more_trees(by_oob):
    X = csr_matrix(IRIS[0])
    forest = gf.RandomForestClassifier(4, warm_start=True, **by_oob).fit(X, IRIS[1])
    forest.set_params(n_estimators=60).fit(X, IRIS[1])
    same = gf.RandomForestClassifier(60, **by_oob).fit(*IRIS)
    assert same_forest(forest.forest_, same.forest_)


@EACH
def test_what_was_found_lasts(by_oob, tmp_path):
    forest = gf.RandomForestClassifier("auto", oob_tol=0.05, oob_score=True, **by_oob).fit(*NOISY)
    names = ["n_estimators", "max_features", "min_samples_leaf"]
    tables = ["oob_curve_", "oob_parameters_" if by_oob is BOTH else "oob_max_features_"]
    forest.save(tmp_path / "model")
    for other in (gf.load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        for table in tables:
            for name, column in getattr(forest, table).items():
                assert np.array_equal(getattr(other, table)[name], column)
        for name in names:
            assert getattr(other, name) == getattr(forest, name) == getattr(clone(forest), name)
            assert getattr(other, f"{name}_", 0) == getattr(forest, f"{name}_", 0)
        assert same_forest(other.forest_, forest.forest_)
    theirs = forest.to_sklearn()
    assert all(getattr(theirs, n) == getattr(forest, f"{n}_", 1) for n in names)
    rows = NOISY[0].astype(np.float32)
    assert np.array_equal(theirs.predict(rows), forest.predict(rows))
    forest.set_params(n_estimators=3, max_features=2, min_samples_leaf=4, oob_score=False)
    forest.fit(*NOISY)
    assert not any(hasattr(forest, name) for name in [*tables, "oob_score_"])
    assert (forest.n_estimators_, forest.max_features_, forest.min_samples_leaf_) == (3, 2, 4)


@pytest.mark.parametrize(("name", "others"), [
    ("max_features", [gf.DecisionTreeClassifier, gf.BaggingClassifier]),
    ("min_samples_leaf", [
        gf.DecisionTreeClassifier, gf.RandomTreesEmbedding, gf.HistGradientBoostingClassifier,
        lambda **leaf: gf.BaggingClassifier(gf.DecisionTreeClassifier(**leaf)),
    ]),
])  # fmt: skip
def test_the_word_needs_bags(name, others):
    with pytest.raises(ValueError, match=f"{name}='oob' needs bootstrap=True: no row"):
        gf.ExtraTreesClassifier(**{name: "oob"}).fit(*IRIS)
    for kind in others:
        with pytest.raises(ValueError, match=f"The '{name}' parameter of"):
            kind(**{name: "oob"}).fit(*IRIS)


def test_tools_know_the_word(tmp_path):
    sizes = {"n_samples": 1000, "n_features": 10, "backend": "numpy"}
    for same, given in (
        ({}, {"min_samples_leaf": "oob"}), ({}, {"max_features": "oob"}),
        ({"n_estimators": 30}, {"n_estimators": "auto", "max_estimators": 30}),
    ):  # fmt: skip
        found = gf.estimate_memory(gf.RandomForestRegressor(**given), **sizes)
        assert found == gf.estimate_memory(gf.RandomForestRegressor(**same), **sizes)
    header = ",".join([*"abcdefghij", "y"])
    path, table = str(tmp_path / "table.csv"), np.column_stack([*NUMBERS])
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    words = ["--min-samples-leaf", "oob", "--n-estimators", "50", "--random-state", "0"]
    main(["train", path, "--target", "y", *words, "--out", str(tmp_path / "model")])
    assert gf.load(tmp_path / "model").min_samples_leaf_ > 1
    pytest.importorskip("distributed", reason="needs pip install 'gpuforest[checks]'")
    from gpuforest.tools.dask.training import shares_trees

    assert not shares_trees(gf.RandomForestRegressor(min_samples_leaf="oob"))
