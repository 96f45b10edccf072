"""Model files and pickles of every kind of model are that model, and fit to the same again."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from engine import same_forest
from exported import CODES, HERE, KINDS, LABELS, NUMBERS, ROWS, SHORT, SUMS, X, model
from sklearn.base import clone
from survivors import data, data_of_causes

import gpuforest as gf

CLASSES, MEDIANS = gf.DecisionTreeClassifier, gf.DecisionTreeRegressor(criterion="absolute_error")
SURVIVORS = pd.DataFrame(data()[0], columns=list("abcd")).assign(town=["x", "y"] * 100)
WEIGHTS = dict(zip(np.unique(LABELS).tolist(), (1, 2.5, 1), strict=True))
OTHERS = {  # an estimator, rows and targets
    "signs": (gf.AdaBoostClassifier(CLASSES(max_depth=3, monotonic_cst=[1, 0, 0, 0]),
                                    n_estimators=3, **HERE), X, CODES > 1),
    "few leaves": (gf.AdaBoostClassifier(CLASSES(ccp_alpha=0.01, max_leaf_nodes=3),
                                         n_estimators=3, **HERE), X, CODES),
    "medians of rounds": (gf.AdaBoostRegressor(MEDIANS, n_estimators=3, **HERE), ROWS, NUMBERS),
    "some features": (gf.BaggingClassifier(n_estimators=4, max_features=0.5, random_state=0),
                      X, CODES),
    "weights": (gf.RandomForestClassifier(3, class_weight=WEIGHTS, **HERE), X, LABELS),
    "stops": (gf.HistGradientBoostingRegressor(**SHORT, early_stopping=True, refit=True, **HERE),
              ROWS, NUMBERS),
    "survival": (gf.RandomSurvivalForest(9, **HERE), SURVIVORS, pd.DataFrame(data()[1])),
    "causes": (gf.ExtraSurvivalTrees(4, criterion="logrank", **HERE), *data_of_causes(150)),
    "anomalies": (gf.IsolationForest(n_estimators=4, contamination=0.1, **HERE), X, None),
}  # fmt: skip


def fitted(kind):
    if kind in OTHERS:
        estimator, *data = OTHERS[kind]
        return estimator.fit(*data), *data
    return model(kind), *(KINDS | SUMS)[kind][2:]


def settings(estimator):
    """All parameters but the backend, which is of the machine that fits."""
    params = estimator.get_params(deep=False).items()
    return {n: repr(v).replace("backend='numpy', ", "") for n, v in params if n != "backend"}


def attributes(estimator):
    """What a fit leaves; a file does not say on which backend it was."""
    names = {n for n in vars(estimator) if n.endswith("_") and n[0] != "_"}
    names |= {"estimators_features_", "feature_importances_", "max_samples_", "n_iter_"}
    found = {n: repr(getattr(estimator, n, None)) for n in names - {"backend_", "forest_"}}
    return {n: re.sub(r"<U\d+", "<U", text) for n, text in found.items()}  # texts of any length


METHODS = [
    "predict", "predict_proba", "decision_function", "score_samples", "apply",
    *(f"predict_{name}_function" for name in ("survival", "cumulative_hazard")),
    "predict_cumulative_incidence_function",
]  # fmt: skip


@pytest.mark.parametrize("kind", [*KINDS, *SUMS, *OTHERS])
def test_files_and_pickles_are_the_model(kind, tmp_path):
    given, rows, y = fitted(kind)
    given.save(tmp_path / "model")
    from_file = gf.load(tmp_path / "model")
    for other in (from_file, pickle.loads(pickle.dumps(given))):
        assert type(other) is type(given)
        assert settings(other) == settings(given)
        assert same_forest(other.forest_, given.forest_)
        assert attributes(other) == attributes(given)
        for method in METHODS:
            assert hasattr(other, method) == hasattr(given, method)
            if hasattr(given, method):
                answers = (getattr(each, method)(rows) for each in (other, given))
                assert np.array_equal(*(np.concatenate(a, axis=None) for a in answers))
    assert same_forest(clone(from_file).fit(rows, y).forest_, given.forest_)
    from_file.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    if type(given).__name__.startswith(("Random", "Extra")):
        pairs = zip(from_file.estimators_samples_, given.estimators_samples_, strict=True)
        assert all(np.array_equal(*pair) and (np.diff(pair[0]) >= 0).all() for pair in pairs)
        return
    drawn = hasattr(given, "estimators_samples_")
    words = "only to the estimator that was fitted" if drawn else "no attribute"
    with pytest.raises(AttributeError, match=words):
        _ = from_file.estimators_samples_


def test_a_file_keeps_sets_and_leaves_functions_out(tmp_path):
    def score(model, X, y):
        return -np.abs(model.predict(X) - y).mean()

    sets = [{np.int64(2), 1}, (3,)]
    params = {"early_stopping": True, "scoring": score, "interaction_cst": sets}
    boosted = gf.HistGradientBoostingRegressor(max_iter=3, **params, **HERE).fit(ROWS, NUMBERS)
    boosted.save(tmp_path / "model")
    other = gf.load(tmp_path / "model")
    assert (other.interaction_cst, other.scoring) == ([[1, 2], [3]], "loss")
    assert np.array_equal(other.predict(ROWS), boosted.predict(ROWS))
