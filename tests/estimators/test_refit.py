"""A fit replaces the model of an estimator when it has succeeded, and not before; equal fits are
equal pickles."""

import pickle
from functools import wraps
from threading import Thread

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

import gpuforest as gf
from gpuforest.common import progress
from gpuforest.estimators import base, trees
from gpuforest.estimators.fit_scope import replacing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
OTHER = RNG.normal(size=(50, 2)), RNG.integers(0, 3, 50)
FEW = {"random_state": 0, "backend": "numpy"}


def forests():
    few = {"n_estimators": 3, **FEW}
    for name in ("RandomForest", "ExtraTrees"):
        for task in ("Classifier", "Regressor"):
            yield getattr(gf, name + task)(20, bootstrap=True, oob_score=True, **FEW)
        yield getattr(gf, name + "QuantileRegressor")(**few)
    yield gf.RandomForestRegressor(warm_start=True, **few)
    yield gf.RandomTreesEmbedding(**few)
    yield gf.IsolationForest(contamination=0.1, **few)
    for task in ("Classifier", "Regressor"):
        tree = getattr(gf, "DecisionTree" + task)
        yield tree(**FEW)
        yield tree(ccp_alpha="cv", ccp_cv=3, **FEW)
        yield getattr(gf, "Bagging" + task)(tree(**FEW), n_estimators=3, random_state=0)
        yield getattr(gf, "AdaBoost" + task)(n_estimators=3, **FEW)
        boosting = getattr(gf, "HistGradientBoosting" + task)
        yield boosting(max_iter=3, early_stopping=True, **FEW)
        yield boosting(max_iter=3, warm_start=True, **FEW)


def others():
    yield gf.BaggingClassifier(LogisticRegression(), n_estimators=3, random_state=0)
    yield gf.BaggingRegressor(Ridge(), n_estimators=3, random_state=0, warm_start=True)
    yield gf.AdaBoostClassifier(GaussianNB(), n_estimators=3, random_state=0)
    yield gf.BorutaSelector(
        gf.RandomForestClassifier(3, **FEW), max_iter=2, importance="impurity", random_state=0
    )


def name_of(model):
    return type(model).__name__


def interrupted(model, X, y):
    """Interrupt a fit at each report of its progress, one after another."""
    at = 0
    while True:
        left = at

        def stop(stage, done, total):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt

        try:
            with progress.also(stop):
                model.fit(X, y)
            return
        except KeyboardInterrupt:
            yield
        at += 1


def held(model):
    """What an estimator holds; the same objects, and the same members of lists."""
    return {n: [*map(id, v)] if isinstance(v, list) else id(v) for n, v in vars(model).items()}


def refused(model):
    """Data that a fit refuses, some of them late."""
    yield X[:, :0], Y
    yield X[:, 0], Y
    if not hasattr(model, "transform") and name_of(model) != "IsolationForest":
        yield X[:5], Y
        yield X, np.where(Y, np.nan, 1.0)


@pytest.mark.parametrize("model", [*forests()], ids=name_of)
def test_a_fit_that_is_refused_or_interrupted_leaves_the_model(model):
    model.fit(X, Y)
    X2, y2 = OTHER
    if getattr(model, "warm_start", False):
        X2, y2 = X, Y
        model.set_params(**{"max_iter" if hasattr(model, "max_iter") else "n_estimators": 5})
    before, kept = held(model), dict(vars(model))
    for bad in refused(model):
        with pytest.raises(ValueError, match=r"y|1D array|feature"):
            model.fit(*bad)
        assert held(model) == before
    stops = 0
    for _ in interrupted(model, X2, y2):
        assert held(model) == before
        stops += 1
    assert stops > 3
    assert all(vars(model)[n] is not kept[n] for n in ("forest_", "_training_"))


@pytest.mark.parametrize("model", [*others()], ids=name_of)
def test_other_estimators_are_kept_too(model, monkeypatch):
    model.fit(X, Y)
    if getattr(model, "warm_start", False):
        model.set_params(n_estimators=6)
    before, kept = held(model), dict(vars(model))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[:5], Y)
    assert held(model) == before
    part, calls = type(model.estimator), 0
    fit = part.fit

    @wraps(fit)
    def stopping(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(part, "fit", stopping)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert held(model) == before
    model.fit(X, Y)
    assert vars(model).keys() == kept.keys()
    assert held(model) != before


def test_a_first_fit_that_fails_leaves_the_parameters():
    model = gf.BaggingClassifier(max_samples=None)
    given = dict(vars(model))

    def fails_half_way():
        with replacing(model) as fitted:
            # as where scikit-learn's bags before 1.9 get what None means
            fitted.max_samples, fitted.forest_ = 1.0, None
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails_half_way()
    assert vars(model) == given


def test_an_interrupted_warm_start_of_others_adds_nothing():
    class Late(list):
        def __iadd__(self, others):
            super().__iadd__(others)
            raise KeyboardInterrupt

    model = gf.BaggingRegressor(Ridge(), n_estimators=3, random_state=0, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=5)
    model.__dict__["estimators_features_"] = Late(model.estimators_features_)
    before = held(model)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert held(model) == before
    model.__dict__["estimators_features_"] = [*model.estimators_features_]
    whole = clone(model).fit(X, Y)
    assert np.array_equal(model.fit(X, Y).predict(X), whole.predict(X))


@pytest.mark.parametrize("model", [*forests(), *others()], ids=name_of)
def test_nothing_of_an_earlier_model_is_left(model):
    names = [f"column {i}" for i in range(3)]
    pandas = pytest.importorskip("pandas")
    new = clone(model).fit(X, Y)
    model.set_params(**{n: False for n in ("warm_start",) if hasattr(model, n)})
    model.fit(pandas.DataFrame(X, columns=names), Y)
    assert model.feature_names_in_.tolist() == names
    for each in (model, new):
        if name_of(each) != "BorutaSelector" and hasattr(each, "feature_importances_"):
            each.feature_importances_  # noqa: B018 - it is kept
    assert vars(model.fit(X, Y)).keys() == vars(clone(model).fit(X, Y)).keys()


@pytest.mark.parametrize("model", [*forests()], ids=name_of)
def test_equal_fits_are_equal_pickles(model):
    first, second = clone(model).fit(X, Y), clone(model).fit(X, Y)
    assert pickle.dumps(first) == pickle.dumps(second)
    assert joblib.hash(first) == joblib.hash(second)
    assert joblib.hash(first) != joblib.hash(clone(model).fit(X + 1, Y))


def test_pruning_that_is_interrupted_leaves_the_tree(monkeypatch):
    model = gf.DecisionTreeClassifier(**FEW).fit(X, Y)
    before = held(model)

    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trees.pruning, "cut", stop)
        with pytest.raises(KeyboardInterrupt):
            model.prune(X, Y)
    assert held(model) == before
    assert hasattr(model.prune(X, Y), "pruning_curve_")


@pytest.mark.parametrize("name", ["RandomForestClassifier", "RandomForestQuantileRegressor"])
def test_predictions_while_another_thread_fits(name, monkeypatch):
    """The second model comes between the check of a table and its walk."""
    model = getattr(gf, name)(3, **FEW).fit(X, Y)
    expected, check = model.predict(X), base.validation.check_table
    wide = np.hstack([RNG.normal(size=(60, 4)), X])

    def checked(estimator, table, backend):
        found = check(estimator, table, backend)
        thread = Thread(target=model.fit, args=(wide, Y + 1))
        thread.start()
        thread.join()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(base.validation, "check_table", checked)
        assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(model.predict(wide), clone(model).fit(wide, Y + 1).predict(wide))
