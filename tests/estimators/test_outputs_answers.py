"""Several outputs: the shapes and labels of what their trees answer."""

import numpy as np
import pytest
import sklearn.ensemble
from engine import same_forest
from outputs import DIABETES, NAMES, PAIR, SEVERAL, SUGAR, TWO, WINE, X, grown, same_splits
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score

import gpuforest
from gpuforest import (
    BaggingClassifier,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)


@pytest.mark.filterwarnings("ignore:divide by zero")  # scikit-learn's logarithms
@pytest.mark.parametrize("target", [WINE, TWO, np.stack([WINE, WINE, WINE], axis=1)])
@pytest.mark.parametrize("Model", SEVERAL)
def test_class_answers_have_scikit_learns_shapes(backend, Model, target):
    ours = grown(Model, backend, target)
    theirs = getattr(sklearn.ensemble, Model.__name__)(4, random_state=0).fit(X, target)
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        found, expected = (getattr(model, method)(X) for model in (ours, theirs))
        assert type(found) is type(expected)
        if isinstance(found, list):
            assert [(f.shape, f.dtype) for f in found] == [(e.shape, e.dtype) for e in expected]
        else:
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert type(ours.classes_) is type(theirs.classes_)
    assert np.concatenate(ours.classes_, axis=None).tolist() == (
        np.concatenate(theirs.classes_, axis=None).tolist()
    )
    assert np.array_equal(ours.n_classes_, theirs.n_classes_)
    assert ours.n_outputs_ == theirs.n_outputs_


@pytest.mark.parametrize("target", [SUGAR, PAIR])
def test_regressions_have_scikit_learns_shapes(backend, target):
    ours = grown(RandomForestRegressor, backend, target)
    theirs = sklearn.ensemble.RandomForestRegressor(4, random_state=0).fit(DIABETES, target)
    found, expected = (model.predict(DIABETES) for model in (ours, theirs))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert ours.n_outputs_ == theirs.n_outputs_
    assert ours.score(DIABETES, target) == r2_score(target, found)


def test_scores_are_scikit_learns(backend):
    binary = (TWO > 0).astype(int)
    model = grown(RandomForestClassifier, backend, binary, max_depth=2)
    right = (model.predict(X) == binary).all(axis=1)
    assert model.score(X, binary) == right.mean() < 1
    three = grown(RandomForestClassifier, backend, TWO)
    theirs = sklearn.ensemble.RandomForestClassifier(4).fit(X, TWO)
    for other in (three, theirs):
        with pytest.raises(ValueError, match="multiclass-multioutput is not supported"):
            other.score(X, TWO)


def test_probabilities_lead_to_labels(backend):
    model = grown(RandomForestClassifier, backend, TWO, max_depth=3)
    parts = model.predict_proba(X)
    # a mean of shares rounds
    assert all(np.allclose(part.sum(axis=1), 1) for part in parts)
    best = [c[p.argmax(axis=1)] for c, p in zip(model.classes_, parts, strict=True)]
    assert np.array_equal(model.predict(X), np.stack(best, axis=1))
    with np.errstate(divide="ignore"):
        logs = [np.log(part) for part in parts]
    assert all(np.array_equal(*p) for p in zip(model.predict_log_proba(X), logs, strict=True))


def test_votes_are_of_each_output(backend):
    tree = DecisionTreeClassifier(max_depth=2, backend=backend)
    model = BaggingClassifier(tree, 5, voting="hard", random_state=0).fit(X, TWO)
    for part, each in zip(model.predict_proba(X), model.classes_, strict=True):
        assert part.shape == (len(X), len(each))
        assert set(np.unique(part * 5)) <= {0, 1, 2, 3, 4, 5}
        # a mean of shares rounds
        assert np.allclose(part.sum(axis=1), 1)


def test_strings(backend):
    names = np.stack([NAMES[TWO[:, 0], 0], NAMES[TWO[:, 1], 1]], axis=1)
    plain = grown(RandomForestClassifier, backend, TWO)
    for target in (names, names.astype(object)):
        model = grown(RandomForestClassifier, backend, target)
        assert [c.tolist() for c in model.classes_] == [["high", "low", "mid"], ["no", "yes"]]
        assert same_splits(model.forest_, plain.forest_)
        found = model.predict(X)
        assert found.shape == names.shape
        assert np.mean(found == names) > 0.9


def test_labels_of_several_kinds(backend, tmp_path):
    target = np.stack([NAMES[TWO[:, 0], 0].astype(object), TWO[:, 1].astype(object)], axis=1)
    model = grown(RandomForestClassifier, backend, target)
    assert [c.dtype.kind for c in model.classes_] in (["O", "i"], ["U", "i"])
    found = model.predict(X)
    assert found.dtype == object
    assert {type(label) for label in found[:, 1]} <= {int, np.int64}
    assert np.mean(found == target) > 0.9
    model.save(tmp_path / "model")
    assert np.array_equal(gpuforest.load(tmp_path / "model").predict(X), found)


def test_a_column_is_one_output(backend):
    for Model, target in ((RandomForestClassifier, WINE), (RandomForestRegressor, SUGAR)):
        with pytest.warns(DataConversionWarning):
            model = grown(Model, backend, target[:, None])
        assert model.n_outputs_ == 1
        assert same_forest(model.forest_, grown(Model, backend, target).forest_)
        assert model.predict(X if Model is RandomForestClassifier else DIABETES).ndim == 1


def test_out_of_bag_answers_have_scikit_learns_shapes(backend):
    params = {"n_estimators": 60, "oob_score": True, "random_state": 0}
    target = np.stack([WINE > 0, X[:, 1] > 2], axis=1)
    ours = RandomForestClassifier(**params, backend=backend).fit(X, target)
    theirs = sklearn.ensemble.RandomForestClassifier(**params).fit(X, target)
    decision = ours.oob_decision_function_
    assert decision.shape == theirs.oob_decision_function_.shape == (178, 2, 2)
    assert ours.oob_score_ == np.mean((decision.argmax(axis=1) == target).all(axis=1))
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.05
    ours = RandomForestRegressor(**params, backend=backend).fit(DIABETES, PAIR)
    theirs = sklearn.ensemble.RandomForestRegressor(**params).fit(DIABETES, PAIR)
    assert ours.oob_prediction_.shape == theirs.oob_prediction_.shape == (442, 2)
    assert ours.oob_score_ == r2_score(PAIR, ours.oob_prediction_)
    assert abs(ours.oob_score_ - theirs.oob_score_) < 0.05
    # outputs of unlike numbers of classes stand side by side, with room for the most
    ours = RandomForestClassifier(**params, backend=backend).fit(X, TWO)
    assert ours.oob_decision_function_.shape == (178, 3, 2)
    assert not ours.oob_decision_function_[:, 2, 1].any()
    right = ours.oob_decision_function_.argmax(axis=1) == TWO
    assert ours.oob_score_ == np.mean(right.all(axis=1)) > 0.8
